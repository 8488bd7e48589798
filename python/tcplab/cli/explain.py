"""tcplab explain CC: explains a congestion control."""

from __future__ import annotations

import argparse

import tcplab
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the congestion control."""
    parser.add_argument(
        "cc", metavar="CC", help="the name of a congestion control, as in `tcplab list cc`"
    )


def run(args: argparse.Namespace) -> None:
    """Prints the page of the congestion control."""
    say(tcplab.explain(args.cc))
