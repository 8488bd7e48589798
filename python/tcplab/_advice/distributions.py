"""Distributions of the values of a key: a value for each share of the probability below it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any

from tcplab._advice.quantities import Quantities
from tcplab._core import ConfigError

EMPIRICAL = "empirical"
"""The kind whose values are listed."""

LEAST_LEFT = 1e-6
"""Of a distribution that is cut off, so much of the probability must be left."""

TINY = 2.0**-53
"""Shares are so far from 0 and 1, where some distributions have no value."""

_Function = Callable[[float], float]


class Distribution:
    """The values of a distribution, cut off below and above."""

    def __init__(self, key: str, given: Mapping[str, Any]) -> None:
        """Reads it as `[advise.over]` has it.

        Raises:
            ConfigError: The quantities are of different kinds, or nothing is left of it.
        """
        place = f"over: {key}"
        kind = str(given["kind"])
        names = [name for name in given if name not in ("kind", "sigma", "shape")]
        self._written = Quantities(place, {name: given[name] for name in names})
        of = self._written.numbers
        for name in ("mean", "median", "deviation"):
            if name in of and of[name] <= 0:
                raise ConfigError(f"{place}.{name}: {given[name]} is not more than zero")
        if kind == "pareto" and of["least"] <= 0:
            raise ConfigError(f"{place}.least: {given['least']} is not more than zero")
        # No key takes less than nothing, and no share is more than all.
        least = max(of.get("least", 0.0), 0.0)
        most = of.get("most", 1.0 if self._written.kind == "share" else math.inf)
        if not least < most:
            raise ConfigError(
                f"{place}: the least value, {given.get('least', 0)}, is not less than the most, "
                f"{given.get('most', '100 %')}"
            )
        below, self._value = _functions(kind, of, given, least, most)
        self._from, self._to = below(least), below(most) if math.isfinite(most) else 1.0
        if self._to - self._from < LEAST_LEFT:
            raise ConfigError(
                f"{place}: hardly any of the distribution lies between {given.get('least', 0)} and "
                f"{given.get('most', '100 %')}"
            )
        self._least, self._most = least, most

    def at(self, share: float) -> Any:
        """The value below which so much of the probability lies, as an experiment has it."""
        part = self._from + (self._to - self._from) * min(max(share, TINY), 1 - TINY)
        value = self._value(min(max(part, TINY), 1 - TINY))
        return self._written.text(min(max(value, self._least), self._most))


def _functions(
    kind: str, of: Mapping[str, float], given: Mapping[str, Any], least: float, most: float
) -> tuple[_Function, _Function]:
    """The probability below a value, and the value by the probability below it."""
    if kind == "uniform":
        span = most - least
        return lambda value: (value - least) / span, lambda part: least + part * span
    if kind == "normal":
        normal = NormalDist(of["mean"], of["deviation"])
        return normal.cdf, normal.inv_cdf
    if kind == "lognormal":
        logs = NormalDist(math.log(of["median"]), float(given["sigma"]))
        return (
            lambda value: logs.cdf(math.log(value)) if value > 0 else 0.0,
            lambda part: math.exp(logs.inv_cdf(part)),
        )
    if kind == "pareto":
        low, shape = of["least"], float(given["shape"])
        return (
            lambda value: -math.expm1(shape * math.log(low / value)),
            lambda part: low * math.exp(-math.log1p(-part) / shape),
        )
    mean = of["mean"]
    return (
        lambda value: -math.expm1(-value / mean),
        lambda part: -mean * math.log1p(-part),
    )
