"""The paths and loads that advice is to hold for: points of the ranges that are asked for."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from tcplab._advice.distributions import EMPIRICAL, Distribution
from tcplab._advice.quantities import Quantities
from tcplab._core import ConfigError

POINTS = 16
"""So many paths are drawn from ranges."""

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)

WIDE = 5
"""Ends of a range with more than this ratio are spread by their logarithm."""

EXPECTED = (
    "expected a list of values, { from = ..., to = ... }, a distribution like "
    '{ kind = "lognormal", median = ..., sigma = ... }, or { file = ... }'
)


def points(
    over: Mapping[str, Any], number: int = POINTS, seed: int = 0, first: int = 1
) -> list[dict[str, Any]]:
    """The values of each point, by key. Lists alone give all combinations, where these are not
    more than `number`. Otherwise points are those of Halton's sequence from the `first` on, which
    fills a range evenly. For distributions the sequence is shifted by a share that `seed` and the
    key give (Cranley and Patterson 1976), so that each point is a draw, and all together lie
    evenly. Equal points are one.

    Raises:
        ConfigError: A range is none.
    """
    if not over:
        return [{}]
    if len(over) > len(PRIMES):
        raise ConfigError(f"over: {len(over)} ranges are more than {len(PRIMES)}")
    axes = {key: _axis(key, given) for key, given in over.items()}
    if are_combinations(over, number):
        lists = [axis for axis in axes.values() if isinstance(axis, list)]
        return [dict(zip(axes, values, strict=True)) for values in product(*lists)]
    drawn = [
        {
            key: _at(axis, _share(axis, _halton(place, base), seed, key))
            for (key, axis), base in zip(axes.items(), PRIMES, strict=False)
        }
        for place in range(first, first + number)
    ]
    # A list, or a file of few values, has some of them several times.
    return [point for place, point in enumerate(drawn) if point not in drawn[:place]]


def are_combinations(over: Mapping[str, Any], number: int = POINTS) -> bool:
    """Whether the points are all combinations of lists."""
    lists = [given for given in over.values() if isinstance(given, list)]
    return len(lists) == len(over) and math.prod(map(len, lists)) <= number


def _at(axis: _Axis, share: Fraction) -> Any:
    return axis[int(share * len(axis))] if isinstance(axis, list) else axis.at(share)


def _share(axis: _Axis, share: Fraction, seed: int, key: str) -> Fraction:
    """The place on an axis; of what is drawn, shifted around the circle from 0 to 1."""
    if not isinstance(axis, _Drawn):
        return share
    digest = hashlib.sha256(f"{seed} {key}".encode()).digest()
    return (share + Fraction(int.from_bytes(digest[:8], "big"), 2**64)) % 1


class _Range:
    """All values between two."""

    def __init__(self, key: str, ends: Mapping[str, Any]) -> None:
        self.written = Quantities(f"over: {key}", {name: ends[name] for name in ("from", "to")})
        self.low, self.high = self.written.numbers.values()
        if not self.low < self.high:
            raise ConfigError(f"over: {key}: {ends['from']} is not less than {ends['to']}")

    def at(self, share: Fraction) -> Any:
        """The value at a share of the way."""
        part = float(share)
        if self.low > 0 and self.high / self.low > WIDE:
            return self.written.text(self.low * (self.high / self.low) ** part)
        return self.written.text(self.low + (self.high - self.low) * part)


class _Drawn:
    """Values of a distribution, or of a list of which each is as likely."""

    def __init__(self, key: str, given: Mapping[str, Any]) -> None:
        self._values = list(given["values"]) if given["kind"] == EMPIRICAL else []
        if given["kind"] == EMPIRICAL and not self._values:
            raise ConfigError(f"over: {key}: has no values")
        self._distribution = None if self._values else Distribution(key, given)

    def at(self, share: Fraction) -> Any:
        """The value below which a share of the probability lies."""
        if self._distribution is None:
            return self._values[int(share * len(self._values))]
        return self._distribution.at(float(share))


_Axis = list[Any] | _Range | _Drawn


def _axis(key: str, given: Any) -> _Axis:
    if isinstance(given, Mapping):
        if "kind" in given:
            return _Drawn(key, given)
        if given.keys() == {"from", "to"}:
            return _Range(key, given)
    elif isinstance(given, list) and given:
        return list(given)
    raise ConfigError(f"over: {key}: {EXPECTED}")


def _halton(place: int, base: int) -> Fraction:
    """The digits of a number, mirrored behind the point."""
    share, part = Fraction(0), Fraction(1)
    while place:
        part /= base
        place, digit = divmod(place, base)
        share += digit * part
    return share
