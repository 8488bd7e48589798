"""Warnings: the program continues, but perhaps not as the user intended."""

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
    """tcplab continues, but perhaps not as intended: a setting of the experiment has no effect, or
    stored results cannot be used.
    """


def warn(message: str) -> None:
    """Warns on the line of the call into the package."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, TcplabWarning, stacklevel=level)


Variant = tuple[tuple[str, str], ...]
"""Swept keys, each with its value."""


def warn_of(plans: Sequence[_core.Plan]) -> None:
    """Issues the warnings of an experiment's plans."""
    for said in warnings_of(plans):
        warn(said)


def warnings_of(plans: Sequence[_core.Plan]) -> list[str]:
    """The warnings of the plans, each once; in a sweep, with the variants that it concerns."""
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
    """Names variants by the swept values that they, and no others, have in common."""
    first = next(iter(having))
    common = [one for one in first if all(one in variant for variant in having)]
    alike = [variant for variant in variants if all(one in variant for one in common)]
    if len(alike) == len(having):
        return f"where {_named(common)}"
    return f"in {len(having)} of {len(variants)} variants, first where {_named(first)}"


def _named(swept: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{path} = {value}" for path, value in swept)
