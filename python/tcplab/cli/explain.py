"""tcplab explain CC: what a congestion control does."""

from __future__ import annotations

import argparse

import tcplab
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which one."""
    parser.add_argument("cc", metavar="CC", help="its name, as `tcplab list cc` shows it")


def run(args: argparse.Namespace) -> None:
    """Prints its page."""
    say(tcplab.explain(args.cc))
