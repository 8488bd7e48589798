"""Metrics agree with arithmetic, and with other columns of the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab as lab
from tcplab._results.flow_summary import with_times
from tcplab._results.metrics import METRICS, Tables, _played, measured

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def flows(**columns: list[Any]) -> pl.DataFrame:
    """Flows of one run over one bottleneck of 10 Mbit/s, from 0 to 10 s."""
    number = len(next(iter(columns.values())))
    usual: dict[str, Any] = {
        "run": "r", "bottleneck": "a>b", "start_s": 0.0, "end_s": 10.0, "bytes": 1,
        "outcome": "running", "goodput_mbit_s": 5.0, "bottleneck_share": 0.5,
        "completion_s": None, "rtt_min_ms": 20.0, "rtt_mean_ms": 40.0, "delay_mean_ms": None,
        "measured_from_s": 0.0, "measured_to_s": 10.0,
    }  # fmt: skip
    names = {"flow": [chr(ord("a") + place) for place in range(number)]}
    frame = pl.DataFrame(
        {name: [value] * number for name, value in usual.items()} | names | columns
    )
    return with_times(frame.with_columns(pl.col("completion_s", "delay_mean_ms").cast(pl.Float64)))


NO_INTERVALS = pl.DataFrame(
    schema={
        "run": pl.String, "flow": pl.String, "start_s": pl.Float64, "end_s": pl.Float64,
        "goodput_mbit_s": pl.Float64,
    }
)  # fmt: skip

NO_LINKS = pl.DataFrame(
    schema={
        "run": pl.String, "link": pl.String, "time_s": pl.Float64, "sent_bytes": pl.Int64,
        "queue_mean_bytes": pl.Float64, "utilisation": pl.Float64, "measured_from_s": pl.Float64,
        "measured_to_s": pl.Float64,
    }
)  # fmt: skip


def of(
    frame: pl.DataFrame,
    *names: str,
    intervals: pl.DataFrame = NO_INTERVALS,
    links: pl.DataFrame = NO_LINKS,
) -> list[dict[str, Any]]:
    tables = Tables(frame.lazy(), intervals.lazy(), links.lazy())
    return measured(tables, names).to_dicts()


def test_shares_of_a_bottleneck() -> None:
    # 6, 3 and 0 Mbit/s have a mean of 3. The fourth flow has another bottleneck, the last never
    # began.
    rows = of(
        flows(
            goodput_mbit_s=[6.0, 3.0, None, 8.0, None],
            bottleneck=["a>b", "a>b", "a>b", "c>d", "a>b"],
            outcome=["running", "running", "timed out", "running", "not started"],
        ),
        "max_min_share",
        "equal_shares",
    )
    assert [row["max_min_share"] for row in rows] == [0.0, 0.0, 0.0, 1.0, None]
    assert [row["equal_shares"] for row in rows] == [2.0, 1.0, 0.0, 1.0, None]
    (first, second) = of(flows(goodput_mbit_s=[6.0, 3.0]), "max_min_share")
    assert first["max_min_share"] == second["max_min_share"] == 0.5


def test_power_is_goodput_over_delay() -> None:
    # 5 Mbit/s in 40 ms, and a UDP flow with a delay of 10 ms.
    rows = of(flows(rtt_mean_ms=[40.0, None], delay_mean_ms=[None, 10.0]), "power")
    assert [row["power"] for row in rows] == pytest.approx([125.0, 500.0])


def test_slowdown_is_to_an_empty_path() -> None:
    # 1.25 MB at 10 Mbit/s take 1 s, plus half of 20 ms: 2.02 s are twice as long.
    rows = of(flows(bytes=[1_250_000, 1], completion_s=[2.02, None]), "slowdown")
    assert [row["slowdown"] for row in rows] == pytest.approx([2.0, None])


def by_second(**rates: list[float]) -> pl.DataFrame:
    parts = [
        pl.DataFrame(
            {
                "run": "r", "flow": flow, "start_s": [float(k) for k in range(len(values))],
                "end_s": [k + 1.0 for k in range(len(values))],
                "goodput_mbit_s": list(map(float, values)),
            }
        )
        for flow, values in rates.items()
    ]  # fmt: skip
    return pl.concat(parts)


def test_variation_is_of_the_seconds_in_which_a_flow_ran() -> None:
    # 4, 6, 4, 6: a mean of 5 and s^2 = 4/3. The flow ends in the fifth second.
    rows = of(
        flows(end_s=[4.5, 10.0]), "variation", intervals=by_second(a=[4, 6, 4, 6, 1], b=[3, 3, 3])
    )
    assert [row["variation"] for row in rows] == pytest.approx([(4 / 3) ** 0.5 / 5, 0.0])


def test_convergence_is_the_first_long_stretch_at_the_equal_share() -> None:
    # Together 10 Mbit/s: 20 % around the mean of 5 are 4 to 6. Two seconds at 4.5 are too short;
    # from the fourth second on the flow stays within for six, until the tenth.
    one = [9, 4.5, 5.5, 8, 6, 5, 4, 5, 5.5, 4.5, 9, 9]
    both = by_second(a=one, b=[10 - value for value in one])
    rows = of(flows(end_s=[12.0, 12.0]), "convergence_s", intervals=both)
    assert [row["convergence_s"] for row in rows] == [4.0, 4.0]
    late = flows(start_s=[1.0, 0.0], end_s=[12.0, 12.0])
    rows = of(late, "convergence_s", intervals=both)
    # The flow that began a second later took a second less.
    assert [row["convergence_s"] for row in rows] == [3.0, 4.0]
    rows = of(flows(end_s=[5.0, 5.0]), "convergence_s", intervals=both)
    assert [row["convergence_s"] for row in rows] == [None, None]


def test_a_warm_up_ends_where_goodput_is_steady() -> None:
    # Ten seconds of growth, then 10 and 9 in turn: the cut is between batches of five seconds.
    growing = [float(k) for k in range(10)] + [10.0, 9.0] * 20
    rows = of(
        flows(end_s=[50.0, 9.0], measured_to_s=[50.0, 50.0]),
        "warm_up_s",
        intervals=by_second(a=growing, b=growing[:9]),
    )
    assert [row["warm_up_s"] for row in rows] == [10.0, None]


def test_queue_delay_is_backlog_over_departure_rate() -> None:
    # 12.5 kB wait and 125 kB leave in 0.1 s: 10 ms. Then nothing waits while 250 kB leave, and then
    # 50 kB wait while nothing leaves, which counts as no delay: on average 10 * 125 / 375 ms.
    links = pl.DataFrame(
        {
            "run": "r", "link": "a>b", "time_s": [0.1, 0.2, 0.3],
            "sent_bytes": [125_000, 375_000, 375_000],
            "queue_mean_bytes": [12_500.0, 0.0, 50_000.0],
            "utilisation": [1.0, 0.5, 0.0], "measured_from_s": 0.0, "measured_to_s": 10.0,
        }
    )  # fmt: skip
    names = [name for name in METRICS if name.startswith(("queue", "bottleneck"))]
    (row,) = of(flows(bytes=[1]), *names, links=links)
    assert row["queue_delay_mean_ms"] == pytest.approx(10 * 125 / 375)
    assert (row["queue_delay_p50_ms"], row["queue_delay_p99_ms"]) == (0.0, pytest.approx(10.0))
    assert row["bottleneck_utilisation"] == pytest.approx(0.5)
    (row,) = of(flows(bytes=[1], measured_from_s=[0.1]), *names, links=links.with_columns(
        measured_from_s=0.1
    ))  # fmt: skip
    assert row["queue_delay_mean_ms"] == 0.0


def test_a_player_stalls_while_too_little_arrives() -> None:
    # Content of 1 kB/s, which plays when 2 s of it are buffered. 2 kB arrive in the first second:
    # playing begins at 1 s. Then at 0.5 kB/s, 2 kB last for 4 s. From 5 s on the player waits for 2
    # kB, until 9 s; then data arrives at 4 kB/s.
    seconds = [2000, *([500] * 8), 4000]
    arrived = [(float(k), k + 1.0, count) for k, count in enumerate(seconds)]
    assert _played(arrived, 0.0, 1000.0, 2.0) == pytest.approx((1.0, 1, 4.0))
    # At exactly the content's rate there is no stall; without data there is no start.
    assert _played([(0.0, 9.0, 9000)], 0.0, 1000.0, 2.0) == pytest.approx((2.0, 0, 0.0))
    assert _played([(0.0, 9.0, 0)], 0.0, 1000.0, 2.0) == (None, 0, 0.0)
    assert _played([], 0.0, 1000.0, 2.0) == (None, None, None)


@pytest.fixture(scope="module")
def results() -> lab.Results:
    return lab.run(EXAMPLES / "measure.toml")


def test_metrics_of_an_example_agree_with_its_tables(results: lab.Results) -> None:
    rows = results.metrics()
    assert list(rows.columns[-len(METRICS) :]) == list(METRICS)
    first = rows.row(0, named=True)
    # The excess of an RTT over the least one, before the queue filled, is queueing.
    least = results.samples.filter(pl.col("cubic_delay_min_ms") > 0)["cubic_delay_min_ms"].min()
    waited = results.flows["rtt_mean_ms"][0] - least
    assert first["queue_delay_mean_ms"] == pytest.approx(waited, rel=0.02)
    rates = results.flows["goodput_mbit_s"]
    assert first["max_min_share"] == rates.min() / rates.max()
    links = results.links.filter(pl.col("link") == "left>right", pl.col("time_s") > 20.05)
    assert first["bottleneck_utilisation"] == pytest.approx(links["utilisation"].mean())
    by_second = results.intervals.filter(pl.col("flow") == "first")["goodput_mbit_s"]
    assert first["variation"] == pytest.approx(by_second.std() / by_second.mean())
    summary = results.summary(metrics=["power"])
    assert summary["power"].to_list() == rows["power"].to_list()
    by_class = results.summary(by="class", metrics=["power"])
    assert by_class["power"].to_list() == rows["power"].to_list()
    with pytest.raises(ValueError, match="there is no 'speed'; there are bottleneck_utilisation"):
        results.metrics("speed")


def test_stalls_of_an_example(results: lab.Results) -> None:
    easy = results.stalls(rate_mbit_s=1.0)
    assert easy["stalls"].to_list() == [0, 0]
    hard = results.stalls(rate_mbit_s=20.0)
    assert all(stalled > 10 for stalled in hard["stalled_s"])
    with pytest.raises(ValueError, match="greater than 0"):
        results.stalls(rate_mbit_s=0.0)


def test_completions_by_size_count_every_transfer() -> None:
    results = lab.run(EXAMPLES / "load.toml")
    transfers = results.transfers
    sizes = results.completions(10_000, 100_000)
    assert sizes["bytes"].to_list() == ["< 10000", "< 100000", ">= 100000"]
    for row, (least, most) in zip(
        sizes.rows(named=True), ((0, 9_999), (10_000, 99_999), (100_000, 10**12)), strict=True
    ):
        some = transfers.filter(pl.col("bytes").is_between(least, most))
        done = some["completion_s"].drop_nulls().sort()
        assert row["transfers"] == len(some)
        assert row["unfinished"] == len(some) - len(done)
        assert row["completion_mean_s"] == pytest.approx(done.mean())
        # The nearest rank of all transfers, of which the last did not complete.
        assert row["completion_p95_s"] == done[-(-95 * len(some) // 100) - 1]
        assert row["slowdown_p50"] >= 1
    assert results.completions()["transfers"].to_list() == [len(transfers)]
    with pytest.raises(ValueError, match="edges"):
        results.completions(5, 5)


def test_harm_is_what_others_take_of_a_flow_alone() -> None:
    link = {"dumbbell": {"pairs": 2, "rate": "10 Mbit/s", "delay": "10 ms"}}
    alone = {"name": "alone", "from": "left1", "to": "right1"}
    other = {"name": "other", "from": "left2", "to": "right2"}
    results = lab.run(
        {
            "duration": "5 s",
            "network": link,
            "flows": [alone],
            "variants": {"solo": {}, "shared": {"flows": [alone, other]}},
        }
    )
    rows = results.versus({"variant": "solo"}, metrics=["goodput_mbit_s", "rtt_mean_ms"])
    assert rows.select("variant", "flow").rows() == [("shared", "alone")] * 2
    summary = results.summary().filter(pl.col("flow") == "alone")
    (solo, shared), (low, high) = (
        summary[name].to_list() for name in ("goodput_mbit_s", "rtt_mean_ms")
    )
    goodput, rtt = rows["harm"].to_list()
    assert goodput == pytest.approx((solo - shared) / solo)
    # For times, less is better: the harm is a share of the speed.
    assert rtt == pytest.approx((high - low) / high)
    assert rows["said"][0].startswith("cannot be told from one pair; lower by")


def test_metrics_without_records_are_null() -> None:
    results = lab.run(
        {
            "duration": "1 s",
            "network": {"chain": {"rate": "10 Mbit/s", "delay": "1 ms", "queue": "20 packets"}},
            "flows": [{"from": "client", "to": "server"}],
            "record": {"links": "off", "samples": "off"},
        }
    )
    row = results.metrics().row(0, named=True)
    assert row["variation"] is row["convergence_s"] is row["queue_delay_mean_ms"] is None
    assert row["power"] > 0
    assert results.stalls(rate_mbit_s=1.0)["stalls"].to_list() == [None]


def test_metrics_are_equal_each_time_to_the_last_digit() -> None:
    results = lab.run(
        lab.Experiment(
            duration="2 s",
            repeat=12,
            network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms", queue="1 BDP")),
            flows=[lab.Flow(from_="client", to="server", start_jitter="100 ms")],
            sweep={"flows[0].cc": ["cubic", "newreno", "bbr"]},
        )
    )
    # Threads that add parts in any order gave another digit in one call of thirty.
    found = {tuple(results.metrics("queue_delay_mean_ms").to_series(-1)) for _ in range(200)}
    assert len(found) == 1
