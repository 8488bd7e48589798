"""Results on disk: a folder for each group of runs, that is either complete or not there.

Runs are stored in groups, so that thousands of them are a few files. A long run is a group of its
own. Stored results are used again only if every file of their group has its checksum
(`_checksums`) and the tables of each run have the digest that is stored with them: what was damaged
or exchanged later is told from what was written.

A group is written to a working folder beside the others and moved into place when it is complete.
The working folder is locked as long as its process lives: those of killed processes can be told,
and are removed when the next one begins. Whatever is done to the folder as a whole is done with its
own lock held, so that processes that share it do not take each other's work for a leftover.

Many small groups become one (`_merging`). It is there before they go: after a kill in between, or
where two processes ran the same, a run is in two groups. The first one by name counts, and the next
process that writes removes the other.
"""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import re
import shutil
import stat
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path

from tcplab import _core
from tcplab._agreed import Agreed
from tcplab._checksums import LIST, checksum, write_list
from tcplab._groups import (
    LONGEST,
    PLAN,
    PLANS,
    Encoded,
    Group,
    InMemory,
    OnDisk,
    encoded,
    name_of,
    table_of_plans,
)
from tcplab._long import LongTable
from tcplab._remote import Remote, is_address
from tcplab._restored import check
from tcplab._tidying import Tidying

WORKING = ".unfinished-"
"""How the names of working folders begin."""

GROUP = re.compile(r"group-[0-9a-f]{16}")
"""How the folder of a group is named: by a hash of its runs."""

OF_RUN = re.compile(r"[0-9a-f]{16}")
"""How versions before 0.10 named the folder of each run."""


@dataclass(frozen=True)
class Store:
    """A folder with the results of runs."""

    folder: Path
    remote: Remote | None = None
    """Whose copy the folder is, if it is one."""

    @classmethod
    def at(cls, place: str | PathLike[str]) -> Store:
        """The store in a folder or at an address.

        Raises:
            ConfigError: The address names no place.
            OSError: The place cannot be read.
        """
        if not is_address(place):
            return cls(Path(place))
        remote = Remote(place)
        with locked(remote.folder):
            remote.fetch()
        return cls(remote.folder, remote)

    @property
    def name(self) -> Path | str:
        """What users call it."""
        return self.folder if self.remote is None else self.remote.address

    def send(self) -> None:
        """Sends what is new to where this is a copy of.

        Raises:
            OSError: That cannot be written.
        """
        if self.remote is not None:
            with locked(self.folder):
                self.remote.send()

    @cached_property
    def agreed(self) -> Agreed:
        """Those of its groups whose tables are known to have their digest."""
        return Agreed(self.folder)

    def groups(self) -> list[OnDisk]:
        """Its groups, whole or not: see `trouble`.

        Raises:
            ConfigError: A version that stored otherwise has written here.
        """
        if not self.folder.is_dir():
            return []
        found = sorted(self.folder.iterdir())
        if old := next(filter(is_of_old, found), None):
            raise _core.ConfigError(
                f"{old}: tcplab 0.9 or before has stored this run, in a form that this version "
                "does not read; run into another folder, or remove it with the others beside it"
            )
        return [OnDisk(path) for path in found if GROUP.fullmatch(path.name)]

    def trouble(self, group: OnDisk, plans: Mapping[str, _core.Plan]) -> str | None:
        """Why what a group has of these plans cannot be used; nothing if it can."""
        own = [plan for run, plan in plans.items() if run in group.ran]
        if found := group.damage([f"{plan.id}/{name}" for plan in own for name in plan.files]):
            return " ".join(found)
        listed = group.list_sum
        if not self.agreed.has(listed):
            if trouble := self._disagreement(group, own):
                return trouble
            if len(own) == len(group.ran):
                self.agreed.add(listed)
        return None

    @staticmethod
    def _disagreement(group: OnDisk, plans: Sequence[_core.Plan]) -> str | None:
        """Why tables that are whole are not those of the plans and the digests."""
        found: list[str] = []
        tables, texts = group.loaded(), group.plan_texts()
        for plan in plans:
            run = plan.id
            if not texts[run].startswith(f'{{"id":"{run}"'):
                return f"{PLANS}.parquet has another run's plan for {run}"
            try:
                checked = check(
                    plan, tables, run, lambda where, what: found.append(f"{where} {what}")
                )
                if checked is None:
                    return found[0]
                digest, broken = checked
                if digest != group.ran[run].digest:
                    return f"the tables of {run} do not have the digest of {PLANS}.parquet"
            except (OSError, TypeError, ValueError) as error:
                what = " ".join(str(error).split())
                return f"the tables of {run} are not what they should be: {what}"
            if broken:
                return broken.splitlines()[0]
        return None

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
        # Named before it is made: an interrupt at any moment finds what to remove.
        working = self.folder / f"{WORKING}{uuid.uuid4().hex[:8]}"
        with ExitStack() as life:
            life.callback(shutil.rmtree, working, ignore_errors=True)
            try:
                with suppress(FileExistsError):
                    self.folder.mkdir(parents=True, exist_ok=True)
                with locked(self.folder):
                    self._remove_leftovers()
                    working.mkdir(mode=0o700)
                    life.enter_context(locked(working))
                    known = {path.name for path in self.folder.iterdir()}
                syncing = _core.Syncing(self.folder)
            except OSError as error:
                reason = error.strerror.lower() if error.strerror else error
                raise OSError(f"the folder {self.folder} cannot be written: {reason}") from None
            life.callback(syncing.close)
            yield Workplace(self, working, syncing, known)

    def leftovers(self) -> list[Path]:
        """The working folders, of processes that live and of others."""
        return list(self.folder.glob(f"{WORKING}*"))

    def _remove_leftovers(self) -> None:
        for leftover in self.leftovers():
            # A lock that cannot be had: its process lives.
            with suppress(OSError), locked(leftover, patient=False):
                shutil.rmtree(leftover)


@dataclass(frozen=True)
class Workplace:
    """Where one process writes results."""

    store: Store
    working: Path
    syncing: _core.Syncing
    known: set[str]
    """The names of what was there at the start, or are of this process."""

    def write(self, group: InMemory) -> dict[str, OnDisk]:
        """Writes the results of runs; they are there completely or not at all. Gives where each is:
        what another process stored meanwhile is not written again.
        """
        unfinished, listed_sum = self._make(group)
        with _naming(self.store.folder), locked(self.store.folder):
            found = self._stored_meanwhile(group)
            if found:
                shutil.rmtree(unfinished)
                group = group.without(found)
                if not group.ran:
                    return found
                unfinished, listed_sum = self._make(group)
            written = OnDisk.of(self.store.folder / unfinished.name, group.ran)
            with _naming(written.folder):
                if os.path.lexists(written.folder):
                    # It was there, and cannot be used.
                    remove(written.folder)
                unfinished.rename(written.folder)
                written.hold()
            self.known.add(written.folder.name)
            if self.store.remote is not None:
                self.store.remote.send()
        # The digests came with the tables.
        self.store.agreed.add(listed_sum)
        self.syncing.written()
        return found | dict.fromkeys(group.ran, written)

    def _make(self, group: InMemory) -> tuple[Path, str]:
        """Writes the files of a group to a working folder; gives it and the sum of their list."""
        unfinished = self.working / name_of(group.ran)
        final = self.store.folder / unfinished.name
        with _naming(final):
            unfinished.mkdir()
        sums = {}
        for name, content in _files(group):
            with _naming(final / name):
                place = unfinished / name
                if "/" in name:
                    place.parent.mkdir(exist_ok=True)
                if isinstance(content, LongTable):
                    sums[name] = content.write_parquet(place)
                    continue
                place.write_bytes(content)
            sums[name] = checksum(content)
        with _naming(final / LIST):
            return unfinished, checksum(write_list(unfinished, sums))

    def _stored_meanwhile(self, group: InMemory) -> dict[str, OnDisk]:
        """Those of these runs that another process has stored since this one began."""
        found: dict[str, OnDisk] = {}
        for other in self.store.groups():
            if other.folder.name in self.known:
                continue
            with suppress(ValueError, OSError):
                both = [run for run in other.ran if run in group.ran and run not in found]
                agree = all(other.ran[run].readable == group.ran[run].readable for run in both)
                if both and agree and self.store.trouble(other, group.plans) is None:
                    # Equal ids, and programs that could read the same, have equal results.
                    other.hold()
                    found |= dict.fromkeys(both, other)
        return found

    def tidy(self, tables: Mapping[str, OnDisk], unusable: Sequence[OnDisk]) -> dict[str, OnDisk]:
        """Merges small groups, and removes what is there twice or cannot be used. Of runs that are
        twice there, those of `tables` stay. Gives where each of these is now.
        """
        known = {group.folder: group for group in tables.values()}
        for group in known.values():
            group.release()
        with _naming(self.store.folder), locked(self.store.folder):
            # What is known of a group need not be read again.
            found = [known.get(group.folder, group) for group in self.store.groups()]
            tidying = Tidying(self.store.folder, self.working, found)
            tidying.remove_doubles(tables, unusable)
            tidying.merge({run: place for place, run in enumerate(tables)})
            for group in unusable:
                if group.folder not in tidying.groups and group.folder.exists():
                    remove(group.folder)
            now = {
                run: group
                for group in tidying.groups.values()
                for run in group.ran
                if run in tables
            }
            for group in {id(group): group for group in now.values()}.values():
                group.hold()
            if self.store.remote is not None:
                self.store.remote.send()
        self.known.update(group.folder.name for group in tidying.groups.values())
        for listed in tidying.written:
            self.store.agreed.add(listed)
        if tidying.written:
            self.syncing.written()
        return now


def located(tables: Mapping[str, Group]) -> Mapping[str, Group]:
    """Where each run is: groups may have become parts of others since, in another process too."""
    groups = {id(group): group for group in tables.values() if isinstance(group, OnDisk)}
    gone = {key: group for key, group in groups.items() if not group.folder.is_dir()}
    if not gone:
        return tables
    now: dict[str, OnDisk] = {}
    for folder in {group.folder.parent for group in gone.values()}:
        with held(folder):
            for group in Store(folder).groups():
                with suppress(ValueError):
                    if own := [run for run in group.ran if run in tables and run not in now]:
                        group.hold()
                        now |= dict.fromkeys(own, group)
    return {
        run: now.get(run, group) if id(group) in gone else group for run, group in tables.items()
    }


def is_of_old(path: Path) -> bool:
    """Whether a folder has a run as versions before 0.10 stored it."""
    return bool(OF_RUN.fullmatch(path.name)) and (path / "experiment.json").exists()


def _group(number: int) -> str | None:
    """A group with others in it than the user. Many systems give each user one of their own."""
    with suppress(KeyError):
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
        is_own = number == user.pw_gid and group.gr_name == user.pw_name
        return (
            None if is_own and set(group.gr_mem) <= {user.pw_name} else f"the group {group.gr_name}"
        )
    return f"the group {number}"


def _files(group: InMemory) -> Iterator[tuple[str, bytes | LongTable]]:
    """The content of each file of a group, made when it is its turn."""
    texts = group.plan_texts()
    yield f"{PLANS}.parquet", encoded(table_of_plans(group.ran.values(), texts))
    for run, text in texts.items():
        if len(text) > LONGEST:
            yield f"{run}/{PLAN}", text.encode()
    del texts
    for run, contents in group.contents.items():
        for name, content in contents.items():
            yield f"{run}/{name}", content
    for name, frame in group.frames.items():
        match frame:
            case LongTable():
                yield f"{name}.parquet", frame
            case Encoded():
                yield f"{name}.parquet", frame.content
            case _:
                yield f"{name}.parquet", encoded(frame)


def remove(path: Path) -> None:
    """Removes whatever is there: nobody else puts anything where a group belongs."""
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
        if is_address(error.filename):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder where that can be had: groups stay where they are meanwhile."""
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(locked(folder))
        yield


@contextmanager
def locked(folder: Path, *, patient: bool = True) -> Iterator[None]:
    """Holds the lock of a folder. If another holds it, waits for it or raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)
