"""Compares the flows of an experiment on both backends."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

import tcplab as lab
from fuzz.draw import Plain
from parity.traces import STATE, Trace, trace
from tcplab._experiment.values import from_plain

SIM, LINUX = "sim", "linux"


@dataclass(frozen=True)
class Difference:
    """The first differing ACK of a flow."""

    ack: int
    time_s: float
    of: str
    """The quantity that differs: `cwnd`, `time`, `number` (of ACKs), ..."""
    sim: float | None
    linux: float | None

    def __str__(self) -> str:
        """The difference as text."""
        return f"ACK {self.ack}, {self.time_s:.6f} s: {self.of} sim {self.sim}, linux {self.linux}"


@dataclass(frozen=True)
class Flow:
    """A flow on both backends."""

    name: str
    cc: str
    acks: int
    difference: Difference | None
    goodput: tuple[float | None, float | None]
    parts: str | None = None
    """The first difference in intervals or in the table of flows, if all ACKs are the same."""

    @property
    def apart(self) -> float:
        """The difference in goodput between `sim` and the kernel, as a share of the kernel's."""
        sim, linux = (value or 0.0 for value in self.goodput)
        if sim == linux:
            return 0.0
        return abs(sim - linux) / linux if linux else float("inf")


@dataclass(frozen=True)
class Outcome:
    """An experiment on both backends."""

    flows: Sequence[Flow]
    traces: dict[str, tuple[Trace, Trace]]

    @property
    def first(self) -> Flow | None:
        """The flow that differs first, in the kernel's time."""
        differing = [
            (flow.difference.time_s, place)
            for place, flow in enumerate(self.flows)
            if flow.difference
        ]
        return self.flows[min(differing)[1]] if differing else None


def as_experiment(plain: Plain) -> lab.Experiment:
    """An experiment from a plain dict."""
    made = from_plain(lab.Experiment, json.loads(json.dumps(plain)))
    assert isinstance(made, lab.Experiment)
    return made


def run(
    plain: Plain, overrides: Plain | None = None, kernel: str | None = None
) -> dict[str, lab.Results]:
    """Runs an experiment on both backends. `overrides` are options of the simulator's stack;
    `kernel` replaces the default kernel.
    """
    changed = plain | {"stack": plain.get("stack", {}) | (overrides or {})}
    return {
        SIM: lab.run(as_experiment(changed), workers=1, progress=False),
        LINUX: lab.run(
            as_experiment(plain), backend=LINUX, workers=1, kernel=kernel, progress=False
        ),
    }


def compare(plain: Plain, overrides: Plain | None = None, kernel: str | None = None) -> Outcome:
    """Runs an experiment on both backends and compares them."""
    results = run(plain, overrides, kernel)
    sim, linux = results[SIM], results[LINUX]
    (sim_run,), (linux_run,) = sim.runs["run"], linux.runs["run"]
    flows, traces = [], {}
    columns = ["flow", "cc", "goodput_mbit_s"]
    rows = zip(
        sim.flows.select(columns).iter_rows(named=True),
        linux.flows.select(columns).iter_rows(named=True),
        strict=True,
    )
    for ours, theirs in rows:
        name = ours["flow"]
        pair = trace(sim, sim_run, name), trace(linux, linux_run, name)
        traces[name] = pair
        goodput = ours["goodput_mbit_s"], theirs["goodput_mbit_s"]
        difference = first_difference(*pair)
        parts = None if difference else first_part(sim, linux, name)
        flows.append(Flow(name, ours["cc"], len(pair[1].acks), difference, goodput, parts))
    return Outcome(flows, traces)


def first_part(sim: lab.Results, linux: lab.Results, flow: str) -> str | None:
    """The first differing interval of a flow, or its differing row in the table of flows."""
    for table in ("intervals", "flows"):
        ours, theirs = (
            results.scan(table).filter(pl.col("flow") == flow).drop("run").collect()
            for results in (sim, linux)
        )
        if table == "flows":
            ours, theirs = (rows.drop("end_s", "completion_s") for rows in (ours, theirs))
        nothing: dict[str, object] = {}
        for one, other in itertools.zip_longest(
            ours.to_dicts(), theirs.to_dicts(), fillvalue=nothing
        ):
            names = [name for name in one | other if one.get(name) != other.get(name)]
            if names:
                told = [f"{name} sim {one.get(name)}, linux {other.get(name)}" for name in names]
                return f"{table} at {(other or one)['start_s']} s: {', '.join(told)}"
    return None


def first_difference(sim: Trace, linux: Trace) -> Difference | None:
    """The first ACK that differs in its arrival time or in the state that it leaves."""
    ours, theirs = sim.acks, linux.acks
    common = min(len(ours), len(theirs))
    found: Difference | None = None
    for name in [*STATE, "time_ns"]:
        one, other = _column(ours, name).head(common), _column(theirs, name).head(common)
        places = one.ne_missing(other).arg_true()
        if len(places) and (found is None or places[0] + 1 < found.ack):
            place = int(places[0])
            found = Difference(
                place + 1, theirs["time_ms"][place] / 1e3, name, one[place], other[place]
            )
    if found is None and len(ours) != len(theirs):
        longer = ours if len(ours) > len(theirs) else theirs
        time_s = longer["time_ms"][common] / 1e3
        return Difference(common + 1, time_s, "number", len(ours), len(theirs))
    return found


def _column(acks: pl.DataFrame, name: str) -> pl.Series:
    if name == "time_ns":
        return (acks["time_ms"] * 1e6).round().cast(pl.Int64)
    return acks[name]
