"""What goes on, but may not be what was meant."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
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
    """Warns of what experiments say, each once."""
    for warning in dict.fromkeys(said for plan in plans for said in plan.warnings):
        warn(warning)
