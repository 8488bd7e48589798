"""The table of random experiments, for the terminal and for the docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fuzz.compare import Flow

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "parity.md"
BEGIN, END = "<!-- begin: make fuzz -->", "<!-- end: make fuzz -->"
BOUNDS = (0.001, 0.01, 0.1)


def table(by_kind: Mapping[str, Sequence[Flow]]) -> str:
    """Identical flows and how far goodput is apart, by kind."""
    heads = ["kind", "flows", "identical", "goodput the same"]
    heads += [f"apart by more than {bound:.1%}".replace(".0%", "%") for bound in BOUNDS]
    rows = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    rows += [_row(kind, flows) for kind, flows in by_kind.items()]
    rows.append(_row("all", [flow for flows in by_kind.values() for flow in flows]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(kind: str, flows: Sequence[Flow]) -> list[str]:
    identical = sum(flow.difference is None for flow in flows)
    same = sum(flow.apart == 0 for flow in flows)
    apart = [sum(flow.apart > bound for flow in flows) for bound in BOUNDS]
    share = f"{identical} ({identical / len(flows):.1%})" if flows else "0"
    return [kind, str(len(flows)), share, str(same), *map(str, apart)]


def write(by_kind: Mapping[str, Sequence[Flow]], seed: int, count: int) -> None:
    """Puts the table where the page of parity has its place for it."""
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    command = f'`make fuzz ARGS="--seed {seed} --count {count}"`'
    PAGE.write_text(f"{before}{BEGIN}\n\n{command}:\n\n{table(by_kind)}\n\n{END}{after}")
