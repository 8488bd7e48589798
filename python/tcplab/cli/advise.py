"""tcplab advise: finds the best settings for a path and its traffic, and how certain they are."""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tcplab import _core
from tcplab._experiment.reading import load_from, loaded
from tcplab.cli import _advice, _arguments, trying
from tcplab.cli._output import say
from tcplab.cli._signals import exit_status

SIDES = ("sender", "receiver", "router", "all")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the question, and for the time that an answer may take."""
    parser.description = (
        "Search for the best settings for a path and its traffic, test them with fresh seeds, "
        "confirm them on the kernel if one is built, and report how much better they are, how "
        "certain that is, and at whose cost. The path is that of an experiment file, of a "
        "capture's twin, or of flags, as in tcplab try."
    )
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="an experiment (- reads it from standard input) or a packet capture; without a file, "
        "flags describe the path",
    )
    parser.add_argument(
        "--destinations",
        type=Path,
        metavar="FILE",
        help="advise a setting for each destination that this file lists, with as few different "
        "settings as possible without a loss",
    )
    trying.add_path(parser)
    _arguments.add_changes(parser)
    asked = parser.add_argument_group("the question")
    asked.add_argument(
        "--goal",
        type=_names,
        default=(),
        metavar="NAMES",
        help="the goal, then further metrics to report: goodput, completion, completion-p95, "
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
        "--keep",
        type=_names,
        default=(),
        metavar="SETTINGS",
        help="settings that must not change: wmem,ecn",
    )
    asked.add_argument(
        "--change",
        action="append",
        default=[],
        type=partial(_values, "cc=cubic,bbr"),
        metavar="KEY=VALUES",
        help="try only these values of a setting, and only settings given so: cc=cubic,bbr; may be "
        "given several times",
    )
    asked.add_argument(
        "--over",
        action="append",
        default=[],
        type=_range,
        metavar="KEY=RANGE",
        help="advise for a range of paths: a parameter, a key or a flag above with a range, "
        "rtt=10ms..200ms, a list of values, or a table with a distribution or a file of values, "
        "rtt={file='rtts.txt'}; may be given several times",
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
        default=55.0,
        metavar="TIME",
        help="time limit: 55s (the default), 10min",
    )
    parser.add_argument(
        "--on",
        choices=["sim", "linux"],
        metavar="BACKEND",
        help="linux: confirm on the kernel; sim: do not (default: linux if a kernel is built)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for the page, the files and all runs; the same question continues in it, and "
        "another is refused (default: results/advise, with the name of the file; there the last "
        "answer is replaced)",
    )
    _arguments.add_workers(parser)
    parser.add_argument(
        "--format",
        choices=["text", "json", "markdown"],
        default="text",
        metavar="FORMAT",
        help="output format: text (the default), json or markdown",
    )
    parser.add_argument("--quiet", action="store_true", help="print only the answer and warnings")


def run(args: argparse.Namespace) -> int:
    """Computes advice and prints it."""
    if args.destinations is not None:
        return _by_destination(args)
    from tcplab._advice.api import advice_in, subject  # noqa: PLC0415 (SciPy takes a while)
    from tcplab._advice.question import question  # noqa: PLC0415

    given, ranges, notes = _experiment(args, subject)
    try:
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
    except _core.ConfigError as error:
        if args.file is not None:
            raise
        said = trying.of_flags(str(error), trying.given(args))
        raise _core.ConfigError(trying.of_flags(said, dict(args.over), "--over ")) from None
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
        replaces=args.out is None,
        say=(lambda _: None) if args.quiet else (lambda text: say(text, file=sys.stderr)),
    )
    say(_advice.shown(out, args.format))
    if not args.quiet:
        say(f"page    {out / 'advice.html'}", file=sys.stderr)
        if advice.candidate.settings:
            say(f"apply   {out / 'apply'}", file=sys.stderr)
    return exit_status() if is_stopped else 0


def _by_destination(args: argparse.Namespace) -> int:
    """Advises a setting for each destination."""
    from tcplab._advice import destinations  # noqa: PLC0415 (SciPy takes a while)

    of_one = ("file", "goal", "may", "mine", "keep", "change", "over", "limit", "changes")
    if given := [name for name in of_one if getattr(args, name)] or [*trying.given(args)]:
        name = {"mine": "for", "changes": "set"}.get(given[0], given[0])
        raise _core.ConfigError(
            f"--destinations: {args.destinations} says it all; leave out {name}"
        )
    several = destinations.destinations(args.destinations)
    text = args.destinations.read_text(encoding="utf-8")
    out = args.out or Path("results") / f"advise-{_arguments.safe(args.destinations.stem)}"
    command = _core.printable(shlex.join(["tcplab", *sys.argv[1:]]))
    found = destinations.chosen(
        text,
        several,
        lambda flags: loaded(trying.experiment_of(flags)),
        trying.of_flags,
        out,
        budget_s=args.budget,
        backend=args.on,
        workers=args.workers,
        progress=False if args.quiet else None,
        replaces=args.out is None,
        say=(lambda _: None) if args.quiet else (lambda text: say(text, file=sys.stderr)),
    )
    files = destinations.write(found, out, command)
    say(_advice.shown(out, args.format))
    if not args.quiet:
        say(f"page    {out / 'destinations.html'}", file=sys.stderr)
        if files:
            say(f"apply   {out / 'apply'}", file=sys.stderr)
    return 0


def _experiment(args: argparse.Namespace, subject: Any) -> tuple[Any, dict[str, Any], list[str]]:
    """The experiment, the ranges given by flags, and notes about both."""
    flags, over = trying.given(args), dict(args.over)
    if args.file is None:
        if not flags and not over.keys() & trying.FLAGS.keys():
            asked = {"mine": "for"} | {
                name: name for name in ("goal", "may", "limit", "keep", "change")
            }
            alone = [flag for name, flag in asked.items() if getattr(args, name)]
            raise _core.ConfigError(
                f"{f'--{alone[0]} says nothing of the path: ' if alone else ''}name an experiment "
                "or a capture, or say the path by flags: --rate 200M --rtt 80ms --loss 0.1%"
            )
        for name in over:
            if name not in trying.FLAGS and "." not in name and name not in ("duration", "seed"):
                raise _core.ConfigError(
                    f"--over {name}: expected {', '.join(trying.FLAGS)}, or a key of the "
                    "experiment like flows.flow.start"
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
    try:
        return key.strip(), trying.span_or_list(values, key.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write it like {example}") from None


def _seconds(text: str) -> float:
    from tcplab._experiment.quantities import numbers  # noqa: PLC0415 (polars takes a while to load)

    found = numbers([text])
    if found is None or found[0] not in ("ms", "number") or float(found[1][0]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time, like 55s")
    return float(found[1][0]) / (1000 if found[0] == "ms" else 1)
