"""tcplab run FILE: runs an experiment file, and makes tables and a chart."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import tcplab
from tcplab._report import needs_typst
from tcplab._run.run import run as run_all
from tcplab._schema import Experiment
from tcplab._store.atomic_write import put
from tcplab.cli import _ahead, _arguments, _chart, _display, report
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the experiment, where results go, and what is shown of them."""
    _arguments.add_common(parser)
    add_where(parser)
    add_report(parser)
    _arguments.add_view(parser)


def add_where(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the backend."""
    parser.add_argument(
        "--on", default="sim", metavar="BACKEND", help="the backend: sim (the default) or linux"
    )
    _arguments.add_allow_read(
        parser,
        "a path that programs may read, besides the machine's and the experiment's folder; "
        "may be given several times",
    )


def add_report(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for a report."""
    parser.add_argument(
        "--report",
        type=_arguments.report,
        metavar="FILE",
        help="write a report too: .html, .md or .pdf (see tcplab report)",
    )


def run(args: argparse.Namespace) -> None:
    """Runs the experiment."""
    experiment = _arguments.experiment(args)
    name = _arguments.safe(experiment.name or _arguments.stem(args.file))
    run_and_show(experiment, args, args.out or Path("results") / name)


def run_and_show(experiment: Experiment, args: argparse.Namespace, out: Path | str) -> None:
    """Runs an experiment, prints its results and draws them."""
    chart = _arguments.chart_of(args, out, "chart.svg")
    path: Path | None = args.report
    if path is not None:
        if path.parent != out:
            _arguments.ensure_writable(path, "the report")
        if path.suffix.lower() == ".pdf":
            needs_typst()
    with _arguments.client(args) as client, _chart.drawing(chart) as draw:
        began = time.monotonic()
        # Tables need polars, and intervals need SciPy, which takes longest to load.
        has_intervals = experiment.repeat not in (None, 1)
        _ahead.load("polars", *(["tcplab._statistics.intervals"] if has_intervals else []))
        results = run_all(
            experiment,
            out=out,
            workers=args.workers,
            memory=args.memory,
            backend=args.on,
            kernel=args.kernel,
            progress=False if args.quiet else None,
            allow_read=args.allow_read,
            client=client,
        )
        elapsed_s = time.monotonic() - began
        say(_display.shown(results, _arguments.view(args)), flush=True)
        draw(lambda: tcplab.plot.answer(results))
    if path is not None:
        put(report.made(results, report.format_of(path), args), path)
    if not args.quiet:
        say(_display.epilogue(results, out, chart, elapsed_s), file=sys.stderr)
        if path is not None:
            say(f"report  {path}", file=sys.stderr)
