"""What goes on, but may not be what was meant."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence, Sized
from pathlib import Path
from types import FrameType

from tcplab import _core

PACKAGE = f"{Path(__file__).parent}{os.sep}"


class TcplabWarning(UserWarning):
    """Something goes on, but may not be what was meant: an experiment with a setting that does
    nothing, stored results that cannot be used.
    """


def warn(message: str) -> None:
    """Warns whoever called the package, on the line of the call."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, TcplabWarning, stacklevel=level)


def warn_of(plans: Sequence[_core.Plan]) -> None:
    """Warns of what experiments say, each once: of a sweep, where it holds."""
    variants = {tuple(plan.swept): None for plan in plans}
    where: dict[str, dict[tuple[tuple[str, str], ...], None]] = {}
    for plan in plans:
        for said in plan.warnings:
            where.setdefault(said, {})[tuple(plan.swept)] = None
    for said, having in where.items():
        warn(said if len(having) == len(variants) else f"{said} ({_named(list(having), variants)})")


def _named(having: Sequence[Sequence[tuple[str, str]]], variants: Sized) -> str:
    """Which variants something is said of."""
    first = ", ".join(f"{path} = {value}" for path, value in having[0])
    if len(having) == 1:
        return f"where {first}"
    return f"in {len(having)} of {len(variants)} variants, first where {first}"
