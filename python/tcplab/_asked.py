"""The experiment as it was written and the list of its runs, kept beside the results.

An id names a result, whatever experiments call it: the list holds the names that this experiment
gives its runs, in its order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tcplab import _core
from tcplab._checksums import PLAN, checksum
from tcplab._experiment import as_written
from tcplab._put import put
from tcplab._restored import reason
from tcplab._results import Results
from tcplab._store import DIGEST, OnDisk, locked
from tcplab._warnings import warn

if TYPE_CHECKING:
    from tcplab.experiment import Experiment

RUNS = "runs.json"

RUN = re.compile(r"[0-9a-f]{16}")
"""How the folder of a run is named: by the run's id."""


def keep(folder: Path, experiment: Experiment, plans: Sequence[_core.Plan]) -> None:
    """Writes both files unless they are there already. A folder that takes neither gets a warning:
    the results are complete without them.

    A file of the same name that somebody else wrote stays as it is.
    """
    text, kind = as_written(experiment)
    name, content = f"experiment{kind}", text.encode()
    about = {"file": name, "sha256": checksum(content)}
    runs = [
        {
            "run": plan.id,
            "experiment": plan.experiment,
            "repetition": plan.repetition,
            "swept": plan.swept,
        }
        for plan in plans
    ]
    listed = json.dumps({"experiment": about, "runs": runs}, indent=1, ensure_ascii=False) + "\n"
    if _has(folder / RUNS, checksum(listed.encode())):
        return
    try:
        with locked(folder):
            before = _experiment_of(folder)
            if before is not None and before.name != name:
                before.unlink()
            is_own = before is not None and before.name == name
            if is_own or not (folder / name).exists():
                put(content, folder / name)
            if _listed(folder) is not None or not (folder / RUNS).exists():
                put(listed.encode(), folder / RUNS)
    except OSError as error:
        path, why = error.filename or folder, (error.strerror or "unknown").lower()
        warn(f"{path}: what the experiment asked for cannot be written: {why}")


@dataclass(frozen=True)
class Listed:
    """The list of runs."""

    file: str
    """The file with the experiment as it was written, beside the list."""
    sha256: str
    """Of that file."""
    runs: list[tuple[str, str, int, list[tuple[str, str]]]]
    """The id of each, the experiment's name, the repetition, and swept values."""


def _listed(folder: Path) -> Listed | None:
    """The list of the runs in a folder, if there is one."""
    try:
        read = json.loads((folder / RUNS).read_text(encoding="utf-8"))
        runs = [
            (
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
    """The file with the experiment as it was written, if nobody has changed it since."""
    listed = _listed(folder)
    if listed is None or Path(listed.file).name != listed.file:
        return None
    path = folder / listed.file
    return path if _has(path, listed.sha256) else None


def _has(path: Path, digest: str) -> bool:
    """Whether a file is there with this content."""
    with suppress(OSError):
        return checksum(path.read_bytes()) == digest
    return False


def stored(folder: str | PathLike[str]) -> Results:
    """The results in a folder, as `run` gave them. Nothing is run and nothing is written.

    Args:
        folder: A folder of results of `run`, or that of one run in it.

    Raises:
        ConfigError: There are no results, or their files are damaged or of another version.
    """
    place = Path(folder)
    if not place.is_dir():
        what = "is not a folder" if place.exists() else "there is no such folder"
        raise _core.ConfigError(f"{place}: {what}; expected results of tcplab run")
    try:
        plans = [_plan(place)] if is_run(place) else _plans(place)
    except OSError as error:
        raise _core.ConfigError(f"{place}: {(error.strerror or 'unknown').lower()}") from None
    own = place.parent if is_run(place) else place
    tables = {}
    for plan in plans:
        tables[plan.id] = found = OnDisk(place if is_run(place) else own / plan.id)
        if trouble := found.damage(plan):
            raise _core.ConfigError(
                f"{found.folder}: {' '.join(trouble)}; running it again mends it"
            )
    return Results(plans, tables, computed=frozenset())


def is_run(folder: Path) -> bool:
    """Whether a folder has the results of one run."""
    if not folder.is_dir():
        return False
    return bool(RUN.fullmatch(folder.name)) or (folder / DIGEST).exists()


def inside(folder: Path) -> list[Path]:
    """The folders of runs in a folder."""
    return sorted(filter(is_run, folder.iterdir())) if folder.is_dir() else []


def _plans(folder: Path) -> list[_core.Plan]:
    """The plans of the runs in a folder, as the experiment calls them, in its order."""
    listed = _listed(folder)
    if listed is None and (folder / RUNS).exists():
        what = "is not the list of runs that tcplab run writes; without it, all runs are shown"
        raise _core.ConfigError(f"{folder / RUNS}: {what}")
    if listed is not None and all((folder / run).is_dir() for run, *_ in listed.runs):
        return [
            _plan(folder / run).named(name, repetition, swept)
            for run, name, repetition, swept in listed.runs
        ]
    if not (found := inside(folder)):
        others = [path.name for path in sorted(folder.iterdir()) if inside(path)]
        those = f"; there are some in {', '.join(others)}" if others else ""
        raise _core.ConfigError(f"{folder}: has no results of a run{those}")
    # Results of an experiment that was not finished.
    plans = [_plan(run) for run in found]
    return sorted(plans, key=lambda plan: (plan.experiment, _natural(plan.swept), plan.repetition))


def _plan(folder: Path) -> _core.Plan:
    try:
        return _core.Plan.from_json((folder / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _core.ConfigError(f"{folder / PLAN}: {reason(error)}") from None


def _natural(swept: Sequence[tuple[str, str]]) -> list[list[tuple[int, float, str]]]:
    """Swept values in an order in which 2 comes before 10."""
    parts = ([*re.split(r"(\d+(?:\.\d+)?)", text)] for _, text in swept)
    return [
        [(0, float(part), "") if part[:1].isdigit() else (1, 0.0, part) for part in text]
        for text in parts
    ]
