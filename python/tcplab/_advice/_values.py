"""Converts values of experiment files to the units of Linux."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tcplab._core import ConfigError
from tcplab._experiment.quantities import quantity

WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
"""Words that need no quotes in a shell script."""

MOST = 2**31 - 1
"""The largest number of most sysctls, which are signed 32-bit integers."""


def wrong(place: str, value: object, allowed: str) -> ConfigError:
    """An error about a value, with its place and the allowed values."""
    return ConfigError(f"{place}: {value!r} is not {allowed}")


def truth(place: str, value: object) -> bool:
    """A boolean."""
    if not isinstance(value, bool):
        raise wrong(place, value, "true or false")
    return value


def whole(place: str, value: object, least: int, most: int) -> int:
    """A whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise wrong(place, value, f"a whole number from {least} to {most}")
    return value


def number(place: str, value: object, least: float, most: float) -> float:
    """A number in a range; a share may also be written in percent."""
    if isinstance(value, str) and (read := quantity(value)) is not None:
        kind, amount = read
        value = float(amount) if kind in ("number", "share") else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise wrong(place, value, f"a number from {least:g} to {most:g}")
    return float(value)


def word(place: str, value: object) -> str:
    """A name without characters that a shell treats specially."""
    if not isinstance(value, str) or not WORD.fullmatch(value):
        raise wrong(place, value, "a name of letters, digits and . _ + -")
    return value


def choice(place: str, value: object, choices: Mapping[str, str]) -> str:
    """One of several words, translated."""
    if not isinstance(value, str) or value not in choices:
        raise wrong(place, value, "one of " + ", ".join(map(repr, choices)))
    return choices[value]


def size(place: str, value: object, most: int = MOST) -> int:
    """An amount of data, in bytes."""
    return _rounded(place, value, ("bytes", "an amount of data, like '16 MB'"), 1, most)


def packets(place: str, value: object, most: int = MOST) -> int:
    """A size of a queue in packets."""
    return _rounded(place, value, ("packets", "a number of packets, like '1000 packets'"), 1, most)


def micros(place: str, value: object, most_s: int = 4000) -> int:
    """A time, in whole microseconds."""
    expected = ("ms", "a time, like '200 ms'")
    return _rounded(place, value, expected, 1, most_s * 1_000_000, factor=Decimal(1000))


def bits_per_second(place: str, value: object) -> int:
    """A rate, in whole bits a second."""
    expected = ("mbit_s", "a rate, like '20 Mbit/s'")
    return _rounded(place, value, expected, 8, 10**15, factor=Decimal(10**6))


def limit(place: str, value: object) -> tuple[str, int]:
    """The size of a queue: "packets" or "bytes", and how many."""
    kind, _ = _read(value) or (None, None)
    if kind == "bytes":
        return "bytes", size(place, value, 2**32 - 1)
    if kind == "packets":
        return "packets", packets(place, value, 2**32 - 1)
    raise ConfigError(
        f"{place}: {value!r} is not a size for tc; write it in packets or bytes, like "
        "'250 packets' or '64 kB' (a size in BDP or in time depends on the path)"
    )


def table(place: str, value: object) -> Mapping[str, Any]:
    """A table, with text as its keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(place, value, "a table")
    return value


def time(micros: int) -> str:
    """A time as `tc` and `ip` read it."""
    return f"{micros // 1000}ms" if micros % 1000 == 0 else f"{micros}us"


def _read(value: object) -> tuple[str, Decimal] | None:
    return quantity(value) if isinstance(value, str) else None


def _rounded(
    place: str,
    value: object,
    expected: tuple[str, str],
    least: int,
    most: int,
    *,
    factor: Decimal = Decimal(1),
) -> int:
    read = _read(value)
    if read is None or read[0] != expected[0]:
        raise wrong(place, value, expected[1])
    # Truncated, like the `linux` backend does.
    rounded = int(read[1] * factor)
    if not least <= rounded <= most:
        raise ConfigError(f"{place}: {value!r} is out of range for Linux")
    return rounded
