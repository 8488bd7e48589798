"""Compares the transfers and flows of applications on both backends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tcplab as lab
from fuzz.compare import LINUX, SIM, first_part, run
from fuzz.draw import Plain

WHEN = ("start_s", "end_s", "outcome")
"""A transfer has the same completion if these columns are equal."""
MEANS = ("completion_s", "completion_mean_s", "delay_mean_ms")
"""Columns of flows. The first of them is the page load time of a web flow."""

Row = dict[str, Any]
Key = tuple[str, int | None]
"""A flow and the number of a transfer; without a number, the flow as a whole."""


@dataclass(frozen=True)
class Transfer:
    """A transfer, or a flow as a whole, on both backends."""

    flow: str
    cc: str | None
    number: int | None
    """`None` for a flow as a whole."""
    at_s: float
    """The time at which it ended in the kernel, or began if the start already differs."""
    differs: Sequence[str]
    """Columns that differ, with both values."""
    same: bool
    """Whether it began and ended in the same nanosecond; for UDP, whether nothing differs."""
    counts: bool
    """Whether it is a transfer, a flow with a size, or UDP. Other flows are compared but not
    counted.
    """

    def __str__(self) -> str:
        """The differences as text."""
        name = self.flow if self.number is None else f"{self.flow} transfer {self.number}"
        return f"{name} {self.cc or 'udp'}, {self.at_s:.6f} s: {', '.join(self.differs)}"


@dataclass(frozen=True)
class Transfers:
    """An experiment on both backends."""

    rows: Sequence[Transfer]
    parts: Sequence[str]
    """The first differing interval, if the flow rows are equal."""
    apart: float
    """The greatest relative difference of a flow's mean completion time, or mean delay, from the
    kernel.
    """

    @property
    def first(self) -> Transfer | None:
        """The first row that differs in any column."""
        differing = [row for row in self.rows if row.differs]
        return min(differing, key=lambda row: (row.at_s, row.number is None), default=None)

    @property
    def counted(self) -> Sequence[Transfer]:
        """The rows that the table counts."""
        return [row for row in self.rows if row.counts]


def compare(plain: Plain, overrides: Plain | None = None) -> Transfers:
    """Runs an experiment on both backends and compares its transfers."""
    results = run(plain, overrides)
    ours, theirs = (_rows(results[side]) for side in (SIM, LINUX))
    rows = [_transfer(key, ours.get(key), theirs.get(key)) for key in {**theirs, **ours}]
    means = [_means(results[side]) for side in (SIM, LINUX)]
    apart = [_apart(*(some.get(key) for some in means)) for key in {**means[0], **means[1]}]
    differing = {row.flow for row in rows if row.differs}
    alike = [flow for flow in results[SIM].flows["flow"] if flow not in differing]
    parts = [(flow, first_part(results[SIM], results[LINUX], flow)) for flow in alike]
    told = [f"{flow}: {part}" for flow, part in parts if part]
    return Transfers(rows, told, max(apart, default=0.0))


def _rows(results: lab.Results) -> dict[Key, Row]:
    flows = {row["flow"]: row for row in results.flows.drop("run").to_dicts()}
    rows: dict[Key, Row] = {(name, None): row for name, row in flows.items()}
    for row in results.transfers.drop("run").sort("flow", "transfer").to_dicts():
        rows[row["flow"], row["transfer"]] = row | {"cc": flows[row["flow"]]["cc"]}
    return rows


def _transfer(key: Key, sim: Row | None, linux: Row | None) -> Transfer:
    flow, number = key
    either = linux or sim
    assert either
    udp = either["cc"] is None
    sized = either["outcome"] != "running" and not either.get("transfers")
    counts = number is not None or udp or sized
    if sim is None or linux is None:
        missing = "only on linux" if linux else "only on sim"
        return Transfer(flow, either["cc"], number, either["start_s"], [missing], False, counts)
    names = [name for name in linux if sim[name] != linux[name]]
    at_s = linux["start_s" if "start_s" in names else "end_s"] or 0.0
    differs = [f"{name} sim {sim[name]}, linux {linux[name]}" for name in names]
    same = not names if udp else not any(name in names for name in WHEN)
    return Transfer(flow, linux["cc"], number, at_s, differs, same, counts)


def _means(results: lab.Results) -> dict[tuple[str, str], float]:
    rows = results.flows.select("flow", *MEANS).to_dicts()
    return {(row["flow"], name): row[name] for row in rows for name in MEANS if row[name]}


def _apart(sim: float | None, linux: float | None) -> float:
    if sim is None or linux is None:
        return float("inf")
    return abs(sim - linux) / linux
