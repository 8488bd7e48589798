"""Detects whether the stored files of a group of runs have been changed.

The folder of a group lists its files with their SHA-256, in the format of `sha256sum`: `cd` into
the folder and `sha256sum --check files.sha256` makes the same check. The list is the last file to
be written.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

LIST = "files.sha256"
"""The name of the list of checksums."""

OF_RUN = re.compile(r"[0-9a-f]{16}/[^/]+")
"""The name under which the list has a further file of a run: in a folder named after the run's id.
"""


def write_list(folder: Path, sums: Mapping[str, str]) -> bytes:
    """Writes the list, given the checksum of each file by name, and returns its content."""
    lines = (f"{digest}  {name}\n" for name, digest in sums.items())
    text = "".join(lines).encode()
    (folder / LIST).write_bytes(text)
    return text


def listed(folder: Path) -> dict[str, str]:
    """The checksums of the list, by name.

    Raises:
        OSError: There is no list, or it cannot be read.
        ValueError: It is no list of checksums.
    """
    text = (folder / LIST).read_text(encoding="utf-8")
    pairs = (line.split("  ", 1) for line in text.splitlines())
    return {name: digest for digest, name in pairs}


def checksum(data: bytes) -> str:
    """The SHA-256 of a file's content."""
    return hashlib.sha256(data).hexdigest()


def content(path: Path) -> bytes:
    """The content of a file. A pipe in its place reads as empty, without waiting for a writer."""
    with open(path, "rb", opener=_at_once) as file:
        return file.read() or b""


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def damage(folder: Path, needed: Iterable[str]) -> tuple[str, str] | None:
    """The first file of a group that differs from what was written, and how; `None` if none does.

    Every listed file must exist with its checksum, and every file in `needed` must be listed.
    """
    try:
        sums = listed(folder)
    except OSError as error:
        return LIST, f"cannot be read: {(error.strerror or 'unknown').lower()}"
    except ValueError:
        return LIST, "is damaged"
    for name in needed:
        if name not in sums:
            return name, f"is not listed in {LIST}"
    for name, digest in sums.items():
        if "/" in name and not (OF_RUN.fullmatch(name) and name[-3:] != "/.."):
            return LIST, "names a file of another folder"
        try:
            found = content(folder / name)
        except FileNotFoundError:
            return name, "is missing"
        except OSError as error:
            return name, f"cannot be read: {(error.strerror or 'unknown').lower()}"
        if checksum(found) != digest:
            return name, "is damaged, or belongs to another group of runs"
    return None
