"""The paths and loads that advice is to hold for: points of the ranges that are asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from tcplab._core import ConfigError
from tcplab._experiment.quantities import numbers

POINTS = 16
"""So many paths are drawn from ranges."""

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)

WIDE = 5
"""Ends of a range with more than this ratio are spread by their logarithm."""

UNITS = {
    "mbit_s": "Mbit/s", "ms": "ms", "bytes": "B", "packets": "packets", "bdp": "BDP",
}  # fmt: skip


def points(over: Mapping[str, Any], number: int = POINTS) -> list[dict[str, Any]]:
    """The values of each point, by key. Lists alone give all combinations, where these are not
    more than `number`. Otherwise points are those of Halton's sequence, which fills a range evenly
    and draws nothing.

    Raises:
        ConfigError: A range is none.
    """
    if not over:
        return [{}]
    if len(over) > len(PRIMES):
        raise ConfigError(f"over: {len(over)} ranges are more than {len(PRIMES)}")
    axes = {key: _axis(key, given) for key, given in over.items()}
    lists = [axis for axis in axes.values() if isinstance(axis, list)]
    if len(lists) == len(axes) and math.prod(map(len, lists)) <= number:
        return [dict(zip(axes, values, strict=True)) for values in product(*lists)]
    return [
        {
            key: _at(axis, _halton(place, base))
            for (key, axis), base in zip(axes.items(), PRIMES, strict=False)
        }
        for place in range(1, number + 1)
    ]


def _at(axis: list[Any] | _Range, share: Fraction) -> Any:
    return axis[int(share * len(axis))] if isinstance(axis, list) else axis.at(share)


class _Range:
    """All values between two."""

    def __init__(self, key: str, ends: Mapping[str, Any]) -> None:
        texts = [str(ends["from"]), str(ends["to"])]
        read = numbers(texts)
        if read is None or read[0] == "boolean":
            raise ConfigError(
                f"over: {key}: {texts[0]} and {texts[1]} are not two quantities of one kind"
            )
        self.kind = read[0]
        self.low, self.high = map(float, read[1])
        if not self.low < self.high:
            raise ConfigError(f"over: {key}: {texts[0]} is not less than {texts[1]}")
        self.is_whole = self.kind in ("packets", "bytes") or (
            self.kind == "number" and all(isinstance(one, int) for one in ends.values())
        )

    def at(self, share: Fraction) -> Any:
        """The value at a share of the way."""
        part = float(share)
        if self.low > 0 and self.high / self.low > WIDE:
            value = self.low * (self.high / self.low) ** part
        else:
            value = self.low + (self.high - self.low) * part
        value = round(value) if self.is_whole else float(f"{value:.4g}")
        unit = UNITS.get(self.kind)
        return (
            value
            if unit is None
            else f"{value:g} {unit}"
            if not self.is_whole
            else (f"{value} {unit}")
        )


def _axis(key: str, given: Any) -> list[Any] | _Range:
    if isinstance(given, Mapping):
        if given.keys() != {"from", "to"}:
            raise ConfigError(f"over: {key}: expected {{ from = ..., to = ... }}")
        return _Range(key, given)
    if isinstance(given, Sequence) and not isinstance(given, str) and given:
        return list(given)
    raise ConfigError(f"over: {key}: expected a list of values or {{ from = ..., to = ... }}")


def _halton(place: int, base: int) -> Fraction:
    """The digits of a number, mirrored behind the point."""
    share, part = Fraction(0), Fraction(1)
    while place:
        part /= base
        place, digit = divmod(place, base)
        share += digit * part
    return share
