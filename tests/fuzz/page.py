"""The table of random experiments, for the terminal and for the docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import tcplab as lab
from fuzz.compare import Flow
from fuzz.draw import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "parity.md"
BEGIN, END = "<!-- begin: make fuzz -->", "<!-- end: make fuzz -->"
BOUNDS = (0.001, 0.01, 0.1)
NAMED = 0.01


def table(by_kind: Mapping[str, Sequence[Flow]]) -> str:
    """Identical flows and how far goodput is apart, by kind."""
    heads = ["kind", "flows", "identical", "goodput the same"]
    heads += [f"apart by more than {bound:.1%}".replace(".0%", "%") for bound in BOUNDS]
    rows = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    rows += [_row(kind, flows) for kind, flows in by_kind.items()]
    rows.append(_row("all", [flow for flows in by_kind.values() for flow in flows]))
    return _lines(rows)


def _row(kind: str, flows: Sequence[Flow]) -> list[str]:
    identical = sum(flow.difference is None for flow in flows)
    same = sum(flow.apart == 0 for flow in flows)
    apart = [sum(flow.apart > bound for flow in flows) for bound in BOUNDS]
    share = f"{identical} ({identical / len(flows):.1%})" if flows else "0"
    return [kind, str(len(flows)), share, str(same), *map(str, apart)]


def write(outcomes: Mapping[int, tuple[str, Sequence[Flow]]], seed: int) -> None:
    """Puts the table where the page of parity has its place for it, and whose goodput is apart."""
    by_kind: dict[str, list[Flow]] = {kind: [] for kind in KINDS}
    far = [["number", "kind", "flow", "cc", "goodput apart", "first difference"], ["---"] * 6]
    for number, (kind, flows) in sorted(outcomes.items()):
        by_kind[kind].extend(flows)
        far += [
            [str(number), kind, flow.name, flow.cc, f"{flow.apart:.1%}", str(flow.difference)]
            for flow in flows
            if flow.apart > NAMED
        ]
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    count = 1 + max(outcomes, default=0)
    command = f'`make fuzz ARGS="--seed {seed} --count {count}"`'
    parts = [
        f"{before}{BEGIN}\n\nVersion {lab.__version__}, {command}:\n",
        table({kind: flows for kind, flows in by_kind.items() if flows}),
        f"\nThose whose goodput is more than {NAMED:.0%} apart:\n",
        _lines(far),
        f"\n{END}{after}",
    ]
    PAGE.write_text("\n".join(parts))


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
