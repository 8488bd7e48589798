"""Statistics agree with cases worked out by hand."""

from __future__ import annotations

import polars as pl
import pytest

from tcplab._results import flow_summary
from tcplab._statistics.estimates import covered, jain, percentile
from tcplab._statistics.thinning import thin


def of(values: list[float | None], expression: pl.Expr) -> float | None:
    result: float | None = pl.DataFrame({"x": values}).select(expression).item()
    return result


def test_jain_of_equal_and_of_unequal_shares() -> None:
    assert of([3.0, 3.0, 3.0], jain("x")) == pytest.approx(1.0)
    assert of([4.0, 0.0], jain("x")) == pytest.approx(0.5)
    assert of([0.0, 0.0], jain("x")) is None


def test_the_time_that_intervals_cover() -> None:
    # 0 to 2, with 1 to 3 inside and beside it, cover 3; 5 to 6 makes 4 in all, in any order.
    intervals = pl.DataFrame({"start": [5.0, 0.0, 1.0, 1.0], "end": [6.0, 2.0, 3.0, 1.5]})
    assert intervals.select(covered("start", "end")).item() == pytest.approx(4.0)


def test_percentiles_count_the_unfinished_as_longest() -> None:
    values = [float(value) for value in range(19, 0, -1)]
    # Of 20, the nearest ranks are 10, 19 and 20; the twentieth did not finish.
    one = pl.lit(1)
    assert of([*values, None], percentile("x", 0.5, one)) == 10.0
    assert of([*values, None], percentile("x", 0.95, one)) == 19.0
    assert of([*values, None], percentile("x", 0.99, one)) is None
    assert of([20.0, *values], percentile("x", 0.99, pl.lit(0))) == 20.0
    assert of([], percentile("x", 0.5, pl.lit(0)).cast(pl.Float64)) is None


def flows(**columns: list[object]) -> pl.DataFrame:
    """Rows of the table of flows of one run. Columns that are not given have the same value for
    all.
    """
    number = len(next(iter(columns.values())))
    usual: dict[str, object] = {
        "run": "r", "seed": 1, "repetition": 0, "flow": "f", "class": "c", "transport": "tcp",
        "cc": "cubic", "start_s": 0.0, "end_s": 10.0, "bytes": 0, "goodput_mbit_s": 1.0,
        "bottleneck": "a>b", "bottleneck_share": 0.1, "completion_s": None,
        "outcome": "running", "sent_segments": 10,
        "retransmitted_segments": 0, "rtt_mean_ms": 1.0, "rtt_min_ms": 1.0,
        "simulated_s": 10.0, "measured_from_s": 0.0, "measured_to_s": 10.0,
    }  # fmt: skip
    frame = pl.DataFrame({name: [value] * number for name, value in usual.items()} | columns)
    missing = [
        "lost_packets", "reordered_packets", "delay_mean_ms", "delay_p50_ms", "delay_p95_ms",
        "delay_p99_ms", "jitter_ms", "jitter_mean_ms", "ipdv_ms", "transfers",
        "completed_transfers", "completion_mean_s", "completion_p50_s", "completion_p95_s",
        "completion_p99_s",
    ]  # fmt: skip
    nothing = [
        pl.lit(None, dtype=pl.Float64).alias(name) for name in missing if name not in columns
    ]
    return frame.with_columns(pl.col("completion_s").cast(pl.Float64), *nothing)


def summary(flows: pl.DataFrame, transfers: pl.DataFrame | None = None, *, by: str) -> pl.DataFrame:
    """The summary of one variant."""
    if transfers is None:
        transfers = pl.DataFrame(schema={"run": pl.String, "flow": pl.String})
    return flow_summary.summary(flows, transfers.lazy(), variant=[], by=by)


def test_goodput_of_a_group_is_over_the_time_in_which_any_flow_ran() -> None:
    # 5 MB in the first 4 s, 5 MB from the fourth to the eighth: 80 Mbit in 8 s, not 10 + 10 Mbit/s.
    one_after_another = flows(
        start_s=[0.0, 4.0], end_s=[4.0, 8.0], bytes=[5_000_000] * 2, goodput_mbit_s=[10.0, 10.0]
    )
    row = summary(one_after_another, by="cc").row(0, named=True)
    assert row["goodput_all_mbit_s"] == pytest.approx(10.0)


def test_groups_are_of_the_time_that_is_measured() -> None:
    # From 2 to 6 s: 5 MB within all of it are 10 Mbit/s. The others ran before and after.
    part = {"measured_from_s": [2.0] * 3, "measured_to_s": [6.0] * 3}
    some = flows(
        start_s=[0.0, 0.0, 7.0],
        end_s=[10.0, 1.0, 10.0],
        bytes=[5_000_000, 0, 0],
        goodput_mbit_s=[10.0, None, None],
        **part,  # type: ignore[arg-type]
    )
    row = summary(some, by="cc").row(0, named=True)
    assert row["goodput_all_mbit_s"] == pytest.approx(10.0)
    assert (row["goodput_mbit_s"], row["jain_index"]) == (10.0, 1.0)


def test_jains_index_is_over_all_that_share_a_bottleneck() -> None:
    rates: list[object] = [18.0, 2.0, 5.0, 5.0]
    shared = flows(
        cc=["cubic", "vegas", "cubic", "cubic"],
        goodput_mbit_s=rates,
        bottleneck=["a>b", "a>b", "c>d", "c>d"],
    )
    rows = summary(shared, by="cc")
    # 20^2 / (2 * (18^2 + 2^2)) = 400 / 656 on one link, 1 on the other.
    assert rows["jain_index"].to_list() == pytest.approx([400 / 656] * 2)
    # A flow that never connected counts as zero; a flow that never began does not count.
    rates = [10.0, 10.0, None, None]
    outcomes: list[object] = ["running", "running", "timed out", "not started"]
    rows = summary(flows(goodput_mbit_s=rates, outcome=outcomes), by="cc")
    assert rows["jain_index"].to_list() == pytest.approx([20**2 / (3 * 200)])


def test_completion_percentiles_include_unfinished_transfers() -> None:
    times: list[object] = [1.0, 2.0, 3.0, None]
    outcomes: list[object] = ["completed", "completed", "completed", "unfinished"]
    row = summary(flows(completion_s=times, outcome=outcomes), by="cc").row(0, named=True)
    assert (row["unfinished"], row["completion_s"]) == (1, None)
    assert (row["completion_p50_s"], row["completion_p95_s"]) == (2.0, None)
    # Flows without a size do not count, nor do flows that had not begun.
    outcomes = ["completed", "completed", "completed", "not started"]
    row = summary(flows(completion_s=times, outcome=outcomes), by="cc").row(0, named=True)
    assert (row["unfinished"], row["completion_s"], row["completion_p99_s"]) == (0, 2.0, 3.0)
    row = summary(flows(outcome=["running", "running"]), by="cc").row(0, named=True)
    assert (row["unfinished"], row["completion_s"], row["completion_p50_s"]) == (0, None, None)


def test_a_share_of_zero_is_null() -> None:
    silent = flows(sent_segments=[0, 0], goodput_mbit_s=[None, None], outcome=["unfinished"] * 2)
    for by in ("flow", "cc"):
        row = summary(silent.with_columns(pl.col("goodput_mbit_s").cast(pl.Float64)), by=by).row(
            0, named=True
        )
        assert row["retransmitted_share"] is None


def test_thinned_lines_keep_their_peaks() -> None:
    heights = [float(x % 7) for x in range(10_000)]
    heights[1234], heights[4321] = 100.0, -100.0
    points = pl.DataFrame({"flow": "a", "time_s": range(10_000), "cwnd": heights})
    thinned = thin(points, by="flow", y="cwnd", most=200)
    assert len(thinned) <= 200
    assert {100.0, -100.0} <= set(thinned["cwnd"])
    assert thinned["time_s"].is_sorted()
    assert thin(points.head(150), by="flow", y="cwnd", most=200).equals(points.head(150))


def test_transfers_take_the_place_of_their_flow_in_groups() -> None:
    page = flows(
        flow=["page"], transfers=[3], bytes=[3000], bottleneck_share=[0.5], outcome=["unfinished"]
    )
    parts = pl.DataFrame(
        {
            "run": "r", "flow": "page", "transfer": [1, 2, 3], "class": ["s", "l", "s"],
            "connection": [1, 1, 1], "start_s": [0.0, 1.0, 2.0], "end_s": [1.0, 2.0, 10.0],
            "bytes": [1000, 2000, 0], "goodput_mbit_s": [0.008, 0.016, 0.0],
            "completion_s": [1.0, 1.0, None], "outcome": ["completed", "completed", "unfinished"],
            "sent_segments": [1, 2, 1], "retransmitted_segments": [0, 1, 0], "timeouts": [0, 0, 0],
            "loss_episodes": [0, 0, 0], "rtt_min_ms": [1.0, 2.0, None],
            "rtt_mean_ms": [1.0, 2.0, None], "rtt_max_ms": [1.0, 2.0, None],
        }
    )  # fmt: skip
    small, large = summary(page, parts, by="class").sort("class", descending=True).rows(named=True)
    assert (small["flows"], small["unfinished"], large["unfinished"]) == (2, 1, 0)
    assert (small["completion_p50_s"], small["completion_p95_s"]) == (1.0, None)
    assert large["retransmitted_share"] == 0.5
    # The flow has half of its bottleneck at 1 Mbit/s, so the bottleneck has 2 Mbit/s.
    assert large["bottleneck_share"] == pytest.approx(0.016 / 2)


def test_rows_of_a_variant_stand_together_in_the_order_of_their_classes() -> None:
    swept = flows(
        queue=["short", "short", "long", "long"],
        run=["r", "r", "s", "s"],
        flow=["page", "down", "page", "down"],
        transfers=[1, None, 1, None],
        **{"class": ["page", "down", "page", "down"]},
    )
    parts = pl.DataFrame(
        {
            "run": ["s", "r"], "flow": "page", "transfer": [1, 1], "class": "page",
            "connection": [1, 1], "start_s": 0.0, "end_s": 1.0, "bytes": [1000, 1000],
            "goodput_mbit_s": 1.0, "completion_s": 1.0, "outcome": "completed",
            "sent_segments": [1, 1], "retransmitted_segments": [0, 0], "timeouts": [0, 0],
            "loss_episodes": [0, 0], "rtt_min_ms": 1.0,
            "rtt_mean_ms": 1.0, "rtt_max_ms": 1.0,
        }
    )  # fmt: skip
    rows = flow_summary.summary(swept, parts.lazy(), variant=["queue"], by="class")
    assert rows.select("queue", "class").rows() == [
        ("short", "page"),
        ("short", "down"),
        ("long", "page"),
        ("long", "down"),
    ]


def test_transfers_of_a_group_began_while_it_was_measured() -> None:
    page = flows(flow=["page"], transfers=[1], measured_from_s=[1.0], measured_to_s=[2.0])
    parts = pl.DataFrame(
        {
            "run": "r", "flow": "page", "transfer": [1, 2, 3], "class": "s", "connection": [1] * 3,
            "start_s": [0.0, 1.0, 2.0], "end_s": [1.5, 4.0, 3.0], "bytes": [1000] * 3,
            "goodput_mbit_s": 1.0, "completion_s": [1.5, 3.0, 1.0], "outcome": "completed",
            "sent_segments": [1] * 3, "retransmitted_segments": [0] * 3, "timeouts": [0] * 3,
            "loss_episodes": [0] * 3, "rtt_min_ms": 1.0, "rtt_mean_ms": 1.0, "rtt_max_ms": 1.0,
        }
    )  # fmt: skip
    row = summary(page, parts, by="class").row(0, named=True)
    assert (row["flows"], row["completion_s"]) == (1, 3.0)


def test_datagrams_that_are_lost_are_a_share_of_those_sent() -> None:
    mixed = flows(
        transport=["udp", "udp", "tcp"],
        cc=[None, None, "cubic"],
        lost_packets=[1, 2, None],
        sent_segments=[10, 30, 10],
        delay_mean_ms=[20.0, 30.0, None],
    )
    rows = {row["transport"]: row for row in summary(mixed, by="cc").rows(named=True)}
    assert rows["udp"]["lost_share"] == pytest.approx(3 / 40)
    assert rows["udp"]["delay_mean_ms"] == 25.0
    assert (rows["tcp"]["lost_packets"], rows["tcp"]["lost_share"]) == (None, None)
