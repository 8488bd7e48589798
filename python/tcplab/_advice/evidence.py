"""How much better settings are than today's, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from tcplab import statistics
from tcplab._advice.goals import GOALS, Goal
from tcplab._advice.levers import TODAY, Candidate, cost
from tcplab._advice.stages import LEAST, gains

BESIDE = replace(GOALS["goodput"], name="beside")
"""The goodput of a flow that is none of ours."""

WORTH = 0.02
"""A gain of less than this share is not worth a change, nor one setting more."""

NEAR = 0.01
"""What is no more than this behind does as well."""

FRESH = 1000
"""Seeds of the evidence begin so far after those of the search."""

SEEDS = 12
"""How many seeds the evidence has at least, on one path."""

MOST_SEEDS = 40

SEEDS_EACH = 3
"""How many seeds each path has where there are many."""


def seeds_each(paths: int) -> int:
    """How many seeds each of so many paths has: where these are few, the interval is over seeds."""
    return SEEDS_EACH if paths >= statistics.FEWEST else SEEDS


@dataclass(frozen=True)
class Gain:
    """How much better a candidate is than today's setting, as a share: 0.1 is 10 % better."""

    candidate: str
    goal: str
    backend: str
    gain: float
    low: float | None
    high: float | None
    n: int
    of: str
    """What the interval is over: runs, paths, or seeds."""
    today: float | None
    """The mean of today's setting, in the goal's unit."""
    advised: float | None
    """The mean of the candidate."""
    worst: float
    """The gain on the path where it is least."""
    worst_point: str

    @property
    def is_better(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.low is not None and self.low > 0

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval is below zero."""
        return self.high is not None and self.high < 0

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def found(rows: pl.DataFrame, goals: Sequence[Goal], backend: str) -> list[Gain]:
    """The gains of all candidates, for all goals."""
    result = []
    for goal in goals:
        if rows[goal.name].null_count() == len(rows):
            continue
        own = gains(rows, goal, TODAY)
        for (name,), part in own.group_by("candidate", maintain_order=True):
            result.append(_gain(str(name), part, goal, backend))
    return result


def _gain(name: str, part: pl.DataFrame, goal: Goal, backend: str) -> Gain:
    """Of one path, the ratio of the means of its runs; of several, the geometric mean of the ratios
    of paths, each of which is as likely. Many paths are taken for a sample of those that there may
    be, so the interval is over them; few are those that are meant, and it is over the seeds.
    """
    to = share if goal.is_ratio else float
    points = part.group_by("point", maintain_order=True).agg(
        pl.col("gain").mean(), pl.col("value").mean(), pl.col("base").mean()
    )
    worst = min(points.iter_rows(), key=lambda row: row[1])
    is_sample = len(points) >= statistics.FEWEST
    seeds = part["seed"].n_unique()
    if len(points) > 1:
        over = "point" if is_sample else "seed"
        values = (
            part.group_by(over, maintain_order=True).agg(pl.col("gain").mean())["gain"].to_list()
        )
        low, high = limits(values, to)
        today = _mean(points["base"], goal)
        gain = to(sum(values) / len(values))
        advised = _mean(points["value"], goal)
    else:
        values, base = part["value"].to_list(), part["base"].to_list()
        today, advised = sum(base) / len(base), sum(values) / len(values)
        gain, low, high = _of_one_path(values, base, goal)
    return Gain(
        name,
        goal.name,
        backend,
        gain,
        low,
        high,
        len(points) if is_sample else seeds,
        "paths" if is_sample else "runs" if len(points) == 1 else "seeds",
        today,
        advised,
        to(worst[1]) if len(points) > 1 else gain,
        str(worst[0]),
    )


def _mean(values: pl.Series, goal: Goal) -> float:
    numbers = values.to_list()
    if not goal.is_ratio:
        return float(sum(numbers) / len(numbers))
    return math.exp(sum(math.log(max(one, LEAST)) for one in numbers) / len(numbers))


def _of_one_path(
    values: Sequence[float], base: Sequence[float], goal: Goal
) -> tuple[float, float | None, float | None]:
    """The gain of the means, and its limits."""
    # The better of two is above: more of what is good, or less of what is not.
    above, below = (values, base) if goal.more_is_better else (base, values)
    if not goal.is_ratio:
        apart = [one - other for one, other in zip(above, below, strict=True)]
        return sum(apart) / len(apart), *limits(apart, float)
    over, under = sum(above) / len(above), sum(below) / len(below)
    gain = max(over, LEAST) / max(under, LEAST) - 1 if over != under else 0.0
    pairs = set(zip(above, below, strict=True))
    if len(above) > 1 and (len(pairs) == 1 or all(one == other for one, other in pairs)):
        # Where nothing is random, all runs say the same.
        return gain, gain, gain
    it = statistics.ratio(above, below)
    if it.low is None or it.high is None:
        return gain, None, None
    return gain, it.low - 1, it.high - 1


def share(logarithm: float) -> float:
    """The logarithm of a ratio as the share that it is more than one."""
    return math.expm1(logarithm)


def limits(
    values: Sequence[float],
    to: Callable[[float], float] = share,
    assume: statistics.Assume | None = None,
) -> tuple[float | None, float | None]:
    """The limits of a mean."""
    if len(values) > 1 and max(values) == min(values):
        # Where nothing is random, all runs say the same.
        return to(values[0]), to(values[0])
    it = statistics.interval(values, assume=assume)
    if it.low is None or it.high is None:
        return None, None
    return to(it.low), to(it.high)


def simplest(gained: Mapping[Candidate, float]) -> Candidate:
    """Of candidates with their gains, the best; or one with fewer settings that is no more behind
    than is worth a setting, or smaller buffers that do as well.
    """
    best = max(gained, key=lambda one: (gained[one], [-part for part in cost(one)]))

    def does(one: Candidate) -> bool:
        margin = WORTH if len(one.settings) < len(best.settings) else NEAR
        return (1 + gained[one]) * (1 + margin) >= 1 + gained[best]

    return min(filter(does, gained), key=lambda one: (*cost(one), -gained[one]))


def seeds_needed(rows: pl.DataFrame, goal: Goal, candidate: str, part: float = 0.25) -> int:
    """How many seeds tell the gain of a candidate to within a part of itself, as far as those that
    there are can say.
    """
    own = gains(rows, goal, TODAY)
    values = own.filter(pl.col("candidate") == candidate)["gain"]
    if len(values) < 3:
        return SEEDS
    mean, spread = abs(float(values.mean() or 0.0)), float(values.std() or 0.0)  # type: ignore[arg-type]
    wanted = part * max(mean, WORTH)
    needed = math.ceil((2.2 * spread / wanted) ** 2) if wanted else MOST_SEEDS
    return min(max(needed, SEEDS), MOST_SEEDS)


def harm(rows: pl.DataFrame, candidate: str) -> dict[str, Any] | None:
    """What a flow of CUBIC beside it loses by a candidate: a share of its goodput, which `rows`
    have in `beside`.
    """
    for one in found(rows, [BESIDE], "sim"):
        if one.candidate == candidate:
            return {
                "harm": -one.gain,
                "low": None if one.high is None else -one.high,
                "high": None if one.low is None else -one.low,
                "n": one.n,
                "of": one.of,
                "today": one.today,
                "advised": one.advised,
            }
    return None


def by_point(rows: pl.DataFrame, goal: Goal) -> list[dict[str, Any]]:
    """For each path, what each candidate gains there, with its interval for normal data."""
    to = share if goal.is_ratio else float
    result = []
    for (point, name), values in gains(rows, goal, TODAY).group_by(
        "point", "candidate", maintain_order=True
    ):
        several = values["gain"].to_list()
        low, high = limits(several, to, assume="normal")
        gain = to(sum(several) / len(several))
        result.append(
            {"point": str(point), "candidate": str(name), "gain": gain, "low": low, "high": high,
             "n": len(several)}
        )  # fmt: skip
    return result
