"""Drawings of networks: the places of nodes, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tcplab as lab
from tcplab.cli import main
from tcplab.plot import _network_layout
from tcplab.plot._network import drawing

DUMBBELL = """
duration = "1 s"
[network.dumbbell]
pairs = {pairs}
rate = "10 Mbit/s"
delay = "10 ms"
"""
FLOW = """
[[flows]]
from = "left{number}"
to = "right{number}"
"""


def drawn(text: str, tmp_path: Path) -> Any:
    file = tmp_path / "drawn.toml"
    file.write_text(text)
    [plan] = lab.load(file).plans()
    return drawing(json.loads(plan.to_json()))


def test_packets_go_from_left_to_right() -> None:
    # Two hosts on each side of two routers; the routers are 0 and 1.
    paths = [[2, 0, 1, 3], [4, 0, 1, 5]]
    links = [(0, 1), (2, 0), (1, 3), (4, 0), (1, 5)]
    places = _network_layout.positions(paths, links)
    assert places == {
        2: (0, 0.5),
        4: (0, -0.5),
        0: (1, 0.0),
        1: (2, 0.0),
        3: (3, 0.5),
        5: (3, -0.5),
    }


def test_a_flow_the_other_way_ends_on_the_left() -> None:
    places = _network_layout.positions(
        [[0, 1, 2, 3], [5, 2, 1, 4]], [(0, 1), (1, 2), (2, 3), (2, 5), (1, 4)]
    )
    assert {node: column for node, (column, _) in places.items()} == {
        0: 0,
        1: 1,
        2: 2,
        3: 3,
        4: 0,
        5: 3,
    }


def test_links_that_are_alike_are_described_once(tmp_path: Path) -> None:
    flows = FLOW.format(number=1) + FLOW.format(number=2)
    picture = drawn(DUMBBELL.format(pairs=2) + flows, tmp_path)
    # The bottleneck, and the access links of both pairs.
    assert len(picture.links) == 5
    assert len(picture.labels) == 2
    assert any("10 Mbit/s, 10 ms" in label["about"] for label in picture.labels)
    assert picture.left_out == ""


def test_of_many_flows_a_few_are_drawn(tmp_path: Path) -> None:
    flows = "".join(FLOW.format(number=number + 1) for number in range(100))
    picture = drawn(DUMBBELL.format(pairs=100) + flows, tmp_path)
    assert len(picture.names) == 8
    assert len(picture.nodes) == 2 * 8 + 2
    assert picture.left_out == "8 of 100 flows, 18 of 202 nodes"


def test_directions_that_differ_are_both_described(tmp_path: Path) -> None:
    picture = drawn(
        """
        duration = "1 s"
        [[network.links]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        delay = "10 ms"
        queue = "20 packets"
        back = { rate = "1 Mbit/s" }
        [[flows]]
        from = "a"
        to = "b"
        """,
        tmp_path,
    )
    [label] = picture.labels
    about = label["about"]
    assert about.index("\u2192 10 Mbit/s") < about.index("\u2190 1 Mbit/s")


def test_every_example_can_be_drawn(tmp_path: Path) -> None:
    for file in sorted((Path(__file__).parents[2] / "examples").rglob("*.toml")):
        chart = tmp_path / f"{file.stem}.svg"
        assert main(["draw", str(file), "--chart", str(chart)]) == 0
        assert chart.read_text().startswith("<svg")


def test_names_cannot_be_markup(tmp_path: Path) -> None:
    file = tmp_path / "markup.toml"
    file.write_text(
        """
        name = "</script><script>alert(1)</script>"
        duration = "1 s"
        network.links = [{ between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" }]
        flows = [{ from = "a", to = "b", name = "<i>" }]
        """
    )
    for suffix in ("svg", "html"):
        chart = tmp_path / f"chart.{suffix}"
        assert main(["draw", str(file), "--chart", str(chart)]) == 0
        text = chart.read_text()
        assert "<script>alert" not in text
        assert "<i>" not in text


def test_invalid_drawings_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "none.toml"
    file.write_text('duration = "1 s"')
    assert main(["draw", str(file), "--chart", str(tmp_path / "no" / "chart.svg")]) == 2
    assert "is not a folder" in capsys.readouterr().err
    assert main(["draw", str(file), "--chart", str(tmp_path / "chart.svg")]) == 2
    assert "flows" in capsys.readouterr().err
    assert not (tmp_path / "chart.svg").exists()
