"""The characteristics of the traffic of captures and logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from tcplab._schema import Experiment


@dataclass(frozen=True)
class Characteristics:
    """The characteristics of the traffic of captures and logs."""

    totals: pl.DataFrame
    """One row: the number of sessions, their arrivals, concurrency and turns."""
    classes: pl.DataFrame
    """Sessions by size class."""
    fits: pl.DataFrame
    """Each family that was fitted to sizes, gaps and think times, the closest first."""
    peers: pl.DataFrame
    """Sessions, data and round-trip times by server."""
    sessions: pl.DataFrame
    """A row for each session, in the order of arrival."""
    turns: pl.DataFrame
    """A row for each turn, for the sessions in which turns are visible."""
    notes: list[str]
    """What cannot be known, and why."""

    def experiment(self, name: str = "model") -> Experiment:
        """Returns an experiment with traffic like this, for any backend.

        Raises:
            ConfigError: No session has data.
        """
        # The classes of experiments take time to load.
        from tcplab._capture.modelled import modelled  # noqa: PLC0415

        return modelled(self, name)
