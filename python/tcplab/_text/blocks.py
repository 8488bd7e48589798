"""The parts of pages of text: those of studies, and advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt


@dataclass(frozen=True)
class Heading:
    """Of a section, or of the page."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Rows:
    """A table."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Picture:
    """A chart, which is drawn where it is shown, and what it shows in words."""

    name: str
    words: str
    chart: Callable[[], alt.TopLevelMixin]


Block = Heading | Rows | Items | Picture | str
