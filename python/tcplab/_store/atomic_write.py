"""Writes single files atomically."""

from __future__ import annotations

import errno
import os
from glob import escape
from pathlib import Path


def put(content: bytes, path: Path) -> None:
    """Writes a file. A disk that fills up leaves no partial file."""
    for leftover in path.parent.glob(f".{escape(path.stem)}.*{escape(path.suffix)}"):
        writer = leftover.name.removesuffix(path.suffix).rpartition(".")[2]
        if writer.isdecimal() and not _lives(int(writer)):
            leftover.unlink(missing_ok=True)
    unfinished = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno != errno.ESRCH
    return True
