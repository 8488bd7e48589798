"""tcplab list WHAT: lists algorithms, profiles, columns and the like."""

from __future__ import annotations

import argparse
import json

import polars as pl

import tcplab
from tcplab._results.metrics import METRICS
from tcplab._text.cells import LEFT, RIGHT, Column
from tcplab._text.plain_tables import table
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the list."""
    parser.add_argument(
        "what",
        choices=["cc", "profiles", "columns", "metrics"],
        metavar="WHAT",
        help="cc, profiles, columns or metrics",
    )
    parser.add_argument(
        "--explain",
        metavar="PROFILE",
        help="with profiles: every option that this profile sets, and the source of its value",
    )


def run(args: argparse.Namespace) -> None:
    """Prints the list."""
    if args.explain is not None and args.what != "profiles":
        raise tcplab.ConfigError("--explain: explains profiles: tcplab list profiles --explain ...")
    match args.what:
        case "columns":
            say(_plain(tcplab.columns()))
        case "metrics":
            heads = [Column("name", LEFT), Column("unit", LEFT), Column("meaning", LEFT)]
            say(table(heads, [[name, one.unit, one.definition] for name, one in METRICS.items()]))
        case "profiles" if args.explain is not None:
            say(_plain(tcplab.profile(args.explain)))
        case "profiles":
            say(_plain(tcplab.profiles()))
        case _:
            say(_algorithms())


def _plain(frame: pl.DataFrame) -> str:
    heads = [Column(head, LEFT) for head in frame.columns]
    return table(heads, [list(row) for row in frame.iter_rows()])


def _algorithms() -> str:
    heads = [Column("name", LEFT), Column("year", RIGHT), Column("kind", LEFT), Column("", LEFT)]
    rows = []
    for row in tcplab.algorithms().iter_rows(named=True):
        said = f"{row['summary']} ({row['reference']})"
        rows.append([row["name"], str(row["year"]), row["kind"], said])
        parameters = json.loads(row["parameters"])
        if parameters:
            values = (f"{name} = {json.dumps(value)}" for name, value in parameters.items())
            rows.append(["", "", "", f"parameters: {', '.join(values)}"])
        if row["presets"]:
            names = (f"{row['name']}/{preset}" for preset in row["presets"])
            rows.append(["", "", "", f"presets: {', '.join(names)}"])
    return table(heads, rows)
