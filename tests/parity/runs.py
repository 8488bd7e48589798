"""Runs cells on both backends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import tcplab as lab
from parity.grid import PROFILE, Cell, experiment
from parity.measures import LINUX, SIM

WORKERS = 2

Settings = dict[str, Any]


def together(chosen: Sequence[Cell]) -> Iterator[list[Cell]]:
    """The cells in groups of one experiment each."""
    for _, group in groupby(chosen, key=lambda cell: (cell.path.name, cell.traffic.name)):
        yield list(group)


def compared(
    some: Sequence[Cell], overrides: Settings, kernel_runs: Path | None = None
) -> lab.Comparison:
    """Runs cells that differ only in their congestion control.

    `overrides` are options of the simulator's stack besides the profile. The kernel's runs are
    cached in a folder if one is given: they change only with the kernel. The simulator's runs are
    never cached, because its version stays the same during development.
    """
    usual = {"profile": PROFILE}
    sim = lab.run(experiment(some, usual | overrides), workers=WORKERS, progress=False)
    linux = lab.run(
        experiment(some, usual), backend=LINUX, out=kernel_runs, workers=WORKERS, progress=None
    )
    return lab.Comparison({SIM: sim, LINUX: linux})
