"""The comparison charts of a report, one for each metric, in Vega-Lite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from altair import SCHEMA_URL

from tcplab._core import printable
from tcplab._experiment.quantities import numbers
from tcplab._report._comparison import Question, Row, Values, called
from tcplab._report._phrases import phrase
from tcplab._results.summary_table import short_names

Spec = dict[str, Any]

LIGHT = ("#0072B2", "#C44E00", "#00805D", "#A8517F", "#8A6100", "#2B8CBE", "#3A3A3A")
DARK = ("#5AB4F0", "#FF9550", "#35C79B", "#E79CC7", "#E3B341", "#9AD7F5", "#D9D9D9")
"""The hues of Okabe and Ito (2008), which colour-blind people can distinguish, each with a contrast
of at least 3:1 to the page.
"""

LIGHT_LINKS, DARK_LINKS = ("#6B6B6B", "#8A6100"), ("#A6ABB2", "#E3B341")
"""The colours of links. The first is grey, which no flow has."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3], [10, 4])

MOST_BARS = 60
MOST_PANELS = 12

MOST_TICKS = 8
"""The number of values up to which each has its own tick on an axis."""

UNITS = {"mbit_s": "Mbit/s", "ms": "ms", "bytes": "B", "packets": "packets", "bdp": "BDP"}
"""The units behind the endings of numeric columns."""


@dataclass(frozen=True)
class Panel:
    """A chart and its heading."""

    title: str
    spec: Spec


@dataclass(frozen=True)
class Comparison:
    """One metric for all variants."""

    metric: str
    title: str
    panels: Sequence[Panel]
    rows: Sequence[Row]
    """The rows to draw: `case`, `variant`, `about`, `value`, `low`, `high`."""
    note: str


def theme(*, is_dark: bool = False) -> Spec:
    """The Vega-Lite configuration of all charts."""
    ink, quiet, line = (
        ("#ECECEC", "#B4B8BE", "#3C4148") if is_dark else ("#1B1F24", "#555B63", "#DDE0E4")
    )
    return {
        "background": "transparent",
        "font": "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": quiet, "titleColor": ink, "gridColor": line, "domainColor": line,
            "tickColor": line, "labelFontSize": 13, "titleFontSize": 13,
            "titleFontWeight": "normal", "titlePadding": 10, "labelLimit": 190,
        },
        "legend": {
            "labelColor": ink, "titleColor": quiet, "labelFontSize": 13, "titleFontSize": 13,
            "titleFontWeight": "normal", "orient": "top", "labelLimit": 220, "columns": 3,
            "symbolOpacity": 1,
        },
        "text": {"color": ink, "fontSize": 13},
        "rule": {"color": ink},
        "range": {"category": list(DARK if is_dark else LIGHT)},
    }  # fmt: skip


def comparisons(asked: Question) -> list[Comparison]:
    """A comparison for each metric that has values."""
    return [_comparison(asked, metric) for metric in asked.metrics]


def _comparison(asked: Question, metric: str) -> Comparison:
    rows = rows_of(asked, metric)
    axis = axis_of(asked)
    words = phrase(metric)
    note = ""
    groups = list(dict.fromkeys(row["about"] for row in rows))
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    # All panels of a metric share a scale that starts at zero.
    ends = [one for row in rows for one in (row["value"], row["high"]) if one is not None]
    greatest = max(ends, default=0.0)
    panels = []
    kind = {"flow": "Flow", "class": "Class", "cc": "Congestion control"}[asked.by]
    for about in groups:
        own = [row for row in rows if row["about"] == about]
        title = f"{kind} {about}" if len(groups) > 1 else ""
        if axis is None:
            if len(own) > MOST_BARS:
                note = f"Drawn are the first {MOST_BARS} of {len(own)} rows; the table has all."
            bars = _bars(own[:MOST_BARS], variants, words.title(), greatest)
            panels.append(Panel(title, bars))
            continue
        others = list(dict.fromkeys(row["rest"] for row in own))
        for rest in others:
            some = [row for row in own if row["rest"] == rest]
            both = ", ".join(part for part in (title, rest) if part)
            panels.append(Panel(both, _lines(some, variants, words.title(), axis, greatest)))
    if len(panels) > MOST_PANELS:
        note = f"Drawn are the first {MOST_PANELS} of {len(panels)} charts; the table has all."
    has_intervals = any(row["low"] is not None for row in rows)
    notes = ["Thin lines are 95 % intervals of the mean." if has_intervals else "", note]
    said = " ".join(filter(None, notes))
    return Comparison(metric, words.title(), panels[:MOST_PANELS], rows, said)


@dataclass(frozen=True)
class Axis:
    """A swept numeric column along which lines are drawn."""

    column: str
    title: str
    values: Mapping[str, float]


def axis_of(asked: Question) -> Axis | None:
    """The numeric column with the most values, if it has at least three."""
    runs = asked.results.runs
    columns = asked.conditions or asked.compared
    best: Axis | None = None
    short = short_names(asked.results.swept)
    for column in columns:
        texts = runs[column].to_list()
        if None in texts or (found := numbers(texts)) is None or found[0] == "boolean":
            continue
        values = dict(zip(texts, (float(one) for one in found[1]), strict=True))
        if len(set(values.values())) >= 3 and (best is None or len(values) > len(best.values)):
            unit = UNITS.get(found[0], "")
            title = f"{short[column]} ({unit})" if unit else short[column]
            best = Axis(column, printable(title), values)
    return best


def rows_of(asked: Question, metric: str) -> list[Row]:
    """The rows to draw: every row of the summary that has the metric."""
    factor = phrase(metric).factor
    axis = axis_of(asked)
    is_axis = axis is not None and axis.column in asked.compared
    rows = []
    for row in asked.summary.iter_rows(named=True):
        if row[metric] is None:
            continue
        low, high = row[f"{metric}_low"], row[f"{metric}_high"]
        half = row[f"{metric}_ci"]
        if low is None and half is not None:
            low, high = row[metric] - half, row[metric] + half
        condition = asked.condition_of(row)
        rest: Values = condition
        if axis is not None and axis.column in asked.conditions:
            place = asked.conditions.index(axis.column)
            rest = tuple(None if n == place else one for n, one in enumerate(condition))
        about = asked.about(asked.group_of(row)) if asked.compared else ""
        rows.append(
            {
                "about": printable(about),
                "case": printable(asked.case(condition)),
                "rest": printable(asked.case(rest)),
                "variant": "" if is_axis else printable(_variant(asked, row)),
                "x": None if axis is None else axis.values[row[axis.column]],
                "value": row[metric] * factor,
                "low": None if low is None else low * factor,
                "high": None if high is None else high * factor,
            }
        )
    return rows


def _variant(asked: Question, row: Row) -> str:
    """The variant of a row; if nothing is swept, the subject of the row."""
    if not asked.compared:
        return called(asked, row)
    return asked.label(asked.variant_of(row))


def _colours(variants: Sequence[str]) -> Spec:
    return {"domain": list(variants)}


def _tooltip(rows: Sequence[Row], title: str, axis: Axis | None = None) -> list[Spec]:
    shown = [{"field": "variant", "type": "nominal", "title": "variant"}]
    if axis is not None:
        shown.append({"field": "x", "type": "quantitative", "title": axis.title})
    elif any(row["case"] for row in rows):
        shown.append({"field": "case", "type": "nominal", "title": "case"})
    names = {"value": title, "low": "from", "high": "to"}
    return shown + [
        {"field": key, "type": "quantitative", "title": name, "format": ".4~g"}
        for key, name in names.items()
    ]


def _bars(rows: Sequence[Row], variants: Sequence[str], title: str, greatest: float) -> Spec:
    """A bar from zero for each variant of each case, with its interval and its number."""
    has_cases = any(row["case"] for row in rows)
    y: Spec = {
        "field": "case" if has_cases else "variant",
        "type": "nominal",
        "sort": None,
        "title": None,
    }
    y["axis"] = {"grid": False, "domain": False, "ticks": False, "labelPadding": 8}
    both: Spec = {"y": y}
    if has_cases:
        both["yOffset"] = {"field": "variant", "type": "nominal", "sort": list(variants)}
    is_coloured = len(variants) <= len(LIGHT)
    colour: Spec = {"field": "variant", "type": "nominal", "scale": _colours(variants)}
    colour |= {"legend": {"title": None} if has_cases and len(variants) > 1 else None}
    scale = _from_zero(greatest)
    x = {"field": "value", "type": "quantitative", "title": title, "axis": {"tickCount": 5}}
    x["scale"] = scale
    intervals = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 1.6},
        "encoding": both | {"x": x | {"field": "low"}, "x2": {"field": "high"}},
    }
    data = [{key: row[key] for key in ("case", "variant", "value", "low", "high")} for row in rows]
    end = "datum.high == null ? datum.value : max(datum.high, datum.value)"
    return {
        "$schema": SCHEMA_URL,
        "data": {"values": data},
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "height": (20 if has_cases else 32) * len(rows) + 8,
        "transform": [{"calculate": end, "as": "end"}],
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.62}},
                "encoding": both | {"x": x, "tooltip": _tooltip(rows, title)}
                | ({"color": colour} if is_coloured else {}),
            },
            *([intervals] if any(row["low"] is not None for row in rows) else []),
            {
                "mark": {"type": "text", "align": "left", "dx": 7},
                "encoding": both | {
                    "x": x | {"field": "end"},
                    "text": {"field": "value", "type": "quantitative", "format": ".3~g"},
                },
            },
        ],
    }  # fmt: skip


def _lines(
    rows: Sequence[Row], variants: Sequence[str], title: str, axis: Axis, greatest: float
) -> Spec:
    """A line for each variant along a swept number, with intervals."""
    data = [{key: row[key] for key in ("variant", "x", "value", "low", "high")} for row in rows]
    domain = list(variants)
    places = range(len(domain))
    colour: Spec = {"field": "variant", "type": "nominal", "scale": _colours(variants)}
    # Colour, shape and dash share one legend.
    legend = {"title": None} if len(domain) > 1 else None
    colour["legend"] = legend
    shape = {"domain": domain, "range": [SHAPES[n % len(SHAPES)] for n in places]}
    dash = {"domain": domain, "range": [DASHES[n % len(DASHES)] for n in places]}
    x: Spec = {"field": "x", "type": "quantitative", "title": axis.title}
    x["scale"] = scale_of([row["x"] for row in rows])
    places_of_x = sorted({row["x"] for row in rows})
    x["axis"] = {"values": places_of_x} if len(places_of_x) <= MOST_TICKS else {"tickCount": 6}
    both: Spec = {"x": x, "color": colour}
    y: Spec = {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "scale": _from_zero(greatest),
    }
    y["axis"] = {"tickCount": 5}
    nominal = {"field": "variant", "type": "nominal", "legend": legend}
    intervals = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 1.4, "opacity": 0.7},
        "encoding": both | {"y": y | {"field": "low"}, "y2": {"field": "high"}},
    }
    return {
        "$schema": SCHEMA_URL,
        "data": {"values": data},
        "width": "container",
        "height": 260,
        "layer": [
            *([intervals] if any(row["low"] is not None for row in rows) else []),
            {
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": both | {"y": y, "strokeDash": nominal | {"scale": dash}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 64, "opacity": 1},
                "encoding": both | {
                    "y": y, "shape": nominal | {"scale": shape},
                    "tooltip": _tooltip(rows, title, axis),
                },
            },
        ],
    }  # fmt: skip


def _from_zero(greatest: float) -> Spec:
    """A scale that begins at zero and has room for the greatest number."""
    return {"domain": [0, greatest or 1], "nice": True}


def scale_of(values: Sequence[float]) -> Spec:
    """A logarithmic scale if the numbers span more than a factor of 20."""
    least, greatest = min(values), max(values)
    if least > 0 and greatest / least > 20:
        return {"type": "log"}
    return {"zero": False, "nice": True}


def inline(spec: Spec, *, width: int) -> Spec:
    """A chart that stands alone: with a width and the configuration for print."""
    return spec | {"width": width, "config": theme()}


def data_of(comparison: Comparison) -> pl.DataFrame:
    """The drawn values as a table."""
    names = {"about": "about", "case": "case", "variant": "variant", "value": comparison.title,
             "low": "from", "high": "to"}  # fmt: skip
    rows = [{shown: row[key] for key, shown in names.items()} for row in comparison.rows]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    empty = [
        name
        for name in frame.columns
        if frame[name].dtype == pl.String and (frame[name] == "").all()
    ]
    return frame.drop(empty)
