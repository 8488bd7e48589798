"""The output of `tcplab run`: one table, and the places of everything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from rich.cells import cell_len

from tcplab import _polars as pl
from tcplab._core import ConfigError, printable
from tcplab._results import json_output
from tcplab._results.flow_summary import COLUMNS
from tcplab._results.metrics import METRICS
from tcplab._results.results import Results
from tcplab._results.summary_table import (
    KEYS,
    are_equal,
    labelled,
    layout,
    measures,
    named,
    rows_are,
    short_names,
    unconnected,
)
from tcplab._text import plain_tables
from tcplab._text.cells import LEFT, MOST_ROWS, RIGHT, Column, decimals, number

FEWEST, FEWEST_OF_MEDIAN = 10, 5
"""The number of repetitions from which there are confidence intervals for all data
(`lab.statistics`).
"""


@dataclass(frozen=True)
class View:
    """Which results are printed, and how."""

    by: str | None = None
    """The subject of a row; by default what suits the results."""
    format_: str = "table"
    """One of `_output.FORMATS`."""
    statistic: str = "mean"
    versus: Mapping[str, str] | str | None = None
    """The baseline for other variants."""
    margin: float = 0.02
    metrics: tuple[str, ...] = ()
    """Further columns (`Results.metrics`), and the metrics to compare."""


def shown(results: Results, view: View) -> str:
    """The results, and the comparison with a baseline if one is asked for."""
    by = view.by or rows_are(results)
    compared = None
    if view.versus is not None:
        try:
            compared = results.versus(
                view.versus, metrics=view.metrics or None, by=by, margin=view.margin
            )
        except ValueError as error:
            raise ConfigError(str(error)) from None
    further = [name for name in view.metrics if name not in COLUMNS]
    for name in further:
        if name not in METRICS:
            raise ConfigError(f"metrics: there is no {name!r}; there are {', '.join(METRICS)}")
    summary = results.summary(by=by, statistic=view.statistic, metrics=further)
    match view.format_:
        case "json":
            return json_output.document(
                results, summary, by=by, statistic=view.statistic, versus=compared
            )
        case "csv" if compared is not None:
            return compared.write_csv().rstrip("\n")
        case "csv":
            return summary.write_csv().rstrip("\n")
        case "markdown":
            text = _markdown(results, by, summary)
            if compared is not None:
                text += "\n\n" + _in_markdown(*_of_versus(compared, results, by))
            return text
        case _:
            text = _table(results, by, view.statistic, summary)
            return text if compared is None else f"{text}\n\n{_versus(compared, results, view, by)}"


def _markdown(results: Results, by: str, summary: pl.DataFrame) -> str:
    """All rows, with the columns of the screen."""
    rows = labelled(summary, results)
    return _in_markdown(*layout(rows, results.swept, by, measures(summary, by)))


def _in_markdown(heads: list[Column], cells: list[list[str]]) -> str:
    names = [named(head) for head in heads]
    rules = ["---" if head.align == LEFT else "--:" for head in heads]
    lines = [[text.replace("|", "\\|") for text in line] for line in [names, rules, *cells]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown_rows(rows: pl.DataFrame, format_: str) -> str:
    """A frame in one of `_output.FORMATS`."""
    if format_ == "json":
        return json_output.rows(rows)
    if format_ == "csv":
        return rows.write_csv().rstrip("\n")
    heads = [
        Column(name, RIGHT if kind.is_numeric() else LEFT) for name, kind in rows.schema.items()
    ]
    some = rows if format_ == "markdown" else rows.head(MOST_ROWS)
    cells = [[_cell(value) for value in row] for row in some.iter_rows()]
    if format_ == "markdown":
        return _in_markdown(heads, cells)
    text = plain_tables.table(heads, cells)
    if (more := len(rows) - len(some)) > 0:
        text += f"\n... and {more} more rows; `limit` and `--format csv` choose and show them"
    return text


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _versus(compared: pl.DataFrame, results: Results, view: View, by: str) -> str:
    """The comparison of other variants with a baseline."""
    baseline = view.versus
    if baseline is not None and not isinstance(baseline, str):
        baseline = ", ".join(f"{name} = {value}" for name, value in baseline.items())
    rows = compared.head(MOST_ROWS)
    text = f"Compared with {printable(str(baseline))}, in pairs of runs with equal seeds:\n\n"
    text += plain_tables.table(*_of_versus(rows, results, by))
    if len(compared) > MOST_ROWS:
        text += f"\n... and {len(compared) - MOST_ROWS} more rows; `--format csv` has them all"
    notes = []
    if (compared["assumes"] == "normal").any():
        notes.append(f"Fewer than {FEWEST} pairs: if their differences are normally distributed.")
    if (number := compared["p"].count()) > 1:
        notes.append(f"Corrected for {number} comparisons (Holm).")
    return "\n\n".join([text, *(["\n".join(notes)] if notes else [])])


def _of_versus(
    compared: pl.DataFrame, results: Results, by: str
) -> tuple[list[Column], list[list[str]]]:
    rows, short = labelled(compared, results), short_names(results.swept)
    # Taken before values get short labels, as in the table above.
    keys = [
        key
        for key in KEYS[by]
        if not any(compared[key].equals(compared[path]) for path in results.swept)
    ]
    heads = [Column(short.get(name, name), LEFT) for name in [*results.swept, *keys]]
    heads += [Column("metric", LEFT), Column("baseline"), Column("mean"), Column("verdict", LEFT)]
    cells = []
    for row in rows.iter_rows(named=True):
        texts = [row[name] or "" for name in [*results.swept, *keys]]
        numbers = [
            "-" if row[name] is None else number(row[name], decimals(row[name], 4))
            for name in ("baseline", "mean")
        ]
        cells.append([*texts, row["metric"], *numbers, row["said"]])
    return heads, cells


def table(results: Results, *, by: str | None = None) -> str:
    """A row for each flow, or class of flows, of each variant: means over the repetitions."""
    by = by or rows_are(results)
    return _table(results, by, "mean", results.summary(by=by))


def _table(results: Results, by: str, statistic: str, summary: pl.DataFrame) -> str:
    rows, left_out = summary.head(MOST_ROWS), max(len(summary) - MOST_ROWS, 0)
    columns = measures(rows, by)
    rows = labelled(rows, results)
    every = list(columns)
    text = plain_tables.table(*layout(rows, results.swept, by, columns))
    while _is_wide(text):
        dropped = max(columns, key=lambda measure: measure.rank)
        if dropped.rank == 0:
            break
        columns.remove(dropped)
        text = plain_tables.table(*layout(rows, results.swept, by, columns))
    if hidden := [named(one.head) for one in every if one not in columns]:
        said = f"No room for {', '.join(hidden)}: a wider terminal or a pipe has all columns"
        text += "\n" + "\n".join(wrap(said, plain_tables.room() or len(said)))
    if left_out:
        text += f"\n... and {left_out} more rows; `Results.summary()` has them all"
    text += f"\n\n{said}" if (said := unconnected(results)) else ""
    text += _measured(results.runs)
    repetitions = results.runs["repetition"].n_unique()
    if repetitions > 1:
        text += f"\n\n{_about_intervals(repetitions, statistic)}"
        if are_equal(summary):
            text += (
                "\nAll are equal: nothing here is random; `start_jitter`, `jitter` and `loss` are."
            )
    return text


def _about_intervals(repetitions: int, statistic: str) -> str:
    if statistic == "median":
        few = ": too few for confidence intervals" if repetitions < FEWEST_OF_MEDIAN else ""
        with_ = "" if few else ", with 95 % confidence intervals"
        return f"Medians of {repetitions} repetitions{with_}{few}."
    said = f"Means of {repetitions} repetitions, with 95 % confidence intervals"
    if repetitions >= FEWEST:
        return f"{said}."
    return f"{said}, if normally distributed."


def _measured(runs: pl.DataFrame) -> str:
    """The measured part of the runs, if it is the same for all runs and not the whole run."""
    (from_s, to_s, simulated_s), *others = (
        runs.select("measured_from_s", "measured_to_s", "simulated_s").unique().rows()
    )
    if others or (from_s, to_s) == (0.0, simulated_s):
        return ""
    return f"\n\nMeasured from {from_s:g} s to {to_s:g} s, of {simulated_s:g} s."


def _is_wide(text: str) -> bool:
    room = plain_tables.room()
    return room is not None and max(map(cell_len, text.split("\n"))) > room


def epilogue(results: Results, out: Path | str, chart: Path | None, elapsed_s: float) -> str:
    """The places of the results, and the elapsed time."""
    runs = results.runs
    simulated_s = runs.unique("run")["simulated_s"].sum()
    number = runs["run"].n_unique()
    done = f"{number} {'run' if number == 1 else 'runs'}, {simulated_s:g} s simulated"
    kept = number - len(results.computed)
    before = f" ({kept} of them before)" if kept else ""
    places = f"tables  {out}" + (f"\nchart   {chart}" if chart else "")
    if any(plan.commands for plan in results.plans):
        folder = (number == 1 and results.folder(results.plans[0].id)) or f"{out}/*/RUN"
        places = f"output  {folder} (NAME-server.txt, NAME-client.txt)\n{places}"
    return f"\n{done} in {elapsed_s:.2f} s{before}\n{places}"
