"""One process at a time in a folder of results."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path, *, patient: bool = True) -> Iterator[None]:
    """Holds the lock of a folder. If another holds it, waits for it or raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)
