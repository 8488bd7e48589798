"""Charts of distributions: cumulative shares, and boxes."""

from __future__ import annotations

import altair as alt
import polars as pl

from tcplab._report._charts import scale_of as scale_for
from tcplab._results.results import Results
from tcplab._text.english import counted
from tcplab.plot._comparison import FEW_PANELS, NARROW, WIDE
from tcplab.plot._style import (
    COLOURS,
    DASHES,
    INK,
    QUIET,
    Layer,
    dashes_of,
    data,
    faded,
    layered,
    scale_of,
    styled,
    titled,
)
from tcplab.plot._variants import MOST_PANELS, Observed, about_runs, observed

MOST_STEPS = 1000
"""The most points of a distribution. Larger ones are sampled evenly in rank, with both ends."""

MOST_LINES = len(COLOURS) * len(DASHES)

MOST_BOXES = 60
MOST_DOTS = 40
"""Up to this number of values, a box shows each of them as a dot."""

PARTS = ("about", "case")

ENDS = (("least", 1.2, 8), ("greatest", 1.2, 8), ("median", 2.5, 14))
"""The ticks of a box, with their thickness and length."""


def cdf(results: Results, metric: str | None = None, *, by: str | None = None) -> alt.ConcatChart:
    """Draws the share of values that do not exceed each value: a line for each variant, in a panel
    for each case of other swept keys.

    Args:
        results: The results.
        metric: `completion_s` is the completion time of each transfer and each flow with an end; a
            line that ends below 100 % has some that did not complete. A column of the samples, like
            `srtt_ms`, is each sample of the measured part of the runs. Any other metric of
            `Results.summary` or `Results.metrics` has a value for each row of each run. By default
            completion times if there are any, else `srtt_ms`.
        by: What a line is about, as in `Results.summary`; by default the choice with few lines.

    Raises:
        ValueError: The metric does not exist, or no run has it.
    """
    found = observed(results, metric, by)
    values = found.rows["value"].drop_nulls()
    axis = _value_axis(values, found.title)
    names = found.rows["variant"].unique(maintain_order=True).to_list()
    notes = _notes(found)
    if len(names) > MOST_LINES:
        notes.append(f"the first {MOST_LINES} of {len(names)} lines")
        names = names[:MOST_LINES]
    is_legend = len(names) > 1
    legend = alt.Legend(title=None, orient="top", columns=4, symbolType="stroke")
    parts: list[Layer] = []
    panels = found.rows.partition_by(PARTS, as_dict=True, maintain_order=True)
    if len(panels) > MOST_PANELS:
        notes.append(f"{MOST_PANELS} of {len(panels)} panels")
    width, height = (WIDE, 240) if len(panels) <= FEW_PANELS else (NARROW, 170)
    for panel, rows in list(panels.items())[:MOST_PANELS]:
        points = steps(rows.filter(pl.col("variant").is_in(names)))
        shown = legend if is_legend and not parts else None
        chart = (
            alt.Chart(data(points.rename({"variant": "label"})))
            .mark_line(strokeWidth=1.6, interpolate="step-after", clip=True)
            .encode(
                x=axis,
                y=alt.Y(
                    "share:Q", title=f"share of {found.what}s (%)",
                    scale=alt.Scale(domain=[0, 100], nice=False),
                ),
                color=alt.Color("label:N", scale=scale_of(names), legend=shown),
                strokeDash=alt.StrokeDash("label:N", scale=dashes_of(names), legend=shown),
                opacity=faded(),
                order=alt.Order("share:Q"),
                tooltip=[alt.Tooltip("label:N")],
            )
            .properties(name="lines", width=width, height=height, title=_heading(found, panel))
        )  # fmt: skip
        parts.append(chart)
    return styled(_concat(parts, found, notes, columns=1 if len(panels) <= FEW_PANELS else 2))


def steps(rows: pl.DataFrame) -> pl.DataFrame:
    """The points of distributions: `variant`, `value`, `share` in percent. Shares count all values,
    including missing ones. Long distributions are sampled and keep both ends.
    """
    place = pl.int_range(1, pl.len() + 1).over("variant")
    ordered = rows.sort("variant", "value", nulls_last=True, maintain_order=True)
    points = ordered.select(
        "variant", "value", (100 * place / pl.len().over("variant")).alias("share"),
        place.alias("place"),
    ).drop_nulls("value")  # fmt: skip
    count = pl.len().over("variant")
    step = (count / MOST_STEPS).ceil().cast(pl.Int64)
    is_kept = ((count - pl.col("place")) % step == 0) | (pl.col("place") == 1)
    points = points.filter(is_kept).drop("place")
    # A line begins at the least value, at 0 %.
    first = points.group_by("variant", maintain_order=True).agg(pl.col("value").min())
    first = first.with_columns(pl.lit(0.0).alias("share"))
    return pl.concat([first, points.select("variant", "value", "share")])


def boxes(results: Results, metric: str | None = None, *, by: str | None = None) -> alt.ConcatChart:
    """Draws the spread of the values of each variant: a box from the first to the third quartile
    with the median in it, and lines to the least and the greatest value. Up to 40 values are drawn
    as dots.

    Args:
        results: The results.
        metric: As for `cdf`. Transfers that did not complete are left out of boxes; the title
            counts them.
        by: As for `cdf`.

    Raises:
        ValueError: The metric does not exist, or no run has it.
    """
    found = observed(results, metric, by)
    notes = [*_notes(found), "box: quartiles and median; lines: least and greatest"]
    summary = five_numbers(found.rows)
    panels = summary.partition_by(PARTS, as_dict=True, maintain_order=True)
    if len(panels) > MOST_PANELS:
        notes.append(f"{MOST_PANELS} of {len(panels)} panels")
    axis = _value_axis(found.rows["value"].drop_nulls(), found.title)
    parts: list[Layer] = []
    for panel, rows in list(panels.items())[:MOST_PANELS]:
        if len(rows) > MOST_BOXES:
            notes.append(f"the first {MOST_BOXES} of {len(rows)} boxes")
        few = rows.head(MOST_BOXES)
        y = alt.Y(
            "variant:N", sort=few["variant"].to_list(), title=None,
            axis=alt.Axis(domain=False, ticks=False, labelPadding=8, labelLimit=280),
        )  # fmt: skip
        base = alt.Chart(data(few.drop(PARTS))).encode(y=y)
        names = {"least": "least", "q1": "first quartile", "median": "median",
                 "q3": "third quartile", "greatest": "greatest"}  # fmt: skip
        tooltip = [alt.Tooltip("variant:N"), alt.Tooltip("n:Q", title=f"{found.what}s")]
        tooltip += [
            alt.Tooltip(f"{key}:Q", title=name, format=".4~g") for key, name in names.items()
        ]
        layers = [
            base.mark_rule(color=INK, strokeWidth=1.2).encode(
                x=_same(axis, "least"), x2=alt.X2("greatest:Q")
            ),
            base.mark_bar(height=14, color="#A9CCE6", stroke=INK, strokeWidth=1).encode(
                x=_same(axis, "q1"), x2=alt.X2("q3:Q"), tooltip=tooltip
            ),
            *(
                base.mark_tick(color=INK, thickness=thick, size=size).encode(x=_same(axis, name))
                for name, thick, size in (
                    ("least", 1.2, 8),
                    ("greatest", 1.2, 8),
                    ("median", 2.5, 14),
                )
            ),
        ]
        own = found.rows.filter(
            pl.col("about") == panel[0],
            pl.col("case") == panel[1],
            pl.col("variant").is_in(few.filter(pl.col("n") <= MOST_DOTS)["variant"].to_list()),
        ).drop_nulls("value")
        if len(own):
            layers.append(
                alt.Chart(data(own.select("variant", "value")))
                .mark_circle(size=14, color=COLOURS[1], opacity=0.7)
                .encode(y=y, x=axis)
            )
        heading = _heading(found, panel)
        parts.append(layered(layers, width=WIDE, height=alt.Step(28), title=heading))
    return styled(_concat(parts, found, notes))


def five_numbers(rows: pl.DataFrame) -> pl.DataFrame:
    """The least, the quartiles (linear between ranks) and the greatest value of each variant."""
    value = pl.col("value")
    return (
        rows.drop_nulls("value")
        .group_by(*PARTS, "variant", maintain_order=True)
        .agg(
            pl.len().alias("n"),
            value.min().alias("least"),
            value.quantile(0.25, "linear").alias("q1"),
            value.median().alias("median"),
            value.quantile(0.75, "linear").alias("q3"),
            value.max().alias("greatest"),
        )
    )


def _same(axis: alt.X, field: str) -> alt.X:
    """The same axis for another column."""
    made: alt.X = axis.copy(deep=False)
    made.shorthand = f"{field}:Q"
    return made


def _value_axis(values: pl.Series, title: str) -> alt.X:
    scale = scale_for(values.to_list())
    # All panels share one axis.
    scale["domain"] = [values.min(), values.max()]
    if scale.get("type") == "log":
        title = f"{title}, logarithmic"
    return alt.X("value:Q", title=title, scale=alt.Scale(**scale))


def _notes(found: Observed) -> list[str]:
    """The number of values, and of transfers that did not complete."""
    number, missing = found.rows["value"].count(), found.rows["value"].null_count()
    said = counted(number, found.what)
    if missing:
        said += f", and {missing:,} that did not complete"
    return [said]


def _heading(found: Observed, panel: tuple[object, ...]) -> alt.TitleParams:
    about, case = (str(part) for part in panel)
    several = found.rows["about"].n_unique() > 1
    kind = {"flow": "flow", "class": "class", "cc": "cc"}[found.question.by]
    text = ", ".join(
        part for part in (f"{kind} {about}" if several and about else "", case) if part
    )
    return alt.TitleParams(text, fontSize=12, fontWeight="normal", color=QUIET, offset=6)


def _concat(
    parts: list[Layer], found: Observed, notes: list[str], *, columns: int = 1
) -> alt.ConcatChart:
    title = titled(found.title, [about_runs(found.question.results), *notes])
    chart: alt.ConcatChart = alt.concat(*parts, columns=columns, title=title)
    return chart
