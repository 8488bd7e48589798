"""Runs the experiments of a study, all or some, and adds repetitions while claims are undecided."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcplab._core import ConfigError
from tcplab._experiment.reading import load, loaded
from tcplab._papers import _measured
from tcplab._papers._study import REPEAT, Cell, Claim, Experiment, Study, written
from tcplab._papers._verdicts import OPEN, STACKS, decide
from tcplab._run.run import run
from tcplab._schema import Experiment as Lab
from tcplab.cli._output import say

SIM, LINUX = "sim", "linux"


@dataclass(frozen=True)
class Way:
    """The options for running a study."""

    out: Path
    """The folder of all studies."""

    is_quick: bool = False
    backend: str = SIM
    workers: int | None = None
    kernel: str | None = None
    """The kernel for the backend `linux`, instead of the default one."""

    def place(self, study: Study) -> Path:
        """The folder for the measurements of a study. Options that must not be mixed have separate
        folders.
        """
        name = study.name + ("-quick" if self.is_quick else "")
        others = (self.backend if self.backend != SIM else None, self.kernel)
        return self.out / "-".join([name, *filter(None, others)])


def run_study(study: Study, asked: Sequence[str], way: Way) -> None:
    """Runs the requested experiments with `REPEAT` repetitions each. Experiments with undecided
    claims are repeated twice as often, and so on up to the limit of the study.

    Raises:
        ConfigError: A file asks for something that cannot be run.
    """
    left = {id_: REPEAT for id_ in asked if _is_run(study.experiments[id_], way)}
    while left:
        for id_, repeat in left.items():
            _run(study, study.experiments[id_], repeat, way)
        left = {} if way.is_quick or way.backend != SIM else dict(_further(study, left, way))


def _is_run(experiment: Experiment, way: Way) -> bool:
    reason = experiment.reason
    if way.backend == LINUX and experiment.linux is None:
        reason = reason or experiment.linux_reason or "the study names no cells for the kernel"
    if reason is not None:
        say(f"{experiment.id}  not run: {reason}", file=sys.stderr)
    return reason is None


def _run(study: Study, experiment: Experiment, repeat: int, way: Way) -> None:
    assert experiment.path is not None
    cell: Cell = {}
    if way.is_quick:
        cell, repeat = experiment.quick, study.quick
    if way.backend == LINUX:
        cell = {**cell, "variant": ("now",), **(experiment.linux or {})}
        if way.kernel is not None:
            cell |= {key: (*cell[key], *more) for key, more in experiment.linux_own.items()}
        repeat = min(repeat, experiment.linux_repeat)
    asked = narrowed(load(experiment.path), cell, repeat, experiment.path, way)
    number = len(asked.plans(way.backend, kernel=way.kernel))
    known = _measured.seconds_for(study, experiment, number, is_linux=way.backend == LINUX)
    about = f"{experiment.id}  {experiment.title}: {number:,} runs"
    if known is not None:
        about += f", about {_long(known / (way.workers or os.cpu_count() or 1))}"
    say(about, file=sys.stderr, flush=True)
    place = way.place(study)
    out = place / experiment.id
    results = run(asked, out=out, workers=way.workers, backend=way.backend, kernel=way.kernel)
    _measured.write(place, study, experiment, results)


def _long(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _further(study: Study, ran: Mapping[str, int], way: Way) -> Iterator[tuple[str, int]]:
    """The experiments for which more repetitions may decide a claim, and their new number: twice as
    many.
    """
    measured = _measured.read(study, way.place(study))
    wanted: set[str] = set()
    for claim in study.claims:
        decided = decide(claim, study, measured.tables)
        if any(decided.of[stack] == OPEN for stack in STACKS):
            wanted |= experiments_of(claim)
    for id_, repeat in ran.items():
        at_most = study.experiments[id_].at_most
        if id_ in wanted and repeat < at_most:
            yield id_, min(2 * repeat, at_most)


def experiments_of(claim: Claim) -> set[str]:
    """The experiments whose runs decide a claim."""
    sides = [side for check in claim.checks for side in (check.side, check.other)]
    return {side.experiment for side in sides if side is not None}


def narrowed(experiment: Lab, cell: Cell, repeat: int, path: Path, way: Way | None = None) -> Lab:
    """An experiment restricted to some of its swept values, with a number of repetitions.

    Raises:
        ConfigError: A key of the cell is not swept, or has none of the values.
    """
    plain: dict[str, Any] = experiment.to_dict()
    for key, allowed in cell.items():
        if key == "variant":
            there = plain.get("variants", {})
            plain["variants"] = {name: there[name] for name in there if name in allowed}
            kept = set(plain["variants"])
        elif key in plain.get("sweep", {}):
            values = plain["sweep"][key]
            plain["sweep"][key] = [one for one in values if written(one) in allowed]
            kept = {written(one) for one in plain["sweep"][key]}
        else:
            kept = _zipped(plain.get("zip", []), key, allowed)
        if lacking := sorted(set(allowed) - kept):
            raise ConfigError(f"{path}: {key} is not swept over {lacking[0]}")
    plain["repeat"] = repeat
    return _without_unused(plain, way)


UNUSED = re.compile(r"let\.(\w+): is not used")


def _without_unused(plain: dict[str, Any], way: Way | None) -> Lab:
    """An experiment without the parameters that only excluded variants used: planning reports
    these. If swept, their values would make no difference.
    """
    backend, kernel = (SIM, None) if way is None else (way.backend, way.kernel)
    while True:
        asked = loaded(plain)
        try:
            asked.plans(backend, kernel=kernel)
        except ConfigError as error:
            unused = UNUSED.findall(str(error))
            if not unused:
                raise
        else:
            return asked
        variants = plain.get("variants", {}).values()
        swept = (plain.get("sweep", {}), *plain.get("zip", []))
        for keys in (plain["let"], *swept, *variants):
            for name in unused:
                keys.pop(name, None)
        plain["zip"] = [table for table in plain.get("zip", []) if table]


def _zipped(tables: Sequence[dict[str, list[Any]]], key: str, allowed: Sequence[str]) -> set[str]:
    """Keeps the rows of the zipped tables in which a key has one of the values. Returns the values
    found.
    """
    kept: set[str] = set()
    for table in tables:
        if key not in table:
            continue
        rows = [place for place, one in enumerate(table[key]) if written(one) in allowed]
        kept |= {written(table[key][place]) for place in rows}
        for other, values in table.items():
            table[other] = [values[place] for place in rows]
    return kept
