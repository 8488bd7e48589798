"""The table of random experiments, for the terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import tcplab as lab
from fuzz.compare import Flow
from fuzz.draw import APPLICATIONS, KINDS
from fuzz.queues import Queue
from fuzz.queues import rows as rows_of_queues
from fuzz.transfers import Transfers

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "parity.md"
BEGIN, END = "<!-- begin: make fuzz -->", "<!-- end: make fuzz -->"
BEGIN_TRANSFERS = "<!-- begin: make fuzz --applications -->"
END_TRANSFERS = "<!-- end: make fuzz --applications -->"
BEGIN_LINKS = "<!-- begin: make fuzz --links -->"
END_LINKS = "<!-- end: make fuzz --links -->"
BEGIN_QUEUES = "<!-- begin: make fuzz --queues -->"
END_QUEUES = "<!-- end: make fuzz --queues -->"
BOUNDS = (0.001, 0.01, 0.1)
NAMED = 0.01


def table(by_kind: Mapping[str, Sequence[Flow]]) -> str:
    """Identical flows and differences in goodput, by kind."""
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
    """Writes the table, and the flows whose goodput differs, to the page of parity."""
    by_kind: dict[str, list[Flow]] = {kind: [] for kind in KINDS}
    far = [["number", "kind", "flow", "cc", "goodput apart", "first difference"], ["---"] * 6]
    for number, (kind, flows) in sorted(outcomes.items()):
        by_kind[kind].extend(flows)
        far += [
            [str(number), kind, flow.name, flow.cc, f"{flow.apart:.1%}", str(flow.difference)]
            for flow in flows
            if flow.apart > NAMED
        ]
    count = 1 + max(outcomes, default=0)
    parts = [
        f'Version {lab.__version__}, `make fuzz ARGS="--seed {seed} --count {count}"`:\n',
        table({kind: flows for kind, flows in by_kind.items() if flows}),
        f"\nThose whose goodput is more than {NAMED:.0%} apart:\n",
        _lines(far),
    ]
    _put("\n".join(parts), BEGIN, END)


def table_of_transfers(by_kind: Mapping[str, Sequence[Transfers]]) -> str:
    """Transfers that complete in the same nanosecond, and differences of means, by kind."""
    heads = ["kind", "experiments", "all the same", "transfers", "same completion"]
    rows = [[*heads, "means apart by at most"], ["---", *["---:"] * len(heads)]]
    for kind, outcomes in by_kind.items():
        counted = [transfer for outcome in outcomes for transfer in outcome.counted]
        same = sum(transfer.same for transfer in counted)
        whole = sum(outcome.first is None for outcome in outcomes)
        share = f"{same} ({same / len(counted):.1%})" if counted else "0"
        apart = max(outcome.apart for outcome in outcomes)
        cells = (len(outcomes), whole, len(counted), share, f"{apart:.2%}")
        rows.append([kind, *map(str, cells)])
    return _lines(rows)


def write_transfers(outcomes: Mapping[int, tuple[str, Transfers]], seed: int) -> None:
    """Writes the table of applications and their differences to the page of parity."""
    by_kind: dict[str, list[Transfers]] = {kind: [] for kind in APPLICATIONS}
    heads = ["number", "kind", "rows that differ", "means apart", "first difference"]
    differing = [heads, ["---"] * len(heads)]
    for number, (kind, outcome) in sorted(outcomes.items()):
        by_kind[kind].append(outcome)
        if outcome.first:
            rows = sum(bool(row.differs) for row in outcome.rows)
            cells = (number, kind, f"{rows} of {len(outcome.rows)}", f"{outcome.apart:.2%}")
            differing.append([*map(str, cells), str(outcome.first)])
    count = 1 + max(outcomes, default=0)
    parts = [
        f'Version {lab.__version__}, `make fuzz ARGS="--applications --seed {seed} '
        f'--count {count}"`:\n',
        table_of_transfers({kind: some for kind, some in by_kind.items() if some}),
    ]
    if len(differing) > 2:
        parts += ["\nThose with a difference:\n", _lines(differing)]
    _put("\n".join(parts), BEGIN_TRANSFERS, END_TRANSFERS)


def write_links(by_kind: Mapping[str, Sequence[Flow]], seed: int, count: int) -> None:
    """Writes the table of links that change to the page of parity."""
    command = (
        f'Version {lab.__version__}, `make fuzz ARGS="--links --seed {seed} --count {count}"`:'
    )
    _put(f"{command}\n\n{table(by_kind)}", BEGIN_LINKS, END_LINKS)


def table_of_queues(by_kind: Mapping[str, Sequence[Queue]]) -> str:
    """Differences in queues, drops, marks and goodput, by discipline."""
    return _lines(rows_of_queues(by_kind))


def write_queues(by_kind: Mapping[str, Sequence[Queue]], seed: int, count: int) -> None:
    """Writes the table of queue disciplines to the page of parity."""
    command = (
        f'Version {lab.__version__}, `make fuzz ARGS="--queues --seed {seed} --count {count}"`:'
    )
    _put(f"{command}\n\n{table_of_queues(by_kind)}", BEGIN_QUEUES, END_QUEUES)


def _put(text: str, begin: str, end: str) -> None:
    before, rest = PAGE.read_text().split(begin)
    _, after = rest.split(end)
    PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
