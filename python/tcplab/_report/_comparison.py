"""Decides what a report compares: which swept key distinguishes variants, and which is the
baseline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tcplab import _core
from tcplab._experiment.labels import labels
from tcplab._experiment.quantities import numbers
from tcplab._results.flow_summary import BY, COLUMNS, VERSUS
from tcplab._results.metrics import METRICS
from tcplab._results.results import Results
from tcplab._results.summary_table import rows_are, short_names
from tcplab._results.versus import LESS, MORE, chosen_baseline, stepping
from tcplab._results.versus import METRICS as OF_SCREEN

FURTHER = "queue_delay_p95_ms"
"""The metric that a report compares besides the columns of the screen: the delay that a sender
causes.
"""

GOALS = ("completion_s", "completion_p50_s")
"""The metrics that the answer is about by default, if flows have an end; else goodput."""

Row = dict[str, Any]
Values = tuple[str | None, ...]


@dataclass(frozen=True)
class Question:
    """The comparison that a report makes."""

    results: Results
    by: str
    metrics: tuple[str, ...]
    """The metrics that are compared; the first is the one that the answer is about."""
    margin: float
    summary: pl.DataFrame
    compared: list[str]
    """The columns that distinguish variants; empty if nothing is swept."""
    conditions: list[str]
    """The other columns with several values."""
    baseline: Mapping[str, str]
    versus: pl.DataFrame | None
    """All other variants beside the baseline."""
    why_not: str
    """Why nothing is compared."""
    groups: list[str]
    """The columns that name the subject of a row, the same in all variants."""
    subject: Values
    """The subject of the answer: the values of these columns."""
    others: list[Values]
    """The other flows or classes."""
    is_sound: bool = True
    """Whether more runs of the same experiment would make the answer better."""

    @property
    def goal(self) -> str:
        """The metric that the answer is about."""
        return self.metrics[0]

    def column(self, name: str) -> str:
        """The name of a swept column in comparisons."""
        return f"sweep.{name}" if name in VERSUS else name

    def variant_of(self, row: Mapping[str, Any], *, is_compared: bool = False) -> Values:
        """The variant of a row."""
        name = self.column if is_compared else str
        return tuple(row[name(one)] for one in self.compared)

    def condition_of(self, row: Mapping[str, Any], *, is_compared: bool = False) -> Values:
        """The values of the swept columns that are not compared."""
        name = self.column if is_compared else str
        return tuple(row[name(one)] for one in self.conditions)

    def group_of(self, row: Mapping[str, Any]) -> Values:
        """The subject of a row."""
        return tuple(row[one] for one in self.groups)

    def variants(self) -> list[Values]:
        """All variants, in the order of the experiment."""
        rows = self.summary.select(self.compared).unique(maintain_order=True).rows()
        return [tuple(row) for row in rows] if self.compared else [()]

    def cases(self) -> list[Values]:
        """All conditions, in the order of the experiment."""
        rows = self.summary.select(self.conditions).unique(maintain_order=True).rows()
        return [tuple(row) for row in rows] if self.conditions else [()]

    def base(self) -> Values:
        """The variant of the baseline."""
        chosen = pl.all_horizontal(pl.col(key) == value for key, value in self.baseline.items())
        rows = self.summary.filter(chosen).select(self.compared).unique(maintain_order=True).rows()
        return tuple(rows[0])

    def label(self, variant: Values) -> str:
        """A variant in a few words: `bbr`, `queue 1 BDP`."""
        return ", ".join(self._said(self.compared, variant, is_short=True)) or "all runs"

    def case(self, condition: Values) -> str:
        """A condition in a few words: `queue = 1 BDP, rtt = 40 ms`."""
        return ", ".join(self._said(self.conditions, condition, is_short=False))

    def _said(self, columns: Sequence[str], values: Values, *, is_short: bool) -> list[str]:
        short = short_names(self.results.swept)
        said = []
        for column, value in zip(columns, values, strict=True):
            if value is None:
                continue
            known = self.results.runs[column].to_list()
            text = labels(known)[value]
            is_clear = is_short and numbers(known) is None
            equals = " " if is_short else " = "
            said.append(text if is_clear else f"{short[column]}{equals}{text}")
        return said

    def about(self, group: Values) -> str:
        """The subject of a row in words: a flow, a class, a congestion control."""
        row = dict(zip(self.groups, group, strict=True))
        named = row.get(self.by)
        if named and self.by == "class" and row.get("cc"):
            return f"{named} ({row['cc']})"
        return str(named or row.get("transport") or "all flows")


def question(
    results: Results,
    *,
    versus: Mapping[str, str] | str | None,
    by: str | None,
    metrics: Sequence[str],
    margin: float,
    is_judged: bool = True,
) -> Question:
    """Chooses whatever is not given: the subject of a row, the baseline, the metrics. Without
    `is_judged`, pairs are not compared, which takes longest.

    Raises:
        ValueError: A given baseline, subject or metric does not exist.
    """
    usual = rows_are(results)
    tried = [by] if by is not None else list(dict.fromkeys([usual, "flow", "class", "cc"]))
    first = tried[0]
    problem = ""
    for one in tried:
        try:
            return _question(results, one, versus, metrics, margin, problem="", is_judged=is_judged)
        except ValueError as error:
            if versus is not None and by is not None:
                raise
            problem = problem or str(error)
    if versus is not None:
        raise ValueError(problem)
    return _question(results, first, None, metrics, margin, problem=problem)


def _question(
    results: Results,
    by: str,
    versus: Mapping[str, str] | str | None,
    metrics: Sequence[str],
    margin: float,
    *,
    problem: str,
    is_judged: bool = True,
) -> Question:
    """With a problem, nothing is compared."""
    wanted = list(metrics) or [*OF_SCREEN.get(by, OF_SCREEN["class"]), FURTHER]
    further = [name for name in wanted if name not in COLUMNS]
    summary = results.summary(by=by, metrics=further)
    if unknown := [name for name in wanted if name not in summary.columns]:
        raise ValueError(f"metrics: there is no {unknown[0]!r}; there are {', '.join(METRICS)}")
    there = [name for name in wanted if summary[name].count() > 0]
    if not metrics:
        there = _goal_first(there, by)
    varied = [name for name in results.swept if results.runs[name].n_unique() > 1]
    baseline = _baseline(results, varied, versus)
    compared = stepping(results.runs, results.swept, list(baseline)) if baseline else []
    frame = None
    if baseline and not problem and there and is_judged:
        frame = results.versus(baseline, metrics=there, by=by, margin=margin)
    conditions = [name for name in varied if name not in compared]
    groups = _groups(summary, by, baseline, conditions)
    known = [tuple(row) for row in summary.select(groups).unique(maintain_order=True).rows()]
    subject = _subject(results, compared, by, groups, known)
    if there:
        ends = set(summary.drop_nulls(there[0]).select(groups).rows())
        # Bulk flows have no completion time: the answer is about flows that have one.
        subject = next((one for one in (subject, *known) if one in ends), subject)
    return Question(
        results=results,
        by=by,
        metrics=tuple(there or wanted[:1]),
        margin=margin,
        summary=summary,
        compared=compared,
        conditions=conditions,
        baseline=baseline,
        versus=frame,
        why_not=problem,
        groups=groups,
        subject=subject,
        others=[one for one in known if one != subject],
    )


def _goal_first(metrics: list[str], by: str) -> list[str]:
    """The metrics with the default goal moved to the front."""
    goals = [*GOALS, "goodput_mbit_s" if by == "flow" else "goodput_all_mbit_s", *metrics]
    first = next((name for name in goals if name in metrics), None)
    return [*([first] if first else []), *(name for name in metrics if name != first)]


def _baseline(
    results: Results, varied: Sequence[str], versus: Mapping[str, str] | str | None
) -> dict[str, str]:
    """The columns that identify the baseline, with its values. By default, the first value of the
    key that is most likely the subject of the experiment.
    """
    if versus is not None:
        return chosen_baseline(results.runs, results.swept, versus)
    if not varied:
        return {}
    best = min(varied, key=lambda name: (rank(results, name), varied.index(name)))
    return {best: results.runs[best].drop_nulls()[0]}


def rank(results: Results, name: str) -> int:
    """Ranks keys by how likely each is to be the compared one rather than a condition, the
    likeliest at 0: results and variants, then congestion controls, other words, numbers.
    """
    if name in ("results", "variant"):
        return 0
    if re.search(r"(^|[._])cc(\.name)?$", name):
        return 1
    return 3 if numbers(results.runs[name].to_list()) is not None else 2


def _groups(
    summary: pl.DataFrame, by: str, baseline: Mapping[str, str], conditions: Sequence[str]
) -> list[str]:
    """The columns that name the subject of a row, as far as the baseline has the same values."""
    if by == "flow":
        return ["flow"]
    if not baseline:
        return BY[by]
    is_baseline = pl.all_horizontal(pl.col(key) == value for key, value in baseline.items())
    theirs = summary.filter(is_baseline)
    ours = summary.filter(~is_baseline)
    return [
        name
        for name in BY[by]
        if ((name == by and by != "cc") or set(theirs[name]) == set(ours[name]))
        and not any(summary[name].equals(summary[path]) for path in conditions)
    ]


def _subject(
    results: Results, compared: Sequence[str], by: str, groups: list[str], known: list[Values]
) -> Values:
    """The flows that the compared key affects. If it affects the network, the first TCP flows,
    which have an RTT.
    """
    if len(known) == 1 or not known:
        return known[0] if known else ()
    flows = _touched(results.plans[0], compared)
    rows = results.flows.filter(pl.col("flow").is_in(flows)) if flows else results.flows.head(0)
    touched = set(rows.select(groups).unique(maintain_order=True).rows())
    if not touched:
        of_tcp = results.flows.filter(pl.col("transport") == "tcp")
        touched = set(of_tcp.select(groups).unique(maintain_order=True).rows())
    return next((one for one in known if one in touched), known[0])


def _touched(plan: _core.Plan, compared: Sequence[str]) -> list[str]:
    """The names of the flows whose entry in the experiment contains a compared key."""
    read = json.loads(plan.to_json())
    found = []
    for column in compared:
        path = column.removeprefix("sweep.")
        for flow in read["flows"]:
            entry = re.match(r"flows(\[\d+\]|\.([^.]+))\.", path)
            if entry and (flow["place"] == f"flows{entry[1]}" or flow["name"] == entry[2]):
                found.append(str(flow["name"]))
    return found


def is_better(metric: str, verdict: str | None) -> bool | None:
    """Whether a verdict means an improvement; `None` if it is neutral."""
    if metric not in MORE | LESS | {"jain_index"} or verdict not in ("higher", "lower"):
        return None
    is_more_better = metric in MORE or metric == "jain_index"
    return (verdict == "higher") == is_more_better


def called(asked: Question, row: Row) -> str:
    """The subject of a row, with its congestion control."""
    named = row.get(asked.by)
    kind = row["cc"] or row["transport"]
    return f"{named} ({kind})" if named and named != kind else str(kind)
