"""tcplab show RESULTS: prints stored results again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tcplab
from tcplab._store.manifest import stored
from tcplab.cli import _advice, _arguments, _chart, _display
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the results and how they are printed."""
    parser.add_argument(
        "results",
        type=_arguments.results,
        metavar="RESULTS",
        help="a folder or address of results (DIR of tcplab run), or a folder of advice",
    )
    _arguments.add_view(parser)
    parser.add_argument(
        "--chart",
        type=_arguments.chart,
        metavar="FILE",
        help=f"file for a chart: {_arguments.ENDINGS} (default: no chart)",
    )


def run(args: argparse.Namespace) -> None:
    """Prints the results."""
    if args.chart is not None:
        _arguments.ensure_writable(args.chart)
    if isinstance(args.results, Path) and _advice.is_advice(args.results):
        say(_advice.shown(args.results, args.format), flush=True)
        return
    results = stored(args.results)
    say(_display.shown(results, _arguments.view(args)), flush=True)
    with _chart.drawing(args.chart) as draw:
        draw(lambda: tcplab.plot.answer(results))
    if args.chart is not None:
        say(f"\nchart   {args.chart}", file=sys.stderr)
