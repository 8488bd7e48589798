"""From flows to one row for each of them, over all repetitions."""

from __future__ import annotations

import polars as pl

from tcplab._statistics import covered, half_width, jain, percentile

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

RATE, OUTCOME = pl.col("goodput_mbit_s"), pl.col("outcome")

IS_UNFINISHED = pl.col("completion_s").is_null() & ~OUTCOME.is_in(
    ["completed", "running", "not started"]
)
"""Whether a flow with a size, or one that broke, did not complete."""


def summary(
    flows: pl.DataFrame, transfers: pl.LazyFrame, *, variant: list[str], by: str
) -> pl.DataFrame:
    """Means over repetitions, from flows with what was swept and measured beside them, and their
    transfers.

    See `Results.summary`, which says what the columns are.
    """
    if by not in BY:
        raise ValueError(f"by: no rows are made by {by!r}; there are {', '.join(BY)}")
    kind = [*variant, *BY[by]]
    flows = _measured(flows)
    if by != "flow":
        flows = _with_transfers(flows, transfers)
    flows = flows.with_columns(
        _ratio(pl.col("retransmitted_segments"), pl.col("sent_segments")).alias(
            "retransmitted_share"
        ),
        _ratio(pl.col("lost_packets"), pl.col("sent_segments")).alias("lost_share"),
        IS_UNFINISHED.cast(pl.Float64).alias("unfinished"),
    )
    measures = OF_FLOWS
    if by != "flow":
        measures = OF_GROUPS
        flows = _grouped(flows, [*kind, "run", "repetition"], [*variant, "run", "repetition"])
    means = [
        expression
        for name in measures
        for expression in (_mean(name), half_width(name).alias(f"{name}_ci"))
    ]
    number = [] if by == "flow" else [pl.col("flows").first()]
    summary = flows.group_by(kind, maintain_order=True).agg(
        pl.len().alias("repetitions"), *number, *means
    )
    # A mean without the repetitions that did not get there would be too short.
    return summary.with_columns(
        pl.when(pl.col("unfinished") == 0).then(pl.col(name)).alias(name)
        for name in ("completion_s", "completion_s_ci")
    )


def _measured(flows: pl.DataFrame) -> pl.DataFrame:
    """The flows, each with the time for which it ran while it was measured."""
    start, end, from_, to = map(pl.col, ["start_s", "end_s", *MEASURED])
    return flows.with_columns(
        pl.max_horizontal(start, from_),
        pl.min_horizontal(end, to),
        ((start < to) & (end > from_)).alias("is there"),
    )


def _with_transfers(flows: pl.DataFrame, transfers: pl.LazyFrame) -> pl.DataFrame:
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


def _mean(name: str) -> pl.Expr:
    """The mean over repetitions; of times of completion, if each has one: else it is too short."""
    mean = pl.col(name).mean()
    if name.startswith("completion_p"):
        return pl.when(pl.col(name).null_count() == 0).then(mean).alias(name)
    return mean


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """A part of a whole; nothing where there is no whole."""
    return pl.when(whole > 0).then(part / whole)


def _grouped(flows: pl.DataFrame, kind: list[str], run: list[str]) -> pl.DataFrame:
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
