"""tcplab draw FILE: the network of an experiment as a picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tcplab
from tcplab.cli import _chart
from tcplab.cli._arguments import chart, ensure_writable
from tcplab.cli._say import say

NAME = "draw"
HELP = "draw the network of an experiment file: hosts, links and the ways of flows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to draw, and where to."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the experiment, as TOML or JSON")
    parser.add_argument(
        "--chart",
        type=chart,
        metavar="FILE",
        help="where the picture goes: .svg, .png, .html or .json (default: NAME.svg here, after "
        "the experiment's file)",
    )


def run(args: argparse.Namespace) -> None:
    """Draws, and says where the picture is."""
    path: Path = args.chart or Path(f"{args.file.stem}.svg")
    ensure_writable(path)
    experiment = tcplab.load(args.file)
    _chart.save(lambda: tcplab.plot.network(experiment), path)
    say(f"picture in {path}", file=sys.stderr)
