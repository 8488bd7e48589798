"""Summarises flows over all repetitions, in one row for each flow or kind of flows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcplab import _polars as pl
from tcplab._statistics.estimates import covered, jain, limits, percentile

BY = {
    "flow": ["flow", "class", "transport", "cc"],
    "class": ["class", "transport", "cc"],
    "cc": ["transport", "cc"],
}

MEASURED = ["measured_from_s", "measured_to_s"]
"""The columns of runs that give the measured part of a run."""

OF_DATAGRAMS = [
    "lost_packets",
    "lost_share",
    "reordered_packets",
    "delay_mean_ms",
    "delay_p50_ms",
    "delay_p95_ms",
    "delay_p99_ms",
    "jitter_ms",
    "jitter_mean_ms",
    "ipdv_ms",
]
"""The measures of UDP flows that are averaged."""

PERCENTILES = ["completion_p50_s", "completion_p95_s", "completion_p99_s"]

MEASURES = [
    "goodput_mbit_s",
    "bottleneck_share",
    "retransmitted_segments",
    "retransmitted_share",
    "rtt_mean_ms",
    "rtt_min_ms",
    "completion_s",
    "unfinished",
    *OF_DATAGRAMS,
]
"""The measures that are averaged over repetitions."""

ENDINGS = ("_ci", "_low", "_high")
"""The columns beside each mean: half the width of Student's interval, and the limits of the
interval to rely on.
"""

OF_FLOWS = [*MEASURES, "transfers", "completed_transfers", "completion_mean_s", *PERCENTILES]
"""The measures in rows about single flows."""

OF_GROUPS = [*MEASURES, "goodput_all_mbit_s", "jain_index", *PERCENTILES]
"""The measures in rows about several flows."""

TOGETHER = {
    "retransmitted_segments",
    "retransmitted_share",
    "rtt_min_ms",
    "completion_s",
    "unfinished",
    "lost_packets",
    "lost_share",
    "reordered_packets",
}
"""Measures that several flows have in total, rather than on average."""

COLUMNS = frozenset(OF_FLOWS) | frozenset(OF_GROUPS) | {"flows", "repetitions", "measure"}
"""The names of columns that summaries and comparisons add to those of tables.

Temporary columns have a space in their name, which no parameter has.
"""

VERSUS: dict[str, Any] = {
    "metric": str,
    "pairs": int,
    "baseline": float,
    "mean": float,
    "difference": float,
    "difference_low": float,
    "difference_high": float,
    "relative": float,
    "relative_low": float,
    "relative_high": float,
    "harm": float,
    "effect": float,
    "p": float,
    "p_same": float,
    "more_runs": int,
    "verdict": str,
    "said": str,
    "assumes": str,
}
"""The columns of comparisons, besides those that identify the subject of a row."""

STATISTICS = ("mean", "median")
"""The statistics over repetitions."""


@dataclass(frozen=True)
class PerRun:
    """The measures of each run, the input of statistics over repetitions."""

    rows: pl.DataFrame
    kind: list[str]
    """The columns that identify the subject of a row in every repetition."""
    measures: list[str]


def is_unfinished() -> pl.Expr:
    """Whether a flow that has a size, or broke, did not complete."""
    has_ended = pl.col("outcome").is_in(["completed", "running", "not started"])
    return pl.col("completion_s").is_null() & ~has_ended


def summary(
    flows: pl.DataFrame,
    transfers: pl.LazyFrame,
    *,
    variant: list[str],
    by: str,
    statistic: str = "mean",
    level: float = 0.95,
    metrics: Sequence[str] = (),
) -> pl.DataFrame:
    """Means or medians over repetitions, from flows with swept and measured columns beside them,
    and from their transfers.

    See `Results.summary` for the meaning of the columns.
    """
    if statistic not in STATISTICS:
        raise ValueError(f"statistic: there is no {statistic!r}; there are {', '.join(STATISTICS)}")
    runs = per_run(flows, transfers, variant=variant, by=by, metrics=metrics)
    number = [] if by == "flow" else [pl.col("flows").first()]
    grouped = runs.rows.group_by(runs.kind, maintain_order=True)
    summary = grouped.agg(
        pl.len().alias("repetitions"),
        *number,
        *(_statistic(name, statistic) for name in runs.measures),
    )
    values = grouped.agg(pl.col(runs.measures).cast(pl.Float64).drop_nulls())
    about = limits(values, runs.measures, statistic=statistic, level=level)
    summary = summary.with_columns(about).select(
        *(name for name in summary.columns if name not in runs.measures),
        *(f"{name}{ending}" for name in runs.measures for ending in ("", *ENDINGS)),
    )
    # Limits computed from the completed repetitions alone would leave out the others.
    summary = summary.with_columns(
        pl.when(pl.col(name).is_not_null()).then(pl.col(f"{name}{ending}"))
        for name in PERCENTILES
        for ending in ENDINGS
    )
    # A mean without the repetitions that did not complete would be too short.
    return summary.with_columns(
        pl.when(pl.col("unfinished") == 0).then(pl.col(f"completion_s{ending}"))
        for ending in ("", *ENDINGS)
    )


def per_run(
    flows: pl.DataFrame,
    transfers: pl.LazyFrame,
    *,
    variant: list[str],
    by: str,
    metrics: Sequence[str] = (),
) -> PerRun:
    """A row for each flow, or for all flows of a kind, of each run. `metrics` are further columns
    of the flows; a row about several flows has their mean.
    """
    if by not in BY:
        raise ValueError(f"by: no rows are made by {by!r}; there are {', '.join(BY)}")
    kind = [*variant, *BY[by]]
    flows = with_times(flows)
    if by != "flow":
        flows = with_transfers(flows, transfers)
    flows = flows.with_columns(
        _ratio(pl.col("retransmitted_segments"), pl.col("sent_segments")).alias(
            "retransmitted_share"
        ),
        _ratio(pl.col("lost_packets"), pl.col("sent_segments")).alias("lost_share"),
        is_unfinished().cast(pl.Float64).alias("unfinished"),
    )
    if by == "flow":
        return PerRun(flows, kind, [*OF_FLOWS, *metrics])
    run = ["run", "seed", "repetition"]
    grouped = _grouped(flows, [*kind, *run], [*variant, *run], metrics)
    return PerRun(grouped, kind, [*OF_GROUPS, *metrics])


def with_times(flows: pl.DataFrame) -> pl.DataFrame:
    """The flows, each with the time for which it ran within the measured part."""
    start, end, from_, to = map(pl.col, ["start_s", "end_s", *MEASURED])
    return flows.with_columns(
        pl.max_horizontal(start, from_),
        pl.min_horizontal(end, to),
        ((start < to) & (end > from_)).alias("is there"),
    )


def with_transfers(flows: pl.DataFrame, transfers: pl.LazyFrame) -> pl.DataFrame:
    """The flows, with each flow that has transfers replaced by these."""
    has_transfers = pl.col("transfers").fill_null(0) > 0
    if flows.filter(has_transfers).is_empty():
        return flows
    flows = flows.with_row_index("row number")
    parents = flows.filter(has_transfers)
    own = transfers.collect_schema().names()
    start, from_, to = map(pl.col, ["start_s", *MEASURED])
    # A transfer that begins at the end of the run belongs to the last part of the run.
    is_measured = (start >= from_) & ((start < to) | (to == pl.col("simulated_s")))
    # Columns that only flows have: names, the bottleneck.
    kept = [name for name in flows.columns if name not in own or name in ("run", "flow")]
    share = pl.col("goodput_mbit_s") * pl.col("of rate")
    rate = _ratio(pl.col("bottleneck_share"), pl.col("goodput_mbit_s")).alias("of rate")
    of_rate = parents.select("run", "flow", rate)
    parts = (
        parents.lazy()
        .select(kept)
        .join(of_rate.lazy(), on=["run", "flow"], maintain_order="left")
        # The kinds of rows keep the order of the experiment, not that of the ends of transfers.
        .join(transfers.sort("transfer"), on=["run", "flow"], maintain_order="left_right")
        .filter(is_measured)
        .with_columns(share.alias("bottleneck_share"))
        .select(flows.columns)
        .collect()
    )
    # The transfers take the place of their flow: rows of a variant stay together.
    rows = pl.concat([flows.filter(~has_transfers), parts])
    return rows.sort("row number", maintain_order=True).drop("row number")


def _statistic(name: str, statistic: str) -> pl.Expr:
    """The mean or median over repetitions. A percentile of completion times needs a value in each
    repetition: else it would be too short.
    """
    values = pl.col(name)
    mean = values.mean() if statistic == "mean" else values.median()
    if name.startswith("completion_p"):
        return pl.when(pl.col(name).null_count() == 0).then(mean).alias(name)
    return mean


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """A part of a whole; null where the whole is zero."""
    return pl.when(whole > 0).then(part / whole)


def _grouped(
    flows: pl.DataFrame, kind: list[str], run: list[str], metrics: Sequence[str]
) -> pl.DataFrame:
    """A row for all flows of a kind in a run."""
    # A flow that never connected has a share of zero. A flow that never began, or ran outside the
    # measured part, does not count.
    has_part = (pl.col("outcome") != "not started") & pl.col("is there")
    rate = pl.when(has_part).then(pl.col("goodput_mbit_s").fill_null(0.0))
    shared = flows.with_columns(rate.alias("rate of all")).with_columns(
        jain("rate of all").over([*run, "bottleneck"]).alias("jain_index")
    )
    lasted_s = covered("start_s", "end_s")
    return shared.group_by(kind, maintain_order=True).agg(
        pl.len().alias("flows"),
        *(pl.col(measure).mean() for measure in MEASURES if measure not in TOGETHER),
        pl.col(metrics).mean(),
        pl.col("retransmitted_segments").sum(),
        _ratio(pl.col("retransmitted_segments").sum(), pl.col("sent_segments").sum()).alias(
            "retransmitted_share"
        ),
        pl.col("rtt_min_ms").min(),
        # Null if no flow is UDP.
        *(
            pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
            for name in ("lost_packets", "reordered_packets")
        ),
        _ratio(
            pl.when(pl.col("lost_packets").count() > 0).then(pl.col("lost_packets").sum()),
            pl.col("sent_segments").filter(pl.col("lost_packets").is_not_null()).sum(),
        ).alias("lost_share"),
        pl.col("completion_s").mean(),
        pl.col("unfinished").sum(),
        _ratio(pl.col("bytes").sum() * 8 / 1e6, lasted_s).alias("goodput_all_mbit_s"),
        pl.col("jain_index").min(),
        *(
            percentile("completion_s", share, pl.col("unfinished").sum()).alias(
                f"completion_p{round(share * 100)}_s"
            )
            for share in (0.5, 0.95, 0.99)
        ),
    )
