"""Captures: our analysis compared with tshark and the kernel on the same packets."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Command

import tcplab as lab
from tcplab import capture
from tcplab.cli import capture as command
from tcplab.cli import main

SYN, PUSH, ACK = 0x02, 0x08, 0x10


def segment(
    at_ms: float, flags: int, seq: int, ack: int, data: int, *, back: bool = False
) -> bytes:
    """A packet as pcap has it: from 10.0.0.1:10001 to 10.0.0.2:80, or back."""
    hosts, ports = (b"\x0a\0\0\1", b"\x0a\0\0\2"), (10001, 80)
    if back:
        hosts, ports = hosts[::-1], ports[::-1]
    length = 40 + data
    ip = struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0x4000, 64, 6, 0) + b"".join(hosts)
    tcp = struct.pack("!HHIIBBHHH", *ports, seq, ack, 0x50, flags, 1000, 0, 0)
    micros = round(at_ms * 1000)
    head = struct.pack("<IIII", micros // 1_000_000, micros % 1_000_000, 40, length)
    return head + ip + tcp


HEADER = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
SMALL = HEADER + b"".join(
    [
        segment(0, SYN, 0, 0, 0),
        segment(20, SYN | ACK, 0, 1, 0, back=True),
        segment(20, ACK, 1, 1, 0),
        segment(20, ACK, 1, 1, 1000),
        segment(300, ACK, 1, 1, 1000),
        segment(320, ACK, 1, 1001, 0, back=True),
    ]
)


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """A connection of six packets, one of them a retransmission."""
    path = tmp_path / "small.pcap"
    path.write_bytes(SMALL)
    return path


def test_flows_and_info_are_frames(small_file: Path) -> None:
    (flow,) = lab.capture.flows(small_file).iter_rows(named=True)
    assert (flow["client"], flow["client_port"], flow["server_port"]) == ("10.0.0.1", 10001, 80)
    assert flow["client_retransmitted_segments"] == flow["client_retransmitted_timeout"] == 1
    assert flow["client_bytes"] == 1000
    assert flow["duration_s"] == pytest.approx(0.32)
    about = lab.capture.info(small_file)
    assert about.totals["packets"].to_list() == [6]
    assert about.protocols.select("network", "transport").rows() == [("ipv4", "tcp")]
    assert about.lengths["packets"].sum() == 6
    assert about.faults["fault"].to_list() == ["snap length"]
    names = {*flow, *about.totals.columns, *about.faults.columns}
    assert names <= set(capture.columns()["column"])


def test_compressed_files_and_standard_input_are_read(small_file: Path, tmp_path: Path) -> None:
    packed = tmp_path / "small.pcap.gz"
    packed.write_bytes(gzip.compress(SMALL))
    assert lab.capture.flows(packed).equals(lab.capture.flows(small_file))
    command = [sys.executable, "-m", "tcplab.cli", "capture", "flows", "-", "--format", "csv"]
    done = subprocess.run(command, input=packed.read_bytes(), capture_output=True, check=True)
    (row,) = csv.DictReader(done.stdout.decode().splitlines())
    assert row["client_segments"] == "2"


def test_the_command_prints_tables_and_keeps_them(tcplab: Command, small_file: Path) -> None:
    flows = tcplab("capture", "flows", small_file, "-o", "told")
    assert flows.returncode == 0, flows.stderr
    assert "10.0.0.1:10001  10.0.0.2:80" in flows.stdout
    assert "timeout 94 %" in flows.stdout
    assert flows.stderr == ""
    told = small_file.parent / "told"
    assert pl.read_parquet(told / "capture_flows.parquet").equals(lab.capture.flows(small_file))
    info = tcplab("capture", "info", small_file)
    assert "small.pcap: 6 packets, 2,240 bytes in 0.320 s; 1 TCP connections" in info.stdout
    assert "snap length: 2 packets were cut to the snap length" in info.stdout
    everything = json.loads(tcplab("capture", "info", small_file, "--format", "json").stdout)
    assert [*everything] == ["totals", "lengths", "protocols", "faults"]
    lengths = tcplab("capture", "info", small_file, "--table", "lengths", "--format", "csv")
    assert lengths.stdout.startswith("file,length,packets,percent,bytes\n")


def test_a_long_table_is_printed_whole(
    small_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In pieces of two rows, one of them not full, the CSV is that of the frame."""
    packets = [SMALL[24:]]
    for host in range(2, 6):
        packets.append(SMALL[24:].replace(b"\x0a\0\0\1", bytes([10, 0, 0, host + 1])))
    small_file.write_bytes(HEADER + b"".join(packets))
    monkeypatch.setattr(command, "PIECE", 2)
    assert main(["capture", "flows", str(small_file), "--format", "csv"]) == 0
    flows = lab.capture.flows(small_file)
    assert len(flows) == 5
    assert capsys.readouterr().out == flows.write_csv()


@pytest.mark.parametrize("format_", ["table", "csv"])
def test_capture_flows_imports_only_what_it_needs(format_: str, small_file: Path) -> None:
    heavy = "{'polars', 'numpy', 'scipy', 'rich', 'dataclasses', 'tcplab._schema'}"
    results = "{'tcplab._results.results'}"
    program = (
        "import sys; from tcplab.cli import main\n"
        f"main(['capture', 'flows', {str(small_file)!r}, '--format', '{format_}'])\n"
        f"print(*({heavy} | {results}) & sys.modules.keys(), 'end')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "end"


def test_other_files_than_captures_are_refused(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_text("no capture\n")
    for file, said in [
        ("x.pcap", "error: x.pcap: is not a capture: it begins with 6e 6f 20 63; "),
        ("nowhere.pcap", "error: nowhere.pcap: no such file or directory"),
        (".", "error: .: is a directory"),
    ]:
        done = tcplab("capture", "flows", file)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(said)
    with pytest.raises(lab.ConfigError, match="connections: 0 is not at least 1"):
        lab.capture.flows(tmp_path / "x.pcap", connections=0)


def test_a_truncated_file_yields_its_complete_packets(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes(SMALL[:-3])
    done = tcplab("capture", "info", "cut.pcap")
    assert done.returncode == 0
    assert "cut.pcap: 5 packets" in done.stdout
    assert "damage: byte 304: the file ends within a packet of 40 bytes" in done.stdout


COUNTERS = "cat /proc/net/netstat /proc/net/snmp"
"""The kernel's counters, printed by a program in the sending host."""


def lossy(loss: object, back_loss: object = None, **flow: Any) -> lab.Experiment:
    """Transfers over a lossy path, captured at the sender."""
    settings = {"cc": "cubic", "traffic": lab.BulkTraffic(size="2 MB")} | flow
    return lab.Experiment(
        name="lossy",
        duration="120 s",
        network=lab.Network(
            links=[
                lab.Link(between=["s", "r"], rate="1 Gbit/s", delay="1 ms"),
                lab.Link(
                    between=["r", "d"],
                    rate="20 Mbit/s",
                    delay="15 ms",
                    forward=lab.LinkSettings(loss=loss),
                    back=lab.LinkSettings(loss=back_loss) if back_loss else None,
                ),
            ]
        ),
        flows=[
            *(
                lab.Flow(name=f"f{n}", from_="s", to="d", start=f"{n * 200} ms", **settings)
                for n in range(5)
            ),
            lab.Flow(
                name="counters",
                from_="s",
                to="d",
                traffic=lab.CommandTraffic(server=f"sleep 119; {COUNTERS}", client="true"),
            ),
        ],
        record=lab.Record(samples="off", links="off", captures=["s>r", "r>s"]),
    )


@pytest.mark.parametrize("cc", ["cubic", "bbr"])
def test_captures_at_both_ends_apply_acks_at_their_arrival(cc: str, tmp_path: Path) -> None:
    """Round trips and reasons to wait are those of the capture at the sender, although ACKs are
    seen at the receiver first; ACKs lost on the way back do not count.
    """
    far = {"rate": "10 Mbit/s", "delay": "30 ms", "queue": "60 packets", "loss": 0.003}
    links: list[Any] = [
        {"between": ["a", "r"], "rate": "1 Gbit/s", "delay": "10 us"},
        {"between": ["r", "q"], **far},
        {"between": ["q", "b"], "rate": "1 Gbit/s", "delay": "5 ms"},
    ]
    flow = {"from": "a", "to": "b", "cc": cc, "traffic": {"kind": "bulk", "size": "5 MB"}}
    found = []
    for captures in (["a>r", "r>a"], ["a>r", "r>a", "q>b", "b>q"]):
        record = {"captures": captures, "samples": "off", "links": "off"}
        results = lab.run(
            {"duration": "20 s", "record": record, "network": {"links": links}, "flows": [flow]}
        )
        path = tmp_path / f"{len(captures)}.pcapng"
        path.write_bytes(results.files(results.plans[0].id)["capture.pcapng"])
        found.append(capture.flows(path).row(0, named=True))
    sender, both = found
    for name in sender:
        if name.startswith("client_rtt") or name == "server_duplicate_acks":
            assert both[name] == sender[name], name
        if name.startswith("time_"):
            # Either file ends with its last packet: at the other end that may be 35 ms later, of
            # about five seconds.
            assert both[name] == pytest.approx(sender[name], abs=0.75), name


def counted(text: str) -> dict[str, int]:
    """The kernel's counters, by name."""
    found = {}
    lines = text.splitlines()
    for names, values in itertools.pairwise(lines):
        if names.split()[:1] == values.split()[:1]:
            words = zip(names.split()[1:], values.split()[1:], strict=True)
            found |= {name: int(value) for name, value in words}
    return found


INDEPENDENT = lab.IndependentLoss(probability=0.03)
BURSTS = lab.GilbertLoss(to_bad=0.005, to_good=0.1)
LOSSY = [
    pytest.param(lossy(INDEPENDENT), id="independent"),
    pytest.param(lossy(lab.IndependentLoss(probability=0.1)), id="many"),
    pytest.param(lossy(BURSTS), id="bursts"),
    pytest.param(lossy(INDEPENDENT, cc="bbr"), id="bbr"),
    pytest.param(lossy(BURSTS, BURSTS), id="ACKs lost"),
    pytest.param(lossy(BURSTS).replace(stack=lab.Stack(sack=False)), id="without SACK"),
]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("experiment", LOSSY)
def test_retransmissions_and_causes_are_those_of_the_kernel(
    experiment: lab.Experiment, tmp_path: Path
) -> None:
    results = lab.run(experiment, backend="linux")
    files = results.files(results.plans[0].id)
    (tmp_path / "x.pcapng").write_bytes(files["capture.pcapng"])
    flows = lab.capture.flows(tmp_path / "x.pcapng")
    truth = counted(files["counters-server.txt"].decode())

    def ours(column: str) -> int:
        return int(flows[f"client_retransmitted_{column}"].sum())

    sent = results.flows.filter(pl.col("flow") != "counters").sort("start_s")
    assert flows["client_retransmitted_segments"].sum() == sent["retransmitted_segments"].sum()
    assert flows["client_segments"].to_list() == sent["sent_segments"].to_list()
    in_handshakes = truth["TCPSynRetrans"]
    assert ours("handshake") == in_handshakes
    pairs = [
        (ours("fast"), truth["TCPFastRetrans"]),
        (ours("after_timeout"), truth["TCPSlowStartRetrans"]),
        (ours("timeout"), truth["TCPTimeouts"] - in_handshakes),
    ]
    wrong = sum(abs(mine - theirs) for mine, theirs in pairs) / 2
    assert wrong <= 0.01 * ours("segments"), (pairs, ours("probe"))


@pytest.mark.usefixtures("kernel")
def test_conversations_are_those_of_tshark(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("there is no tshark; on Debian: sudo apt-get install tshark")
    results = lab.run(LOSSY[0].values[0], backend="linux")
    path = tmp_path / "x.pcapng"
    path.write_bytes(results.files(results.plans[0].id)["capture.pcapng"])
    assert conversations(path) == told(path)


def conversations(path: Path) -> list[tuple[Any, ...]]:
    """Both ends, and packets and bytes of both directions, of each conversation, from tshark."""
    command = ["tshark", "-r", str(path), "-q", "-z", "conv,tcp"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    row = re.compile(
        r"(\S+):(\d+)\s+<->\s+(\S+):(\d+)\s+(\d+) (\d+ \w+)\s+(\d+) (\d+ \w+)\s+\d+ \d+ \w+"
    )
    found = []
    for one in row.finditer(printed):
        a, a_port, b, b_port, to_a, to_a_bytes, to_b, to_b_bytes = one.groups()
        ends = [(a, int(a_port), int(to_b), to_b_bytes), (b, int(b_port), int(to_a), to_a_bytes)]
        found.append(tuple(sorted(ends)))
    return sorted(found)


def told(path: Path) -> list[tuple[Any, ...]]:
    """The same from `capture flows`."""

    def size(value: int) -> str:
        # The format of tshark since 4.0: whole kB or MB of 1000, from ten of them on.
        for unit, factor in [("MB", 1_000_000), ("kB", 1000)]:
            if value >= 10 * factor:
                return f"{value // factor} {unit}"
        return f"{value} bytes"

    found = []
    for row in lab.capture.flows(path).iter_rows(named=True):
        ends = [
            (
                row[side],
                row[f"{side}_port"],
                row[f"{side}_packets"],
                size(row[f"{side}_wire_bytes"]),
            )
            for side in ("client", "server")
        ]
        found.append(tuple(sorted(ends)))
    return sorted(found)


def test_packets_have_kinds_and_sequence_numbers(tcplab: Command, small_file: Path) -> None:
    packets = lab.capture.packets(small_file, 0)
    assert packets["kind"].to_list() == ["control", "control", "ack", "data", "timeout", "ack"]
    assert packets["seq"].to_list() == [0, 0, 1, 1, 1, 1]
    assert packets["ack"].to_list() == [None, 1, 1, 1, 1, 1001]
    assert packets["time_s"].to_list() == pytest.approx([0, 0.02, 0.02, 0.02, 0.3, 0.32])
    told = tcplab("capture", "packets", small_file, "--from", "0.1", "--format", "csv")
    assert [row["kind"] for row in csv.DictReader(told.stdout.splitlines())] == ["timeout", "ack"]
    wrong = tcplab("capture", "packets", small_file, "--connection", "1")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "connection: 1 is not in" in wrong.stderr
    assert "from 0 to 0" in wrong.stderr
    with pytest.raises(lab.ConfigError, match="connection: -1 is below 0"):
        lab.capture.packets(small_file, -1)


def test_segments_are_drawn(tcplab: Command, small_file: Path) -> None:
    done = tcplab("capture", "packets", small_file, "--chart", "x.json")
    assert done.returncode == 0, done.stderr
    chart = json.loads((small_file.parent / "x.json").read_text())
    rows = [row for values in chart["datasets"].values() for row in values]
    sent = {
        (row["kind"], row["time_s"], row["first"], row["last"]) for row in rows if "last" in row
    }
    assert sent == {("data", 0.02, 1, 1001), ("timeout", 0.3, 1, 1001)}
    reached = [row["bytes"] for row in rows if row["kind"] == "acknowledged"]
    assert reached == [1, 1001]
    late = tcplab("capture", "packets", small_file, "--chart", "y.svg", "--from", "1", "--to", "2")
    assert (late.returncode, late.stdout) == (2, "")
    assert "no segment of the client is between 1 s and 2 s" in late.stderr
    assert not (small_file.parent / "y.svg").exists()


def test_the_page_about_a_capture_draws_each_connection(
    browser: Any, tcplab: Command, small_file: Path
) -> None:
    done = tcplab("capture", "report", small_file, "-o", "page.html")
    assert done.returncode == 0, done.stderr
    file = small_file.parent / "page.html"
    assert file.stat().st_size < 1_500_000
    page = browser.new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    assert "went from 10.0.0.1:10001 to 10.0.0.2:80" in page.inner_text("#answer .headline")
    assert "1 (50.0\u00a0%) was sent again, 1 by the retransmission timer" in page.inner_text(
        "#answer"
    )
    # The segment and its retransmission.
    assert page.locator("#segments svg .plane_0_marks > line").count() == 2
    assert "timeout" in page.inner_text("#time .keys")
    assert wrong == []
    page.close()
    there = tcplab("capture", "report", small_file, "-o", "page.pdf")
    assert (there.returncode, there.stdout) == (2, "")
    assert "page.pdf: the page about a capture is written as .html" in there.stderr


def test_a_page_is_made_of_standard_input(small_file: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tcplab.cli", "capture", "report", "-", "-o", "in.html"]
    with small_file.open("rb") as file:
        subprocess.run(command, stdin=file, cwd=tmp_path, capture_output=True, check=True)
    assert "standard input" in (tmp_path / "in.html").read_text()


def test_a_part_that_ends_before_it_begins_is_refused(tcplab: Command, small_file: Path) -> None:
    done = tcplab("capture", "packets", small_file, "--from", "3", "--to", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--from: 3 s is not before 2 s" in done.stderr
