"""Results as JSON, for other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tcplab import _core
from tcplab import _polars as pl
from tcplab._results.flow_summary import BY, OF_FLOWS, OF_GROUPS, STATISTICS, VERSUS
from tcplab._results.metrics import METRICS
from tcplab._results.results import Results

FORMAT = 1
"""The version of the format. It is raised when something that readers rely on changes; keys and
columns may be added at any time.
"""

OTHER = re.compile(r"[^\x00-\x7e]+")
"""Characters that a terminal or a reader may mistake for others."""

TYPES = {"text": "string", "integer": "integer", "number": "number"}

VALUES = {"type": ["string", "number", "boolean", "null"]}
"""The type of columns named by the experiment: swept values, as text and as numbers."""


def document(
    results: Results,
    summary: pl.DataFrame,
    *,
    by: str,
    statistic: str,
    versus: pl.DataFrame | None,
) -> str:
    """The runs, the flows of all runs, and the summary by flow, class or congestion control: the
    rows of the frames of the same name, with the same numbers. With a comparison, its rows too.
    """
    frames = {"runs": results.runs, "flows": results.flows, "summary": summary}
    if versus is not None:
        frames["versus"] = versus
    texts = (f'"{name}": {rows(frame)}' for name, frame in frames.items())
    head = f'"format": {FORMAT}, "tcplab": "{_core.__version__}", "by": "{by}"'
    head += f', "statistic": "{statistic}"'
    return "{" + ",\n".join([head, *texts]) + "}"


def rows(frame: pl.DataFrame) -> str:
    """The rows of a table."""
    # Polars streams the rows. As Python objects, the rows of a million flows would take gigabytes.
    text = frame.write_json()
    # In JSON, such characters occur only within strings.
    return OTHER.sub(lambda found: json.dumps(found[0])[1:-1], text)


def schema() -> dict[str, Any]:
    """The JSON Schema of the output of `document`."""
    meanings = {(table, column): meaning for table, column, meaning in _core.columns()}
    tables: dict[str, dict[str, Any]] = {"runs": {}, "flows": {}}
    for table, column, kind, is_optional in _core.column_kinds():
        if table in tables:
            tables[table][column] = {
                "type": [TYPES[kind], "null"] if is_optional else TYPES[kind],
                "description": meanings[table, column],
            }
    number = {"type": ["number", "null"]}
    measures = dict.fromkeys([*OF_FLOWS, *OF_GROUPS])
    summary: dict[str, Any] = {
        **{name: tables["flows"][name] for name in BY["flow"]},
        "repetitions": {"type": "integer", "description": "The number of runs in the row."},
        "flows": {"type": "integer", "description": "The number of flows, if there are several."},
        **{
            name: number | {"description": SUMMED.get(name) or tables["flows"][name]["description"]}
            for name in measures
        },
        **{
            name: number | {"description": f"{metric.definition} {_unit(metric.unit)}"}
            for name, metric in METRICS.items()
        },
        **{
            f"{name}{ending}": number | {"description": meaning}
            for ending, meaning in INTERVALS.items()
            for name in [*measures, *METRICS]
        },
    }
    versus = {
        **{name: tables["flows"][name] for name in BY["flow"]},
        **{
            name: {"type": [KINDS[kind], "null"], "description": COMPARED[name]}
            for name, kind in VERSUS.items()
        },
    }
    every = {"experiment", "run", "seed", "repetition", "simulated_s"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "results of tcplab, as `--format json` prints them",
        "type": "object",
        "required": ["format", "tcplab", "by", "runs", "flows", "summary"],
        "properties": {
            "format": {"const": FORMAT, "description": "The version of this format."},
            "tcplab": {"type": "string", "description": "The version of tcplab."},
            "by": {"enum": [*BY], "description": "The subject of a row of the summary."},
            "statistic": {
                "enum": [*STATISTICS],
                "description": "The statistic over repetitions.",
            },
            "runs": _rows("A row for each run.", tables["runs"], every),
            "flows": _rows("A row for each flow of each run.", tables["flows"], {"run", "flow"}),
            "summary": _rows(
                "Means over repetitions: a row for each flow, class or congestion control.",
                summary,
                {"repetitions", "goodput_mbit_s"},
            ),
            "versus": _rows(
                "With `--versus`: variants compared with a baseline, a row for each metric.",
                versus,
                {*VERSUS},
            ),
        },
    }


SUMMED = {
    "goodput_mbit_s": "Bytes that reached the application over the time from start to end, as far "
    "as that is measured, in Mbit/s.",
    "retransmitted_share": "`retransmitted_segments` as a share of `sent_segments`.",
    "unfinished": "How many flows did not complete, with a size or because they broke.",
    "lost_share": "UDP: `lost_packets` as a share of `sent_segments`.",
    "goodput_all_mbit_s": "Of several flows: all their bytes over the time in which any of them "
    "ran.",
    "jain_index": "Of several flows: Jain's index of the goodput of all that share the bottleneck; "
    "with several bottlenecks, the least.",
}
"""What columns of the summary mean that flows do not have, or say elsewhere."""

INTERVALS = {
    "_ci": "Half the width of Student's 95 % confidence interval of the mean, which holds for "
    "normally distributed repetitions; nothing with one.",
    "_low": "The lower limit of the 95 % confidence interval, whatever the distribution; nothing "
    "where there are too few repetitions (10 for a mean, 5 for a median).",
    "_high": "The upper limit of the same.",
}

KINDS = {str: "string", int: "integer", float: "number"}

COMPARED = {
    "metric": "The column of the summary that is compared.",
    "pairs": "The number of pairs of runs with equal seeds that have the metric.",
    "baseline": "The mean of the baseline over the pairs.",
    "mean": "The mean of this variant over the pairs.",
    "difference": "The mean difference of the pairs.",
    "difference_low": "The lower limit of its 95 % confidence interval.",
    "difference_high": "The upper limit of the same.",
    "relative": "The mean difference as a share of the baseline's mean.",
    "relative_low": "The lower limit of the difference as such a share.",
    "relative_high": "The upper limit of the same.",
    "harm": "How much worse than the baseline, as a share of the better one (Ware et al. 2019).",
    "effect": "The difference in standard deviations of the differences (Hedges' g).",
    "p": "The probability of so great a difference if there is none (Holm).",
    "p_same": "The probability of means so close if they differ by the margin (Holm).",
    "more_runs": "The estimated number of further pairs that would show the margin.",
    "verdict": "`higher`, `lower`, `same` (within the margin), `equal` (in each pair), `unknown`.",
    "said": "The verdict in words.",
    "assumes": "`normal` where fewer than 10 pairs allow no other interval than Student's.",
}


def _unit(unit: str) -> str:
    return f"A {unit}." if unit in ("share", "ratio") else f"In {unit}."


def _rows(about: str, columns: Mapping[str, Any], required: set[str]) -> dict[str, Any]:
    row = {
        "type": "object",
        "required": sorted(required),
        "properties": dict(columns),
        # Swept keys and parameters, by their paths and names.
        "additionalProperties": VALUES,
    }
    return {"type": "array", "description": about, "items": row}
