"""tcplab schema: what an experiment file may contain, for editors."""

from __future__ import annotations

import argparse
import json

import tcplab

NAME = "schema"
HELP = "print the JSON Schema of experiment files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def run(_args: argparse.Namespace) -> None:
    """Prints the schema."""
    print(json.dumps(tcplab.schema(), indent=2))
