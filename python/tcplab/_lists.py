"""What there is: algorithms, columns, the schema."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from tcplab import _core


def algorithms() -> pl.DataFrame:
    """The congestion controls: name, year, what they do, where they are from, and parameters."""
    names = ["name", "year", "summary", "reference", "parameters"]
    return pl.DataFrame(_core.algorithms(), schema=names, orient="row")


def columns() -> pl.DataFrame:
    """The columns of the result tables, and what they mean."""
    return pl.DataFrame(_core.columns(), schema=["table", "column", "meaning"], orient="row")


def schema() -> dict[str, Any]:
    """The JSON Schema of an experiment: editors check and complete experiment files with it."""
    read: dict[str, Any] = json.loads(_core.schema())
    return read
