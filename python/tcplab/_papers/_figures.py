"""Redraws the figures of a study in the form that its authors chose, with their numbers beside
ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from tcplab import statistics
from tcplab._experiment.quantities import numbers
from tcplab._papers._measured import Measured, cell_of
from tcplab._papers._study import Figure, Number, Study
from tcplab.plot._style import (
    COLOURS,
    INK,
    SHAPES,
    Layer,
    data,
    layered,
    said,
    scale_of,
    styled,
    titled,
)

WIDE, NARROW, HEIGHT = 560, 360, 240

MOST_MARKED = 60
"""Lines through more points than this are drawn without marks."""

MOST_APART = 3
"""Panels get axes of their own if their greatest values differ by more than this factor."""

ENDINGS = {
    "mbit_s": "Mbit/s",
    "ms": "ms",
    "bytes": "B",
    "packets": "packets",
    "bdp": "BDP",
    "share": "share",
}
"""The unit of swept values, by the ending of the numeric column."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A figure and its data."""

    figure: Figure
    rows: Sequence[Row]
    """Points: `panel` and the values of its `keys`, `line`, `x`, `y`, `low`, `high`."""

    published: Sequence[Row]
    words: str
    """The subject of the figure."""

    x_title: str
    y_title: str
    is_number: bool
    """Whether `x` is a number."""

    def ends(self, panel: str | None) -> list[float]:
        """The values that the vertical axis of a panel, or of all panels, must contain."""
        rows = [row for row in self.rows if panel in (None, row["panel"])]
        found = [
            end
            for row in (*rows, *self.published_in(panel))
            for end in (row["y"], row.get("low"), row.get("high"))
            if end is not None
        ]
        return found if self.figure.level is None else [*found, self.figure.level[0]]

    def published_in(self, panel: str | None) -> list[Row]:
        """The published numbers of a panel, or of all panels."""
        keys: Row = next((row["keys"] for row in self.rows if row["panel"] == panel), {})
        return [
            {"x": row["x"], "line": row["line"], "y": row["y"]}
            for row in self.published
            if panel is None or row["panels"].items() <= keys.items()
        ]

    @property
    def panels(self) -> list[str]:
        """The panels, in the order of the runs."""
        return list(dict.fromkeys(row["panel"] for row in self.rows))

    @property
    def is_apart(self) -> bool:
        """Whether each panel has a vertical axis of its own, because a common axis would flatten
        curves.
        """
        greatest = [max(self.ends(panel)) for panel in self.panels]
        return max(greatest) > MOST_APART * max(min(greatest), 0.0)


def chart(study: Study, figure: Figure, measured: Measured) -> alt.ConcatChart | alt.LayerChart:
    """A figure with our measurements and the published numbers."""
    drawn = _drawn(study, figure, measured)
    if drawn is None:
        return styled(
            layered([said("not measured yet")], title=titled(f"{figure.id}: {figure.title}"))
        )
    notes = [f"{study.experiments[figure.experiment].title}: {drawn.words}"]
    if drawn.published:
        notes.append("black diamonds: published")
    if any(row["low"] is not None for row in drawn.rows):
        notes.append("ranges: 95 % intervals of the mean")
    panels = drawn.panels
    if drawn.is_apart:
        notes.append("each panel has a vertical axis of its own")
    lines = list(dict.fromkeys(row["line"] for row in drawn.rows))
    width = WIDE if len(panels) == 1 else NARROW
    parts: list[Layer] = [
        layered(
            _layers(drawn, panel, lines, has_legend=number == 0),
            width=width,
            height=HEIGHT,
            title=panel or alt.Undefined,
        )
        for number, panel in enumerate(panels)
    ]
    title = titled(f"{figure.id}: {figure.title}", notes)
    return styled(alt.concat(*parts, columns=2, title=title))


def _drawn(study: Study, figure: Figure, measured: Measured) -> Drawn | None:
    experiment = study.experiments[figure.experiment]
    cell = {**experiment.lost, **figure.cell}
    if figure.shows in experiment.series:
        series = experiment.series[figure.shows]
        points = measured.series.get((figure.experiment, figure.shows))
        if points is None:
            return None
        points = cell_of(points, {key: cell[key] for key in cell if key in points.columns})
        rows = [
            {
                "panel": _panel(row, figure),
                "keys": {key: str(row.get(key)) for key in figure.panels},
                "line": str(row.get(figure.line or "line") or ""),
                "x": row["x"],
                "y": row["y"],
                "low": row.get("low"),
                "high": row.get("high"),
            }
            for row in points.iter_rows(named=True)
        ]
        if not rows:
            return None
        return Drawn(figure, rows, [], series.words, series.x_words, series.unit, is_number=True)
    found = measured.tables.get(figure.experiment)
    if found is None:
        return None
    quantity = experiment.quantities[figure.shows]
    table = cell_of(found, {key: cell[key] for key in cell if key in found.columns})
    assert figure.x is not None
    rows = _of_quantity(table, figure)
    as_numbers = numbers([str(row["x"]) for row in rows])
    is_number = figure.form == "lines" and as_numbers is not None
    x_title = figure.x
    if is_number and as_numbers is not None:
        unit = ENDINGS.get(as_numbers[0], "")
        x_title = f"{figure.x}, {unit}" if unit else figure.x
        for row, value in zip(rows, as_numbers[1].to_list(), strict=True):
            row["x"] = value
    published = _published(study, figure, is_number=is_number)
    if not rows:
        return None
    return Drawn(figure, rows, published, quantity.words, x_title, quantity.unit, is_number)


def _panel(row: Mapping[str, Any], figure: Figure) -> str:
    parts = []
    for key in figure.panels:
        value = row.get(key)
        if value is not None:
            parts.append(str(value) if key == "variant" else f"{key} {value}")
    return ", ".join(parts)


def _of_quantity(table: pl.DataFrame, figure: Figure) -> list[Row]:
    """The mean of each cell, with its interval."""
    wanted = (*figure.panels, figure.line, figure.x)
    keys = [key for key in wanted if key and key in table.columns]
    by = list(dict.fromkeys(keys))
    runs = table.group_by([*by, "repetition"], maintain_order=True).agg(pl.col(figure.shows).mean())
    groups = runs.group_by(by, maintain_order=True).agg(figure.shows)
    rows = []
    for row in groups.iter_rows(named=True):
        found = statistics.interval(row[figure.shows])
        if found.estimate is None:
            continue
        rows.append(
            {
                "panel": _panel(row, figure),
                "keys": {key: str(row.get(key)) for key in figure.panels},
                "line": str(row.get(figure.line or "") or ""),
                "x": row[figure.x or ""],
                "y": found.estimate,
                "low": found.low,
                "high": found.high,
            }
        )
    return rows


def _published(study: Study, figure: Figure, *, is_number: bool) -> list[Row]:
    """The published numbers of a figure's cells."""
    rows = []
    for number in study.numbers:
        place = _place(number, figure)
        if place is None:
            continue
        x, line, panels = place
        known = numbers([x]) if is_number else None
        x_value = known[1][0] if known else x
        rows.append({"x": x_value, "line": line, "y": number.value, "panels": panels})
    return rows


def _place(number: Number, figure: Figure) -> tuple[str, str, Row] | None:
    """The position of a number in a figure: its place on the axis, its line, and the panels with
    its values. `None` if the number does not belong to the figure.
    """
    side = number.side
    if side is None or (side.experiment, side.quantity) != (figure.experiment, figure.shows):
        return None
    cell = {**side.lost, **side.cell}
    for key, allowed in figure.cell.items():
        if key in cell and not set(cell[key]) <= set(allowed):
            return None
    x, line = cell.get(figure.x or ""), cell.get(figure.line or "", ("",))
    if x is None or len(x) != 1 or len(line) != 1:
        return None
    panels = {key: cell[key][0] for key in figure.panels if len(cell.get(key, ())) == 1}
    return x[0], line[0], panels


@dataclass(frozen=True)
class _Axes:
    """The position and colour scales of the layers of a panel."""

    x: Any
    y_title: str
    scale: alt.Scale
    colour: alt.Color
    shape: alt.Shape
    offset: Mapping[str, Any]

    def y(self, field: str = "y") -> alt.Y:
        """A field along the vertical axis."""
        return alt.Y(f"{field}:Q", title=self.y_title or None, scale=self.scale)


def _layers(drawn: Drawn, panel: str, lines: Sequence[str], *, has_legend: bool) -> list[Layer]:
    figure = drawn.figure
    rows = [row for row in drawn.rows if row["panel"] == panel]
    if figure.is_log_y:
        rows = [row for row in rows if row["y"] > 0]
    axes = _axes(drawn, panel, lines, has_legend=has_legend)
    layers = _marks(figure.form, rows, axes)
    published = drawn.published_in(panel)
    if published:
        layers.append(
            alt.Chart(data(published))
            .mark_point(shape="diamond", size=60, color=INK, filled=True, opacity=0.9)
            .encode(x=axes.x, y=axes.y(), **axes.offset)
        )
    if figure.level is not None:
        value, words = figure.level
        mark = alt.Chart(data([{"y": value, "words": words}]))
        layers.append(mark.mark_rule(color=INK, strokeDash=[4, 3]).encode(y=axes.y()))
        layers.append(
            mark.mark_text(align="left", baseline="bottom", dy=-2, color=INK, fontSize=11).encode(
                x=alt.value(4), y=axes.y(), text="words:N"
            )
        )
    return layers


def _axes(drawn: Drawn, panel: str, lines: Sequence[str], *, has_legend: bool) -> _Axes:
    figure = drawn.figure
    legend = None
    if has_legend and len(lines) > 1:
        legend = alt.Legend(title=None, orient="top", columns=4)
    shapes = [SHAPES[n // len(COLOURS) % len(SHAPES)] for n in range(len(lines))]
    ends = drawn.ends(panel if drawn.is_apart else None)
    if figure.is_log_y:
        least = min(end for end in ends if end > 0)
        scale = alt.Scale(type="log", domain=[least, max(ends)], nice=True)
    else:
        least = min(0.0, *ends) if figure.has_zero else min(ends)
        scale = alt.Scale(zero=figure.has_zero, domain=[least, max(ends)], nice=True)
    offset: dict[str, Any] = {}
    if drawn.is_number:
        of_x = alt.Scale(type="log") if figure.is_log else alt.Scale(zero=False, nice=False)
        x: Any = alt.X("x:Q", title=drawn.x_title, scale=of_x)
    else:
        order = list(dict.fromkeys(row["x"] for row in drawn.rows))
        x = alt.X("x:N", title=drawn.x_title, sort=order, axis=alt.Axis(labelAngle=-30))
        if len(lines) > 1:
            offset = {"xOffset": alt.XOffset("line:N", sort=[*lines])}
    return _Axes(
        x,
        drawn.y_title,
        scale,
        alt.Color("line:N", scale=scale_of(lines), legend=legend),
        alt.Shape("line:N", scale=alt.Scale(domain=[*lines], range=shapes), legend=legend),
        offset,
    )


def _marks(form: str, rows: Sequence[Row], axes: _Axes) -> list[Layer]:
    """The means as bars, lines or points, with their intervals where these are legible."""
    drawn = [{key: row[key] for key in ("line", "x", "y", "low", "high")} for row in rows]
    base = alt.Chart(data(drawn))
    layers: list[Layer] = []
    if form == "bars":
        bars = base.mark_bar(opacity=0.85)
        layers.append(bars.encode(x=axes.x, y=axes.y(), color=axes.colour, **axes.offset))
    elif form == "lines":
        line = base.mark_line(strokeWidth=1.6)
        layers.append(line.encode(x=axes.x, y=axes.y(), color=axes.colour))
    if form == "lines" and len(rows) > MOST_MARKED:
        return layers
    if form != "bars":
        points = base.mark_point(filled=True, size=36)
        layers.append(
            points.encode(x=axes.x, y=axes.y(), color=axes.colour, shape=axes.shape, **axes.offset)
        )
    known = [row for row in drawn if row["low"] is not None]
    if axes.scale.to_dict().get("type") == "log":
        known = [row for row in known if row["low"] > 0]
    if known:
        ink: Any = alt.value(INK) if form == "bars" else axes.colour
        layers.append(
            alt.Chart(data(known))
            .mark_rule(strokeWidth=1.2)
            .encode(x=axes.x, y=axes.y("low"), y2="high:Q", color=ink, **axes.offset)
        )
    return layers
