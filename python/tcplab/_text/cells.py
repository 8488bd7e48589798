"""Cells of tables: the heads of columns, and numbers as text."""

from __future__ import annotations

import math
from typing import NamedTuple

LEFT, RIGHT = "<", ">"

MOST_ROWS = 60
"""The number of rows that fit on a screen."""


class Column(NamedTuple):
    """The head of a column: its name and its unit, on two lines."""

    name: str
    align: str = RIGHT
    unit: str = ""


def number(value: float | None, decimals: int, *, sign: str = "") -> str:
    """A number with this many decimals. Zero has no sign; a missing or infinite value is a dash."""
    if value is None or not math.isfinite(value):
        return "-"
    is_zero = round(value, decimals) == 0
    return f"{0.0 if is_zero else value:{'' if is_zero else sign}.{decimals}f}"


def decimals(value: float, digits: int) -> int:
    """The number of decimals that shows this many significant digits; never more than `digits`."""
    if not math.isfinite(value):
        return 0
    # 0.9996 with three digits is 1.00.
    size = abs(float(f"{value:.{max(digits - 1, 0)}e}"))
    before_point = len(str(int(size))) if size >= 1 else 0
    return max(digits - before_point, 0)
