"""tcplab schema: what an experiment file may contain, for editors."""

from __future__ import annotations

import argparse
import json

import tcplab
from tcplab.cli._say import say

NAME = "schema"
HELP = "print the JSON Schema of experiment files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def run(_args: argparse.Namespace) -> None:
    """Prints the schema."""
    say(json.dumps(tcplab.schema(), indent=2))
