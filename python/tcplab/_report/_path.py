"""The path of a report: a drawing, a table, and the arithmetic of its bandwidth-delay product."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tcplab import _core, plot
from tcplab._core import printable
from tcplab._experiment import plan_text
from tcplab._experiment.quantities import TIMES
from tcplab._report._charts import LIGHT
from tcplab._report._comparison import Question
from tcplab._report._table import Cell, Table
from tcplab._text.cells import LEFT, Column, decimals, number
from tcplab._text.english import counted, listed
from tcplab.plot import _network

MOST_SUMS = 8
MOST_LINKS = 12
MOST_PLANS = 200
"""The number of variants that are examined."""

Plan = dict[str, Any]


@dataclass(frozen=True)
class Path:
    """The network of the first variant, and the bandwidth-delay products of its bottlenecks."""

    svg: str
    alone: str
    """Which part of the experiment is drawn."""
    links: Table
    sums: Sequence[str]
    note: str


def path(asked: Question) -> Path:
    """The path of the experiment."""
    plans = asked.results.plans
    first: Plan = json.loads(plans[0].to_json())
    chart = _network.chart(first, [*LIGHT]).properties(title="")
    svg = plot.drawn(chart.configure_view(stroke=None), ".svg").decode()
    sums = _sums(variants_of(plans))
    note = f"The first {MOST_SUMS} of {len(sums)} are shown." if len(sums) > MOST_SUMS else ""
    left_out = _network.drawing(first).left_out
    drawn = "of the first variant" if len(asked.results.swept) else ""
    alone = ", ".join(part for part in (drawn, left_out) if part)
    return Path(svg, alone, _links(first), sums[:MOST_SUMS], note)


def variants_of(plans: Sequence[_core.Plan]) -> list[Plan]:
    """The first plan of each variant."""
    found: dict[tuple[tuple[str, str], ...], Plan] = {}
    for plan in plans:
        key = tuple(plan.swept)
        if key not in found and len(found) < MOST_PLANS:
            found[key] = json.loads(plan.to_json())
    return list(found.values())


def _links(plan: Plan) -> Table:
    """A row for each direction of each link. Identical links share a row."""
    heads = [Column(name, LEFT) for name in ("link", "rate", "one-way delay", "queue", "loss")]
    rows, seen = [], set()
    for lane in plan["lanes"]:
        about = (lane["place"], *plan_text.lane(lane))
        if about not in seen:
            seen.add(about)
            name = lane["name"].replace(">", " > ")
            rows.append([Cell(printable(text)) for text in (name, *about[1:])])
    return Table(heads, rows[:MOST_LINKS])


def _sums(plans: Sequence[Plan]) -> list[str]:
    """The arithmetic of each bottleneck; identical bottlenecks share a line."""
    found: dict[str, list[str]] = {}
    for plan in plans:
        for flow in plan["flows"]:
            text = _sum(plan["lanes"][flow["bottleneck"]], flow["base_rtt"])
            names = found.setdefault(text, [])
            if flow["name"] not in names:
                names.append(str(flow["name"]))
    every = {str(flow["name"]) for plan in plans for flow in plan["flows"]}
    return [
        text if len(found) == 1 or set(names) == every
        else f"{printable(listed(names, 4))}: {text}"
        for text, names in found.items()
    ]  # fmt: skip


def _sum(lane: Plan, base_rtt: str) -> str:
    """The arithmetic of one bottleneck: `10 Mbit/s x 40 ms = 50,000 B ...`"""
    rate, _, _, _ = plan_text.lane(lane)
    held = lane["queue"]["discipline"].get("rate")
    slowest = min((one for one in (held, lane["rate"]) if one is not None), key=plan_text.bits)
    bits = plan_text.bits(slowest)
    amount, unit = base_rtt.split()
    rtt_ms = Decimal(amount) * Decimal(TIMES[unit])
    bdp = Decimal(bits) * rtt_ms / 8000
    mtu = lane["mtu"]
    limit = lane["queue"]["limit"]
    packets = limit.get("packets")
    held_bytes = Decimal(packets * mtu if packets is not None else limit["bytes"])
    room = counted(packets, "packet") if packets is not None else f"{int(held_bytes):,} B"
    empty_ms = held_bytes * 8000 / bits if bits else Decimal(0)
    of_bdp = f"{_short(held_bytes / bdp)} BDP" if bdp else ""
    return (
        f"{rate} \u00d7 {base_rtt} = {_short(bdp / 1000)} kB, the BDP: "
        f"{_short(bdp / mtu)} packets of {mtu:,} B. The queue of {printable(lane['name'])} holds "
        f"{room}: {of_bdp}, and {_short(empty_ms)} ms when it is full."
    )


def _short(value: Decimal) -> str:
    return number(float(value), min(decimals(float(value), 3), 2))
