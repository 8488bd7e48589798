"""Selects the rows, columns and cells of a summary for the screen and for reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tcplab import _polars as pl
from tcplab._core import printable
from tcplab._experiment.labels import labels
from tcplab._results.flow_summary import MEASURED
from tcplab._results.metrics import METRICS
from tcplab._results.results import Results
from tcplab._text.cells import LEFT, MOST_ROWS, Column, decimals, number

FEW_ROWS = 30
"""Above this number of rows of single flows, a row is about all flows of a class."""

ROUNDING = 1e-9

MOST_NAMES = 8
"""The number of flows that are named as never connected; further ones are counted."""

KEYS = {"flow": ["flow", "cc"], "class": ["class", "cc"], "cc": ["cc"]}
"""The columns that identify the subject of a row."""


@dataclass(frozen=True)
class Measure:
    """A column of numbers."""

    head: Column
    name: str
    factor: float = 1.0
    with_interval: bool = False
    digits: int = 3
    rank: int = 0
    """The order in which columns are dropped where there is no room: the greatest rank first. A
    column of rank 0 always stays.
    """


def rows_are(results: Results) -> str:
    """The subject of a row: single flows if they are few or if nothing else makes fewer rows, else
    classes or congestion controls.

    The parts of a page are no subject: a user waits for the page.
    """
    flows = results.joined("flows")
    # A flow with transfers is one row, or one for each class of its transfers.
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
    if has_parts and rows["flow"] < rows["class"] <= MOST_ROWS and not _are_pages(results):
        return "class"
    if rows["flow"] <= FEW_ROWS or rows["flow"] == min(rows.values()):
        return "flow"
    if rows["class"] == rows["flow"] <= MOST_ROWS:
        return "flow"
    return "class" if rows["class"] <= MOST_ROWS or rows["class"] == rows["cc"] else "cc"


def _are_pages(results: Results) -> bool:
    """Whether all flows with transfers load one page each."""
    kinds = {flow["traffic"]["kind"] for flow in json.loads(results.plans[0].to_json())["flows"]}
    return kinds & {"web", "requests", "arrivals"} == {"web"}


def measures(summary: pl.DataFrame, by: str) -> list[Measure]:
    """The columns of numbers that suit these rows."""
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


def layout(
    rows: pl.DataFrame, swept: list[str], by: str, measures: list[Measure]
) -> tuple[list[Column], list[list[str]]]:
    """The columns, and the cells of each row."""
    short = short_names(swept)
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
        cells.append(texts + [value(row, measure) for measure in measures])
    return [*heads, *(measure.head for measure in measures)], cells


def value(row: dict[str, Any], measure: Measure) -> str:
    """The cell of a measure, with its interval if it has one."""
    mean = row[measure.name]
    if mean is None:
        return "-"
    is_whole = measure.name == "unfinished" and mean == int(mean)
    places = 0 if is_whole else decimals(mean * measure.factor, measure.digits)
    text = number(mean * measure.factor, places)
    if not measure.with_interval:
        return text
    low, high = row[f"{measure.name}_low"], row[f"{measure.name}_high"]
    if low is None or high is None:
        width = row[f"{measure.name}_ci"]
        if width is None:
            return text
        return f"{text} ± {number(width * measure.factor, places)}"
    below, above = (number(width * measure.factor, places) for width in (mean - low, high - mean))
    return f"{text} ± {above}" if below == above else f"{text} +{above} -{below}"


def labelled(rows: pl.DataFrame, results: Results) -> pl.DataFrame:
    """Rows with short labels for swept values."""
    return rows.with_columns(
        pl.col(path).replace(labels(results.runs[path].to_list())) for path in results.swept
    )


def named(column: Column) -> str:
    """The name of a column with its unit."""
    return f"{column.name} ({column.unit})" if column.unit else column.name


def short_names(paths: list[str]) -> dict[str, str]:
    """The last part of each path, where no other column has it; else the whole path."""
    taken = ["flow", "class", "cc"] + [path.rsplit(".", 1)[-1] for path in paths]
    short = {path: path.rsplit(".", 1)[-1] for path in paths}
    return {path: end if taken.count(end) == 1 else path for path, end in short.items()}


def are_equal(summary: pl.DataFrame) -> bool:
    """Whether all repetitions have equal measures, because nothing in the experiment is random."""
    widths = summary.select(pl.col("^.*_ci$").cast(pl.Float64)).unpivot()["value"].drop_nulls()
    # The mean of equal numbers may differ from them by rounding.
    return len(widths) > 0 and bool((widths < ROUNDING).all())


def unconnected(results: Results) -> str:
    """The names of the flows that have no goodput because they never connected."""
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
    # A single remaining name is shown rather than counted.
    shown = names if len(names) <= MOST_NAMES + 1 else names[:MOST_NAMES]
    said = ", ".join(map(printable, shown))
    said += f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    runs, number = results.runs["run"].n_unique(), found["run"].n_unique()
    where = f" (in {number} of {runs} runs)" if runs > 1 else ""
    return f"Never connected: {said}{where}."
