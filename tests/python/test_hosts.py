"""Queues of sending hosts: `sim` equals the kernel at every ACK."""

from __future__ import annotations

import json

import polars as pl
import pytest

import tcplab as lab
from fuzz.compare import as_experiment, compare, run
from fuzz.draw import Plain, draw
from fuzz.hosts import HOSTS

DIRECT = [{"between": ["a", "b"], "rate": "100 Mbit/s", "delay": "10 ms"}]
"""The host's own link is the slowest."""
ROUTED = [
    {"between": ["a", "r"], "rate": "1 Gbit/s", "delay": "1 ms"},
    {"between": ["r", "b"], "rate": "100 Mbit/s", "delay": "9 ms"},
]
"""A router behind the host has the slowest link."""

LIMIT = "1000 packets"
TBF = {"kind": "tbf", "rate": "30 Mbit/s", "burst": "20 kB", "limit": "1 MB"}


def experiment(qdisc: object, links: list[Plain], *algorithms: str, seconds: int = 4) -> Plain:
    """Flows from a host with its own queue, one every 100 ms."""
    return {
        "duration": f"{seconds} s",
        "hosts": {"a": {"qdisc": qdisc}},
        "network": {"links": links},
        "record": {"samples": "ack"},
        "flows": [
            {"from": "a", "to": "b", "cc": cc, "start": f"{100 * number} ms"}
            for number, cc in enumerate(algorithms)
        ],
    }


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("qdisc", ["fq", "fq-codel", LIMIT])
@pytest.mark.parametrize("cc", ["bbr", "cubic", "newreno"])
def test_a_flow_with_a_host_queue_matches_the_kernel_at_every_ack(cc: str, qdisc: str) -> None:
    outcome = compare(experiment(qdisc, DIRECT, cc))
    assert outcome.first is None, outcome.first


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("cc", "qdisc"),
    [("bbr", "fq"), ("cubic", "fq"), ("cubic", "fq-codel"), ("newreno", LIMIT)],
)
def test_a_flow_with_a_host_queue_and_a_slower_router_matches_the_kernel(
    cc: str, qdisc: str
) -> None:
    outcome = compare(experiment(qdisc, ROUTED, cc))
    assert outcome.first is None, outcome.first


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("qdisc", ["fq", "fq-codel", "sfq", LIMIT])
def test_flows_sharing_a_host_queue_match_the_kernel(qdisc: str) -> None:
    outcome = compare(experiment(qdisc, DIRECT, "cubic", "newreno", "bbr", "cubic"))
    assert outcome.first is None, outcome.first


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("qdisc", ["fq", "fq-codel", LIMIT])
def test_bbr_keeps_its_own_queue_under_two_milliseconds(qdisc: str) -> None:
    plain = experiment(qdisc, DIRECT, "bbr", seconds=10) | {"record": {"links": "100 ms"}}
    for backend, results in run(plain).items():
        rows = results.links.filter(pl.col("link") == "a>b", pl.col("time_s") > 1)
        # 100 Mbit/s are 12500 bytes per millisecond.
        waited = rows["queue_mean_bytes"].mean()
        assert isinstance(waited, float)
        assert waited / 12_500 < 2, backend
        assert results.flows["retransmitted_segments"].to_list() == [0]


@pytest.mark.usefixtures("kernel")
def test_without_small_queues_the_same_flow_fills_the_queue() -> None:
    plain = experiment(LIMIT, DIRECT, "cubic", seconds=10) | {"record": {"links": "100 ms"}}
    plain["network"] = {"links": [DIRECT[0] | {"queue": LIMIT}]}
    greatest = []
    for hosts in (plain["hosts"], {}):
        results = lab.run(as_experiment(plain | {"hosts": hosts}), backend="linux")
        greatest.append(results.links["queue_max_packets"].max())
    own, routers = greatest
    # Two bursts wait and one leaves, each of at most 45 segments, the limit of 64 KiB.
    assert own <= 3 * 45
    assert routers == 1000


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("qdisc", ["cake", "pie", "codel", "2 packets", TBF])
def test_every_discipline_works_as_a_host_queue(qdisc: object) -> None:
    # Each packet that arrived has left, was dropped, or is waiting.
    plain = experiment(qdisc, DIRECT, "cubic", "bbr", seconds=2)
    plain["record"] = {"samples": "10 ms", "links": "10 ms", "packets": ["a>b"]}
    for backend, results in run(plain).items():
        links = results.links.filter(pl.col("link") == "a>b")
        points = dict(results.packets["point"].value_counts().iter_rows())
        gone = points["leave"] + points.get("drop", 0)
        assert points["enter"] - gone == links["queue_packets"][-1], backend
        assert results.flows["goodput_mbit_s"].sum() > 10, backend


def test_host_cases_are_deterministic() -> None:
    cases = [draw(1, number, HOSTS) for number in range(20)]
    assert cases == [draw(1, number, HOSTS) for number in range(20)]
    for case in cases:
        assert json.loads(json.dumps(case.experiment))["hosts"]["client"]["qdisc"]
        experiment = as_experiment(case.experiment)
        assert len(experiment.plans("sim")) == len(experiment.plans("linux")) == 1
