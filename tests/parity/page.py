"""The page of the documentation: one table for each kind of traffic."""

from __future__ import annotations

from collections.abc import Sequence

from parity.grid import PATHS, TIGHT, TRANSFERS
from parity.measures import FIRST, METRICS, Row

KEPT = "## Random experiments\n"
"""The rest of the page, from this heading on, is kept: the output of `make fuzz`, and hand-written
text.
"""

COUNTS = {metric.name for metric in METRICS if metric.is_count}

NOTHING_YET = f"{KEPT}\nNothing has been looked into yet.\n"


def page(rows: Sequence[Row], about: str, before: str) -> str:
    """The page, with the hand-written part of the previous one."""
    kept = before[before.index(KEPT) :] if KEPT in before else NOTHING_YET
    bounded = [row for row in rows if row.holds is not None]
    held = sum(bool(row.holds) for row in bounded)
    parts = [
        "# How closely the simulator follows the kernel\n",
        f'<!-- Written by `make parity`, as far as "{KEPT[3:-1]}". -->\n',
        f"The same experiments on both backends: {about}. Of {len(bounded)} bounds {held} hold.",
        "`make parity` repeats all of it and writes the numbers to `target/parity.json`.\n",
        "- Each path is a dumbbell: the bottleneck's rate, the round trip without queues, the",
        "  bottleneck's queue. With listed loss the queue is 1 BDP, and the same packets are lost",
        "  on both sides, one in a hundred.",
        "- Differences are relative to the kernel, in per cent of its number; for retransmissions",
        "  and loss episodes, they are differences of counts. Of several flows the table has the",
        "  one that differs most; counts are summed. The mean window is over all ACKs.",
        "- The random numbers that bbr, cdg and nv draw are the same on both sides.",
        f"- The {FIRST} is the first that leaves the two with different windows: its number and",
        "  its time.",
        "- **Bold** numbers miss their bounds: " + "; ".join(_bounds()) + ".",
        "",
    ]
    traffics = dict.fromkeys(row.traffic for row in rows)
    for traffic in traffics:
        parts += [f"## {_title(traffic)}\n", *_table([r for r in rows if r.traffic == traffic])]
    return "\n".join([*parts, kept])


def _bounds() -> list[str]:
    close = [f"{metric.name} {metric.bound}" for metric in METRICS if metric.bound]
    others = [f"{metric.name} {metric.other_bound}" for metric in METRICS if metric.other_bound]
    return [
        f"of {', '.join(TIGHT)} {', '.join(close)}",
        f"of the others {', '.join(others)}",
        "no differing ACK in short transfers and with listed loss",
    ]


def _title(traffic: str) -> str:
    names = {
        "one flow": "One flow of 30 s",
        "two flows": "Two flows, the second 5 s after the first, for 40 s",
        "30 kB": "A transfer of 30 kB",
        TRANSFERS: "20 transfers of 100 kB, one after the other",
    }
    return names[traffic]


def _table(rows: Sequence[Row]) -> list[str]:
    metrics = list(dict.fromkeys(row.metric for row in rows))
    lines = [
        "| path | cc | " + " | ".join(metrics) + " |",
        "|---|---|" + "---|" * len(metrics),
    ]
    order = [path.name for path in PATHS]
    cells = dict.fromkeys((row.path, row.cc) for row in rows)
    for path, cc in sorted(cells, key=lambda cell: order.index(cell[0])):
        of_cell = {row.metric: row for row in rows if (row.path, row.cc) == (path, cc)}
        texts = [cell_text(of_cell[metric]) for metric in metrics]
        lines.append(f"| {path} | {cc} | " + " | ".join(texts) + " |")
    return [*lines, ""]


def cell_text(row: Row) -> str:
    """The difference, in bold if it exceeds its bound."""
    text = _difference(row)
    return f"**{text}**" if row.holds is False else text


def _difference(row: Row) -> str:
    if row.metric == FIRST:
        return "none" if row.difference is None else f"{row.difference:,.0f}, {row.time_s:.2f} s"
    if row.difference is None:
        return "equal" if row.sim == row.linux else f"{row.sim} for {row.linux}"
    if row.metric in COUNTS:
        number = f"{row.difference:+.0f}" if row.difference else "0"
        return f"{number} of {row.linux:.0f}"
    per_cent = f"{row.difference * 100:+.2f} %"
    return "0" if per_cent[1:] == "0.00 %" else per_cent
