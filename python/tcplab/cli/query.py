"""tcplab query RESULTS SQL: queries the tables of stored results."""

from __future__ import annotations

import argparse

from tcplab._store.manifest import stored
from tcplab.cli import _arguments, _display
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the results and the query."""
    parser.add_argument(
        "results",
        type=_arguments.results,
        metavar="RESULTS",
        help="a folder or address of results (DIR of tcplab run)",
    )
    parser.add_argument(
        "sql",
        metavar="SQL",
        help="a query in DuckDB's SQL; `tcplab list columns` names the tables",
    )
    _arguments.add_format(parser, "output format: table (the default), json, csv or markdown")


def run(args: argparse.Namespace) -> None:
    """Prints the rows that the query selects."""
    rows = stored(args.results).query(args.sql)
    say(_display.shown_rows(rows, args.format), flush=True)
