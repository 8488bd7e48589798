"""Measures how fast captures are read: `tcplab capture flows`, tcptrace and tshark.

Two captures of headers are made: one with 2.3 million packets of 20 long connections, and one with
100,000 connections of twelve packets, at most 2,000 of them open at once. Each program reads each
capture in a process of its own, in turns; the median is quoted, with the greatest memory. tshark,
which takes minutes, runs once. Nothing else should run meanwhile.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

TURNS = 3

SYN, FIN, PUSH, ACK = 2, 1, 8, 16

FILE = np.dtype(
    [("magic", "<u4"), ("version", "<u2", 2), ("zone", "<u4", 2), ("snap", "<u4"), ("link", "<u4")]
)
RECORD = np.dtype(
    [
        ("seconds", "<u4"), ("micros", "<u4"), ("kept", "<u4"), ("length", "<u4"),
        ("version", "u1"), ("tos", "u1"), ("ip_length", ">u2"), ("id", ">u2"), ("offset", ">u2"),
        ("ttl", "u1"), ("protocol", "u1"), ("ip_sum", ">u2"), ("from", ">u4"), ("to", ">u4"),
        ("from_port", ">u2"), ("to_port", ">u2"), ("seq", ">u4"), ("ack", ">u4"),
        ("header", "u1"), ("flags", "u1"), ("window", ">u2"), ("sum", ">u2"), ("urgent", ">u2"),
    ]
)  # fmt: skip
"""A packet of 40 bytes of headers, as pcap stores it with link type raw IP."""


@dataclass(frozen=True)
class Measured:
    """The measurement of a program on a capture."""

    seconds: float
    cpu_seconds: float
    """Of all its threads, in user and kernel mode."""
    megabytes: float


def capture(path: Path, connections: int, exchanges: int, apart: int) -> int:
    """Writes connections that begin `apart` microseconds after each other. Each has a handshake, a
    number of exchanges of two data segments and an ACK, one retransmission, and a close. Returns
    the number of packets.
    """
    # For one connection: microseconds, whether the server sends, flags, seq, ack, data.
    steps = [(0, 0, SYN, 0, 0, 0), (20_000, 1, SYN | ACK, 0, 1, 0), (20_000, 0, ACK, 1, 1, 0)]
    for n in range(exchanges):
        at, seq = 20_000 + 1_000 * n, 1 + 2896 * n
        steps.append((at, 0, ACK, seq, 1, 1448))
        steps.append((at + 10, 0, ACK | PUSH, seq + 1448, 1, 1448))
        steps.append((at + 20_000, 1, ACK, 1, seq + 2896, 0))
    end, last = 1 + 2896 * exchanges, 20_000 + 1_000 * exchanges + 50_000
    steps.append((last, 0, ACK | PUSH, end, 1, 1000))
    steps.append((last + 300_000, 0, ACK | PUSH, end, 1, 1000))
    steps.append((last + 320_000, 1, ACK, 1, end + 1000, 0))
    steps.append((last + 320_100, 0, FIN | ACK, end + 1000, 1, 0))
    steps.append((last + 340_100, 1, FIN | ACK, 1, end + 1001, 0))
    steps.append((last + 340_100, 0, ACK, end + 1001, 2, 0))
    one = np.array(sorted(steps, key=lambda step: step[0]), dtype=np.int64)
    number = np.repeat(np.arange(connections), len(one))
    times, back, flags, seqs, acks, data = np.tile(one, (connections, 1)).T
    times = times + number * apart
    order = np.argsort(times, kind="stable")
    times, back, flags, seqs, acks, data, number = (
        column[order] for column in (times, back, flags, seqs, acks, data, number)
    )
    packets = np.zeros(len(times), dtype=RECORD)
    packets["seconds"], packets["micros"] = np.divmod(times, 1_000_000)
    packets["kept"], packets["length"] = 40, 40 + data
    packets["version"], packets["ip_length"] = 0x45, 40 + data
    packets["id"], packets["offset"] = 1 + np.arange(len(times)) % 65_535, 0x4000
    packets["ttl"], packets["protocol"] = 64, 6
    client, server = 0x0A000000 + number // 50_000, 0x0A010001
    client_port, server_port = 10_000 + number % 50_000, 80
    packets["from"], packets["to"] = np.where(back, server, client), np.where(back, client, server)
    packets["from_port"] = np.where(back, server_port, client_port)
    packets["to_port"] = np.where(back, client_port, server_port)
    packets["seq"], packets["ack"] = seqs, acks
    packets["header"], packets["flags"], packets["window"] = 0x50, flags, 60_000
    head = np.array([(0xA1B2C3D4, (2, 4), (0, 0), 65_535, 101)], dtype=FILE)
    path.write_bytes(head.tobytes() + packets.tobytes())
    return len(packets)


def measured(command: Sequence[str], folder: Path) -> Measured:
    """Runs a program once."""
    began = time.monotonic()
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} failed")
    seconds = time.monotonic() - began
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def beside(commands: dict[str, list[str]], folder: Path) -> dict[str, Measured]:
    """Runs each program in turns; tshark once."""
    found: dict[str, list[Measured]] = {name: [] for name in commands}
    for turn in range(TURNS):
        for name, command in commands.items():
            if name != "tshark" or turn == 0:
                found[name].append(measured(command, folder))
    return {
        name: Measured(
            statistics.median(one.seconds for one in every),
            statistics.median(one.cpu_seconds for one in every),
            max(one.megabytes for one in every),
        )
        for name, every in found.items()
    }


def main() -> None:
    """Measures both captures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, connections, exchanges, apart in [
            ("20 connections", 20, 38_330, 50_000),
            ("100,000 connections", 100_000, 1, 200),
        ]:
            file = folder / f"{connections}.pcap"
            # Written by a separate process: the measured programs inherit the memory of this one.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                packets = pool.submit(capture, file, connections, exchanges, apart).result()
            commands = {
                "tcplab": [
                    sys.executable, "-m", "tcplab.cli", "capture", "flows", str(file),
                    "--format", "csv",
                ],
                "tcptrace": ["tcptrace", "-l", "-r", "-n", str(file)],
                "tshark": ["tshark", "-r", str(file), "-q", "-z", "conv,tcp"],
            }  # fmt: skip
            missing = [one for one in ("tcptrace", "tshark") if shutil.which(one) is None]
            there = {one: words for one, words in commands.items() if one not in missing}
            every = beside(there, folder)
            ours = every["tcplab"]
            print(f"{packets:,} packets, {what}:")
            for program, one in every.items():
                ratio = f", {one.seconds / ours.seconds:.1f} times ours" if one != ours else ""
                cpu = f"{one.cpu_seconds:6.2f} s of CPU"
                print(f"  {program:<9}{one.seconds:7.2f} s,{cpu} {one.megabytes:6.0f} MB{ratio}")
            for program in missing:
                print(f"  {program}: not installed; on Debian: sudo apt-get install {program}")
            file.unlink()


if __name__ == "__main__":
    main()
