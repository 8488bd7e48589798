"""Confidence limits of means, quantiles, differences and ratios, for arrays of finite numbers.

Student's interval of a mean is exact for normal data, but its coverage falls to 84 % for ten values
of a log-normal distribution. The limits of a mean are therefore the outermost of up to three
intervals. Student's interval always applies. Hall's (1992), which bends Student's t by the sample's
skewness, applies where the skewness of the sample exceeds its standard error. The interval of a
log-normal mean (Zou, Huang and Zhang 2009) applies where all values have one sign and a log-normal
distribution is not clearly less likely than a normal one. For normal data the other two rarely
apply, and hardly widen the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

Array = np.ndarray[Any, np.dtype[np.float64]]
Levels = float | Array
Bools = np.ndarray[Any, np.dtype[np.bool_]]

FEWEST = 10
"""The fewest values that get an interval. Of fewer, all may come from one of two modes: with
weights 0.7 and 0.3, in 4 % of the samples of nine and 17 % of the samples of five. No interval that
suits normal data then covers the mean.
"""

SHORTFALL = 0.0125
"""The shortfall of coverage that the range of all values may have for a median: five values cover
it with 93.75 %.
"""

WIDENED = 0.05
"""Such an interval of a median is widened at both ends by this share of the range. It then covers
95 % for normal, log-normal and uniform data, and at least 93.75 % for all data.
"""

CORRELATED = 0.7
"""From this correlation on, the limits of two means say less about their difference than the pairs
do.
"""

LEAST_P = 1e-10
"""Smaller p-values are reported as this one."""

GRID, ROUNDS = 33, 4
"""The number of places that a search evaluates together, and how often it continues between two of
them.
"""


def array(values: Any) -> Array:
    """Numbers in the form that this module uses."""
    return np.asarray(values, dtype=np.float64)


def estimate(values: Array, q: float | None) -> float:
    """The mean, the median, or the quantile by nearest rank."""
    if q is None:
        return float(values.mean())
    ordered = np.sort(values)
    if q == 0.5:
        return float((ordered[(len(values) - 1) // 2] + ordered[len(values) // 2]) / 2)
    return float(ordered[max(math.ceil(round(q * len(values), 9)), 1) - 1])


def limits_of_mean(values: Array, level: float, *, is_normal: bool) -> tuple[float, float, bool]:
    """The limits of a mean, and whether they are Student's."""
    rows = values[np.newaxis, :]
    plain = student(rows, level)
    low, high = plain if is_normal else of_means(rows, level)
    return float(low[0]), float(high[0]), bool(low[0] == plain[0][0] and high[0] == plain[1][0])


def of_groups(
    groups: Sequence[Array], q: float | None, level: float
) -> list[tuple[float, float] | None]:
    """The limits of the mean, or of a quantile, of each group; `None` for a group of too few
    values.

    Bit for bit those of `statistics.interval`, for many groups at once.
    """
    limits: list[tuple[float, float] | None] = [None] * len(groups)
    alike: dict[int, list[int]] = {}
    for place, values in enumerate(groups):
        if q is not None and len(values) >= fewest_of_quantile(q, level):
            limits[place] = limits_of_quantile(values, q, level)
        elif q is None and len(values) >= FEWEST:
            alike.setdefault(len(values), []).append(place)
        elif q is None and len(values) > 1 and float(values.min()) == float(values.max()):
            limits[place] = float(values[0]), float(values[0])
    for places in alike.values():
        low, high = of_means(np.stack([groups[place] for place in places]), level)
        for place, *pair in zip(places, low.tolist(), high.tolist(), strict=True):
            limits[place] = (pair[0], pair[1])
    return limits


def of_means(rows: Array, level: Levels) -> tuple[Array, Array]:
    """The limits of the mean of each row, at one level or at one level per row."""
    low, high = student(rows, level)
    n, (centred, variance) = rows.shape[1], _moments(rows)
    spread = np.where(variance > 0, variance, 1.0)
    skewness = np.where(variance > 0, (centred**3).mean(axis=1) / spread**1.5, 0.0)
    error = math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
    low, high = _outermost(low, high, *_hall(rows, skewness, level), abs(skewness) > error)
    low, high = _outermost(low, high, *_lognormal(rows, level))
    # Negative values are mirrored.
    mirrored_low, mirrored_high, applies = _lognormal(-rows, level)
    return _outermost(low, high, -mirrored_high, -mirrored_low, applies)


def student(rows: Array, level: Levels) -> tuple[Array, Array]:
    """Student's limits of the mean of each row."""
    half = half_widths(rows.std(axis=1, ddof=1), np.full(len(rows), rows.shape[1]), level)
    mean = rows.mean(axis=1)
    return mean - half, mean + half


def half_widths(deviations: Array, counts: Any, level: Levels) -> Array:
    """Half the width of Student's interval of a mean: t * s / sqrt(n), with n - 1 degrees of
    freedom.
    """
    counts = np.asarray(counts, dtype=np.float64)
    quantiles: Array = special.stdtrit(counts - 1, (1 + level) / 2)
    return np.asarray(quantiles * deviations / np.sqrt(counts))


def _moments(rows: Array) -> tuple[Array, Array]:
    centred = rows - rows.mean(axis=1)[:, np.newaxis]
    return centred, (centred**2).mean(axis=1)


def _outermost(
    low: Array, high: Array, other_low: Array, other_high: Array, applies: Bools
) -> tuple[Array, Array]:
    return (
        np.where(applies, np.minimum(low, other_low), low),
        np.where(applies, np.maximum(high, other_high), high),
    )


def _hall(rows: Array, skewness: Array, level: Levels) -> tuple[Array, Array]:
    """Hall's limits: Hall's transformation makes Student's t symmetrical; its inverse is taken at
    the quantiles of t.
    """
    n = rows.shape[1]
    skewness = skewness * math.sqrt(n * (n - 1)) / (n - 2)
    skewness = np.where(abs(skewness) < 1e-6, 1e-6, skewness)
    quantile = special.stdtrit(n - 1, (1 + level) / 2) / math.sqrt(n)

    def undone(at: Any) -> Array:
        return np.asarray(3 / skewness * (np.cbrt(1 + skewness * (at - skewness / (6 * n))) - 1))

    mean, deviation = rows.mean(axis=1), rows.std(axis=1, ddof=1)
    return mean - deviation * undone(quantile), mean - deviation * undone(-quantile)


def _lognormal(rows: Array, level: Levels) -> tuple[Array, Array, Bools]:
    """The limits of log-normal means, and the rows to which they apply: all values are above zero,
    and the likelihood is at least 1/e of that of a normal distribution.
    """
    n = rows.shape[1]
    is_positive = (rows > 0).all(axis=1)
    logs = np.log(np.where(rows > 0, rows, 1.0))
    centre, variance = logs.mean(axis=1), logs.var(axis=1, ddof=1)
    z = special.ndtri((1 + level) / 2)
    above = (n - 1) / special.chdtri(n - 1, (1 - level) / 2)
    below = (n - 1) / special.chdtri(n - 1, (1 + level) / 2)
    of_centre = z * z * variance / n
    middle = centre + variance / 2
    low = middle - np.sqrt(of_centre + (variance / 2 * (1 - above)) ** 2)
    high = middle + np.sqrt(of_centre + (variance / 2 * (below - 1)) ** 2)
    deviations, spread = logs.std(axis=1), rows.std(axis=1)
    is_spread = is_positive & (deviations > 0) & (spread > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = n * (np.log(spread) - np.log(deviations)) - logs.sum(axis=1)
    # Greater exponents overflow to infinity.
    high = np.exp(np.minimum(high, 700.0))
    return np.exp(low), high, is_spread & (likelihood > -1)


def difference_of_two(
    points: tuple[float, float],
    limits: tuple[tuple[Any, Any], tuple[Any, Any]],
    correlation: float = 0.0,
) -> tuple[float, Any, Any]:
    """A difference and its limits, from the limits of both parts (Zou and Donner 2008). Limits may
    be arrays with one value per level.
    """
    (one, other), ((l1, u1), (l2, u2)) = points, limits
    apart = one - other

    def reach(ours: Any, theirs: Any) -> Any:
        squares = ours * ours + theirs * theirs - 2 * correlation * ours * theirs
        return np.sqrt(np.maximum(squares, 0.0))

    return apart, apart - reach(one - l1, u2 - other), apart + reach(u1 - one, other - l2)


def ratio_of_two(
    points: tuple[float, float],
    limits: tuple[tuple[float, float], tuple[float, float]],
    correlation: float = 0.0,
) -> tuple[float, float, float] | None:
    """A ratio and its limits, from the limits of both parts (Donner and Zou 2012): at a limit of
    the ratio, the difference to that multiple of the other part has a limit at zero. `None` where
    there are no limits.
    """
    (one, other), ((l1, u1), (l2, u2)) = points, limits
    if other < 0:
        return ratio_of_two((-one, -other), ((-u1, -l1), (-u2, -l2)), correlation)
    if l2 <= 0:
        return None

    def root(ours: float, theirs: float, side: int) -> float | None:
        a = other * other - theirs * theirs
        b = one * other - correlation * ours * theirs
        c = one * one - ours * ours
        inner = b * b - a * c
        if inner < 0 or a == 0 or (a < 0 and c <= 0):
            return None
        return (b + side * math.sqrt(inner)) / a

    low, high = root(one - l1, u2 - other, -1), root(u1 - one, other - l2, 1)
    return None if low is None or high is None else (one / other, low, high)


def correlation(one: Array, other: Array) -> float:
    """Pearson's correlation; 0 where one side does not vary."""
    one, other = one - one.mean(), other - other.mean()
    squares = float((one * one).sum() * (other * other).sum())
    return float((one * other).sum()) / math.sqrt(squares) if squares > 0 else 0.0


def paired_difference(
    values: Array, baseline: Array, levels: Array, *, is_normal: bool
) -> tuple[Array, Array]:
    """The limits of the mean difference of pairs, at each of the levels.

    These are the limits of the mean of the differences. Where pairs are weakly correlated, the
    limits from both means count too: they hold for skewed data whose differences do not look
    skewed.
    """
    low, high = _repeated(values - baseline, levels, is_normal)
    r = correlation(values, baseline)
    if is_normal or r >= CORRELATED:
        return low, high
    points = float(values.mean()), float(baseline.mean())
    limits = _repeated(values, levels, False), _repeated(baseline, levels, False)
    _, other_low, other_high = difference_of_two(points, limits, r)
    return np.minimum(low, other_low), np.maximum(high, other_high)


def _repeated(values: Array, levels: Array, is_normal: bool) -> tuple[Array, Array]:
    """The limits of a mean at each of the levels."""
    rows = np.tile(values, (len(levels), 1))
    return student(rows, levels) if is_normal else of_means(rows, levels)


def paired_ratio(
    values: Array, baseline: Array, level: float, *, is_normal: bool
) -> tuple[float, float] | None:
    """The limits of the ratio of the means of pairs: the multiples of the baseline from which the
    mean difference cannot be told from zero (Fieller 1954), or the limits from both means where
    these lie further out. `None` where there are no limits.
    """
    points, limits = _both(values, baseline, level, is_normal)
    if points[1] == 0 or limits[1][0] <= 0 <= limits[1][1]:
        return None
    plain = ratio_of_two(points, limits, correlation(values, baseline))
    if is_normal:
        return None if plain is None else plain[1:]
    centre = points[0] / points[1]

    def holds(multiples: Array) -> Bools:
        low, high = of_means(values - multiples[:, np.newaxis] * baseline, level)
        return (low <= 0) & (high >= 0)

    low, high = _furthest(holds, centre, -1), _furthest(holds, centre, 1)
    if plain is None or low is None or high is None:
        return None
    return min(low, plain[1]), max(high, plain[2])


def _both(
    values: Array, baseline: Array, level: float, is_normal: bool = False
) -> tuple[tuple[float, float], tuple[tuple[float, float], tuple[float, float]]]:
    (l1, u1, _), (l2, u2, _) = (
        limits_of_mean(part, level, is_normal=is_normal) for part in (values, baseline)
    )
    return (float(values.mean()), float(baseline.mean())), ((l1, u1), (l2, u2))


def _furthest(holds: Callable[[Array], Bools], centre: float, side: int) -> float | None:
    """The distance from the centre up to which a condition holds; `None` if it has no end."""
    steps = array((abs(centre) or 1.0) * 2.0 ** np.arange(-20, 31))
    failing = np.flatnonzero(~holds(centre + side * steps))
    if len(failing) == 0:
        return None
    first = int(failing[0])
    inside, outside = float(steps[first - 1]) if first else 0.0, float(steps[first])
    for _ in range(ROUNDS):
        steps = array(np.linspace(inside, outside, GRID))
        first = max(int(np.argmin(holds(centre + side * steps)[1:])) + 1, 1)
        inside, outside = float(steps[first - 1]), float(steps[first])
    return centre + side * inside


def limits_of_quantile(values: Array, q: float, level: float) -> tuple[float, float]:
    """The values at the ranks that cover a quantile with this level, whatever the distribution."""
    ordered = np.sort(values)
    lower, upper = _ranks(len(values), q, level) or (1, len(values))
    low, high = float(ordered[lower - 1]), float(ordered[upper - 1])
    if _coverage(len(values), q, lower, upper) < level:
        widened = WIDENED * (high - low)
        return low - widened, high + widened
    return low, high


def _coverage(n: int, q: float, lower: int, upper: int) -> float:
    """The probability that a quantile lies between two ranks: at least `lower` values are below it,
    and fewer than `upper`.
    """
    below = float(special.bdtr(upper - 1, n, q))
    return below - float(special.bdtr(lower - 1, n, q))


@lru_cache(maxsize=1024)
def _ranks(n: int, q: float, level: float) -> tuple[int, int] | None:
    """The closest ranks, from 1, that cover a quantile with this level; of equally close ones,
    those with the best coverage. `None` if even the range of all values does not.
    """
    below: Array = special.bdtr(np.arange(n, dtype=np.float64), n, q)
    best: tuple[int, float, int] | None = None
    upper = 1
    for lower in range(1, n + 1):
        upper = max(upper, lower)
        while upper <= n and below[upper - 1] - below[lower - 1] < level:
            upper += 1
        if upper > n:
            break
        found = (upper - lower, -(below[upper - 1] - below[lower - 1]), lower)
        best = found if best is None else min(best, found)
    return None if best is None else (best[2], best[2] + best[0])


@lru_cache(maxsize=256)
def fewest_of_quantile(q: float, level: float) -> int:
    """The fewest values that allow an interval of a quantile."""
    n = 2
    while _coverage(n, q, 1, n) < level - (SHORTFALL if q == 0.5 else 0.0):
        n += 1
    return n


def effect(apart: Array) -> float | None:
    """Cohen's d_z of paired differences with Hedges' correction."""
    n = len(apart)
    deviation = float(apart.std(ddof=1)) if n > 1 else 0.0
    if deviation == 0:
        return None
    freedom = n - 1
    # Hedges 1981: Gamma(m/2) / (sqrt(m/2) * Gamma((m - 1)/2)); undefined for one degree of freedom.
    logs = math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2) if freedom > 1 else -math.inf
    unbiased = math.exp(logs) / math.sqrt(freedom / 2)
    return float(apart.mean()) / deviation * unbiased


def runs_needed(apart: Array, margin: float, power: float) -> int | None:
    """The number of pairs with which a test of this power shows that there is no difference of the
    margin, if there is none.
    """
    if len(apart) < 2 or margin <= 0:
        return None
    deviation = float(apart.std(ddof=1))
    if deviation == 0:
        return len(apart)

    def is_enough(n: int) -> bool:
        shift = margin * math.sqrt(n) / deviation
        # One of the two tests fails where t exceeds its quantile despite the shift against it.
        quantile = float(special.stdtrit(n - 1, LEVEL_OF_TESTS))
        fails = float(special.nctdtr(n - 1, -shift, -quantile))
        return 2 * fails - 1 >= power

    most = 3
    while not is_enough(most):
        most *= 2
        if most > 10**7:
            return None
    least = max(most // 2, 2)
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (least, middle) if is_enough(middle) else (middle, most)
    return most


LEVEL_OF_TESTS = 0.95


def least(is_seen: Callable[[Array], Bools], most: float) -> float:
    """The least p, at most `most`, at which an effect is seen, provided it is seen at all greater
    ones.
    """
    low, high = math.log(LEAST_P), math.log(most)
    for _ in range(ROUNDS):
        places = array(np.linspace(low, high, GRID))
        # The sentinel at the end is the result of the round before, or "not seen".
        first = int(np.argmax(np.append(is_seen(np.exp(places[:-1])), True)))
        if first == 0:
            break
        low, high = float(places[first - 1]), float(places[first])
    else:
        return math.exp(high)
    return math.exp(low)


def warm_up(values: Array, batch: int) -> int | None:
    """The place at which MSER-5 cuts a series."""
    batches = len(values) // batch
    if batches < 2:
        return None
    means = values[: batches * batch].reshape(batches, batch).mean(axis=1)
    errors = [float(((rest := means[cut:]) - rest.mean()).dot(rest - rest.mean())) / len(rest) ** 2
              for cut in range(batches)]  # fmt: skip
    # The last few batches agree by chance.
    cut = min(range(max(batches - 5, 1)), key=lambda place: errors[place])
    return cut * batch if cut <= batches // 2 else None
