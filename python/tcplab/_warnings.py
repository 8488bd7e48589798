"""What goes on, but may not be what was meant."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Collection, Sequence
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


Variant = tuple[tuple[str, str], ...]
"""Swept keys, each with its value."""


def warn_of(plans: Sequence[_core.Plan]) -> None:
    """Warns of what experiments say."""
    for said in warnings_of(plans):
        warn(said)


def warnings_of(plans: Sequence[_core.Plan]) -> list[str]:
    """What experiments warn of, each once: of a sweep, where it holds."""
    variants = dict.fromkeys(tuple(plan.swept) for plan in plans)
    where: dict[str, dict[Variant, None]] = {}
    for plan in plans:
        for said in plan.warnings:
            where.setdefault(said, {})[tuple(plan.swept)] = None
    return [
        said if len(having) == len(variants) else f"{said} ({_where(having, variants)})"
        for said, having in where.items()
    ]


def _where(having: Collection[Variant], variants: Collection[Variant]) -> str:
    """Which variants something is said of: by what they have in common, if no others have it."""
    first = next(iter(having))
    common = [one for one in first if all(one in variant for variant in having)]
    alike = [variant for variant in variants if all(one in variant for one in common)]
    if len(alike) == len(having):
        return f"where {_named(common)}"
    return f"in {len(having)} of {len(variants)} variants, first where {_named(first)}"


def _named(swept: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{path} = {value}" for path, value in swept)
