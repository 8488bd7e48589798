"""Keeps the experiment as written, and the list of its runs, beside the results.

An id names a result, not an experiment. The list holds the names that this experiment gives its
runs, in its order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tcplab import _core
from tcplab._experiment.reading import as_written
from tcplab._results.results import Results
from tcplab._store.atomic_write import put
from tcplab._store.checksums import checksum
from tcplab._store.failures import failures
from tcplab._store.lock import locked
from tcplab._store.plans import Called, StoredPlans, called
from tcplab._store.remote import at
from tcplab._store.run_groups import PLANS, OnDisk
from tcplab._store.store import GROUP, Store, held
from tcplab._warnings import warn

if TYPE_CHECKING:
    from tcplab._schema import Experiment

RUNS = "runs.json"

MOST_NAMED = 6
"""So many folders are named in a message."""

RUN = re.compile(r"[0-9a-f]{16}")
"""The form of a run's id."""


@dataclass(frozen=True)
class Listing:
    """The experiment and the list of its runs, as they are written."""

    name: str
    """The name of the experiment's file."""
    experiment: bytes
    runs: bytes


def listing(experiment: Experiment, plans: Sequence[_core.Plan]) -> Listing:
    """The text of both files."""
    text, kind = as_written(experiment)
    name, content = f"experiment{kind}", text.encode()
    about = {"file": name, "sha256": checksum(content)}
    # One line per run. More would take long with thousands of runs.
    in_json = json.JSONEncoder(ensure_ascii=False).encode
    runs = ",\n".join(
        in_json(
            {
                "run": plan.id,
                "experiment": plan.experiment,
                "repetition": plan.repetition,
                "swept": plan.swept,
            }
        )
        for plan in plans
    )
    listed = f'{{"experiment": {in_json(about)},\n"runs": [\n{runs}\n]}}\n'
    return Listing(name, content, listed.encode())


def keep(folder: Path, listing: Listing) -> None:
    """Writes both files unless they exist already. If the folder takes neither, warns: the results
    are complete without them.

    A file of the same name that somebody else wrote is left alone.
    """
    if _has(folder / RUNS, checksum(listing.runs)):
        return
    name = listing.name
    try:
        with locked(folder):
            before = _experiment_of(folder)
            if before is not None and before.name != name:
                before.unlink()
            is_own = before is not None and before.name == name
            if is_own or not (folder / name).exists():
                put(listing.experiment, folder / name)
            if _listed(folder) is not None or not (folder / RUNS).exists():
                put(listing.runs, folder / RUNS)
    except OSError as error:
        path, why = error.filename or folder, (error.strerror or "unknown").lower()
        warn(f"{path}: the experiment and its list of runs cannot be written: {why}")


@dataclass(frozen=True)
class Listed:
    """The list of runs, as stored."""

    file: str
    """The file with the experiment as written, beside the list."""
    sha256: str
    """The checksum of that file."""
    runs: list[Called]


def _listed(folder: Path) -> Listed | None:
    """The list of the runs in a folder, or `None`."""
    try:
        read = json.loads((folder / RUNS).read_text(encoding="utf-8"))
        runs = [
            Called(
                str(run["run"]),
                str(run["experiment"]),
                int(run["repetition"]),
                [(str(path), str(text)) for path, text in run["swept"]],
            )
            for run in read["runs"]
        ]
        about = read["experiment"]
        listed = Listed(str(about["file"]), str(about["sha256"]), runs)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return listed if all(RUN.fullmatch(run) for run, *_ in runs) else None


def _experiment_of(folder: Path) -> Path | None:
    """The file with the experiment as written, or `None` if it is missing or was changed since."""
    listed = _listed(folder)
    if listed is None or Path(listed.file).name != listed.file:
        return None
    path = folder / listed.file
    return path if _has(path, listed.sha256) else None


@dataclass(frozen=True)
class Asked:
    """The experiment and the runs that the results in a folder were computed for."""

    folder: Path
    runs: Sequence[Called]
    failed: Mapping[str, str]
    """The reason for each failed run, by its id."""
    file: str | None
    """The name of the experiment's file; `None` if it is missing or was changed since."""
    text: str | None
    """The experiment as written."""


def asked(folder: Path) -> Asked | None:
    """The experiment and the runs behind the results in a folder; `None` without a list of runs."""
    listed = _listed(folder)
    if listed is None:
        return None
    path = _experiment_of(folder)
    failed = failures(folder)
    with suppress(OSError, UnicodeDecodeError):
        if path is not None:
            return Asked(folder, listed.runs, failed, path.name, path.read_text(encoding="utf-8"))
    return Asked(folder, listed.runs, failed, None, None)


def _has(path: Path, digest: str) -> bool:
    """Whether the file exists with this content."""
    with suppress(OSError):
        return checksum(path.read_bytes()) == digest
    return False


def stored(folder: str | PathLike[str]) -> Results:
    """Returns the results in a folder, as `run` gave them. Nothing is run and nothing is written.

    Args:
        folder: A folder of results written by `run`, the folder of one group of runs in it, or the
            address of results.

    Raises:
        ConfigError: The folder has no results, or its files are damaged or of another version.
    """
    place = at(folder)
    if not place.is_dir():
        what = "is not a folder" if place.exists() else "there is no such folder"
        raise _core.ConfigError(f"{place}: {what}; expected results of tcplab run")
    try:
        listed = _listed(place)
        if listed is None and (place / RUNS).exists():
            what = "is not the list of runs that tcplab run writes; without it, all runs are shown"
            raise _core.ConfigError(f"{place / RUNS}: {what}")
        with held(place.parent if is_group(place) else place):
            tables = _whole(groups_at(place))
        plans = _plans(place, listed, tables)
    except OSError as error:
        raise _core.ConfigError(f"{place}: {(error.strerror or 'unknown').lower()}") from None
    return Results(plans, tables, computed=frozenset())


def is_group(folder: Path) -> bool:
    """Whether a folder holds the results of one group of runs."""
    if not folder.is_dir():
        return False
    return bool(GROUP.fullmatch(folder.name)) or (folder / f"{PLANS}.parquet").exists()


def groups_at(place: Path) -> list[OnDisk]:
    """The groups of runs in a folder, or the single group if the folder is one."""
    return [OnDisk(place)] if is_group(place) else Store(place).groups()


def _whole(groups: Sequence[OnDisk]) -> dict[str, OnDisk]:
    """The group that holds each run.

    Raises:
        ConfigError: Files are damaged.
    """
    tables: dict[str, OnDisk] = {}
    for group in groups:
        if trouble := group.damage():
            raise _core.ConfigError(
                f"{group.folder}: {' '.join(trouble)}; run the experiment again to repair it"
            )
        try:
            for run in group.ran:
                tables.setdefault(run, group)
            group.hold()
        except ValueError as error:
            raise _core.ConfigError(f"{group.folder}: {error}") from None
    return tables


def _plans(
    folder: Path, listed: Listed | None, tables: Mapping[str, OnDisk]
) -> Sequence[_core.Plan]:
    """The plans of the runs in a folder, in the order and with the names of the experiment."""
    if not tables:
        others = [path.name for path in sorted(folder.iterdir()) if _has_groups(path)]
        # The stages of a long search are many.
        named = [*others[:MOST_NAMED], *(["others"] if len(others) > MOST_NAMED else [])]
        those = f"; there are some in {', '.join(named)}" if others else ""
        raise _core.ConfigError(f"{folder}: has no results of a run{those}")
    if listed is not None:
        failed = failures(folder)
        found = [one for one in listed.runs if one.run in tables]
        if found and all(one.run in tables or one.run in failed for one in listed.runs):
            if missing := [one.run for one in listed.runs if one.run not in tables]:
                first = failed[missing[0]].splitlines()[0]
                number = "1 run" if len(missing) == 1 else f"{len(missing)} runs"
                warn(f"{folder}: {number} failed: {missing[0]}: {first}")
            return StoredPlans(found, lambda: _read(tables))
        if found:
            # The experiment was interrupted before all runs had finished.
            number = f"{len(found)} of {len(listed.runs)} runs are there"
            warn(f"{folder}: {number}; the command that began them runs the others")
            return StoredPlans(found, lambda: _read(tables))
    # Without the list of runs, all runs that are stored.
    plans = _read(tables)
    inside = sorted(
        called(plans.values()),
        key=lambda one: (one.experiment, _natural(one.swept), one.repetition),
    )
    return StoredPlans(inside, lambda: plans)


def _has_groups(path: Path) -> bool:
    return path.is_dir() and any(map(is_group, path.iterdir()))


def _read(tables: Mapping[str, OnDisk]) -> dict[str, _core.Plan]:
    """Reads the plan of each run."""
    plans = {}
    for group in dict.fromkeys(tables.values()):
        try:
            for run, text in group.plan_texts().items():
                if tables.get(run) is group:
                    plans[run] = _core.Plan.from_json(text)
        except ValueError as error:
            raise _core.ConfigError(f"{group.folder}: {PLANS}.parquet: {error}") from None
    return plans


def _natural(swept: Sequence[tuple[str, str]]) -> list[list[tuple[int, float, str]]]:
    """A sort key for swept values in which 2 comes before 10."""
    parts = ([*re.split(r"(\d+(?:\.\d+)?)", text)] for _, text in swept)
    return [
        [(0, float(part), "") if part[:1].isdigit() else (1, 0.0, part) for part in text]
        for text in parts
    ]
