"""Charts of two quantities: two swept keys, throughput and delay, one sender against another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from tcplab import statistics
from tcplab._core import printable
from tcplab._experiment.labels import labels
from tcplab._experiment.quantities import numbers
from tcplab._report._phrases import phrase
from tcplab._results.results import Results
from tcplab._results.summary_table import short_names
from tcplab._results.versus import LESS
from tcplab._statistics.estimates import ellipse
from tcplab.plot._single_run import checked
from tcplab.plot._style import (
    INK,
    QUIET,
    Layer,
    data,
    layered,
    scale_of,
    styled,
    titled,
)
from tcplab.plot._variants import MOST_PANELS, about_runs, asked, labelled, missing

MOST_TEXTS = 400
"""The most cells that show their number."""

MOST_DRAWN = 3000
"""Up to this number of runs, each is a point; beyond, only ellipses and means are drawn."""

CHARACTER = 6.3
"""The width of a letter of a label, in pixels."""


def heatmap(
    results: Results,
    metric: str | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    by: str | None = None,
) -> alt.ConcatChart:
    """Draws the mean of a metric over two swept keys, as colour and as a number, in a panel for
    each combination of other swept keys.

    Args:
        results: The results.
        metric: As for `compare`.
        x: The swept key of the horizontal axis; the last part of its path is enough. By default the
            numeric key with the most values.
        y: The swept key of the vertical axis; by default the next.
        by: As for `compare`.

    Raises:
        ValueError: Fewer than two keys are swept, or a given key or metric does not exist.
    """
    on = asked(results, metric, by)
    first, second = _two_keys(results, x, y)
    words = phrase(on.metric)
    question = on.question
    others = [
        name
        for name in results.swept
        if name not in (first, second) and results.runs[name].n_unique() > 1
    ]
    short = short_names(results.swept)
    shown = {name: labels(results.runs[name].to_list()) for name in results.swept}
    rows: list[dict[str, Any]] = []
    for row in question.summary.iter_rows(named=True):
        said = [f"{short[name]} = {shown[name][row[name]]}" for name in others if row[name]]
        about = question.about(question.group_of(row))
        several = len(question.others) > 0
        value = row[on.metric]
        rows.append(
            {
                "panel": printable(", ".join([*([about] if several else []), *said])),
                "x": printable(shown[first].get(row[first], "-")),
                "y": printable(shown[second].get(row[second], "-")),
                "value": None if value is None else value * words.factor,
                "text": "-" if value is None else words.bare(value),
            }
        )
    values = [row["value"] for row in rows if row["value"] is not None]
    low, high = min(values), max(values)
    is_less = on.metric in LESS
    # Viridis has evenly increasing lightness; better values are lighter.
    scale = alt.Scale(scheme="viridis", domain=[low, high], reverse=is_less)
    # Dark text on light cells.
    middle = low + (0.4 if is_less else 0.6) * (high - low)
    is_light = f"datum.value {'<' if is_less else '>'} {middle}"
    panels: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        panels.setdefault(row["panel"], []).append(row)
    horizontal, vertical = _ordered(results, first), _ordered(results, second)
    parts: list[Layer] = []
    for name, cells in list(panels.items())[:MOST_PANELS]:
        base = alt.Chart(data([{k: v for k, v in cell.items() if k != "panel"} for cell in cells]))
        axes = {
            "x": alt.X(
                "x:N",
                sort=horizontal,
                title=_key_title(results, first),
                axis=alt.Axis(labelAngle=0, labelOverlap=False),
            ),
            "y": alt.Y("y:N", sort=vertical[::-1], title=_key_title(results, second)),
        }
        legend = alt.Legend(title=on.title, gradientLength=160) if not parts else None
        layers = [
            base.mark_rect(stroke="white").encode(
                color=alt.Color("value:Q", scale=scale, legend=legend),
                tooltip=[
                    alt.Tooltip("x:N"),
                    alt.Tooltip("y:N"),
                    alt.Tooltip("value:Q", title=on.title, format=".4~g"),
                ],
                **axes,
            )
        ]
        if len(cells) <= MOST_TEXTS:
            layers.append(
                base.mark_text(fontSize=11).encode(
                    text=alt.Text("text:N"),
                    color=alt.condition(is_light, alt.value("black"), alt.value("white")),
                    **axes,
                )
            )
        size = {"width": alt.Step(58), "height": alt.Step(46 if len(vertical) < 4 else 30)}
        parts.append(layered(layers, title=_small(name), **size))
    notes = [f"{MOST_PANELS} of {len(panels)} panels" if len(panels) > MOST_PANELS else ""]
    notes.append("lighter is better" if on.metric in LESS or not is_less else "")
    return styled(alt.concat(*parts, columns=2, title=on.head("", *notes)))


def _small(text: str) -> Any:
    if not text:
        return alt.Undefined
    return alt.TitleParams(text, fontSize=12, fontWeight="normal", color=QUIET, offset=6)


def _two_keys(results: Results, x: str | None, y: str | None) -> tuple[str, str]:
    varied = [name for name in results.swept if results.runs[name].n_unique() > 1]
    given = [None if key is None else _swept_key(results, key) for key in (x, y)]
    # Numeric keys first, in the order of falling number of values.
    rest = sorted(
        (name for name in varied if name not in given),
        key=lambda name: (
            numbers(results.runs[name].to_list()) is None,
            -results.runs[name].n_unique(),
        ),
    )
    keys = [key if key is not None else (rest.pop(0) if rest else None) for key in given]
    first, second = keys
    if first is None or second is None or first == second:
        swept = ", ".join(varied) or "nothing"
        raise ValueError(f"a heat map needs two swept keys; there is {swept}")
    return first, second


def _swept_key(results: Results, key: str) -> str:
    if key in results.swept:
        return key
    ends = [name for name in results.swept if name.rsplit(".", 1)[-1] == key]
    if len(ends) != 1:
        swept = ", ".join(results.swept) or "nothing"
        raise ValueError(f"{key!r} is not swept; there is {swept}")
    return ends[0]


def _ordered(results: Results, name: str) -> list[str]:
    """The labels of a key's values: numbers by size, others in the order of the experiment."""
    texts = results.runs[name].unique(maintain_order=True).drop_nulls().to_list()
    shown = labels(results.runs[name].to_list())
    if (found := numbers(texts)) is not None:
        sizes = dict(zip(texts, found[1], strict=True))
        texts.sort(key=lambda text: sizes[text])
    return [printable(shown[text]) for text in texts]


def _key_title(results: Results, name: str) -> str:
    return printable(short_names(results.swept)[name])


def tradeoff(
    results: Results,
    *,
    x: str | None = None,
    y: str = "goodput_mbit_s",
    by: str | None = None,
) -> alt.ConcatChart:
    """Draws throughput against delay, as papers on congestion control have done since Remy: each
    flow of each run is a point, and each variant has its mean and the ellipse of one standard
    deviation. Delay grows to the left: better is up and to the right.

    Args:
        results: The results.
        x: The delay: by default the mean queueing delay if links are recorded, else the mean RTT.
            For another metric, the axis grows to the left if less of it is better.
        y: The throughput, or any other metric.
        by: What a point is about in each run, as in `Results.summary`; by default the choice with
            few rows.

    Raises:
        ValueError: A metric does not exist, or no run has both.
    """
    checked(results)
    names = [x] if x is not None else ["queue_delay_mean_ms", "rtt_mean_ms"]
    for name in names:
        on = asked(results, y, by).question
        runs = results._per_run(on.by, [y, name]).rows
        for one in (y, name):
            if one not in runs.columns:
                raise ValueError(f"metrics: there is no {one!r}")
        rows = runs.drop_nulls([y, name])
        if len(rows):
            break
    else:
        raise ValueError(f"no run has both {y} and {names[0]}{missing(names[0])}")
    delay, rate = phrase(name), phrase(y)
    points = labelled(on, rows).select(
        "about", "case", "variant",
        (pl.col(name).cast(pl.Float64) * delay.factor).alias("x"),
        (pl.col(y).cast(pl.Float64) * rate.factor).alias("y"),
    )  # fmt: skip
    variants = points["variant"].unique(maintain_order=True).to_list()
    panels = points.partition_by(["about", "case"], as_dict=True, maintain_order=True)
    shown = list(panels.items())[:MOST_PANELS]
    size = {"width": 480, "height": 340} if len(shown) == 1 else {"width": 330, "height": 250}
    notes = [f"{MOST_PANELS} of {len(panels)} panels" if len(panels) > MOST_PANELS else ""]
    is_left = name in LESS
    if is_left and y not in LESS:
        notes.append("up and to the right is better")
    notes.append(
        "large: means; ellipses: one standard deviation"
        if any(len(one) > 2 for one in points.partition_by("about", "case", "variant"))
        else "one or two runs of each: no ellipses"
    )
    several = points["about"].n_unique() > 1
    drawn = [(panel, clouds(own)) for panel, own in shown]
    parts: list[Layer] = []
    for (about, case), cloud in drawn:
        # All flows of a case share axes; in another case, the network may be ten times as fast.
        like = [other for (_, its), other in drawn if its == case]
        ends = [_domain([end for other in like for end in other.values(axis)]) for axis in "xy"]
        plane = Plane((delay.title(), rate.title()), ends[0], ends[1], is_left)
        heading = ", ".join(filter(None, [str(about) if several else "", str(case)]))
        layers = _clouds(cloud, variants, plane, **size)
        parts.append(layered(layers, title=_small(heading), **size))
    title = titled(
        f"{rate.title()} against {delay.noun}",
        [about_runs(results), "; ".join(filter(None, notes))],
    )
    return styled(alt.concat(*parts, columns=2, title=title))


@dataclass(frozen=True)
class Clouds:
    """The points of a panel, `variant`, `x`, `y`; the mean of each variant; and the outline of its
    ellipse, in `order`, if it has at least three points.
    """

    points: pl.DataFrame
    means: pl.DataFrame
    outlines: pl.DataFrame

    def values(self, axis: str) -> list[float]:
        """All drawn values along an axis."""
        frames = (self.points, self.means, self.outlines)
        return [float(value) for frame in frames for value in frame[axis]]


@dataclass(frozen=True)
class Plane:
    """The axes of all panels: titles and ranges."""

    titles: tuple[str, str]
    x: tuple[float, float]
    y: tuple[float, float]
    is_left: bool
    """Whether the horizontal axis grows to the left."""


def clouds(points: pl.DataFrame) -> Clouds:
    """The marks for the points of a panel."""
    means = points.group_by("variant", maintain_order=True).agg(
        pl.col("x").mean(), pl.col("y").mean(), pl.len().alias("n")
    )
    outlines = []
    for (variant,), own in points.group_by("variant", maintain_order=True):
        outline = ellipse(own["x"], own["y"])
        outlines += [
            {"variant": variant, "x": x, "y": y, "order": place}
            for place, (x, y) in enumerate(outline)
        ]
    schema = {"variant": pl.String, "x": pl.Float64, "y": pl.Float64, "order": pl.Int64}
    return Clouds(points, means, pl.DataFrame(outlines, schema=schema))


def _domain(values: Sequence[float]) -> tuple[float, float]:
    """An axis with a margin around everything drawn in any panel."""
    low, high = min(values), max(values)
    edge = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return (low - edge if low - edge > 0 or low < 0 else 0.0), high + edge


def _clouds(
    drawn: Clouds, variants: Sequence[str], plane: Plane, *, width: int, height: int
) -> list[alt.Chart]:
    points, means, outlines = drawn.points, drawn.means, drawn.outlines
    titles, x_domain, y_domain, is_left = plane.titles, plane.x, plane.y, plane.is_left
    x = alt.X(
        "x:Q", title=titles[0],
        scale=alt.Scale(domain=[*x_domain], nice=False, reverse=is_left, zero=False),
    )  # fmt: skip
    y = alt.Y("y:Q", title=titles[1], scale=alt.Scale(domain=[*y_domain], nice=False, zero=False))
    colour = alt.Color("variant:N", scale=scale_of(variants), legend=None)
    tooltip = [
        alt.Tooltip("variant:N"),
        alt.Tooltip("x:Q", title=titles[0], format=".4~g"),
        alt.Tooltip("y:Q", title=titles[1], format=".4~g"),
    ]
    wide = x_domain[1] - x_domain[0]
    tall = y_domain[1] - y_domain[0]
    wanted = {}
    for variant, at, up, _ in means.iter_rows():
        right = (x_domain[1] - at if is_left else at - x_domain[0]) / wide * width
        wanted[variant] = (right, height * (1 - (up - y_domain[0]) / tall))
    names = [
        {"variant": variant, "left": left, "top": top}
        for variant, (left, top) in placed(wanted, width).items()
    ]
    layers = []
    if len(outlines):
        layers.append(
            alt.Chart(data(outlines))
            .mark_line(strokeWidth=1.3, interpolate="linear-closed", fillOpacity=0.1)
            .encode(
                x, y, colour, order=alt.Order("order:Q"),
                fill=alt.Fill("variant:N", scale=scale_of(variants), legend=None),
            )
        )  # fmt: skip
    if len(points) <= MOST_DRAWN:
        layers.append(
            alt.Chart(data(points.select("variant", "x", "y")))
            .mark_circle(size=16, opacity=0.5)
            .encode(x, y, colour, tooltip=tooltip)
        )
    layers.append(
        alt.Chart(data(means))
        .mark_point(filled=True, size=90, opacity=1, stroke="white", strokeWidth=1)
        .encode(x, y, colour, tooltip=[*tooltip, alt.Tooltip("n:Q", title="points")])
    )
    at = {"x": alt.X("left:Q", scale=None, axis=None), "y": alt.Y("top:Q", scale=None, axis=None)}
    base = alt.Chart(data(names))
    look: dict[str, Any] = {"align": "left", "baseline": "middle", "fontSize": 12, "clip": False}
    halo = base.mark_text(
        stroke="white", strokeWidth=3, strokeJoin="round", color="white", aria=False, **look
    )
    layers += [
        halo.encode(text=alt.Text("variant:N"), **at),
        base.mark_text(fontWeight="bold", **look).encode(
            text=alt.Text("variant:N"), color=colour, **at
        ),
    ]
    return layers


def placed(
    wanted: Mapping[str, tuple[float, float]], width: float
) -> dict[str, tuple[float, float]]:
    """The left ends of labels of points, in pixels: to the right of each point, or to its left if
    there is no room, and moved down where labels would overlap.
    """
    boxes: list[tuple[float, float, float]] = []
    found = {}
    for name, (x, y) in sorted(wanted.items(), key=lambda one: (one[1][1], one[1][0], one[0])):
        # Letters of other scripts are about twice as wide.
        long = sum(CHARACTER * (1 if ord(letter) < 0x2E80 else 2) for letter in name)
        left = x + 9 if x + 9 + long <= width + 60 else x - 9 - long
        top = y - 9
        for other, end, at in sorted(boxes, key=lambda box: box[2]):
            if left < end and other < left + long and abs(at - top) < 13:
                top = at + 13
        boxes.append((left, left + long, top))
        found[name] = (left, top)
    return found


def shares(results: Results) -> alt.ConcatChart:
    """Draws how flows share a bottleneck: the goodput of a flow with the congestion control of the
    row, as a share of its goodput plus that of a flow with the congestion control of the column. 50
    % is equal. Other swept keys make a panel for each case.

    If both flows have the same congestion control, the first flow is compared with the others. With
    several runs, the tooltip has the 95 % interval of the mean.

    Raises:
        ValueError: No two flows with goodput share a bottleneck.
    """
    checked(results)
    cells = pairs(results)
    if cells.is_empty():
        raise ValueError(
            "no two flows of a run share a bottleneck: a matrix of shares needs flows of two "
            "congestion controls side by side, or two of one"
        )
    order = list(dict.fromkeys([*cells["mine"], *cells["theirs"]]))
    parts: list[Layer] = []
    panels = cells.partition_by("case", as_dict=True, maintain_order=True)
    for (case,), own in list(panels.items())[:MOST_PANELS]:
        base = alt.Chart(data(own.drop("case")))
        axes = {
            "x": alt.X(
                "theirs:N", sort=order, title="against",
                axis=alt.Axis(
                    orient="top", labelAngle=0, labelOverlap=False, domain=False, ticks=False
                ),
            ),
            "y": alt.Y(
                "mine:N", sort=order, title="share of", axis=alt.Axis(domain=False, ticks=False)
            ),
        }  # fmt: skip
        legend = alt.Legend(title="share (%)", gradientLength=140) if not parts else None
        scale = alt.Scale(range=["#D55E00", "#F7F7F7", "#0072B2"], domain=[0, 50, 100])
        tooltip = [
            alt.Tooltip("mine:N", title="share of"), alt.Tooltip("theirs:N", title="against"),
            alt.Tooltip("share:Q", title="share (%)", format=".3~g"),
            alt.Tooltip("low:Q", title="from", format=".3~g"),
            alt.Tooltip("high:Q", title="to", format=".3~g"),
            alt.Tooltip("runs:Q", title="runs"),
        ]  # fmt: skip
        layers = [
            base.mark_rect(stroke="white", strokeWidth=2).encode(
                color=alt.Color("share:Q", scale=scale, legend=legend), tooltip=tooltip, **axes
            ),
            base.mark_text(fontSize=12).encode(
                text=alt.Text("share:Q", format=".0f"),
                color=alt.condition(
                    "abs(datum.share - 50) > 32", alt.value("white"), alt.value(INK)
                ),
                **axes,
            ),
        ]
        step = {"width": alt.Step(74), "height": alt.Step(42)}
        parts.append(layered(layers, title=_small(str(case)), **step))
    note = f"{MOST_PANELS} of {len(panels)} panels" if len(panels) > MOST_PANELS else ""
    title = titled(
        "Share of a flow (row) against another (column), in %",
        [about_runs(results), "50 is equal; blue: more, orange: less", note],
    )
    return styled(alt.concat(*parts, columns=2, title=title))


def pairs(results: Results) -> pl.DataFrame:
    """The cells of the matrix: `case`, `mine`, `theirs`, `share` in percent with its interval from
    `low` to `high`, and the number of `runs`.
    """
    cases = [name for name in results.swept if _is_case(results, name)]
    short = short_names(results.swept)
    shown = {name: labels(results.runs[name].to_list()) for name in cases}
    flows = with_part(results)
    place = ["run", "repetition", *results.swept, "bottleneck"]
    mean = flows.group_by(*place, "kind", maintain_order=True).agg(
        pl.col("rate").mean(), pl.col("rate").first().alias("first"),
        pl.col("rate").slice(1).mean().alias("others"),
    )  # fmt: skip
    found: dict[tuple[str, str, str], list[float]] = {}
    groups = mean.partition_by(
        "run", "repetition", *results.swept, "bottleneck", maintain_order=True
    )
    for group in groups:
        rows = group.to_dicts()
        said = [f"{short[name]} = {shown[name][rows[0][name]]}" for name in cases if rows[0][name]]
        case = printable(", ".join(said))
        for mine in rows:
            for theirs in rows:
                one, other = mine["rate"], theirs["rate"]
                if mine is theirs:
                    one, other = mine["first"], mine["others"]
                if other is None or one + other == 0:
                    continue
                key = (case, printable(mine["kind"]), printable(theirs["kind"]))
                found.setdefault(key, []).append(100 * one / (one + other))
    made = []
    for (case, mine_, theirs_), values in found.items():
        few = 1 < len(values) < statistics.FEWEST
        told = statistics.interval(values, assume="normal" if few else None)
        made.append((case, mine_, theirs_, told.estimate, told.low, told.high, len(values)))
    schema = {"case": pl.String, "mine": pl.String, "theirs": pl.String, "share": pl.Float64,
              "low": pl.Float64, "high": pl.Float64, "runs": pl.Int64}  # fmt: skip
    return pl.DataFrame(made, schema=schema, orient="row")


def with_part(results: Results) -> pl.DataFrame:
    """The flows present in the measured part, with their `rate` and `kind`."""
    there = (
        results.metrics("equal_shares")
        .filter(pl.col("equal_shares").is_not_null())
        .select("run", "flow")
        .unique(maintain_order=True)
    )
    kind = pl.coalesce("cc", "transport").alias("kind")
    rate = pl.col("goodput_mbit_s").fill_null(0.0).alias("rate")
    flows = results.joined("flows").filter(pl.col("bottleneck").is_not_null())
    return flows.join(there, on=["run", "flow"], how="semi", maintain_order="left").with_columns(
        kind, rate
    )


def _is_case(results: Results, name: str) -> bool:
    """Whether a swept key is a condition, rather than the choice of competitors."""
    if results.runs[name].n_unique() < 2 or is_cc(name):
        return False
    if name != "variant":
        return True
    # Variants that differ in their congestion controls choose the competitors.
    used = results.joined("flows").group_by(name).agg(pl.col("cc").sort().str.join(","))
    return used["cc"].n_unique() < len(used)


def is_cc(name: str) -> bool:
    """Whether a swept key is the congestion control of flows."""
    return re.search(r"(^|[._])cc(\d*|\.name)?$", name) is not None
