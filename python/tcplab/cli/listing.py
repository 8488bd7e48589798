"""tcplab list WHAT: what there is."""

from __future__ import annotations

import argparse
import json

import tcplab
from tcplab.cli._text import LEFT, RIGHT, Column, table

NAME = "list"
HELP = "list the congestion controls, or the columns of result tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to list."""
    parser.add_argument("what", choices=["cc", "columns"], metavar="WHAT", help="cc or columns")


def run(args: argparse.Namespace) -> None:
    """Prints the list."""
    if args.what == "columns":
        frame = tcplab.columns()
        heads = [Column(head, LEFT) for head in frame.columns]
        print(table(heads, [list(row) for row in frame.iter_rows()]))
        return
    heads = [Column("name", LEFT), Column("year", RIGHT), Column("", LEFT)]
    rows = []
    for row in tcplab.algorithms().iter_rows(named=True):
        parameters = json.loads(row["parameters"])
        said = ", ".join(f"{name} = {json.dumps(value)}" for name, value in parameters.items())
        rows.append([row["name"], str(row["year"]), f"{row['summary']} ({row['reference']})"])
        rows.append(["", "", f"parameters: {said or 'none'}"])
    print(table(heads, rows))
