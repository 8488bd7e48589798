"""tcplab schema: what an experiment file may contain, and what results in JSON have."""

from __future__ import annotations

import argparse
import json

from tcplab._catalogue import schema
from tcplab._results import json_output
from tcplab.cli._say import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which schema."""
    parser.add_argument(
        "--results",
        action="store_true",
        help="the schema of what `--format json` prints, not that of experiment files",
    )


def run(args: argparse.Namespace) -> None:
    """Prints the schema."""
    say(json.dumps(json_output.schema() if args.results else schema(), indent=2))
