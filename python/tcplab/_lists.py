"""What there is: algorithms, profiles, columns, the schema."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from tcplab import _core


def algorithms() -> pl.DataFrame:
    """The congestion controls: name, year, what they do, where they are from, and parameters."""
    names = ["name", "year", "summary", "reference", "parameters"]
    return pl.DataFrame(_core.algorithms(), schema=names, orient="row")


def profiles() -> pl.DataFrame:
    """The profiles that can be used: name, and what they stand for."""
    return pl.DataFrame(_core.profiles(), schema=["name", "summary"], orient="row")


def profile(name: str) -> pl.DataFrame:
    """What a profile sets: each option with its value, as it would be written, and its source.

    Raises:
        ConfigError: There is no such profile.
    """
    return pl.DataFrame(_core.profile(name), schema=["option", "value", "source"], orient="row")


def columns() -> pl.DataFrame:
    """The columns of the result tables, and what they mean."""
    return pl.DataFrame(_core.columns(), schema=["table", "column", "meaning"], orient="row")


def schema() -> dict[str, Any]:
    """The JSON Schema of an experiment: editors check and complete experiment files with it."""
    read: dict[str, Any] = json.loads(_core.schema())
    return read
