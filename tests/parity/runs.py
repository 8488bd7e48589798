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
    """The cells in groups that are one experiment each."""
    for _, group in groupby(chosen, key=lambda cell: (cell.path.name, cell.traffic.name)):
        yield list(group)


def compared(
    some: Sequence[Cell], overrides: Settings, kernel_runs: Path | None = None
) -> lab.Comparison:
    """Runs cells that differ in their congestion control alone.

    `overrides` are options of the simulator's stack beside the profile. The kernel's runs are kept
    in a folder if there is one: they change only with the kernel. The simulator's never are, as its
    version stays the same while it is worked on.
    """
    usual = {"profile": PROFILE}
    sim = lab.run(experiment(some, usual | overrides), workers=WORKERS, progress=False)
    linux = lab.run(
        experiment(some, usual), backend=LINUX, out=kernel_runs, workers=WORKERS, progress=None
    )
    return lab.Comparison({SIM: sim, LINUX: linux})
