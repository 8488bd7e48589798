"""The backend `linux`: its network, the kernel's algorithms, repeatability, and errors.

Expected values are arithmetic: sizes are those of IP packets, times are those of the file.
"""

from __future__ import annotations

import os
import re
import signal
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Command

import tcplab as lab
from fuzz.compare import as_experiment, compare
from fuzz.draw import KINDS, draw
from tcplab.cli._display import table

KERNEL_ALGORITHMS = [
    *("reno", "cubic", "bic", "vegas", "westwood+", "htcp", "highspeed", "hybla", "scalable"),
    *("bbr", "illinois", "veno", "yeah", "cdg", "nv", "lp", "dctcp"),
]

pytestmark = pytest.mark.usefixtures("kernel")


def link(**settings: object) -> lab.Network:
    """Two hosts and a link of 10 Mbit/s and 20 ms."""
    defaults = {"between": ("a", "b"), "rate": "10 Mbit/s", "delay": "20 ms"}
    return lab.Network(links=[lab.Link(**(defaults | settings))])  # type: ignore[arg-type]


def flow(**settings: object) -> lab.Flow:
    """A flow from host a to host b."""
    return lab.Flow(from_="a", to="b", **settings)  # type: ignore[arg-type]


def on_linux(**settings: object) -> lab.Results:
    """Runs an experiment on Linux."""
    return lab.run(lab.Experiment(**settings), backend="linux")  # type: ignore[arg-type]


def captured(results: lab.Results) -> Iterator[tuple[float, bytes]]:
    """The time and the first bytes of each packet in a capture."""
    content = results.files(results.plans[0].id)["capture.pcapng"]
    assert content[:4] == bytes.fromhex("0a0d0d0a")
    at = 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:
            _, high, low, kept = struct.unpack_from("<IIII", content, at + 8)
            yield (high << 32 | low) / 1e9, content[at + 28 : at + 28 + kept]
        at += length


def running_kernels(below: Path) -> list[str]:
    """The ids of our kernel processes that work below a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_kernel = b"tcplab.stream=" in (process / "cmdline").read_bytes()
            where = (process / "cwd").readlink()
        except OSError:
            # The process has ended.
            continue
        if is_kernel and below in where.parents:
            found.append(process.name)
    return found


def test_an_unloaded_round_trip_takes_the_configured_delay() -> None:
    questions = lab.RequestsTraffic(request="100 B", response="100 B", requests=20)
    results = on_linux(
        duration="3 s",
        network=link(),
        flows=[flow(traffic=questions)],
        record=lab.Record(samples="ack"),
    )
    row = results.flows.row(0, named=True)
    # Samples belong to the connection: they continue from one answer of 100 bytes to the next.
    acked = results.samples["acked_bytes"]
    assert acked.is_sorted()
    assert 1900 <= acked.max() <= 2000
    # 100 bytes of data, 20 of IP, 32 of TCP with timestamps: 152 bytes take 121.6 us in each
    # direction.
    round_trip_ms = 2 * (20 + 152 * 8 / 10e6 * 1e3)
    # SYN and SYN-ACK have 60 bytes each; the ACK travels with the first request.
    opening_ms = 2 * (20 + 60 * 8 / 10e6 * 1e3)
    expected_ms = opening_ms + 20 * round_trip_ms
    assert row["outcome"] == "completed"
    assert abs(row["completion_s"] * 1e3 - expected_ms) / 21 < 0.020
    # The first request follows the handshake; each further one begins when the previous answer
    # arrives.
    requests = results.transfers
    assert (requests["transfer"].to_list(), row["transfers"]) == (list(range(1, 21)), 20)
    expected = [opening_ms + round_trip_ms] + [round_trip_ms] * 19
    # Up to two ACKs of 52 bytes precede the first ones.
    ahead_ms = 2 * 52 * 8 / 10e6 * 1e3
    assert (requests["completion_s"] * 1e3).to_list() == pytest.approx(
        expected, abs=ahead_ms + 1e-3
    )
    assert requests["start_s"][1:].to_list() == requests["end_s"][:-1].to_list()
    assert requests["bytes"].to_list() == [100] * 20
    assert row["completion_p50_s"] * 1e3 == pytest.approx(round_trip_ms, abs=0.02)


def test_a_saturated_link_carries_its_rate() -> None:
    flood = lab.UdpTraffic(rate="12 Mbit/s")
    record = lab.Record(links="1 s", samples="off")
    results = on_linux(duration="5 s", network=link(), flows=[flow(traffic=flood)], record=record)
    there = results.links.filter(pl.col("link") == "a>b")
    sent = dict(zip(there["time_s"], there["sent_bytes"] - there["queue_bytes"], strict=True))
    assert abs((sent[5.0] - sent[1.0]) / (10e6 / 8 * 4) - 1) < 0.001
    assert there["utilisation"].tail(4).to_list() == pytest.approx([1.0] * 4, abs=0.001)


def test_a_full_queue_delays_by_its_length() -> None:
    results = on_linux(duration="10 s", network=link(queue="50 packets"), flows=[flow(cc="reno")])
    row = results.flows.row(0, named=True)
    packet_ms, ack_ms = 1500 * 8 / 10e6 * 1e3, 52 * 8 / 10e6 * 1e3
    full_ms = 40 + ack_ms + packet_ms + 50 * packet_ms
    assert row["retransmitted_segments"] > 0
    assert abs(row["rtt_max_ms"] - full_ms) <= packet_ms
    assert abs(row["rtt_min_ms"] - 40) < 2 * packet_ms
    assert results.links["queue_packets"].max() <= 50


def test_runs_repeat_to_the_last_bit() -> None:
    noisy = link(
        loss=lab.GilbertTimeLoss(good="500 ms", bad="20 ms"), jitter="1 ms", queue="30 packets"
    )
    unruly = link(
        loss="1 %",
        reordering=lab.Reordering(probability="1 %", delay="3 ms"),
        queue=lab.FqCodelQueue(),
    )
    experiments = [
        lab.Experiment(duration="3 s", network=noisy, flows=[flow(cc="cubic", count=3)]),
        lab.Experiment(
            duration="3 s",
            network=unruly,
            flows=[flow(cc="bbr", start_jitter="100 ms"), flow(cc="dctcp", name="other")],
            stack=lab.Stack(ecn=True),
            record=lab.Record(samples="ack"),
        ),
        lab.Experiment(
            duration="2 s",
            network=link(loss=lab.GilbertLoss(to_bad="1 %", to_good="30 %")),
            flows=[flow(traffic=lab.UdpTraffic(rate="2 Mbit/s")), flow(name="bulk", cc="vegas")],
        ),
        lab.Experiment(
            duration="5 s",
            network=link(loss="1 %", jitter="1 ms"),
            flows=[
                flow(traffic=web(order="parallel", connections=2)),
                flow(traffic=lab.ArrivalsTraffic(per_second=10, sizes="20 kB"), name="short"),
            ],
            record=lab.Record(samples="ack"),
        ),
    ]
    for experiment in experiments:
        digests = [lab.run(experiment, backend="linux").digests for _ in range(5)]
        assert all(digest == digests[0] for digest in digests), experiment


@pytest.fixture
def older_kernel() -> str:
    """Linux 6.1, if it has been built: building takes too long for a test."""
    if not any(kernel.name == "6.1" and not kernel.is_outdated for kernel in lab.kernels()):
        pytest.skip("there is no kernel 6.1; `tcplab kernel build --version 6.1` makes one")
    return "6.1"


def test_an_older_kernel_runs_the_same_and_repeats(older_kernel: str) -> None:
    experiment = lab.Experiment(
        duration="3 s",
        network=link(loss="1 %", jitter="1 ms", queue=lab.FqCodelQueue()),
        flows=[flow(cc="bbr"), flow(traffic=lab.BulkTraffic(size="100 kB"), name="short")],
        record=lab.Record(samples="ack"),
        sweep={"kernel": [lab.DEFAULT_KERNEL, older_kernel]},
    )
    results = [lab.run(experiment, backend="linux") for _ in range(3)]
    assert all(one.digests == results[0].digests for one in results)
    flows = results[0].joined("flows").filter(pl.col("flow") == "short")
    assert flows["outcome"].to_list() == ["completed"] * 2
    assert flows["bytes"].to_list() == [100_000] * 2
    versions = results[0].runs["version"].to_list()
    assert versions[0].startswith("6.12.")
    assert versions[1].startswith("6.1.")


def test_the_kernels_random_numbers_follow_the_seed() -> None:
    # CDG backs off at random.
    def windows(seed: int) -> list[int]:
        chain = lab.Chain(rate="10 Mbit/s", delay="10 ms", queue="30 packets")
        experiment = lab.Experiment(
            duration="5 s",
            seed=seed,
            network=lab.Network(chain=chain),
            flows=[lab.Flow(from_="client", to="server", cc="cdg")],
        )
        results = lab.run(experiment, backend="linux")
        return results.samples["cwnd_segments"].to_list()

    assert windows(1) == windows(1)
    assert windows(1) != windows(2)


def test_every_algorithm_of_the_kernel_completes_a_transfer() -> None:
    results = on_linux(
        duration="10 s",
        network=link(queue="1 BDP"),
        flows=[flow(traffic=lab.BulkTraffic(size="2 MB"))],
        sweep={"flows[0].cc": KERNEL_ALGORITHMS},
    )
    assert results.flows["cc"].to_list() == KERNEL_ALGORITHMS
    assert results.flows["outcome"].to_list() == ["completed"] * 17
    assert results.flows["bytes"].to_list() == [2_000_000] * 17


def test_a_hundred_flows_share_a_link() -> None:
    results = on_linux(
        duration="5 s",
        network=lab.Network(dumbbell=lab.Dumbbell(pairs=100, rate="100 Mbit/s", delay="10 ms")),
        flows=[lab.Flow(from_="left*", to="right*")],
    )
    assert len(results.flows) == 100
    assert (results.flows["bytes"] > 0).all()
    # Headers of 52 bytes in 1500 leave 96.5 %; slow start and 100 handshakes cost some more.
    assert 90 < results.flows["goodput_mbit_s"].sum() < 96.6


def test_listed_packets_are_lost_on_both_backends() -> None:
    experiment = lab.Experiment(
        duration="5 s",
        network=link(loss=lab.ListedLoss(packets=[20, 21, 500]), queue="1000 packets"),
        flows=[flow(traffic=lab.BulkTraffic(size="2 MB"), cc="newreno")],
    )
    for backend in ("sim", "linux"):
        drops = lab.run(experiment, backend=backend).drops
        assert drops["reason"].to_list() == ["LOST_ON_THE_WIRE"] * 3, backend
        assert set(drops["flow"]) == {"flow1"}
        assert set(drops["link"]) == {"a>b"}


RTTS = ["rtt_min_ms", "rtt_mean_ms", "rtt_max_ms"]


@pytest.mark.parametrize("options", [{"sack": False}, {"sack": False, "timestamps": False}, {}])
def test_rtts_are_the_same_on_both_backends(options: dict[str, bool]) -> None:
    experiment = lab.Experiment(
        duration="5 s",
        network=link(queue="400 packets"),
        flows=[flow(traffic=lab.BulkTraffic(size="1 MB"))],
        stack=lab.Stack(**options),  # type: ignore[arg-type]
    )
    sim, linux = (lab.run(experiment, backend=name).flows for name in ("sim", "linux"))
    for column in RTTS:
        # Within a microsecond, the kernel's unit.
        assert linux[column][0] == pytest.approx(sim[column][0], abs=1.1e-3), column
    # No RTT is below the path's: 20 ms each way, a full segment and an ACK.
    assert linux["rtt_min_ms"][0] > 40


@pytest.mark.parametrize("timestamps", [True, False])
def test_losses_without_sack_are_repaired_alike_on_both_backends(timestamps: bool) -> None:
    listed = lab.ListedLoss(packets=[20, 100, 101, 300])
    experiment = lab.Experiment(
        duration="5 s",
        network=link(queue="400 packets", loss=listed),
        flows=[flow(traffic=lab.BulkTraffic(size="1 MB"))],
        stack=lab.Stack(sack=False, timestamps=timestamps),
    )
    sim, linux = (lab.run(experiment, backend=name).flows for name in ("sim", "linux"))
    for column in ["sent_segments", "retransmitted_segments", "timeouts", "loss_episodes"]:
        assert sim[column].to_list() == linux[column].to_list(), column
    for column in ["completion_s", *RTTS]:
        assert sim[column][0] == pytest.approx(linux[column][0], rel=0.03), column


def test_a_retransmitted_handshake_is_not_a_data_retransmission() -> None:
    noisy = link(loss="30 %")
    short = lab.BulkTraffic(size="1 kB")
    experiment = lab.Experiment(
        duration="20 s",
        seed=3,
        network=noisy,
        flows=[flow(count=20, stagger="200 ms", traffic=short)],
    )
    for backend in ("sim", "linux"):
        flows = lab.run(experiment, backend=backend).flows
        opened = flows.filter(pl.col("sent_segments") > 0)
        # Each flow has one segment of data: everything beyond was retransmitted.
        beyond = opened["sent_segments"] - opened["retransmitted_segments"]
        assert set(beyond) == {1}, backend
        # Some flows waited a second or more for their handshake and sent their data once.
        late = opened.filter((pl.col("completion_s") > 1) & (pl.col("retransmitted_segments") == 0))
        assert len(late) > 0, backend
        # RTTs are of data sent once, and cannot be below the path's.
        assert flows["rtt_min_ms"].drop_nulls().min() > 40, backend  # type: ignore[operator]


def test_a_flow_that_never_connects_has_no_goodput() -> None:
    experiment = lab.Experiment(
        duration="3 s",
        network=link(loss="100 %"),
        flows=[flow(traffic=lab.BulkTraffic(size="1 MB")), flow(name="endless")],
    )
    for backend in ("sim", "linux"):
        results = lab.run(experiment, backend=backend)
        flows = results.flows
        assert flows["goodput_mbit_s"].to_list() == [None, None]
        assert flows["bottleneck_share"].to_list() == [None, None]
        assert flows["outcome"].to_list() == ["unfinished", "running"]
        assert flows["sent_segments"].to_list() == [0, 0]
        assert "nan" not in table(results)
        assert results.summary(by="cc")["jain_index"].to_list() == [None]


def test_datagrams_that_were_all_sent_end_with_the_last_arrival() -> None:
    # 10 datagrams every 10 ms; the third or the last is lost.
    lost = {"third": [3], "last": [10], "all": list(range(1, 11)), "none": [11]}
    for name, packets in lost.items():
        stream = lab.UdpTraffic(interval="10 ms", payload="972 B", packets=10)
        listed = lab.ListedLoss(packets=packets)
        results = on_linux(duration="5 s", network=link(loss=listed), flows=[flow(traffic=stream)])
        row = results.flows.row(0, named=True)
        assert row["outcome"] == ("completed" if name == "none" else "partial")
        # A datagram has 1000 bytes: 0.8 ms at 10 Mbit/s, plus 20 ms of propagation.
        last_s = {"last": 0.08 + 0.0208, "all": 0.09}.get(name, 0.09 + 0.0208)
        assert row["end_s"] == pytest.approx(last_s, abs=1e-4), name
        assert (row["completion_s"] is None) == (name != "none")
        bits = row["bytes"] * 8
        assert row["goodput_mbit_s"] == pytest.approx(bits / last_s / 1e6, rel=2e-3)
        assert row["bytes"] == 972 * (10 - len([one for one in packets if one <= 10]))
        assert (row["transport"], row["cc"]) == ("udp", None)
        assert row["lost_packets"] == len([one for one in packets if one <= 10])
        delays = [row[f"delay_{one}_ms"] for one in ("min", "mean", "p50", "p95", "p99")]
        if name == "all":
            assert delays == [None] * 5
        else:
            assert delays == pytest.approx([20.8] * 5, abs=2e-6)
            assert (row["jitter_ms"], row["ipdv_ms"]) == pytest.approx((0, 0), abs=2e-6)


def test_delays_of_a_burst_are_those_of_arithmetic() -> None:
    # 1000 bytes take 0.8 ms and arrive every 0.4 ms: each waits 0.4 ms longer than the one before.
    burst = lab.UdpTraffic(interval="400 us", payload="972 B", packets=5)
    results = on_linux(duration="2 s", network=link(), flows=[flow(traffic=burst)])
    row = results.flows.row(0, named=True)
    assert (row["lost_packets"], row["reordered_packets"]) == (0, 0)
    assert row["delay_min_ms"] == pytest.approx(20.8, abs=2e-6)
    assert row["delay_mean_ms"] == pytest.approx(21.6, abs=2e-6)
    assert row["delay_p50_ms"] == pytest.approx(21.6, abs=2e-6)
    assert row["delay_p95_ms"] == row["delay_p99_ms"] == pytest.approx(22.4, abs=2e-6)
    # RFC 3550: J approaches 0.4 ms by a sixteenth of the difference, four times; RFC 3393: 0.4 ms
    # each.
    assert row["jitter_ms"] == pytest.approx(0.4 * (1 - (15 / 16) ** 4), abs=2e-6)
    assert row["ipdv_ms"] == pytest.approx(0.4, abs=2e-6)


def test_datagrams_without_room_for_a_number_have_no_delay() -> None:
    stream = lab.UdpTraffic(interval="10 ms", payload="7 B", packets=5)
    results = on_linux(duration="2 s", network=link(), flows=[flow(traffic=stream)])
    row = results.flows.row(0, named=True)
    assert (row["bytes"], row["sent_segments"], row["outcome"]) == (35, 5, "completed")
    assert (row["lost_packets"], row["delay_min_ms"], row["jitter_ms"]) == (None, None, None)


def test_options_reach_the_kernel() -> None:
    results = on_linux(
        duration="2 s",
        network=link(queue="1000 packets"),
        flows=[flow(traffic=lab.BulkTraffic(size="1 MB"))],
        record=lab.Record(samples="ack"),
        sweep={"stack.initial_window": [2, 20]},
    )
    # The first ACK finds the first window, and slow start adds the one or two segments that it
    # covers.
    first = results.joined("samples").group_by("stack.initial_window", maintain_order=True).first()
    assert first["cwnd_segments"].to_list()[0] in (3, 4)
    assert first["cwnd_segments"].to_list()[1] in (21, 22)


@pytest.mark.parametrize(
    "cc",
    [
        {"name": "bic", "beta": 512, "fast_convergence": False},
        {"name": "hybla", "rtt0": 100},
        {"name": "htcp", "use_rtt_scaling": False},
    ],
    ids=lambda cc: cc["name"],
)
def test_parameters_of_kernel_modules_mean_the_same_on_both_backends(
    cc: dict[str, object],
) -> None:
    def windows(backend: str, cc: dict[str, object]) -> list[int]:
        experiment = lab.Experiment(
            duration="5 s",
            network=lab.Network(
                dumbbell=lab.Dumbbell(rate="10 Mbit/s", delay="18 ms", queue="1 BDP")
            ),
            flows=[lab.Flow(from_="left1", to="right1")],
            stack=lab.Stack(profile="linux-6.12", cc=cc),
            record=lab.Record(samples="ack"),
        )
        samples: pl.DataFrame = lab.run(experiment, backend=backend).samples
        # Covers slow start, the first losses, and some time after.
        return samples["cwnd_segments"].head(2000).to_list()

    assert windows("sim", cc) == windows("linux", cc)
    assert windows("sim", cc) != windows("sim", {"name": cc["name"]})


@pytest.mark.parametrize(
    ("options", "times"),
    [
        # SYN timers expire at a multiple of 64 ms, 16 ms after it (INITIAL_JIFFIES); the user
        # timeout cuts the last wait short.
        ({"user_timeout": "5 s"}, [0, 1.04, 2.064, 3.088, 4.112]),
        ({"syn_retries": 2, "syn_linear_timeouts": 1}, [0, 1.04, 2.064, 4.112]),
        ({"syn_retries": 3, "syn_linear_timeouts": 0}, [0, 1.04, 3.088, 7.12]),
    ],
)
def test_both_backends_give_up_a_connection_alike(
    options: dict[str, object], times: list[float]
) -> None:
    experiment = lab.Experiment(
        duration="20 s",
        network=link(loss="100 %"),
        flows=[flow(traffic=lab.BulkTraffic(size="1 MB"))],
        stack=lab.Stack(**options),  # type: ignore[arg-type]
    )
    for backend in ("sim", "linux"):
        results = lab.run(experiment, backend=backend)
        assert results.flows["outcome"].to_list() == ["timed out"], backend
        assert results.drops["time_s"].to_list() == pytest.approx(times, abs=1e-6), backend


def test_both_backends_retransmit_a_syn_ack_alike() -> None:
    lossy = lab.LinkSettings(loss="100 %")
    experiment = lab.Experiment(
        duration="20 s",
        network=link(back=lossy),
        flows=[flow(traffic=lab.BulkTraffic(size="1 MB"))],
        stack=lab.Stack(syn_retries=1, syn_linear_timeouts=0),
        sweep={"stack.syn_ack_retries": [1, 3]},
    )
    lost = {
        backend: lab.run(experiment, backend=backend).drops["time_s"].to_list()
        for backend in ("sim", "linux")
    }
    # The SYN arrives at 20 ms and again at 1.06 s, and each is answered; the timer repeats the
    # rest.
    assert lost["sim"] == pytest.approx(lost["linux"], abs=1e-6)


def test_a_spurious_syn_retransmission_keeps_the_initial_window_on_both_backends() -> None:
    # The answer to the first SYN arrives after 2.4 s, when the third has left. If timestamps tell
    # which SYN was answered, the first window is ten segments, else one: tcp_try_undo_spurious_syn.
    experiment = lab.Experiment(
        duration="8 s",
        network=link(delay="1.2 s"),
        flows=[flow(traffic=lab.BulkTraffic(size="1 MB"), cc="newreno")],
        record=lab.Record(links="100 ms"),
        sweep={"stack.timestamps": [True, False]},
    )
    for backend in ("sim", "linux"):
        links = lab.run(experiment, backend=backend).joined("links")
        there = links.filter(pl.col("link") == "a>b", pl.col("time_s").is_in([2.3, 3.3]))
        packets = there.group_by("stack.timestamps", maintain_order=True).agg(
            pl.col("sent_bytes").last() - pl.col("sent_bytes").first()
        )
        sent = packets["sent_bytes"].to_list()
        assert sent[0] > 10 * 1400, backend
        assert sent[1] < 2 * 1500, backend


def test_keepalives_are_sent_on_both_backends() -> None:
    experiment = lab.Experiment(
        duration="30 s",
        network=link(),
        flows=[flow(traffic=lab.OnOffTraffic(periods=[("0 s", "1 s")]))],
        stack=lab.Stack(keepalive=lab.Keepalive(idle="5 s", interval="2 s")),
        record=lab.Record(links="1 s"),
    )
    for backend in ("sim", "linux"):
        links = lab.run(experiment, backend=backend).links
        there = links.filter(pl.col("link") == "a>b")
        sent = dict(zip(there["time_s"], there["sent_packets"], strict=True))
        # The last data is acknowledged at about 1 s: both ends probe at about 6, 11, 16, 21 and 26
        # s, and answer as often.
        assert sent[30.0] - sent[5.0] == 10, backend


@pytest.mark.parametrize("lost", [[], [2], [4]])
def test_fast_open_is_the_same_on_both_backends(lost: list[int]) -> None:
    # Of the packets with data, the second is the SYN of the second transfer, and the fourth is the
    # first after the SYN of the third.
    sizes = ["1 kB", "1 kB", "30 kB"]
    experiment = lab.Experiment(
        duration="12 s",
        network=link(loss=lab.ListedLoss(packets=lost)),
        flows=[
            flow(name=f"t{i}", start=f"{4 * i} s", traffic=lab.BulkTraffic(size=size))
            for i, size in enumerate(sizes)
        ],
        stack=lab.Stack(profile="linux-6.12", fast_open=True),
    )
    times = {
        backend: lab.run(experiment, backend=backend).flows["completion_s"].to_list()
        for backend in ("sim", "linux")
    }
    assert times["sim"] == pytest.approx(times["linux"], abs=1e-6)
    if 2 not in lost:
        # One direction, and 1000 bytes with 72 of headers: everything is in the SYN.
        assert times["sim"][1] == pytest.approx(0.020 + 1072 * 0.8e-6, abs=1e-6)


def test_a_server_answers_before_the_handshake_ends() -> None:
    questions = lab.RequestsTraffic(request="100 B", response="100 B", requests=1)
    results = on_linux(
        duration="3 s",
        network=link(),
        flows=[flow(name=f"r{i}", start=f"{i} s", traffic=questions) for i in range(2)],
        stack=lab.Stack(fast_open=True),
    )
    # A request in a SYN: 100 bytes and 72 of headers; the answer, after a SYN-ACK of 60, has 152.
    expected = 2 * 0.020 + (172 + 60 + 152) * 0.8e-6
    assert results.flows["completion_s"].to_list()[1] == pytest.approx(expected, abs=1e-6)


def narrow(**settings: object) -> lab.Network:
    """A path whose middle link has a smaller MTU than its ends."""
    wide = {"rate": "100 Mbit/s", "delay": "5 ms"}
    middle = {"rate": "10 Mbit/s", "delay": "15 ms", "mtu": 1000} | settings
    links = [(("a", "r"), wide), (("r", "q"), middle), (("q", "b"), wide)]
    return lab.Network(
        links=[lab.Link(between=ends, **link) for ends, link in links]  # type: ignore[arg-type]
    )


def test_the_largest_packet_of_a_path_is_found_on_both_backends() -> None:
    experiment = lab.Experiment(
        duration="10 s",
        network=narrow(),
        flows=[
            flow(name=name, start=start, cc="newreno", traffic=lab.BulkTraffic(size="1 MB"))
            for name, start in [("first", "0 s"), ("second", "5 s")]
        ],
        stack=lab.Stack(profile="linux-6.12"),
        sweep={"stack.path_mtu": ["known", "discovered"]},
    )
    sim, linux = (lab.run(experiment, backend=backend) for backend in ("sim", "linux"))
    times = zip(sim.flows["completion_s"], linux.flows["completion_s"], strict=True)
    assert all(mine == pytest.approx(theirs, rel=0.005) for mine, theirs in times)
    for results in (sim, linux):
        too_large = results.drops.filter(pl.col("reason") == "PKT_TOO_BIG")
        # The whole first window is too large, and nothing once the path MTU is known.
        assert too_large["flow"].to_list() == ["first"] * 10


def test_the_mss_applies_until_the_path_mtu_is_known() -> None:
    # The MSS is above the path's MTU and below the first link's: the first packets have that size.
    experiment = lab.Experiment(
        duration="2 s",
        network=narrow(),
        flows=[flow(cc="newreno", traffic=lab.BulkTraffic(size="30 kB"))],
        stack=lab.Stack(mss=1200),
        record=lab.Record(packets=["a>r"]),
    )
    sim, linux = (lab.run(experiment, backend=backend) for backend in ("sim", "linux"))
    assert sim.packets["bytes"].max() == linux.packets["bytes"].max() == 1240
    assert sim.flows["completion_s"].to_list() == linux.flows["completion_s"].to_list()


def test_probing_reaches_the_kernel() -> None:
    # Path MTU probing starts at 1024 bytes.
    for probing, largest in [("off", 1500), ("always", 1076)]:
        results = on_linux(
            duration="1 s",
            network=link(),
            flows=[flow(traffic=lab.BulkTraffic(size="10 kB"))],
            stack=lab.Stack(mtu_probing=probing),
            record=lab.Record(captures=["a>b"]),
        )
        sizes = [struct.unpack_from("!H", packet, 2)[0] for _, packet in captured(results)]
        assert max(sizes) == largest


def test_routers_of_the_kernel_say_when_a_packet_is_too_large() -> None:
    with pytest.raises(lab.ConfigError, match=r"links\[1\]\.icmp: .*sends no ICMP errors"):
        on_linux(duration="1 s", network=narrow(icmp=False), flows=[flow()])
    with pytest.raises(lab.ConfigError, match=r"links\[1\]\.mtu: .*552"):
        on_linux(duration="1 s", network=narrow(mtu=500), flows=[flow()])
    known = lab.Stack(path_mtu="known")
    on_linux(duration="1 s", network=narrow(mtu=500, icmp=False), flows=[flow()], stack=known)


def test_flows_of_one_host_may_have_different_options() -> None:
    stacks = [
        {"timestamps": False, "tlp": False},
        {"ecn": True, "window_scaling": False, "app_win": 2},
        {"rmem": "200 kB", "dup_thresh": 6, "initial_window": 4},
        {},
    ]
    flows = [
        {"from": "client", "to": "server", "start": f"{0.2 * number:g} s", "stack": stack}
        for number, stack in enumerate(stacks)
    ]
    outcome = compare(
        {
            "duration": "6 s",
            "network": {"chain": {"hops": 2, "rate": "10 Mbit/s", "delay": "10 ms"}},
            "flows": flows,
            "record": {"samples": "ack", "links": "off"},
        }
    )
    assert outcome.first is None, outcome.first


@pytest.mark.parametrize("kind", ["two hosts", "antiparallel"])
def test_separate_namespaces_change_no_result(kind: str) -> None:
    def samples(retries: list[int]) -> pl.DataFrame:
        """Samples of flows between two hosts, with these numbers of SYN-ACK retries in turn. No
        packet of a handshake is lost, so the retries only force separate namespaces.
        """
        plain = draw(5, list(KINDS).index(kind)).experiment
        assert len(plain["flows"]) > 1
        for number, one in enumerate(plain["flows"]):
            one["stack"] = {"syn_ack_retries": retries[number % len(retries)]}
        return lab.run(as_experiment(plain), backend="linux").samples.drop("run")

    assert samples([5]).equals(samples([5, 6, 7]))


def test_options_of_a_host_reach_the_segments_of_their_flow_alone() -> None:
    results = on_linux(
        duration="1 s",
        network=link(),
        flows=[flow(stack=lab.Stack(timestamps=False)), flow()],
        record=lab.Record(packets=["a>b"]),
    )
    largest = results.packets.group_by("flow").agg(pl.col("payload_bytes").max()).sort("flow")
    # 1500 bytes minus 40 of headers, and 12 of timestamps.
    assert largest.rows() == [("flow1", 1460), ("flow2", 1448)]


def offered(**options: object) -> tuple[int, int]:
    """The window of a SYN-ACK, and the greatest later one; both backends must agree."""
    experiment = lab.Experiment(
        duration="2 s",
        network=link(rate="100 Mbit/s"),
        flows=[flow(stack=lab.Stack(**options))],  # type: ignore[arg-type]
        record=lab.Record(packets=["b>a"]),
    )
    kernel, sim = (
        lab.run(experiment, backend=backend).packets.filter(pl.col("point") == "leave")
        for backend in ("linux", "sim")
    )
    assert kernel["window"].to_list() == sim["window"].to_list()
    windows = kernel["window"]
    return int(windows[0]), int(windows.max())  # type: ignore[arg-type]


def test_buffers_set_by_programs_are_fixed_and_bounded() -> None:
    # The memory is doubled, and half of it is window until more is known, in whole segments of 1448
    # bytes: 13 of them. Each takes at least 2304 bytes of memory.
    first, most = offered(window_scaling=False, so_rcvbuf="20 kB")
    assert first == 13 * 1448
    assert first < most <= 40_000 * 1448 / 2304
    # The value is limited by the host's.
    assert offered(window_scaling=False, so_rcvbuf="20 MB", rmem_max="20 kB") == (first, most)


def test_programs_and_routes_limit_windows() -> None:
    # tcp_select_initial_window: 20 whole segments of 1448 bytes; unscaled windows of up to 65535.
    first, most = offered(window_clamp="30 kB")
    assert (first, most) == (20 * 1448, 65_535)
    assert offered(initial_receive_window=10)[0] == 10 * 1448


def test_a_route_names_the_congestion_control_of_programs() -> None:
    # TCP_CONGESTION is option 13. The last program asks for another algorithm and gets it; a
    # route's applies to connections whose `cc` is not the kernel's own.
    ask = (
        "import socket; s = socket.socket(); {asks}s.connect(('{{server}}', 7000)); "
        "print(s.getsockopt(6, 13, 16).rstrip(bytes(1)).decode())"
    )
    wants = "s.setsockopt(6, 13, b'reno'); "
    server = "python3 -c \"import socket; s = socket.create_server(('', 7000)); s.accept()\""

    def used(cc: str, asks: str = "") -> str:
        client = f'sleep 1; python3 -c "{ask.format(asks=asks)}"'
        results = on_linux(
            duration="4 s",
            network=link(),
            flows=[flow(cc=cc, traffic=lab.CommandTraffic(server=server, client=client))],
        )
        printed = results.files(results.plans[0].id)["flow1-client.txt"]
        return printed.decode().strip()

    assert used("bbr") == "bbr"
    assert used("bbr", wants) == "bbr"
    assert used("cubic") == "cubic"
    assert used("cubic", wants) == "reno"


def test_tcp_mem_on_linux_is_shared_by_all_hosts() -> None:
    limits = lab.Memory(low="100 kB", pressure="150 kB", high="200 kB")
    with pytest.raises(lab.ConfigError, match=r"stack\.mem: .*of the machine"):
        on_linux(duration="1 s", network=link(), flows=[flow()], stack=lab.Stack(mem=limits))


def test_times_that_the_kernel_cannot_count_are_refused() -> None:
    fine = lab.Stack(keepalive=lab.Keepalive(idle="500 ms"), user_timeout="1 us")
    with pytest.raises(
        lab.ConfigError, match=r"user_timeout: .*fraction of a millisecond"
    ) as raised:
        on_linux(duration="1 s", network=link(), flows=[flow()], stack=fine)
    assert "keepalive.idle: a keepalive time that is not a whole number" in str(raised.value)


def test_a_receive_buffer_that_the_kernel_does_not_take_is_refused(kernel: lab.Kernel) -> None:
    def planned(rmem: str) -> list[lab._core.Plan]:
        small = lab.Stack(rmem=rmem)
        return lab.Experiment(duration="1 s", network=link(), flows=[flow()], stack=small).plans(
            "linux"
        )

    with pytest.raises(lab.ConfigError, match=r"stack\.rmem: .*4096 B"):
        planned("4095 B")
    # The kernel accepts the value, or the run would fail.
    on_linux(duration="1 s", network=link(), flows=[flow()], stack=lab.Stack(rmem="4096 B"))


def test_an_older_kernel_has_no_linear_timeouts(older_kernel: str) -> None:
    def lost(count: int) -> list[float]:
        results = on_linux(
            duration="5 s",
            kernel=older_kernel,
            network=link(loss="100 %"),
            flows=[flow()],
            stack=lab.Stack(syn_linear_timeouts=count),
        )
        return results.drops["time_s"].to_list()

    assert len(lost(0)) == 3
    with pytest.raises(lab.ConfigError, match=r"syn_linear_timeouts: .*since 6\.5"):
        lost(2)


def test_packets_are_captured_with_virtual_times() -> None:
    results = on_linux(
        duration="2 s",
        network=link(),
        flows=[flow(traffic=lab.BulkTraffic(size="100 kB"))],
        record=lab.Record(captures=["a>b", "b>a"]),
    )
    times = [time for time, _ in captured(results)]
    assert len(times) == results.links.filter(pl.col("time_s") == 2.0)["sent_packets"].sum()
    assert times == sorted(times)
    # The SYN leaves at the start; its answer leaves 20 ms and 48 us later.
    assert times[0] == pytest.approx(0, abs=1e-6)
    assert times[1] == pytest.approx(0.020048, abs=2e-6)


@pytest.mark.parametrize("queue", ["20 packets", {"kind": "codel", "limit": "30 packets"}])
def test_both_backends_have_the_same_rows_of_packets(queue: Any) -> None:
    upload = flow(traffic=lab.BulkTraffic(size="1 MB"))
    download = lab.Flow(from_="b", to="a", start="0.1 s", traffic=lab.BulkTraffic(size="200 kB"))
    experiment = lab.Experiment(
        duration="3 s",
        network=link(queue=queue, loss=lab.ListedLoss(packets=[4])),
        flows=[upload, download],
        record=lab.Record(packets=["a>b", "b>a"]),
    )
    kernel, sim = (lab.run(experiment, backend=backend).packets for backend in ("linux", "sim"))
    assert set(kernel["point"]) == {"enter", "leave", "arrive", "drop"}
    # One loss on the wire in each direction.
    assert (kernel["point"] == "drop").sum() >= 2
    assert points(kernel) == points(sim)
    # The handshake, from which the sequence numbers of data continue.
    first = kernel.filter(pl.col("payload_bytes") > 0).row(0, named=True)
    leaving = kernel.filter((pl.col("point") == "leave") & (pl.col("flow") == "flow1"))
    syn, answer = leaving.row(0, named=True), leaving.row(1, named=True)
    assert (syn["flags"], answer["flags"]) == ("SYN", "SYN ACK")
    assert answer["ack"] == first["seq"] == (syn["seq"] + 1) % 2**32


@pytest.mark.parametrize(
    "traffic",
    [
        lab.WebTraffic(sizes=["1 kB"], connections=1),
        lab.ArrivalsTraffic(users=1, transfers=1, sizes="1 kB"),
    ],
)
@pytest.mark.parametrize("at", ["25 ms", "35 ms"])
def test_late_packets_of_closed_connections_are_answered_alike(
    traffic: lab.WebTraffic | lab.ArrivalsTraffic, at: str
) -> None:
    # tcp_timewait_state_process, tcp_v4_send_reset: while a connection closes, its path becomes
    # forty times as long. Data and FINs are retransmitted, and meet the remains of the connection.
    experiment = lab.Experiment(
        duration="5 s",
        network=link(rate="10 Mbit/s", delay="10 ms", delay_changes=[[at, "400 ms"]]),
        flows=[flow(traffic=traffic)],
        record=lab.Record(packets=["a>b", "b>a"]),
    )
    kernel, sim = (lab.run(experiment, backend=backend).packets for backend in ("linux", "sim"))
    assert (kernel["flags"] == "RST").any()
    assert points(kernel) == points(sim)


def points(packets: pl.DataFrame) -> list[tuple[object, ...]]:
    """The rows of a table of packets, rows of one nanosecond in alphabetical order, with sequence
    numbers relative to the handshake.
    """
    # Transmission on `sim` may begin within a nanosecond; the kernel counts whole ones.
    rows = packets.with_columns((pl.col("time_s") * 1e9 + 1e-3).floor().alias("time_ns"))
    is_syn = pl.col("flags").str.contains("SYN") & (pl.col("point") == "enter")
    syns = rows.filter(is_syn).unique(["flow", "link"], keep="first", maintain_order=True)
    initial = {(row["flow"], row["link"]): row["seq"] for row in syns.iter_rows(named=True)}
    back = {"a>b": "b>a", "b>a": "a>b"}

    def plain(row: dict[str, Any]) -> tuple[object, ...]:
        flow, link, ack = row["flow"], row["link"], row["ack"]
        seq = (row["seq"] - initial[flow, link]) % 2**32
        ack = None if ack is None else (ack - initial[flow, back[link]]) % 2**32
        # The kernel sets no PSH on a FIN without data; `sim` does.
        flags = str(row["flags"]).replace("FIN PSH", "FIN")
        rest = ["transport", "ecn", "window", "payload_bytes", "bytes"]
        return (row["time_ns"], link, row["point"], flow, seq, ack, flags, *map(row.get, rest))

    return sorted((plain(row) for row in rows.iter_rows(named=True)), key=repr)


SERVER = (
    "python3 -c \"import socket; connection = socket.create_server(('', 7000)).accept()[0]; "
    "connection.sendall(bytes(300000)); print('sent')\""
)

CLIENT = (
    "python3 -c \"import socket; connection = socket.create_connection(('{server}', 7000)); "
    "print('received', sum(map(len, iter(lambda: connection.recv(65536), b''))))\""
)


def test_programs_send_traffic_on_linux() -> None:
    programs = lab.CommandTraffic(server=SERVER, client=CLIENT)
    results = on_linux(duration="5 s", network=link(), flows=[flow(traffic=programs)])
    files = results.files(results.plans[0].id)
    assert files["flow1-client.txt"] == b"received 300000\n"
    assert files["flow1-server.txt"] == b"sent\n"
    row = results.flows.row(0, named=True)
    assert (row["from"], row["to"], row["bytes"]) == ("a", "b", 300_000)


def test_a_server_of_ipv6_that_serves_ipv4_is_observed() -> None:
    server = SERVER.replace("('', 7000)", "('::', 7000), family=10, dualstack_ipv6=True")
    programs = lab.CommandTraffic(server=server, client=CLIENT)
    results = on_linux(duration="5 s", network=link(), flows=[flow(traffic=programs)])
    row = results.flows.row(0, named=True)
    assert (row["from"], row["bytes"], row["transfers"]) == ("a", 300_000, 1)
    # 1448 bytes of data in a segment of 1500 bytes: 207.2 segments.
    assert row["sent_segments"] >= 208
    assert row["rtt_min_ms"] >= 40
    assert len(results.samples) > 0


def test_programs_that_are_never_answered_are_known_too() -> None:
    client = (
        "python3 -c \"import socket; socket.create_connection(('{server}', 7000), 3.5)\" || true"
    )
    programs = lab.CommandTraffic(server=SERVER, client=client)
    results = on_linux(duration="5 s", network=link(loss="100 %"), flows=[flow(traffic=programs)])
    assert results.flows.select("flow", "bytes", "transfers").rows() == [("flow1", 0, 1)]
    assert results.transfers.select("flow", "transfer", "bytes").rows() == [("flow1", 1, 0)]
    # Linux retransmits a SYN four times at intervals of a second before it backs off
    # (tcp_syn_linear_timeouts): at 0, 1, 2 and 3 s.
    assert results.drops["flow"].to_list() == ["flow1"] * 4


def test_programs_that_fail_are_named() -> None:
    programs = lab.CommandTraffic(server="sleep 1", client="echo no such thing; exit 3")
    with pytest.raises(lab.RunError, match=r"(?s)flow1: the client .* status 3.*no such thing"):
        on_linux(duration="2 s", network=link(), flows=[flow(traffic=programs)])


def broken_run(tcplab: Command, folder: Path, client: str) -> str:
    """The error of an experiment whose program breaks the guest; nothing may be left of it."""
    (folder / "broken.toml").write_text(
        'duration = "5 s"\n'
        'network.links = [{ between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" }]\n'
        '[[flows]]\nfrom = "a"\nto = "b"\n'
        f'traffic = {{ kind = "command", server = "sleep 4", client = \'{client}\' }}\n'
    )
    (folder / "temporary").mkdir()
    done = tcplab("run", "broken.toml", "--on", "linux", "--out", "out")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert list((folder / "temporary").iterdir()) == []
    assert running_kernels(folder) == []
    return done.stderr


def break_kernel(below: Path) -> None:
    """Sends the kernel whose files are below a folder a signal for an invalid memory access."""
    for _ in range(400):
        time.sleep(0.05)
        # Its child processes share its command line and folder; the kernel itself is the first.
        kernels = [int(one) for one in running_kernels(below)]
        # The kernel has booted when process 1 has made this folder; half a second later it is
        # running.
        if kernels and list(below.glob("*/sys")):
            time.sleep(0.5)
            os.kill(min(kernels), signal.SIGSEGV)
            return


def test_a_kernel_panic_is_reported_with_the_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    attack = threading.Thread(target=break_kernel, args=[tmp_path])
    attack.start()
    with pytest.raises(lab.RunError) as failed:
        on_linux(duration="10 min", network=link(rate="1 Gbit/s"), flows=[flow(count=4)])
    attack.join()
    said = str(failed.value)
    assert "the kernel ended before the experiment did; its last lines were:" in said
    # The rest of the line depends on what the kernel was doing.
    assert "Kernel panic - not syncing: " in said
    # Messages about terminals of the machine are suppressed.
    assert "check_one_sigio" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_guest_whose_clock_stalls_is_killed_after_the_timeout(
    tcplab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("TCPLAB_STALL_TIMEOUT", "3")
    said = broken_run(tcplab, tmp_path, "sleep 1; while :; do :; done")
    assert "the guest's clock has stood still for 3 s at 1" in said
    assert "`TCPLAB_STALL_TIMEOUT` sets how many seconds may pass" in said


@pytest.mark.parametrize("timeout", ["long", "0", "-1", ""])
def test_an_invalid_stall_timeout_is_refused(timeout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCPLAB_STALL_TIMEOUT", timeout)
    with pytest.raises(lab.RunError, match=r"TCPLAB_STALL_TIMEOUT: .* is not a number of seconds"):
        on_linux(duration="1 s", network=link(), flows=[flow()])


def web(**settings: object) -> lab.WebTraffic:
    """Three sessions of one segment each, one after another."""
    defaults: dict[str, object] = {
        "classes": [lab.SessionClass(name="small", count=3, size="1448 B")],
        "order": "sequential",
    }
    return lab.WebTraffic(**(defaults | settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("persistent", [True, False])
def test_web_sessions_take_what_their_packets_take(persistent: bool) -> None:
    results = on_linux(
        duration="2 s",
        network=link(),
        flows=[flow(traffic=web(persistent=persistent))],
        record=lab.Record(captures=["b>a"]),
    )
    flows = results.transfers
    # Headers are 52 bytes. The request has 400 bytes of data, the answer 1448.
    way_ms = {size: 20 + size * 8 / 10e6 * 1e3 for size in (60, 452, 1500)}
    exchange_ms = way_ms[452] + way_ms[1500]
    # SYN and SYN-ACK have 60 bytes; the ACK, of 52, is sent just before the request.
    opening_ms = 2 * way_ms[60] + 52 * 8 / 10e6 * 1e3
    expected_ms = [opening_ms + exchange_ms] + [exchange_ms + (not persistent) * opening_ms] * 2
    # The last ACKs and FINs of the previous session precede: up to four packets of 52 bytes.
    closing_ms = 4 * 52 * 8 / 10e6 * 1e3
    assert (flows["completion_s"] * 1e3).to_list() == pytest.approx(expected_ms, abs=closing_ms)
    assert flows["start_s"].to_list()[1:] == pytest.approx(flows["end_s"].to_list()[:-1], abs=1e-6)
    assert flows["flow"].to_list() == ["flow1"] * 3
    assert flows["transfer"].to_list() == [1, 2, 3]
    assert flows["connection"].to_list() == ([1, 1, 1] if persistent else [1, 2, 3])
    assert flows["sent_segments"].to_list() == [1, 1, 1]
    page = results.flows.row(0, named=True)
    assert (page["flow"], page["bytes"], page["sent_segments"]) == ("flow1", 3 * 1448, 3)
    assert (page["outcome"], page["transfers"], page["completed_transfers"]) == ("completed", 3, 3)
    assert page["completion_s"] == pytest.approx(flows["end_s"].max(), abs=1e-9)
    assert page["completion_p50_s"] == pytest.approx(flows["completion_s"].median(), abs=1e-12)
    # A SYN without an ACK opens a connection: the flags are in byte 13 after 20 bytes of IP.
    opened = sum(packet[33] & 0x12 == 0x02 for _, packet in captured(results))
    assert opened == (1 if persistent else 3)


def test_a_page_is_loaded_over_a_few_connections() -> None:
    classes = [
        lab.SessionClass(name="large", count=2, size="120 kB"),
        lab.SessionClass(name="small", count=7, size="4 kB"),
    ]
    page = web(classes=classes, order="parallel", connections=2)
    results = on_linux(
        duration="5 s",
        network=link(queue="1000 packets"),
        flows=[flow(traffic=page)],
        record=lab.Record(samples="ack"),
    )
    # In the order of their ends.
    assert results.transfers["end_s"].is_sorted()
    flows = results.transfers.sort("transfer")
    assert flows["class"].to_list() == ["large"] * 2 + ["small"] * 7
    assert flows["bytes"].to_list() == [120_000] * 2 + [4_000] * 7
    assert set(flows["outcome"]) == {"completed"}
    assert results.flows["from"].to_list() == ["a"]
    # 82.9 and 2.8 segments of 1448 bytes, none lost.
    assert flows["sent_segments"].to_list() == [83] * 2 + [3] * 7
    # Two sessions begin at once; each further one begins when one ends.
    starts, ends = flows["start_s"].to_list(), flows["end_s"].to_list()
    assert starts[:2] == pytest.approx([0, 0], abs=1e-6)
    assert starts[2:] == pytest.approx(sorted(ends)[:7], abs=1e-6)
    # Each session's acknowledged bytes are its own.
    acked = results.samples.group_by("flow", maintain_order=True).agg(pl.col("acked_bytes").max())
    sizes = {f"flow1#{number}": size for number, size in enumerate(flows["bytes"], 1)}
    assert all(bytes_ <= sizes[name] + 1 for name, bytes_ in acked.rows())
    by_class = {row["class"]: row for row in results.summary(by="class").rows(named=True)}
    assert (by_class["large"]["flows"], by_class["small"]["flows"]) == (2, 7)


def test_a_page_larger_than_the_experiment_is_cut_short() -> None:
    page = web(classes=[lab.SessionClass(name="large", count=3, size="1 MB")])
    results = on_linux(duration="1 s", network=link(), flows=[flow(traffic=page)])
    # 1 MB takes 0.8 s plus the handshake: the second is cut short, and the third does not begin.
    assert results.transfers["outcome"].to_list() == ["completed", "unfinished"]
    row = results.flows.row(0, named=True)
    assert (row["outcome"], row["transfers"], row["completed_transfers"]) == ("unfinished", 2, 1)
    # The second transfer counts as the longest.
    assert row["completion_p50_s"] == results.transfers["completion_s"][0]
    assert (row["completion_p95_s"], row["completion_s"]) == (None, None)


def arriving(**settings: object) -> lab.Experiment:
    """Transfers that begin at random."""
    defaults = {"per_second": 5, "sizes": "20 kB", "transfers": 20}
    traffic = lab.ArrivalsTraffic(**(defaults | settings))  # type: ignore[arg-type]
    return lab.Experiment(
        duration="20 s", network=link(queue="1000 packets"), flows=[flow(traffic=traffic)]
    )


def test_transfers_arrive_at_random_and_repeat() -> None:
    results = lab.run(arriving(), backend="linux")
    flows = results.transfers.sort("transfer")
    assert flows["transfer"].to_list() == list(range(1, 21))
    assert flows["connection"].to_list() == list(range(1, 21))
    assert flows["bytes"].to_list() == [20_000] * 20
    assert set(flows["outcome"]) == {"completed"}
    starts = flows["start_s"].to_list()
    assert starts == sorted(starts)
    # The last of 20 at 5 per second: 4 s, with a standard deviation of sqrt(20) / 5 s; four of
    # these.
    assert abs(starts[-1] - 4) < 4 * 20**0.5 / 5
    assert lab.run(arriving(), backend="linux").digests == results.digests
    other_sizes = lab.run(
        arriving(sizes=lab.ZipfSizes(exponent=1.5, max="100 kB")), backend="linux"
    ).transfers.sort("transfer")
    assert other_sizes["start_s"].to_list() == pytest.approx(starts, abs=1e-6)
    assert (other_sizes["bytes"] % 1000 == 0).all()


def test_arrivals_end_with_the_experiment() -> None:
    experiment = arriving(per_second=20, transfers=None)
    flows = lab.run(experiment, backend="linux").transfers
    # 400 in 20 s, with a standard deviation of 20; four of these.
    assert abs(len(flows) - 400) < 80
    assert flows["start_s"].max() < 20


def test_more_connections_than_ports_are_refused() -> None:
    with pytest.raises(lab.ConfigError, match="connections in one run"):
        lab.run(arriving(per_second=1e6, transfers=None), backend="linux")


def test_settings_unsupported_on_linux_are_refused_by_place(
    tcplab: Command, tmp_path: Path
) -> None:
    (tmp_path / "wrong.toml").write_text(
        'duration = "2 s"\n'
        'network.links = [{ between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" }]\n'
        "[[flows]]\n"
        'from = "a"\nto = "b"\ncc = "compound"\nstack = { fack = true, rack = false, abc = 2 }\n'
    )
    done = tcplab("run", "wrong.toml", "--on", "linux")
    assert done.returncode == 2
    first, second, third = sorted(done.stderr.splitlines())
    assert first.startswith(
        "error: wrong.toml: line 6: flows[0].cc: the congestion control `compound` is not available"
    )
    assert "flows[0].stack.abc" in second
    assert "--on sim" in second
    assert "flows[0].stack.fack" in third


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ('cpu.call = "1 us"', "hosts.r.cpu.call: time spent in system calls"),
        (
            'cpu.packet = "1 us"\nhosts.r.qdisc = "fq"',
            "hosts.r.cpu: a processor on a host with a `qdisc`",
        ),
        (
            'cpu.packet = "1 us"\nhosts.r.gro = "20 us"',
            "hosts.r.cpu: a processor on a host with receive offload",
        ),
        (
            'cpu.packet = "1 us"',
            "hosts.r.cpu: a processor on a host that forwards packets",
        ),
        (
            'stack.tso = true\nhosts.a.cpu.packet = "1 us"',
            "hosts.a.cpu: a processor on a host that sends UDP",
        ),
    ],
)
def test_host_settings_of_sim_only_are_refused_by_place(
    tcplab: Command, tmp_path: Path, settings: str, refusal: str
) -> None:
    passes = "forwards" in refusal
    (tmp_path / "cpu.toml").write_text(
        'duration = "2 s"\n'
        f"hosts.r.{settings}\n"
        "network.links = [\n"
        '{ between = ["a", "r"], rate = "1 Mbit/s", delay = "1 ms" },\n'
        '{ between = ["r", "b"], rate = "1 Mbit/s", delay = "1 ms" }]\n'
        f'[[flows]]\nfrom = "a"\nto = "{"b" if passes else "r"}"\ntraffic.kind = "udp"\n'
        'traffic.interval = "1 ms"\n'
        '[[flows]]\nfrom = "r"\nto = "b"\n'
    )
    done = tcplab("run", "cpu.toml", "--on", "linux")
    assert done.returncode == 2
    (first, *_) = done.stderr.splitlines()
    assert first.startswith("error: cpu.toml: line ")
    assert refusal in first
    assert "--on sim" in first


def test_behaviour_of_older_kernels_is_refused(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text(
        'duration = "2 s"\n'
        'network.links = [{ between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" }]\n'
        "[[flows]]\n"
        'from = "a"\nto = "b"\n'
        'stack = { sack = false, recovery = "reno", reduction = "halving" }\n'
    )
    done = tcplab("run", "old.toml", "--on", "linux")
    assert done.returncode == 2
    recovery, reduction = sorted(done.stderr.splitlines())
    assert "flows[0].stack.recovery: a recovery without SACK other than" in recovery
    assert "flows[0].stack.reduction: a reduction other than" in reduction
    assert "--on sim" in reduction


def test_a_missing_kernel_is_refused(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        'duration = "1 s"\n'
        'network.links = [{ between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" }]\n'
        '[[flows]]\nfrom = "a"\nto = "b"\n'
    )
    done = tcplab("run", "small.toml", "--on", "linux", "--kernel", "6.99")
    assert done.returncode == 2
    assert '"6.99"' in done.stderr
    assert "Traceback" not in done.stderr


def test_backends_are_compared(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "both.toml").write_text(
        'duration = "5 s"\n'
        'network.links = [{ between = ["a", "b"], rate = "10 Mbit/s", delay = "20 ms" }]\n'
        '[[flows]]\nfrom = "a"\nto = "b"\ncc = "newreno"\n'
    )
    done = tcplab("compare", "both.toml")
    assert done.returncode == 0, done.stderr
    (goodput,) = [line for line in done.stdout.splitlines() if "goodput" in line]
    name, sim, linux, difference = goodput.replace("goodput (Mbit/s)", "").split()
    assert name == "flow1"
    assert float(difference) == pytest.approx((float(sim) / float(linux) - 1) * 100, abs=0.1)
    chart = (tmp_path / "results" / "both-compared" / "compare.svg").read_text()
    assert "flow1 (newreno), sim" in chart
    assert "flow1 (newreno), linux" in chart


def test_no_process_or_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    on_linux(duration="1 s", network=link(), flows=[flow()])
    assert list(tmp_path.iterdir()) == []
    assert running_kernels(tmp_path) == []


@pytest.mark.parametrize(
    ("algorithm", "parameters", "said"),
    [
        (
            "vegas",
            {"betta": 3},
            '"betta"; did you mean "beta"?',
        ),
        ("vegas", {"alpha": -1}, "a whole number from 0 to 2147483647"),
        ("lp", {"clock_offset_ms": 0}, "this algorithm has no parameters in the kernel"),
    ],
)
def test_parameters_that_the_kernel_has_not_are_refused_before_it_boots(
    algorithm: str, parameters: dict[str, int], said: str
) -> None:
    experiment = lab.Experiment(
        duration="1 s",
        network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms")),
        flows=[lab.Flow(from_="client", to="server", cc={"name": algorithm, **parameters})],
    )
    with pytest.raises(lab.ConfigError, match=re.escape(said)):
        experiment.plans("linux")
