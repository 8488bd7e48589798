"""The tables of a run as they were stored: read back, and checked against what belongs to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from tcplab import _core
from tcplab._store.run_groups import TABLES, UNREADABLE, Loaded, reason

Find = Callable[[str, object], None]
"""Takes where something is wrong, and what."""


def check(plan: _core.Plan, tables: Loaded, run: str, find: Find) -> tuple[str, str | None] | None:
    """The digest of the tables of a run, and the law that they break, if they break one.

    Gives nothing if one of them cannot be read.

    Raises:
        TypeError: A column holds what it cannot.
        ValueError: They are no tables of results.
    """
    restored = _core.StoredTables()
    are_whole = True
    for name in TABLES:
        for part in parts(tables, run, name, find):
            if part is None:
                are_whole = False
            else:
                restored.add(name, list(_columns(name, part)))
    return restored.check(plan) if are_whole else None


def parts(tables: Loaded, run: str, name: str, find: Find) -> Iterator[pl.DataFrame | None]:
    """A table of a run in parts of equal length, at least one.

    Where it cannot be read any further, it ends with `None`.
    """
    try:
        yield from tables.parts(run, name)
    except UNREADABLE as error:
        find(f"{name}.parquet", reason(error))
        yield None


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
