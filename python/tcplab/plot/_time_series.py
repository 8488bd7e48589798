"""Lines over time: a few flows each with a label, many flows by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from tcplab._core import printable
from tcplab._statistics.thinning import MOST_POINTS, thin
from tcplab.plot._style import (
    COLOURS,
    INK,
    WIDTH,
    Layer,
    beside,
    dashes_of,
    data,
    faded,
    layered,
    scale_of,
)

MOST_FLOWS = 10
"""The most flows that are drawn individually; of more, kinds are drawn."""

MOST_PALE = 60
"""The number of pale lines of single flows behind those of kinds."""

MOST_KINDS = len(COLOURS)
MOST_POINTS_OF_MANY = 24_000
MOST_TIMES = 100
"""The number of times at which a tooltip has the values of all lines."""

BINS = 120
"""The number of parts of a run for which the medians of kinds are computed."""


@dataclass(frozen=True)
class Drawn:
    """A panel, and a note about what it leaves out."""

    chart: alt.LayerChart
    note: str


def over_time(
    points: pl.DataFrame,
    *,
    y: str,
    labels: Sequence[str],
    title: str,
    end_s: float,
    height: int = 220,
    palette: Sequence[str] = COLOURS,
    besides: pl.DataFrame | None = None,
    levels: pl.DataFrame | None = None,
    bands: pl.DataFrame | None = None,
    is_step: bool = False,
    most: float | None = None,
) -> alt.LayerChart:
    """Draws a line over time for each label, with the label beside it.

    Args:
        points: The rows `label`, `time_s` and `y`, in the order of time.
        y: The column that is drawn.
        labels: The labels, in the order of their colours.
        title: The title of the axis.
        end_s: The end of the time axis.
        height: The height of the panel, in pixels.
        palette: The colours.
        besides: Further, dashed lines in the same colours: `label`, `time_s`, `value`.
        levels: Horizontal lines: `label`, `value`, `about`.
        bands: Areas behind the lines: `label`, `time_s`, `low`, `high`.
        is_step: Whether a value holds until the next one.
        most: The greatest end of the axis, whatever `besides` contains.
    """
    names = {label: printable(label) for label in labels}
    shown = list(names.values())
    drawn = _named(points, names).drop_nulls(y)
    low, high = _ends(drawn, y, besides=besides, levels=levels, bands=bands, most=most)
    axis = alt.Scale(domain=[low, high], nice=False)
    x = time_axis(end_s)
    colour = alt.Color("label:N", scale=scale_of(shown, palette), legend=None)
    dash = alt.StrokeDash("label:N", scale=dashes_of(shown, palette), legend=None)
    vertical = alt.Y(f"{y}:Q", title=title, scale=axis)
    thinned = thin(drawn.select("label", "time_s", y), by="label", y=y)
    layers: list[Layer] = []
    if bands is not None and not bands.is_empty():
        areas = thin(_named(bands, names), by="label", y="high")
        layers.append(
            alt.Chart(data(areas))
            .mark_area(opacity=0.25, line=False, interpolate="step-before")
            .encode(
                x, alt.Y("low:Q", title=title, scale=axis), y2=alt.Y2("high:Q"), color=colour
            )
        )  # fmt: skip
    layers.append(
        alt.Chart(data(thinned))
        .mark_line(
            strokeWidth=1.4, interpolate="step-after" if is_step else "linear", clip=True
        )
        .encode(x, vertical, colour, dash, opacity=faded(), tooltip=[alt.Tooltip("label:N")])
        .properties(name="lines")
    )  # fmt: skip
    if besides is not None and not besides.is_empty():
        others = thin(_named(besides, names), by="label", y="value")
        layers.append(
            alt.Chart(data(others))
            .mark_line(
                strokeWidth=1.2, strokeDash=[3, 3], interpolate="step-after", clip=True
            )
            .encode(
                x,
                alt.Y("value:Q", title=title, scale=axis),
                colour,
                opacity=faded(0.75),
                detail=alt.Detail("label:N"),
            )
        )  # fmt: skip
    if levels is not None and not levels.is_empty():
        layers.append(
            alt.Chart(data(_named(levels, names)))
            .mark_rule(strokeWidth=1.2, strokeDash=[2, 4], clip=True)
            .encode(
                alt.Y("value:Q", title=title, scale=axis),
                colour,
                tooltip=[alt.Tooltip("about:N"), alt.Tooltip("value:Q")],
            )
        )
    layers.append(_values(drawn, y, shown, end_s, x))
    ends = dict(drawn.group_by("label", maintain_order=True).agg(pl.col(y).last()).iter_rows())
    layers += beside(
        {**dict.fromkeys(shown, low), **ends},
        domain=(low, high),
        width=WIDTH,
        height=height,
        palette=palette,
        order=shown,
    )
    return layered(layers, width=WIDTH, height=height)


def by_kind(
    points: pl.DataFrame, *, y: str, title: str, end_s: float, height: int = 220
) -> alt.LayerChart:
    """Draws many lines: pale ones in the colour of their kind, and above them the median of the
    kind.

    `points` have the columns `flow`, `kind`, `time_s` and `y`. The label of a kind has the number
    of its flows.
    """
    counts = points.group_by("kind", maintain_order=True).agg(pl.col("flow").n_unique())
    names = {
        kind: printable(f"{kind}, {number} flows" if number > 1 else kind)
        for kind, number in counts.iter_rows()
    }
    shown = list(names.values())
    drawn = points.drop_nulls(y).with_columns(pl.col("kind").replace(names).alias("label"))
    number = drawn["flow"].n_unique()
    lines = thin(
        drawn.select("flow", "label", "time_s", y),
        by="flow",
        y=y,
        most=min(MOST_POINTS, max(MOST_POINTS_OF_MANY // max(number, 1), 100)),
    ).with_columns(pl.col("flow").map_elements(printable, return_dtype=pl.String))
    width = end_s / BINS
    middles = (
        # Each flow counts once in each part of the run.
        drawn.group_by("label", "flow", (pl.col("time_s") // width).alias("part"))
        .agg(pl.col(y).mean())
        .group_by("label", "part")
        .agg(pl.col(y).median())
        .with_columns(((pl.col("part") + 0.5) * width).alias("time_s"))
        .sort("label", "time_s")
        .select("label", "time_s", y)
    )
    low, high = _ends(drawn, y)
    axis = alt.Y(f"{y}:Q", title=title, scale=alt.Scale(domain=[low, high], nice=False))
    x = time_axis(end_s)
    colour = alt.Color("label:N", scale=scale_of(shown), legend=None)
    pale = (
        alt.Chart(data(lines))
        .mark_line(strokeWidth=0.8, clip=True)
        .encode(
            x, axis, colour, detail=alt.Detail("flow:N"), opacity=faded(0.3),
            tooltip=[alt.Tooltip("flow:N"), alt.Tooltip("label:N")],
        )
    )  # fmt: skip
    bold = (
        alt.Chart(data(middles))
        .mark_line(strokeWidth=2.4, clip=True)
        .encode(x, axis, colour, opacity=faded(), tooltip=[alt.Tooltip("label:N")])
        .properties(name="lines")
    )
    ends = dict(middles.group_by("label", maintain_order=True).agg(pl.col(y).last()).iter_rows())
    labels = beside(ends, domain=(low, high), width=WIDTH, height=height, order=shown)
    return layered([pale, bold, *labels], width=WIDTH, height=height)


def of_flows(
    points: pl.DataFrame,
    flows: pl.DataFrame,
    *,
    y: str,
    title: str,
    end_s: float,
    height: int = 220,
    besides: pl.DataFrame | None = None,
    levels: pl.DataFrame | None = None,
    most: float | None = None,
) -> Drawn:
    """Draws the lines of flows: each one if they are few, else by kind.

    `points` have `flow`, `time_s` and `y`, as do `besides` and `levels`; `flows` have `flow`, `cc`,
    `class` and `bytes`.
    """
    there = set(points["flow"].unique())
    shown = flows.filter(pl.col("flow").is_in(there))
    if len(shown) <= MOST_FLOWS:
        named = shown.select("flow", pl.format("{} ({})", "flow", "cc").alias("label"))

        def with_label(rows: pl.DataFrame | None) -> pl.DataFrame | None:
            return None if rows is None else rows.join(named, on="flow", maintain_order="left")

        chart = over_time(
            points.join(named, on="flow", maintain_order="left"),
            y=y,
            labels=named["label"].to_list(),
            title=title,
            end_s=end_s,
            height=height,
            besides=with_label(besides),
            levels=with_label(levels),
            most=most,
        )
        return Drawn(chart, "")
    kind = _kind(shown)
    note = "pale: each flow; bold: the median of those of a kind"
    if len(shown) > MOST_PALE:
        note = f"the {MOST_PALE} of {len(shown)} flows that sent most; {note}"
        places = shown.with_row_index("place")
        greatest = places.sort("bytes", descending=True, maintain_order=True).head(MOST_PALE)
        shown = greatest.sort("place").drop("place")
    kinds = shown.select("flow", pl.col(kind).fill_null("flows").alias("kind"))
    drawn = points.join(kinds, on="flow", maintain_order="left")
    return Drawn(by_kind(drawn, y=y, title=title, end_s=end_s, height=height), note)


def time_axis(end_s: float) -> alt.X:
    """The time axis, from the start of the experiment to its end."""
    scale = alt.Scale(domain=[0, end_s], nice=False)
    axis = alt.Axis(tickCount=8, format=".6~g", grid=False)
    return alt.X("time_s:Q", title="time (s)", scale=scale, axis=axis)


def _kind(flows: pl.DataFrame) -> str:
    """The column that groups many flows: congestion control, or else class."""
    for name in ("cc", "class"):
        if 1 < flows[name].n_unique() <= MOST_KINDS:
            return name
    return "cc" if flows["cc"].n_unique() == 1 else "transport"


def _named(rows: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    return rows.with_columns(pl.col("label").replace(names))


def _ends(
    points: pl.DataFrame,
    y: str,
    *,
    besides: pl.DataFrame | None = None,
    levels: pl.DataFrame | None = None,
    bands: pl.DataFrame | None = None,
    most: float | None = None,
) -> tuple[float, float]:
    """The ends of the axis, which contain everything drawn, and zero."""
    columns = [
        points[y],
        *(rows["value"] for rows in (besides, levels) if rows is not None),
        *([bands["high"]] if bands is not None else []),
    ]
    # Infinite values, such as an unset threshold, are ignored.
    finite = [one.cast(pl.Float64).filter(one.is_finite()) for one in columns]
    high = max([0.0, *(float(one.max()) for one in finite if len(one))])  # type: ignore[arg-type]
    low = min([0.0, *(float(one.min()) for one in finite if len(one))])  # type: ignore[arg-type]
    if most is not None:
        high = min(high, most)
    # Vega draws the zero of an empty axis in the middle.
    return low, (high + 0.04 * (high - low)) or 1.0


def _values(
    points: pl.DataFrame, y: str, shown: Sequence[str], end_s: float, x: alt.X
) -> alt.Chart:
    """A tooltip with the values of all lines at the time under the pointer."""
    times = pl.DataFrame({"time_s": [end_s * k / MOST_TIMES for k in range(MOST_TIMES + 1)]})
    wide = times
    for number, name in enumerate(shown):
        own = points.filter(pl.col("label") == name).select(
            "time_s", pl.col(y).cast(pl.Float64).round_sig_figs(4).alias(f"v{number}")
        )
        wide = wide.join_asof(own.sort("time_s"), on="time_s")
    tooltip = [alt.Tooltip("time_s:Q", title="time (s)", format=".4~g")]
    tooltip += [
        alt.Tooltip(f"v{number}:Q", title=name, format=".4~g") for number, name in enumerate(shown)
    ]
    rules: alt.Chart = (
        alt.Chart(data(wide))
        .mark_rule(color=INK, strokeWidth=0.7, aria=False, clip=True)
        .encode(x, tooltip=tooltip)
        .properties(name="values")
    )
    return rules
