"""Compares `tcplab capture flows` with tshark and tcptrace on a folder of captures of any origin.

Each file is read by all three programs. Conversations are matched by their addresses and ports, and
conversations between the same ends by their order. The first table shows how many values of each
kind agree; `--differences` writes the others to a file, one per line. Every file must be read, or
refused with a message and exit status 2. Any other outcome is listed, and the exit status is then
1.

    python benches/public_captures.py FOLDER [--differences FILE] [--keep FOLDER]

`--keep` stores the output of tshark and tcptrace, so that they run only once.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import ipaddress
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 120

FIELDS = [
    "frame.number", "frame.len", "frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst",
    "tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.len", "tcp.flags", "tcp.options.mss_val",
    "tcp.options.wscale.shift", "tcp.options.sack_le", "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order", "tcp.analysis.keep_alive",
]  # fmt: skip

FIN, SYN, RST, ACK = 1, 2, 4, 16

COMPARED = {
    "tshark": [
        "packets", "wire_bytes", "resent_or_late", "keepalives", "sack_blocks", "mss", "scale",
    ],
    "tcptrace": ["packets", "bytes", "resent_or_late", "resent_bytes", "mss", "scale"],
}  # fmt: skip
"""The values compared for each side of a conversation. The programs distinguish out-of-order
segments and retransmissions by different rules, so the sum of both is compared.
"""

COUNTED = ["packets", "wire_bytes", "bytes", "resent_or_late", "sack_blocks", "keepalives"]
"""The values that are counted per packet."""

End = tuple[str, int]
Values = dict[str, int | None]


@dataclass
class Conversation:
    """A conversation as a program reports it: its ends, and the values of each sender."""

    ends: tuple[End, End]
    sides: tuple[Values, Values]
    handshake: bool = False
    closed: str | None = None
    stack: str = ""

    def turned(self) -> Conversation:
        """The same conversation with the smaller end first."""
        (a, b), (x, y) = self.ends, self.sides
        if a <= b:
            return self
        return Conversation((b, a), (y, x), self.handshake, self.closed, self.stack)


@dataclass
class Said:
    """A program's report of a file: conversations, or why there are none."""

    conversations: list[Conversation] = field(default_factory=list)
    problem: str = ""


def address(text: str) -> str:
    """An address in Python's notation. tcptrace leaves out the first colon of `::1`."""
    for guess in (text, f":{text}"):
        with suppress(ValueError):
            return str(ipaddress.ip_address(guess))
    return text


def run(words: list[str]) -> tuple[int, str, str]:
    """The status, output and messages of a program; the status is -1 if it does not end."""
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=PATIENCE_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, "", "does not end"
    return (
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode("utf8", "replace"),
    )


def of_tcplab(path: Path) -> Said:
    """The report of `tcplab capture flows`. `problem` begins with an exit status other than 0."""
    words = [sys.executable, "-m", "tcplab.cli", "capture", "flows", str(path), "--format", "json"]
    status, out, messages = run(words)
    if status != 0:
        return Said(problem=f"{status} {messages.strip()}")
    return Said([flow(row).turned() for row in json.loads(out)])


def flow(row: dict[str, Any]) -> Conversation:
    """A conversation from a row of tcplab's table."""
    closed = row["closed"]
    names = {"closed by client": "closed", "closed by server": "closed"}
    names |= {"reset by client": "reset", "reset by server": "reset", "refused": "reset"}
    names |= {"unanswered": "open"}

    def side(who: str) -> Values:
        def of(name: str) -> int | None:
            value: int | None = row[f"{who}_{name}"]
            return value

        late = of("out_of_order_segments") or 0
        # SYNs and FINs take a sequence number each; both other programs count them.
        controls = (of("retransmitted_handshake") or 0) + (of("retransmitted_fins") or 0)
        resent = (of("retransmitted_segments") or 0) + controls
        return {
            "packets": of("packets"),
            "wire_bytes": of("wire_bytes"),
            "bytes": of("bytes"),
            "resent_bytes": (of("retransmitted_bytes") or 0) + controls,
            "resent_or_late": resent + late,
            "sack_blocks": of("sack_blocks"),
            "mss": of("mss_bytes"),
            "scale": of("window_scale"),
            "keepalives": of("keepalives"),
        }

    ends = ((row["client"], row["client_port"]), (row["server"], row["server_port"]))
    return Conversation(
        ends,
        (side("client"), side("server")),
        handshake=row["handshake_ms"] is not None,
        closed=names.get(closed, closed),
    )


def of_tshark(path: Path) -> Said:
    """The report of tshark, summed over packets by `tcp.stream`."""
    words = ["tshark", "-n", "-r", str(path), "-Y", "tcp", "-T", "fields", "-E", "occurrence=a"]
    _, out, messages = run(words + [word for name in FIELDS for word in ("-e", name)])
    streams: dict[int, Conversation] = {}
    opening: dict[int, list[str]] = defaultdict(lambda: ["", ""])
    closing: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for line in out.splitlines():
        packet = dict(zip(FIELDS, line.split("\t"), strict=False))
        add(packet, streams, opening, closing)
    for stream, found in streams.items():
        first = closing[stream][0][1] if closing[stream] else 0
        fins = {side for side, flags in closing[stream] if flags & FIN and not flags & RST}
        names = {0: "open", 1: "half closed", 2: "closed"}
        found.closed = "reset" if first & RST else names[len(fins)]
    wrong = [one for one in messages.splitlines() if one.startswith("tshark: ")]
    return Said([one.turned() for one in streams.values()], " ".join(wrong))


def add(
    packet: dict[str, str],
    streams: dict[int, Conversation],
    opening: dict[int, list[str]],
    closing: dict[int, list[tuple[int, int]]],
) -> None:
    """Adds a packet to its conversation. Headers quoted by an ICMP error do not count."""
    layers = packet["frame.protocols"].split(":")
    if "tcp" not in layers or not packet["tcp.stream"]:
        return
    last = len(layers) - 1 - layers[::-1].index("tcp")
    layers = layers[:last]
    if "icmp" in layers or "icmpv6" in layers:
        return
    networks = [layer for layer in layers if layer in ("ip", "ipv6")]
    if not networks:
        return
    network = networks[-1]
    place = networks.count(network) - 1

    def text(name: str, at: int = -1) -> str:
        return (packet.get(name, "").split(",") or [""])[at]

    def number(name: str) -> int:
        return int(text(name) or "0", 0)

    sources, targets = packet[f"{network}.src"].split(","), packet[f"{network}.dst"].split(",")
    if place >= len(sources) or place >= len(targets):
        return
    source = (address(sources[place]), number("tcp.srcport"))
    target = (address(targets[place]), number("tcp.dstport"))
    stream = number("tcp.stream")
    if stream not in streams:
        empty = dict.fromkeys(COUNTED, 0)
        sides = ({**empty, "mss": None, "scale": None}, {**empty, "mss": None, "scale": None})
        streams[stream] = Conversation((source, target), sides, stack=":".join(layers))
    found = streams[stream]
    side = 0 if found.ends[0] == source else 1
    values = found.sides[side]
    flags = number("tcp.flags")
    opened = opening[stream]
    if flags & SYN:
        opened[side] = "SYN-ACK" if flags & ACK else "SYN"
    elif flags & ACK and opened[side] == "SYN" and opened[1 - side] == "SYN-ACK":
        found.handshake = True

    def count(name: str, more: int) -> None:
        values[name] = (values[name] or 0) + more

    count("packets", 1)
    count("wire_bytes", number("frame.len"))
    count("bytes", number("tcp.len"))
    count("keepalives", int(bool(packet["tcp.analysis.keep_alive"])))
    again = packet["tcp.analysis.retransmission"] or packet["tcp.analysis.out_of_order"]
    count("resent_or_late", int(bool(again)))
    blocks = packet["tcp.options.sack_le"]
    count("sack_blocks", len(blocks.split(",")) if blocks else 0)
    if flags & SYN:
        if packet["tcp.options.mss_val"]:
            values["mss"] = number("tcp.options.mss_val")
        # A retransmitted SYN without the option does not offer window scaling.
        has_scale = packet["tcp.options.wscale.shift"] != ""
        values["scale"] = min(number("tcp.options.wscale.shift"), 14) if has_scale else None
    if flags & (FIN | RST):
        closing[stream].append((side, flags))


def of_tcptrace(path: Path) -> Said:
    """The report of `tcptrace -l -n`."""
    status, out, messages = run(["tcptrace", "-l", "-n", "--csv", str(path)])
    lines = [line for line in out.splitlines() if line and not line.startswith("#")]
    if status != 0 or not lines or not lines[0].startswith("conn_#"):
        return Said(problem=f"{status} {(messages or out).strip()[-200:]}")
    return Said([traced(row).turned() for row in csv.DictReader(lines)])


def traced(row: dict[str, str]) -> Conversation:
    """A conversation from a row of tcptrace, which reports a window scale only if both sides have
    one.
    """
    ways = ("a2b", "b2a")

    both_scale = all(row[f"req_1323_ws/ts_{way}"].strip()[0] == "Y" for way in ways)

    def side(way: str) -> Values:
        def of(name: str) -> int:
            return int(row[f"{name}_{way}"])

        values: Values = {
            "packets": of("total_packets"),
            "bytes": of("unique_bytes_sent"),
            "resent_or_late": of("rexmt_data_pkts") + of("outoforder_pkts"),
            "resent_bytes": of("rexmt_data_bytes"),
            "mss": of("mss_requested") or None,
        }
        return values | ({"scale": of("adv_wind_scale")} if both_scale else {})

    ends = (
        (address(row["host_a"].strip()), int(row["port_a"])),
        (address(row["host_b"].strip()), int(row["port_b"])),
    )
    signs = [row[f"SYN/FIN_pkts_sent_{way}"].strip().split("/") for way in ways]
    fins = sum(int(fin) > 0 for _, fin in signs)
    resets = sum(int(row[f"resets_sent_{way}"]) for way in ways)
    closed = {0: "open", 1: "half closed", 2: "closed"}[fins]
    return Conversation(
        ends,
        (side("a2b"), side("b2a")),
        closed="reset" if resets and not fins else closed,
    )


def kept(path: Path, program: str, folder: Path | None) -> Said:
    """The report of a program, or its stored report."""
    ask = {"tshark": of_tshark, "tcptrace": of_tcptrace}[program]
    if folder is None:
        return ask(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:20]
    file = folder / f"{program}-{digest}.json"
    if not file.exists():
        file.write_text(json.dumps(asdict(ask(path))))
    found = json.loads(file.read_text())
    conversations = [
        Conversation(
            (tuple(one["ends"][0]), tuple(one["ends"][1])),
            (one["sides"][0], one["sides"][1]),
            one["handshake"],
            one["closed"],
            one["stack"],
        )
        for one in found["conversations"]
    ]
    return Said(conversations, found["problem"])


def grouped(said: Said) -> dict[tuple[End, End], list[Conversation]]:
    """Conversations by their ends."""
    found = defaultdict(list)
    for one in said.conversations:
        found[one.ends].append(one)
    return found


@dataclass
class Difference:
    """A value on which two programs differ."""

    file: str
    program: str
    ends: str
    what: str
    ours: object
    theirs: object
    stack: str = ""


def differences(
    file: str, program: str, ours: Said, theirs: Said, same: Counter[str]
) -> Iterator[Difference]:
    """Yields the differences, and counts equal values in `same`."""
    mine, other = grouped(ours), grouped(theirs)
    for ends in sorted(mine.keys() | other.keys()):
        where = " <-> ".join(f"{host} {port}" for host, port in ends)
        a, b = mine.get(ends, []), other.get(ends, [])
        stack = b[0].stack if b else ""
        if len(a) != len(b):
            yield Difference(file, program, where, "conversations", len(a), len(b), stack)
        else:
            same["conversations"] += len(a)
            for one, another in zip(a, b, strict=True):
                for what, value, expected in pairs(one, another, program):
                    if value == expected:
                        same[what] += 1
                    else:
                        yield Difference(file, program, where, what, value, expected, stack)
        for name in [name for name in ("packets", "wire_bytes") if name in COMPARED[program]]:
            sums = [
                tuple(sum(one.sides[side].get(name) or 0 for one in every) for side in (0, 1))
                for every in (a, b)
            ]
            if sums[0] != sums[1]:
                yield Difference(file, program, where, f"all {name}", sums[0], sums[1], stack)
            else:
                same[f"all {name}"] += 1


def pairs(
    one: Conversation, another: Conversation, program: str
) -> Iterator[tuple[str, object, object]]:
    """The values of two programs, by name."""
    for side in (0, 1):
        for name in COMPARED[program]:
            if name in another.sides[side]:
                yield name, one.sides[side].get(name), another.sides[side][name]
    if program == "tshark":
        yield "handshake", one.handshake, another.handshake
    if another.closed is not None:
        yield "close", one.closed, another.closed


def compared(
    path: Path, name: str, keep: Path | None
) -> tuple[Counter[str], list[Difference], str]:
    """The number of equal values of a file, the differences, and the problem, if any."""
    ours, same, found = of_tcplab(path), Counter[str](), []
    same["files"] += 1
    status, _, message = ours.problem.partition(" ")
    wrong = f"{status} {message}" if status and (status != "2" or "error: " not in message) else ""
    shark, trace = kept(path, "tshark", keep), kept(path, "tcptrace", keep)
    if shark.conversations:
        same["files with TCP"] += 1
    if ours.problem:
        same["files refused"] += 1
        if shark.conversations:
            found.append(
                Difference(name, "tshark", "", "refused", message, len(shark.conversations))
            )
        return same, found, wrong
    for program, theirs in [("tshark", shark), ("tcptrace", trace)]:
        if program == "tcptrace" and theirs.problem:
            if ours.conversations:
                same["files that tcptrace does not read"] += 1
            continue
        mine: Counter[str] = Counter()
        found += differences(name, program, ours, theirs, mine)
        same.update({f"{program}: {what}": count for what, count in mine.items()})
    return same, found, wrong


def main() -> int:
    """Compares all files of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--differences", type=Path, help="write each difference into this file")
    parser.add_argument("--keep", type=Path, help="keep what the other programs said here")
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    paths = sorted(path for path in args.folder.rglob("*") if path.is_file())
    same: Counter[str] = Counter()
    differ: Counter[str] = Counter()
    every: list[Difference] = []
    bad = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        names = [str(path.relative_to(args.folder)) for path in paths]
        for name, (equal, found, wrong) in zip(
            names, pool.map(compared, paths, names, [args.keep] * len(paths)), strict=True
        ):
            same.update(equal)
            differ.update(f"{one.program}: {one.what}" for one in found)
            every += found
            if wrong:
                bad += 1
                print(f"{name}: {wrong}")
    if args.differences:
        with args.differences.open("w") as file:
            file.writelines(json.dumps(asdict(one)) + "\n" for one in every)
    for what in sorted(same.keys() | differ.keys()):
        total = f" of {same[what] + differ[what]:,}" if ": " in what else ""
        print(f"{what:<36}{same[what]:>9,}{total}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
