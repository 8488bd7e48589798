"""Numbers and lists in English."""

from __future__ import annotations

from collections.abc import Iterable


def listed(names: Iterable[str], most: int = 6) -> str:
    """A list in words: `a, b and c`. A long list is cut after `most` names."""
    few = list(names)
    if len(few) > most + 1:
        return f"{', '.join(few[:most])} and {len(few) - most} more"
    return " and ".join([", ".join(few[:-1]), few[-1]] if len(few) > 1 else few)


def counted(number: int, what: str) -> str:
    """A number with its noun: `1 run`, `2 runs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def were(number: int) -> str:
    """The verb of so many: `was`, `were`."""
    return "was" if number == 1 else "were"
