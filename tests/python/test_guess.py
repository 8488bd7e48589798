"""The guess of a sender's congestion control, on runs with known algorithms."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import Command

import tcplab as lab
from tcplab._capture import guess
from tcplab._capture.rounds import LOSS, Rounds, rounds


def captured(
    folder: Path, algorithm: str, *, seconds: int = 30, size: str | None = None, **stack: Any
) -> Path:
    """The capture of a transfer over 20 Mbit/s and 60 ms, with a queue of 1 BDP."""
    traffic: dict[str, Any] = {"kind": "bulk"} | ({"size": size} if size else {})
    link = {"between": ["router", "receiver"], "rate": "20 Mbit/s", "delay": "30 ms"}
    experiment = {
        "duration": f"{seconds} s",
        "stack": {"profile": "linux-6.12"} | stack,
        "record": {"captures": ["sender>router", "router>sender"]},
        "network": {
            "links": [
                {"between": ["sender", "router"], "rate": "1 Gbit/s", "delay": "10 us"},
                link | {"queue": "1 BDP"},
            ]
        },
        "flows": [{"from": "sender", "to": "receiver", "cc": algorithm, "traffic": traffic}],
    }
    lab.run(experiment, out=folder, workers=1, progress=False)
    (path,) = folder.glob("**/capture.pcapng")
    return path


def seen(path: Path) -> Rounds:
    """The round trips of the connection of a capture."""
    found = rounds(lab.capture.packets(path, 0), lab.capture.flows(path).row(0, named=True))
    assert found is not None
    return found


def test_rounds_show_what_reno_does(tmp_path: Path) -> None:
    """RFC 5681: a loss leaves half of the window, and a round trip adds a segment."""
    found = seen(captured(tmp_path, "newreno"))
    assert (found.cause == LOSS).all()
    # The first loss ends slow start.
    kept = found.after[1:] / found.before[1:]
    # Half of a window of about 200 segments, rounded, and a segment that arrived meanwhile.
    assert np.abs(kept - 0.5).max() < 0.02
    begin, end = int(found.last[1]) + 1, int(found.first[2]) - 1
    grown = found.window[end] - found.window[begin]
    assert abs(grown - (end - begin)) <= 0.05 * (end - begin)
    # 20 Mbit/s times 60 ms are 99 packets of 1514 bytes; the queue holds as many. In addition, one
    # packet is entering the link, two wait for a delayed ACK, and the window has grown meanwhile.
    beyond = found.before[1:] - 2 * 99
    assert beyond.min() >= 0
    assert beyond.max() <= 5


@pytest.mark.parametrize(("algorithm", "kept"), [("cubic", 0.7), ("scalable", 0.875)])
def test_the_response_to_losses_is_a_feature(tmp_path: Path, algorithm: str, kept: float) -> None:
    """RFC 9438 §4.6 and Kelly 2003."""
    found = seen(captured(tmp_path, algorithm))
    assert abs(float(np.median(found.after / found.before)) - kept) < 0.02


@pytest.mark.parametrize(
    ("algorithm", "answer"),
    [("cubic", "cubic"), ("bbr", "bbr"), ("scalable", "scalable"), ("newreno", "reno or lp")],
)
def test_a_guess_is_right(tmp_path: Path, algorithm: str, answer: str) -> None:
    table = lab.capture.congestion_control(captured(tmp_path, algorithm))
    assert table["guess"].to_list() == [answer]
    assert guess.LEAST_CERTAINTY <= table["certainty"][0] <= 1


def test_ecn_marks_indicate_dctcp(tmp_path: Path) -> None:
    """Linux makes SYNs ECN-capable for an algorithm that needs ECN (INET_ECN_xmit)."""
    with pytest.warns(lab.TcplabWarning, match="no queue on the way has any"):
        path = captured(tmp_path, "dctcp", ecn=True)
    table = lab.capture.congestion_control(path)
    assert table["guess"].to_list() == ["dctcp"]
    assert "its SYN may be marked" in table["evidence"][0]


def test_an_algorithm_that_linux_does_not_have_is_unknown(tmp_path: Path) -> None:
    table = lab.capture.congestion_control(captured(tmp_path, "copa"))
    assert table["guess"].to_list() == ["unknown"]
    assert table["evidence"][0].startswith("no algorithm matches well enough; closest: ")


def test_captures_with_too_little_evidence_are_unknown(tmp_path: Path) -> None:
    short = lab.capture.congestion_control(captured(tmp_path / "a", "cubic", size="200 kB"))
    assert short.select("guess", "certainty").rows() == [("unknown", None)]
    assert short["evidence"][0].startswith("too short")
    # 64 kB in flight are a fifth of what 20 Mbit/s and 120 ms take.
    narrow = captured(tmp_path / "b", "cubic", window_scaling=False)
    (row,) = lab.capture.congestion_control(narrow).rows(named=True)
    assert row["guess"] == "unknown"
    assert row["evidence"].startswith("limited by the receiver's window")


def test_the_forest_votes() -> None:
    """Two trees: one tests whether a feature is at most 1, the other is a leaf."""
    forest = guess.Model(
        names=["asks_marks", "size"],
        classes=["a", "b"],
        roots=np.array([0, 3], dtype=np.uint32),
        feature=np.array([1, 255, 255, 255], dtype=np.uint8),
        threshold=np.array([1, 0, 0, 0], dtype=np.float32),
        right=np.array([2, 0, 1, 1], dtype=np.uint16),
        low=np.zeros((2, 2), dtype=np.float32),
        high=np.array([[0, 1], [0, 9]], dtype=np.float32),
        weights=np.array([0.0, 1.0, -1.0]),
    )
    rows = [np.array([0, size], dtype=np.float32) for size in (1, 2)]
    assert [guess.shares(forest, row).tolist() for row in rows] == [[0.5, 0.5], [0, 1]]
    # All trees agree: the odds are 1.01 to 0.01, 101; no feature is outside; 101 of 102.
    assert guess.guess({"asks_marks": 0.0, "size": 2.0}, forest) == ("b", 0.99)
    # One feature outside the trained range halves the odds: 50.5 of 51.5.
    assert guess.guess({"asks_marks": 0.0, "size": 10.0}, forest) == ("b", 0.981)
    assert guess.guess({"asks_marks": 1.0, "size": 2.0}, forest) == ("b", 0.0)


def test_the_model_is_small_and_plain() -> None:
    assert guess.MODEL.stat().st_size < 300_000
    with zipfile.ZipFile(guess.MODEL) as file:
        assert all(name.endswith(".npy") for name in file.namelist())
    assert len(guess.model().names) < guess.LEAF


def test_the_command(tcplab: Command, tmp_path: Path) -> None:
    path = captured(tmp_path, "bbr", seconds=15)
    said = tcplab("capture", "cc", path)
    assert said.returncode == 0
    assert said.stdout.splitlines()[0].split() == ["sender", "receiver", "guess", "certainty"]
    assert "10.0.0.2:10001: " in said.stdout
    rows = tcplab("capture", "cc", path, "--format", "csv").stdout
    assert pl.read_csv(rows.encode())["guess"].to_list() == ["bbr"]
    missing = tcplab("capture", "cc", "none.pcap")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error: none.pcap")
