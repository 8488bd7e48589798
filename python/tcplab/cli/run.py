"""tcplab run FILE: from an experiment file to tables and a chart."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import tcplab
from tcplab.cli import _arguments, _chart, _outcome
from tcplab.cli._say import say

NAME = "run"
HELP = "run an experiment file: print a table, save all tables and a chart"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to run, and where the results go."""
    _arguments.add_common(parser)
    parser.add_argument(
        "--on", default="sim", metavar="BACKEND", help="what runs it: sim (the default) or linux"
    )
    _arguments.add_allow_read(
        parser,
        "what programs may read too, besides the machine's and the experiment's folder; "
        "may be given several times",
    )


def run(args: argparse.Namespace) -> None:
    """Runs the experiment."""
    experiment = tcplab.load(args.file)
    out = args.out or Path("results") / _arguments.safe(experiment.name or args.file.stem)
    chart = args.chart or out / "chart.svg"
    if chart.parent != out:
        _arguments.ensure_writable(chart)
    began = time.monotonic()
    results = tcplab.run(
        experiment,
        out=out,
        workers=args.workers,
        memory=args.memory,
        backend=args.on,
        kernel=args.kernel,
        progress=False if args.quiet else None,
        allow_read=args.allow_read,
    )
    elapsed_s = time.monotonic() - began
    say(_outcome.table(results), flush=True)
    _chart.save(lambda: tcplab.plot.overview(results), chart)
    if not args.quiet:
        say(_outcome.epilogue(results, out, chart, elapsed_s), file=sys.stderr)
