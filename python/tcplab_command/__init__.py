"""Where the command `tcplab` begins: Ctrl-C is heard while the package itself still loads.

A package of its own, because any module of `tcplab` loads all of it first. While modules load there
is nothing to put in order, and an exception in the midst of it comes out as something else.
"""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> int:
    """Runs the command line; gives the exit status."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from tcplab.cli import main as run  # noqa: PLC0415 (that is what takes its time)

    try:
        signal.signal(signal.SIGINT, usual)
        return run()
    except KeyboardInterrupt:
        _leave()
        raise


def _leave(_signal: int = 0, _frame: FrameType | None = None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)
