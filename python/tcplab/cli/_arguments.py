"""Arguments shared by the commands that run experiments."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab import _core

if TYPE_CHECKING:
    from distributed import Client

    from tcplab._schema import Experiment
    from tcplab.cli._display import View

FORMATS = (".svg", ".png", ".pdf", ".html", ".json")

ENDINGS = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"

REPORTS = (".html", ".md", ".pdf")

GIVEN = re.compile(r'((?:[^="]|"[^"]*")+)=(.*)', re.DOTALL)
"""PATH=VALUE. A quoted name may contain any character."""


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the experiment's file, and those that change its values."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="the experiment, as TOML or JSON; - reads it from standard input",
    )
    add_changes(parser)


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that change values of an experiment."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="changes",
        type=_change,
        metavar="PATH=VALUE",
        help="set a key to another value, by its path: flows[0].cc=bbr, flows.NAME.cc=bbr, "
        "flows.*.cc=bbr, or a parameter by its name; may be given several times",
    )
    for key, metavar, about in (
        (
            "repeat",
            "N",
            "run each variant so often, with other seeds, or until its goodput is known well "
            'enough: "2%%"',
        ),
        ("seed", "N", "the first seed"),
        ("duration", "TIME", "simulated time: 10s"),
    ):
        parser.add_argument(
            f"--{key}",
            action="append",
            dest="changes",
            type=partial(_change_of, key),
            metavar=metavar,
            help=about,
        )


def experiment(args: argparse.Namespace) -> Experiment:
    """The experiment named by the arguments, with the values that they set."""
    # The schema of experiments takes time to load.
    from tcplab._experiment.reading import load, load_from  # noqa: PLC0415

    is_stream = args.file == Path("-")
    read = load_from(sys.stdin.buffer) if is_stream else load(args.file)
    return changed(read, args)


def changed(experiment: Experiment, args: argparse.Namespace) -> Experiment:
    """An experiment with the values set by arguments."""
    # One at a time: of several values for a key, the last counts.
    for path, value in args.changes:
        experiment = experiment.changed({path: value})
    return experiment


def value_of(text: str) -> Any:
    """The value of a word: parsed as TOML if possible, else the text itself."""
    try:
        return json.loads(_core.value(text.strip()))
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not text (UTF-8)") from None


def _change(text: str) -> tuple[str, Any]:
    found = GIVEN.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text}: write it like flows[0].cc=bbr")
    # The path must be valid text (UTF-8) as well.
    value_of(found[1])
    return found[1].strip(), value_of(found[2])


def _change_of(key: str, text: str) -> tuple[str, Any]:
    return key, value_of(text)


def add_by(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the subject of rows."""
    parser.add_argument(
        "--by",
        choices=["flow", "class", "cc"],
        metavar="WHAT",
        help="one row for each flow, class or cc (default: whichever gives few rows)",
    )


def add_view(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that decide what is printed, and how."""
    add_by(parser)
    add_format(
        parser,
        "how results are printed: table (the default), json (see tcplab schema --results), csv or "
        "markdown",
    )


def add_format(parser: argparse.ArgumentParser, about: str) -> None:
    """Adds the argument for the output format."""
    parser.add_argument(
        "--format",
        choices=["table", "json", "csv", "markdown"],
        default="table",
        metavar="FORMAT",
        help=about,
    )
    parser.add_argument(
        "--statistic",
        choices=["mean", "median"],
        default="mean",
        metavar="NAME",
        help="the statistic over repetitions: mean (the default) or median",
    )
    add_comparison(parser)


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of a comparison with a baseline."""
    parser.add_argument(
        "--versus",
        action="append",
        type=_baseline,
        metavar="KEY=VALUE",
        help="compare other variants with this one, in pairs of runs with equal seeds; the value "
        "alone is enough if only one swept key has it; may be given several times",
    )
    parser.add_argument(
        "--metrics",
        type=_names,
        default=(),
        metavar="NAMES",
        help="further columns, like power,queue_delay_p95_ms (see tcplab list metrics); with "
        "--versus, the metrics to compare",
    )
    parser.add_argument(
        "--margin",
        type=_share,
        default=0.02,
        metavar="SHARE",
        help='with --versus, the smallest difference that matters: "2%%" (the default)',
    )


def view(args: argparse.Namespace) -> View:
    """The view that the arguments describe."""
    from tcplab.cli._display import View  # noqa: PLC0415 (commands without results load no tables)

    return View(args.by, args.format, args.statistic, baseline(args), args.margin, args.metrics)


def baseline(args: argparse.Namespace) -> dict[str, str] | str | None:
    """The baseline of a comparison, if the arguments name one."""
    if not args.versus:
        return None
    named = [one for one in args.versus if not isinstance(one, str)]
    if len(named) < len(args.versus) and len(args.versus) > 1:
        raise _core.ConfigError("--versus: name the key of each value, like flows[0].cc=cubic")
    return dict(named) if named else str(args.versus[0])


def _baseline(text: str) -> tuple[str, str] | str:
    found = GIVEN.fullmatch(text)
    return text if found is None else (found[1].strip(), found[2].strip())


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _share(text: str) -> float:
    """Parses a share above zero: `2%`, `2 %`, `0.02`."""
    plain = text.strip()
    scale = 0.01 if plain.endswith("%") else 1.0
    try:
        share = float(plain.removesuffix("%")) * scale
    except ValueError:
        share = 0.0
    if not 0 < share < math.inf:
        raise argparse.ArgumentTypeError(f'{text} is not a share above zero, like "2%"')
    return share


def add_common(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the experiment, how it is run, and where results go."""
    add_experiment(parser)
    add_running(parser)


def add_running(
    parser: argparse.ArgumentParser,
    *,
    out: str = "results/NAME, after the experiment or its file",
) -> None:
    """Adds the arguments for how an experiment is run, and where results go (default: `out`)."""
    parser.add_argument(
        "--out",
        type=results,
        metavar="DIR",
        help=f"folder for the tables, or an address like s3://bucket/sweep (default: {out})",
    )
    add_workers(parser)
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on the workers of a Dask cluster, by the address of its scheduler: "
        "tcp://host:8786",
    )
    parser.add_argument(
        "--memory",
        type=_size,
        metavar="SIZE",
        help='memory for all concurrent runs, like "4 GB" (default: half of what is free)',
    )
    drawn = parser.add_mutually_exclusive_group()
    drawn.add_argument(
        "--chart",
        type=chart,
        metavar="FILE",
        help=f"file for the chart: {ENDINGS} (default: in DIR, as .svg)",
    )
    drawn.add_argument("--no-chart", action="store_true", help="draw no chart")
    parser.add_argument(
        "--kernel", metavar="NAME", help="the kernel for the backend linux (see tcplab kernel list)"
    )
    parser.add_argument("--quiet", action="store_true", help="print only the table and warnings")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the number of concurrent runs."""
    parser.add_argument(
        "--workers",
        type=_at_least_one,
        metavar="N",
        help="concurrent runs (default: one per processor)",
    )


def stem(file: Path) -> str:
    """The base name for results and charts of an experiment without a name."""
    return "experiment" if file == Path("-") else file.stem


def safe(name: str) -> str:
    """A name made safe as part of a path."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.").encode()[:80]
    return plain.decode(errors="ignore") or "experiment"


def _at_least_one(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 1")
    return number


def _size(text: str) -> str:
    from tcplab._run.memory import amount  # noqa: PLC0415 (loads tables)

    try:
        amount(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def results(text: str) -> Path | str:
    """Parses the place of results: a folder or an address."""
    from tcplab._store.remote import is_address  # noqa: PLC0415 (loads tables)

    if not text:
        raise argparse.ArgumentTypeError("the name of a folder is not empty")
    return text if is_address(text) else Path(text)


@contextmanager
def client(args: argparse.Namespace) -> Iterator[Client | None]:
    """A client of the cluster named by the arguments, or `None`."""
    if args.dask is None:
        yield None
        return
    for name in ("workers", "memory"):
        if getattr(args, name) is not None:
            raise _core.ConfigError(f"--{name}: the workers of a cluster have limits of their own")
    from tcplab._run.cluster import connected  # noqa: PLC0415 (Dask is an extra, and slow to load)

    with connected(args.dask) as found:
        yield found


def chart(text: str) -> Path:
    """Parses the file name of a chart."""
    path = Path(text)
    if path.suffix.lower() not in FORMATS:
        raise argparse.ArgumentTypeError(f"{path}: a chart is saved as {', '.join(FORMATS)}")
    return path


def chart_of(args: argparse.Namespace, out: Path | str, name: str) -> Path | None:
    """The file of the chart, or `None` if no chart is drawn: by default beside results in a folder.
    Raises an error at once if the chart cannot be written there.
    """
    folder = None if isinstance(out, str) else out
    chart: Path | None = args.chart or (folder and folder / name)
    if args.no_chart or chart is None:
        return None
    if chart.parent != folder:
        ensure_writable(chart)
    return chart


def report(text: str) -> Path:
    """Parses the file name of a report."""
    path = Path(text)
    if path.suffix.lower() not in REPORTS:
        raise argparse.ArgumentTypeError(f"{path}: a report is written as {', '.join(REPORTS)}")
    return path


def ensure_writable(chart: Path, what: str = "the chart") -> None:
    """Raises an error, before anything runs, if a chart or a report cannot be saved there."""
    folder, said = chart.parent, f"{what} {chart} cannot be written"
    if not folder.is_dir():
        raise NotADirectoryError(f"{said}: {folder} is not a folder")
    if chart.is_dir():
        raise IsADirectoryError(f"{said}: it is a folder")
    if chart.exists() and not os.access(chart, os.W_OK):
        raise PermissionError(f"{said}: permission denied")
    # A chart is first written to a temporary file in the same folder.
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{said}: {folder}: permission denied")


def add_allow_read(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds the argument for the files that programs of an experiment may read."""
    parser.add_argument("--allow-read", action="append", default=[], metavar="PATH", help=what)
