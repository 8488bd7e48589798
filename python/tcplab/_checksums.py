"""Whether the stored results of a run are whole, and that run's.

The folder of a run has a list of its files with their SHA-256, in the format of `sha256sum`: `cd`
into the folder and `sha256sum --check files.sha256` checks the same. The list is written last.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

LIST = "files.sha256"
"""The name of the list."""

PLAN = "experiment.json"
"""The file that says which run it is."""


def write_list(folder: Path, sums: Mapping[str, str]) -> bytes:
    """Writes the list, from the checksums by name, and gives its content."""
    lines = (f"{digest}  {name}\n" for name, digest in sums.items())
    content = "".join(lines).encode()
    (folder / LIST).write_bytes(content)
    return content


def listed(folder: Path) -> dict[str, str]:
    """The checksums of the list, by name.

    Raises:
        OSError: There is no list, or it cannot be read.
        ValueError: It is no list of checksums.
    """
    text = (folder / LIST).read_text(encoding="utf-8")
    pairs = (line.split("  ", 1) for line in text.splitlines())
    return {name: digest for digest, name in pairs}


def checksum(content: bytes) -> str:
    """The SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def _content(path: Path) -> bytes:
    """The content of a file. A pipe in its place is empty: nobody is waited for."""
    with open(path, "rb", opener=_at_once) as file:
        return file.read() or b""


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def damage(folder: Path, needed: Iterable[str]) -> tuple[str, str] | None:
    """The first file of a run that is not as it was written, and what is wrong with it.

    Every listed file must be there with its checksum, those that are `needed` must be listed, and
    the plan must be that of the run the folder is named after.
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
        if "/" in name:
            return LIST, "names a file of another folder"
        try:
            content = _content(folder / name)
        except FileNotFoundError:
            return name, "is missing"
        except OSError as error:
            return name, f"cannot be read: {(error.strerror or 'unknown').lower()}"
        if checksum(content) != digest:
            return name, "is damaged, or of another run"
        # A plan begins with its id.
        if name == PLAN and not content.startswith(f'{{"id":"{folder.name}"'.encode()):
            return name, "is of another run"
    return None
