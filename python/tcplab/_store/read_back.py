"""Reads the tables of a stored run back, and checks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tcplab import _core
from tcplab import _polars as pl
from tcplab._store.run_groups import TABLES, Loaded, reason, unreadable

Find = Callable[[str, object], None]
"""Takes the place of a fault and a description of it."""


def check(plan: _core.Plan, tables: Loaded, run: str, find: Find) -> tuple[str, str | None] | None:
    """The digest of the tables of a run, and the law that they break, if any.

    `None` if one of the tables cannot be read.

    Raises:
        TypeError: A column has values of the wrong type.
        ValueError: The tables are not tables of results.
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
    """Yields a table of a run in parts of equal length, at least one.

    Ends with `None` where the table cannot be read any further.
    """
    try:
        yield from tables.parts(run, name)
    except unreadable() as error:
        find(f"{name}.parquet", reason(error))
        yield None


def _columns(table: str, part: pl.DataFrame) -> Iterator[tuple[str, str, list[object]]]:
    """Yields each column with the type of its values, and the values."""
    for column in part.iter_columns():
        kind = {pl.String: "text", pl.Int64: "integer", pl.Float64: "number"}.get(
            column.dtype.base_type()
        )
        if kind is None:
            raise ValueError(f"the column `{column.name}` holds {column.dtype}")
        # The elapsed time is the only column of `runs` outside the digest.
        is_elapsed = (table, column.name) == ("runs", "wall_s")
        yield column.name, kind, [None] * len(column) if is_elapsed else column.to_list()
