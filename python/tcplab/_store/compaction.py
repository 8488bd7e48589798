"""Keeps a store small: merges small groups, and removes duplicate runs.

A group that replaces others is complete before they are removed. A kill at any moment loses
nothing: runs may then be in two groups, with equal results in both.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tcplab._store import run_groups
from tcplab._store.checksums import checksum, write_list
from tcplab._store.run_groups import (
    PLANS,
    TABLES,
    OnDisk,
    encoded,
    is_held,
    name_of,
    rows_of,
    size,
    table_of_plans,
)

MERGED = 16 << 20
"""The size in bytes that merged groups aim at."""

MOST_SMALL = 32
"""The number of small groups that are left alone."""


class Tidying:
    """The groups of a folder whose lock the caller holds. Groups that a process reads are left
    alone.
    """

    def __init__(self, folder: Path, working: Path, groups: Sequence[OnDisk]) -> None:
        """New groups are made in the folder `working`. Unreadable groups are left out."""
        self._folder = folder
        self._working = working
        self.groups = {group.folder: group for group in groups if _is_readable(group)}
        self._held = {folder for folder in self.groups if is_held(folder)}
        self.written: list[str] = []
        """The checksums of the lists of groups that were made of good ones."""

    def remove_doubles(self, chosen: Mapping[str, OnDisk], replaced: Iterable[OnDisk]) -> None:
        """Removes runs that are in another group too. The run in the `chosen` group stays, or else
        that in the first group by name. A run of a `replaced` group goes if it is anywhere else.
        """
        gone = {group.folder for group in replaced}
        owners = {run: group.folder for run, group in chosen.items()}
        good = [group for folder, group in self.groups.items() if folder not in gone]
        for group in good:
            for run in group.ran:
                owners.setdefault(run, group.folder)
        for folder, group in list(self.groups.items()):
            kept = [run for run in group.ran if owners.get(run, folder) == folder]
            if len(kept) == len(group.ran) or (folder in self._held and folder not in gone):
                continue
            others = {owners[run] for run in group.ran if owners.get(run, folder) != folder}
            if any(other not in self.groups or self.groups[other].damage() for other in others):
                continue
            if kept and folder not in gone and group.damage() is None:
                # From now on these runs are there: the next groups may have them too.
                owners |= dict.fromkeys(kept, self._write(dict.fromkeys(kept, group)))
            if not kept or folder not in gone:
                self._remove(folder)

    def merge(self, order: Mapping[str, int]) -> None:
        """Merges the smallest groups if many are small, in the order given for their runs. The runs
        of `order` themselves become one group if it is small.
        """
        free = (group for folder, group in self.groups.items() if folder not in self._held)
        small = [group for group in free if size(group.ran) < run_groups.SMALL]
        if len(small) <= MOST_SMALL:
            small = [group for group in small if not order.keys().isdisjoint(group.ran)]
            if sum(size(group.ran) for group in small) >= run_groups.SMALL:
                return
        else:
            # Half of those that may stay do: what is written again costs as much as the first time.
            small.sort(key=lambda group: size(group.ran))
            del small[len(small) - MOST_SMALL // 2 :]
        last = len(order)
        small.sort(key=lambda group: min(order.get(run, last) for run in group.ran))
        for groups in _together(small):
            whole = [group for group in groups if group.damage() is None]
            if len(whole) < 2:
                continue
            owners = {run: group for group in whole for run in group.ran}
            runs = sorted(owners, key=lambda run: order.get(run, last))
            self._write({run: owners[run] for run in runs})
            for group in whole:
                self._remove(group.folder)

    def _write(self, runs: Mapping[str, OnDisk]) -> Path:
        """Writes a group of these runs, which are in other groups. Returns its folder."""
        ran = {run: group.ran[run] for run, group in runs.items()}
        written = OnDisk.of(self._folder / name_of(runs), ran)
        if written.folder in self.groups:
            return written.folder
        unfinished = self._working / written.folder.name
        unfinished.mkdir()
        sources = {group.folder: group for group in runs.values()}
        texts: dict[str, str] = {}
        for group in sources.values():
            texts |= group.plan_texts()
        plans = table_of_plans([*ran.values()], texts)
        sums = {}
        for name in (PLANS, *TABLES):
            content = encoded(plans if name == PLANS else rows_of(runs, name).collect())
            (unfinished / f"{name}.parquet").write_bytes(content)
            sums[f"{name}.parquet"] = checksum(content)
        for run, group in runs.items():
            further = group.files(run)
            if len(texts[run]) > run_groups.LONGEST:
                further[run_groups.PLAN] = texts[run].encode()
            for name, content in further.items():
                (unfinished / run).mkdir(exist_ok=True)
                (unfinished / run / name).write_bytes(content)
                sums[f"{run}/{name}"] = checksum(content)
        listed = checksum(write_list(unfinished, sums))
        unfinished.rename(written.folder)
        self.groups[written.folder] = written
        self.written.append(listed)
        return written.folder

    def _remove(self, folder: Path) -> None:
        # Renamed in one step: no reader sees half a group.
        gone = self._working / f"{folder.name}.gone"
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        del self.groups[folder]


def _is_readable(group: OnDisk) -> bool:
    with suppress(ValueError):
        return bool(group.ran)
    return False


def _together(groups: Sequence[OnDisk]) -> Iterator[list[OnDisk]]:
    """Consecutive groups, about as many as make up one merged group."""
    now: list[OnDisk] = []
    total = 0
    for group in groups:
        now.append(group)
        total += size(group.ran)
        if total >= MERGED:
            yield now
            now, total = [], 0
    yield now
