"""Selected runs of a report over time, with as many points as can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tcplab._core import printable
from tcplab._experiment.labels import labels
from tcplab._report._comparison import Question, Values
from tcplab._results.summary_table import short_names
from tcplab._statistics.thinning import thin

MOST_RUNS = 24
"""The number of runs to choose from. More would make the file too large."""

MOST_FLOWS = 6
MOST_LINKS = 2

POINTS = {1: 2000, 4: 1000, MOST_RUNS: 300}
"""The most points of a line, by the number of runs."""

DIGITS = 5


@dataclass(frozen=True)
class Panel:
    """A quantity over time."""

    key: str
    title: str
    table: str
    column: str
    is_step: bool = False
    """Whether a value holds until the next one."""


PANELS = (
    Panel("goodput", "Goodput (Mbit/s)", "intervals", "goodput_mbit_s"),
    Panel("cwnd", "Congestion window (segments)", "samples", "cwnd_segments"),
    Panel("rtt", "Smoothed RTT (ms)", "samples", "srtt_ms"),
    Panel("queue", "Longest queue since the point before (packets)", "links", "queue_max_packets"),
)
"""The quantities shown for a run, if recorded."""


@dataclass(frozen=True)
class Series:
    """The line of a flow or a link."""

    name: str
    kind: str
    """The congestion control or transport of a flow; empty for a link."""
    times: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Run:
    """A run over time."""

    run: str
    label: str
    end_s: float
    panels: dict[str, list[Series]]
    left_out: str


@dataclass(frozen=True)
class Details:
    """The runs that a reader can choose."""

    runs: Sequence[Run]
    note: str


def details(asked: Question, leading: Sequence[Values]) -> Details:
    """Runs with the first seeds, so that those of two variants can be laid over each other. The
    variants of the answer come first.
    """
    runs = asked.results.runs.unique("run", maintain_order=True)
    rows = runs.to_dicts()
    rows.sort(
        key=lambda row: (
            row["repetition"],
            asked.variant_of(row) not in leading,
            runs["run"].to_list().index(row["run"]) if len(rows) < 2000 else 0,
        )
    )
    chosen = rows[:MOST_RUNS]
    points = next(points for number, points in POINTS.items() if len(chosen) <= number)
    note = ""
    if len(chosen) < len(rows):
        note = (
            f"{len(chosen)} of {len(rows)} runs are in this file: those with the first seeds, the "
            "variants of the answer first."
        )
    shown = [_run(asked, row, points) for row in chosen]
    return Details(shown, note)


def _run(asked: Question, row: dict[str, Any], points: int) -> Run:
    results = asked.results
    run = str(row["run"])
    flows = (
        results.scan("flows", run).select("flow", "bytes", pl.coalesce("cc", "transport")).collect()
    )
    greatest = flows.sort("bytes", descending=True, maintain_order=True).head(MOST_FLOWS)
    kept = set(greatest["flow"])
    kinds = {flow: str(kind) for flow, _, kind in flows.iter_rows() if flow in kept}
    links = _links(asked, run)
    panels: dict[str, list[Series]] = {}
    for panel in PANELS:
        by = "link" if panel.table == "links" else "flow"
        shown = dict.fromkeys(links, "") if by == "link" else kinds
        time = (
            (pl.col("start_s") + pl.col("end_s")) / 2
            if by == "flow" and panel.table == "intervals"
            else pl.col("time_s")
        )
        found = (
            results.scan(panel.table, run)
            .filter(pl.col(by).is_in(list(shown)), pl.col(panel.column).is_not_null())
            .select(by, time.alias("time_s"), pl.col(panel.column).cast(pl.Float64).alias("value"))
            .collect()
        )
        if found.is_empty():
            continue
        thinned = thin(found, by=by, y="value", most=points)
        panels[panel.key] = [
            Series(printable(key), printable(kind), *_columns(thinned.filter(pl.col(by) == key)))
            for key, kind in shown.items()
            if key in set(thinned[by])
        ]
    left_out = (
        f"the {MOST_FLOWS} of {len(flows)} flows that sent most" if len(flows) > MOST_FLOWS else ""
    )
    return Run(run, printable(_label(asked, row)), float(row["simulated_s"]), panels, left_out)


def _columns(points: pl.DataFrame) -> tuple[list[float], list[float]]:
    """Times and values, rounded to the digits that can be seen."""
    return (
        points["time_s"].round(4).to_list(),
        points["value"].round_sig_figs(DIGITS).to_list(),
    )


def _links(asked: Question, run: str) -> list[str]:
    """The bottlenecks of the flows, those with the most bytes first."""
    flows = asked.results.scan("flows", run).select("bottleneck", "bytes").collect()
    used = flows.group_by("bottleneck", maintain_order=True).agg(pl.col("bytes").sum())
    busy = used.sort("bytes", descending=True, maintain_order=True)
    return [str(link) for link in busy["bottleneck"].head(MOST_LINKS)]


def _label(asked: Question, row: dict[str, Any]) -> str:
    """A label that distinguishes a run from the others."""
    results = asked.results
    short = short_names(results.swept)
    said = [
        f"{short[name]} {labels(results.runs[name].to_list())[row[name]]}"
        for name in results.swept
        if row[name] is not None and results.runs[name].n_unique() > 1
    ]
    return ", ".join([*said, f"seed {row['seed']}"])
