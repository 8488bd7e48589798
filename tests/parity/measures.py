"""The report of a cell: a row for each metric, and whether it is within its bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import polars as pl

import tcplab as lab
from parity.grid import BOTH, TIGHT, Cell
from parity.traces import Trace, first_difference, trace

SIM, LINUX = "sim", "linux"


@dataclass(frozen=True)
class Bound:
    """The greatest difference between the simulator and the kernel."""

    share: float
    """Relative to the kernel's number."""
    number: int | None = None
    """The absolute difference that is always accepted, for counts."""

    def holds(self, sim: float | None, linux: float | None) -> bool:
        """Whether two numbers are within the bound."""
        if sim is None or linux is None:
            return False
        return abs(sim - linux) <= max(self.share * abs(linux), self.number or 0)

    def __str__(self) -> str:
        """The bound as in the report."""
        share = f"{self.share * 100:g} %"
        return share if self.number is None else f"{self.number} or {share}"


@dataclass(frozen=True)
class Metric:
    """A number of each flow."""

    name: str
    measure: str
    """The name in `Comparison.differences`."""
    bound: Bound | None = None
    """The bound for algorithms in `TIGHT`."""
    other_bound: Bound | None = None
    """The bound for other algorithms."""
    of: Literal["all", "short"] = "all"
    """The cells to which the metric applies: completion times need flows that end."""
    is_count: bool = False
    """Counts of several flows are summed, and their difference is absolute."""

    def bound_of(self, cell: Cell) -> Bound | None:
        """The bound in a cell. Counts of episodes are bounded only for the two algorithms that
        exercise TCP itself.
        """
        if self.is_count and cell.cc not in BOTH:
            return None
        return self.bound if cell.cc in TIGHT else self.other_bound


# The bounds are those of the requirements (issues 4 and 5, "Parity"). Metrics without a bound are
# only reported: they follow from the others.
METRICS = (
    Metric("goodput", "goodput_mbit_s", Bound(0.01), Bound(0.02)),
    Metric("retransmissions", "retransmitted_segments", is_count=True),
    Metric("loss episodes", "loss_episodes", Bound(0.05, number=1), is_count=True),
    Metric("mean cwnd", "cwnd_mean_segments", Bound(0.03), Bound(0.05)),
    Metric("mean RTT", "rtt_mean_ms"),
    Metric("completion time", "completion_s", Bound(0.01), of="short"),
)
FIRST = "first differing ACK"


@dataclass(frozen=True)
class Row:
    """One metric of one cell."""

    cc: str
    path: str
    traffic: str
    metric: str
    sim: float | None
    linux: float | None
    difference: float | None
    """Relative to the kernel's number; for counts, a difference; for the first differing ACK, its
    number.
    """
    bound: str | None
    holds: bool | None
    """`None` if there is no bound."""
    flow: str | None = None
    """The flow with these numbers; of several flows, the one that differs most."""
    time_s: float | None = None
    """The time at which the first differing ACK reached the kernel."""

    def to_dict(self) -> dict[str, Any]:
        """The row as in the JSON file."""
        return asdict(self)


def rows(cell: Cell, comparison: lab.Comparison) -> list[Row]:
    """All metrics of a cell."""
    each = comparison.differences().filter(pl.col("stack.cc") == cell.cc)
    numbers = each.group_by("flow", "measure", maintain_order=True).agg(pl.col(SIM, LINUX).mean())
    found = [
        _row(cell, metric, numbers.filter(pl.col("measure") == metric.measure))
        for metric in METRICS
        if metric.of == "all" or cell.traffic.is_short
    ]
    return [*found, _first(cell, comparison)]


def _row(cell: Cell, metric: Metric, flows: pl.DataFrame) -> Row:
    flow: str | None = None
    bound = metric.bound_of(cell)
    if metric.is_count:
        sim, linux = float(flows[SIM].sum()), float(flows[LINUX].sum())
        difference: float | None = sim - linux
    else:
        each = list(flows.select("flow", SIM, LINUX).iter_rows())
        flow, sim, linux = max(each, key=lambda one: _distance(one[1], one[2]))
        difference = (sim - linux) / linux if sim is not None and linux else None
    return Row(
        cc=cell.cc,
        path=cell.path.name,
        traffic=cell.traffic.name,
        metric=metric.name,
        sim=sim,
        linux=linux,
        difference=difference,
        bound=None if bound is None else str(bound),
        holds=None if bound is None else bound.holds(sim, linux),
        flow=flow,
    )


def _distance(sim: float | None, linux: float | None) -> float:
    """The difference of two numbers; infinite if one is missing."""
    if sim is None or linux is None:
        return float("inf")
    return abs(sim - linux) / abs(linux) if linux else abs(sim)


def traces(cell: Cell, comparison: lab.Comparison) -> Iterator[tuple[str, Trace, Trace]]:
    """Each flow of a cell with both traces, of the first seed if there are several."""
    runs: dict[str, str] = {
        backend: results.runs.filter(pl.col("stack.cc") == cell.cc).row(0, named=True)["run"]
        for backend, results in comparison.results.items()
    }
    sim, linux = comparison.results[SIM], comparison.results[LINUX]
    for flow in linux.scan("flows", runs[LINUX]).select("flow").collect()["flow"]:
        yield flow, trace(sim, runs[SIM], flow), trace(linux, runs[LINUX], flow)


def _first(cell: Cell, comparison: lab.Comparison) -> Row:
    """The first ACK at which the windows of any flow differ, in the kernel's time."""
    flow: str | None = None
    first: tuple[float, int, int | None, int | None] | None = None
    for name, sim, linux in traces(cell, comparison):
        place = first_difference(sim, linux)
        if place is None:
            continue
        at_s = linux.time_of(place)
        if first is None or at_s < first[0]:
            flow, first = name, (at_s, place, sim.window_at(place), linux.window_at(place))
    time_s, place, sim_window, linux_window = first or (None, None, None, None)
    return Row(
        cc=cell.cc,
        path=cell.path.name,
        traffic=cell.traffic.name,
        metric=FIRST,
        sim=sim_window,
        linux=linux_window,
        difference=place,
        bound="none" if cell.is_exact else None,
        holds=place is None if cell.is_exact else None,
        flow=flow,
        time_s=time_s,
    )
