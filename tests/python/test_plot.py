"""Charts are written in every format, and say what they leave out."""

from __future__ import annotations

import json
from pathlib import Path
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
    with pytest.raises(ValueError, match=r"a chart is saved as \.svg, \.png, \.html, \.json"):
        lab.plot.save(lab.plot.cwnd(results), tmp_path / "chart.gif")


def test_a_chart_says_which_run_it_shows(results: lab.Results) -> None:
    subtitle = lab.plot.cwnd(results).to_dict()["title"]["subtitle"]
    assert subtitle == ["run 1 of 4, network.chain.queue = 10 packets, seed 1"]
    third = lab.plot.queue(results, run=results.plans[2].id).to_dict()["title"]["subtitle"]
    assert third == ["run 3 of 4, network.chain.queue = 20 packets, seed 1"]
    with pytest.raises(ValueError, match="no run of these results has the id 'x'"):
        lab.plot.queue(results, run="x")


def test_of_many_flows_the_first_are_drawn(small: lab.Experiment) -> None:
    many = lab.Flow(from_="client", to="server", count=40)
    chart = lab.plot.cwnd(lab.run(small.replace(flows=[many], sweep=None, repeat=1)))
    description = chart.to_dict()
    assert description["title"]["subtitle"] == ["the first 10 of 40 flows"]
    assert len(description["encoding"]["color"]["scale"]["domain"]) == 10


def test_long_runs_make_small_files(small: lab.Experiment, tmp_path: Path) -> None:
    record = lab.Record(samples="ack", links="1 ms")
    long = small.replace(duration="60 s", record=record, sweep=None, repeat=1)
    results = lab.run(long)
    assert len(results.samples) > 20_000
    lab.plot.save(lab.plot.overview(results), tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").stat().st_size < 200_000


def test_without_records_charts_are_empty(small: lab.Experiment, tmp_path: Path) -> None:
    results = lab.run(small.replace(record={"samples": "off", "links": "off"}))
    lab.plot.save(lab.plot.overview(results), tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").exists()


def test_internals_of_a_congestion_control_are_drawn(small: lab.Experiment) -> None:
    results = lab.run(small.replace(sweep=None, repeat=1, duration="10 s"))
    chart = lab.plot.samples(results, "cwnd_segments", "cubic_k").to_dict()
    assert [part["encoding"]["y"]["title"] for part in chart["vconcat"]] == [
        "cwnd segments",
        "cubic k",
    ]
    for column in ("cubic_kk", "flow"):
        with pytest.raises(ValueError, match=f"no column of numbers is called '{column}'"):
            lab.plot.samples(results, column)
