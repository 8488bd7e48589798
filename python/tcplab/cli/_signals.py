"""Signals that end the command: Ctrl-C, SIGTERM, and SIGHUP of a closed terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_heard = signal.SIGINT


@contextmanager
def obeyed() -> Iterator[None]:
    """SIGTERM and SIGHUP raise `KeyboardInterrupt` as Ctrl-C does, so that all of them clean up
    alike.
    """
    # A signal that is ignored, as under `nohup`, or has a handler is left alone.
    names = [name for name in ENDING[1:] if signal.getsignal(name) is signal.SIG_DFL]
    with _handled(names, _interrupt):
        yield


@contextmanager
def deadly() -> Iterator[None]:
    """Signals end the process at once, for work that cannot be interrupted and has nothing to clean
    up.

    Python handles signals between its own steps. Drawing a chart is a single step of seconds.
    """
    names = [name for name in ENDING if callable(signal.getsignal(name))]
    with _handled(names, signal.SIG_DFL):
        yield


def exit_status() -> int:
    """The exit status after an interrupt: by convention, 128 plus the number of the signal."""
    return 128 + _heard


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _heard  # noqa: PLW0603 (a handler has nobody to return to)
    _heard = signal.Signals(number)
    signal.default_int_handler(number, frame)


@contextmanager
def _handled(names: list[signal.Signals], handler: signal._HANDLER) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {name: signal.signal(name, handler) for name in names}
    try:
        yield
    finally:
        for name, usual in before.items():
            signal.signal(name, usual)
