"""The entry point of the command `tcplab`: handles signals while the package itself still loads.

A package of its own, because importing any module of `tcplab` loads all of it first. While modules
load there is nothing to clean up, and an exception raised in the middle of an import surfaces as a
different one.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

OBJECTS = (50_000, 20, 20)
"""So many new objects lead to a collection of the youngest; so many of these, to one of older ones.
Classes of the user's own (`lab.cc`) may make cycles: collections must not end.
"""


def main() -> int:
    """Runs the command line. Returns the exit status."""
    _open_closed()
    usual = {name: signal.getsignal(name) for name in ENDING}
    for name, handler in usual.items():
        if handler in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(name, _leave)
    # NumPy and SciPy start threads for linear algebra, of which tcplab has next to none. They spin
    # while they wait.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from tcplab.cli import obeyed, parsed  # noqa: PLC0415 (that is what takes its time)

    # Loads everything the command needs.
    args = parsed()
    # Modules stay. Runs are tens of thousands of objects without cycles, which every collection
    # would look through: with the usual thresholds, 4 % of the time of a sweep of short runs.
    gc.freeze()
    gc.set_threshold(*OBJECTS)
    try:
        for name, handler in usual.items():
            signal.signal(name, handler)
        status = obeyed(args)
        # The interpreter collects once more when it ends, and everything goes then anyway.
        gc.freeze()
        return status
    except KeyboardInterrupt:
        _leave(signal.SIGINT)
        raise


def _open_closed() -> None:
    """Opens /dev/null in place of a closed stdin, stdout or stderr (`>&-`): the next file to be
    opened would otherwise take its descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _leave(number: int, _frame: FrameType | None = None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(128 + number)
