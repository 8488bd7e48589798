"""Compares each queue discipline with the kernel's: queue, drops, marks, and goodput.

Disciplines that draw random numbers draw the same ones on both backends, so that experiments can be
identical to the packet. After the first difference everything differs, and only sums over many
experiments can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import polars as pl

import tcplab as lab
from fuzz import draw
from fuzz.compare import LINUX, SIM, run
from fuzz.draw import RATE_MBIT_S, Plain, log_uniform, managed, rounded
from parity.traces import first_difference, trace

BOTTLENECK = "left>right"


def policer(random: Random) -> Plain:
    """A policer, slower than the link or not, with a small or large burst."""
    rate = rounded(log_uniform(random, RATE_MBIT_S[0] / 2, RATE_MBIT_S[1]))
    burst = round(log_uniform(random, 1500, 200_000))
    queue: Plain = {"kind": "policer", "rate": f"{rate:g} Mbit/s", "burst": f"{burst} B"}
    if random.random() < 0.5:
        queue["limit"] = f"{round(log_uniform(random, 5, 200))} packets"
    return managed(random, queue, marks=False)


def adaptive_red(random: Random) -> Plain:
    """RED with an adaptive probability."""
    experiment = draw.red(random)
    experiment["network"]["dumbbell"]["queue"]["adaptive"] = True
    return experiment


QUEUES: dict[str, Callable[[Random], Plain]] = {
    "drop-head": draw.drop_head,
    "red": draw.red,
    "adaptive red": adaptive_red,
    "codel": draw.codel,
    "fq-codel": draw.fq_codel,
    "pie": draw.pie,
    "fq-pie": draw.fq_pie,
    "sfq": draw.sfq,
    "fq": draw.fq,
    "tbf": draw.tbf,
    "tbf with a peak rate": draw.peak_rate,
    "policer": policer,
    "cake": draw.cake,
}
"""Kinds of queues. Each kind numbers its experiments separately."""


@dataclass(frozen=True)
class Totals:
    """The totals of an experiment on one backend."""

    goodput_mbit_s: float
    queue_packets: float
    """The mean queue of the bottleneck."""
    drops: int
    marks: int


@dataclass(frozen=True)
class Queue:
    """One experiment on both backends."""

    flows: int
    identical: int
    sim: Totals
    linux: Totals


def totals(results: lab.Results) -> Totals:
    """The totals of the only run of results."""
    rows = results.links.filter(pl.col("link") == BOTTLENECK).sort("time_s")
    # Each row is the mean since the row before.
    times = rows["time_s"].diff().fill_null(rows["time_s"][0])
    waited = float((rows["queue_mean_packets"] * times).sum())
    return Totals(
        goodput_mbit_s=float(results.flows["goodput_mbit_s"].sum()),
        queue_packets=waited / float(times.sum()),
        drops=int(rows["dropped_packets"][-1]),
        marks=int(rows["marked_packets"][-1]),
    )


def compare(plain: Plain) -> Queue:
    """Runs an experiment on both backends."""
    # A measuring window would leave out part of the queue.
    whole = {key: value for key, value in plain.items() if key not in ("measure", "every")}
    results = run(whole | {"record": {"samples": "ack", "links": "100 ms"}})
    (ours,), (theirs,) = (results[backend].runs["run"] for backend in (SIM, LINUX))
    names = results[SIM].flows["flow"].to_list()
    same = [
        first_difference(trace(results[SIM], ours, name), trace(results[LINUX], theirs, name))
        is None
        for name in names
    ]
    return Queue(len(names), sum(same), totals(results[SIM]), totals(results[LINUX]))


def apart(ours: float, theirs: float) -> str:
    """The relative excess of the simulator over the kernel."""
    if ours == theirs:
        return "0"
    if not theirs:
        return "none in the kernel"
    text = f"{ours / theirs - 1:+.2%}"
    return "below 0.01%" if text[1:] == "0.00%" else text


def rows(by_kind: Mapping[str, Sequence[Queue]]) -> list[list[str]]:
    """A line for each discipline; counts are summed over all experiments."""
    heads = ["discipline", "experiments", "flows", "identical"]
    lines = [[*heads, "goodput", "mean queue", "drops", "marks"]]
    lines.append(["---", *["---:"] * (len(lines[0]) - 1)])
    for kind, queues in by_kind.items():
        flows, same = (sum(getattr(it, name) for it in queues) for name in ("flows", "identical"))
        line = [kind, str(len(queues)), str(flows), f"{same} ({same / flows:.1%})"]
        for name in ("goodput_mbit_s", "queue_packets", "drops", "marks"):
            ours, theirs = (
                sum(getattr(getattr(it, backend), name) for it in queues)
                for backend in ("sim", "linux")
            )
            number = f" of {theirs:,}" if isinstance(theirs, int) else ""
            line.append(f"{apart(ours, theirs)}{number}")
        lines.append(line)
    return lines
