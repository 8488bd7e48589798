"""Runs of candidates over paths and seeds, each stage in a folder of results of its own."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tcplab._advice.goals import Goal, measured
from tcplab._advice.levers import Candidate
from tcplab._advice.question import Question
from tcplab._core import ConfigError
from tcplab._experiment.quantities import number_of
from tcplab._experiment.runnable import Runnable
from tcplab._results.results import Results
from tcplab._run.run import run
from tcplab._warnings import TcplabWarning

MANY = 1_000_000
"""More than there ever are."""

ROUND_TRIPS = 10
"""In a run of fewer, what delivers nothing had no time to; in a longer one it met losses."""

FIRST = "first"
"""The stage of today's setting alone."""


@dataclass
class Laboratory:
    """Where candidates run, and how much time is left for it."""

    question: Question
    folder: Path
    budget_s: float
    workers: int | None = None
    progress: bool | None = None
    began: float = field(default_factory=time.monotonic)
    spent_s: float = 0.0
    """How long the runs on `sim` took, all that went on at once together."""
    runs: int = 0
    """How many these were."""
    packets: float = 0.0
    """How many packets cross a link in it."""
    stages: list[str] = field(default_factory=list)
    """The stages that have results, each in a folder of this name."""
    short_buffers: frozenset[str] = frozenset()
    """Today's buffers that a path may need more of."""

    @property
    def threads(self) -> int:
        """How many runs go on at once."""
        return self.workers or os.cpu_count() or 1

    def left_s(self) -> float:
        """How much of the budget is left."""
        return self.budget_s - (time.monotonic() - self.began)

    @property
    def each_s(self) -> float:
        """How long a run takes, all that go on at once together."""
        return self.spent_s / self.runs if self.runs else 0.0

    def fitting(self, time_s: float, paths: int, seeds: int) -> int:
        """How many candidates fit into a time, each over so many paths with so many seeds."""
        each = self.each_s * paths * seeds
        return int(max(time_s, 0.0) / each) if each > 0 else MANY

    def time(self, points: Sequence[Mapping[str, Any]], seed: int) -> None:
        """Runs today's setting over each path, to know how long a run takes.

        Raises:
            ConfigError: Nothing arrives within the run.
        """
        results = self.run(FIRST, [Candidate()], points, range(seed, seed + 1))
        self.packets = float(results.runs["packet_hops"].mean() or 0.0)  # type: ignore[arg-type]
        plans = [json.loads(plan.to_json()) for plan in results.plans]
        self.short_buffers = frozenset(key for plan in plans for key in self._short_buffers(plan))
        delivered = table(results, self.question)["goodput"].to_list()
        for plan, goodput in zip(plans, delivered, strict=True):
            flow = self._flow(plan)
            trip_ms = number_of(flow.get("base_rtt"), "ms") or 0.0
            lasts_ms = number_of(plan["duration"], "ms") or 0.0
            if goodput <= 0 and lasts_ms < ROUND_TRIPS * trip_ms:
                raise ConfigError(
                    f"duration: a run of {plan['duration']} delivers nothing over a round trip of "
                    f"{flow['base_rtt']}, so there is nothing to compare"
                )

    def _flow(self, plan: Mapping[str, Any]) -> Any:
        """The first flow of a plan that the advice is for."""
        return next(one for one in plan["flows"] if one["name"] in self.question.flows)

    def _short_buffers(self, plan: Mapping[str, Any]) -> list[str]:
        """The buffers that hold less than twice what the path and its queue do: about half of a
        buffer is for what the kernel keeps beside the data.
        """
        flow = self._flow(plan)
        lane = plan["lanes"][flow["bottleneck"] or 0]
        stack = flow["transport"].get("stack")
        path, limit = number_of(lane.get("bdp"), "bytes"), lane["queue"].get("limit")
        if stack is None or path is None or not limit:
            return []
        ((unit, number), *_) = limit.items()
        queue = number * lane["mtu"] if unit == "packets" else number
        buffers = {"wmem": stack["wmem"], "rmem": flow["transport"]["peer_stack"]["rmem"]}
        return [
            name
            for name, text in buffers.items()
            if (held := number_of(text, "bytes")) is not None and held < 2 * (path + queue)
        ]

    def run(
        self,
        stage: str,
        candidates: Sequence[Candidate],
        points: Sequence[Mapping[str, Any]],
        seeds: range,
        *,
        backend: str = "sim",
        changes: Mapping[str, Any] | None = None,
    ) -> Results:
        """The results of all candidates over all points and seeds."""
        experiment = self.question.experiment(candidates, points, seeds, changes)
        with warnings.catch_warnings():
            # Warnings about today's path are shown once.
            if stage != FIRST:
                warnings.simplefilter("ignore", TcplabWarning)
            began = time.monotonic()
            results = self._run(experiment, stage, backend)
        # What captures, or has other flows, says nothing of other runs.
        if backend == "sim" and changes is None:
            # Of runs that were there already, the time that they took then.
            then_s = float(results.runs["wall_s"].sum()) / self.threads
            self.spent_s += max(time.monotonic() - began, then_s)
            self.runs += len(results.runs)
        return results

    def _run(self, experiment: Runnable, stage: str, backend: str) -> Results:
        if stage not in self.stages:
            self.stages.append(stage)
        return run(
            experiment,  # type: ignore[arg-type]
            out=self.folder / stage,
            backend=backend,
            workers=self.workers,
            progress=self.progress,
        )


def table(results: Results, question: Question) -> pl.DataFrame:
    """A row for each run: its candidate, point and seed, and a number for each goal."""
    rows = measured(results, question.flows, question.goals)
    others = swept(results)
    values = [pl.format(f"{short(name)} {{}}", pl.col(name)) for name in others]
    point = pl.concat_str(values, separator=", ") if values else pl.lit("")
    return rows.with_columns(point.alias("point")).rename({"variant": "candidate"})


def swept(results: Results) -> list[str]:
    """The keys by which paths differ."""
    return [name for name in results.swept if name not in ("variant", "sweep.seed")]


def short(path: str) -> str:
    """The last part of a swept key, for labels."""
    return path.rsplit(".", 1)[-1]


def gains(rows: pl.DataFrame, goal: Goal, baseline: str) -> pl.DataFrame:
    """A row for each run of another candidate: how much better it is than the baseline's run over
    the same path with the same seed, as the logarithm of their ratio, or their difference.
    """
    key = ["point", "seed"]
    base = rows.filter(pl.col("candidate") == baseline).select(
        *key, pl.col(goal.name).alias("base")
    )
    joined = rows.filter(pl.col("candidate") != baseline).join(
        base, on=key, how="inner", maintain_order="left"
    )
    sign = 1.0 if goal.more_is_better else -1.0

    def apart(one: float, other: float) -> float:
        return logarithm(one, other, goal) if goal.is_ratio else one - other

    values = [
        sign * apart(one or 0.0, other or 0.0)
        for one, other in zip(joined[goal.name].to_list(), joined["base"].to_list(), strict=True)
    ]
    return joined.select(
        "candidate",
        *key,
        pl.col(goal.name).fill_null(0.0).alias("value"),
        pl.col("base").fill_null(0.0),
    ).with_columns(pl.Series("gain", values, dtype=pl.Float64))


def logarithm(one: float, other: float, goal: Goal) -> float:
    """The logarithm of a ratio of two values, each of at least the least that counts."""
    return 0.0 if one == other else math.log(max(one, goal.least) / max(other, goal.least))
