"""Groups of runs: the tables of several runs together, in memory or in a folder.

In each table the rows of a run are contiguous, and all tables have the runs in the same order. The
table `plans` holds the number of rows that each run has in each of the other tables.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Protocol

from tcplab import _core
from tcplab import _polars as pl
from tcplab._store.checksums import LIST, checksum, content, damage, listed
from tcplab._store.long_table import ROWS, LongTable

TABLES = tuple(_core.tables())

PLANS = "plans"
"""The table of everything that belongs to a run besides its results."""

NEEDED = tuple(f"{table}.parquet" for table in (PLANS, *TABLES))
"""The files that every group has, besides the list of their checksums."""

SMALL = 4 << 20
"""A group whose tables have fewer bytes in memory counts as small."""

LONGEST = 1 << 20
"""A plan with more characters gets a file of its own: in a table it would take ten times the
memory.
"""

PLAN = "plan.json"
"""The name of that file, among the further files of the run."""

OF_PLANS = {
    "run": str,
    "digest": str,
    "plan": str,
    "readable": str,
    "further": str,
    **{f"{table}_rows": int for table in TABLES},
}
"""The columns of the table `plans`."""


class Ran(NamedTuple):
    """Everything that belongs to a run besides its tables."""

    run: str
    digest: str
    """A hash of all tables of the run as they were computed."""
    rows: tuple[int, ...]
    """The number of rows in each table."""
    further: Mapping[str, Sequence[str]]
    """For each table, the columns that not every run has."""
    readable: bytes | None
    """The state of the files that the programs of the run could read."""


@dataclass(frozen=True)
class Encoded:
    """A table that is already encoded as a Parquet file."""

    content: bytes

    def lazy(self) -> pl.LazyFrame:
        """The table as a lazy frame."""
        return pl.scan_parquet(io.BytesIO(self.content))

    def estimated_size(self) -> int:
        """The number of bytes held in memory."""
        return len(self.content)

    def write_parquet(self, path: Path) -> None:
        """Writes the file."""
        path.write_bytes(self.content)


class Group(Protocol):
    """Runs whose tables are stored together."""

    @property
    def ran(self) -> Mapping[str, Ran]:
        """The runs, in the order of their rows."""

    @property
    def firsts(self) -> Mapping[str, tuple[int, ...]]:
        """For each run, the number of its first row in each table."""

    def scan(self, table: str) -> pl.LazyFrame:
        """A table of all runs, as a lazy frame."""

    def files(self, run: str) -> dict[str, bytes]:
        """Further files that a run left, by name."""


def _firsts(ran: Mapping[str, Ran]) -> dict[str, tuple[int, ...]]:
    columns = zip(*(one.rows for one in ran.values()), strict=True)
    firsts = [accumulate(column, initial=0) for column in columns]
    # The last sums are the lengths of the tables.
    return dict(zip(ran, zip(*firsts, strict=True), strict=False))


@dataclass(frozen=True)
class InMemory:
    """A group of runs that is not on disk, or not yet."""

    ran: Mapping[str, Ran]
    frames: Mapping[str, pl.DataFrame | LongTable | Encoded]
    plans: Mapping[str, _core.Plan]
    contents: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Further files by run and name: captured packets, the output of programs."""

    @cached_property
    def firsts(self) -> Mapping[str, tuple[int, ...]]:
        """For each run, the number of its first row in each table."""
        return _firsts(self.ran)

    def scan(self, table: str) -> pl.LazyFrame:
        """A table of all runs, as a lazy frame."""
        return self.frames[table].lazy()

    def files(self, run: str) -> dict[str, bytes]:
        """Further files that a run left, by name."""
        return dict(self.contents.get(run, {}))

    def without(self, runs: Container[str]) -> InMemory:
        """The group without these runs. A group of several runs is never encoded, so its tables are
        frames.
        """
        ran = {run: one for run, one in self.ran.items() if run not in runs}
        is_kept = pl.col("run").is_in(list(ran))
        frames = {
            name: frame.lazy().filter(is_kept).collect() for name, frame in self.frames.items()
        }
        return InMemory(ran, frames, self.plans, self.contents)

    def plan_texts(self) -> dict[str, str]:
        """The plan of each run as JSON."""
        return {run: self.plans[run].to_json() for run in self.ran}


def unreadable() -> tuple[type[BaseException], ...]:
    """The exceptions that polars raises for files that are not tables."""
    return OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException


def encoded(frame: pl.DataFrame) -> bytes:
    """The Parquet file of a table."""
    # Most groups have tables without rows, and encoding takes the same time for few rows as for
    # none.
    return _parquet(frame) if len(frame) else _parquet_of_none(tuple(frame.schema.items()))


@lru_cache(maxsize=64)
def _parquet_of_none(columns: tuple[tuple[str, pl.DataType], ...]) -> bytes:
    """The Parquet file of a table without rows."""
    return _parquet(pl.DataFrame(schema=dict(columns)))


def _parquet(frame: pl.DataFrame) -> bytes:
    # Polars turns errors of the system into panics and into its own exceptions, so it writes to
    # memory.
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", compression_level=1)
    return buffer.getvalue()


def table_of_plans(runs: Iterable[Ran], plans: Mapping[str, str]) -> pl.DataFrame:
    """The table of everything but results that belongs to these runs. `plans` are JSON texts."""
    all_ = [*runs]
    texts = [plans[one.run] for one in all_]
    rows = zip(*(one.rows for one in all_), strict=True) if all_ else [[] for _ in TABLES]
    columns: list[Sequence[str | int | None]] = [
        [one.run for one in all_],
        [one.digest for one in all_],
        [text if len(text) <= LONGEST else None for text in texts],
        [None if one.readable is None else one.readable.decode() for one in all_],
        [json.dumps(dict(one.further)) if one.further else None for one in all_],
        *rows,
    ]
    return pl.DataFrame(dict(zip(OF_PLANS, columns, strict=True)), schema=OF_PLANS)


@dataclass(frozen=True)
class OnDisk:
    """The runs in the folder of a group. Tables are read on demand."""

    folder: Path

    @classmethod
    def of(cls, folder: Path, ran: Mapping[str, Ran]) -> OnDisk:
        """The group in a folder whose runs are known already."""
        group = cls(folder)
        vars(group)["ran"] = ran
        return group

    @cached_property
    def ran(self) -> Mapping[str, Ran]:
        """The runs, in the order of their rows.

        Raises:
            ValueError: The table of plans cannot be used.
        """
        table = self._plans("run", "digest", "readable", "further", *self._counts)
        rows = {
            run: Ran(
                run,
                digest,
                tuple(rows),
                {} if further is None else json.loads(further),
                None if readable is None else readable.encode(),
            )
            for run, digest, readable, further, *rows in table.iter_rows()
        }
        if name_of(rows) != self.folder.resolve().name or len(rows) != len(table):
            raise ValueError(f"{PLANS}.parquet belongs to another group of runs")
        return rows

    _counts = tuple(f"{table}_rows" for table in TABLES)

    def _plans(self, *columns: str) -> pl.DataFrame:
        name = f"{PLANS}.parquet"
        try:
            table = pl.read_parquet(content(self.folder / name), columns=list(columns))
        except unreadable() as error:
            raise ValueError(f"{name} {reason(error)}") from None
        kinds = pl.Schema(OF_PLANS)
        if any(table.schema[name] != kinds[name] for name in columns):
            raise ValueError(f"{name} is not a table of plans")
        return table

    @cached_property
    def firsts(self) -> Mapping[str, tuple[int, ...]]:
        """For each run, the number of its first row in each table."""
        return _firsts(self.ran)

    def plan_texts(self) -> dict[str, str]:
        """The plan of each run as JSON.

        Raises:
            ValueError: The table of plans cannot be used.
        """
        texts = dict(self._plans("run", "plan").iter_rows())
        for run in [run for run, text in texts.items() if text is None]:
            try:
                texts[run] = content(self.folder / run / PLAN).decode()
            except (OSError, ValueError) as error:
                raise ValueError(f"{run}/{PLAN} {reason(error)}") from None
        return texts

    def scan(self, table: str) -> pl.LazyFrame:
        """A table of all runs, as a lazy frame."""
        return pl.scan_parquet(self.folder / f"{table}.parquet", glob=False)

    def files(self, run: str) -> dict[str, bytes]:
        """Further files that a run left, by name."""
        names = sorted(name for name in self._further.get(run, ()) if name != PLAN)
        return {name: content(self.folder / run / name) for name in names}

    @cached_property
    def _further(self) -> Mapping[str, Sequence[str]]:
        """For each run, the names of its further files."""
        names: dict[str, list[str]] = {}
        for listed_name in listed(self.folder):
            run, _, name = listed_name.rpartition("/")
            if run:
                names.setdefault(run, []).append(name)
        return names

    def hold(self) -> None:
        """Keeps a small group in place while this object lives: no process merges it."""
        if "_held" not in vars(self) and size(self.ran) < SMALL:
            vars(self)["_held"] = Held(self.folder)

    def release(self) -> None:
        """Allows the group to be merged again."""
        vars(self).pop("_held", None)

    @property
    def list_sum(self) -> str:
        """The checksum of the list of checksums."""
        return checksum(content(self.folder / LIST))

    def damage(self, needed: Sequence[str] = ()) -> tuple[str, str] | None:
        """The first file that differs from what was written, and how; `None` if none does."""
        return damage(self.folder, (*NEEDED, *needed))

    def loaded(self) -> Loaded:
        """The tables of the group, to be read run by run."""
        return Loaded(self)


class Held:
    """A shared lock on a folder."""

    def __init__(self, folder: Path) -> None:
        """Never blocks: whoever removes a group holds the lock of the store, and so does the
        caller.
        """
        self._descriptor = os.open(folder, os.O_RDONLY)
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def __del__(self) -> None:
        """Releases the lock."""
        os.close(self._descriptor)


def is_held(folder: Path) -> bool:
    """Whether any process holds the group in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


@dataclass
class Loaded:
    """The tables of a stored group, read without mapping files into memory: a mapped file that is
    cut short would kill the process.
    """

    group: OnDisk
    _frames: dict[str, pl.DataFrame] = field(default_factory=dict)

    def parts(self, run: str, table: str) -> Iterator[pl.DataFrame]:
        """Yields the rows of a run in parts of equal length, at least one, with the columns of that
        run.

        Raises:
            One of `unreadable()`: The file cannot be read.
        """
        if len(self.group.ran) == 1:
            # The table of a single run may be long.
            scan = pl.scan_parquet(io.BytesIO(content(self.group.folder / f"{table}.parquet")))
            rows = int(scan.select(pl.len()).collect().item())
            for start in range(0, max(rows, 1), ROWS):
                yield scan.slice(start, ROWS).collect()
            return
        ran, place = self.group.ran[run], TABLES.index(table)
        frame = self._frame(table)
        own = [name for name in frame.columns if name in declared(table)]
        if missing := set(further := ran.further.get(table, ())) - set(frame.columns):
            raise ValueError(f"the table `{table}` has no column `{min(missing)}`")
        yield frame.select(*own, *further).slice(self.group.firsts[run][place], ran.rows[place])

    def _frame(self, table: str) -> pl.DataFrame:
        if table not in self._frames:
            file = content(self.group.folder / f"{table}.parquet")
            self._frames[table] = pl.read_parquet(io.BytesIO(file))
        return self._frames[table]


def size(ran: Mapping[str, Ran]) -> int:
    """The approximate number of bytes that the tables of runs take in memory."""
    rows = zip(*(one.rows for one in ran.values()), strict=True)
    return sum(
        8 * sum(numbers) * len(declared(table)) for table, numbers in zip(TABLES, rows, strict=True)
    )


def name_of(runs: Iterable[str]) -> str:
    """The name of the folder for a group of these runs."""
    hashed = hashlib.sha256("\n".join(sorted(runs)).encode())
    return f"group-{hashed.hexdigest()[:16]}"


@cache
def declared(table: str) -> tuple[str, ...]:
    """The columns of a table that every run has."""
    return tuple(column for one, column, _ in _core.columns() if one == table)


def reason(error: BaseException) -> str:
    """The reason why a file cannot be used, for a message."""
    if isinstance(error, FileNotFoundError):
        return "is missing"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    first = str(error).strip().splitlines()
    return f"cannot be read: {first[0] if first else type(error).__name__}"


MOST_STRETCHES = 500
"""Rows in more stretches than this are sorted instead, which takes all of them into memory."""


def rows_of(runs: Mapping[str, Group], table: str) -> pl.LazyFrame:
    """The rows of these runs, in this order, with the union of their columns. Columns unknown to
    the version that stored a run are null.
    """
    stretches = list(_stretches(runs, table))
    if len(stretches) <= MOST_STRETCHES:
        rows = pl.concat(
            [_scan(group, table, first, number) for group, first, number in stretches],
            how="diagonal_relaxed",
        )
    else:
        rows = _sorted(runs, table)
    further = [one for run, group in runs.items() for one in group.ran[run].further.get(table, ())]
    there = rows.collect_schema()
    lacking = [
        pl.lit(None, pl.Float64).alias(name) for name in declared(table) if name not in there
    ]
    return rows.with_columns(lacking).select(*declared(table), *dict.fromkeys(further))


def _stretches(runs: Mapping[str, Group], table: str) -> Iterator[tuple[Group, int, int]]:
    """The stretches of rows to read: group, first row, and number of rows (at least one)."""
    place = TABLES.index(table)
    now: Group | None = None
    begin = end = 0
    for run, group in runs.items():
        first, number = group.firsts[run][place], group.ran[run].rows[place]
        if group is now and first == end:
            end += number
        elif now is None or end == begin:
            now, begin, end = group, first, first + number
        elif number:
            yield now, begin, end - begin
            now, begin, end = group, first, first + number
    if now is not None:
        yield now, begin, end - begin


def _scan(group: Group, table: str, first: int, number: int) -> pl.LazyFrame:
    """A stretch of the rows of a group."""
    scan, place = group.scan(table), TABLES.index(table)
    is_whole = number == sum(ran.rows[place] for ran in group.ran.values())
    # Files are read faster without a slice.
    return scan if is_whole else scan.slice(first, number)


def _sorted(runs: Mapping[str, Group], table: str) -> pl.LazyFrame:
    """The rows of these runs in this order, however the groups order them."""
    own: dict[int, tuple[Group, list[str]]] = {}
    for run, group in runs.items():
        own.setdefault(id(group), (group, []))[1].append(run)
    scans = [group.scan(table).filter(pl.col("run").is_in(names)) for group, names in own.values()]
    order = pl.LazyFrame({"run": list(runs), "place of run": range(len(runs))})
    rows = pl.concat(scans, how="diagonal_relaxed").join(order, on="run", maintain_order="left")
    return rows.sort("place of run", maintain_order=True).drop("place of run")
