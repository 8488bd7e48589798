"""Twins of captures: estimates of a path are near the truth, and misfits are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tcplab as lab
from tcplab._capture.delivered import Delivery, Evidence
from tcplab._capture.path import path

BOTH = ["sender>router", "router>sender"]


def captured(folder: Path, captures: list[str] = BOTH, **settings: Any) -> Path:
    """A capture beside the sender of a path of 10 Mbit/s and 40 ms whose queue holds 30 packets."""
    far = {"rate": "10 Mbit/s", "delay": "19.99 ms", "queue": "30 packets"} | settings
    flows = far.pop("flows", None) or [
        lab.Flow(from_="sender", to="receiver", traffic=lab.BulkTraffic(size="8 MB"), cc="cubic")
    ]
    experiment = lab.Experiment(
        duration="12 s",
        record=lab.Record(captures=captures),
        network=lab.Network(
            links=[
                lab.Link(between=("sender", "router"), rate="1 Gbit/s", delay="10 us"),
                lab.Link(between=("router", "receiver"), **far),
            ]
        ),
        flows=flows,
    )
    results = lab.run(experiment)
    file = folder / "capture.pcapng"
    file.write_bytes(results.files(results.plans[0].id)["capture.pcapng"])
    return file


def told(table: Any, quantity: str) -> tuple[float | None, float | None, float | None]:
    """A twin's estimate of a quantity of the path: its value and range."""
    (row,) = table.filter(table["quantity"] == quantity).iter_rows(named=True)
    return row["value"], row["low"], row["high"]


def command(*arguments: str) -> int | None:
    """The exit status of `tcplab capture twin`."""
    from tcplab.cli._main import main  # noqa: PLC0415

    return main(["capture", "twin", *arguments])


def test_the_rate_is_that_of_packets_without_a_gap() -> None:
    # Packets of 1500 bytes, ten sent at once every second over 1 Mbit/s: 12 ms each. The round trip
    # of the first is 100 ms, including 12 ms for itself and 0.416 ms for its ACK of 52 bytes.
    deliveries = [
        Delivery(burst + 0.1 + 0.012 * number, 1500, burst, 1500, True, 1, 0.012)
        for burst in range(4)
        for number in range(10)
    ]
    sent = [one.last_sent for one in deliveries]
    found = path(Evidence(deliveries, sent, [], [], [1500] * 40))
    assert found.rate_bit_s.value == pytest.approx(1e6)
    assert found.base_rtt_s.value == pytest.approx(0.1 - 0.012 - 0.000416)
    # The last packet of a burst waits for nine others.
    assert found.queue_packets.value is None
    assert found.queue_packets.low == pytest.approx(9)


def test_the_twin_of_a_capture_behaves_like_it(tmp_path: Path) -> None:
    twin = lab.capture.twin(captured(tmp_path))
    for quantity, truth, share in [("base RTT", 40, 0.02), ("rate", 10, 0.05), ("queue", 30, 0.2)]:
        value, low, high = told(twin.path, quantity)
        assert value is not None
        assert low is not None
        assert high is not None
        assert value == pytest.approx(truth, rel=share), quantity
        assert low <= truth <= high, quantity
    assert twin.fits, twin.misfits
    assert twin.congestion_control == "cubic"
    file = tmp_path / "twin.toml"
    twin.write(file)
    again = lab.load(file)
    results = lab.run(again)
    assert results.flows["bytes"].to_list() == [8_000_000]
    faster = lab.run(again.changed({"flows.*.cc": "bbr"}))
    assert faster.flows["bytes"].to_list() == [8_000_000]


def test_packets_that_were_captured_twice_count_once(tmp_path: Path) -> None:
    plain, doubled = tmp_path / "plain", tmp_path / "doubled"
    plain.mkdir()
    doubled.mkdir()
    # Each segment is seen again behind the router, later than beside the sender.
    twice = captured(doubled, captures=[*BOTH, "router>receiver"])
    assert "duplicates" in lab.capture.info(twice).faults["fault"]
    once = lab.capture.twin(captured(plain))
    assert lab.capture.twin(twice).path.equals(once.path)


def test_random_losses_are_distinguished_from_queue_overflows(tmp_path: Path) -> None:
    file = captured(tmp_path, queue="200 packets", forward=lab.LinkSettings(loss=0.01))
    twin = lab.capture.twin(file, cc="cubic")
    value, low, high = told(twin.path, "loss")
    # About 5,500 packets: 55 losses, with two standard deviations of 7.4.
    assert value == pytest.approx(1.0, abs=0.27)
    assert low is not None
    assert high is not None
    assert low <= 1 <= high
    queue, least, _ = told(twin.path, "queue")
    assert queue is None
    assert least is not None
    assert least <= 200


def test_a_twin_that_differs_from_the_capture_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, twin = captured(tmp_path), tmp_path / "twin.toml"
    assert command(str(file), "--cc", "cubic", "--rate", "30M", "-o", str(twin)) == 1
    said = capsys.readouterr()
    assert "rate of bottleneck is 30 Mbit/s in the twin and 10 Mbit/s in the capture" in said.err
    assert "the twin is not vouched for" in said.out
    assert "# NOT VOUCHED FOR" in twin.read_text()
    assert command(str(file), "--cc", "cubic", "--format", "json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["fits"] is True
    assert {row["quantity"] for row in facts["path"]} == {"base RTT", "rate", "queue", "loss"}


def test_answers_of_a_server_have_a_twin(tmp_path: Path) -> None:
    traffic = lab.RequestsTraffic(request="400 B", response="4 MB", requests=1, server_time="30 ms")
    flow = lab.Flow(from_="sender", to="receiver", traffic=traffic, cc="cubic")
    twin = lab.capture.twin(captured(tmp_path, flows=[flow]))
    assert twin.fits, twin.misfits
    (flow,) = twin.experiment.flows  # type: ignore[misc, assignment]
    assert isinstance(flow.traffic, lab.RequestsTraffic)
    assert (flow.traffic.request, flow.traffic.response) == ("400 B", "4000000 B")
    assert flow.traffic.server_time is not None
    assert float(flow.traffic.server_time.removesuffix(" ms")) == pytest.approx(30, rel=0.01)


def test_a_window_that_is_too_small_is_in_the_twin(tmp_path: Path) -> None:
    # 20 kB in 40 ms are 4 Mbit/s; headers add a twentieth.
    flow = lab.Flow(
        from_="sender",
        to="receiver",
        traffic=lab.BulkTraffic(size="2 MB"),
        stack=lab.Stack(so_rcvbuf="20 kB"),
        cc="cubic",
    )
    twin = lab.capture.twin(captured(tmp_path, flows=[flow]))
    assert twin.fits, twin.misfits
    (row,) = twin.measures.filter(twin.measures["measure"] == "rate").iter_rows(named=True)
    assert row["twin"] == pytest.approx(4.2, rel=0.1)
    assert told(twin.path, "rate")[0] == pytest.approx(10, rel=0.05)


def test_captures_without_path_information_are_refused(tmp_path: Path) -> None:
    one_way = captured(tmp_path, captures=BOTH[:1])
    with pytest.raises(lab.ConfigError, match="round trip is not known"):
        lab.capture.twin(one_way)
    udp = lab.Flow(
        from_="sender",
        to="receiver",
        traffic=lab.UdpTraffic(interval="50 ms", payload="100 B", packets=5),
    )
    with pytest.raises(lab.ConfigError, match="no TCP connection of the capture has data"):
        lab.capture.twin(captured(tmp_path, flows=[udp]))
    with pytest.raises(lab.ConfigError, match="reads its capture twice"):
        lab.capture.twin("-")
    file = captured(tmp_path)
    for mistake, said in [
        ({"rate": "fast"}, "rate: 'fast' is not a quantity like '100 Mbit/s'"),
        ({"rtt": "0 ms"}, "rtt: '0 ms' is not a quantity like '40 ms'"),
        ({"queue": 0}, "queue: 0 is not at least 1 packet"),
        ({"connections": [3]}, "connection: 3 is none that has data"),
        ({"cc": "nothing"}, 'no congestion control is called "nothing"'),
    ]:
        with pytest.raises(lab.ConfigError, match=said):
            lab.capture.twin(file, **mistake)  # type: ignore[arg-type]
