"""tcplab schema: prints the JSON Schema of experiment files, or of results in JSON."""

from __future__ import annotations

import argparse
import json

from tcplab._catalogue import schema
from tcplab._results import json_output
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the choice of schema."""
    parser.add_argument(
        "--results",
        action="store_true",
        help="the schema of the output of `--format json`, not that of experiment files",
    )


def run(args: argparse.Namespace) -> None:
    """Prints the schema."""
    say(json.dumps(json_output.schema() if args.results else schema(), indent=2))
