"""Measures beyond those in the table of flows, each of one flow in one run.

`METRICS` has their definitions, units and references; the page docs/reference/metrics.md is
generated from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tcplab import _polars as pl

TOLERANCE = 0.2
"""The greatest distance of a converged flow's goodput from the equal share, relative to that share.
"""

HOLD_S = 5.0
"""The time for which the goodput must stay within that distance."""

ID = ["run", "flow"]


@dataclass(frozen=True)
class Tables:
    """The tables that metrics are computed from. Flows and links carry the measured part of the run
    as columns; flows also whether they were present in it.
    """

    flows: pl.LazyFrame
    intervals: pl.LazyFrame
    links: pl.LazyFrame


@dataclass(frozen=True)
class Metric:
    """A number that describes a flow in a run."""

    unit: str
    definition: str
    source: str
    """The reference, and the tables that the metric is computed from."""
    of: Callable[[Tables], pl.LazyFrame]
    """Computes the columns `run`, `flow` and the metrics of this function."""
    needs: str = ""
    """The key of an experiment without which the metric is null."""


def measured(frames: Tables, names: Sequence[str]) -> pl.DataFrame:
    """The named metrics: a row for each flow of each run."""
    for name in names:
        if name not in METRICS:
            raise ValueError(f"metrics: there is no {name!r}; there are {', '.join(METRICS)}")
    rows = frames.flows.select(ID)
    for make in dict.fromkeys(METRICS[name].of for name in names):
        rows = rows.join(make(frames), on=ID, how="left", maintain_order="left")
    return rows.select(*ID, *names).collect()


def _shares(frames: Tables) -> pl.LazyFrame:
    """Flows that share a bottleneck, each with its part in the measured time."""
    rate = pl.col("goodput_mbit_s").fill_null(0.0)
    others = ["run", "bottleneck"]
    return frames.flows.filter(pl.col("is there"), pl.col("outcome") != "not started").select(
        *ID,
        pl.when(rate.max().over(others) > 0)
        .then(rate.min().over(others) / rate.max().over(others))
        .alias("max_min_share"),
        pl.when(rate.sum().over(others) > 0)
        .then(rate / rate.mean().over(others))
        .alias("equal_shares"),
    )


def _power(frames: Tables) -> pl.LazyFrame:
    delay_s = pl.coalesce("rtt_mean_ms", "delay_mean_ms") / 1000
    return frames.flows.select(
        *ID, pl.when(delay_s > 0).then(pl.col("goodput_mbit_s") / delay_s).alias("power")
    )


def _slowdown(frames: Tables) -> pl.LazyFrame:
    rate = pl.col("goodput_mbit_s") / pl.col("bottleneck_share")
    ideal_s = pl.col("rtt_min_ms") / 2000 + pl.col("bytes") * 8e-6 / rate
    return frames.flows.select(*ID, (pl.col("completion_s") / ideal_s).alias("slowdown"))


def _stability(frames: Tables) -> pl.LazyFrame:
    rate = pl.col("goodput_mbit_s")
    # Only intervals throughout which the flow ran.
    whole = _whole(frames)
    return whole.group_by(ID, maintain_order=True).agg(
        pl.when(rate.mean() > 0).then(rate.std() / rate.mean()).alias("variation")
    )


def _whole(frames: Tables) -> pl.LazyFrame:
    """The intervals throughout which a flow ran."""
    times = frames.flows.select(
        *ID, "bottleneck", pl.col("start_s").alias("began"), pl.col("end_s").alias("ended")
    )
    rows = frames.intervals.select(*ID, "start_s", "end_s", "goodput_mbit_s")
    return rows.join(times, on=ID, maintain_order="left").filter(
        pl.col("start_s") >= pl.col("began"), pl.col("end_s") <= pl.col("ended")
    )


def _convergence(frames: Tables) -> pl.LazyFrame:
    equal = pl.col("goodput_mbit_s").mean().over("run", "bottleneck", "start_s")
    is_off = (pl.col("goodput_mbit_s") - equal).abs() > TOLERANCE * equal
    rows = _whole(frames).with_columns(is_off.alias("off")).sort(*ID, "start_s")
    # Consecutive intervals within the tolerance belong together.
    rows = rows.with_columns(pl.col("off").cast(pl.Int64).cum_sum().over(ID).alias("stretch"))
    stretches = (
        rows.filter(~pl.col("off"))
        .group_by(*ID, "stretch", maintain_order=True)
        .agg(pl.col("start_s").min(), pl.col("end_s").max(), pl.col("began").first())
        # Times are exact to the nanosecond.
        .filter(pl.col("end_s") - pl.col("start_s") >= HOLD_S - 1e-9)
    )
    return stretches.group_by(ID, maintain_order=True).agg(
        (pl.col("start_s").min() - pl.col("began").first()).alias("convergence_s")
    )


def _warm_up(frames: Tables) -> pl.LazyFrame:
    from tcplab import statistics  # noqa: PLC0415 (SciPy takes a while to load)

    found = []
    whole = _whole(frames).sort(*ID, "start_s").collect()
    for (run, flow), rows in whole.group_by(ID, maintain_order=True):
        starts, ends = rows["start_s"].to_list(), rows["end_s"].to_list()
        cut = statistics.warm_up(rows["goodput_mbit_s"].to_list())
        found.append((run, flow, None if cut is None else [*starts, ends[-1]][cut] - starts[0]))
    schema = {"run": pl.String, "flow": pl.String, "warm_up_s": pl.Float64}
    return pl.LazyFrame(found, schema=schema, orient="row")


def _queue(frames: Tables) -> pl.LazyFrame:
    ids = ["run", "link"]
    lasted = pl.col("time_s").diff().over(ids).fill_null(pl.col("time_s"))
    sent = pl.col("sent_bytes").diff().over(ids).fill_null(pl.col("sent_bytes"))
    rows = frames.links.with_columns(lasted.alias("lasted_s"), sent.alias("sent")).filter(
        # A row describes the time before its timestamp.
        pl.col("time_s") - pl.col("lasted_s") >= pl.col("measured_from_s") - 1e-9,
        pl.col("time_s") <= pl.col("measured_to_s"),
    )
    waited_ms = pl.col("queue_mean_bytes") * pl.col("lasted_s") / pl.col("sent") * 1000
    delay = pl.col("waited_ms")
    found = (
        rows.with_columns(pl.when(pl.col("sent") > 0).then(waited_ms).alias("waited_ms"))
        .group_by(ids, maintain_order=True)
        .agg(
            ((pl.col("utilisation") * pl.col("lasted_s")).sum() / pl.col("lasted_s").sum()).alias(
                "bottleneck_utilisation"
            ),
            ((delay * pl.col("sent")).sum() / pl.col("sent").sum()).alias("queue_delay_mean_ms"),
            *(
                _percentile("waited_ms", share, pl.col("waited_ms").count()).alias(
                    f"queue_delay_p{share}_ms"
                )
                for share in (50, 95, 99)
            ),
        )
    )
    return (
        frames.flows.select(*ID, pl.col("bottleneck").alias("link"))
        .join(found, on=ids, how="left", maintain_order="left")
        .drop("link")
    )


LITTLE = (
    "in each interval between two rows of the table of links: the mean of the bytes that wait, "
    "over the bytes accepted in it per second (Little's law)"
)

METRICS = {
    "bottleneck_utilisation": Metric(
        "share",
        "The share of the time in which the flow's bottleneck transmits.",
        "RFC 5166 calls it link utilisation. Links: the mean of `utilisation` over time.",
        _queue,
    ),
    "queue_delay_mean_ms": Metric(
        "ms",
        f"The time that packets wait at the flow's bottleneck: {LITTLE}; the mean over all bytes.",
        "RFC 5166 names the queueing delay at the router; Little 1961. Links.",
        _queue,
    ),
    **{
        f"queue_delay_p{share}_ms": Metric(
            "ms",
            f"The same: {share} % of the intervals have at most this (nearest rank). Packets of "
            "one interval differ: a smaller `record.links` comes closer to their percentile.",
            "As above.",
            _queue,
        )
        for share in (50, 95, 99)
    },
    "max_min_share": Metric(
        "ratio",
        "The least goodput of the flows with the same bottleneck over the greatest of them: 1 if "
        "all have the same, 0 if one has nothing.",
        "RFC 5166: epsilon-fairness. Flows.",
        _shares,
    ),
    "equal_shares": Metric(
        "ratio",
        "The flow's goodput over the mean goodput of all flows with its bottleneck: 1 is its fair "
        "share.",
        "The equal share of RFC 5166's fairness between flows. Flows.",
        _shares,
    ),
    "convergence_s": Metric(
        "s",
        f"From the start of the flow to the first {HOLD_S:g} s in which its goodput, interval by "
        f"interval, is within {100 * TOLERANCE:g} % of the mean of all flows with its bottleneck. "
        "Null if that never happens.",
        "RFC 5166: convergence times; Chiu and Jain 1989. Intervals.",
        _convergence,
        needs="every",
    ),
    "variation": Metric(
        "ratio",
        "Stability: the standard deviation of the flow's goodput from interval to interval, over "
        "its mean. 0 is a constant rate.",
        "Jin, Wei and Low 2004 (FAST TCP); RFC 5166: minimizing oscillations. Intervals.",
        _stability,
        needs="every",
    ),
    "warm_up_s": Metric(
        "s",
        "The time to discard from the start, so that the flow's goodput by interval is steady: "
        "MSER-5 cuts between batches of five intervals where the rest has the least squared "
        "standard error of its mean. Null if that is in the second half: the run is too short.",
        "White 1997; Franklin and White 2008. Intervals.",
        _warm_up,
        needs="every",
    ),
    "power": Metric(
        "Mbit/s per s",
        "Goodput over the mean RTT; of UDP, over the mean one-way delay.",
        "Giessler et al. 1978; Kleinrock 1979. Flows.",
        _power,
    ),
    "slowdown": Metric(
        "ratio",
        "The completion time over that of an empty path: half of the least RTT, and the flow's "
        "bytes at the rate of its bottleneck.",
        "Alizadeh et al. 2013 (pFabric) normalise completion times so. Flows.",
        _slowdown,
    ),
}
"""The metrics by name: the columns of `Results.metrics`."""


def completions(
    flows: pl.DataFrame, transfers: pl.LazyFrame, edges: Sequence[int], about: Sequence[str]
) -> pl.DataFrame:
    """Completion times by size class; see `Results.completions`."""
    if list(edges) != sorted(set(edges)) or any(edge <= 0 for edge in edges):
        raise ValueError("edges: sizes in bytes, each greater than the one before")
    rate = (pl.col("goodput_mbit_s") / pl.col("bottleneck_share")).alias("rate")
    path = flows.lazy().select(
        *ID, *about, "bottleneck", rate, pl.col("rtt_min_ms").alias("least_rtt_ms"), "is there",
        "measured_from_s", "measured_to_s",
    )  # fmt: skip
    shared = ["bytes", "completion_s", "outcome", "start_s"]
    whole = flows.lazy().filter(pl.col("transfers").fill_null(0) == 0, pl.col("is there"))
    parts = transfers.select(*ID, *shared)
    rows = pl.concat([whole.select(*ID, *shared), parts]).join(path, on=ID, maintain_order="left")
    rows = rows.filter(
        pl.col("start_s") >= pl.col("measured_from_s"),
        pl.col("start_s") < pl.col("measured_to_s"),
        ~pl.col("outcome").is_in(["running", "not started"]),
    )
    ideal_s = pl.col("least_rtt_ms") / 2000 + pl.col("bytes") * 8e-6 / pl.col("rate")
    names = [*(f"< {edge}" for edge in edges), f">= {edges[-1]}" if edges else "all"]
    place = pl.sum_horizontal(*(pl.col("bytes") >= edge for edge in edges)) if edges else pl.lit(0)
    is_done = pl.col("completion_s").is_not_null()
    rows = rows.with_columns(
        place.cast(pl.Int64).alias("place"), (pl.col("completion_s") / ideal_s).alias("slowdown")
    )
    kind = ["run", *about]
    found = rows.group_by(*kind, "place", maintain_order=True).agg(
        pl.len().alias("transfers"),
        (~is_done).sum().alias("unfinished"),
        *(
            quantity
            for name in ("completion_s", "slowdown")
            for quantity in (
                pl.col(name).mean().alias(_part(name, "mean")),
                *(
                    _percentile(name, share, pl.len()).alias(_part(name, f"p{share}"))
                    for share in (50, 95, 99)
                ),
            )
        ),
    )
    order = flows.lazy().select("run").unique(maintain_order=True).with_row_index("order of run")
    return (
        found.join(order, on="run", maintain_order="left")
        .sort("order of run", "place", maintain_order=True)
        .with_columns(pl.col("place").replace_strict(dict(enumerate(names))).alias("bytes"))
        .select(*kind, "bytes", pl.exclude([*kind, "bytes", "place", "order of run"]))
        .collect()
    )


def _percentile(name: str, share: int, count: pl.Expr) -> pl.Expr:
    """The nearest rank among this many transfers. Those without a value count as longest."""
    rank = (share * count.cast(pl.Int64) + 99) // 100
    values = pl.col(name).drop_nulls().sort()
    return pl.when(rank > 0).then(values.get((rank - 1).clip(0), null_on_oob=True))


def _part(name: str, part: str) -> str:
    """The column name of a statistic of another column: `completion_p50_s`."""
    stem, unit = (name[:-2], "_s") if name.endswith("_s") else (name, "")
    return f"{stem}_{part}{unit}"


def stalls(
    flows: pl.DataFrame, intervals: pl.LazyFrame, *, rate_mbit_s: float, start_s: float
) -> pl.DataFrame:
    """A player's stalls; see `Results.stalls`."""
    if rate_mbit_s <= 0 or start_s <= 0:
        raise ValueError("rate_mbit_s, start_s: both are greater than 0")
    found = []
    by_flow = (
        intervals.select(*ID, "start_s", "end_s", "bytes").collect().partition_by(ID, as_dict=True)
    )
    for run, flow, begins in flows.select(*ID, "start_s").iter_rows():
        rows = by_flow.get((run, flow))
        arrived = [] if rows is None else rows.select("start_s", "end_s", "bytes").rows()
        # With a measuring window, playing begins at its start.
        first = max([begins, *(start for start, _, _ in arrived[:1])])
        found.append((run, flow, *_played(arrived, first, rate_mbit_s * 1e6 / 8, start_s)))
    kinds: dict[str, Any] = {"startup_s": pl.Float64, "stalls": pl.Int64, "stalled_s": pl.Float64}
    schema = {"run": pl.String, "flow": pl.String, **kinds}
    return pl.DataFrame(found, schema=schema, orient="row")


def _played(
    arrived: Sequence[tuple[float, float, int]], begins: float, rate: float, start_s: float
) -> tuple[float | None, int | None, float | None]:
    """The startup time, the number of stalls and the time stalled. Bytes arrive evenly over each
    interval, and leave at the rate of the content once `start_s` seconds of it are buffered.
    """
    if not arrived:
        return None, None, None
    startup: float | None = None
    stops, stopped, buffered, is_playing = 0, 0.0, 0.0, False
    for start, end, count in arrived:
        time, incoming = start, count / (end - start)
        while time < end:
            if is_playing and buffered <= 0 and incoming < rate:
                is_playing, stops = False, stops + 1
            elif not is_playing and buffered >= start_s * rate:
                is_playing = True
                startup = time - begins if startup is None else startup
            speed = incoming - (rate if is_playing else 0.0)
            goal = 0.0 if is_playing else start_s * rate
            # Up to the end of the interval, or until the buffer is empty or full enough.
            goes_there = (speed < 0) if is_playing else (speed > 0)
            until = time + (goal - buffered) / speed if goes_there else end
            step = min(end, until) - time
            buffered = goal if goes_there and until <= end else buffered + speed * step
            stopped += step if not is_playing and startup is not None else 0.0
            time = min(end, until)
    return startup, stops, stopped
