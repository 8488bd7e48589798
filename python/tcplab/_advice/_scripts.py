"""Templates of scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources


def filled(text: str, values: Mapping[str, str]) -> str:
    """A template with its gaps filled."""
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], text)


def shell(name: str) -> str:
    """A file of the folder `shell`."""
    return resources.files("tcplab._advice").joinpath("shell", name).read_text(encoding="utf-8")
