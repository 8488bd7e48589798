"""From flows to one row for each of them, over all repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tcplab._statistics.estimates import covered, jain, limits, percentile

BY = {
    "flow": ["flow", "class", "transport", "cc"],
    "class": ["class", "transport", "cc"],
    "cc": ["transport", "cc"],
}

MEASURED = ["measured_from_s", "measured_to_s"]
"""The columns of runs that say which part of it results are of."""

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
"""What is averaged of UDP."""

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
"""What is averaged over repetitions."""

ENDINGS = ("_ci", "_low", "_high")
"""Beside each mean: half the width of Student's interval, and the limits of the one to trust."""

OF_FLOWS = [*MEASURES, "transfers", "completed_transfers", "completion_mean_s", *PERCENTILES]
"""The same of rows about single flows."""

OF_GROUPS = [*MEASURES, "goodput_all_mbit_s", "jain_index", *PERCENTILES]
"""The same of rows about several flows."""

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
"""What flows of a kind have together, rather than on average."""

COLUMNS = frozenset(OF_FLOWS) | frozenset(OF_GROUPS) | {"flows", "repetitions", "measure"}
"""The names of columns that are made here and in comparisons, beside those of tables.

Others, which nobody sees, have a space in their name: no parameter has.
"""

VERSUS: dict[str, Any] = {
    "metric": pl.String,
    "pairs": pl.Int64,
    "baseline": pl.Float64,
    "mean": pl.Float64,
    "difference": pl.Float64,
    "difference_low": pl.Float64,
    "difference_high": pl.Float64,
    "relative": pl.Float64,
    "relative_low": pl.Float64,
    "relative_high": pl.Float64,
    "harm": pl.Float64,
    "effect": pl.Float64,
    "p": pl.Float64,
    "p_same": pl.Float64,
    "more_runs": pl.Int64,
    "verdict": pl.String,
    "said": pl.String,
    "assumes": pl.String,
}
"""The columns of comparisons, beside those that say what a row is about."""

RATE, OUTCOME = pl.col("goodput_mbit_s"), pl.col("outcome")

IS_UNFINISHED = pl.col("completion_s").is_null() & ~OUTCOME.is_in(
    ["completed", "running", "not started"]
)
"""Whether a flow with a size, or one that broke, did not complete."""


STATISTICS = ("mean", "median")
"""What may be taken of repetitions."""


@dataclass(frozen=True)
class PerRun:
    """The measures of each run: what statistics over repetitions are of."""

    rows: pl.DataFrame
    kind: list[str]
    """The columns that tell what a row is about, in every repetition."""
    measures: list[str]


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
    """Means or medians over repetitions, from flows with what was swept and measured beside them,
    and their transfers.

    See `Results.summary`, which says what the columns are.
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
    # Limits of those that are there alone would leave out the others.
    summary = summary.with_columns(
        pl.when(pl.col(name).is_not_null()).then(pl.col(f"{name}{ending}"))
        for name in PERCENTILES
        for ending in ENDINGS
    )
    # A mean without the repetitions that did not get there would be too short.
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
    """A row for each flow, or all flows of a kind, of each run. `metrics` are further columns of
    the flows; of several flows, there is their mean.
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
        IS_UNFINISHED.cast(pl.Float64).alias("unfinished"),
    )
    if by == "flow":
        return PerRun(flows, kind, [*OF_FLOWS, *metrics])
    run = ["run", "seed", "repetition"]
    grouped = _grouped(flows, [*kind, *run], [*variant, *run], metrics)
    return PerRun(grouped, kind, [*OF_GROUPS, *metrics])


def with_times(flows: pl.DataFrame) -> pl.DataFrame:
    """The flows, each with the time for which it ran while it was measured."""
    start, end, from_, to = map(pl.col, ["start_s", "end_s", *MEASURED])
    return flows.with_columns(
        pl.max_horizontal(start, from_),
        pl.min_horizontal(end, to),
        ((start < to) & (end > from_)).alias("is there"),
    )


def with_transfers(flows: pl.DataFrame, transfers: pl.LazyFrame) -> pl.DataFrame:
    """The flows, but each transfer in the place of a flow that has some."""
    has_transfers = pl.col("transfers").fill_null(0) > 0
    if flows.filter(has_transfers).is_empty():
        return flows
    flows = flows.with_row_index("row number")
    parents = flows.filter(has_transfers)
    own = transfers.collect_schema().names()
    start, from_, to = map(pl.col, ["start_s", *MEASURED])
    # What begins at the end of the run is of its last part.
    is_measured = (start >= from_) & ((start < to) | (to == pl.col("simulated_s")))
    # What only a flow has: names, the bottleneck.
    kept = [name for name in flows.columns if name not in own or name in ("run", "flow")]
    share = pl.col("goodput_mbit_s") * pl.col("of rate")
    rate = _ratio(pl.col("bottleneck_share"), pl.col("goodput_mbit_s")).alias("of rate")
    of_rate = parents.select("run", "flow", rate)
    parts = (
        parents.lazy()
        .select(kept)
        .join(of_rate.lazy(), on=["run", "flow"], maintain_order="left")
        # Kinds of rows in the order in which the experiment has them, not that of their ends.
        .join(transfers.sort("transfer"), on=["run", "flow"], maintain_order="left_right")
        .filter(is_measured)
        .with_columns(share.alias("bottleneck_share"))
        .select(flows.columns)
        .collect()
    )
    # The transfers of a flow stand where it stood: rows of a variant stay together.
    rows = pl.concat([flows.filter(~has_transfers), parts])
    return rows.sort("row number", maintain_order=True).drop("row number")


def _statistic(name: str, statistic: str) -> pl.Expr:
    """The mean or median over repetitions; of times of completion, if each has one: else it is too
    short.
    """
    values = pl.col(name)
    mean = values.mean() if statistic == "mean" else values.median()
    if name.startswith("completion_p"):
        return pl.when(pl.col(name).null_count() == 0).then(mean).alias(name)
    return mean


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """A part of a whole; nothing where there is no whole."""
    return pl.when(whole > 0).then(part / whole)


def _grouped(
    flows: pl.DataFrame, kind: list[str], run: list[str], metrics: Sequence[str]
) -> pl.DataFrame:
    """A row for all flows of a kind in a run."""
    # A flow that never connected has nothing of the bottleneck; one that never began, or ran at
    # another time than what is measured, has no part in it.
    has_part = (OUTCOME != "not started") & pl.col("is there")
    rate = pl.when(has_part).then(RATE.fill_null(0.0))
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
        # Nothing where no flow is of UDP.
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
