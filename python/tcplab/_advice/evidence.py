"""How much better settings are than today's, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from tcplab import statistics
from tcplab._advice.goals import GOALS, Goal
from tcplab._advice.levers import TODAY, Candidate, cost
from tcplab._advice.stages import gains, logarithm

BESIDE = replace(GOALS["goodput"], name="beside")
"""The goodput of a flow that is none of ours."""

LEVEL = 0.95

LEVEL_OF_CELLS = 0.99
"""Of the map, which has several candidates in each cell."""

NEAR = 0.01
"""A candidate that is no more than this share behind counts as equal."""

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
    sure: float | None
    """The lower limit, corrected for all candidates that might have been advised."""
    n: int
    of: str
    """The unit of the interval: runs, paths, or seeds."""
    today: float | None
    """The mean of today's setting, in the goal's unit."""
    advised: float | None
    """The mean of the candidate."""
    worst: float
    """The gain on the path where it is least."""
    worst_point: str

    @property
    def is_better(self) -> bool:
        """Whether the whole corrected interval is above zero."""
        return self.sure is not None and self.sure > 0

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def found(rows: pl.DataFrame, goals: Sequence[Goal], backend: str, tests: int = 1) -> list[Gain]:
    """The gains of all candidates, for all goals; `tests` of them are to be told from today's."""
    result = []
    for goal in goals:
        if rows[goal.name].null_count() == len(rows):
            continue
        own = gains(rows, goal, TODAY)
        for (name,), part in own.group_by("candidate", maintain_order=True):
            result.append(_gain(str(name), part, goal, backend, 1 - (1 - LEVEL) / tests))
    return result


def _gain(name: str, part: pl.DataFrame, goal: Goal, backend: str, sure: float) -> Gain:
    """Of each path, the ratio of the means of its runs; of several, the geometric mean of these.
    Many paths are taken for a sample of those that there may be, so the interval is over them; few
    are those that are meant, and it is over the seeds.
    """
    points = [
        (str(point), one["value"].to_list(), one["base"].to_list())
        for (point,), one in part.group_by("point", maintain_order=True)
    ]
    each = [_of_one_path(values, base, goal) for _, values, base in points]
    worst = min(range(len(each)), key=lambda place: each[place])
    to = share if goal.is_ratio else float
    of = "runs"
    if len(points) == 1:
        _, values, base = points[0]
        limits_at = partial(_limits_of_one_path, values, base, goal, to(each[0]))
        number = len(values)
    elif len(points) >= statistics.FEWEST:
        limits_at = partial(limits, each, to)
        number, of = len(points), "paths"
    else:
        # The contribution of each seed to the mean over paths.
        own = _by_seed(points, goal, sum(each) / len(each))
        limits_at = partial(limits, own, to)
        number, of = len(own), "seeds"
    low, high = limits_at(LEVEL)
    sure_low, _ = limits_at(sure)
    means = [
        [sum(several) / len(several) for several in column]
        for column in ([base for _, _, base in points], [values for _, values, _ in points])
    ]
    return Gain(
        name,
        goal.name,
        backend,
        to(sum(each) / len(each)),
        low,
        high,
        sure_low,
        number,
        of,
        _mean(means[0], goal),
        _mean(means[1], goal),
        to(each[worst]),
        points[worst][0],
    )


def _mean(numbers: Sequence[float], goal: Goal) -> float:
    """The mean over paths: of what has ratios, the geometric one."""
    if not goal.is_ratio:
        return sum(numbers) / len(numbers)
    return math.exp(sum(math.log(max(one, goal.least)) for one in numbers) / len(numbers))


def _of_one_path(values: Sequence[float], base: Sequence[float], goal: Goal) -> float:
    """The gain of the means: the logarithm of their ratio, or their difference."""
    one, other = sum(values) / len(values), sum(base) / len(base)
    apart = logarithm(one, other, goal) if goal.is_ratio else one - other
    return apart if goal.more_is_better else -apart


def _limits_of_one_path(
    values: Sequence[float], base: Sequence[float], goal: Goal, gain: float, level: float
) -> tuple[float | None, float | None]:
    # The better of two is above: more of what is good, or less of what is not.
    above, below = (values, base) if goal.more_is_better else (base, values)
    if not goal.is_ratio:
        return limits([one - other for one, other in zip(above, below, strict=True)], float, level)
    pairs = set(zip(above, below, strict=True))
    if len(above) > 1 and (len(pairs) == 1 or all(one == other for one, other in pairs)):
        # Where nothing is random, all runs say the same.
        return gain, gain
    it = statistics.ratio(above, below, level=level)
    return (None, None) if it.low is None or it.high is None else (it.low - 1, it.high - 1)


def _by_seed(
    points: Sequence[tuple[str, list[float], list[float]]], goal: Goal, gain: float
) -> list[float]:
    """For each seed a value whose mean is the gain, and whose spread is that of the gain (the delta
    method).
    """
    sign = 1.0 if goal.more_is_better else -1.0
    seeds = min(len(values) for _, values, _ in points)
    result = []
    for seed in range(seeds):
        apart = 0.0
        for _, values, base in points:
            one, other = sum(values) / len(values), sum(base) / len(base)
            if goal.is_ratio:
                apart += values[seed] / max(one, goal.least) - base[seed] / max(other, goal.least)
            else:
                apart += values[seed] - one - base[seed] + other
        result.append(gain + sign * apart / len(points))
    return result


def share(logarithm: float) -> float:
    """The logarithm of a ratio as the share that it is more than one."""
    return math.expm1(logarithm)


def limits(
    values: Sequence[float],
    to: Callable[[float], float] = share,
    level: float = LEVEL,
    assume: statistics.Assume | None = None,
) -> tuple[float | None, float | None]:
    """The limits of a mean."""
    if len(values) > 1 and max(values) - min(values) <= 1e-12:
        # Where nothing is random, all runs say the same.
        return to(values[0]), to(values[0])
    it = statistics.interval(values, level=level, assume=assume)
    if it.low is None or it.high is None:
        return None, None
    return to(it.low), to(it.high)


def simplest(
    gained: Mapping[Candidate, float], goal: Goal, again: Mapping[str, float] | None = None
) -> Candidate:
    """Of candidates with their gains, the best; or one that is no more behind than is worth a
    setting, and has fewer settings or sends less again; or one with smaller buffers that is no more
    than half of that behind. `again` has the share sent again of each, in percent.
    """

    def asks(one: Candidate) -> tuple[int, int, int]:
        settings, memory = cost(one)
        return settings, round((again or {}).get(one.name, 0.0)), memory

    best = max(gained, key=lambda one: (gained[one], [-part for part in asks(one)]))

    def does(one: Candidate) -> bool:
        margin = 1.0 if asks(one)[:2] < asks(best)[:2] else 0.5
        return goal.behind(gained[one], gained[best]) <= margin

    return min(filter(does, gained), key=lambda one: (*asks(one), -gained[one]))


def seeds_needed(rows: pl.DataFrame, goal: Goal, candidate: str, part: float = 0.25) -> int:
    """How many seeds tell the gain of a candidate to within a part of itself, as far as those that
    there are can say.
    """
    own = gains(rows, goal, TODAY)
    values = own.filter(pl.col("candidate") == candidate)["gain"]
    if len(values) < 3:
        return SEEDS
    mean, spread = abs(float(values.mean() or 0.0)), float(values.std() or 0.0)  # type: ignore[arg-type]
    wanted = part * max(mean, goal.worth)
    needed = math.ceil((2.2 * spread / wanted) ** 2) if wanted else MOST_SEEDS
    return min(max(needed, SEEDS), MOST_SEEDS)


def harm(rows: pl.DataFrame, candidate: str) -> dict[str, Any] | None:
    """The share of its goodput that a CUBIC flow loses by a candidate; `rows` have the goodput in
    `beside`.
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
        one, other = values["value"].to_list(), values["base"].to_list()
        gain = _of_one_path(one, other, goal)
        several = _by_seed([("", one, other)], goal, gain)
        low, high = limits(several, to, LEVEL_OF_CELLS, "normal")
        result.append(
            {"point": str(point), "candidate": str(name), "gain": to(gain), "low": low,
             "high": high,
             "n": len(several)}
        )  # fmt: skip
    return result
