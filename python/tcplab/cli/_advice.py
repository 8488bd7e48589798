"""Stored advice, as commands print it."""

from __future__ import annotations

import json
from pathlib import Path

from tcplab._advice.folder import ADVICE, DESTINATIONS
from tcplab._core import ConfigError
from tcplab._text.cells import LEFT, Column
from tcplab._text.plain_tables import table, wrapped


def is_advice(folder: Path) -> bool:
    """Whether a folder has advice, for one path or for several destinations."""
    return any((folder / name).is_file() for name in (ADVICE, DESTINATIONS))


def shown(folder: Path, form: str) -> str:
    """The advice of a folder, as `text`, `json` or `markdown`.

    Raises:
        ConfigError: The form is none of these, or the advice is damaged.
        OSError: It cannot be read.
    """
    name = DESTINATIONS if (folder / DESTINATIONS).is_file() else ADVICE
    if form == "markdown":
        return (folder / name).with_suffix(".md").read_text(encoding="utf-8").rstrip("\n")
    text = (folder / name).read_text(encoding="utf-8")
    if form == "json":
        return text.rstrip("\n")
    if form not in ("text", "table"):
        raise ConfigError(f"--format: advice is shown as table, json or markdown, not as {form}")
    try:
        plain = json.loads(text)
        if name == ADVICE:
            return "\n\n".join(wrapped(str(one)) for one in plain["says"])
        rows = [[str(cell) for cell in row] for row in plain["table"]]
        return table([Column(str(head), LEFT) for head in plain["head"]], rows)
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{folder / name}: is damaged: {error}") from None
