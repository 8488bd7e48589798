"""Charts are written in every format, and state what they leave out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tcplab as lab


@pytest.fixture
def results(small: lab.Experiment) -> lab.Results:
    return lab.run(small)


def test_charts_are_valid_in_every_format(results: lab.Results, tmp_path: Path) -> None:
    chart = lab.plot.overview(results)
    for kind in lab.plot.FORMATS:
        lab.plot.save(chart, tmp_path / f"chart{kind}")
    assert ElementTree.parse(tmp_path / "chart.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    assert "vega-lite" in json.loads((tmp_path / "chart.json").read_text())["$schema"]
    page = (tmp_path / "chart.html").read_text()
    assert "<script src=" not in page
    assert "small" in page


def test_other_formats_are_refused(results: lab.Results, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"a chart is saved as \.svg, \.png, \.pdf, \.html, \.json"
    ):
        lab.plot.save(lab.plot.cwnd(results), tmp_path / "chart.gif")


def test_a_chart_says_which_run_it_shows(results: lab.Results) -> None:
    subtitle = lab.plot.queue(results).to_dict()["title"]["subtitle"]
    assert subtitle == ["run 1 of 4, network.chain.queue = 10 packets, seed 1"]
    third = lab.plot.queue(results, run=results.plans[2].id).to_dict()["title"]["subtitle"]
    assert third == ["run 3 of 4, network.chain.queue = 20 packets, seed 1"]
    with pytest.raises(ValueError, match="no run of these results has the id 'x'"):
        lab.plot.queue(results, run="x")


def test_long_runs_make_small_files(small: lab.Experiment, tmp_path: Path) -> None:
    record = lab.Record(samples="ack", links="1 ms")
    long = small.replace(duration="60 s", record=record, sweep=None, repeat=1)
    results = lab.run(long)
    assert len(results.samples) > 20_000
    lab.plot.save(lab.plot.overview(results), tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").stat().st_size < 200_000


def test_without_records_charts_say_why(small: lab.Experiment, tmp_path: Path) -> None:
    results = lab.run(small.replace(record={"samples": "off", "links": "off"}))
    lab.plot.save(lab.plot.overview(results), tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text()
    assert "record.samples" in drawn
    assert "record.links" in drawn


def test_internals_of_a_congestion_control_are_drawn(small: lab.Experiment) -> None:
    results = lab.run(small.replace(sweep=None, repeat=1, duration="10 s"))
    chart = lab.plot.samples(results, "cwnd_segments", "cubic_k").to_dict()
    lines = [part["layer"][0] for part in chart["vconcat"]]
    assert [line["encoding"]["y"]["title"] for line in lines] == ["cwnd segments", "cubic k"]
    for column in ("cubic_kk", "flow"):
        with pytest.raises(ValueError, match=f"no column of numbers is called '{column}'"):
            lab.plot.samples(results, column)


def test_charts_that_cannot_be_drawn_say_why(small: lab.Experiment) -> None:
    results = lab.run(
        small.replace(sweep=None, repeat=1, duration="1 s", record={"samples": "off"})
    )
    with pytest.raises(ValueError, match=r"see `record\.samples`"):
        lab.plot.cwnd(results)
    with pytest.raises(ValueError, match="name one column or more"):
        lab.plot.samples(results)
    wrong: Any = small
    with pytest.raises(TypeError, match=r"results: those of tcplab\.run are needed"):
        lab.plot.overview(wrong)
    with pytest.raises(TypeError, match=r"chart: a chart of tcplab\.plot is needed"):
        lab.plot.save(wrong, "chart.svg")


def drawn(chart: dict[str, Any]) -> list[dict[str, Any]]:
    """The points of a chart that has one set of them."""
    (points,) = chart["datasets"].values()
    return list(points)


def mixed(**settings: object) -> lab.Results:
    """Three transfers, the last of which has too little time; and datagrams."""
    link = lab.Link(between=("a", "b"), rate="8 Mbit/s", delay="10 ms")
    # 100 kB take 0.1 s and more, and the last transfer begins 50 ms before the end.
    arrivals = lab.ArrivalsTraffic(every="475 ms", sizes="100 kB", transfers=3)
    udp = lab.UdpTraffic(payload="72 B", interval="100 ms")
    flows = [
        lab.Flow(name="files", from_="a", to="b", traffic=arrivals),
        lab.Flow(name="call", from_="b", to="a", traffic=udp),
    ]
    experiment = lab.Experiment(duration="1 s", network=lab.Network(links=[link]), flows=flows)
    return lab.run(experiment.replace(**settings))


def test_completion_times_are_drawn_as_shares_of_all_transfers() -> None:
    results = mixed()
    chart = lab.plot.transfers(results).to_dict()
    points = [(point["label"], point["share"]) for point in drawn(chart)]
    third = pytest.approx(100 / 3)
    assert points == [("files (cubic)", share) for share in (0, third, pytest.approx(200 / 3))]
    times = [point["completion_s"] for point in drawn(chart)]
    assert times == [0, *sorted(results.transfers["completion_s"].drop_nulls())]
    # Of the transfers that began in the second half of the run, none completed.
    late = lab.plot.transfers(mixed(measure={"from": "0.9 s"})).to_dict()
    assert drawn(late) == []


def test_many_transfers_make_small_files() -> None:
    arrivals = lab.ArrivalsTraffic(every="1 ms", sizes="1 kB")
    files = lab.Flow(name="files", from_="a", to="b", traffic=arrivals)
    link = lab.Link(between=("a", "b"), rate="100 Mbit/s", delay="1 ms")
    network = lab.Network(links=[link])
    results = lab.run(lab.Experiment(duration="5 s", network=network, flows=[files]))
    completed = results.transfers["completion_s"].drop_nulls()
    points = drawn(lab.plot.transfers(results).to_dict())
    assert len(points) <= 2001 < len(completed)
    assert points[-1]["completion_s"] == completed.max()


def test_delays_and_losses_of_datagrams_are_drawn() -> None:
    results = mixed()
    chart = lab.plot.datagrams(results).to_dict()
    titles = [part["encoding"]["x"]["title"] for part in chart["vconcat"][1:]]
    assert titles == ["delay variation, mean (ms)", "lost (%)"]
    # 100 bytes take 0.1 ms at 8 Mbit/s and the link 10 ms; ACKs of 52 bytes may precede them.
    _, points = chart["vconcat"][0]["layer"]
    name = points["data"]["name"]
    delays = {point["share"]: point["delay_ms"] for point in chart["datasets"][name]}
    assert [*delays] == ["50 %", "95 %", "99 %"]
    assert 10.1 <= delays["50 %"] <= delays["99 %"] <= 10.3
    assert len(lab.plot.overview(results).to_dict()["vconcat"]) == 6


def test_charts_of_missing_flows_or_links_are_refused(results: lab.Results) -> None:
    with pytest.raises(ValueError, match="no flow of this run has transfers"):
        lab.plot.transfers(results)
    with pytest.raises(ValueError, match="no flow of this run sends datagrams"):
        lab.plot.datagrams(results)
