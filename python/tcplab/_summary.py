"""From flows to one row for each of them, over all repetitions."""

from __future__ import annotations

import polars as pl

from tcplab._statistics import half_width, jain

BY = {"flow": ["flow", "class", "cc"], "class": ["class", "cc"], "cc": ["cc"]}

MEASURES = [
    "goodput_mbit_s",
    "bottleneck_share",
    "retransmitted_segments",
    "retransmitted_share",
    "rtt_mean_ms",
    "rtt_min_ms",
    "completion_s",
]
"""What is averaged over repetitions."""

TOGETHER = {"retransmitted_segments", "retransmitted_share", "rtt_min_ms"}
"""What flows of a kind have together, rather than on average."""


def summary(flows: pl.DataFrame, *, variant: list[str], by: str) -> pl.DataFrame:
    """Means over repetitions, from flows with what was swept beside them.

    Unless the rows are single flows, a row is about all flows of its kind: their number, the mean
    of each measure over them (of what was sent again, the sum; of the least RTT, the least), the
    sum of their goodput and Jain's index of it.
    """
    if by not in BY:
        raise ValueError(f"by: no rows are made by {by!r}; there are {', '.join(BY)}")
    kind = [*variant, *BY[by]]
    sent = pl.col("sent_segments")
    share = pl.when(sent > 0).then(pl.col("retransmitted_segments") / sent)
    flows = flows.with_columns(share.alias("retransmitted_share"))
    measures = MEASURES
    if by != "flow":
        measures = [*MEASURES, "goodput_sum_mbit_s", "jain_index"]
        flows = flows.group_by([*kind, "run", "repetition"], maintain_order=True).agg(
            pl.len().alias("flows"),
            *(pl.col(measure).mean() for measure in MEASURES if measure not in TOGETHER),
            pl.col("retransmitted_segments").sum(),
            (pl.col("retransmitted_segments").sum() / sent.sum()).alias("retransmitted_share"),
            pl.col("rtt_min_ms").min(),
            pl.col("goodput_mbit_s").sum().alias("goodput_sum_mbit_s"),
            jain("goodput_mbit_s").alias("jain_index"),
        )
    means = [
        expression
        for name in measures
        for expression in (pl.col(name).mean(), half_width(name).alias(f"{name}_ci"))
    ]
    number = [] if by == "flow" else [pl.col("flows").first()]
    return flows.group_by(kind, maintain_order=True).agg(
        pl.len().alias("repetitions"), *number, *means
    )
