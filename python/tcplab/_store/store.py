"""Results on disk: one folder for each group of runs, which is either complete or absent.

Runs are stored in groups, so that thousands of them are a few files. A long run is a group of its
own. Stored results are reused only if every file of their group has its checksum (`checksums`) and
the tables of each run have the digest stored with them. Files that were damaged or exchanged later
are thus detected.

A group is written to a working folder beside the others and moved into place when it is complete.
The working folder is locked while its process lives, so that the folders of killed processes can be
recognised; the next process removes them. Operations on the folder as a whole hold its lock, so
that processes that share it do not take each other's work for a leftover.

Small groups are merged once there are many (`compaction`). The merged group is in place before the
small ones are removed: after a kill in between, or where two processes ran the same experiment, a
run is in two groups. The first group by name counts, and the next process that writes removes the
other.
"""

from __future__ import annotations

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
from tcplab._store.checksums import LIST, checksum, write_list
from tcplab._store.compaction import Tidying
from tcplab._store.digest_cache import Agreed
from tcplab._store.lock import locked
from tcplab._store.long_table import LongTable
from tcplab._store.read_back import check
from tcplab._store.remote import Remote, is_address
from tcplab._store.run_groups import (
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

WORKING = ".unfinished-"
"""The prefix of the names of working folders."""

GROUP = re.compile(r"group-[0-9a-f]{16}")
"""The name of the folder of a group: a hash of its runs."""

OF_RUN = re.compile(r"[0-9a-f]{16}")
"""The name that versions before 0.10 gave the folder of each run."""


@dataclass(frozen=True)
class Store:
    """A folder with the results of runs."""

    folder: Path
    remote: Remote | None = None
    """The remote place that the folder is a copy of, if any."""

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
        """The name by which the user knows the store."""
        return self.folder if self.remote is None else self.remote.address

    def send(self) -> None:
        """Sends new results to the remote place that the folder is a copy of.

        Raises:
            OSError: The remote place cannot be written.
        """
        if self.remote is not None:
            with locked(self.folder):
                self.remote.send()

    @cached_property
    def agreed(self) -> Agreed:
        """The groups whose tables are known to have their digest."""
        return Agreed(self.folder)

    def groups(self) -> list[OnDisk]:
        """The groups in the folder, intact or not: see `trouble`.

        Raises:
            ConfigError: A version with another format has written here.
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
        """Why the results of these plans in a group cannot be used; `None` if they can."""
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
        """Why undamaged tables do not match the plans or the digests; `None` if they do."""
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
        """Who else can write to the folder, and so change or replace results, if anybody."""
        place = self.folder.absolute()
        while not place.exists():
            place = place.parent
        for folder in (place, *place.parents):
            found = folder.stat()
            if found.st_uid not in (0, os.geteuid()):
                return f"{folder} belongs to another user"
            # In a sticky folder only the owners of entries can replace them.
            is_sticky = found.st_mode & stat.S_ISVTX and folder != self.folder.absolute()
            if found.st_mode & (stat.S_IWOTH | stat.S_IWGRP) and not is_sticky:
                who = "everyone" if found.st_mode & stat.S_IWOTH else _group(found.st_gid)
                if who is not None:
                    return f"{who} can write to {folder}"
        return None

    @contextmanager
    def open(self) -> Iterator[Workplace]:
        """Makes sure that results can be written, and provides a place to write them.

        Raises:
            OSError: The folder cannot be written.
        """
        # Named before it is created: an interrupt at any moment finds the name to remove.
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
        """The working folders, of living processes and of others."""
        return list(self.folder.glob(f"{WORKING}*"))

    def _remove_leftovers(self) -> None:
        for leftover in self.leftovers():
            # A lock that is taken belongs to a living process.
            with suppress(OSError), locked(leftover, patient=False):
                shutil.rmtree(leftover)


@dataclass(frozen=True)
class Workplace:
    """The place where one process writes results."""

    store: Store
    working: Path
    syncing: _core.Syncing
    known: set[str]
    """The names of groups that existed at the start or were written by this process."""

    def write(self, group: InMemory) -> dict[str, OnDisk]:
        """Writes the results of runs, all or none of them. Returns the group of each run: a run
        that another process stored meanwhile is not written again.
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
                    # The group exists, but cannot be used.
                    remove(written.folder)
                unfinished.rename(written.folder)
                written.hold()
            self.known.add(written.folder.name)
            if self.store.remote is not None:
                self.store.remote.send()
        # The tables were just written from memory with their digests.
        self.store.agreed.add(listed_sum)
        self.syncing.written()
        return found | dict.fromkeys(group.ran, written)

    def _make(self, group: InMemory) -> tuple[Path, str]:
        """Writes the files of a group to a working folder. Returns the folder and the checksum of
        its list.
        """
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
        """The runs of the group that another process has stored since this one began."""
        found: dict[str, OnDisk] = {}
        for other in self.store.groups():
            if other.folder.name in self.known:
                continue
            with suppress(ValueError, OSError):
                both = [run for run in other.ran if run in group.ran and run not in found]
                agree = all(other.ran[run].readable == group.ran[run].readable for run in both)
                if both and agree and self.store.trouble(other, group.plans) is None:
                    # Runs with equal ids, and with programs that could read the same files, have
                    # equal results.
                    other.hold()
                    found |= dict.fromkeys(both, other)
        return found

    def tidy(self, tables: Mapping[str, OnDisk], unusable: Sequence[OnDisk]) -> None:
        """Merges small groups, and removes duplicate runs and unusable groups. Of duplicates, the
        run in `tables` stays. Groups may have moved afterwards: see `located`.
        """
        groups = {id(group): group for group in tables.values()}.values()
        for group in groups:
            group.release()
        with _naming(self.store.folder), locked(self.store.folder):
            tidying = Tidying(self.store.folder, self.working, self.store.groups())
            tidying.remove_doubles(tables, unusable)
            tidying.merge({run: place for place, run in enumerate(tables)})
            for group in unusable:
                if group.folder not in tidying.groups and group.folder.exists():
                    remove(group.folder)
            for group in groups:
                if group.folder in tidying.groups:
                    group.hold()
            if self.store.remote is not None:
                self.store.remote.send()
        self.known.update(group.folder.name for group in tidying.groups.values())
        for listed in tidying.written:
            self.store.agreed.add(listed)
        if tidying.written:
            self.syncing.written()


def located(tables: Mapping[str, Group]) -> Mapping[str, Group]:
    """The present group of each run: another group may have absorbed it since, also in another
    process.
    """
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
    """Whether a folder holds a run as versions before 0.10 stored it."""
    return bool(OF_RUN.fullmatch(path.name)) and (path / "experiment.json").exists()


def _group(number: int) -> str | None:
    """The name of a group that has other members than the user. Many systems give each user a group
    of their own.
    """
    with suppress(KeyError):
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
        is_own = number == user.pw_gid and group.gr_name == user.pw_name
        return (
            None if is_own and set(group.gr_mem) <= {user.pw_name} else f"the group {group.gr_name}"
        )
    return f"the group {number}"


def _files(group: InMemory) -> Iterator[tuple[str, bytes | LongTable]]:
    """The content of each file of a group, produced one at a time."""
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
    """Removes a file or folder: nobody else puts anything in the place of a group."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Makes errors name the path of the finished file in place of the working one."""
    try:
        yield
    except OSError as error:
        if is_address(error.filename):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder where possible: groups are not moved meanwhile."""
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(locked(folder))
        yield
