"""tcplab advise: which settings are best for a path and its traffic, and how sure that is."""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tcplab import _core
from tcplab._experiment import load_from, loaded
from tcplab.cli import _arguments, trying
from tcplab.cli._say import say
from tcplab.cli._signals import exit_status
from tcplab.cli._text import table, wrapped

SIDES = ("sender", "receiver", "router", "all")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The question, and how long an answer may take."""
    parser.description = (
        "Search the settings that are best for a path and its traffic, examine them with fresh "
        "seeds, confirm them on the kernel where one is built, and say by how much they are "
        "better, how sure that is, and at whose cost. The path is that of an experiment's file, "
        "of a capture's twin, or of flags, as in tcplab try."
    )
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="an experiment (- reads it from standard input) or a packet capture; without a file, "
        "flags say the path",
    )
    parser.add_argument(
        "--destinations",
        type=Path,
        metavar="FILE",
        help="a setting for each connection by where it goes: for each of the destinations that "
        "this file lists, with as few different ones as nothing is lost by",
    )
    trying.add_path(parser)
    _arguments.add_changes(parser)
    asked = parser.add_argument_group("the question")
    asked.add_argument(
        "--goal",
        type=_names,
        default=(),
        metavar="NAMES",
        help="what is to be best, then what is reported too: goodput, completion, completion-p95, "
        "page-time, latency, retransmissions, fairness (default: by the traffic)",
    )
    asked.add_argument(
        "--may",
        type=_names,
        default=(),
        metavar="SIDES",
        help=f"where settings may change: {', '.join(SIDES)} (default: sender)",
    )
    asked.add_argument(
        "--for",
        type=_names,
        default=(),
        dest="mine",
        metavar="FLOWS",
        help="the names of the flows whose settings may change (default: all)",
    )
    asked.add_argument(
        "--keep", type=_names, default=(), metavar="SETTINGS", help="settings that stay: wmem,ecn"
    )
    asked.add_argument(
        "--change",
        action="append",
        default=[],
        type=partial(_values, "cc=cubic,bbr"),
        metavar="KEY=VALUES",
        help="try these values of a setting, and nothing but what is given so: cc=cubic,bbr; may "
        "be given several times",
    )
    asked.add_argument(
        "--over",
        action="append",
        default=[],
        type=_range,
        metavar="KEY=RANGE",
        help="advice that is to hold over a range of paths: a parameter, a key or a flag above "
        "with all between two values, rtt=10ms..200ms, a list, or a table with a distribution or "
        "a file of values, rtt={file='rtts.txt'}; may be given several times",
    )
    asked.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="LIMIT",
        help="what an advised setting must keep: 'retransmissions <= 3 %%', 'latency <= 60 ms'; "
        "may be given several times",
    )
    asked.add_argument(
        "--budget",
        type=_seconds,
        default=60.0,
        metavar="TIME",
        help="how long it may take: 60s (the default), 10min",
    )
    parser.add_argument(
        "--on",
        choices=["sim", "linux"],
        metavar="BACKEND",
        help="linux: the kernel must confirm it; sim: it need not (default: where one is built)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where the page, the files and all runs go (default: results/advise, with the name of "
        "the file)",
    )
    _arguments.add_workers(parser)
    parser.add_argument(
        "--format",
        choices=["text", "json", "markdown"],
        default="text",
        metavar="FORMAT",
        help="how the answer is printed: text (the default), json or markdown",
    )
    parser.add_argument("--quiet", action="store_true", help="print the answer and warnings alone")


def run(args: argparse.Namespace) -> int:
    """Finds advice, and prints it."""
    if args.destinations is not None:
        return _by_destination(args)
    from tcplab._advice.api import advice_in, subject  # noqa: PLC0415 (SciPy takes a while)
    from tcplab._advice.kept import ADVICE  # noqa: PLC0415
    from tcplab._advice.question import question  # noqa: PLC0415

    given, ranges, notes = _experiment(args, subject)
    asked = question(
        given,
        goal=args.goal,
        flows=args.mine or (("flow",) if args.file is None else ()),
        may=args.may,
        keep=args.keep,
        change=dict(args.change),
        over=ranges,
        limits_=args.limit,
    )
    name = _arguments.safe(_arguments.stem(args.file)) if args.file is not None else None
    out = args.out or Path("results") / (f"advise-{name}" if name else "advise")
    advice, is_stopped = advice_in(
        asked,
        out,
        budget_s=args.budget,
        backend=args.on,
        workers=args.workers,
        progress=False if args.quiet else None,
        command=_core.printable(shlex.join(["tcplab", *sys.argv[1:]])),
        notes=notes,
        say=(lambda _: None) if args.quiet else (lambda text: say(text, file=sys.stderr)),
    )
    if args.format == "json":
        say((out / ADVICE).read_text(encoding="utf-8").rstrip("\n"))
    elif args.format == "markdown":
        say((out / "advice.md").read_text(encoding="utf-8").rstrip("\n"))
    else:
        from tcplab._advice.words import sentences  # noqa: PLC0415

        say("\n\n".join(wrapped(one) for one in sentences(advice)))
    if not args.quiet:
        say(f"page    {out / 'advice.html'}", file=sys.stderr)
        if advice.candidate.settings:
            say(f"apply   {out / 'apply'}", file=sys.stderr)
    return exit_status() if is_stopped else 0


def _by_destination(args: argparse.Namespace) -> int:
    """A setting for each destination."""
    from tcplab._advice import destinations  # noqa: PLC0415 (SciPy takes a while)

    of_one = ("file", "goal", "may", "mine", "keep", "change", "over", "limit", "changes")
    if given := [name for name in of_one if getattr(args, name)] or [*trying.given(args)]:
        name = {"mine": "for", "changes": "set"}.get(given[0], given[0])
        raise _core.ConfigError(
            f"--destinations: {args.destinations} says it all; leave out {name}"
        )
    several = destinations.destinations(args.destinations)
    out = args.out or Path("results") / f"advise-{_arguments.safe(args.destinations.stem)}"
    command = _core.printable(shlex.join(["tcplab", *sys.argv[1:]]))
    found = destinations.chosen(
        several,
        lambda flags: loaded(trying.experiment_of(flags)),
        out,
        budget_s=args.budget,
        backend=args.on,
        workers=args.workers,
        progress=False if args.quiet else None,
        say=(lambda _: None) if args.quiet else (lambda text: say(text, file=sys.stderr)),
    )
    files = destinations.write(found, out, command)
    if args.format == "json":
        say((out / destinations.DESTINATIONS).read_text(encoding="utf-8").rstrip("\n"))
    elif args.format == "markdown":
        say((out / "destinations.md").read_text(encoding="utf-8").rstrip("\n"))
    else:
        say(table(*destinations.table_of(found)))
    if not args.quiet:
        say(f"page    {out / 'destinations.html'}", file=sys.stderr)
        if files:
            say(f"apply   {out / 'apply'}", file=sys.stderr)
    return 0


def _experiment(args: argparse.Namespace, subject: Any) -> tuple[Any, dict[str, Any], list[str]]:
    """The experiment, the ranges that flags have, and what is to be known of it."""
    flags, over = trying.given(args), dict(args.over)
    if args.file is None:
        if not flags and not over.keys() & trying.FLAGS.keys():
            raise _core.ConfigError(
                "name an experiment or a capture, or say the path by flags: "
                "--rate 200M --rtt 80ms --loss 0.1%"
            )
        plain, ranges = trying.with_ranges(flags, over)
        return _arguments.changed(loaded(plain), args), ranges, []
    if flags:
        first = next(iter(flags))
        raise _core.ConfigError(f"--{first}: {args.file} says the path; --set changes its keys")
    if args.file == Path("-"):
        return _arguments.changed(load_from(sys.stdin.buffer), args), over, []
    given, notes = subject(args.file)
    return _arguments.changed(given, args), over, notes


def _names(text: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found:
        raise argparse.ArgumentTypeError("names nothing")
    return found


def _range(text: str) -> tuple[str, Any]:
    key, found = _values("rtt=10ms..200ms", text)
    is_table = isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict)
    return key, found[0] if is_table else found


def _values(example: str, text: str) -> tuple[str, Any]:
    key, sign, values = text.partition("=")
    if not sign or not key.strip() or not values.strip():
        raise argparse.ArgumentTypeError(f"{text!r}: write it like {example}")
    return key.strip(), trying.span_or_list(values)


def _seconds(text: str) -> float:
    from tcplab._quantities import numbers  # noqa: PLC0415 (polars takes a while to load)

    found = numbers([text])
    if found is None or found[0] not in ("ms", "number") or float(found[1][0]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time, like 60s")
    return float(found[1][0]) / (1000 if found[0] == "ms" else 1)
