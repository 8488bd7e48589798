"""Which stored results this computer knows to agree: their tables have their digest.

To read all tables of a short run takes ten times as long as to compute the checksums of its files.
So the digest of tables is computed from stored tables once, and not at all for tables that this
computer stored. What is remembered is the checksum of the run's list of checksums, which is another
one as soon as any file is. It is kept in the user's cache: whoever can write to a folder of results
alone cannot add to it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from tcplab import _core

FOLDER = "agreed"
"""Where in the cache: a file for each folder of results."""


class Agreed:
    """The runs of one folder of results whose tables have their digest.

    Where there is no cache, nothing is remembered: tables are read each time.
    """

    def __init__(self, results: Path) -> None:
        """`results` need not exist."""
        cache = _core.cache()
        self._place = os.fsencode(results.resolve())
        name = hashlib.sha256(self._place).hexdigest()[:32]
        self._file = None if cache is None else cache / FOLDER / name
        self._known: set[bytes] = set()
        if self._file is not None:
            with suppress(OSError):
                self._known.update(self._file.read_bytes().split(b"\n")[1:])

    def has(self, listed: str) -> bool:
        """Whether a list of checksums, by its own, belongs to tables that have their digest."""
        return listed.encode() in self._known

    def add(self, listed: str) -> None:
        """Remembers one."""
        if self._file is None or self.has(listed):
            return
        with suppress(OSError):
            if not self._known:
                self._begin(self._file)
            # In one piece: other processes add to the same file.
            file = os.open(self._file, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(file, listed.encode() + b"\n")
            finally:
                os.close(file)
        self._known.add(listed.encode())

    def _begin(self, file: Path) -> None:
        """Makes the file, and removes those of folders that are gone."""
        file.parent.mkdir(parents=True, exist_ok=True)
        for other in file.parent.iterdir():
            with suppress(OSError), other.open("rb") as known:
                if not Path(os.fsdecode(known.readline().rstrip(b"\n"))).is_dir():
                    other.unlink()
        # With its first line from the start: others add lines as soon as the file is there.
        with tempfile.NamedTemporaryFile(dir=file.parent) as new:
            new.write(self._place + b"\n")
            new.flush()
            with suppress(FileExistsError):
                os.link(new.name, file)
