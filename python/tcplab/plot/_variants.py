"""Prepares charts of many runs: variants, the cases in which they ran, and their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import polars as pl

from tcplab._core import printable
from tcplab._report._charts import Axis, axis_of, rows_of
from tcplab._report._comparison import Question, called, question
from tcplab._report._phrases import phrase
from tcplab._results.flow_summary import BY, MEASURED, is_unfinished, with_times, with_transfers
from tcplab._results.metrics import METRICS
from tcplab._results.results import Results
from tcplab._store.run_groups import declared
from tcplab._text.english import counted
from tcplab.plot._single_run import checked
from tcplab.plot._style import titled

MOST_PANELS = 12

OF_LINKS = ("bottleneck_utilisation", "queue_delay")
"""Prefixes of metrics that are computed from the table of links."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A metric of all variants."""

    question: Question
    metric: str
    rows: list[Row]
    """The rows: `about`, `case`, `rest`, `variant`, `x`, `value`, `low`, `high`."""

    @property
    def results(self) -> Results:
        """The results that the chart shows."""
        return self.question.results

    @property
    def title(self) -> str:
        """The metric, with its unit."""
        return phrase(self.metric).title()

    @property
    def axis(self) -> Axis | None:
        """The swept numeric column along which lines are drawn."""
        return axis_of(self.question)

    def variants(self) -> list[str]:
        """All variants, in the order of the experiment."""
        return list(dict.fromkeys(row["variant"] for row in self.rows))

    def side_by_side(self) -> Asked:
        """If each panel would have a single line, all flows in one panel; else unchanged."""
        if self.variants() != [""]:
            return self
        rows = [row | {"variant": row["about"], "about": ""} for row in self.rows]
        return replace(self, rows=rows)

    def panels(self, *keys: str) -> dict[tuple[str, ...], list[Row]]:
        """The rows of each panel: those with the same values of these keys."""
        found: dict[tuple[str, ...], list[Row]] = {}
        for row in self.rows:
            found.setdefault(tuple(row[key] for key in keys), []).append(row)
        return found

    def heading(self, panel: Sequence[str]) -> str:
        """The heading of a panel: its flows, if there are several, and its case."""
        about, *cases = panel
        several = len({row["about"] for row in self.rows}) > 1
        kind = {"flow": "flow", "class": "class", "cc": "cc"}[self.question.by]
        first = f"{kind} {about}" if several and about else ""
        return ", ".join(part for part in (first, *cases) if part)

    def head(self, title: str = "", *notes: str) -> alt.TitleParams:
        """The title: the metric, and below it the runs."""
        return titled(title or self.title, [about_runs(self.results), *notes])

    def about_intervals(self) -> str:
        """The definition of the intervals, or why there are none."""
        if any(row["low"] is not None for row in self.rows):
            return "95 % intervals of the mean"
        if (self.question.summary["repetitions"] == 1).all():
            return "no intervals: each variant ran once (`repeat`)"
        return "no intervals: the repetitions are equal"


def asked(results: Results, metric: str | None, by: str | None) -> Asked:
    """The comparison that a chart makes, chosen by the rules of reports.

    Raises:
        ValueError: The metric does not exist, or no run has it.
    """
    checked(results)
    metrics = [metric] if metric is not None else []
    found = question(results, versus=None, by=by, metrics=metrics, margin=0.02, is_judged=False)
    goal = found.goal
    rows = rows_of(found, goal)
    if not rows:
        raise ValueError(f"no run has {goal}{missing(goal)}")
    return Asked(found, goal, rows)


def missing(metric: str) -> str:
    """The key that an experiment must set for a metric, as the end of a message."""
    if metric in METRICS and METRICS[metric].needs:
        return f": the experiment has no `{METRICS[metric].needs}`"
    if metric.startswith(OF_LINKS):
        return ": nothing was recorded of links; see `record.links`"
    if metric.startswith("completion"):
        return ": no flow with an end completed"
    return ""


def about_runs(results: Results) -> str:
    """The experiment, and the number of runs."""
    names = results.runs["experiment"].unique(maintain_order=True).to_list()
    named = printable(names[0]) if len(names) == 1 and names[0] else ""
    return ", ".join(filter(None, [named, counted(len(results), "run")]))


def labelled(on: Question, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with swept keys and the columns that identify flows, extended by the texts `variant`,
    `case` and `about`.
    """
    about = list(dict.fromkeys([*BY[on.by], *on.groups]))
    key = list(dict.fromkeys([*on.compared, *on.conditions, *about]))
    kinds = rows.select(key).unique(maintain_order=True)
    texts = []
    for row in kinds.iter_rows(named=True):
        variant = on.label(on.variant_of(row)) if on.compared else called(on, row)
        group = on.about(on.group_of(row)) if on.compared else ""
        case = on.case(on.condition_of(row))
        texts.append([printable(text) for text in (variant, case, group)])
    names = ["variant of chart", "case of chart", "about of chart"]
    named = kinds.with_columns(
        pl.Series(name, [text[place] for text in texts], dtype=pl.String)
        for place, name in enumerate(names)
    )
    found = rows.join(named, on=key, how="left", nulls_equal=True, maintain_order="left")
    return found.drop(set(found.columns) & {"variant", "case", "about"}).rename(
        dict(zip(names, ("variant", "case", "about"), strict=True))
    )


@dataclass(frozen=True)
class Observed:
    """The single values of a metric."""

    rows: pl.DataFrame
    """The rows: `about`, `case`, `variant`, `value`; the value is null if a transfer did not
    complete.
    """
    title: str
    what: str
    """The subject of each value."""
    question: Question


def observed(results: Results, metric: str | None, by: str | None) -> Observed:
    """The values of a metric: of each transfer, of each sample, or else of each flow in each run.

    Raises:
        ValueError: The metric does not exist, or no run has it.
    """
    checked(results)
    of_samples = {
        name
        for name, kind in results.scan("samples").collect_schema().items()
        if kind.is_numeric() and name != "time_s"
    }
    is_transfers = metric in (None, "completion_s")
    if is_transfers:
        found = _completions(results)
        metric = "srtt_ms" if metric is None and found.is_empty() else "completion_s"
    further = [] if metric in ("completion_s", *of_samples) else [str(metric)]
    on = question(results, versus=None, by=by, metrics=further, margin=0.02, is_judged=False)
    words = phrase(str(metric))
    if metric == "completion_s":
        rows, what, title = found, "transfer", "Completion time (s)"
    elif metric in of_samples:
        rows, what, title = _of_samples(results, metric), "sample", _titles(metric)
    else:
        rows = results._per_run(on.by, further).rows
        value = pl.col(str(metric)).cast(pl.Float64) * words.factor
        rows = rows.with_columns(value.alias("value")).drop_nulls("value")
        what, title = "value", words.title()
    if rows["value"].count() == 0:
        why = ": see `record.samples`" if metric in of_samples else missing(str(metric))
        raise ValueError(f"no run has {metric}{why}")
    shown = labelled(on, rows).select("about", "case", "variant", "value")
    return Observed(shown, title, what, on)


def _titles(column: str) -> str:
    """The title of a column of samples, with its unit."""
    if column == "srtt_ms":
        return "Smoothed RTT (ms)"
    for ending, unit in (("_mbit_s", "Mbit/s"), ("_ms", "ms"), ("_segments", "segments")):
        if column.endswith(ending):
            return f"{column.removesuffix(ending).replace('_', ' ')} ({unit})"
    return column.replace("_", " ")


def _completions(results: Results) -> pl.DataFrame:
    """The completion time of each transfer and each flow with an end."""
    flows = with_transfers(with_times(results._measured_flows()), results.scan("transfers"))
    has_end = pl.col("completion_s").is_not_null() | is_unfinished()
    is_there = pl.col("is there") & (pl.col("transfers").fill_null(1) > 0)
    return flows.filter(has_end, is_there).with_columns(pl.col("completion_s").alias("value"))


def _of_samples(results: Results, column: str) -> pl.DataFrame:
    """A column of the samples taken in the measured part of the runs."""
    flows = results.joined("flows").select(
        "run", *results.swept, "flow", "class", "transport", "cc"
    )
    window = results.runs.select("run", *MEASURED).unique("run")
    assert column not in declared("flows")
    samples = (
        results.scan("samples")
        .select("run", pl.col("flow").str.replace(r"#\d+$", ""), "time_s", column)
        .drop_nulls(column)
        .join(window.lazy(), on="run", maintain_order="left")
        .filter(pl.col("time_s").is_between(pl.col(MEASURED[0]), pl.col(MEASURED[1])))
        .select("run", "flow", pl.col(column).cast(pl.Float64).alias("value"))
    )
    joined = flows.lazy().join(samples, on=["run", "flow"], maintain_order="left_right")
    return joined.collect()
