"""How much better settings are than today's, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from tcplab import statistics
from tcplab._advice.goals import GOALS, Goal
from tcplab._advice.levers import TODAY, Candidate, cost, differ_in_size
from tcplab._advice.stages import gains, logarithm

BESIDE = replace(GOALS["goodput"], name="beside")
"""The goodput of a flow that is none of ours."""

DELAY_BESIDE = replace(
    GOALS["latency"], name="delay_beside", words="mean latency of a flow of CUBIC beside it"
)
"""Its latency."""

LEVEL = 0.95

LEVEL_OF_CELLS = 0.99
"""Of the map, which has several candidates in each cell."""

FEWEST_OF_CELLS = 5
"""Fewer runs of one path have intervals at that level which say nothing."""

NEAR = 0.01
"""A candidate that is no more than this share behind counts as equal."""

FRESH = 1000
"""Seeds of the evidence begin so far after those of the search."""

SEEDS = 12
"""How many seeds the evidence has at least, on one path."""

MOST_SEEDS_EACH = 40
"""How many it has at most, of each setting that is examined."""

MOST_SEEDS = 400
"""How many the advised setting has at most."""

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
    seeds: int
    """How many seeds each path has."""
    today: float | None
    """The mean of today's setting, in the goal's unit."""
    advised: float | None
    """The mean of the candidate."""
    worst: float
    """The gain on the path where it is least."""
    worst_point: str

    @property
    def is_exact(self) -> bool:
        """Whether all runs say the same, since nothing is random."""
        return self.low is not None and self.low == self.high

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval to tell."""
        return self.low is not None and self.low != self.high

    @property
    def is_better(self) -> bool:
        """Whether the whole corrected interval is above zero."""
        return self.sure is not None and self.sure > 0

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def found(
    rows: pl.DataFrame,
    goals: Sequence[Goal],
    backend: str,
    tests: int = 1,
    baseline: str = TODAY,
) -> list[Gain]:
    """The gains of all candidates over the baseline, for all goals; `tests` of them are to be told
    from it.
    """
    result = []
    for goal in goals:
        if rows[goal.name].null_count() == len(rows):
            continue
        own = gains(rows, goal, baseline)
        for (name,), part in own.group_by("candidate", maintain_order=True):
            result.append(_gain(str(name), part, goal, backend, 1 - (1 - LEVEL) / tests))
    return result


def _gain(name: str, part: pl.DataFrame, goal: Goal, backend: str, sure: float) -> Gain:
    """Of each path, the ratio of the means of its runs; of several, the geometric mean of these.
    Many paths are taken for a sample of those that there may be, so the interval is over them; few
    are those that are meant, and it is over the seeds. Logarithms of ratios are taken for normal:
    they have either sign, and what is more skewed than normal data in them is in the ratios.
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
        limits_at = partial(limits, each, to, assume="normal")
        number, of = len(points), "paths"
    else:
        # The contribution of each seed to the mean over paths.
        own = _by_seed(points, goal, sum(each) / len(each))
        limits_at = partial(limits, own, to, assume="normal")
        number, of = len(own), "seeds"
    low, high = limits_at(level=LEVEL)
    sure_low, _ = limits_at(level=sure)
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
        min(len(values) for _, values, _ in points),
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


CHEAPER = ("retransmissions", "latency")
"""What decides, in this order, among settings of which none is ahead in the goal."""


@dataclass(frozen=True)
class Preference:
    """Why a setting is preferred to the one that gains most."""

    over: str
    """The one that gains most."""
    by: str
    """The goal in which the preferred one is better; or it has fewer `settings`, or smaller
    `buffers`.
    """
    ahead: Gain
    """How far the other one is ahead in the first goal."""
    saved: Gain | None
    """How far it is behind in the goal that decided."""
    lost: tuple[Gain, ...] = ()
    """How far it is ahead in further goals, where that is sure and worth a change."""

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def preferred(
    several: Sequence[Candidate], rows: pl.DataFrame, goals: Sequence[Goal]
) -> tuple[Candidate, Preference | None]:
    """The best of candidates, in lexicographic order: those that are surely worse in the first goal
    are dropped, then those that retransmit more than the rest, then those with more latency. Of the
    remaining ones, the one that asks for least.
    """
    own = rows.filter(pl.col("candidate").is_in([one.name for one in several]))
    known = {goal.name: goal for goal in goals[1:] if goal.name in CHEAPER}
    order = [goals[0], *(known[name] for name in CHEAPER if name in known)]
    alive, most, by = list(several), several[0], ""
    for goal in order:
        if own[goal.name].null_count() == len(own):
            continue
        leader = _leader(alive, own, goal)
        if goal == goals[0]:
            most = leader
        left = [one for one in alive if not _is_behind(one, leader, own, goal)]
        if most in alive and most not in left:
            by = goal.name
        alive = left
    chosen = min(alive, key=lambda one: (cost(one), one != most))
    if chosen == most:
        return chosen, None
    if not by:
        by = "settings" if len(chosen.settings) < len(most.settings) else "buffers"
    ahead = _paired(most, chosen, own, goals[0])
    saved = _paired(chosen, most, own, known[by]) if by in known else None
    lost = (
        _paired(most, chosen, own, goal)
        for goal in goals[1:]
        if _is_behind(chosen, most, own, goal)
    )
    return chosen, Preference(most.name, by, ahead, saved, tuple(lost))


def _leader(several: Sequence[Candidate], rows: pl.DataFrame, goal: Goal) -> Candidate:
    """The one with the best mean over all paths; of equal ones, what asks for least."""

    def gained(one: Candidate) -> float:
        return 0.0 if one == several[0] else _paired(one, several[0], rows, goal).gain

    return max(several, key=lambda one: (gained(one), [-part for part in cost(one)]))


def _is_behind(one: Candidate, leader: Candidate, rows: pl.DataFrame, goal: Goal) -> bool:
    """Whether it is surely behind, and by more than is worth a change; of buffers of other sizes,
    by more than half of that.
    """
    if one == leader:
        return False
    apart = _paired(leader, one, rows, goal)
    margin = goal.worth * (0.5 if differ_in_size(one, leader) else 1.0)
    return apart.gain > margin and (apart.low is None or apart.low > 0)


def _paired(one: Candidate, other: Candidate, rows: pl.DataFrame, goal: Goal) -> Gain:
    """The gain of one candidate over another."""
    both = rows.filter(pl.col("candidate").is_in([one.name, other.name]))
    (gain,) = found(both, [goal], "sim", baseline=other.name)
    return gain


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
    needed = math.ceil((2.2 * spread / wanted) ** 2) if wanted else MOST_SEEDS_EACH
    return min(max(needed, SEEDS), MOST_SEEDS_EACH)


def harm(rows: pl.DataFrame, candidate: str) -> dict[str, Any] | None:
    """The share of its goodput that a CUBIC flow loses by a candidate, and how its latency changes;
    `rows` have its goodput in `beside` and its latency in `delay_beside`.
    """
    several = found(rows, [BESIDE, DELAY_BESIDE], "sim")
    told = {one.goal: one for one in several if one.candidate == candidate}
    if (one := told.get(BESIDE.name)) is None:
        return None
    return {
        "harm": -one.gain,
        "low": None if one.high is None else -one.high,
        "high": None if one.low is None else -one.low,
        "n": one.n,
        "of": one.of,
        "seeds": one.seeds,
        "today": one.today,
        "advised": one.advised,
        "latency": told[DELAY_BESIDE.name].plain() if DELAY_BESIDE.name in told else None,
    }


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
        low, high = None, None
        if len(several) >= FEWEST_OF_CELLS or len(set(several)) == 1:
            low, high = limits(several, to, LEVEL_OF_CELLS, "normal")
        result.append(
            {"point": str(point), "candidate": str(name), "gain": to(gain), "low": low,
             "high": high, "n": len(several), "today": sum(other) / len(other),
             "advised": sum(one) / len(one)}
        )  # fmt: skip
    return result
