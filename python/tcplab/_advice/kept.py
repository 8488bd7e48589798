"""The files of advice in a folder that may hold files of others."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcplab._store.atomic_write import put
from tcplab._warnings import TcplabWarning

ADVICE = "advice.json"
"""The file that other programs read; its presence says that a folder has advice."""

QUESTION = "question.toml"

DESTINATIONS = "destinations.json"
"""The same of advice for several destinations."""

APPLY = "apply"
"""The folder of the scripts."""


def ask(text: str, file: Path) -> None:
    """Writes what is asked; warns if the folder has the answer to another question."""
    with suppress(OSError):
        if file.read_bytes() != text.encode():
            warnings.warn(
                f"{file.parent}: has the answer to another question, which is replaced; its runs "
                "stay",
                TcplabWarning,
                stacklevel=2,
            )
    file.parent.mkdir(parents=True, exist_ok=True)
    put(text.encode(), file)


def keep_scripts(folder: Path, scripts: Mapping[str, str], previous: list[str]) -> None:
    """Writes the scripts, by their path below `apply`. Scripts of an earlier answer (`previous`)
    are removed, since they no longer hold; other files stay.
    """
    for name in previous:
        with suppress(OSError):
            (folder / APPLY / name).unlink()
    for name, text in scripts.items():
        path = folder / APPLY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        put(text.encode(), path)
        if path.suffix == ".sh":
            path.chmod(0o755)


def scripts_of(folder: Path, file: str) -> list[str]:
    """The scripts that an earlier answer, in this file of the folder, has left."""
    try:
        named = json.loads((folder / file).read_text(encoding="utf-8"))["scripts"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in named if _is_below(name)] if isinstance(named, list) else []


def _is_below(name: Any) -> bool:
    """Whether a path stays below the folder that it is relative to."""
    if not isinstance(name, str):
        return False
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts
