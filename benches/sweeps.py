"""Measures sweeps: 10,000 short runs, from the command to the table, and their size on disk.

Prints the share of the time spent outside runs (the time of a run, `wall_s`, covers simulation,
checks of the laws, and the digest), with one worker; and the rate of two workers relative to two
concurrent commands with one worker each. Nothing else should run meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

RUNS = 10_000

TEXT = f"""
duration = "1 s"
repeat = {RUNS // 2}
network.dumbbell = {{ pairs = 1, rate = "10 Mbit/s", delay = "20 ms", queue = "1 BDP" }}
sweep."flows[0].cc" = ["cubic", "newreno"]
[[flows]]
from = "left1"
to = "right1"
"""


def start(file: Path, out: Path, workers: int) -> subprocess.Popen[bytes]:
    """Starts the sweep."""
    words = ["run", str(file), "--no-chart", "--out", str(out), "--workers", str(workers)]
    return subprocess.Popen(
        [sys.executable, "-m", "tcplab.cli", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wall_s(*processes: subprocess.Popen[bytes], began: float) -> float:
    """Waits for the processes, and returns the elapsed time."""
    if any(process.wait() != 0 for process in processes):
        raise SystemExit("a sweep failed")
    return time.monotonic() - began


def main() -> None:
    """Runs the sweeps."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        file = place / "sweep.toml"
        file.write_text(TEXT, encoding="utf-8")
        began = time.monotonic()
        alone = wall_s(start(file, place / "alone", 1), began=began)
        runs = pl.read_parquet(place / "alone/*/runs.parquet")
        outside = 1 - float(runs["wall_s"].sum()) / alone
        files = [path for path in (place / "alone").rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(f"{RUNS:,} runs: {alone:.2f} s; {outside:.1%} of it outside of runs (aim: 10 %)")
        print(f"{RUNS:,} runs: {len(files)} files, {size / 1e6:.1f} MB")
        began = time.monotonic()
        both = wall_s(start(file, place / "both", 2), began=began)
        began = time.monotonic()
        own = [start(file, place / f"own {number}", 1) for number in range(2)]
        beside = wall_s(*own, began=began)
        share = (RUNS / both) / (2 * RUNS / beside)
        print(
            f"{RUNS:,} runs with two workers: {both:.2f} s; {share:.0%} of the rate of two "
            "commands side by side (aim: 95 %)"
        )


if __name__ == "__main__":
    main()
