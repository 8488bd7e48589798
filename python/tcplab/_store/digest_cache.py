"""Remembers which stored results have been checked against their digests.

Reading all tables of a short run takes ten times as long as computing the checksums of its files.
The digest of stored tables is therefore computed once, and never for tables that this computer
stored itself. The record of a checked run is the checksum of its list of checksums, which changes
as soon as any file does. The record is kept in the user's cache: write access to a folder of
results is not enough to add an entry.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from bisect import bisect_left
from contextlib import suppress
from pathlib import Path

from tcplab import _core
from tcplab._store import cache

FOLDER = "agreed"
"""The folder within the cache. It has one file for each folder of results."""

LOOKED_AT = 64
"""The number of other files that are looked at when a file is created."""


class Agreed:
    """The runs of one folder of results whose tables were found to have their digest.

    Without a cache nothing is remembered, and tables are read each time.
    """

    def __init__(self, results: Path) -> None:
        """`results` is the folder of results. It need not exist."""
        folder = _core.cache()
        self._place = os.fsencode(results.resolve())
        name = hashlib.sha256(self._place).hexdigest()[:32]
        self._file = None if folder is None else folder / FOLDER / name
        self._known: set[bytes] = set()
        if self._file is not None:
            with suppress(OSError):
                self._known.update(self._file.read_bytes().split(b"\n")[1:])

    def has(self, listed: str) -> bool:
        """Whether a list of checksums is known to belong to tables that have their digest. `listed`
        is the checksum of that list.
        """
        return listed.encode() in self._known

    def add(self, listed: str) -> None:
        """Remembers the checksum of a list of checksums."""
        if self._file is None or self.has(listed):
            return
        with suppress(OSError):
            if not self._known:
                self._begin(self._file)
            # In a single write: other processes append to the same file.
            file = os.open(self._file, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(file, listed.encode() + b"\n")
            finally:
                os.close(file)
        self._known.add(listed.encode())

    def _begin(self, file: Path) -> None:
        """Creates the file. Of the files after it, whose names are hashes and so in no order that
        matters, removes those that belong to folders which no longer exist.
        """
        cache.make(file.parent)
        files = sorted(file.parent.iterdir())
        next_ = bisect_left(files, file)
        for other in (files[next_:] + files[:next_])[:LOOKED_AT]:
            with suppress(OSError), other.open("rb") as known:
                if not Path(os.fsdecode(known.readline().rstrip(b"\n"))).is_dir():
                    other.unlink()
        # The file appears with its first line already written: other processes append to it as soon
        # as it exists.
        with tempfile.NamedTemporaryFile(dir=file.parent) as new:
            new.write(self._place + b"\n")
            new.flush()
            with suppress(FileExistsError):
                os.link(new.name, file)
