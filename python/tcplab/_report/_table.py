"""The table of a report: the results of each flow of each variant, as the command shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tcplab._core import printable
from tcplab._report._comparison import Question, Values
from tcplab._results.summary_table import KEYS, labelled, layout, measures
from tcplab._results.versus import LESS, MORE
from tcplab._store.manifest import Asked
from tcplab._text.cells import LEFT, Column


@dataclass(frozen=True)
class Cell:
    """A cell: its text, and its value for sorting."""

    text: str
    value: float | None = None
    is_best: bool = False


@dataclass(frozen=True)
class Table:
    """A table with heads."""

    heads: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    names: Sequence[str | None] = ()
    """For each head, its column of the summary."""


def table(asked: Question, folders: Sequence[Asked]) -> Table:
    """A row for each flow, class or congestion control of each variant."""
    results, by, summary = asked.results, asked.by, asked.summary
    shown = measures(summary, by)
    heads, cells = layout(labelled(summary, results), results.swept, by, shown)
    values = summary.to_dicts()
    best = _best(asked, [one.name for one in shown])
    first = len(heads) - len(shown)
    counts = _counts(results.swept, folders)
    rows = []
    for place, (texts, row) in enumerate(zip(cells, values, strict=True)):
        asked_for = counts.get(tuple(row[name] for name in results.swept))
        number = row["repetitions"]
        is_short = asked_for is not None and asked_for > number
        runs = f"{number} of {asked_for}" if is_short else str(number)
        rows.append(
            [
                *(Cell(printable(text)) for text in texts[:first]),
                Cell(runs, float(number)),
                *(
                    Cell(text, _number(row[one.name]), (place, one.name) in best)
                    for text, one in zip(texts[first:], shown, strict=True)
                ),
            ]
        )
    keys = [
        key for key in KEYS[by] if not any(summary[key].equals(summary[p]) for p in results.swept)
    ]
    names = [*results.swept, *keys, *([] if by == "flow" else ["flows"])]
    return Table(
        heads=[*heads[:first], Column("runs"), *heads[first:]],
        rows=rows,
        names=[*names, "repetitions", *(one.name for one in shown)],
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _counts(swept: Sequence[str], folders: Iterable[Asked]) -> Mapping[tuple[str | None, ...], int]:
    """The number of runs of each variant that were asked for."""
    found: Counter[tuple[str | None, ...]] = Counter()
    for folder in folders:
        for one in folder.runs:
            values = dict(one.swept)
            named = (name.removeprefix("sweep.") for name in swept)
            found[tuple(values.get(name) for name in named)] += 1
    return found


def _best(asked: Question, names: Sequence[str]) -> set[tuple[int, str]]:
    """The positions of the best means among variants that agree in everything else, where the
    difference from the baseline can be told.
    """
    if asked.versus is None:
        return set()
    told = {
        (
            row["metric"],
            asked.condition_of(row, is_compared=True),
            asked.group_of(row),
            asked.variant_of(row, is_compared=True),
        )
        for row in asked.versus.iter_rows(named=True)
        if row["verdict"] in ("higher", "lower")
    }
    base = asked.base()
    rows = asked.summary.with_row_index("place number").to_dicts()
    alike: dict[tuple[Values, Values], list[dict[str, Any]]] = {}
    for row in rows:
        alike.setdefault((asked.condition_of(row), asked.group_of(row)), []).append(row)
    found = set()
    for name in names:
        if name not in MORE | LESS:
            continue
        for (condition, about), group in alike.items():
            there = [row for row in group if row[name] is not None]
            if len(there) < 2:
                continue
            extreme = (max if name in MORE else min)(row[name] for row in there)
            best = [row for row in there if row[name] == extreme]
            if len(best) != 1:
                continue
            variants = {asked.variant_of(row) for row in there} - {base}
            if (winner := asked.variant_of(best[0])) != base:
                variants = {winner}
            if all((name, condition, about, variant) in told for variant in variants):
                found.add((best[0]["place number"], name))
    return found


def runs_table(asked: Question) -> pl.DataFrame:
    """A row for each run: its values, and the digest of its tables."""
    results = asked.results
    digests = pl.Series("digest", [results.digests[run] for run in results.runs["run"]])
    columns = ["run", *results.swept, "repetition", "seed", "backend", "version"]
    return results.runs.select(columns).with_columns(digests)


def of_frame(frame: pl.DataFrame) -> Table:
    """Any frame as a table."""
    heads = [
        Column(name) if kind.is_numeric() else Column(name, LEFT)
        for name, kind in frame.schema.items()
    ]
    rows = [
        [Cell(printable("-" if value is None else str(value))) for value in row]
        for row in frame.iter_rows()
    ]
    return Table(heads, rows)
