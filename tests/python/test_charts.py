"""Charts draw what the tables have, computed here independently."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab as lab
from tcplab._statistics.thinning import thin
from tcplab.plot._style import LINE, spread

Spec = dict[str, Any]
Rows = list[dict[str, Any]]


def layers(chart: Any) -> list[tuple[str, Rows]]:
    """For each layer of a chart, the kind of mark and the data."""
    spec = chart.to_dict()
    found: list[tuple[str, Rows]] = []

    def walk(part: Spec, above: Spec) -> None:
        data = part.get("data", above)
        inner = [one for key in ("layer", "vconcat", "concat") for one in part.get(key, [])]
        for one in inner:
            walk(one, data)
        if not inner:
            rows = spec["datasets"][data["name"]] if "name" in data else data["values"]
            found.append((part["mark"]["type"], rows))

    walk(spec, spec.get("data", {}))
    return found


def of_mark(chart: Any, mark: str) -> list[Rows]:
    """The data of the layers with a mark."""
    return [rows for kind, rows in layers(chart) if kind == mark]


def two_senders(**settings: Any) -> lab.Experiment:
    """CUBIC and BBR at one bottleneck."""
    pair = lab.Dumbbell(pairs=2, rate="20 Mbit/s", delay="15 ms", queue="1 BDP")
    flows = [
        lab.Flow(name="one", from_="left1", to="right1", cc="cubic", start_jitter="300 ms"),
        lab.Flow(name="two", from_="left2", to="right2", cc="bbr", start_jitter="300 ms"),
    ]
    plain = lab.Experiment(
        name="pair", duration="4 s", network=lab.Network(dumbbell=pair), flows=flows
    )
    return plain.replace(**settings)


@pytest.fixture(scope="module")
def pair() -> lab.Results:
    return lab.run(two_senders())


@pytest.fixture(scope="module")
def sweep() -> lab.Results:
    """Two algorithms, three queues, four seeds."""
    queues = ["0.25 BDP", "1 BDP", "2 BDP"]
    swept = {"flows[0].cc": ["newreno", "vegas"], "network.dumbbell.queue": queues}
    experiment = two_senders(repeat=4, sweep=swept)
    return lab.run(experiment.replace(flows=experiment.flows[:1]))


@pytest.fixture(scope="module")
def files() -> lab.Results:
    """Files of 100 kB that arrive at random, with two algorithms."""
    arrivals = lab.ArrivalsTraffic(per_second=7, sizes="100 kB")
    flow = lab.Flow(name="files", from_="left1", to="right1", traffic=arrivals)
    return lab.run(two_senders(flows=[flow], repeat=2, sweep={"flows[0].cc": ["cubic", "bbr"]}))


def test_windows_and_thresholds_are_those_of_the_samples(pair: lab.Results) -> None:
    lines, thresholds = of_mark(lab.plot.cwnd(pair), "line")
    for flow, label in (("one", "one (cubic)"), ("two", "two (bbr)")):
        own = pair.samples.filter(pl.col("flow") == flow)
        drawn = [(row["time_s"], row["cwnd_segments"]) for row in lines if row["label"] == label]
        assert drawn == own.select("time_s", "cwnd_segments").rows()
        known = own.drop_nulls("ssthresh_segments").select("time_s", "ssthresh_segments")
        drawn = [(row["time_s"], row["value"]) for row in thresholds if row["label"] == label]
        assert drawn == known.rows()
    assert thresholds


def test_the_rtt_chart_shows_the_minimum(pair: lab.Results) -> None:
    chart = lab.plot.rtt(pair)
    (lines,) = of_mark(chart, "line")
    own = pair.samples.drop_nulls("srtt_ms")
    assert sorted(row["srtt_ms"] for row in lines) == sorted(own["srtt_ms"])
    levels = next(rows for rows in of_mark(chart, "rule") if rows and "value" in rows[0])
    least = {row["label"]: row["value"] for row in levels}
    flows = dict(pair.flows.select("flow", "rtt_min_ms").iter_rows())
    assert least == {"one (cubic)": flows["one"], "two (bbr)": flows["two"]}


def test_rates_add_up_to_what_was_acknowledged(pair: lab.Results) -> None:
    (lines,) = of_mark(lab.plot.rate(pair), "line")
    acked = dict(pair.samples.group_by("flow").agg(pl.col("acked_bytes").max()).iter_rows())
    for flow, label in (("one", "one (cubic)"), ("two", "two (bbr)")):
        own = [row for row in lines if row["label"] == label]
        width = own[1]["time_s"] - own[0]["time_s"]
        # Samples are 0.1 s apart, and two of them make one rate.
        assert width == pytest.approx(0.2)
        bytes_ = sum(row["rate_mbit_s"] * width for row in own) * 1e6 / 8
        assert bytes_ == pytest.approx(acked[flow])
    (level,) = [rows for rows in of_mark(lab.plot.rate(pair), "rule") if "about" in rows[0]]
    assert level[0]["value"] == pytest.approx(20)


def test_queues_are_bytes_over_the_rate_of_the_link(pair: lab.Results) -> None:
    chart = lab.plot.queue_delay(pair)
    (lines,) = of_mark(chart, "line")
    (bands,) = of_mark(chart, "area")
    link = pair.links.filter(pl.col("link") == "left>right")
    # 20 Mbit/s are 2.5 bytes per microsecond, 2500 per millisecond.
    assert [row["queue_ms"] for row in lines] == pytest.approx(
        (link["queue_mean_bytes"] / 2500).to_list()
    )
    assert [row["high"] for row in bands] == pytest.approx(
        (link["queue_max_bytes"] / 2500).to_list()
    )
    # A BDP of 30 ms at 20 Mbit/s is 75 kB: 50 packets of 1500 bytes, or 30 ms.
    full = next(rows for rows in of_mark(chart, "rule") if "about" in rows[0])
    bdp_packets = pair.links["queue_max_packets"].max()
    assert full[0]["value"] == pytest.approx(bdp_packets * 1500 / 2500)


def test_each_drop_is_counted_in_its_part_of_the_run(pair: lab.Results) -> None:
    bars = [row for rows in of_mark(lab.plot.drops(pair), "bar") for row in rows]
    assert sum(row["packets"] for row in bars) == len(pair.drops) > 0
    for row in bars:
        within = pair.drops.filter(
            pl.col("time_s") >= row["start_s"], pl.col("time_s") < row["end_s"]
        )
        assert row["packets"] == len(within)
        assert row["what"] == "queue full"


def test_marks_are_counted_like_drops() -> None:
    queue = lab.CodelQueue(ecn=True)
    network = lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="10 ms", queue=queue))
    flow = lab.Flow(from_="client", to="server", stack={"ecn": True})
    results = lab.run(lab.Experiment(duration="5 s", network=network, flows=[flow]))
    marked = results.links.group_by("link").agg(pl.col("marked_packets").max())
    bars = [row for rows in of_mark(lab.plot.drops(results), "bar") for row in rows]
    drawn = sum(row["packets"] for row in bars if row["what"] == "marked")
    assert drawn == marked["marked_packets"].sum() > 0


def test_without_drops_the_chart_says_so() -> None:
    network = lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms"))
    flow = lab.Flow(from_="client", to="server", traffic={"kind": "bulk", "size": "5 kB"})
    results = lab.run(lab.Experiment(duration="1 s", network=network, flows=[flow]))
    (said,) = of_mark(lab.plot.drops(results), "text")
    assert said == [{"why": "No packet was dropped, lost or marked in this run."}]


def with_packets(**settings: Any) -> lab.Results:
    """A transfer that loses its 30th packet of data, with all packets recorded."""
    loss = lab.ListedLoss(packets=[32])
    chain = lab.Chain(rate="10 Mbit/s", delay="10 ms", queue="100 packets", loss=loss)
    flow = lab.Flow(from_="client", to="server", traffic={"kind": "bulk", "size": "150 kB"})
    record = lab.Record(packets=["client>server", "server>client"])
    plain = lab.Experiment(
        duration="2 s", network=lab.Network(chain=chain), flows=[flow], record=record
    )
    return lab.run(plain.replace(**settings))


def test_the_sequence_chart_marks_retransmissions() -> None:
    results = with_packets()
    chart = lab.plot.sequence(results)
    (points,) = of_mark(chart, "point")
    (line,) = of_mark(chart, "line")
    data = results.packets.filter(
        pl.col("payload_bytes") > 0, pl.col("point") == "enter", pl.col("link") == "client>server"
    )
    kinds = pl.DataFrame(points).group_by("kind").len()
    count = dict(kinds.iter_rows())
    again = results.flows["retransmitted_segments"][0]
    assert again >= 1
    assert count["sent again"] == again
    assert count["sent"] + again == len(data)
    (lost,) = [row for row in points if row["kind"] == "dropped"]
    sent_again = [row for row in points if row["kind"] == "sent again"]
    assert sent_again[0]["first"] == lost["first"]
    # Everything that arrives before the retransmission is behind a gap.
    early = [row for row in points if row["kind"] == "arrived out of order (SACK)"]
    assert early
    assert min(row["first"] for row in early) == lost["last"]
    # Everything is acknowledged in the end.
    assert line[-1]["bytes"] == 150_000
    assert [row["bytes"] for row in line] == sorted(row["bytes"] for row in line)


def test_sequence_numbers_wrap_around() -> None:
    from tcplab.plot._sequence import _acknowledged, _points  # noqa: PLC0415

    first = 2**32 - 1500
    packets = pl.DataFrame(
        {
            "time_s": [0.0, 0.1, 0.2, 0.3],
            "point": ["enter"] * 4,
            "seq": [first, first + 1000, 500, first + 1000],
            "payload_bytes": [1000] * 4,
        }
    ).with_columns(pl.col("seq") % 2**32)
    points, start = _points(packets)
    assert start == first
    assert points.select("kind", "first", "last").rows() == [
        ("sent", 0, 1000),
        ("sent", 1000, 2000),
        ("sent", 2000, 3000),
        ("sent again", 1000, 2000),
    ]
    acks = pl.DataFrame({"time_s": [0.2, 0.3, 0.4], "ack": [first + 1000, 1500, 500]})
    reached = _acknowledged(acks, start)
    assert reached["bytes"].to_list() == [0, 1000, 3000]


def test_a_part_of_a_sequence_has_only_that_part() -> None:
    (points,) = of_mark(lab.plot.sequence(with_packets(), from_s=0.05, to_s=0.08), "point")
    times = [row["time_s"] for row in points]
    assert min(times) >= 0.05
    assert max(times) <= 0.08


def test_sequences_that_cannot_be_drawn_say_what_to_record(pair: lab.Results) -> None:
    with pytest.raises(ValueError, match=r'record = \{packets = \["left1>\.\.\."'):
        lab.plot.sequence(pair)
    with pytest.raises(ValueError, match="no flow is called 'x'; there are one, two"):
        lab.plot.sequence(pair, flow="x")
    with pytest.raises(ValueError, match=r"from_s: 5 s is not before 2 s"):
        lab.plot.sequence(with_packets(), from_s=5.0)


def test_internals_are_the_columns_of_the_congestion_controls(pair: lab.Results) -> None:
    chart = lab.plot.internals(pair)
    titles = [part["layer"][0]["encoding"]["y"]["title"] for part in chart.to_dict()["vconcat"]]
    own = [name for name in pair.samples.columns if re.match("(cubic|bbr)_", name)]
    there = [name for name in own if pair.samples[name].count()]
    assert titles == ["cwnd segments", *(name.replace("_", " ") for name in there[:8])]


class Ten:
    """A window of ten segments, without further state."""

    def __init__(self, init: lab.cc.Init) -> None:
        pass

    def on_ack(self, flow: lab.cc.FlowState, ack: lab.cc.Ack) -> None:
        pass

    def on_congestion(self, flow: lab.cc.FlowState, event: lab.cc.Congestion) -> None:
        pass

    def control(self) -> lab.cc.Control:
        return lab.cc.Control(10)


def test_without_internals_the_chart_says_so() -> None:
    lab.cc.register("ten", Ten)
    plain = two_senders(duration="500 ms")
    results = lab.run(plain.replace(flows=[plain.flows[0].replace(cc="ten")]))
    with pytest.raises(ValueError, match="the samples of ten have no columns of their own"):
        lab.plot.internals(results)


def test_bars_are_the_means_of_the_summary_with_their_intervals() -> None:
    results = lab.run(two_senders(repeat=10, sweep={"flows[0].cc": ["cubic", "vegas"]}))
    chart = lab.plot.compare(results)
    summary = results.summary()
    for flow, bars in zip(("one", "two"), of_mark(chart, "bar"), strict=True):
        own = summary.filter(pl.col("flow") == flow)
        assert [row["variant"] for row in bars] == own["flows[0].cc"].to_list()
        for key, column in (("value", ""), ("low", "_low"), ("high", "_high")):
            drawn = [row[key] for row in bars]
            assert drawn == own[f"goodput_mbit_s{column}"].to_list()
        rates = results.joined("flows").filter(pl.col("flow") == flow)
        means = rates.group_by("flows[0].cc", maintain_order=True).agg(pl.mean("goodput_mbit_s"))
        assert [row["value"] for row in bars] == pytest.approx(means["goodput_mbit_s"].to_list())


def test_lines_run_along_a_swept_number(sweep: lab.Results) -> None:
    chart = lab.plot.compare(sweep, "rtt_mean_ms")
    lines = of_mark(chart, "line")[0]
    means = sweep.joined("flows").group_by("flows[0].cc", "network.dumbbell.queue").agg(
        pl.col("rtt_mean_ms").mean()
    )  # fmt: skip
    wanted = {(cc, float(queue.removesuffix(" BDP"))): rtt for cc, queue, rtt in means.iter_rows()}
    drawn = {(row["variant"], row["x"]): row["value"] for row in lines}
    assert drawn == pytest.approx(wanted)
    spec = chart.to_dict()["concat"][0]["layer"][1]
    assert spec["encoding"]["x"]["title"] == "queue (BDP)"
    assert spec["encoding"]["y"]["title"] == "Mean RTT (ms)"


def test_a_second_swept_key_makes_panels() -> None:
    swept = {
        "network.dumbbell.queue": ["0.5 BDP", "1 BDP", "2 BDP"],
        "network.dumbbell.rate": ["5 Mbit/s", "20 Mbit/s"],
        "flows[0].cc": ["cubic", "vegas"],
    }
    results = lab.run(two_senders(duration="1 s", sweep=swept))
    one = results.scan("runs").collect()
    assert len(one) == 12
    panels = lab.plot.compare(results, by="cc").to_dict()["concat"]
    titles = {panel["title"]["text"].split(", ")[-1] for panel in panels}
    assert titles == {"rate = 5 Mbit/s", "rate = 20 Mbit/s"}


def test_a_single_swept_key_shows_flows_in_one_panel() -> None:
    swept = {"network.dumbbell.queue": ["0.5 BDP", "1 BDP", "2 BDP"]}
    results = lab.run(two_senders(duration="1 s", sweep=swept))
    chart = lab.plot.compare(results)
    assert len(chart.to_dict()["concat"]) == 1
    drawn = {(row["variant"], row["x"]): row["value"] for row in of_mark(chart, "line")[0]}
    flows = results.joined("flows").select("flow", "network.dumbbell.queue", "goodput_mbit_s")
    assert drawn == {
        (flow, float(queue.removesuffix(" BDP"))): rate for flow, queue, rate in flows.iter_rows()
    }


def test_a_ranking_has_the_best_first(sweep: lab.Results) -> None:
    chart = lab.plot.ranking(sweep, "rtt_mean_ms")
    for rows in of_mark(chart, "point"):
        values = [row["value"] for row in rows]
        # For delay, less is better.
        assert values == sorted(values)
    best = lab.plot.ranking(sweep, "goodput_mbit_s")
    for rows in of_mark(best, "point"):
        values = [row["value"] for row in rows]
        assert values == sorted(values, reverse=True)


def test_shares_of_transfers_that_completed_are_drawn(files: lab.Results) -> None:
    (line,) = of_mark(lab.plot.cdf(files), "line")
    rows = files.joined("transfers")
    for cc in ("cubic", "bbr"):
        own = rows.filter(pl.col("flows[0].cc") == cc)
        done = own["completion_s"].drop_nulls().sort()
        drawn = [(row["value"], row["share"]) for row in line if row["label"] == cc]
        assert drawn[0] == (done[0], 0)
        shares = [100 * (place + 1) / len(own) for place in range(len(done))]
        assert [value for value, _ in drawn[1:]] == done.to_list()
        assert [share for _, share in drawn[1:]] == pytest.approx(shares)


def test_rtt_samples_and_metrics_have_distributions_too(sweep: lab.Results) -> None:
    one = sweep[0]
    (line,) = of_mark(lab.plot.cdf(one, "srtt_ms"), "line")
    values = one.samples["srtt_ms"].drop_nulls()
    assert [row["value"] for row in line[1:]] == values.sort().to_list()
    panels = of_mark(lab.plot.cdf(sweep, "goodput_mbit_s"), "line")
    flows = sweep.flows["goodput_mbit_s"].sort().to_list()
    assert sorted(row["value"] for rows in panels for row in rows if row["share"]) == flows


def test_thinned_distributions_keep_both_ends() -> None:
    from tcplab.plot._distributions import MOST_STEPS, steps  # noqa: PLC0415

    rows = pl.DataFrame({"variant": ["x"] * 123_457, "value": pl.Series(range(123_457)) * 1.0})
    thinned = steps(rows.sample(fraction=1.0, shuffle=True, seed=1))
    assert len(thinned) <= MOST_STEPS + 2
    assert thinned["value"].min() == 0
    assert thinned.row(-1) == ("x", 123_456.0, 100.0)


def test_boxes_have_quartiles_and_both_ends(sweep: lab.Results) -> None:
    found = [
        row for rows in of_mark(lab.plot.boxes(sweep, "goodput_mbit_s"), "bar") for row in rows
    ]
    keys = ["flows[0].cc", "network.dumbbell.queue"]
    rows = sweep.joined("flows")
    assert len(found) == 6
    drawn = {(row["least"], row["q1"], row["median"], row["q3"], row["greatest"]) for row in found}
    wanted = set()
    for _, own in rows.group_by(keys):
        a, b, c, d = sorted(own["goodput_mbit_s"])
        # For four values, the quartiles are at the ranks 0.75, 1.5 and 2.25, counted from 0.
        wanted.add((a, a + 0.75 * (b - a), (b + c) / 2, c + 0.25 * (d - c), d))
    assert [*map(sorted, sorted(drawn))] == [pytest.approx(sorted(one)) for one in sorted(wanted)]


def test_a_heat_map_has_a_cell_for_each_pair_of_values(sweep: lab.Results) -> None:
    chart = lab.plot.heatmap(sweep, "rtt_mean_ms")
    (cells,) = of_mark(chart, "rect")
    means = sweep.joined("flows").group_by("network.dumbbell.queue", "flows[0].cc").agg(
        pl.col("rtt_mean_ms").mean()
    )  # fmt: skip
    drawn = {(row["x"], row["y"]): row["value"] for row in cells}
    wanted = {(queue, cc): rtt for queue, cc, rtt in means.iter_rows()}
    assert drawn == pytest.approx(wanted)
    axis = chart.to_dict()["concat"][0]["layer"][0]["encoding"]["x"]
    assert axis["sort"] == ["0.25 BDP", "1 BDP", "2 BDP"]
    turned = lab.plot.heatmap(sweep, "rtt_mean_ms", x="flows[0].cc")
    (other,) = of_mark(turned, "rect")
    assert {(row["y"], row["x"]): row["value"] for row in other} == drawn


def test_ellipses_are_one_standard_deviation_in_every_direction() -> None:
    from tcplab._statistics.estimates import ellipse  # noqa: PLC0415

    # Variances 8/3 and 2/3, no covariance: the half-axes around (1, 2) are their roots.
    xs, ys = pl.Series([3.0, -1.0, 1.0, 1.0]), pl.Series([2.0, 2.0, 3.0, 1.0])
    outline = ellipse(xs, ys)
    for x, y in outline:
        assert (x - 1) ** 2 / (8 / 3) + (y - 2) ** 2 / (2 / 3) == pytest.approx(1)
    assert max(x for x, _ in outline) == pytest.approx(1 + math.sqrt(8 / 3))
    # Points on a line have that line as their ellipse.
    flat = ellipse(pl.Series([0.0, 1.0, 2.0]), pl.Series([0.0, 2.0, 4.0]))
    assert all(y == pytest.approx(2 * x, abs=1e-6) for x, y in flat)
    assert ellipse(pl.Series([0.0, 1.0]), pl.Series([0.0, 2.0])) == []
    assert ellipse(pl.Series([1.0] * 3), pl.Series([1.0] * 3)) == []


def test_throughput_against_delay_has_each_run_and_the_means(sweep: lab.Results) -> None:
    chart = lab.plot.tradeoff(sweep)
    points = [row for rows in of_mark(chart, "circle") for row in rows]
    delays = sweep.metrics("queue_delay_mean_ms")["queue_delay_mean_ms"]
    assert sorted(row["x"] for row in points) == pytest.approx(sorted(delays))
    assert sorted(row["y"] for row in points) == sorted(sweep.flows["goodput_mbit_s"])
    means = [row for rows in of_mark(chart, "point") for row in rows]
    rates = sweep.joined("flows").group_by("flows[0].cc", "network.dumbbell.queue").agg(
        pl.col("goodput_mbit_s").mean()
    )  # fmt: skip
    assert sorted(row["y"] for row in means) == pytest.approx(sorted(rates["goodput_mbit_s"]))
    x = chart.to_dict()["concat"][0]["layer"][-3]["encoding"]["x"]
    assert x["scale"]["reverse"] is True


def test_shares_are_of_what_two_flows_have_together(tmp_path: Path) -> None:
    both = ["cubic", "vegas"]
    experiment = two_senders(sweep={"flows[0].cc": both, "flows[1].cc": both}, repeat=2)
    results = lab.run(experiment)
    (cells,) = of_mark(lab.plot.shares(results), "rect")
    drawn = {(row["mine"], row["theirs"]): row["share"] for row in cells}
    flows = results.joined("flows")
    shares: dict[tuple[str, str], list[float]] = {}
    for _, run in flows.group_by("run", maintain_order=True):
        (one, first), (two, second) = run.select("cc", "goodput_mbit_s").iter_rows()
        shares.setdefault((one, two), []).append(100 * first / (first + second))
        if one != two:
            shares.setdefault((two, one), []).append(100 * second / (first + second))
    assert drawn == pytest.approx({key: sum(own) / len(own) for key, own in shares.items()})
    assert drawn["cubic", "vegas"] + drawn["vegas", "cubic"] == pytest.approx(100)
    # `answer` chooses this chart.
    assert of_mark(lab.plot.answer(results), "rect")[0] == cells


def test_shares_need_flows_that_meet(sweep: lab.Results) -> None:
    with pytest.raises(ValueError, match="no two flows of a run share a bottleneck"):
        lab.plot.shares(sweep)


def test_the_default_chart_depends_on_the_sweep(pair: lab.Results, sweep: lab.Results) -> None:
    assert "vconcat" in lab.plot.answer(pair).to_dict()
    assert of_mark(lab.plot.answer(sweep), "line")
    bars = lab.run(two_senders(duration="1 s", sweep={"flows[0].cc": ["cubic", "vegas"]}))
    assert len(of_mark(lab.plot.answer(bars), "bar")) == 2
    numbers = {
        "network.dumbbell.rate": ["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"],
        "network.dumbbell.delay": ["5 ms", "10 ms", "20 ms"],
    }
    cells = lab.run(two_senders(duration="1 s", sweep=numbers))
    assert of_mark(lab.plot.answer(cells), "rect")
    queues = [{"kind": "codel", "target": f"{n} ms"} for n in range(1, 15)]
    many = lab.run(two_senders(duration="500 ms", sweep={"network.dumbbell.queue": queues}))
    assert not of_mark(lab.plot.answer(many), "bar")
    assert of_mark(lab.plot.answer(many), "point")


def test_charts_of_missing_flows_or_links_are_refused(
    sweep: lab.Results, pair: lab.Results
) -> None:
    with pytest.raises(ValueError, match="there is no 'speed'"):
        lab.plot.compare(sweep, "speed")
    with pytest.raises(ValueError, match=r"no run has variation: the experiment has no `every`"):
        lab.plot.compare(sweep, "variation")
    with pytest.raises(ValueError, match="no run has completion_s: no flow with an end completed"):
        lab.plot.cdf(sweep, "completion_s")
    with pytest.raises(ValueError, match="a heat map needs two swept keys; there is nothing"):
        lab.plot.heatmap(pair)
    with pytest.raises(ValueError, match="'loss' is not swept; there is flows"):
        lab.plot.heatmap(sweep, x="loss")
    wrong: Any = "results"
    for chart in (lab.plot.compare, lab.plot.cdf, lab.plot.shares, lab.plot.answer):
        with pytest.raises(TypeError, match=r"those of tcplab\.run are needed, not a str"):
            chart(wrong)


def test_without_records_each_chart_says_what_to_record() -> None:
    record = {"samples": "off", "links": "off"}
    results = lab.run(two_senders(duration="500 ms", record=record))
    for chart in (lab.plot.cwnd, lab.plot.rtt, lab.plot.rate, lab.plot.internals):
        with pytest.raises(ValueError, match=r"see `record\.samples`"):
            chart(results)
    for chart in (lab.plot.queue, lab.plot.queue_delay):
        with pytest.raises(ValueError, match=r"see `record\.links`"):
            chart(results)
    with pytest.raises(ValueError, match=r"see `record\.samples`"):
        lab.plot.cdf(results, "srtt_ms")
    # Without links, the delay is the RTT.
    x = lab.plot.tradeoff(results).to_dict()["concat"][0]["layer"][0]["encoding"]["x"]
    assert x["title"] == "Mean RTT (ms)"


def test_fifty_flows_are_drawn_by_kind() -> None:
    experiment = two_senders()
    many = [flow.replace(count=25) for flow in experiment.flows]
    results = lab.run(experiment.replace(flows=many, duration="2 s"))
    chart = lab.plot.cwnd(results)
    pale, bold = of_mark(chart, "line")
    kinds = results.flows.filter(pl.col("flow").is_in(results.samples["flow"].to_list()))
    count = dict(kinds.group_by("cc").len().iter_rows())
    # Some of these flows find no room for their first packets.
    assert 30 < sum(count.values()) == len({row["flow"] for row in pale})
    assert sorted((row["flow"], row["cwnd_segments"]) for row in pale) == sorted(
        results.samples.select("flow", "cwnd_segments").rows()
    )
    kinds_said = {f"{cc}, {number} flows" for cc, number in count.items()}
    assert {row["label"] for row in bold} == kinds_said
    names = [row["label"] for rows in of_mark(chart, "text") for row in rows]
    assert sorted(names) == sorted(kinds_said)


def test_labels_beside_lines_are_apart_and_in_order() -> None:
    wanted = {"a": 10.0, "b": 11.0, "c": 12.0, "d": 150.0, "e": 199.0, "f": 200.0}
    places = spread(wanted, 200)
    assert list(places) == list("abcdef")
    gaps = [below - above for above, below in pairwise(places.values())]
    assert min(gaps) >= LINE - 1e-9
    assert max(places.values()) <= 200
    # Three labels that are too close stand around the mean of their targets.
    assert places["b"] - (200 - max(places.values())) <= wanted["b"]


def test_a_million_samples_keep_every_extreme() -> None:
    number = 1_000_000
    noise = pl.Series([(n * 7919) % 1000 for n in range(number)], dtype=pl.Float64)
    spiked = noise.set(pl.Series(range(number)) == 123_457, 1e6)
    spiked = spiked.set(pl.Series(range(number)) == 876_543, -1e6)
    rows = pl.DataFrame({"label": ["x"] * number, "time_s": range(number), "y": spiked})
    thinned = thin(rows, by="label", y="y")
    assert len(thinned) <= 2000
    assert (123_457, 1e6) in thinned.select("time_s", "y").rows()
    assert (876_543, -1e6) in thinned.select("time_s", "y").rows()


def test_names_of_any_script_are_drawn(tmp_path: Path) -> None:
    experiment = two_senders(duration="1 s", name="比較")
    names = ["ダウンロード", "تحميل"]
    flows = [flow.replace(name=name) for flow, name in zip(experiment.flows, names, strict=True)]
    results = lab.run(experiment.replace(flows=flows))
    lab.plot.save(lab.plot.cwnd(results), tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text(encoding="utf-8")
    for name in ("比較", *names):
        assert name in drawn
    # Fonts for every script are listed.
    assert "Noto Sans CJK" in drawn
    assert "Noto Sans Arabic" in drawn
    lab.plot.save(lab.plot.cwnd(results), tmp_path / "chart.png")


def test_panels_zoom_together_and_are_saved_whole(pair: lab.Results, tmp_path: Path) -> None:
    chart = lab.plot.overview(pair)
    params = {param["name"]: param for param in chart.to_dict()["params"]}
    assert params["zoom"]["views"] == ["lines_0", "lines_1"]
    assert params["picked"]["views"] == ["labels_0", "labels_1"]
    lab.plot.save(chart, tmp_path / "chart.html")
    page = (tmp_path / "chart.html").read_text()
    assert not re.search(r"<(script|link)[^>]*(src|href)=", page)


def test_equal_results_make_equal_charts(pair: lab.Results) -> None:
    charts = (lab.plot.overview, lab.plot.queue_delay, lab.plot.drops, lab.plot.internals)
    again = lab.run(two_senders())
    for chart in charts:
        assert chart(pair).to_json() == chart(again).to_json()


def test_the_command_draws_the_answer(tcplab: Any, tmp_path: Path) -> None:
    experiment = two_senders(duration="1 s", sweep={"flows[0].cc": ["cubic", "vegas"]})
    (tmp_path / "pair.json").write_text(json.dumps(experiment.to_dict()))
    done = tcplab("run", "pair.json", "--quiet", "--chart", "chart.json")
    assert done.returncode == 0, done.stderr
    drawn = json.loads((tmp_path / "chart.json").read_text())
    assert drawn == json.loads(lab.plot.answer(lab.run(experiment)).to_json())
    shown = tcplab("show", tmp_path / "results" / "pair", "--chart", "shown.json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads((tmp_path / "shown.json").read_text()) == drawn
