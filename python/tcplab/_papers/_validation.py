"""Checks the files of a study before anything runs: each key and each value that they name must be
one that its experiments sweep over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcplab._core import ConfigError
from tcplab._experiment.reading import load
from tcplab._papers._placeholders import sides_in
from tcplab._papers._study import Cell, Study, written
from tcplab._papers._verdicts import STACKS, decide

VARIANT = "variant"

Swept = Mapping[str, set[str]]
"""For each key, the values that an experiment sweeps over."""


def check(study: Study) -> None:
    """Checks that the files of a study are consistent.

    Raises:
        ConfigError: The files disagree; the message says where.
    """
    swept = {
        one.id: swept_in(study, one.id)
        for one in study.experiments.values()
        if one.path is not None
    }
    for about, experiment, cell in _cells(study):
        if experiment in swept:
            _check(f"{study.name}: {about}", cell, swept[experiment])
    for figure in study.figures:
        if figure.experiment not in swept:
            continue
        known = swept[figure.experiment]
        is_quantity = figure.shows in study.experiments[figure.experiment].quantities
        keys = (*figure.panels, *((figure.x, figure.line) if is_quantity else ()))
        for key in keys:
            if key and key not in known:
                raise _not_swept(f"{study.name}: {figure.id}", key, known)
    for claim in study.claims:
        try:
            decide(claim, study, {})  # Arithmetic needs no runs.
        except ConfigError as error:
            raise ConfigError(f"{study.name}: {claim.id}: {error}") from None


def swept_in(study: Study, experiment: str) -> Swept:
    """The values that an experiment sweeps over, by key, for each of its sweeps.

    Raises:
        ConfigError: The file cannot be read, or lacks the stacks that are compared.
    """
    path = study.experiments[experiment].path
    assert path is not None
    try:
        plain = load(path).to_dict()
    except ConfigError as error:
        told = str(error)
        raise ConfigError(told if str(path) in told else f"{path}: {told}") from None
    found: dict[str, set[str]] = {VARIANT: set(plain.get("variants", {}))}
    for table in (plain.get("sweep", {}), *plain.get("zip", [])):
        for key, values in table.items():
            found.setdefault(key, set()).update(written(one) for one in values)
    for stack in STACKS:
        if stack not in found[VARIANT]:
            raise ConfigError(f"{path}: variants.{stack} is missing: each study compares both")
    return found


def _cells(study: Study) -> Iterator[tuple[str, str, Cell]]:
    """All cells that the study names: place, experiment, cell."""
    for experiment in study.experiments.values():
        for name in ("lost", "quick", "linux", "linux_own"):
            yield f"{experiment.id}: {name}", experiment.id, getattr(experiment, name) or {}
    for claim in study.claims:
        for check in claim.checks:
            for side in (check.side, check.other):
                if side is not None:
                    yield claim.id, side.experiment, side.cell
    for number in study.numbers:
        if number.side is not None:
            yield number.id or number.what, number.side.experiment, number.side.cell
    for figure in study.figures:
        yield figure.id, figure.experiment, figure.cell
    for name in ("ours", "today"):
        for side in sides_in(getattr(study, name), study):
            yield name, side.experiment, side.cell


def _check(about: str, cell: Cell, swept: Swept) -> None:
    for key, allowed in cell.items():
        if key not in swept:
            raise _not_swept(about, key, swept)
        if lacking := [one for one in allowed if one not in swept[key]]:
            there = ", ".join(sorted(swept[key]))
            raise ConfigError(f"{about}: {key} is not swept over {lacking[0]}, but over {there}")


def _not_swept(about: str, key: str, swept: Swept) -> ConfigError:
    return ConfigError(f"{about}: {key} is not swept; there are {', '.join(sorted(swept))}")
