"""Links that lose, delay, reorder and change: trace files, theory, equality of both backends."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tcplab as lab
from fuzz.compare import as_experiment, compare
from fuzz.draw import draw
from fuzz.links import DOES, LINKS

SEED = 1
ROUNDS = 2

# The simulated TCP does not yet treat duplicated and reordered packets as the kernel does in every
# case: see docs/explanation/parity.md. The link itself is the same on both.
COPYLESS = ("reordering", "jitter disorder", "jitter spread", "delay changes")
DISORDERLY = (*COPYLESS, "duplication", "several")


def datagrams(link: dict[str, Any], rate: str, seconds: float, **more: Any) -> dict[str, Any]:
    """UDP at a constant rate over one link."""
    link = {"between": ["a", "b"], "delay": "10 ms", "queue": "100 packets", **link}
    return {
        "duration": f"{seconds} s",
        "network": {"links": [link]},
        "flows": [{"from": "a", "to": "b", "traffic": {"kind": "udp", "rate": rate}}],
        **more,
    }


def carried_mbit_s(results: lab.Results, seconds: float, link: str = "a>b") -> float:
    """The rate that a direction of a link has delivered, with headers."""
    last = results.links.filter(link=link).sort("time_s").tail(1)
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


def test_each_direction_has_a_trace_of_its_own_and_a_base_delay(tmp_path: Path) -> None:
    # The files that CellReplay records: delivery opportunities of uplink and downlink, and varying
    # delays.
    (tmp_path / "up.txt").write_text("1\n")  # 12 Mbit/s
    (tmp_path / "down.txt").write_text("1\n" * 5)  # 60 Mbit/s
    (tmp_path / "base.txt").write_text("0 20\n5 40\n")
    plain = datagrams({}, "100 Mbit/s", 10, record={"links": "10 s"})
    up = {"rate_changes": {"trace": "up.txt"}, "delay_changes": {"trace": "base.txt"}}
    down = {"rate_changes": {"trace": "down.txt"}}
    plain["network"]["links"][0] |= {"forward": up, "back": down}
    plain["flows"].append({**plain["flows"][0], "from": "b", "to": "a"})
    (tmp_path / "experiment.json").write_text(json.dumps(plain))
    results = lab.run(tmp_path / "experiment.json", progress=False)
    assert carried_mbit_s(results, 10) == pytest.approx(12, rel=1e-3)
    assert carried_mbit_s(results, 10, "b>a") == pytest.approx(60, rel=1e-3)
    # The first packet waits a millisecond for an opportunity, and travels for 20.
    assert results.flows["delay_min_ms"][0] == pytest.approx(21, abs=1e-3)


def light_load(folder: Path) -> dict[str, Any]:
    """A link whose trains of four packets have 10 to 30 ms, with 12 Mbit/s under heavy load."""
    (folder / "heavy.txt").write_text("1\n")
    (folder / "light.txt").write_text("0 10 0 1 1 4\n5000 30 0 1 1 4\n10000 10 0\n")
    return {
        "rate_changes": {"trace": "heavy.txt"},
        "light": {"trains": {"file": "light.txt"}, "after": "20 ms"},
    }


@pytest.mark.parametrize("backend", ["sim", "linux"])
def test_a_light_load_has_the_delays_and_opportunities_of_its_trains(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if backend == "linux":
        request.getfixturevalue("kernel")
    plain = datagrams({}, "", 5)
    plain["flows"][0]["traffic"] = {"kind": "udp", "interval": "250 ms"}
    plain["network"]["links"][0] = {"between": ["a", "b"], **light_load(tmp_path)}
    (tmp_path / "experiment.json").write_text(json.dumps(plain))
    flow = lab.run(tmp_path / "experiment.json", progress=False, backend=backend).flows
    # A datagram each 250 ms is alone on the link: it leaves at once, with the delay of its time,
    # which is 10 ms at the start and grows by 4 ms per second.
    assert flow["delay_min_ms"][0] == pytest.approx(10, abs=1e-3)
    assert flow["delay_p99_ms"][0] == pytest.approx(10 + 4 * 4.75, abs=1e-3)


def normal(value: float) -> float:
    """The share of a normal distribution below a value."""
    return 0.5 * (1 + math.erf((value - 5) / 2**0.5))


MEASURED = [round(1 + place * place / 500, 3) for place in range(50)]
DISTRIBUTIONS: dict[str, tuple[dict[str, Any], Callable[[float], float]]] = {
    "uniform": (
        {"kind": "uniform", "least": "2 ms", "most": "7 ms"},
        lambda value: min(max((value - 2) / 5, 0), 1),
    ),
    "normal": ({"kind": "normal", "mean": "5 ms", "deviation": "1 ms"}, normal),
    "pareto": (
        {"kind": "pareto", "shape": 2.5, "least": "1 ms"},
        lambda value: 1 - max(value, 1) ** -2.5,
    ),
    "file": ({"file": "delays.txt"}, lambda value: sum(it <= value for it in MEASURED) / 50),
}


@pytest.mark.parametrize("backend", ["sim", "linux"])
@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_jitter_is_distributed_as_asked(
    kind: str, backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if backend == "linux":
        request.getfixturevalue("kernel")
    (tmp_path / "delays.txt").write_text("".join(f"{value}\n" for value in MEASURED))
    jitter, below = DISTRIBUTIONS[kind]
    # Datagrams are 25 ms apart, so that each keeps its own delay. 1000 bytes at 1 Gbit/s take 8 us,
    # and the link 10 ms. A second link records the arrivals.
    plain = datagrams({"rate": "1 Gbit/s", "jitter": jitter}, "1 Mbit/s", 275)
    plain["network"]["links"].append({"between": ["b", "c"], "rate": "1 Gbit/s", "delay": "0 s"})
    plain["flows"][0] |= {
        "to": "c",
        "traffic": {"kind": "udp", "payload": "972 B", "interval": "25 ms", "packets": 10_500},
    }
    plain["record"] = {"packets": ["a>b", "b>c"], "samples": "off", "links": "off"}
    (tmp_path / "experiment.json").write_text(json.dumps(plain))
    results = lab.run(tmp_path / "experiment.json", backend=backend, progress=False)
    sent, arrived = (
        results.packets.filter(link=link, point="leave")["time_s"] for link in ("a>b", "b>c")
    )
    assert len(sent) == len(arrived) == 10_500
    drawn = sorted(round(float(value) * 1e3 - 10.008, 6) for value in arrived - sent)
    # Kolmogorov-Smirnov: the greatest distance, on either side of each step.
    steps = [(value, bisect_left(drawn, value), bisect_right(drawn, value)) for value in drawn]
    apart = [
        max(abs(after / 10_500 - below(value)), abs(before / 10_500 - below(value - 1e-6)))
        for value, before, after in steps
    ]
    assert max(apart) <= 0.02


def bursts(lost: list[int]) -> list[int]:
    """The lengths of runs of consecutive numbers."""
    ends = [place for place, (here, there) in enumerate(pairwise(lost)) if there != here + 1]
    return [end - begin for begin, end in pairwise([-1, *ends, len(lost) - 1])]


GOOD_S, BAD_S = 0.2, 0.02
LOSSES: dict[str, dict[str, Any]] = {
    "independent": {"kind": "independent", "probability": "2 %"},
    "gilbert": {"kind": "gilbert", "to_bad": 0.01, "to_good": 0.25},
    "gilbert-time": {
        "kind": "gilbert-time",
        "good": f"{GOOD_S} s",
        "bad": f"{BAD_S} s",
        "holding": "exponential",
    },
}


@pytest.mark.parametrize("backend", ["sim", "linux"])
@pytest.mark.parametrize("kind", LOSSES)
def test_losses_have_the_rate_and_the_bursts_of_their_model(
    kind: str, backend: str, request: pytest.FixtureRequest
) -> None:
    if backend == "linux":
        request.getfixturevalue("kernel")
    number, gap_s = 60_000, 1e-3
    plain = datagrams({"rate": "100 Mbit/s", "loss": LOSSES[kind]}, "1 Mbit/s", 61)
    plain["flows"][0]["traffic"] = {"kind": "udp", "interval": "1 ms", "packets": number}
    plain["record"] = {"samples": "off", "links": "off"}
    results = lab.run(as_experiment(plain), backend=backend, progress=False)
    lost = [round(float(time) / gap_s) for time in results.drops["time_s"]]
    lengths = bursts(lost)
    if kind == "gilbert-time":
        # Alternating states: mean and variance of the share of time in one of them (Cox, Renewal
        # Theory, 1962). Sampled once per packet they form a Markov chain, because they have no
        # memory.
        rate = BAD_S / (GOOD_S + BAD_S)
        spread = math.sqrt(2 * (GOOD_S * BAD_S) ** 2 / (GOOD_S + BAD_S) ** 3 / (number * gap_s))
        # A good state between two packets goes unnoticed and joins two bursts.
        back = 1 / GOOD_S / (1 / GOOD_S + 1 / BAD_S)
        stays = back + (1 - back) * math.exp(-gap_s * (1 / GOOD_S + 1 / BAD_S))
    else:
        to_bad, to_good = (0.02, 0.98) if kind == "independent" else (0.01, 0.25)
        rate = to_bad / (to_bad + to_good)
        # The variance of the mean of a two-state chain, with its correlation.
        correlation = 1 - to_bad - to_good
        inflated = (1 + correlation) / (1 - correlation)
        spread = math.sqrt(rate * (1 - rate) / number * inflated)
        stays = 1 - to_good
    # Four standard deviations.
    assert len(lost) / number == pytest.approx(rate, abs=4 * spread)
    burst = 1 / (1 - stays)
    geometric = math.sqrt(stays) / (1 - stays) / math.sqrt(len(lengths))
    assert sum(lengths) / len(lengths) == pytest.approx(burst, abs=4 * geometric)


def bianchi(stations: int, packets: int) -> tuple[float, float]:
    """Saturation throughput of 802.11, and the waiting time of a station, in microseconds.

    Bianchi 2000: equations 7, 9 to 11, 13 and 14 for basic access, with the parameters of its table
    II. Throughput is a share of the rate. A frame has `packets` payloads of 8184 bits. A station
    waits from one success to its next, less the time of a payload.
    """
    window, stages = 32, 3
    slot, sifs, difs, delta = 50, 28, 128, 1
    headers, payload, ack = 272 + 128, 8184 * packets, 112 + 128

    def tau(p: float) -> float:
        backed_off = p * window * sum((2 * p) ** stage for stage in range(stages))
        return 2 / (1 + window + backed_off)

    # The collision probability, by bisection: one side grows with it, the other falls.
    low, high = 0.0, 1.0
    for _ in range(100):
        p = (low + high) / 2
        low, high = (p, high) if p < 1 - (1 - tau(p)) ** (stations - 1) else (low, p)
    sends = tau(low)
    some = 1 - (1 - sends) ** stations
    one = stations * sends * (1 - sends) ** (stations - 1) / some
    success = headers + payload + sifs + delta + ack + difs + delta
    collision = headers + payload + difs + delta
    mean_slot = (1 - some) * slot + some * one * success + some * (1 - one) * collision
    return some * one * payload / mean_slot, stations * mean_slot / (some * one) - payload


@pytest.mark.parametrize("packets", [1, 8])
@pytest.mark.parametrize("stations", [1, 4, 16])
def test_contention_gives_the_goodput_of_its_published_model(stations: int, packets: int) -> None:
    share, access_us = bianchi(stations, packets)
    seconds = 200 * stations
    access = {"kind": "exponential", "mean": f"{access_us:.3f} us"}
    contention = {"access": access, "aggregate": packets}
    # A station that always has something to send, at 1 Mbit/s; 1023 bytes are a payload.
    plain = datagrams({"rate": "1 Mbit/s", "contention": contention}, "1 Mbit/s", seconds)
    plain["flows"][0]["traffic"] = {"kind": "udp", "rate": "2 Mbit/s", "payload": "995 B"}
    plain["record"] = {"samples": "off", "links": f"{seconds} s"}
    results = lab.run(as_experiment(plain), progress=False)
    goodput = stations * carried_mbit_s(results, seconds)
    # The standard deviation of an access time equals its mean: four standard deviations of all
    # accesses.
    turns = share * seconds / stations / (0.008184 * packets)
    variation = access_us / (access_us + 8184 * packets)
    assert goodput == pytest.approx(share, rel=4 * variation / math.sqrt(turns))


def test_drawn_links_run_on_both_backends() -> None:
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
            # Packets of two flows that arrive in the same nanosecond are delivered flow by flow
            # (GRO).
            plain["flows"] = plain["flows"][:1]
        outcome = compare(plain)
        assert outcome.first is None, f"{kind} {number}: {outcome.first}"


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("kind", [*COPYLESS, "outages", "trace"])
def test_datagrams_take_the_same_way_on_both_backends(kind: str) -> None:
    """Including overtaking packets, without a TCP that reacts to them."""
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
