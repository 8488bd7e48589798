"""Compares variants: by a metric with its intervals, and ranked from best to worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from tcplab._report import _charts
from tcplab._report._phrases import phrase
from tcplab._results.compare import Comparison
from tcplab._results.results import Results
from tcplab._results.versus import LESS, MORE
from tcplab.plot import _single_run
from tcplab.plot._style import (
    COLOURS,
    INK,
    QUIET,
    SHAPES,
    Layer,
    beside,
    constant,
    dashes_of,
    data,
    layered,
    scale_of,
    styled,
)
from tcplab.plot._time_series import MOST_FLOWS, over_time
from tcplab.plot._variants import MOST_PANELS, Asked, Row, asked

MOST_ROWS = 60
FEW_PANELS = 2
"""Up to this number of panels, lines have labels beside them; beyond, one legend is used."""

WIDE, NARROW = 520, 290


def compare(
    results: Results | Comparison, metric: str | None = None, *, by: str | None = None
) -> alt.ConcatChart | alt.LayerChart:
    """Draws a metric of all variants, with 95 % intervals of the mean: lines with bands along a
    swept numeric key with at least three values, else bars. Other swept keys make a panel for each
    case.

    For a `Comparison` of backends: the window of each flow of the first run over time, on every
    backend.

    Args:
        results: The results, or the comparison.
        metric: A column of the summary, or of `Results.metrics`; by default completion time if
            flows have an end, else goodput.
        by: What a row is about, as in `Results.summary`; by default the choice with few rows.

    Raises:
        ValueError: The metric does not exist, or no run has it.
    """
    if isinstance(results, Comparison):
        if metric is not None or by is not None:
            raise ValueError("metric, by: backends are compared by the windows of their flows")
        return _backends(results)
    on = asked(results, metric, by)
    axis = on.axis
    return _bars(on) if axis is None else _lines(on.side_by_side(), axis)


def ranking(
    results: Results, metric: str | None = None, *, by: str | None = None
) -> alt.ConcatChart:
    """Draws the variants ranked from best to worst by the mean of a metric, with 95 % intervals, in
    a panel for each case of other swept keys.

    Ranks compare means. Overlapping intervals do not tell which variant is better; `Results.versus`
    compares pairs of runs, and can.

    Args:
        results: The results.
        metric: As for `compare`.
        by: As for `compare`.

    Raises:
        ValueError: The metric does not exist, or no run has it.
    """
    on = asked(results, metric, by)
    is_less = on.metric in LESS
    is_more = on.metric in MORE or on.metric == "jain_index"
    order = "less is better" if is_less else "more is better" if is_more else "greatest first"
    panels = on.panels("about", "case")
    notes = [_some_of(panels), f"{order}; {on.about_intervals()}"]
    limits = _span(on.rows)
    parts: list[Layer] = []
    for panel, rows in list(panels.items())[:MOST_PANELS]:
        placed = sorted(rows, key=lambda row: row["value"] if is_less else -row["value"])
        if len(placed) > MOST_ROWS:
            notes.append(f"the first {MOST_ROWS} of {len(placed)}")
        shown = [
            row | {"name": _of_axis(on, row), "text": _number(on, row)}
            for row in placed[:MOST_ROWS]
        ]
        parts.append(_dots(shown, on, limits, on.heading(panel), len(panels)))
    columns = 1 if len(parts) == 1 else 2
    return styled(alt.concat(*parts, columns=columns, title=on.head("", *notes)))


def _of_axis(on: Asked, row: Row) -> str:
    """The label of a variant, including its value on the numeric axis."""
    if row["variant"] or on.axis is None:
        return str(row["variant"])
    return f"{on.axis.title} {row['x']:g}"


def _number(on: Asked, row: Row) -> str:
    words = phrase(on.metric)
    return words.bare(row["value"] / words.factor)


def _span(rows: Sequence[Row]) -> tuple[float, float]:
    ends = [row[key] for row in rows for key in ("value", "low", "high") if row[key] is not None]
    low, high = min(ends), max(ends)
    # From zero, unless that presses all points into a corner.
    low = 0.0 if 0 <= low <= 0.6 * high else low
    return low, high


def _dots(
    rows: Sequence[Row], on: Asked, limits: tuple[float, float], heading: str, panels: int
) -> alt.LayerChart:
    low, high = limits
    edge = 0.03 * (high - low) or 1.0
    # An axis from zero has no margin on the left.
    scale = alt.Scale(domain=[low if low == 0 else low - edge, high + edge], nice=False)
    # A case may contain two rows with one name.
    names = [row["name"] for row in rows]
    y = alt.Y(
        "name:N", sort=names, title=None,
        axis=alt.Axis(grid=True, gridDash=[1, 3], domain=False, ticks=False, labelLimit=280),
    )  # fmt: skip
    keys = ("name", "value", "low", "high", "text")
    base = alt.Chart(data([{key: row[key] for key in keys} for row in rows]))
    x = alt.X("value:Q", title=on.title, scale=scale)
    tooltip = _tooltip(on, "name")
    intervals = base.transform_filter("isValid(datum.low)").mark_rule(
        strokeWidth=2, color=COLOURS[0], opacity=0.55
    )
    width = WIDE if panels == 1 else NARROW
    layers = [
        intervals.encode(y=y, x=alt.X("low:Q", title=on.title, scale=scale), x2=alt.X2("high:Q")),
        base.mark_point(filled=True, size=70, opacity=1, color=COLOURS[0]).encode(
            y=y, x=x, tooltip=tooltip
        ),
        base.mark_text(align="left", clip=False, color=INK, fontSize=11).encode(
            y=y, x=constant(alt.XValue, width + 8), text=alt.Text("text:N")
        ),
    ]
    return layered(layers, width=width, height=alt.Step(22), title=_heading(heading))


def _heading(text: str) -> Any:
    if not text:
        return alt.Undefined
    return alt.TitleParams(text, fontSize=12, fontWeight="normal", color=QUIET, offset=6)


def _tooltip(on: Asked, name: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip(f"{name}:N", title="variant"),
        alt.Tooltip("value:Q", title=on.title, format=".4~g"),
        alt.Tooltip("low:Q", title="from", format=".4~g"),
        alt.Tooltip("high:Q", title="to", format=".4~g"),
    ]


def _some_of(panels: Mapping[Any, Any]) -> str:
    return f"{MOST_PANELS} of {len(panels)} panels" if len(panels) > MOST_PANELS else ""


def _bars(on: Asked) -> alt.ConcatChart:
    """A bar from zero for each variant of each case, with its interval and its number."""
    panels = on.panels("about")
    variants = on.variants()
    ends = [end for row in on.rows for end in (row["value"], row["high"]) if end is not None]
    greatest = max([*ends, 0.0])
    least = min([row["value"] for row in on.rows] + [0.0])
    notes = [_some_of(panels), on.about_intervals()]
    parts: list[Layer] = []
    for panel, rows in list(panels.items())[:MOST_PANELS]:
        if len(rows) > MOST_ROWS:
            notes.append(f"the first {MOST_ROWS} of {len(rows)} bars")
        shown = rows[:MOST_ROWS]
        has_cases = any(row["case"] for row in shown) and len(variants) > 1
        is_coloured = has_cases and len(variants) <= len(COLOURS)
        shown = [
            row
            | {
                "place": row["case"]
                if is_coloured
                else ", ".join(filter(None, [row["variant"], row["case"]])),
                "text": _number(on, row),
                "end": row["value"] if row["high"] is None else max(row["high"], row["value"]),
            }
            for row in shown
        ]
        y: dict[str, Any] = {
            "y": alt.Y(
                "place:N", sort=list(dict.fromkeys(row["place"] for row in shown)), title=None,
                axis=alt.Axis(domain=False, ticks=False, labelPadding=8, labelLimit=320),
            )
        }  # fmt: skip
        colour: Any = alt.ColorValue(COLOURS[0])
        if is_coloured:
            y["yOffset"] = alt.YOffset("variant:N", sort=variants)
            legend = alt.Legend(title=None, orient="top", columns=4) if not parts else None
            colour = alt.Color("variant:N", scale=scale_of(variants), sort=variants, legend=legend)
        scale = alt.Scale(domain=[least, greatest or 1.0], nice=False)
        keys = ("place", "variant", "case", "value", "low", "high", "end", "text")
        base = alt.Chart(data([{key: row[key] for key in keys} for row in shown]))
        title = on.title
        band = alt.RelativeBandSize(band=0.7)
        few_ticks = alt.Axis(tickCount=6)
        intervals = base.transform_filter("isValid(datum.low)").mark_rule(
            strokeWidth=1.8, color=INK
        )
        tooltip = _tooltip(on, "variant")
        if has_cases:
            tooltip.insert(1, alt.Tooltip("case:N", title="case"))
        layers = [
            base.mark_bar(height=band, opacity=0.85).encode(
                x=alt.X("value:Q", title=title, scale=scale, axis=few_ticks),
                color=colour,
                tooltip=tooltip,
                **y,
            ),
            intervals.encode(x=alt.X("low:Q", title=title, scale=scale), x2=alt.X2("high:Q"), **y),
            base.mark_text(align="left", dx=6, clip=False, color=INK, fontSize=11).encode(
                x=alt.X("end:Q", title=title, scale=scale), text=alt.Text("text:N"), **y
            ),
        ]
        height = (18 if is_coloured else 26) * len(shown) + 6
        heading = _heading(on.heading(panel))
        parts.append(layered(layers, width=WIDE, height=height, title=heading))
    return styled(alt.concat(*parts, columns=1, title=on.head("", *notes)))


def _both(row: Row) -> str:
    return ", ".join(filter(None, [row["variant"], row["case"]]))


def _lines(on: Asked, axis: _charts.Axis) -> alt.ConcatChart:
    """A line for each variant along a swept number, with a band for its intervals, in a panel for
    each case of other swept keys.
    """
    panels = on.panels("about", "rest")
    variants = on.variants()
    ends = [end for row in on.rows for end in (row["value"], row["high"]) if end is not None]
    least = min(0.0, *(row["value"] for row in on.rows))
    greatest = max([*ends, 0.0]) * 1.04 or 1.0
    is_few = len(panels) <= FEW_PANELS
    notes = [_some_of(panels), on.about_intervals().replace("95 %", "bands: 95 %")]
    width, height = (WIDE, 280) if is_few else (NARROW, 190)
    parts: list[Layer] = []
    for panel, rows in list(panels.items())[:MOST_PANELS]:
        legend = None
        if not is_few and not parts and len(variants) > 1:
            legend = alt.Legend(title=None, orient="top", columns=5)
        ends_of_axis = (least, greatest)
        layers = _line_layers(rows, on, axis, ends=ends_of_axis, legend=legend)
        if is_few and len(variants) > 1:
            last = max(row["x"] for row in rows)
            found = {row["variant"]: row["value"] for row in rows if row["x"] == last}
            layers += beside(
                {name: found.get(name, 0.0) for name in variants if name in found},
                domain=(least, greatest),
                order=variants,
                field="variant",
                is_pressed=False,
                width=width,
                height=height,
            )
        heading = _heading(on.heading(panel))
        parts.append(layered(layers, width=width, height=height, title=heading))
    columns = 1 if is_few else 3 if len(parts) > 4 else 2
    return styled(alt.concat(*parts, columns=columns, title=on.head("", *notes)))


def _line_layers(
    rows: Sequence[Row],
    on: Asked,
    axis: _charts.Axis,
    *,
    ends: tuple[float, float],
    legend: alt.Legend | None,
) -> list[alt.Chart]:
    variants = on.variants()
    keys = ("variant", "x", "value", "low", "high")
    ordered = sorted(rows, key=lambda row: row["x"])
    base = alt.Chart(data([{key: row[key] for key in keys} for row in ordered]))
    places = sorted({row["x"] for row in on.rows})
    is_few = len(places) <= _charts.MOST_TICKS
    ticks: dict[str, Any] = {"values": places} if is_few else {"tickCount": 6}
    kind = _charts.scale_of(places).get("type", "linear")
    places_of_x = alt.Scale(type=kind, domain=[places[0], places[-1]], nice=False, padding=12)
    x = alt.X("x:Q", title=axis.title, scale=places_of_x, axis=alt.Axis(format=".6~g", **ticks))
    scale = alt.Scale(domain=list(ends), nice=False)
    y = alt.Y("value:Q", title=on.title, scale=scale)
    colour = alt.Color("variant:N", scale=scale_of(variants), legend=legend)
    shapes = [SHAPES[n // len(COLOURS) % len(SHAPES)] for n in range(len(variants))]
    tooltip = [alt.Tooltip("x:Q", title=axis.title), *_tooltip(on, "variant")]
    return [
        base.transform_filter("isValid(datum.low)")
        .mark_area(opacity=0.2, line=False)
        .encode(x, alt.Y("low:Q", title=on.title, scale=scale), y2=alt.Y2("high:Q"), color=colour),
        base.mark_line(strokeWidth=1.8).encode(
            x, y, colour,
            strokeDash=alt.StrokeDash("variant:N", scale=dashes_of(variants), legend=None),
        ),
        base.mark_point(filled=True, size=46, opacity=1).encode(
            x, y, colour,
            shape=alt.Shape(
                "variant:N", scale=alt.Scale(domain=[*variants], range=shapes), legend=None
            ),
            tooltip=tooltip,
        ),
    ]  # fmt: skip


def _backends(comparison: Comparison) -> alt.LayerChart:
    """The congestion window of each flow of the first run over time, on every backend."""
    most = MOST_FLOWS // len(comparison.backends)
    parts, names, notes = [], [], []
    for backend, results in comparison.results.items():
        run = _single_run.chosen(results, None)
        flows = _single_run.sampled(results, run)
        placed = flows.with_row_index("place")
        greatest = placed.sort("bytes", descending=True, maintain_order=True).head(most)
        drawn = greatest.sort("place").select(
            "flow", pl.format("{} ({}), {}", "flow", "cc", pl.lit(backend)).alias("label")
        )
        samples = results.scan("samples", run).select("flow", "time_s", "cwnd_segments")
        parts.append(samples.join(drawn.lazy(), on="flow", maintain_order="left").collect())
        names += drawn["label"].to_list()
        if len(flows) > most:
            notes = [f"the {most} of {len(flows)} flows that sent most"]
    results = next(iter(comparison.results.values()))
    run = _single_run.chosen(results, None)
    points = pl.concat(parts)
    if points.is_empty():
        raise ValueError("no flow of this run has samples of a window: see `record.samples`")
    chart = over_time(
        points.drop_nulls("label"),
        y="cwnd_segments",
        labels=names,
        title="cwnd (segments)",
        end_s=_single_run.end_of(results, run),
        height=280,
    )
    return styled(chart.properties(title=_single_run.titles_of(results, run, *notes)))
