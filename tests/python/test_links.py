"""Links that lose, delay, reorder and change: files, theory, and both backends alike."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab as lab
from fuzz.compare import as_experiment, compare
from fuzz.draw import draw
from fuzz.links import DOES, LINKS

SEED = 1
ROUNDS = 2

# What the simulated TCP makes of copies and of packets in disorder is not yet in all cases what the
# kernel makes of it: see docs/explanation/parity.md. The link itself does the same on both.
COPYLESS = ("reordering", "jitter disorder", "jitter spread", "delay changes")
DISORDERLY = (*COPYLESS, "duplication", "several")


def datagrams(link: dict[str, Any], rate: str, seconds: float, **more: Any) -> dict[str, Any]:
    """UDP at a rate over one link."""
    link = {"between": ["a", "b"], "delay": "10 ms", "queue": "100 packets", **link}
    return {
        "duration": f"{seconds} s",
        "network": {"links": [link]},
        "flows": [{"from": "a", "to": "b", "traffic": {"kind": "udp", "rate": rate}}],
        **more,
    }


def carried_mbit_s(results: lab.Results, seconds: float) -> float:
    """What the link from a to b has delivered, with headers."""
    last = results.links.filter(link="a>b").sort("time_s").tail(1)
    waiting = last["queue_bytes"][0]
    return float((last["sent_bytes"][0] - waiting) * 8 / seconds / 1e6)


@pytest.mark.parametrize(
    ("trace", "mbit_s", "seconds"),
    [
        ("1\n", 12, 20),  # one packet of 1500 bytes each millisecond
        ("1\n" * 83 + "2\n" * 83 + "3\n" * 84, 1000, 2),  # 250 in 3 ms
    ],
)
def test_a_trace_of_mahimahi_delivers_what_it_allows(
    trace: str, mbit_s: float, seconds: float, tmp_path: Path
) -> None:
    (tmp_path / "trace.txt").write_text(trace)
    plain = datagrams({}, f"{12 * mbit_s}00 kbit/s", seconds, record={"links": f"{seconds} s"})
    plain["network"]["links"][0]["rate_changes"] = {"trace": "trace.txt"}
    # Files are found beside the experiment's own.
    (tmp_path / "experiment.json").write_text(json.dumps(plain))
    results = lab.run(tmp_path / "experiment.json", progress=False)
    assert carried_mbit_s(results, seconds) == pytest.approx(mbit_s, rel=1e-3)


def delays_ms(results: lab.Results) -> list[float]:
    """By how much packets took longer than without jitter on the link from a to b."""
    packets = results.packets.filter(link="a>b")
    entered = packets.filter(point="leave")["time_s"]
    arrived = packets.filter(point="arrive")["time_s"]
    assert len(arrived) > 10_000
    return [float(value) for value in (arrived - entered.head(len(arrived))) * 1e3]


def test_jitter_on_a_link_is_distributed_as_asked() -> None:
    # Datagrams 25 ms apart: none comes near another, so each keeps its own delay. 1000 bytes at
    # 1 Gbit/s take 8 us, and the link 10 ms.
    jitter = {"kind": "normal", "mean": "5 ms", "deviation": "1 ms"}
    plain = datagrams({"rate": "1 Gbit/s", "jitter": jitter}, "1 Mbit/s", 300)
    plain["flows"][0]["traffic"] = {"kind": "udp", "payload": "972 B", "interval": "25 ms"}
    plain["record"] = {"packets": ["a>b"], "samples": "off", "links": "off"}
    results = lab.run(as_experiment(plain), progress=False)
    drawn = pl.Series(sorted(value - 10.008 for value in delays_ms(results)))
    # Kolmogorov and Smirnov, with the normal distribution by its error function.
    expected = pl.Series([0.5 * (1 + math.erf((value - 5) / 2**0.5)) for value in drawn])
    place = pl.Series(range(len(drawn))) / len(drawn)
    assert max((expected - place).abs().to_list()) <= 0.02


def test_both_backends_have_all_that_is_drawn() -> None:
    for number in range(10 * len(LINKS)):
        experiment = as_experiment(draw(SEED, number, LINKS).experiment)
        assert len(experiment.plans("sim")) == len(experiment.plans("linux")) == 1


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("kind", [kind for kind in DOES if kind not in DISORDERLY])
def test_links_are_the_same_on_both_backends(kind: str) -> None:
    place = list(LINKS).index(kind)
    for number in range(place, ROUNDS * len(LINKS), len(LINKS)):
        plain = draw(SEED, number, LINKS).experiment
        if kind == "trace":
            # Packets of two flows that arrive in one nanosecond are handed on flow by flow (GRO).
            plain["flows"] = plain["flows"][:1]
        outcome = compare(plain)
        assert outcome.first is None, f"{kind} {number}: {outcome.first}"


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("kind", [*COPYLESS, "outages", "trace"])
def test_datagrams_take_the_same_way_on_both_backends(kind: str) -> None:
    """Also where packets overtake each other, without a TCP that makes something of it."""
    for number in range(list(LINKS).index(kind), ROUNDS * len(LINKS), len(LINKS)):
        plain = draw(SEED, number, LINKS).experiment
        plain["record"] = {"samples": "off", "links": "100 ms"}
        plain["flows"] = [
            {"from": flow["from"], "to": flow["to"], "traffic": {"kind": "udp", "rate": "1 Mbit/s"}}
            for flow in plain["flows"]
        ]
        sim, linux = (
            lab.run(as_experiment(plain), backend=backend, progress=False)
            for backend in ("sim", "linux")
        )
        columns = ["flow", "bytes", "lost_packets", "reordered_packets", "delay_p99_ms"]
        assert sim.flows.select(columns).equals(linux.flows.select(columns)), number


def test_copies_of_datagrams_are_refused() -> None:
    plain = datagrams({"rate": "10 Mbit/s", "duplication": "1 %"}, "1 Mbit/s", 1)
    with pytest.raises(lab.ConfigError, match="is UDP over a link with `duplication`"):
        as_experiment(plain).plans("sim")
