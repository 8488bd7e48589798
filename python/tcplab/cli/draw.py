"""tcplab draw FILE: draws the network of an experiment."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tcplab
from tcplab.cli import _chart
from tcplab.cli._arguments import (
    ENDINGS,
    add_experiment,
    chart,
    ensure_writable,
    experiment,
    stem,
)
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the experiment and the picture."""
    add_experiment(parser)
    parser.add_argument(
        "--chart",
        type=chart,
        metavar="FILE",
        help=f"file for the picture: {ENDINGS} (default: NAME.svg here, after the experiment's "
        "file)",
    )


def run(args: argparse.Namespace) -> None:
    """Draws the picture and prints its path."""
    path: Path = args.chart or Path(f"{stem(args.file)}.svg")
    ensure_writable(path)
    drawn = experiment(args)
    _chart.save(lambda: tcplab.plot.network(drawn), path)
    say(f"picture in {path}", file=sys.stderr)
