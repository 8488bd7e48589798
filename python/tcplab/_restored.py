"""The tables of a run as they were stored: read back, and checked against what belongs to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from tcplab import _core

TABLES = tuple(_core.tables())

PART = 50_000
"""Rows handed over at once."""

UNREADABLE = (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What polars raises for files that are no tables."""

Find = Callable[[str, object], None]
"""Takes where something is wrong, and what."""


def frames_of(folder: Path, find: Find) -> dict[str, pl.DataFrame] | None:
    """The tables of a run by name; nothing if one cannot be read."""
    frames = {}
    for name in TABLES:
        path = folder / f"{name}.parquet"
        try:
            # Mapped into memory, a file that is cut short would end the process.
            frames[name] = pl.read_parquet(path.read_bytes())
        except UNREADABLE as error:
            find(path.name, reason(error))
    return frames if len(frames) == len(TABLES) else None


def check(plan: _core.Plan, frames: dict[str, pl.DataFrame]) -> tuple[str, str | None]:
    """The digest of tables, and the law that they break, if they break one.

    Raises:
        TypeError: A column holds what it cannot.
        ValueError: They are no tables of results.
    """
    tables = _core.StoredTables()
    for name, frame in frames.items():
        for column, kind, part in _parts(frame):
            # Of the run's own columns it is the only one that no digest has.
            values = [None] * len(part) if (name, column) == ("runs", "wall_s") else part.to_list()
            tables.extend(name, column, kind, values)
    return tables.check(plan)


def reason(error: BaseException) -> str:
    """Why a file cannot be used."""
    if isinstance(error, FileNotFoundError):
        return "is missing"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    first = str(error).strip().splitlines()
    return f"cannot be read: {first[0] if first else type(error).__name__}"


def _parts(frame: pl.DataFrame) -> Iterator[tuple[str, str, pl.Series]]:
    """Each column with what it holds, part by part."""
    for column in frame.iter_columns():
        kind = {pl.String: "text", pl.Int64: "integer", pl.Float64: "number"}.get(
            column.dtype.base_type()
        )
        if kind is None:
            raise ValueError(f"the column `{column.name}` holds {column.dtype}")
        for start in range(0, max(len(column), 1), PART):
            yield column.name, kind, column.slice(start, PART)
