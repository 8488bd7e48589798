"""Converts swept values to numbers: quantities as experiments write them, in one unit per kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from tcplab import _polars as pl

NUMBER = re.compile(r"\s*([+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)\s*(\S*)\s*")

POWERS = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12}

TIMES = {"ps": "1e-9", "ns": "1e-6", "us": "1e-3", "µs": "1e-3", "ms": "1", "s": "1e3"}

UNITS: dict[str, tuple[str, Decimal]] = {
    **{
        f"{prefix}bit/s": ("mbit_s", Decimal(10) ** (power - 6)) for prefix, power in POWERS.items()
    },
    # The short form of rates.
    **{
        prefix: ("mbit_s", Decimal(10) ** (power - 6)) for prefix, power in POWERS.items() if prefix
    },
    **{unit: ("ms", Decimal(factor)) for unit, factor in TIMES.items()},
    "min": ("ms", Decimal(60_000)),
    "h": ("ms", Decimal(3_600_000)),
    **{f"{prefix}B": ("bytes", Decimal(10) ** power) for prefix, power in POWERS.items()},
    **{f"{p}iB": ("bytes", Decimal(1024) ** (k + 1)) for k, p in enumerate("KMGT")},
    **{unit: ("packets", Decimal(1)) for unit in ("packet", "packets")},
    **{unit: ("bdp", Decimal(1)) for unit in ("BDP", "bdp")},
    "%": ("share", Decimal("0.01")),
    "": ("number", Decimal(1)),
}
"""For each unit, the ending of the column name, and the factor to the unit of that column."""


def numbers(values: Sequence[str | None]) -> tuple[str, pl.Series] | None:
    """The ending of the column name, and the values as numbers in its unit; `None` unless all
    values are quantities of one kind.
    """
    written = [value for value in values if value is not None]
    if not written:
        return None
    if set(written) <= {"true", "false"}:
        truths = [None if value is None else value == "true" for value in values]
        return "boolean", pl.Series(truths, dtype=pl.Boolean)
    read = {value: quantity(value) for value in dict.fromkeys(written)}
    kinds = {found[0] if found is not None else None for found in read.values()}
    if kinds == {"share", "number"}:
        # Probabilities may be written as percentages or as plain numbers.
        kinds = {"share"}
    kind = kinds.pop()
    if kinds or kind is None:
        return None
    exact = {value: found[1] for value, found in read.items() if found is not None}
    is_whole = kind in ("number", "packets", "bytes") and all(
        number == number.to_integral_value() and abs(number) < 2**63 for number in exact.values()
    )
    converted = [None if value is None else exact[value] for value in values]
    if is_whole:
        return kind, pl.Series(
            [None if one is None else int(one) for one in converted], dtype=pl.Int64
        )
    return kind, pl.Series(
        [None if one is None else float(one) for one in converted], dtype=pl.Float64
    )


def number_of(given: object, kind: str) -> float | None:
    """The number of a quantity, if it is of this kind."""
    found = quantity(str(given)) if given is not None else None
    return float(found[1]) if found is not None and found[0] == kind else None


def quantity(text: str) -> tuple[str, Decimal] | None:
    """The kind of a quantity, and its number in the unit of that kind."""
    found = NUMBER.fullmatch(text)
    if found is None or found[2] not in UNITS:
        return None
    kind, factor = UNITS[found[2]]
    return kind, Decimal(found[1].replace("_", "")) * factor
