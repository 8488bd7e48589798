"""The random spread of runs of one cell, for algorithms that draw random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import polars as pl

import tcplab as lab
from parity.grid import PROFILE, Cell, experiment
from parity.measures import LINUX, SIM

MEASURES = {"goodput_mbit_s": "goodput (Mbit/s)", "cwnd_mean_segments": "mean cwnd (segments)"}


@dataclass(frozen=True)
class Spread:
    """A number of a flow over several seeds, on one backend."""

    mean: float
    deviation: float
    runs: int

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / sqrt(self.runs)

    def __str__(self) -> str:
        """Mean and deviation as in the report."""
        return f"{self.mean:.2f} \N{PLUS-MINUS SIGN} {self.deviation:.2f}"


def spreads(cell: Cell, seeds: int) -> Iterator[tuple[str, str, Spread, Spread]]:
    """Flow and measure, with the spread on both backends over this many seeds."""
    repeated = experiment([cell], {"profile": PROFILE}).replace(repeat=seeds)
    both = {backend: _numbers(repeated, backend) for backend in (SIM, LINUX)}
    for flow in both[SIM]["flow"].unique(maintain_order=True):
        for measure, name in MEASURES.items():
            sim, linux = (
                _spread(numbers.filter(pl.col("flow") == flow)[measure])
                for numbers in both.values()
            )
            yield flow, name, sim, linux


def _numbers(repeated: lab.Experiment, backend: str) -> pl.DataFrame:
    """A row for each run and flow."""
    results = lab.run(repeated, backend=backend, workers=2, progress=None)
    windows = results.samples.group_by("run", "flow").agg(
        cwnd_mean_segments=pl.col("cwnd_segments").mean()
    )
    return results.flows.join(windows, on=["run", "flow"]).sort("flow", "run")


def _spread(values: pl.Series) -> Spread:
    numbers = values.to_list()
    mean = sum(numbers) / len(numbers)
    squares = sum((number - mean) ** 2 for number in numbers)
    return Spread(mean, sqrt(squares / max(len(numbers) - 1, 1)), len(numbers))


def report(cell: Cell, seeds: int) -> Iterator[str]:
    """The rows of a table in Markdown."""
    for flow, measure, sim, linux in spreads(cell, seeds):
        apart = sim.mean - linux.mean
        error = sqrt(sim.error**2 + linux.error**2)
        said = (
            f"{apart / linux.mean:+.1%}, {abs(apart) / error if error else 0:.1f} standard errors"
        )
        yield f"| {cell.name} | {flow} | {measure} | {sim} | {linux} | {said} |"
