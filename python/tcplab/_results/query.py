"""SQL over the tables of results, with DuckDB. Each table is a view over the stored files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from tcplab import _core
from tcplab._store.run_groups import PLANS, TABLES, Group, InMemory, OnDisk, table_of_plans

CLOSED = (
    # A sum of floats depends on the order of its terms, and so on how threads divide them.
    "set threads = 1",
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set enable_external_access = false",
    "set lock_configuration = true",
)
"""Settings under which a query reads these results and nothing else, and writes nothing."""


def query(sql: str, runs: pl.DataFrame, groups: Mapping[str, Group]) -> pl.DataFrame:
    """The rows that a query selects. `runs` is the table of that name; the other tables are in the
    group of each run.

    Raises:
        ConfigError: The text is not a query, or refers to something that does not exist.
    """
    # Other commands need not wait for DuckDB to load.
    import duckdb  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="tcplab-query-") as name:
        place = Path(name)
        runs.unique("run", maintain_order=True).write_parquet(place / "runs.parquet")
        database = duckdb.connect()
        try:
            database.execute(f"create view runs as from read_parquet('{place}/runs.parquet')")
            own = [_Own(place / str(n), *one) for n, one in enumerate(_by_group(groups))]
            for table in (PLANS, *(table for table in TABLES if table != "runs")):
                database.execute(f"create view {table} as {_rows(table, own)}")
            allowed = ", ".join(f"'{_quoted(path)}'" for path in [place, *(o.real for o in own)])
            database.execute(f"set allowed_directories = [{allowed}]")
            for setting in CLOSED:
                database.execute(setting)
            statements = database.extract_statements(sql)
            if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                raise _core.ConfigError("a query is one statement that begins with `select`")
            database.sql(sql).write_parquet(str(place / "rows.parquet"))
        except duckdb.Error as error:
            raise _core.ConfigError(str(error).splitlines()[0]) from None
        finally:
            database.close()
        rows = pl.read_parquet((place / "rows.parquet").read_bytes())
    # The literal 0.5 is a decimal number in DuckDB.
    return rows.cast({pl.Decimal: pl.Float64})


class _Own:
    """The files of a group, in a folder whose name needs no quoting, and the runs to select."""

    def __init__(self, place: Path, group: Group, runs: list[str]) -> None:
        self.place = place
        self.real = place
        if isinstance(group, OnDisk):
            self.real = group.folder.resolve()
            place.symlink_to(self.real)
        elif isinstance(group, InMemory):
            place.mkdir()
            plans = table_of_plans(group.ran.values(), group.plan_texts())
            for name, frame in {PLANS: plans, **group.frames}.items():
                frame.write_parquet(place / f"{name}.parquet")
        self.only = None if len(runs) == len(group.ran) else runs


def _by_group(groups: Mapping[str, Group]) -> Iterator[tuple[Group, list[str]]]:
    """Each group once, with its selected runs."""
    found: dict[int, tuple[Group, list[str]]] = {}
    for run, group in groups.items():
        found.setdefault(id(group), (group, []))[1].append(run)
    yield from found.values()


def _rows(table: str, groups: list[_Own]) -> str:
    """The body of the view of a table."""
    whole = [f"'{one.place}/{table}.parquet'" for one in groups if one.only is None]
    parts = [f"from read_parquet([{', '.join(whole)}], union_by_name = true)"] if whole else []
    for one in groups:
        if one.only is not None:
            runs = ", ".join(f"'{_quoted(run)}'" for run in one.only)
            parts.append(f"from read_parquet('{one.place}/{table}.parquet') where run in ({runs})")
    return " union all by name ".join(f"({part})" for part in parts)


def _quoted(text: object) -> str:
    return str(text).replace("'", "''")
