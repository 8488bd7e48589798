"""Draws the network of a plan: nodes, labelled links, and the paths of flows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt

from tcplab._core import printable
from tcplab._experiment import plan_text
from tcplab.plot._network_layout import positions

Plan = dict[str, Any]
Row = dict[str, Any]
Places = dict[int, tuple[float, float]]
"""The position of each node, in pixels."""

MOST = 4
"""The number of flows drawn for each entry of the experiment; twice as many are drawn in all."""
MOST_NODES = 24
"""A network with more nodes is drawn without those that no flow passes."""

COLUMN = 230
ROW = 74
GAP = 5
MOST_ASIDE = 24
"""The space between the lines of two flows on a link, and the width of all of them, in pixels."""


@dataclass(frozen=True)
class Drawing:
    """The marks of a drawing, with positions in pixels."""

    nodes: list[Row]
    links: list[Row]
    labels: list[Row]
    flows: list[Row]
    arrows: list[Row]
    names: list[str]
    width: int
    height: int
    left_out: str


def drawing(plan: Plan) -> Drawing:
    """Places all marks."""
    flows = _few(plan["flows"])
    paths = [_path(plan, flow["from"], flow["forward"]) for flow in flows]
    back = [_path(plan, flow["to"], flow["back"]) for flow in flows]
    seen = {node for path in paths + back for node in path}
    if len(plan["nodes"]) <= MOST_NODES:
        seen |= set(range(len(plan["nodes"])))
    pairs = zip(plan["lanes"][::2], plan["lanes"][1::2], strict=True)
    links = [(there, other) for there, other in pairs if {there["from"], there["to"]} <= seen]
    ends = [(there["from"], there["to"]) for there, _ in links]
    grid = positions([*paths, *back], ends)
    highest = max((height for _, height in grid.values()), default=0.0)
    place: Places = {
        node: (column * COLUMN, (highest - height) * ROW) for node, (column, height) in grid.items()
    }
    names = [_name(flow) for flow in flows]
    lines, arrows = _ways(paths, names, place)
    lans = {lane["lan"]["node"] for lane in plan["lanes"] if lane["lan"]}
    nodes = [
        {
            "x": x,
            "y": y,
            "name": printable(plan["nodes"][node]),
            "shape": "square" if node in lans else "circle",
        }
        for node, (x, y) in place.items()
    ]
    drawn = {"flows": len(flows), "nodes": len(nodes)}
    some = [f"{few} of {len(plan[of])} {of}" for of, few in drawn.items() if few < len(plan[of])]
    return Drawing(
        nodes=nodes,
        links=[
            dict(zip(("x", "y", "x2", "y2"), (*place[one], *place[other]), strict=True))
            for one, other in ends
        ],
        labels=_labels(links, place),
        flows=lines,
        arrows=arrows,
        names=names,
        width=int(max((x for x, _ in place.values()), default=0)),
        height=int(max((y for _, y in place.values()), default=0)),
        left_out=", ".join(some),
    )


def chart(plan: Plan, colours: list[str]) -> alt.LayerChart:
    """The drawing as a chart."""
    drawn = drawing(plan)
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-20, drawn.width + 20], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[drawn.height + 20, -30], nice=False))
    links = _of(drawn.links).mark_rule(color="#b0b0b0", strokeWidth=7, strokeCap="round")
    about = alt.Legend(title="flow (cc), traffic", symbolType="stroke", labelLimit=320)
    range_ = [colours[number % len(colours)] for number in range(len(drawn.names))]
    colour = alt.Color("flow:N", scale=alt.Scale(domain=drawn.names, range=range_), legend=about)
    flows = _of(drawn.flows).mark_rule(strokeWidth=1.8, strokeCap="round")
    arrows = _of(drawn.arrows).mark_point(shape="triangle", filled=True, size=70, opacity=1)
    nodes = _of(drawn.nodes).mark_point(
        size=130, fill="white", stroke="#404040", strokeWidth=1.5, opacity=1
    )
    names = _text(drawn.nodes, "name", dy=-15, fontSize=12, fontWeight="bold")
    labels = _text(drawn.labels, "about", lineBreak="\n", fontSize=10, lineHeight=12)
    layers = [
        links.encode(x, y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q")),
        flows.encode(x, y, colour, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q")),
        arrows.encode(x, y, colour, angle=alt.Angle("angle:Q", scale=None)),
        nodes.encode(x, y, shape=alt.Shape("shape:N", scale=None)),
        *(layer.encode(x, y) for layer in (*names, *labels)),
    ]
    width, height = max(drawn.width + 40, 200), max(drawn.height + 50, 60)
    chart = alt.layer(*layers).properties(
        width=width,
        height=height,
        padding={"left": 60, "right": 60, "top": 10, "bottom": 20},
        title=alt.TitleParams(
            printable(plan["experiment"]), subtitle=[drawn.left_out] if drawn.left_out else []
        ),
    )
    assert isinstance(chart, alt.LayerChart)
    return chart


def _of(rows: list[Row]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=rows))


def _text(rows: list[Row], column: str, **look: Any) -> list[alt.Chart]:
    """Text with a white outline below it, which stays readable on lines."""
    halo = _of(rows).mark_text(
        stroke="white", strokeWidth=3, strokeJoin="round", color="white", **look
    )
    text = _of(rows).mark_text(color="#202020", **look)
    return [layer.encode(text=alt.Text(f"{column}:N")) for layer in (halo, text)]


def _few(flows: list[Any]) -> list[Any]:
    """The first flows of each entry of the experiment."""
    kinds: dict[str, list[Any]] = {}
    for flow in flows:
        kinds.setdefault(flow["place"], []).append(flow)
    # Flows that are listed one by one have an entry each.
    listed = [alike[:MOST] for alike in kinds.values()]
    few = [flow for alike in listed for flow in alike]
    return few[: 2 * MOST]


def _path(plan: Plan, start: int, lanes: list[int]) -> list[int]:
    return [start, *(plan["lanes"][number]["to"] for number in lanes)]


def _name(flow: Any) -> str:
    of = f"{flow['name']} ({plan_text.transport(flow['transport'])})"
    return printable(f"{of}, {plan_text.traffic(flow['traffic'])}")


def _labels(links: list[tuple[Any, Any]], place: Places) -> list[Row]:
    """The labels of links. Identical links of one entry of the experiment share a label."""
    alike: dict[tuple[str, ...], list[tuple[Any, Any]]] = {}
    for there, back in links:
        alike.setdefault((there["place"], _about(there), _about(back)), []).append((there, back))
    rows: list[Row] = []
    for (_, forward, backward), same in alike.items():
        # Below the lowest of these links.
        ends = [(place[there["from"]], place[there["to"]]) for there, _ in same]
        (x, y), (x2, y2) = max(ends, key=lambda ends: ends[0][1] + ends[1][1])
        about = forward
        # A packet from a shared LAN has crossed that LAN already.
        if forward != backward and not same[0][0]["lan"]:
            first, second = (forward, backward) if x <= x2 else (backward, forward)
            about = f"\u2192 {first}\n\u2190 {second}"
        rows.append({"x": (x + x2) / 2, "y": (y + y2) / 2 + 22, "about": _printable(about)})
    return rows


def _printable(text: str) -> str:
    """The printable part of each line."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _about(lane: Any) -> str:
    rate, delay, queue, loss = plan_text.lane(lane)
    lost = "" if loss == "none" else f"\nloss {loss}"
    besides = plan_text.besides(lane)
    return f"{rate}, {delay}\n{queue}{lost}" + (f"\n{besides}" if besides else "")


def _ways(paths: list[list[int]], names: list[str], place: Places) -> tuple[list[Row], list[Row]]:
    """The lines of flows, side by side on each link, and a triangle at the end of each."""
    on_link: dict[frozenset[int], list[str]] = {}
    for path, name in zip(paths, names, strict=True):
        for ends in pairwise(path):
            on_link.setdefault(frozenset(ends), []).append(name)
    lines, arrows = [], []
    for path, name in zip(paths, names, strict=True):
        for step in pairwise(path):
            one, other = step
            beside = on_link[frozenset(step)]
            gap = min(GAP, MOST_ASIDE / len(beside))
            aside = (beside.index(name) - (len(beside) - 1) / 2) * gap
            (x, y), (x2, y2) = place[one], place[other]
            lines.append({"x": x, "y": y + aside, "x2": x2, "y2": y2 + aside, "flow": name})
            if other == path[-1]:
                angle = math.degrees(math.atan2(y2 - y, x2 - x)) + 90
                at = {"x": x + (x2 - x) * 0.8, "y": y + (y2 - y) * 0.8 + aside}
                arrows.append({**at, "angle": angle, "flow": name})
    return lines, arrows
