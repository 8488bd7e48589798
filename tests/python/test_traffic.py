"""Traffic on both backends: the actions of each kind, and their times.

Expected values are arithmetic: sizes are those of IP packets, times are those of the file.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from test_linux import captured, flow, link, on_linux

import tcplab as lab

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.usefixtures("kernel")


def on_both(**settings: object) -> lab.Results:
    """Runs an experiment on both backends, which must agree on every transfer and datagram."""
    results = on_linux(**settings)
    ours = lab.run(lab.Experiment(**settings), backend="sim")  # type: ignore[arg-type]
    assert_equal(results, ours)
    return results


def assert_equal(one: lab.Results, other: lab.Results) -> None:
    """Compares transfers and flows one by one, to a microsecond."""
    exact = ["transfer", "class", "connection", "bytes", "outcome", "sent_segments"]
    for name, columns in [("transfers", exact), ("flows", ["bytes", "outcome", "sent_segments"])]:
        first, second = (getattr(run, name).sort("flow", *columns[:1]) for run in (one, other))
        for column in columns:
            assert first[column].to_list() == second[column].to_list(), (name, column)
        for column in ("start_s", "end_s", "completion_s"):
            expected = pytest.approx(first[column].to_list(), abs=1e-6, nan_ok=True)
            assert second[column].to_list() == expected, (name, column)


def way_ms(size: int) -> float:
    """The time of a packet of this many bytes: at 10 Mbit/s, plus 20 ms of propagation."""
    return 20 + size * 8 / 10e6 * 1e3


# SYN and SYN-ACK have 60 bytes; the ACK travels with the first request, or just before it.
OPENING_MS = 2 * way_ms(60)
ACK_MS = 52 * 8 / 10e6 * 1e3


def test_a_server_takes_its_time_for_each_answer() -> None:
    traffic = lab.RequestsTraffic(
        request="100 B", response="100 B", requests=4, server_time="30 ms", think="100 ms"
    )
    row = on_both(duration="3 s", network=link(), flows=[flow(traffic=traffic)]).flows.row(
        0, named=True
    )
    # After a pause the request carries the ACK of the previous answer, which arrived long ago.
    expected_ms = OPENING_MS + 4 * (2 * way_ms(152) + 30) + 3 * 100
    assert row["outcome"] == "completed"
    assert row["completion_s"] * 1e3 == pytest.approx(expected_ms, abs=4 * ACK_MS)


def test_sessions_have_their_own_requests_and_wait_for_the_server() -> None:
    classes = [
        lab.SessionClass(name="large question", count=1, size="100 B", request="1448 B"),
        lab.SessionClass(name="small question", count=2, size="100 B"),
    ]
    page = lab.WebTraffic(
        classes=classes, connections=1, request="400 B", server_time="50 ms", order="sequential"
    )
    flows = on_both(duration="3 s", network=link(), flows=[flow(traffic=page)]).transfers.sort(
        "transfer"
    )
    assert flows["class"].to_list() == ["large question", "small question", "small question"]
    exchanges = [way_ms(size) + 50 + way_ms(152) for size in (1500, 452, 452)]
    expected = [OPENING_MS + exchanges[0], *exchanges[1:]]
    assert (flows["completion_s"] * 1e3).to_list() == pytest.approx(expected, abs=4 * ACK_MS)


def test_the_objects_of_a_page_are_loaded_in_their_order() -> None:
    page = lab.WebTraffic(sizes=["12 kB", "3 kB", "80 kB", "1 kB"], connections=2)
    flows = on_both(duration="5 s", network=link(), flows=[flow(traffic=page)]).transfers.sort(
        "transfer"
    )
    assert flows["bytes"].to_list() == [12_000, 3_000, 80_000, 1_000]
    assert set(flows["class"]) == {"flow1"}
    starts, ends = flows["start_s"].to_list(), flows["end_s"].to_list()
    assert starts[2:] == pytest.approx(sorted(ends[:2]), abs=1e-6)


def test_transfers_begin_at_fixed_times() -> None:
    traffic = lab.ArrivalsTraffic(every="250 ms", sizes="5 kB")
    flows = on_both(duration="1 s", network=link(), flows=[flow(traffic=traffic)]).transfers.sort(
        "transfer"
    )
    assert flows["start_s"].to_list() == pytest.approx([0, 0.25, 0.5, 0.75], abs=1e-6)


def test_users_think_after_their_transfers() -> None:
    sizes = lab.LognormalSizes(median="8 kB", sigma=1, max="100 kB")
    traffic = lab.ArrivalsTraffic(users=3, think="300 ms", sizes=sizes, transfers=20)
    results = on_both(duration="10 s", network=link(), flows=[flow(traffic=traffic)])
    flows = results.transfers.sort("transfer")
    assert len(flows) == 20
    assert set(flows["outcome"]) == {"completed"}
    starts, ends = flows["start_s"].to_list(), flows["end_s"].to_list()
    assert starts[:3] == pytest.approx([0, 0, 0], abs=1e-6)
    # Each further transfer begins after a user's think time: after one of the earliest ends.
    assert sorted(starts[3:]) == pytest.approx([end + 0.3 for end in sorted(ends)[:17]], abs=1e-6)
    again = on_linux(duration="10 s", network=link(), flows=[flow(traffic=traffic)])
    assert again.digests == results.digests


def test_users_go_on_until_the_experiment_ends() -> None:
    traffic = lab.ArrivalsTraffic(users=2, think="1 s", sizes="1 kB")
    flows = on_both(duration="5 s", network=link(), flows=[flow(traffic=traffic)]).transfers.sort(
        "transfer"
    )
    # A handshake and one segment of 1052 bytes: each user begins every 1.061 s.
    each_s = 1 + (OPENING_MS + way_ms(1052)) / 1e3
    assert len(flows) == 2 * 5
    assert flows["start_s"].to_list()[-1] == pytest.approx(4 * each_s, abs=5e-3)


def test_a_load_makes_as_many_transfers_as_it_takes() -> None:
    traffic = lab.ArrivalsTraffic(load="50 %", sizes="20 kB")
    experiment = lab.Experiment(duration="20 s", network=link(), flows=[flow(traffic=traffic)])
    plan = experiment.plans("linux")[0]
    assert json.loads(plan.to_json())["flows"][0]["traffic"]["offered"] == 0.5
    results = lab.run(experiment, backend="linux")
    assert_equal(results, lab.run(experiment, backend="sim"))
    flows = results.transfers.sort("transfer")
    # 1448 of 1500 bytes are data: 30.17 transfers per second, 603 in 20 s; four standard
    # deviations.
    expected = 20 * 0.5 * 10e6 / (20_000 * 8 * 1500 / 1448)
    assert abs(len(flows) - expected) < 4 * expected**0.5


def test_random_gaps_have_their_mean_and_follow_the_seed() -> None:
    def times(seed: int) -> list[float]:
        traffic = lab.UdpTraffic(rate="2 Mbit/s", gaps="poisson", payload="222 B")
        results = on_linux(
            duration="4 s",
            seed=seed,
            network=link(rate="1 Gbit/s"),
            flows=[flow(traffic=traffic)],
            record=lab.Record(captures=["a>b"]),
        )
        return [time for time, _ in captured(results)]

    first = times(1)
    # A datagram of 250 bytes every ms: 4000 in 4 s; four standard deviations.
    assert abs(len(first) - 4000) < 4 * 4000**0.5
    gaps = [after - before for before, after in itertools.pairwise(first)]
    # Exponential: the share of gaps above the mean is 1/e; four standard deviations.
    share = sum(gap > 1e-3 for gap in gaps) / len(gaps)
    assert abs(share - 0.3679) < 4 * (0.3679 * 0.6321 / len(gaps)) ** 0.5
    assert times(1) == first
    assert times(2) != first


def test_datagrams_pause() -> None:
    traffic = lab.UdpTraffic(interval="10 ms", payload="972 B", on="25 ms", off="75 ms")
    results = on_linux(
        duration="250 ms",
        network=link(),
        flows=[flow(traffic=traffic)],
        record=lab.Record(captures=["a>b"]),
    )
    # Each period starts anew: three datagrams, at 0, 10 and 20 ms.
    expected = [period + k * 0.01 for period in (0, 0.1, 0.2) for k in range(3)]
    times = [time for time, _ in captured(results)]
    offset = times[0]
    assert [time - offset for time in times] == pytest.approx(expected, abs=1e-6)


def test_large_datagrams_travel_in_fragments() -> None:
    traffic = lab.UdpTraffic(interval="100 ms", payload="60 kB", packets=3)
    results = on_both(
        duration="2 s",
        network=link(queue="100 packets"),
        flows=[flow(traffic=traffic)],
        record=lab.Record(links="1 s"),
    )
    row = results.flows.row(0, named=True)
    assert (row["bytes"], row["outcome"], row["sent_segments"]) == (180_000, "completed", 3)
    # 60,008 bytes after the IP header, in fragments of at most 1480: 41 fragments.
    way = results.links.filter(link="a>b").row(-1, named=True)
    assert (way["sent_packets"], way["sent_bytes"]) == (3 * 41, 3 * (60_008 + 41 * 20))


def test_a_lost_fragment_costs_the_datagram() -> None:
    traffic = lab.UdpTraffic(interval="100 ms", payload="60 kB", packets=3)
    listed = lab.ListedLoss(packets=[50])
    row = on_both(
        duration="2 s",
        network=link(loss=listed, queue="100 packets"),
        flows=[flow(traffic=traffic)],
    ).flows.row(0, named=True)
    assert (row["bytes"], row["outcome"]) == (120_000, "partial")


def test_an_application_writes_in_pieces() -> None:
    def segments(**settings: str) -> int:
        traffic = lab.BulkTraffic(size="5120 B", **settings)
        stack = lab.Stack(nagle=False)
        flows = [flow(traffic=traffic, stack=stack)]
        row = on_both(duration="2 s", network=link(), flows=flows).flows.row(0, named=True)
        assert (row["bytes"], row["outcome"]) == (5120, "completed")
        return int(row["sent_segments"])

    # Without Nagle's algorithm each of ten writes leaves at once; else segments have 1448 bytes.
    assert segments(write="512 B") == 10
    assert segments() == 4


@pytest.mark.parametrize("example", ["datagrams", "load", "server_time", "sockets"])
def test_the_examples_give_the_same_on_both_backends(example: str) -> None:
    file = EXAMPLES / f"{example}.toml"
    one, other = (lab.run(file, backend=backend) for backend in ("linux", "sim"))
    assert_equal(one, other)
    delays = one.flows["delay_mean_ms"].to_list()
    assert other.flows["delay_mean_ms"].to_list() == pytest.approx(delays, abs=1e-6)


def test_a_server_polling_for_a_request_is_woken_by_write_space() -> None:
    # tcp_poll: with 66 kB just written, less than half as much is free. The next ACK fits the
    # buffer to the window (tcp_new_space), so that the last answer fills it later.
    sizes = ["30 kB", "66 kB", "66 kB", "600 kB"]
    web = lab.WebTraffic(sizes=sizes, connections=1, persistent=True, order="sequential")
    network = link(rate="20 Mbit/s", delay="22 ms", queue="20 packets")
    on_both(duration="3 s", network=network, flows=[flow(cc="newreno", traffic=web)])


def test_written_data_comes_in_larger_fragments_than_a_file() -> None:
    # skb_page_frag_refill: the kernel copies up to 32 kB at a time. Received segments are a
    # fragment each, and 17 are coalesced into one packet (tcp_try_coalesce), which decides what is
    # read first.
    traffic = lab.BulkTraffic(size="300 kB", write="4096 B")
    network = link(
        rate="20 Mbit/s",
        delay="62 ms",
        queue="100 packets",
        loss=lab.ListedLoss(packets=[20, 60, 100]),
    )
    on_both(duration="4 s", network=network, flows=[flow(cc="newreno", traffic=traffic)])


@pytest.mark.parametrize(("broken", "whole"), [(1600, 400), (1700, 0)])
def test_a_host_holds_so_many_fragments(broken: int, whole: int) -> None:
    # ipfrag_high_thresh: 4 MiB. A datagram whose second fragment is lost holds 2,504 bytes of that
    # for 30 s; with 1,676 such datagrams, further fragments are dropped and no datagram is
    # complete.
    lost = lab.ListedLoss(packets=[2 * number for number in range(1, broken + 1)])
    network = link(rate="100 Mbit/s", loss=lost, queue="5000 packets")
    traffic = lab.UdpTraffic(payload="2000 B", interval="400 us", packets=2000)
    row = on_both(duration="2 s", network=network, flows=[flow(traffic=traffic)]).flows.row(
        0, named=True
    )
    assert row["bytes"] == whole * 2000


def test_connections_to_a_host_share_the_path_mtu() -> None:
    # update_or_create_fnhe, ip_queue_xmit: open connections learn the MTU with the next packet, and
    # retransmit nothing for it; servers learn it with the SYN.
    links = [
        lab.Link(between=("a", "r"), rate="10 Mbit/s", delay="5 ms"),
        lab.Link(between=("r", "s"), rate="10 Mbit/s", delay="5 ms", mtu=900),
        lab.Link(between=("s", "b"), rate="10 Mbit/s", delay="5 ms"),
    ]
    # Two full segments, so that nothing arrives before both are retransmitted.
    first = lab.WebTraffic(sizes=["2896 B"], connections=1)
    second = lab.WebTraffic(sizes=["20 kB"], connections=1)
    pages = [flow(traffic=first), flow(traffic=second, start="25 ms")]
    on_both(duration="2 s", network=lab.Network(links=links), flows=pages)
