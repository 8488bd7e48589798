"""How certain a result is: intervals over repeated runs, differences of paired runs, and the number
of further runs that would decide.

One run is one observation: its flows and transfers share the path and are not independent. All
functions take one number per run. Equal numbers give equal results, to the last bit: no function
draws random numbers.

An `Interval` is computed by a method that keeps its level for normal, log-normal and bimodal data
alike ([how sure is it?](../how-to/answers.md)). If there are too few runs for such a method, there
is no interval, and `reason` says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeGuard

from tcplab._statistics import intervals

LEVEL = 0.95

FEWEST = intervals.FEWEST
"""The fewest runs that allow an interval of a mean, whatever the data."""

Assume = Literal["normal"]

Numbers = Iterable[float | int | None]


@dataclass(frozen=True)
class Interval:
    """An estimate, and an interval that covers the true value with probability `level`."""

    estimate: float | None
    """The mean, median, percentile, difference or ratio; `None` if there are no values."""

    low: float | None
    """The lower limit; `None` if there are too few runs."""

    high: float | None
    """The upper limit; `None` if there are too few runs."""

    n: int
    """The number of values, or of pairs."""

    level: float
    """The confidence level that was asked for."""

    method: str
    """The method by which the limits were computed; `none` if there are none."""

    reason: str | None = None
    """Why there are no limits."""

    @property
    def half_width(self) -> float | None:
        """The greater of the distances from the estimate to the limits."""
        if self.estimate is None or self.low is None or self.high is None:
            return None
        return max(self.estimate - self.low, self.high - self.estimate)


def interval(
    values: Numbers, *, of: str = "mean", level: float = LEVEL, assume: Assume | None = None
) -> Interval:
    """Returns the interval of a mean, a median or a percentile.

    Args:
        values: One number per run; missing numbers do not count.
        of: "mean", "median", or a percentile like "p95" (nearest rank).
        level: The confidence level.
        assume: "normal" if the values are known to be normally distributed: Student's interval of
            the mean then holds from 2 runs on.
    """
    numbers = _numbers(values)
    return _interval(numbers, of, level, assume)


def difference(
    values: Numbers,
    baseline: Numbers,
    *,
    paired: bool = True,
    of: str = "mean",
    level: float = LEVEL,
    assume: Assume | None = None,
) -> Interval:
    """Returns the amount by which values exceed those of a baseline.

    Args:
        values: One number per run.
        baseline: One number per run of the baseline. If paired, runs with the same seeds in the
            same order; a pair with a missing number does not count.
        paired: Whether runs are paired. Whatever both runs of a pair have in common, such as the
            drawn sizes and times of their traffic, then cancels out.
        of: "mean" or "median". For pairs, the median is that of the differences, else the
            difference of the medians. A percentile like "p95" is possible without pairs only.
        level: The confidence level.
        assume: "normal" if the values (paired: their differences) are known to be normally
            distributed.
    """
    if not paired:
        ours, theirs = _numbers(values), _numbers(baseline)
        one, other = (_interval(part, of, level, assume) for part in (ours, theirs))
        return _of_two(one, other, intervals.difference_of_two)
    if of not in ("mean", "median"):
        raise ValueError(f"of: {of!r} of pairs; there are mean and median")
    ours, theirs = _pairs(values, baseline)
    found = _interval(ours - theirs, of, level, assume)
    if of == "median" or assume is not None or found.low == found.high:
        return found
    lows, highs = intervals.paired_difference(
        ours, theirs, intervals.array([level]), is_normal=False
    )
    low, high = float(lows[0]), float(highs[0])
    method = found.method if (low, high) == (found.low, found.high) else f"{found.method}, or MOVER"
    return replace(found, low=low, high=high, method=method)


def ratio(
    values: Numbers,
    baseline: Numbers,
    *,
    paired: bool = True,
    of: str = "mean",
    level: float = LEVEL,
    assume: Assume | None = None,
) -> Interval:
    """Returns the mean of values as a multiple of the mean of a baseline: Fieller's interval.

    There is no interval if the mean of the baseline cannot be told from zero.

    Args:
        values: One number per run.
        baseline: One number per run of the baseline, as for `difference`.
        paired: Whether runs are paired.
        of: "mean"; without pairs also "median" or a percentile like "p95".
        level: The confidence level.
        assume: "normal" if the values are known to be normally distributed.
    """
    if not paired:
        ours, theirs = _numbers(values), _numbers(baseline)
        one, other = (_interval(part, of, level, assume) for part in (ours, theirs))
        return _of_two(one, other, intervals.ratio_of_two)
    ours, theirs = _pairs(values, baseline)
    if of != "mean":
        raise ValueError(f"of: a ratio of {of!r} of pairs; there is that of means")
    n = len(ours)
    below = float(theirs.mean()) if n else 0.0
    estimate = float(ours.mean()) / below if below != 0 else None
    if reason := _too_few(n, "mean", level, assume):
        return Interval(estimate, None, None, n, level, "none", reason)
    limits_of_ratio = intervals.paired_ratio(ours, theirs, level, is_normal=assume is not None)
    if limits_of_ratio is None or estimate is None:
        return Interval(estimate, None, None, n, level, "none", NEAR_ZERO)
    return Interval(estimate, *limits_of_ratio, n, level, "Fieller")


def effect(values: Numbers, baseline: Numbers) -> float | None:
    """Returns Hedges' g of paired values: the mean difference in standard deviations of the
    differences (Cohen's d_z), corrected for the bias of few pairs.

    `None` with fewer than 2 pairs, or if all differences are equal.
    """
    ours, theirs = _pairs(values, baseline)
    return intervals.effect(ours - theirs)


def p_different(
    values: Numbers, baseline: Numbers, *, assume: Assume | None = None
) -> float | None:
    """Returns the probability of a difference of paired values as great as this one if there is no
    true difference: the least 1 - level at which the interval of the difference excludes zero.

    `None` if there is no interval, or if all differences are equal.
    """
    return _p(values, baseline, assume, lambda low, high: (low > 0) | (high < 0), sides=1)


def p_same(
    values: Numbers, baseline: Numbers, margin: float, *, assume: Assume | None = None
) -> float | None:
    """Returns the probability of paired values so close together if their true means differ by more
    than the margin: two one-sided tests (Schuirmann 1987).
    """
    if margin <= 0:
        raise ValueError(f"margin: {margin:g} is not greater than 0")
    return _p(
        values, baseline, assume, lambda low, high: (-margin < low) & (high < margin), sides=2
    )


def runs_needed(
    values: Numbers, baseline: Numbers, margin: float, *, power: float = 0.8
) -> int | None:
    """Returns the number of pairs needed to decide whether there is a difference of this margin.

    If there is no difference, this many pairs show with probability `power` that it is within the
    margin; a difference of the margin is shown by fewer. The estimate uses the spread of the given
    pairs and the noncentral t distribution (Student's t of normal differences). `None` with fewer
    than 2 pairs.
    """
    ours, theirs = _pairs(values, baseline)
    return intervals.runs_needed(ours - theirs, margin, power)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Returns p-values corrected for the number of comparisons (Holm 1979): rejecting those below 5
    % is wrong anywhere among them in at most 5 % of cases. Missing values stay missing and do not
    count.
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    reached = 0.0
    for before, (p, place) in enumerate(order):
        reached = max(reached, min(1.0, (len(order) - before) * p))
        adjusted[place] = reached
    return adjusted


def warm_up(values: Sequence[float], *, batch: int = 5) -> int | None:
    """Returns how many of the first values to discard so that the rest is steady: MSER-5.

    Of all cuts between batches of five values, the one after which the rest has the least squared
    standard error of its mean (White 1997; Franklin and White 2008). `None` if that cut is in the
    second half: the series is too short to tell, or never becomes steady.
    """
    return intervals.warm_up(intervals.array(list(values)), batch)


NEAR_ZERO = "the baseline cannot be told from zero"

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


def _interval(numbers: intervals.Array, of: str, level: float, assume: Assume | None) -> Interval:
    n, q = len(numbers), _quantile(of)
    if not 0 < level < 1:
        raise ValueError(f"level: {level:g} is not between 0 and 1")
    if assume not in (None, "normal"):
        raise ValueError(f"assume: {assume!r}; there is only 'normal'")
    if n == 0:
        return Interval(None, None, None, 0, level, "none", "there are no values")
    estimate = intervals.estimate(numbers, q)
    if n > 1 and q is None and float(numbers.min()) == float(numbers.max()):
        return Interval(estimate, estimate, estimate, n, level, "all are equal")
    if reason := _too_few(n, of, level, assume):
        return Interval(estimate, None, None, n, level, "none", reason)
    if q is not None:
        low, high = intervals.limits_of_quantile(numbers, q, level)
        return Interval(estimate, low, high, n, level, "order statistics")
    low, high, is_plain = intervals.limits_of_mean(numbers, level, is_normal=assume == "normal")
    method = "Student's t" if is_plain else "Student's t, widened for skew"
    return Interval(estimate, low, high, n, level, method)


def _too_few(n: int, of: str, level: float, assume: Assume | None) -> str | None:
    """Why this many runs allow no interval; `None` if they do."""
    q = _quantile(of)
    if n < 2:
        return "one run allows none"
    if q is not None:
        fewest = intervals.fewest_of_quantile(q, level)
        of = "a median" if of == "median" else f"the {of[1:]}th percentile"
        return None if n >= fewest else f"{n} runs: {of} needs {fewest}"
    if assume is None and n < FEWEST:
        return f'{n} runs: a mean needs {FEWEST}, or assume="normal"'
    return None


def _quantile(of: str) -> float | None:
    """The quantile that a name stands for; `None` for the mean."""
    if of == "mean":
        return None
    if of == "median":
        return 0.5
    found = _PERCENTILE.fullmatch(of)
    if found is None or float(found[1]) == 0:
        raise ValueError(f"of: {of!r}; there are mean, median, and percentiles like p95")
    return float(found[1]) / 100


Combine = Callable[
    [tuple[float, float], tuple[tuple[float, float], tuple[float, float]]],
    tuple[float, float, float] | None,
]


def _of_two(one: Interval, other: Interval, combine: Combine) -> Interval:
    """The interval of a difference or ratio of two groups, from the intervals of both (MOVER)."""
    n, level = min(one.n, other.n), one.level
    if one.estimate is None or other.estimate is None:
        return Interval(None, None, None, n, level, "none", "there are no values")
    points = one.estimate, other.estimate
    limits = []
    for part in (one, other):
        if part.low is None or part.high is None:
            # The estimate needs no limits.
            alone = combine(points, ((points[0], points[0]), (points[1], points[1])))
            return Interval(alone and alone[0], None, None, n, level, "none", part.reason)
        limits.append((part.low, part.high))
    found = combine(points, (limits[0], limits[1]))
    if found is None:
        return Interval(None, None, None, n, level, "none", NEAR_ZERO)
    return Interval(*found, n, level, "MOVER")


Seen = Callable[[intervals.Array, intervals.Array], intervals.Bools]


def _p(
    values: Numbers, baseline: Numbers, assume: Assume | None, is_seen: Seen, *, sides: int
) -> float | None:
    """The least p at which the limits of the difference show an effect."""
    ours, theirs = _pairs(values, baseline)
    apart = ours - theirs
    if _too_few(len(apart), "mean", LEVEL, assume) or float(apart.min()) == float(apart.max()):
        return None

    def seen(p: intervals.Array) -> intervals.Bools:
        limits = intervals.paired_difference(
            ours, theirs, 1 - sides * p, is_normal=assume is not None
        )
        return is_seen(*limits)

    return intervals.least(seen, 1 / sides)


def _is_there(value: float | int | None) -> TypeGuard[float]:
    return value is not None and not math.isnan(value)


def _numbers(values: Numbers) -> intervals.Array:
    numbers = [float(value) for value in values if _is_there(value)]
    if any(map(math.isinf, numbers)):
        raise ValueError("values: not all are finite")
    return intervals.array(numbers)


def _pairs(values: Numbers, baseline: Numbers) -> tuple[intervals.Array, intervals.Array]:
    """The numbers of all complete pairs."""
    try:
        pairs = list(zip(values, baseline, strict=True))
    except ValueError:
        raise ValueError("values, baseline: pairs need as many of one as of the other") from None
    whole = [pair for pair in pairs if all(map(_is_there, pair))]
    return _numbers(one for one, _ in whole), _numbers(other for _, other in whole)
