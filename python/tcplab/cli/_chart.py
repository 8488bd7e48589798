"""Draws the chart of a command."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tcplab._store.atomic_write import put
from tcplab.cli import _ahead, _signals

IMAGES = (".svg", ".png", ".pdf")
"""The formats drawn by a separate process, because the engine takes half a second to start."""

Draw = Callable[[Callable[[], Any]], None]


@contextmanager
def drawing(path: Path | None) -> Iterator[Draw]:
    """Loads everything that draws a chart while experiments run: the module of charts, and the
    process that makes images. Without a path, nothing is drawn.
    """
    if path is None:
        yield lambda make: None
        return
    _ahead.load("tcplab.plot")
    if path.suffix.lower() not in IMAGES:
        yield lambda make: save(make, path)
        return
    # With `-P`, modules in the current folder cannot shadow those of the process.
    command = [sys.executable, "-P", "-m", "tcplab.cli._draw_process", path.suffix.lower()]
    pipe = subprocess.PIPE
    # In a process group of its own, it does not receive the Ctrl-C meant for the command.
    try:
        artist = subprocess.Popen(command, stdin=pipe, stdout=pipe, process_group=0)
    except OSError:
        # The machine cannot start another process.
        yield lambda make: save(make, path)
        return
    with artist:
        try:
            yield lambda make: _drawn_by(artist, make, path)
        finally:
            artist.kill()


def _drawn_by(artist: subprocess.Popen[bytes], make: Callable[[], Any], path: Path) -> None:
    plot = _plot()
    with _signals.deadly():
        chart = make()
        content, _ = artist.communicate(json.dumps(plot.still(chart)).encode())
        if artist.returncode != 0 or not content:
            content = plot.drawn(chart, path.suffix.lower())
        elif path.suffix.lower() == ".svg":
            content = plot.numbered(content)
    put(content, path)


def save(make: Callable[[], Any], path: Path) -> None:
    """Draws and saves a chart. Everything else is on disk by then: a signal ends the process."""
    plot = _plot()
    with _signals.deadly():
        content = plot.drawn(make(), path.suffix.lower())
    put(content, path)


def _plot() -> ModuleType:
    # Polars installs a SIGINT handler when it loads; signals are made deadly after that.
    plot = importlib.import_module("tcplab.plot")
    plot.trust()
    return plot
