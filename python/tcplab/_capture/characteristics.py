"""What is said of the traffic of captures and logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from tcplab._schema import Experiment


@dataclass(frozen=True)
class Characteristics:
    """What the traffic of captures and logs is."""

    totals: pl.DataFrame
    """One row: how many sessions, how they arrive, how many there are at once, their turns."""
    classes: pl.DataFrame
    """Sessions by class of size."""
    fits: pl.DataFrame
    """Each family that was fitted to sizes, gaps and think times, the closest first."""
    peers: pl.DataFrame
    """Sessions, data and round trips by server."""
    sessions: pl.DataFrame
    """A row for each session, in the order of arrivals."""
    turns: pl.DataFrame
    """A row for each turn of the sessions in which turns can be seen."""
    notes: list[str]
    """What cannot be known, and why."""

    def experiment(self, name: str = "model") -> Experiment:
        """Traffic like this as an experiment, which every backend runs.

        Raises:
            ConfigError: There is no session with data.
        """
        # Values of experiments take their time to load.
        from tcplab._capture.modelled import modelled  # noqa: PLC0415

        return modelled(self, name)
