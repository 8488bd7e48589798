"""What `tcplab run` prints: one table, and where the rest lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import polars as pl
from rich.cells import cell_len

from tcplab import _json
from tcplab._core import ConfigError, printable
from tcplab._labels import labels
from tcplab._metrics import METRICS
from tcplab._results import Results
from tcplab._summary import COLUMNS, MEASURED
from tcplab.cli import _text
from tcplab.cli._text import LEFT, RIGHT, Column

FEWEST, FEWEST_OF_MEDIAN = 10, 5
"""So many repetitions have confidence intervals whatever the data (`lab.statistics`)."""

ROUNDING = 1e-9

FEW_ROWS = 30
"""Where single flows would make more, a row is about all flows of a class."""

MOST_ROWS = 60

MOST_NAMES = 8
"""So many flows that never connected are named."""

KEYS = {"flow": ["flow", "cc"], "class": ["class", "cc"], "cc": ["cc"]}


@dataclass(frozen=True)
class Measure:
    """A column of numbers."""

    head: Column
    name: str
    factor: float = 1.0
    with_interval: bool = False
    digits: int = 3
    rank: int = 0
    """Where there is no room, columns are left out from the greatest rank on; 0 always stays."""


FORMATS = ("table", "json", "csv", "markdown")


@dataclass(frozen=True)
class View:
    """What of results is printed."""

    by: str | None = None
    """What a row is about; by default what suits the results."""
    format_: str = "table"
    """One of the `FORMATS`."""
    statistic: str = "mean"
    versus: Mapping[str, str] | str | None = None
    """The baseline that other variants are compared with."""
    margin: float = 0.02
    metrics: tuple[str, ...] = ()
    """Further columns (`Results.metrics`), and what is compared."""


def shown(results: Results, view: View) -> str:
    """The results, and the comparison with a baseline if one is asked for."""
    by = view.by or _rows_are(results)
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
            return _json.document(
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
    """The columns of the screen, all rows."""
    rows = _labelled(summary, results)
    return _in_markdown(*_layout(rows, results.swept, by, _measures(summary, by)))


def _in_markdown(heads: list[Column], cells: list[list[str]]) -> str:
    names = [_named(head) for head in heads]
    rules = ["---" if head.align == LEFT else "--:" for head in heads]
    lines = [[text.replace("|", "\\|") for text in line] for line in [names, rules, *cells]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown_rows(rows: pl.DataFrame, format_: str) -> str:
    """Any rows in one of the `FORMATS`."""
    if format_ == "json":
        return _json.rows(rows)
    if format_ == "csv":
        return rows.write_csv().rstrip("\n")
    heads = [
        Column(name, RIGHT if kind.is_numeric() else LEFT) for name, kind in rows.schema.items()
    ]
    some = rows if format_ == "markdown" else rows.head(MOST_ROWS)
    cells = [[_cell(value) for value in row] for row in some.iter_rows()]
    if format_ == "markdown":
        return _in_markdown(heads, cells)
    text = _text.table(heads, cells)
    if (more := len(rows) - len(some)) > 0:
        text += f"\n... and {more} more rows; `limit` and `--format csv` choose and show them"
    return text


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _versus(compared: pl.DataFrame, results: Results, view: View, by: str) -> str:
    """What other variants achieved, beside a baseline."""
    baseline = view.versus
    if baseline is not None and not isinstance(baseline, str):
        baseline = ", ".join(f"{name} = {value}" for name, value in baseline.items())
    rows = compared.head(MOST_ROWS)
    text = f"Compared with {printable(str(baseline))}, in pairs of runs with equal seeds:\n\n"
    text += _text.table(*_of_versus(rows, results, by))
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
    rows, short = _labelled(compared, results), _short_names(results.swept)
    # Before values have short names, as in the table above.
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
            "-" if row[name] is None else _text.number(row[name], _text.decimals(row[name], 4))
            for name in ("baseline", "mean")
        ]
        cells.append([*texts, row["metric"], *numbers, row["said"]])
    return heads, cells


def _labelled(rows: pl.DataFrame, results: Results) -> pl.DataFrame:
    """Rows with short names for swept values."""
    return rows.with_columns(
        pl.col(path).replace(labels(results.runs[path].to_list())) for path in results.swept
    )


def table(results: Results, *, by: str | None = None) -> str:
    """A row for each flow, or class of flows, of each variant: means over the repetitions."""
    by = by or _rows_are(results)
    return _table(results, by, "mean", results.summary(by=by))


def _table(results: Results, by: str, statistic: str, summary: pl.DataFrame) -> str:
    rows, left_out = summary.head(MOST_ROWS), max(len(summary) - MOST_ROWS, 0)
    measures = _measures(rows, by)
    rows = _labelled(rows, results)
    every = list(measures)
    text = _text.table(*_layout(rows, results.swept, by, measures))
    while _is_wide(text):
        dropped = max(measures, key=lambda measure: measure.rank)
        if dropped.rank == 0:
            break
        measures.remove(dropped)
        text = _text.table(*_layout(rows, results.swept, by, measures))
    if hidden := [_named(one.head) for one in every if one not in measures]:
        said = f"No room for {', '.join(hidden)}: a wider terminal or a pipe has all columns"
        text += "\n" + "\n".join(wrap(said, _text.room() or len(said)))
    if left_out:
        text += f"\n... and {left_out} more rows; `Results.summary()` has them all"
    text += _unconnected(results)
    text += _measured(results.runs)
    repetitions = results.runs["repetition"].n_unique()
    if repetitions > 1:
        text += f"\n\n{_about_intervals(repetitions, statistic)}"
        widths = summary.select(pl.col("^.*_ci$").cast(pl.Float64)).unpivot()["value"].drop_nulls()
        # Means of equal numbers differ from them by rounding.
        if len(widths) > 0 and (widths < ROUNDING).all():
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


def _named(column: Column) -> str:
    return f"{column.name} ({column.unit})" if column.unit else column.name


def _measured(runs: pl.DataFrame) -> str:
    """Which part of the runs the table is of, if it is the same part of all and not all of them."""
    (from_s, to_s, simulated_s), *others = (
        runs.select("measured_from_s", "measured_to_s", "simulated_s").unique().rows()
    )
    if others or (from_s, to_s) == (0.0, simulated_s):
        return ""
    return f"\n\nMeasured from {from_s:g} s to {to_s:g} s, of {simulated_s:g} s."


def _unconnected(results: Results) -> str:
    """The flows that have no goodput because they never connected, by name."""
    measured = results.runs.select("run", *MEASURED).unique("run")
    start, end, from_, to = map(pl.col, ["start_s", "end_s", *MEASURED])
    found = (
        results.scan("flows")
        .filter(pl.col("transport") == "tcp", pl.col("goodput_mbit_s").is_null())
        .filter(pl.col("outcome") != "not started")
        .join(measured.lazy(), on="run", maintain_order="left")
        .filter((start < to) & (end > from_))
        .select("run", "flow")
        .collect()
    )
    if found.is_empty():
        return ""
    names = found["flow"].unique(maintain_order=True).to_list()
    some, left_out = _text.folded([[printable(name)] for name in names], MOST_NAMES)
    said = ", ".join(name for (name,) in some) + (f" and {left_out} more" if left_out else "")
    runs, number = results.runs["run"].n_unique(), found["run"].n_unique()
    where = f" (in {number} of {runs} runs)" if runs > 1 else ""
    return f"\n\nNever connected: {said}{where}."


def _is_wide(text: str) -> bool:
    room = _text.room()
    return room is not None and max(map(cell_len, text.split("\n"))) > room


def _layout(
    rows: pl.DataFrame, swept: list[str], by: str, measures: list[Measure]
) -> tuple[list[Column], list[list[str]]]:
    """The columns, and the cells of each row."""
    short = _short_names(swept)
    keys = [key for key in KEYS[by] if not any(rows[key].equals(rows[path]) for path in swept)]
    heads = [Column(short.get(name, name), LEFT) for name in [*swept, *keys]]
    if by != "flow":
        heads.append(Column("flows"))
    cells = []
    for row in rows.iter_rows(named=True):
        shown = row | {"cc": row["cc"] or row["transport"]}
        texts = [shown[name] or "" for name in [*swept, *keys]]
        if by != "flow":
            texts.append(str(row["flows"]))
        cells.append(texts + [_value(row, measure) for measure in measures])
    return [*heads, *(measure.head for measure in measures)], cells


def epilogue(results: Results, out: Path | str, chart: Path | None, elapsed_s: float) -> str:
    """Where things are, and how long they took."""
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


def _rows_are(results: Results) -> str:
    """Single flows if they are few or nothing else makes fewer rows; else classes or algorithms."""
    flows = results.joined("flows")
    # A flow with transfers is one row, or one for each class of these.
    has_parts = flows["transfers"].sum() > 0
    if has_parts:
        about = flows.select("run", "flow", "cc", *results.swept).lazy()
        classes = results.scan("transfers").select("run", "flow", "class").unique()
        parts = about.join(classes, on=["run", "flow"])
        single = (
            flows.filter(pl.col("transfers").is_null())
            .lazy()
            .select(*about.collect_schema(), "class")
        )
        flows = pl.concat([single, parts]).collect(engine="streaming")
    rows = {by: flows.n_unique([*results.swept, *KEYS[by]]) for by in KEYS}
    if has_parts and rows["flow"] < rows["class"] <= MOST_ROWS:
        return "class"
    if rows["flow"] <= FEW_ROWS or rows["flow"] == min(rows.values()):
        return "flow"
    if rows["class"] == rows["flow"] <= MOST_ROWS:
        return "flow"
    return "class" if rows["class"] <= MOST_ROWS or rows["class"] == rows["cc"] else "cc"


def _measures(summary: pl.DataFrame, by: str) -> list[Measure]:
    goodput = Column("goodput" if by == "flow" else "goodput each", unit="Mbit/s")
    measures = [Measure(goodput, "goodput_mbit_s", with_interval=True)]
    is_timed = summary["completion_s"].count() > 0 or (summary["unfinished"] > 0).any()
    if by == "flow":
        share = Column("share", unit="%")
        measures.append(Measure(share, "bottleneck_share", factor=100.0, rank=6))
    else:
        measures.append(Measure(Column("all", unit="Mbit/s"), "goodput_all_mbit_s"))
        measures.append(Measure(Column("Jain's index"), "jain_index", rank=5))
    count, share = Column("resent", unit="segments"), Column("resent", unit="%")
    if (summary["transport"] != "udp").any():
        measures += [
            Measure(count, "retransmitted_segments", digits=0, rank=8),
            Measure(share, "retransmitted_share", factor=100.0),
            Measure(Column("RTT mean", unit="ms"), "rtt_mean_ms", with_interval=True),
            Measure(Column("RTT min", unit="ms"), "rtt_min_ms", rank=7),
        ]
    if summary["lost_share"].count() > 0:
        measures += [
            Measure(Column("lost", unit="%"), "lost_share", factor=100.0),
            Measure(Column("delay", unit="ms"), "delay_mean_ms", with_interval=True),
            Measure(Column("delay 99 %", unit="ms"), "delay_p99_ms", rank=3),
            Measure(Column("variation", unit="ms"), "ipdv_ms", rank=4),
        ]
    if is_timed:
        if (summary["unfinished"] > 0).any():
            unit = "" if by == "flow" else "flows"
            measures.append(Measure(Column("unfinished", unit=unit), "unfinished", digits=2))
        if by == "flow":
            completion = Column("completed in", unit="s")
            measures.append(Measure(completion, "completion_s", with_interval=True))
    if (is_timed and by != "flow") or (by == "flow" and (summary["transfers"] > 1).any()):
        measures += [
            Measure(
                Column(f"{share} % in", unit="s"),
                f"completion_p{share}_s",
                rank=rank if by == "flow" else 0,
            )
            for share, rank in ((50, 1), (95, 2), (99, 1))
        ]
    measures += [
        Measure(Column(name.replace("_", " "), unit=METRICS[name].unit), name, with_interval=True)
        for name in METRICS
        if name in summary.columns
    ]
    return measures


def _value(row: dict[str, Any], measure: Measure) -> str:
    mean = row[measure.name]
    if mean is None:
        return "-"
    is_whole = measure.name == "unfinished" and mean == int(mean)
    decimals = 0 if is_whole else _text.decimals(mean * measure.factor, measure.digits)
    text = _text.number(mean * measure.factor, decimals)
    if not measure.with_interval:
        return text
    low, high = row[f"{measure.name}_low"], row[f"{measure.name}_high"]
    if low is None or high is None:
        width = row[f"{measure.name}_ci"]
        if width is None:
            return text
        return f"{text} ± {_text.number(width * measure.factor, decimals)}"
    below, above = (
        _text.number(width * measure.factor, decimals) for width in (mean - low, high - mean)
    )
    return f"{text} ± {above}" if below == above else f"{text} +{above} -{below}"


def _short_names(paths: list[str]) -> dict[str, str]:
    """The last part of each path, where that is enough to tell it from all other columns."""
    taken = ["flow", "class", "cc"] + [path.rsplit(".", 1)[-1] for path in paths]
    short = {path: path.rsplit(".", 1)[-1] for path in paths}
    return {path: end if taken.count(end) == 1 else path for path, end in short.items()}
