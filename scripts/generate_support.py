"""Generates the lists of what each backend supports, from the table on the Rust side."""

from __future__ import annotations

import re
from pathlib import Path

from tcplab import _core

ROOT = Path(__file__).parent.parent
PART = re.compile(r"(<!-- generated: support -->\n).*?(<!-- end -->\n)", re.DOTALL)


DETAILS = ("profile", "cc", "stack.", "mtu", "icmp", "cpu.")
"""The prefixes of keys that are too detailed for the short list in the README."""


def limits_page() -> str:
    """The page of limits, with what each backend does not support."""
    backends = _core.backends()
    parts = []
    for backend in backends:
        missing = [line for line in _core.support() if line[3] and backend not in line[3]]
        if missing:
            parts.append(f"Missing on `{backend}`:\n\n{_grouped(missing)}")
        else:
            parts.append(f"Missing on `{backend}`: nothing that another backend has.\n")
    if nowhere := [line for line in _core.support() if not line[3]]:
        parts.append(f"Missing on every backend:\n\n{_grouped(nowhere)}")
    return _replaced("docs/limits.md", "\n".join(parts))


def readme() -> str:
    """The README, with what each backend supports."""
    lines = []
    for backend in _core.backends():
        runs = [
            line
            for line in _core.support()
            if backend in line[3] and not line[0].startswith(DETAILS)
        ]
        # For entries without a heading, the first name of a key is the feature, and further ones
        # are its limits.
        first = {line[0]: line for line in reversed(runs) if line[1] is None}
        runs = [line for line in runs if line[1] is not None or first[line[0]] == line]
        said = "; ".join(_groups(runs))
        lines.append(f"- `{backend}` runs {said}.\n")
    return _replaced("README.md", "".join(lines))


def _replaced(name: str, text: str) -> str:
    page = (ROOT / name).read_text(encoding="utf-8")
    replaced, count = PART.subn(lambda found: f"{found[1]}{text}{found[2]}", page)
    assert count == 1, f"{name} has no part that is generated"
    return replaced


def _grouped(lines: list[tuple[str, str | None, str, list[str]]]) -> str:
    return "".join(f"- {group}\n" for group in _groups(lines))


def _groups(lines: list[tuple[str, str | None, str, list[str]]]) -> list[str]:
    """The names under their headings. Names without a heading are at the end."""
    groups: dict[str | None, list[str]] = {}
    for _, heading, name, _ in lines:
        groups.setdefault(heading, []).append(name)
    others = groups.pop(None, [])
    said = [f"{heading}: {_listed(names)}" for heading, names in groups.items()]
    return [*said, ", ".join(others)] if others else said


def _listed(names: list[str]) -> str:
    # Several keys may have options of one name.
    return ("; " if any("," in name for name in names) else ", ").join(dict.fromkeys(names))
