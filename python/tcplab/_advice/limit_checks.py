"""Whether settings keep the limits, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from tcplab import statistics
from tcplab._advice.evidence import LEVEL, LEVEL_OF_CELLS
from tcplab._advice.goals import Goal
from tcplab._advice.limits import MOST, Limit


@dataclass(frozen=True)
class LimitCheck:
    """A setting and a limit, on the path where the setting is nearest to the limit or furthest
    beyond it.
    """

    limit: str
    candidate: str
    backend: str
    point: str
    mean: float
    low: float | None
    high: float | None
    n: int
    verdict: str
    """`kept` or `broken` where the whole interval is; where it has the limit in it, `untold`, or
    `exceeded` if the mean is beyond the limit.
    """

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


KEPT, BROKEN, EXCEEDED, UNTOLD = "kept", "broken", "exceeded", "untold"

BREAKS = (BROKEN, EXCEEDED)
"""The verdicts with which a setting is not advised."""


def worst(rows: pl.DataFrame, limits: Sequence[Limit]) -> dict[str, float]:
    """By candidate, how far its means are beyond a limit where they are most, as a share of the
    limit; below zero where all are kept.
    """
    found: dict[str, float] = {}
    for limit in limits:
        for name, _, mean in _means(rows, limit.goal):
            apart = limit.beyond(mean) / max(abs(limit.value), 1e-9)
            found[name] = max(found.get(name, apart), apart)
    return found


def broken_at(rows: pl.DataFrame, limits: Sequence[Limit]) -> set[tuple[str, str]]:
    """The candidates and paths of which a mean is beyond a limit."""
    return {
        (name, point)
        for limit in limits
        for name, point, mean in _means(rows, limit.goal)
        if limit.is_broken_by(mean)
    }


def _means(rows: pl.DataFrame, goal: Goal) -> list[tuple[str, str, float]]:
    """By candidate and path, the mean of a goal."""
    means = rows.group_by("candidate", "point", maintain_order=True).agg(
        pl.col(goal.name).fill_null(0.0).mean()
    )
    return [(str(name), str(point), float(mean)) for name, point, mean in means.iter_rows()]


def kept(rows: pl.DataFrame, limits: Sequence[Limit], backend: str) -> list[LimitCheck]:
    """Whether each candidate, today's setting included, keeps each limit: on one path by the 95 %
    interval of its mean, over several by the 99 % interval (normal data) of the path where it is
    nearest to the limit or furthest beyond it.
    """
    several = rows["point"].n_unique() > 1
    found = []
    for limit in limits:
        for (name,), part in rows.group_by("candidate", maintain_order=True):
            told = [
                _on_path(limit, (str(name), backend, str(point)), one, several=several)
                for (point,), one in part.group_by("point", maintain_order=True)
            ]
            order = {BROKEN: 0, EXCEEDED: 1, UNTOLD: 2, KEPT: 3}
            found.append(min(told, key=lambda one: (order[one.verdict], -limit.beyond(one.mean))))
    return found


def _on_path(
    limit: Limit, where: tuple[str, str, str], rows: pl.DataFrame, *, several: bool
) -> LimitCheck:
    values = rows[limit.goal.name].fill_null(0.0).to_list()
    mean = sum(values) / len(values)
    low: float | None
    high: float | None
    if len(values) > 1 and max(values) == min(values):
        low = high = mean
    elif several:
        it = statistics.interval(values, level=LEVEL_OF_CELLS, assume="normal")
        low, high = it.low, it.high
    else:
        it = statistics.interval(values, level=LEVEL)
        low, high = it.low, it.high
    if low is not None and min(values) >= 0:
        # No goal is below zero; Student's interval does not know.
        low = max(low, 0.0)
    if high is not None:
        high = min(high, MOST.get(limit.goal.unit, high))
    verdict = EXCEEDED if limit.is_broken_by(mean) else UNTOLD
    if low is not None and high is not None:
        ends = [limit.is_broken_by(low), limit.is_broken_by(high)]
        verdict = BROKEN if all(ends) else verdict if any(ends) else KEPT
    name, backend, point = where
    return LimitCheck(limit.text, name, backend, point, mean, low, high, len(values), verdict)
