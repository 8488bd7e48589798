"""Fits families of distributions to positive numbers by maximum likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Numbers = NDArray[np.float64]

FEWEST = 5
"""The fewest values to which a family is fitted."""

CLOSE = 0.02
"""A family this close (Kolmogorov-Smirnov distance) fits, however many values there are."""

SAME = 0.01
"""Values count as constant within 1 % of their median."""

TERMS = 200
"""The most values of an empirical distribution."""


@dataclass(frozen=True)
class Fit:
    """A family with its fitted parameters."""

    family: str
    """`constant`, `exponential`, `lognormal`, `pareto` or `weibull`."""
    parameters: Mapping[str, float]
    """Parameters by name. Scale parameters have the unit of the values."""
    distance: float
    """The Kolmogorov-Smirnov distance between the family and the values."""
    mean: float
    """The mean of the fitted distribution."""

    def said(self) -> str:
        """The parameters as text."""
        return ", ".join(
            f"{name} {value:.0f}" if value >= 1000 else f"{name} {value:.4g}"
            for name, value in self.parameters.items()
        )


def fits(values: Numbers) -> list[Fit]:
    """Every family, the closest first. Zeros count in distances only: no family has them."""
    data = np.sort(values[values > 0])
    zeros = len(values) - len(data)
    if len(data) < FEWEST:
        return []
    constant = _constant(data, zeros)
    if constant.distance < CLOSE / 4:
        return [constant]
    made = [
        constant,
        *(make(data, zeros) for make in (_exponential, _lognormal, _pareto, _weibull)),
    ]
    # Equal distances keep the order of families, which is simplest first.
    return sorted((fit for fit in made if fit is not None), key=lambda fit: fit.distance)


def chosen(every: list[Fit], values: Numbers) -> Fit | None:
    """The chosen family among those that fit: the one with the fewest parameters, then the closest.
    `None` if none fits.

    A family fits within the distance that samples from it keep in 19 of 20 cases when parameters
    are fitted (Lilliefors 1967: 0.886 / sqrt(n); Stephens 1974 for the exponential family, 1.094),
    and always within `CLOSE`.
    """
    root = math.sqrt(max(len(values), 1))
    fitting = [
        fit
        for fit in every
        if fit.distance <= max(CLOSE, (1.094 if fit.family == "exponential" else 0.886) / root)
    ]
    return min(fitting, key=lambda fit: (len(fit.parameters), fit.distance), default=None)


def empirical(values: Numbers) -> Numbers:
    """At most `TERMS` equally likely values with the mean of all values: the means of equal shares
    of the sorted values.
    """
    data = np.sort(values)
    if len(data) <= TERMS:
        return data
    # The cumulative sum, interpolated between values.
    sums = np.concatenate([[0.0], np.cumsum(data)])
    places = np.linspace(0, len(data), TERMS + 1)
    parts: Numbers = np.diff(np.interp(places, np.arange(len(data) + 1), sums))
    return parts * (TERMS / len(data))


def is_poisson(gaps: Numbers) -> bool:
    """Whether arrivals with these gaps may be a Poisson process: the gaps are exponential and
    independent, each tested at 1 %.

    Exponential: Stephens (1974, EDF statistics for goodness of fit, with unknown mean).
    Independent: the correlation of each gap with the next.
    """
    n = len(gaps)
    if n < FEWEST or gaps.mean() <= 0:
        return False
    data = np.sort(gaps)
    distance = ks(data, lambda x: -np.expm1(-x / data.mean()))
    root = math.sqrt(n)
    is_exponential = (distance - 0.2 / n) * (root + 0.26 + 0.5 / root) <= 1.308
    return bool(is_exponential and abs(following(gaps)) <= 2.576 / root)


def is_poisson_by_counts(counts: Numbers) -> bool:
    """Whether arrivals with these counts per period may be a Poisson process: their variance equals
    their mean, tested at 1 % (Fisher's index of dispersion).
    """
    if len(counts) < FEWEST or counts.mean() <= 0:
        return False
    index = float(np.sum((counts - counts.mean()) ** 2) / counts.mean())
    # The lower tail probability, tested on both sides.
    share = float(special.chdtr(len(counts) - 1, index))
    return 0.005 <= share <= 0.995


def following(gaps: Numbers) -> float:
    """The correlation of each value with the next, from -1 to 1; 0 if nothing varies."""
    around = gaps - gaps.mean()
    spread = float(np.dot(around, around))
    return float(np.dot(around[:-1], around[1:])) / spread if spread > 0 else 0.0


def ks(data: Numbers, distribution: Callable[[Numbers], Numbers], zeros: int = 0) -> float:
    """The largest distance between the distribution function of sorted values and `zeros` zeros,
    and a continuous distribution of positive numbers.
    """
    values, counts = np.unique(data, return_counts=True)
    number = len(data) + zeros
    above = (zeros + np.cumsum(counts)) / number
    below = above - counts / number
    there = distribution(values)
    return float(max(np.max(above - there), np.max(there - below), zeros / number))


def ks_between(one: Numbers, other: Numbers) -> float:
    """The largest distance between the distribution functions of two samples."""
    one, other = np.sort(one), np.sort(other)
    every = np.concatenate([one, other])
    shares = [np.searchsorted(data, every, side="right") / len(data) for data in (one, other)]
    return float(np.max(np.abs(shares[0] - shares[1])))


def _constant(data: Numbers, zeros: int) -> Fit:
    value = float(np.median(data))
    below = zeros + np.count_nonzero(data < value * (1 - SAME))
    above = np.count_nonzero(data > value * (1 + SAME))
    return Fit("constant", {"value": value}, max(below, above) / (len(data) + zeros), value)


def _exponential(data: Numbers, zeros: int) -> Fit:
    mean = float(data.mean())
    distance = ks(data, lambda x: -np.expm1(-x / mean), zeros)
    return Fit("exponential", {"mean": mean}, distance, mean)


def _lognormal(data: Numbers, zeros: int) -> Fit | None:
    logs = np.log(data)
    middle, sigma = float(logs.mean()), float(logs.std())
    if sigma < 1e-9:
        return None
    distance = ks(data, lambda x: special.ndtr((np.log(x) - middle) / sigma), zeros)
    mean = math.exp(min(middle + sigma**2 / 2, 700))
    return Fit("lognormal", {"median": math.exp(middle), "sigma": sigma}, distance, mean)


def _pareto(data: Numbers, zeros: int) -> Fit | None:
    """The Pareto distribution truncated to the smallest and the largest value: Aban, Meerschaert
    and Panorska 2006, Parameter estimation for the truncated Pareto distribution.
    """
    low, high = float(data[0]), float(data[-1])
    if high <= low:
        return None
    ratio = math.log(high / low)
    over = float(np.log(data / low).mean())

    def slope(shape: float) -> float:
        """The derivative of the log-likelihood per value, which falls as the shape grows."""
        return 1 / shape - ratio / math.expm1(min(shape * ratio, 700)) - over

    # At a shape of 0, the mean of the logarithms is half of their range.
    if over >= ratio / 2:
        return None
    small, large = 1e-6 / ratio, 1e3 / over
    for _ in range(200):
        shape = (small + large) / 2
        small, large = (shape, large) if slope(shape) > 0 else (small, shape)
    whole = -math.expm1(-shape * ratio)
    distance = ks(data, lambda x: -np.expm1(-shape * np.log(x / low)) / whole, zeros)
    parameters = {"shape": shape, "min": low, "max": high}
    return Fit("pareto", parameters, distance, pareto_mean(shape, low, high))


def pareto_mean(shape: float, low: float, high: float) -> float:
    """The mean of a Pareto distribution truncated to two values."""
    ratio = math.log(high / low)
    if ratio <= 0:
        return low
    power = 1 - shape
    # The integral of x times the density; a shape of 1 is a special case.
    area = ratio if abs(power) < 1e-9 else math.expm1(power * ratio) / power
    return shape * low * area / -math.expm1(-shape * ratio)


def _weibull(data: Numbers, zeros: int) -> Fit | None:
    logs = np.log(data / data.max())
    if logs.std() < 1e-9:
        return None
    middle = float(logs.mean())

    def slope(shape: float) -> float:
        """The derivative of the log-likelihood per value at the best scale, which falls as the
        shape grows.
        """
        powers = np.exp(shape * logs)
        return 1 / shape + middle - float(np.dot(powers, logs) / powers.sum())

    small, large = 1e-3, 1e3
    for _ in range(60):
        shape = math.sqrt(small * large)
        small, large = (shape, large) if slope(shape) > 0 else (small, shape)
    scale = float(data.max() * np.mean(np.exp(shape * logs)) ** (1 / shape))
    distance = ks(data, lambda x: -np.expm1(-((x / scale) ** shape)), zeros)
    mean = scale * math.gamma(1 + 1 / shape) if shape > 0.01 else math.inf
    return Fit("weibull", {"shape": shape, "scale": scale}, distance, mean)
