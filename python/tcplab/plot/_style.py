"""The look of all charts, and their common elements: lines with labels beside them, zooming."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import altair as alt
import polars as pl

from tcplab._core import printable

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The colours of Okabe and Ito (2008), which colour-blind people can distinguish, without yellow,
which is too pale on white.
"""

LINK_COLOURS = ("#595959", "#E69F00", "#56B4E9", "#009E73")
"""The colours of links. The first is grey, which no flow has."""

DASHES = ([1, 0], [6, 3], [2, 2])
"""The dash patterns for lines beyond the number of colours."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

FONT = (
    "'Liberation Sans', 'Noto Sans', Arial, 'DejaVu Sans', 'Noto Sans CJK SC', 'PingFang SC', "
    "'Microsoft YaHei', 'Droid Sans Fallback', 'Noto Sans Arabic', 'Noto Sans Hebrew', "
    "'Noto Sans Devanagari', sans-serif"
)
"""The order in which fonts are searched for a script: names may be in any script."""

INK, QUIET = "#1B1F24", "#595959"

WIDTH = 640
SAMPLE = 18
"""The length of the piece of line beside a label, in pixels."""

LINE = 14
"""The least distance between two labels, in pixels."""

ROLES = ("lines", "bars", "plane", "labels", "values")

Styled = TypeVar("Styled", bound=alt.TopLevelMixin)
Layer = alt.Chart | alt.LayerChart


def styled(chart: Styled) -> Styled:
    """Applies the look of all charts."""
    made: Any = linked(chart)
    drawn: Styled = made.configure(
        background="white",
        font=FONT,
        title=alt.TitleConfig(anchor="start", fontSize=15, subtitleFontSize=12, offset=12),
        axis=alt.AxisConfig(gridOpacity=0.5, labelFontSize=11, titleFontSize=12),
        legend=alt.LegendConfig(
            labelFontSize=11, titleFontSize=12, labelLimit=260, symbolOpacity=1
        ),
        header=alt.HeaderConfig(labelFontSize=12, titleFontSize=12),
        view=alt.ViewConfig(stroke=None),
    )
    return drawn


def titled(text: str, notes: Sequence[str] = ()) -> alt.TitleParams:
    """A title, with notes below it."""
    return alt.TitleParams(printable(text), subtitle=[printable(note) for note in notes if note])


class _Rows(alt.InlineData):
    """Rows that never change. Altair copies the data of a chart at each step of its making."""

    def __deepcopy__(self, _: Any) -> _Rows:
        """Returns the rows themselves."""
        return self


def data(rows: pl.DataFrame | Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Rows as inline data of a chart's specification."""
    values = rows.to_dicts() if isinstance(rows, pl.DataFrame) else [dict(row) for row in rows]
    return _Rows(values=values)


def linked(chart: Styled) -> Styled:
    """Makes a chart interactive, by the roles that its layers have as names. Layers named `lines`
    and `bars` zoom and move along their horizontal axis, all together; a `plane` does along both
    axes. A click on one of the `labels`, or on `lines` without labels, fades everything with
    another `label`. Of `values`, those next to the pointer are shown.

    Altair would link layers of unrelated panels.
    """
    views: dict[str, list[str]] = {role: [] for role in ROLES}
    params: list[Any] = []

    def add(name: str, select: dict[str, Any], roles: Sequence[str], **more: Any) -> None:
        if there := [view for role in roles for view in views[role]]:
            param = alt.TopLevelSelectionParameter(name=name, select=select, views=there, **more)
            params.append(param)

    for panel, layer in _layers(chart):
        # Altair sometimes appends the number of the panel to the names of its layers.
        role = re.sub(r"_\d+$", "", layer.name) if isinstance(layer.name, str) else ""
        if role not in ROLES:
            continue
        number = len(views[role]) if panel is None else panel
        layer.name = f"{role}_{number}"
        views[role].append(layer.name)
        if role == "values":
            shown = {"param": f"over_{number}", "empty": False, "value": 0.6}
            layer.encoding.opacity = {"condition": shown, "value": 0}
            over = {"type": "point", "encodings": ["x"], "nearest": True, "on": "pointerover"}
            param = alt.TopLevelSelectionParameter(
                name=f"over_{number}", select=over | {"clear": "pointerout"}, views=[layer.name]
            )
            params.append(param)
    add("zoom", {"type": "interval", "encodings": ["x"]}, ["lines", "bars"], bind="scales")
    add("move", {"type": "interval", "encodings": ["x", "y"]}, ["plane"], bind="scales")
    if views["lines"]:
        picked = {"type": "point", "fields": ["label"], "toggle": "true"}
        # Two layers of a panel cannot share a selection.
        add("picked", picked, ["labels"] if views["labels"] else ["lines"])
    made: Any = chart
    if params:
        made.params = params
    known: Styled = made
    return known


def _layers(chart: Any, panel: int | None = None) -> Iterator[tuple[int | None, Any]]:
    """The single charts within a chart, each with the number of its panel, if any."""
    for kind in ("layer", "vconcat", "concat"):
        parts = getattr(chart, kind, alt.Undefined)
        # Every chart has an attribute `layer`, which may be a method.
        if isinstance(parts, list):
            for number, part in enumerate(parts):
                yield from _layers(part, panel if kind == "layer" else number)
            return
    yield panel, chart


def layered(layers: Sequence[Layer], **about: Any) -> alt.LayerChart:
    """Layers on top of each other, with a size and a title."""
    known = {name: value for name, value in about.items() if value is not alt.Undefined}
    chart = alt.layer(*layers).properties(**known)
    assert isinstance(chart, alt.LayerChart)
    return chart


def stacked(parts: Sequence[Layer], title: alt.TitleParams | None = None) -> alt.VConcatChart:
    """Panels above each other, with independent colours."""
    chart = alt.vconcat(*parts, title=alt.Undefined if title is None else title)
    apart: alt.VConcatChart = chart.resolve_scale(
        color="independent", strokeDash="independent", shape="independent"
    )
    return apart


def constant(channel: Any, value: float) -> Any:
    """A channel with one value for all marks. Channels are objects throughout: to find the class of
    a text (`"label:N"`) or of `alt.value`, Altair compares hundreds of schemas.
    """
    return channel(value)


def faded(opacity: float = 1.0) -> Any:
    """An opacity that drops if something else is selected."""
    return alt.OpacityValue(0.08, condition={"param": "picked", "value": opacity})


def scale_of(names: Sequence[str], palette: Sequence[str] = COLOURS) -> alt.Scale:
    """A colour for each name."""
    colours = [palette[number % len(palette)] for number in range(len(names))]
    return alt.Scale(domain=[*names], range=colours)


def dashes_of(names: Sequence[str], palette: Sequence[str] = COLOURS) -> alt.Scale:
    """A dash pattern for each name: solid until the colours are used up."""
    dashes = [DASHES[number // len(palette) % len(DASHES)] for number in range(len(names))]
    return alt.Scale(domain=[*names], range=dashes)


def beside(
    ends: Mapping[str, float],
    *,
    domain: tuple[float, float],
    width: int,
    height: int,
    palette: Sequence[str] = COLOURS,
    order: Sequence[str],
    field: str = "label",
    is_pressed: bool = True,
) -> list[alt.Chart]:
    """Labels at the right of lines, each with a piece of its line, as near to its end as there is
    room. In print, no legend has to be looked up.
    """
    low, high = domain
    span = (high - low) or 1.0
    wanted = {name: height * (1 - (end - low) / span) for name, end in ends.items()}
    places = spread(wanted, height)
    rows = [{field: name, "place": place} for name, place in places.items()]
    colour = alt.Color(f"{field}:N", scale=scale_of(order, palette), legend=None)
    dash = alt.StrokeDash(f"{field}:N", scale=dashes_of(order, palette), legend=None)
    y = alt.Y("place:Q", scale=None, axis=None)
    base = alt.Chart(data(rows))
    left = width + 8
    opacity = faded() if is_pressed else alt.OpacityValue(1)
    return [
        base.mark_rule(strokeWidth=2, clip=False).encode(
            x=constant(alt.XValue, left),
            x2=constant(alt.X2Value, left + SAMPLE),
            y=y,
            color=colour,
            strokeDash=dash,
            opacity=opacity,
        ),
        base.mark_text(
            align="left", baseline="middle", clip=False, fontSize=11, limit=280, color=INK
        ).encode(
            x=constant(alt.XValue, left + SAMPLE + 5),
            y=y,
            text=alt.Text(f"{field}:N"),
            opacity=opacity,
        ).properties(name="labels" if is_pressed else "names"),
    ]  # fmt: skip


def spread(wanted: Mapping[str, float], height: float) -> dict[str, float]:
    """Positions at least a line apart, each as close as possible to its target. Positions that are
    too close form a block around the mean of their targets.
    """
    blocks: list[tuple[list[str], float]] = []
    for name in sorted(wanted, key=lambda one: wanted[one]):
        blocks.append(([name], wanted[name]))
        while len(blocks) > 1:
            (upper, above), (lower, below) = blocks[-2:]
            if below - above >= LINE * (len(upper) + len(lower)) / 2:
                break
            both = len(upper) + len(lower)
            blocks[-2:] = [
                ([*upper, *lower], (above * len(upper) + below * len(lower)) / both),
            ]
    placed: dict[str, float] = {}
    for names, middle in blocks:
        first = middle - LINE * (len(names) - 1) / 2
        placed |= {name: first + LINE * number for number, name in enumerate(names)}
    # No label is below the axis, where the title stands.
    below = max([0.0, max(placed.values(), default=0.0) - height])
    return {name: place - below for name, place in placed.items()}


def said(text: str, *, width: int = WIDTH, height: int = 60) -> alt.Chart:
    """A panel that says why there is no chart."""
    panel: alt.Chart = (
        alt.Chart(data([{"why": printable(text)}]))
        .mark_text(align="left", baseline="middle", fontSize=12, color=QUIET, limit=width)
        .encode(
            x=constant(alt.XValue, 0), y=constant(alt.YValue, height / 2), text=alt.Text("why:N")
        )
        .properties(width=width, height=height)
    )
    return panel
