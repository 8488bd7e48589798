"""Results on disk: one folder for each run, named by its id, that is either complete or not there.

Stored results are used again only if every file has its checksum (`_checksums`) and the tables have
the digest that is stored with them: what was damaged or exchanged later is told from what was
written.

A run is written to a working folder beside the others and moved into place when it is complete.
The working folder is locked as long as its process lives: those of killed processes can be told,
and are removed when the next one begins. Whatever is done to the folder as a whole is done with its
own lock held, so that processes that share it do not take each other's work for a leftover.
"""

from __future__ import annotations

import fcntl
import grp
import io
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from tcplab import _core
from tcplab._agreed import Agreed
from tcplab._checksums import LIST, PLAN, checksum, damage, listed, write_list
from tcplab._long import LongTable
from tcplab._restored import TABLES, check

DIGEST = "digest.txt"

READABLE = "readable.json"
"""What the programs of a run could read; runs without programs have no such file."""

NEEDED = (PLAN, DIGEST, *(f"{table}.parquet" for table in TABLES))
"""The files that every run leaves."""

WORKING = ".unfinished-"
"""How the names of working folders begin."""


@dataclass(frozen=True)
class InMemory:
    """The tables of a run that is not on disk."""

    frames: Mapping[str, pl.DataFrame | LongTable]
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
        return (self.folder / DIGEST).read_text(encoding="ascii").strip()

    def scan(self, table: str) -> pl.LazyFrame:
        """A table, to be asked."""
        return pl.scan_parquet(self.folder / f"{table}.parquet", glob=False)

    def files(self) -> dict[str, bytes]:
        """Further files that the run left, by name."""
        further = sorted(name for name in listed(self.folder) if name not in NEEDED)
        return {name: (self.folder / name).read_bytes() for name in further}

    def trouble(self, plan: _core.Plan, agreed: Agreed) -> str | None:
        """Why these results of a plan cannot be used; nothing if they can."""
        if found := self.damage(plan):
            return " ".join(found)
        listed = checksum((self.folder / LIST).read_bytes())
        if not agreed.has(listed):
            if trouble := self._disagreement(plan):
                return trouble
            agreed.add(listed)
        return None

    def _disagreement(self, plan: _core.Plan) -> str | None:
        """Why tables that are whole are not those of the plan and the digest."""
        found: list[str] = []
        try:
            checked = check(plan, self.folder, lambda where, what: found.append(f"{where} {what}"))
            if checked is None:
                return found[0]
            digest, broken = checked
            if digest != self.digest:
                return f"its tables do not have the digest of {DIGEST}"
        except (OSError, TypeError, ValueError) as error:
            return f"its tables are not what they should be: {' '.join(str(error).split())}"
        return broken and broken.splitlines()[0]

    def damage(self, plan: _core.Plan) -> tuple[str, str] | None:
        """The first file that is not as it was written, and what is wrong with it."""
        return damage(self.folder, (*NEEDED, *plan.files))


RunTables = InMemory | OnDisk


@dataclass(frozen=True)
class Store:
    """A folder with the results of runs."""

    folder: Path

    @cached_property
    def agreed(self) -> Agreed:
        """Those of its runs whose tables are known to have their digest."""
        return Agreed(self.folder)

    def find(self, run: str) -> OnDisk | None:
        """The results of a run if it was finished, whole or not: see `OnDisk.trouble`."""
        found = OnDisk(self.folder / run)
        return found if found.folder.exists() else None

    def writers(self) -> str | None:
        """Who else can write to the folder, and so change results or put others in their place."""
        place = self.folder.absolute()
        while not place.exists():
            place = place.parent
        for folder in (place, *place.parents):
            found = folder.stat()
            if found.st_uid not in (0, os.geteuid()):
                return f"{folder} belongs to another user"
            # In a sticky folder only owners exchange what is in it.
            is_sticky = found.st_mode & stat.S_ISVTX and folder != self.folder.absolute()
            if found.st_mode & (stat.S_IWOTH | stat.S_IWGRP) and not is_sticky:
                who = "everyone" if found.st_mode & stat.S_IWOTH else _group(found.st_gid)
                if who is not None:
                    return f"{who} can write to {folder}"
        return None

    @contextmanager
    def open(self) -> Iterator[Workplace]:
        """Makes sure that results can be written, and a place to do so.

        Raises:
            OSError: They cannot.
        """
        try:
            with suppress(FileExistsError):
                self.folder.mkdir(parents=True, exist_ok=True)
            life = ExitStack()
            with locked(self.folder):
                self._remove_leftovers()
                working = Path(tempfile.mkdtemp(prefix=WORKING, dir=self.folder))
                life.enter_context(locked(working))
            syncing = _core.Syncing(self.folder)
        except OSError as error:
            reason = error.strerror.lower() if error.strerror else error
            raise OSError(f"the folder {self.folder} cannot be written: {reason}") from None
        with life:
            try:
                yield Workplace(self.folder, working, syncing, self.agreed)
            finally:
                shutil.rmtree(working, ignore_errors=True)
                syncing.close()

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
    syncing: _core.Syncing
    agreed: Agreed

    def write(self, plan: _core.Plan, tables: InMemory) -> OnDisk:
        """Writes the results of a run; they are there completely or not at all."""
        written = OnDisk(self.folder / plan.id)
        unfinished = self.working / plan.id
        with _naming(written.folder):
            unfinished.mkdir()
        sums = {}
        for name, content in _files(plan, tables):
            with _naming(written.folder / name):
                if isinstance(content, LongTable):
                    sums[name] = content.write_parquet(unfinished / name)
                    continue
                (unfinished / name).write_bytes(content)
            sums[name] = checksum(content)
        with _naming(written.folder / LIST):
            listed_sum = checksum(write_list(unfinished, sums))
        with _naming(written.folder), locked(self.folder):
            if written.folder.exists():
                readable = tables.contents.get(READABLE)
                if (
                    written.trouble(plan, self.agreed) is None
                    and written.files().get(READABLE) == readable
                ):
                    # Another process was faster; equal ids, and programs that could read the same,
                    # have equal results.
                    shutil.rmtree(unfinished)
                    return written
                _remove(written.folder)
            unfinished.rename(written.folder)
        # The digest came with the tables.
        self.agreed.add(listed_sum)
        self.syncing.written()
        return written


def _group(number: int) -> str | None:
    """A group with others in it than the user. Many systems give each user one of their own."""
    with suppress(KeyError):
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
        is_own = number == user.pw_gid and group.gr_name == user.pw_name
        return (
            None if is_own and set(group.gr_mem) <= {user.pw_name} else f"the group {group.gr_name}"
        )
    return f"the group {number}"


def _files(plan: _core.Plan, tables: InMemory) -> Iterator[tuple[str, bytes | LongTable]]:
    """The content of each file of a run, made when it is its turn."""
    yield PLAN, (plan.to_json() + "\n").encode()
    yield DIGEST, (tables.digest + "\n").encode()
    yield from tables.contents.items()
    for name, frame in tables.frames.items():
        if isinstance(frame, LongTable):
            yield f"{name}.parquet", frame
            continue
        # Polars turns the system's errors into panics and its own ones: it writes into memory.
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd")
        yield f"{name}.parquet", buffer.getvalue()


def _remove(path: Path) -> None:
    """Removes whatever is there: nobody else puts anything where a run belongs."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Names the path of the finished file in errors, not that of the working one, or none."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def locked(folder: Path, *, patient: bool = True) -> Iterator[None]:
    """Holds the lock of a folder. If another holds it, waits for it or raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)
