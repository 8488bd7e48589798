"""Draws the chart of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tcplab
from tcplab.cli import _signals


def save(draw: Callable[[], Any], path: Path) -> None:
    """Draws a chart and saves it. Everything else is on disk by then: a signal ends the process."""
    with _signals.deadly():
        content = tcplab.plot.drawn(draw(), path.suffix.lower())
    tcplab.plot.put(content, path)
