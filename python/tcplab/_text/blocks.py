"""The blocks that pages of text are made of: the pages of studies, and advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt


@dataclass(frozen=True)
class Heading:
    """The heading of a page or of a section."""

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
    """A chart, drawn by the renderer, and a description of it in words."""

    name: str
    words: str
    chart: Callable[[], alt.TopLevelMixin]


Block = Heading | Rows | Items | Picture | str
