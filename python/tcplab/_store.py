"""Results on disk: one folder for each run, named by its id, that is either complete or not there.

A run is written to a working folder beside the others and moved into place when it is complete.
The working folder is locked as long as its process lives: those of killed processes can be told,
and are removed when the next one begins. Whatever is done to the folder as a whole is done with its
own lock held, so that processes that share it do not take each other's work for a leftover.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from tcplab import _core

TABLES = ("runs", "flows", "samples", "links", "drops")

WORKING = ".unfinished-"
"""How the names of working folders begin."""


@dataclass(frozen=True)
class InMemory:
    """The tables of a run that is not on disk."""

    frames: Mapping[str, pl.DataFrame]
    digest: str
    contents: Mapping[str, bytes] = field(default_factory=dict)
    """Further files by name: captured packets, the output of programs."""

    def scan(self, table: str) -> pl.LazyFrame:
        """A table, to be asked."""
        return self.frames[table].lazy()

    def files(self) -> dict[str, bytes]:
        """Further files that the run left, by name."""
        return dict(self.contents)


@dataclass(frozen=True)
class OnDisk:
    """The tables of a run in its folder. They are read when they are asked for."""

    folder: Path

    @property
    def digest(self) -> str:
        """A hash over all tables as they were computed."""
        return (self.folder / "digest.txt").read_text(encoding="ascii").strip()

    def scan(self, table: str) -> pl.LazyFrame:
        """A table, to be asked."""
        return pl.scan_parquet(self.folder / f"{table}.parquet", glob=False)

    def files(self) -> dict[str, bytes]:
        """Further files that the run left, by name."""
        known = {f"{table}.parquet" for table in TABLES} | {"experiment.json", "digest.txt"}
        paths = sorted(path for path in self.folder.iterdir() if path.name not in known)
        return {path.name: path.read_bytes() for path in paths}

    def is_complete(self) -> bool:
        """Whether all of it is there and can be read."""
        try:
            for table in TABLES:
                self.scan(table).collect_schema()
            return bool(self.digest)
        except (OSError, ValueError, pl.exceptions.PolarsError):
            return False


RunTables = InMemory | OnDisk


@dataclass(frozen=True)
class Store:
    """A folder with the results of runs."""

    folder: Path

    def find(self, run: str) -> OnDisk | None:
        """The results of a run, if it was finished."""
        found = OnDisk(self.folder / run)
        return found if found.is_complete() else None

    @contextmanager
    def open(self) -> Iterator[Workplace]:
        """Makes sure that results can be written, and a place to do so.

        Raises:
            OSError: They cannot.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(self.folder):
                self._remove_leftovers()
                working = Path(tempfile.mkdtemp(prefix=WORKING, dir=self.folder))
                life = ExitStack()
                life.enter_context(locked(working))
        except OSError as error:
            reason = error.strerror.lower() if error.strerror else error
            raise OSError(f"the folder {self.folder} cannot be written: {reason}") from None
        with life:
            try:
                yield Workplace(self.folder, working)
            finally:
                shutil.rmtree(working, ignore_errors=True)

    def _remove_leftovers(self) -> None:
        for leftover in self.folder.glob(f"{WORKING}*"):
            # A lock that cannot be had: its process lives.
            with suppress(OSError), locked(leftover, patient=False):
                shutil.rmtree(leftover)


@dataclass(frozen=True)
class Workplace:
    """Where one process writes results."""

    folder: Path
    working: Path

    def write(self, plan: _core.Plan, tables: InMemory) -> OnDisk:
        """Writes the results of a run; they are there completely or not at all."""
        unfinished = self.working / plan.id
        unfinished.mkdir()
        (unfinished / "experiment.json").write_text(plan.to_json() + "\n", encoding="utf-8")
        (unfinished / "digest.txt").write_text(tables.digest + "\n", encoding="ascii")
        for name, content in tables.contents.items():
            (unfinished / name).write_bytes(content)
        for name, frame in tables.frames.items():
            path = unfinished / f"{name}.parquet"
            try:
                frame.write_parquet(path, compression="zstd")
            except OSError as error:
                error.filename = str(path)
                raise
        written = OnDisk(self.folder / plan.id)
        with locked(self.folder):
            if written.is_complete():
                # Another process was faster; equal ids have equal results.
                shutil.rmtree(unfinished)
                return written
            if written.folder.exists():
                shutil.rmtree(written.folder)
            unfinished.rename(written.folder)
        return written


@contextmanager
def locked(folder: Path, *, patient: bool = True) -> Iterator[None]:
    """Holds the lock of a folder. If another holds it, waits for it or raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)
