"""Measures the backend `linux`: from the command to the table, with the kernel cached.

Prints the wall time of three experiments, the median of three runs each, and the data packets per
second that crossed the two routers. Every time includes booting the kernel.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import tcplab

ROUNDS = 3


@dataclass(frozen=True)
class Case:
    """An experiment and its time limit."""

    name: str
    rate: str
    duration_s: int
    samples: str
    most_s: float | None

    def text(self) -> str:
        """The text of the experiment file."""
        return (
            f'duration = "{self.duration_s} s"\nrecord = {{ samples = "{self.samples}" }}\n'
            f'network.dumbbell = {{ rate = "{self.rate}", delay = "20 ms", queue = "1 BDP" }}\n'
            '[[flows]]\nfrom = "left1"\nto = "right1"\n'
        )


CASES = [
    Case("6 s at 10 Mbit/s", "10 Mbit/s", 6, "100 ms", 2),
    Case("60 s at 100 Mbit/s, a sample at every ACK", "100 Mbit/s", 60, "ack", 6),
    Case("60 s at 100 Mbit/s", "100 Mbit/s", 60, "100 ms", None),
]


def main() -> None:
    """Runs all cases."""
    tcplab.build_kernel()
    for case in CASES:
        walls = []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "case.toml"
            file.write_text(case.text(), encoding="utf-8")
            for number in range(ROUNDS):
                out = Path(folder) / str(number)
                words = ["run", str(file), "--on", "linux", "--quiet", "--out", str(out)]
                began = time.monotonic()
                command = [sys.executable, "-m", "tcplab.cli", *words]
                subprocess.run(command, check=True, capture_output=True)
                walls.append(time.monotonic() - began)
            (flows,) = (Path(folder) / "0").glob("*/flows.parquet")
            packets = pl.read_parquet(flows)["sent_segments"].sum()
            (runs,) = (Path(folder) / "0").glob("*/runs.parquet")
            inside_s = pl.read_parquet(runs)["wall_s"][0]
        wall_s = statistics.median(walls)
        aim = "" if case.most_s is None else f" (aim: {case.most_s:g} s)"
        rate = packets / inside_s
        print(f"{case.name}: {wall_s:.2f} s{aim}; {rate:,.0f} data packets/s without the command")


if __name__ == "__main__":
    main()
