"""The tables of a run as they were stored: read back, and checked against what belongs to them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from tcplab import _core
from tcplab._long import ROWS

TABLES = tuple(_core.tables())

UNREADABLE = (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What polars raises for files that are no tables."""

Find = Callable[[str, object], None]
"""Takes where something is wrong, and what."""


def check(plan: _core.Plan, folder: Path, find: Find) -> tuple[str, str | None] | None:
    """The digest of the tables of a run, and the law that they break, if they break one.

    Gives nothing if one of them cannot be read.

    Raises:
        TypeError: A column holds what it cannot.
        ValueError: They are no tables of results.
    """
    tables = _core.StoredTables()
    are_whole = True
    for name in TABLES:
        for part in parts(folder, name, find):
            if part is None:
                are_whole = False
            else:
                tables.add(name, list(_columns(name, part)))
    return tables.check(plan) if are_whole else None


def parts(folder: Path, name: str, find: Find) -> Iterator[pl.DataFrame | None]:
    """A table of a run in parts of equal length, at least one.

    Where it cannot be read any further, it ends with `None`.
    """
    path = folder / f"{name}.parquet"
    try:
        # Mapped into memory, a file that is cut short would end the process.
        table = pl.scan_parquet(io.BytesIO(path.read_bytes()))
        rows = int(table.select(pl.len()).collect().item())
        for start in range(0, max(rows, 1), ROWS):
            part = table.slice(start, ROWS).collect()
            yield part
    except UNREADABLE as error:
        find(path.name, reason(error))
        yield None


def reason(error: BaseException) -> str:
    """Why a file cannot be used."""
    if isinstance(error, FileNotFoundError):
        return "is missing"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    first = str(error).strip().splitlines()
    return f"cannot be read: {first[0] if first else type(error).__name__}"


def _columns(table: str, part: pl.DataFrame) -> Iterator[tuple[str, str, list[object]]]:
    """Each column with what it holds, and its values."""
    for column in part.iter_columns():
        kind = {pl.String: "text", pl.Int64: "integer", pl.Float64: "number"}.get(
            column.dtype.base_type()
        )
        if kind is None:
            raise ValueError(f"the column `{column.name}` holds {column.dtype}")
        # Of the run's own columns it is the only one that no digest has.
        is_elapsed = (table, column.name) == ("runs", "wall_s")
        yield column.name, kind, [None] * len(column) if is_elapsed else column.to_list()
