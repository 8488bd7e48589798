"""Hosts, links and flows of a plan as text. Long lists of similar entries are folded."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tcplab._core import printable
from tcplab._experiment import plan_text
from tcplab._text.cells import LEFT, Column
from tcplab._text.plain_tables import table

SHOWN = 3
"""The number of similar entries that are shown."""

MOST_HOSTS = 8

UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

Plan = dict[str, Any]


def hosts(plan: Plan) -> str:
    """The names of the nodes: those with traffic, those that only forward, and shared LANs."""
    ends = {node for flow in plan["flows"] for node in (flow["from"], flow["to"])}
    names = plan["nodes"]
    with_traffic = [name for number, name in enumerate(names) if number in ends]
    lans = {lane["lan"]["node"] for lane in plan["lanes"] if lane["lan"]}
    others = [name for number, name in enumerate(names) if number not in ends | lans]
    lines = [f"hosts    {_names(with_traffic)}"]
    if others:
        lines.append(f"routers  {_names(others)}")
    if lans:
        lines.append(f"LANs     {_names([names[number] for number in sorted(lans)])}")
    return "\n".join(lines)


def _names(names: Sequence[str]) -> str:
    if len(names) <= MOST_HOSTS + 1:
        return printable(", ".join(names))
    return printable(", ".join(names[:MOST_HOSTS])) + f", ... and {len(names) - MOST_HOSTS} more"


def links(plan: Plan) -> str:
    """A row for each link, or for each direction if they differ, and for each station of a LAN."""
    heads = [Column("link", LEFT), Column("rate"), Column("delay"), Column("BDP")]
    heads += [Column("in packets"), Column("queue", LEFT), Column("loss", LEFT)]
    if any(map(plan_text.besides, plan["lanes"])):
        heads.append(Column("besides", LEFT))
    rows: list[tuple[Hashable, list[str]]] = []
    for there, back in zip(plan["lanes"][::2], plan["lanes"][1::2], strict=True):
        about, about_back = _lane(there), _lane(back)
        place = there["place"]
        # A packet from a LAN has crossed that LAN already.
        if about == about_back or there["lan"]:
            name = there["name"].replace(">", " <> ")
            rows.append(((place, *about), [name, *about]))
        else:
            rows.append(((place, ">", *about), [there["name"].replace(">", " > "), *about]))
            rows.append(
                ((place, "<", *about_back), [back["name"].replace(">", " > "), *about_back])
            )
    return table(heads, [row[: len(heads)] for row in _folded(rows, len(heads))])


def _lane(lane: dict[str, Any]) -> list[str]:
    amount, unit = lane["bdp"].split()
    packets = float(amount) * UNITS[unit] / lane["mtu"]
    rate, delay, queue, loss = plan_text.lane(lane)
    return [rate, delay, lane["bdp"], f"{packets:.1f}", queue, loss, plan_text.besides(lane)]


def flows(plan: Plan) -> str:
    """A row for each flow: its path and its transport."""
    heads = [
        Column("flow", LEFT),
        Column("path", LEFT),
        Column("cc", LEFT),
        Column("traffic", LEFT),
    ]
    heads += [Column("start"), Column("base RTT"), Column("bottleneck", LEFT)]
    rows: list[tuple[Hashable, list[str]]] = []
    for flow in plan["flows"]:
        lanes = [plan["lanes"][number] for number in flow["forward"]]
        nodes = [flow["from"], *(lane["to"] for lane in lanes)]
        path = " > ".join(plan["nodes"][node] for node in nodes)
        bottleneck = plan["lanes"][flow["bottleneck"]]
        about = [
            plan_text.transport(flow["transport"]),
            plan_text.traffic(flow["traffic"]),
            _start(flow),
            flow["base_rtt"],
        ]
        kind = (flow["place"], *about[:2], bottleneck["place"], bottleneck["rate"])
        rows.append((kind, [flow["name"], path, *about, bottleneck["name"]]))
    return table(heads, _folded(rows, len(heads)))


def _start(flow: dict[str, Any]) -> str:
    start = "0 s" if flow["start"] == "0 ms" else str(flow["start"])
    return plan_text.up_to(start, flow["start_jitter"])


def _folded(rows: Sequence[tuple[Hashable, list[str]]], width: int) -> list[list[str]]:
    """The rows grouped by kind, in the order of first appearance; a large group is cut."""
    kinds: dict[Hashable, list[list[str]]] = {}
    for kind, row in rows:
        kinds.setdefault(kind, []).append(row)
    result = []
    for alike in kinds.values():
        if len(alike) <= SHOWN + 1:
            result += alike
        else:
            left_out = f"... and {len(alike) - SHOWN} more like it"
            result += [*alike[:SHOWN], [left_out] + [""] * (width - 1)]
    return result
