"""Receive offload and CPU time of hosts: `sim` equals the kernel."""

from __future__ import annotations

import json

import polars as pl
import pytest

import tcplab as lab
from fuzz.compare import as_experiment, compare, run
from fuzz.draw import Plain, draw
from fuzz.offload import OFFLOAD


def experiment(cc: str, rate: str, hosts: Plain, **settings: object) -> Plain:
    """A flow over one link with a round-trip time of 4 ms."""
    link = {"between": ["a", "b"], "rate": rate, "delay": "2 ms", **settings}
    return {
        "duration": "2 s",
        "hosts": hosts,
        "network": {"links": [link]},
        "record": {"samples": "ack", "links": "off"},
        "flows": [
            # Below the 16 MiB that the kernel's receiver reads in one call.
            {"from": "a", "to": "b", "cc": cc, "traffic": {"kind": "bulk", "size": "16 MB"}}
        ],
    }


def packets(results: lab.Results, link: str) -> int:
    """The number of packets sent over a link."""
    sent = results.links.filter(pl.col("link") == link)["sent_packets"][-1]
    assert isinstance(sent, int)
    return sent


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("wait", ["10 us", "50 us", "200 us"])
@pytest.mark.parametrize("rate", ["100 Mbit/s", "1 Gbit/s"])
@pytest.mark.parametrize("cc", ["cubic", "newreno"])
def test_a_gro_receiver_matches_the_kernel_at_every_ack(cc: str, rate: str, wait: str) -> None:
    outcome = compare(experiment(cc, rate, {"b": {"gro": wait}}))
    assert outcome.first is None, outcome.first


@pytest.mark.usefixtures("kernel")
def test_a_gro_receiver_with_losses_and_a_gro_sender_matches_the_kernel() -> None:
    hosts = {"a": {"gro": "30 us"}, "b": {"gro": "100 us"}}
    outcome = compare(experiment("cubic", "300 Mbit/s", hosts, loss=0.001))
    assert outcome.first is None, outcome.first


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("loss", [0, 0.001])
@pytest.mark.parametrize("rate", ["100 Mbit/s", "300 Mbit/s", "1 Gbit/s"])
@pytest.mark.parametrize("cc", ["cubic", "newreno", "bbr"])
def test_the_number_of_acks_matches_the_kernel(cc: str, rate: str, loss: float) -> None:
    for wait in ("20 us", "200 us"):
        plain = experiment(cc, rate, {"b": {"gro": wait}}, loss=loss)
        plain["record"] = {"samples": "off", "links": "100 ms"}
        sent = {backend: packets(results, "b>a") for backend, results in run(plain).items()}
        assert sent["sim"] == pytest.approx(sent["linux"], rel=0.05), wait


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("host", ["a", "b"])
@pytest.mark.parametrize(
    ("cpu", "cost_us"),
    [
        ({"packet": "20 us"}, 20.0),
        # Every second packet causes an ACK.
        ({"packet": "20 us", "ack": "8 us"}, 20 + 8 / 2),
    ],
)
def test_a_processor_sends_and_receives_as_many_packets_as_fit(
    cpu: Plain, cost_us: float, host: str
) -> None:
    plain = experiment("cubic", "1 Gbit/s", {host: {"cpu": cpu}})
    plain["flows"][0]["traffic"] = "bulk"
    plain["measure"] = {"from": "1 s"}
    for backend, results in run(plain).items():
        (goodput,) = results.flows["goodput_mbit_s"]
        assert goodput == pytest.approx(1448 * 8 / cost_us, rel=0.005), backend


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(("cc", "host"), [("cubic", "a"), ("newreno", "a"), ("cubic", "b")])
def test_a_host_that_takes_time_is_the_same_on_both_backends_at_every_ack(
    cc: str, host: str
) -> None:
    hosts = {host: {"cpu": {"packet": "20 us", "ack": "7 us"}}}
    outcome = compare(experiment(cc, "1 Gbit/s", hosts))
    assert outcome.first is None, outcome.first


def test_offload_cases_are_deterministic() -> None:
    cases = [draw(1, number, OFFLOAD) for number in range(20)]
    assert cases == [draw(1, number, OFFLOAD) for number in range(20)]
    for case in cases:
        assert json.loads(json.dumps(case.experiment))["hosts"]["server"]["gro"]
        made = as_experiment(case.experiment)
        assert len(made.plans("sim")) == len(made.plans("linux")) == 1
