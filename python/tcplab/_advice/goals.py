"""The goals: each is a number of a run, over the flows that the advice is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from tcplab._core import ConfigError
from tcplab._results.results import Results
from tcplab._statistics.estimates import jain


@dataclass(frozen=True)
class Goal:
    """A number of a run, of which more or less is better."""

    name: str
    words: str
    unit: str
    more_is_better: bool
    needs: str
    """The traffic that it needs."""
    is_there: Callable[[Mapping[str, Any]], bool]
    """Whether a flow of a plan gives it a number."""
    is_ratio: bool = True
    """Whether gains are ratios; of shares and indices, which may be zero, they are differences."""
    least: float = 1e-9
    """The least value that a ratio is formed with, in place of zero."""
    worth: float = 0.02
    """A smaller gain justifies neither a change nor an additional setting."""

    def behind(self, gain: float, best: float) -> float:
        """How far a gain is behind the best, as a part of what is worth a change."""
        apart = (1 + best) / (1 + gain) - 1 if self.is_ratio else best - gain
        return apart / self.worth


def _is_tcp(flow: Mapping[str, Any]) -> bool:
    return bool(flow["transport"]["kind"] == "tcp")


def _completes(flow: Mapping[str, Any]) -> bool:
    traffic = flow["traffic"]
    kinds = ("web", "arrivals", "requests")
    return _is_tcp(flow) and (traffic["kind"] in kinds or traffic.get("size") is not None)


def _always(flow: Mapping[str, Any]) -> bool:
    return True


def _is_web(flow: Mapping[str, Any]) -> bool:
    return bool(flow["traffic"]["kind"] == "web")


GOALS = {
    goal.name: goal
    for goal in (
        Goal("goodput", "goodput", "Mbit/s", True, "any flow", _always, least=1e-3),
        Goal("completion", "mean completion time", "s", False, "transfers with a size", _completes),
        Goal("completion-p95", "95th percentile of completion times", "s", False,
             "transfers with a size", _completes),
        Goal("page-time", "mean page-load time", "s", False, "flows of the kind web", _is_web),
        Goal("latency", "mean latency", "ms", False, "any flow", _always),
        Goal("retransmissions", "share sent again", "%", False, "flows of TCP", _is_tcp,
             is_ratio=False, worth=0.1),
        Goal("fairness", "Jain's index of all flows", "", True, "any flow", _always,
             is_ratio=False),
    )
}  # fmt: skip
"""By name. Transfers and pages that the run ended first count as long as they were there."""

ALSO = ("goodput", "latency", "retransmissions")
"""Goals that are reported in any case."""


def chosen(
    asked: Sequence[str], flows: Sequence[Mapping[str, Any]], limited: Sequence[str] = ()
) -> list[Goal]:
    """The goals that are asked for, or those of the traffic; then those with limits, and what is
    reported beside them.

    Raises:
        ConfigError: The flows do not give a goal a number.
    """
    for name in asked:
        known(name, flows, "goals")
    first = list(asked) or [_usual(flows)]
    also = [name for name in ALSO if any(map(GOALS[name].is_there, flows))]
    found = [GOALS[name] for name in dict.fromkeys([*first, *limited, *also])]
    if len({_is_tcp(flow) for flow in flows}) == 1:
        return found
    both = "mean latency (RTT of TCP, one-way delay of UDP)"
    return [replace(one, words=both) if one.name == "latency" else one for one in found]


def known(name: str, flows: Sequence[Mapping[str, Any]], place: str) -> Goal:
    """The goal of this name, which the flows must give a number.

    Raises:
        ConfigError: There is no such goal, or the flows do not.
    """
    if name not in GOALS:
        raise ConfigError(f"{place}: there is no {name!r}; there are {', '.join(GOALS)}")
    if not any(map(GOALS[name].is_there, flows)):
        there = [one.name for one in GOALS.values() if any(map(one.is_there, flows))]
        raise ConfigError(
            f"{place}: {name}: needs {GOALS[name].needs}, and there are none among those that "
            f"the advice is for; these can be measured: {', '.join(there)}"
        )
    return GOALS[name]


def are_of_tcp(flows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all flows are of TCP, whose latency is a round trip."""
    return all(map(_is_tcp, flows))


def _usual(flows: Sequence[Mapping[str, Any]]) -> str:
    """The goal that flows of this traffic usually have."""
    if any(map(_is_web, flows)):
        return "page-time"
    if any(map(_completes, flows)):
        return "completion"
    if all(flow["traffic"]["kind"] == "udp" for flow in flows):
        return "latency"
    return "goodput"


def measured(results: Results, flows: Sequence[str], goals: Sequence[Goal]) -> pl.DataFrame:
    """A row for each run: what was swept, its seed, and a column for each goal; of goals that are
    times also how many transfers or pages there were, and how many of them had not ended.
    """
    about = results.runs.select("run", "seed", *results.swept, "measured_to_s")
    mine = results.flows.filter(pl.col("flow").is_in(list(flows))).join(
        about.select("run", "measured_to_s"), on="run", maintain_order="left"
    )
    rows = about
    for goal in goals:
        rows = rows.join(
            # Who shares with whom does not depend on whose settings may change.
            _of_runs(goal.name, results.flows if goal.name == "fairness" else mine, results).rename(
                {"value": goal.name}
            ),
            on="run",
            how="left",
            maintain_order="left",
        )
    if any(goal.name in TIMES for goal in goals):
        pages = any(goal.name == "page-time" for goal in goals)
        times = _times(mine, results, pages=pages).group_by("run", maintain_order=True)
        ends = times.agg(pl.len().alias(ASKED), pl.col("is_open").sum().alias(OPEN))
        rows = rows.join(ends, on="run", how="left", maintain_order="left")
    return rows.drop("measured_to_s")


def _of_runs(name: str, flows: pl.DataFrame, results: Results) -> pl.DataFrame:
    """The number of each run."""
    runs = flows.group_by("run", maintain_order=True)
    if name == "goodput":
        return runs.agg(pl.col("goodput_mbit_s").fill_null(0.0).sum().alias("value"))
    if name == "latency":
        # A flow without any delivery counts as delayed by the whole run.
        waited = 1000 * (pl.col("measured_to_s") - pl.col("start_s"))
        delay = pl.coalesce("rtt_mean_ms", "delay_mean_ms", waited)
        return runs.agg(delay.mean().alias("value"))
    if name == "retransmissions":
        tcp = flows.filter(pl.col("transport") == "tcp")
        again = pl.col("retransmitted_segments").sum() / pl.col("sent_segments").sum()
        # Nothing was sent: no share is worse.
        share = pl.when(pl.col("sent_segments").sum() > 0).then(100 * again).otherwise(100.0)
        return tcp.group_by("run", maintain_order=True).agg(share.alias("value"))
    if name == "fairness":
        filled = flows.with_columns(pl.col("goodput_mbit_s").fill_null(0.0))
        return filled.group_by("run", maintain_order=True).agg(
            jain("goodput_mbit_s").alias("value")
        )
    times = _times(flows, results, pages=name == "page-time")
    value = pl.col("time_s").mean()
    if name == "completion-p95":
        # The nearest rank, in whole numbers.
        rank = (95 * pl.len() + 99) // 100
        value = pl.col("time_s").sort().get((rank - 1).cast(pl.Int64))
    return times.group_by("run", maintain_order=True).agg(value.alias("value"))


TIMES = ("completion", "completion-p95", "page-time")

ASKED, OPEN = "transfers", "unfinished"
"""Columns: how many transfers or pages there were, and how many had not ended with the run."""

OPENED = pl.col("completion_s").is_null().alias("is_open")


def _times(flows: pl.DataFrame, results: Results, *, pages: bool) -> pl.DataFrame:
    """The completion time of each transfer, or page; what did not end lasts until the run ends."""
    lasted = pl.coalesce("completion_s", pl.col("measured_to_s") - pl.col("start_s"))
    ends = ("completed", "unfinished", "reset", "timed out", "not started", "partial")
    whole = flows.filter(
        (pl.col("transport") == "tcp")
        & (pl.col("outcome").is_in(ends) | pl.col("completion_s").is_not_null())
    )
    has_parts = pl.col("transfers").fill_null(0) > 0
    parts = flows.filter(has_parts)
    if pages or parts.is_empty():
        return whole.select("run", lasted.alias("time_s"), OPENED)
    single = whole.filter(~has_parts).select("run", lasted.alias("time_s"), OPENED)
    transfers = (
        results.scan("transfers")
        .join(parts.lazy().select("run", "flow", "measured_to_s"), on=["run", "flow"])
        .select("run", lasted.alias("time_s"), OPENED)
        .collect()
    )
    return pl.concat([single, transfers])
