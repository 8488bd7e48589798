"""Captures written by backends: both write the same packets, and other readers find no fault."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tcplab as lab

FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
BOTH_WAYS = lab.Record(captures=["a>b", "b>a"])
LOST = lab.ListedLoss(packets=[5, 6, 20, 45])
DATAGRAMS = lab.UdpTraffic(interval="50 ms", payload="2000 B", packets=5)
SHORT_DATAGRAMS = lab.UdpTraffic(interval="50 ms", payload="100 B", packets=5)


class Captured(NamedTuple):
    """A packet in a capture."""

    time_ns: int
    interface: str
    length: int
    kept: bytes


def link(**settings: object) -> lab.Network:
    """Two hosts and a link of 10 Mbit/s and 20 ms."""
    defaults = {"between": ("a", "b"), "rate": "10 Mbit/s", "delay": "20 ms"}
    return lab.Network(links=[lab.Link(**(defaults | settings))])  # type: ignore[arg-type]


def flow(size: str = "100 kB", **settings: object) -> lab.Flow:
    """A transfer from host a to host b."""
    ends = {"from_": "a", "to": "b", "traffic": lab.BulkTraffic(size=size)}
    return lab.Flow(**(ends | settings))  # type: ignore[arg-type]


def experiment(network: lab.Network, *flows: lab.Flow, **settings: object) -> lab.Experiment:
    """Three seconds of these flows."""
    defaults = {"duration": "3 s", "network": network, "flows": [*flows], "record": BOTH_WAYS}
    return lab.Experiment(**(defaults | settings))  # type: ignore[arg-type]


def file_of(results: lab.Results) -> bytes:
    """The capture of a run."""
    return results.files(results.plans[0].id)["capture.pcapng"]


def packets(file: bytes) -> Iterator[Captured]:
    """The packets of a capture, parsed according to draft-ietf-opsawg-pcapng."""
    names: list[str] = []
    at = 0
    while at < len(file):
        kind, length = struct.unpack_from("<II", file, at)
        if kind == 1:
            (size,) = struct.unpack_from("<H", file, at + 18)
            names.append(file[at + 20 : at + 20 + size].decode())
        if kind == 6:
            words = struct.unpack_from("<IIIII", file, at + 8)
            interface, high, low, kept, whole = words
            content = file[at + 28 : at + 28 + kept]
            yield Captured(high << 32 | low, names[interface], whole, content)
        at += length


class Alike:
    """Makes packets of both backends comparable: sequence numbers and clocks are relative to the
    handshake; addresses, IP identification, checksums and cookies are left out.
    """

    def __init__(self) -> None:
        self.first: dict[tuple[int, int], int] = {}
        self.clock: dict[tuple[int, int], int] = {}

    def of(self, packet: Captured) -> tuple[object, ...]:
        """A comparable packet."""
        return (packet.time_ns, packet.interface, packet.length, *self.ip(packet.kept))

    def ip(self, kept: bytes) -> tuple[object, ...]:
        """An IP packet: the rest of its header, and its payload."""
        version, service, length, _, fragment, hops, protocol, _ = struct.unpack_from(
            "!BBHHHBBH", kept
        )
        assert version == 0x45
        header = (service, length, fragment, hops, protocol)
        inner = kept[20:]
        if protocol == 1:
            kind, code, _, mtu = struct.unpack_from("!BBHI", inner)
            return (*header, kind, code, mtu, *self.ip(inner[8:]))
        if protocol == 17:
            return (*header, inner[:6], inner[8:])
        return (*header, *self.tcp(inner))

    def tcp(self, inner: bytes) -> tuple[object, ...]:
        """A segment."""
        source, target, seq, ack, rest, window, _, urgent = struct.unpack_from("!HHIIHHHH", inner)
        way, back = (source, target), (target, source)
        if rest & SYN:
            self.first.setdefault(way, seq)
        after, acked = self.first.get(way, seq), self.first.get(back, ack)
        seq, ack = (seq - after) % 2**32, (ack - acked) % 2**32 if rest & ACK else ack
        words = rest >> 12
        options, data = inner[20 : 4 * words], inner[4 * words :]
        if rest & FIN and not data.strip(b"\0") and len(data) == 0:
            # The kernel sets no PSH on a FIN without data; `sim` does.
            rest &= ~PSH
        told = [self.option(way, back, acked, it) for it in split(options)]
        return (way, seq, ack, rest, window, urgent, *told, data)

    def option(
        self, way: tuple[int, int], back: tuple[int, int], acked: int, option: bytes
    ) -> object:
        """An option, with relative clocks and sequence numbers."""
        if option[0] == 8:
            value, echo = struct.unpack_from("!II", option, 2)
            mine = self.clock.setdefault(way, value)
            return (8, (value - mine) % 2**32, echo and (echo - self.clock.get(back, echo)) % 2**32)
        if option[0] == 5:
            edges = struct.unpack(f"!{(len(option) - 2) // 4}I", option[2:])
            return (5, *((edge - acked) % 2**32 for edge in edges))
        if option[0] == 34:
            return option[:2]
        return option


def split(options: bytes) -> Iterator[bytes]:
    """The options of a TCP header, padding included."""
    at = 0
    while at < len(options):
        length = 1 if options[at] <= 1 else options[at + 1]
        yield options[at : at + length]
        at += length


def narrow(**settings: object) -> lab.Experiment:
    """A path of three links, the middle with a smaller MTU, captured at each."""
    wide = {"rate": "100 Mbit/s", "delay": "5 ms"}
    middle = {"rate": "10 Mbit/s", "delay": "15 ms", "mtu": 1000}
    links = [(("a", "r"), wide), (("r", "q"), middle), (("q", "b"), wide)]
    network = lab.Network(links=[lab.Link(between=ends, **it) for ends, it in links])  # type: ignore[arg-type]
    flows = [
        flow("30 kB", cc="newreno"),
        flow("30 kB", from_="b", to="a", cc="newreno", start="0.2 s"),
        flow(traffic=DATAGRAMS, start="1 s"),
    ]
    everywhere = ["a>r", "r>a", "r>q", "q>r", "q>b", "b>q"]
    return experiment(network, *flows, record=lab.Record(captures=everywhere), **settings)


def alike(file: bytes) -> list[tuple[object, ...]]:
    """The packets of a capture in comparable form, packets of one nanosecond by interface."""
    order = Alike()
    return sorted((order.of(packet) for packet in packets(file)), key=lambda row: row[:2])


EXPERIMENTS = {
    "loss with SACK": experiment(link(loss=LOST), flow()),
    "loss without options": experiment(
        link(loss=LOST), flow(), stack=lab.Stack(sack=False, timestamps=False)
    ),
    "loss without timestamps": experiment(
        link(loss=LOST), flow(), stack=lab.Stack(timestamps=False)
    ),
    "false alarms with DSACK": experiment(
        link(delay_changes=[["150 ms", "400 ms"]]), flow("200 kB")
    ),
    "a queue that marks": experiment(
        link(queue=lab.CodelQueue(ecn=True, target="2 ms")), flow("1 MB"), stack=lab.Stack(ecn=True)
    ),
    "no window scaling": experiment(link(), flow(), stack=lab.Stack(window_scaling=False)),
    "an ACK for each segment": experiment(link(), flow(), stack=lab.Stack(delayed_ack="off")),
    "a small buffer": experiment(link(), flow(), stack=lab.Stack(rmem="20 kB")),
    "datagrams": experiment(link(), flow(traffic=DATAGRAMS)),
    "two directions": experiment(
        link(queue="20 packets"),
        flow("300 kB"),
        flow("100 kB", from_="b", to="a", start="0.1 s"),
        flow(traffic=SHORT_DATAGRAMS, start="10 ms"),
    ),
    "receive offload": experiment(link(), flow("300 kB"), hosts={"b": lab.Host(gro="50 us")}),
    "questions and answers": experiment(
        link(), flow(traffic=lab.RequestsTraffic(request="1 kB", response="20 kB", requests=3))
    ),
    "a page": experiment(
        link(), flow(traffic=lab.WebTraffic(sizes=["1 kB", "20 kB", "5 kB"], connections=2))
    ),
    "transfers": experiment(
        link(),
        flow(traffic=lab.ArrivalsTraffic(every="200 ms", sizes="20 kB")),
        flow(start="50 ms"),
    ),
    "users": experiment(
        link(),
        flow(traffic=lab.ArrivalsTraffic(users=2, think="100 ms", sizes="20 kB", transfers=9)),
        flow(start="50 ms"),
    ),
    "packets too large": narrow(),
    "packets too large without timestamps": narrow(stack=lab.Stack(timestamps=False)),
    "packets of a known size": narrow(stack=lab.Stack(path_mtu="known")),
    "copies and packets in disorder": experiment(
        link(
            duplication=0.02, reordering=lab.Reordering(probability=0.02, delay="3 ms"), loss=LOST
        ),
        flow("300 kB"),
    ),
    "paced by a queue of the host": experiment(
        link(), flow("300 kB", cc="bbr"), hosts={"a": lab.Host(qdisc="fq")}
    ),
    "ACKs that are filtered": experiment(
        link(back={"queue": lab.CakeQueue(ack_filter="on"), "rate": "100 kbit/s"}), flow()
    ),
    "Fast Open": experiment(
        link(),
        flow(traffic=lab.ArrivalsTraffic(every="500 ms", sizes="5 kB")),
        stack=lab.Stack(fast_open=True),
    ),
}


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_both_backends_capture_the_same_packets(name: str) -> None:
    kernel, sim = (
        alike(file_of(lab.run(EXPERIMENTS[name], backend=backend))) for backend in ("linux", "sim")
    )
    for number, (theirs, mine) in enumerate(zip(kernel, sim, strict=False)):
        assert mine == theirs, number
    assert len(sim) == len(kernel)


SHOWN: dict[str, Callable[[tuple[Any, ...]], bool]] = {
    # Option kinds follow the fields of the header; the second edge of a DSACK block is
    # acknowledged.
    "loss with SACK": lambda row: any(it[0] == 5 for it in row[14:-1]),
    "false alarms with DSACK": lambda row: any(
        it[0] == 5 and it[2] <= row[10] for it in row[14:-1]
    ),
    "a queue that marks": lambda row: row[3] & 3 == 3,
    "datagrams": lambda row: row[5] & 0x1FFF > 0,
    "packets too large": lambda row: row[7] == 1,
    "copies and packets in disorder": lambda row: any(it[0] == 5 for it in row[14:-1]),
    "Fast Open": lambda row: row[11] & SYN and row[2] > 1400,
    "users": lambda row: row[11] & FIN,
}
"""Patterns that some packets of an experiment must show."""


@pytest.mark.parametrize("name", SHOWN)
def test_experiments_show_what_they_are_for(name: str) -> None:
    rows = alike(file_of(lab.run(EXPERIMENTS[name])))
    assert any(SHOWN[name](row) for row in rows)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("name", ["loss with SACK", "receive offload", "transfers"])
def test_hosts_have_the_addresses_of_linux(name: str) -> None:
    ends = [
        {(packet.interface, packet.kept[12:24]) for packet in packets(file_of(results))}
        for results in (lab.run(EXPERIMENTS[name], backend=backend) for backend in ("linux", "sim"))
    ]
    assert ends[0] == ends[1]
    first = bytes([10, 0, 0, 2, 10, 0, 0, 1]) + struct.pack("!HH", 10001, 5001)
    assert ("a>b", first) in ends[1]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_tshark_finds_nothing_wrong(name: str, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("there is no tshark; on Debian: sudo apt-get install tshark")
    path = tmp_path / "capture.pcapng"
    path.write_bytes(file_of(lab.run(EXPERIMENTS[name])))
    checks = [f"{protocol}.check_checksum:TRUE" for protocol in ("ip", "tcp", "udp")]
    wrong = "_ws.malformed || ip.checksum.status==0 || tcp.checksum.status==0"
    wrong += " || udp.checksum.status==0 || icmp.checksum.status==0"
    command = ["tshark", "-r", str(path), *(word for it in checks for word in ("-o", it))]
    found = subprocess.run([*command, "-Y", wrong], capture_output=True, text=True, check=True)
    assert found.stdout == ""
    fields = ["-T", "fields", "-e", "ip.checksum.status", "-e", "tcp.checksum.status"]
    good = subprocess.run([*command, *fields], capture_output=True, text=True, check=True)
    # Packets that are kept whole have had their checksums verified.
    assert good.stdout.startswith("1\t1\n") or "datagrams" in name


@pytest.mark.parametrize(
    "name", [name for name, it in EXPERIMENTS.items() if it.record is BOTH_WAYS]
)
def test_capture_analysis_agrees_with_the_flows_table(name: str, tmp_path: Path) -> None:
    results = lab.run(EXPERIMENTS[name])
    path = tmp_path / "capture.pcapng"
    path.write_bytes(file_of(results))
    told = lab.capture.flows(path)
    again = [told[f"{side}_retransmitted_segments"].sum() for side in ("client", "server")]
    assert sum(again) == results.flows["retransmitted_segments"].sum()


def test_a_packet_has_one_number_on_all_links() -> None:
    link = {"rate": "10 Mbit/s", "delay": "1 ms", "queue": "20 packets"}
    everywhere = ["client>router1", "router1>server", "server>router1", "router1>client"]
    results = lab.run(
        lab.Experiment(
            duration="2 s",
            network={"chain": {"hops": 2, **link}},
            flows=[lab.Flow(from_="client", to="server", cc="newreno")],
            stack=lab.Stack(sack=False, timestamps=False),
            record=lab.Record(captures=everywhere),
        )
    )
    # Without the fields that routers change: TTL and header checksum.
    seen = Counter(
        (packet.interface, packet.kept[:8] + packet.kept[9:10] + packet.kept[12:])
        for packet in packets(file_of(results))
    )
    # Duplicate ACKs and retransmissions differ, and the packets of a link are known from before it.
    assert max(seen.values()) == 1
    assert results.flows["retransmitted_segments"].sum() > 10
    for first, second in (everywhere[:2], everywhere[2:]):
        come, gone = ({it for link, it in seen if link == one} for one in (second, first))
        assert come <= gone
        assert len(come) > 500


def test_captures_are_stored_with_the_runs(tmp_path: Path) -> None:
    given = experiment(link(), flow("20 kB"), repeat=2)
    alone = lab.run(given, out=None, workers=1)
    stored = lab.run(given, out=tmp_path, workers=2)
    again = lab.run(given, out=tmp_path)
    assert not again.computed
    for plan in given.plans():
        content = alone.files(plan.id)["capture.pcapng"]
        assert stored.files(plan.id)["capture.pcapng"] == content
        assert again.files(plan.id)["capture.pcapng"] == content
    on_disk = [path.read_bytes() for path in tmp_path.rglob("capture.pcapng")]
    assert sorted(on_disk) == sorted(
        alone.files(plan.id)["capture.pcapng"] for plan in given.plans()
    )


def test_captured_packets_count_as_memory() -> None:
    given = experiment(
        link(rate="1 Gbit/s", delay="1 ms"), lab.Flow(from_="a", to="b"), duration="60 s"
    )
    with pytest.raises(lab.ConfigError, match=r"is for captured packets, less with fewer `record"):
        lab.run(given, memory="100 MB")
