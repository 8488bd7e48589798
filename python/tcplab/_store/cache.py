"""Folders of the user's cache, made for the owner alone."""

from __future__ import annotations

from pathlib import Path


def make(folder: Path) -> None:
    """Creates a folder of the cache, and those above it, if they are missing. A cache to which a
    group can write is refused where a kernel is needed.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
