"""Measures sweeps: 10,000 short runs, from the command to the table, and their size on disk.

Prints the share of the time spent outside runs (a run is simulation, checks of the laws, and the
digest), with one worker: of the elapsed time, by the column `wall_s`, and of the CPU time, compared
with the same runs in this process, where nothing is stored. Then prints the rate of two workers
relative to two concurrent commands with one worker each. Nothing else should run meanwhile; CPU
times hold on a busy computer too. Python keeps its bytecode, as it does for an installed package,
and a first command writes it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

import tcplab
from tcplab import _core

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
    unwanted = "PYTHONDONTWRITEBYTECODE"
    kept = {name: value for name, value in os.environ.items() if name != unwanted}
    words = ["run", str(file), "--no-chart", "--out", str(out), "--workers", str(workers)]
    return subprocess.Popen(
        [sys.executable, "-m", "tcplab.cli", *words],
        env={**kept, "PYTHONPYCACHEPREFIX": str(file.parent / "bytecode")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def ended(*processes: subprocess.Popen[bytes], began: float) -> tuple[float, float]:
    """Waits for the processes, and returns the elapsed time and their CPU time, in seconds."""
    cpu_s = 0.0
    for process in processes:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit("a sweep failed")
        cpu_s += used.ru_utime + used.ru_stime
    return time.monotonic() - began, cpu_s


def runs_cpu_s(file: Path) -> float:
    """Returns the CPU time of the runs alone: their tables are computed and dropped."""
    plans = tcplab.load(file).plans()
    began = time.thread_time()
    while plans:
        batch = _core.run_batch(plans, _core.Watch(), 0.7)
        plans = plans[batch.tried :]
    return time.thread_time() - began


def main() -> None:
    """Runs the sweeps."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        file = place / "sweep.toml"
        file.write_text(TEXT, encoding="utf-8")
        few = place / "few.toml"
        few.write_text(TEXT.replace(f"repeat = {RUNS // 2}", "repeat = 1"), encoding="utf-8")
        ended(start(few, place / "few", 1), began=time.monotonic())
        began = time.monotonic()
        alone, cpu_s = ended(start(file, place / "alone", 1), began=began)
        runs = pl.read_parquet(place / "alone/*/runs.parquet")
        outside = 1 - float(runs["wall_s"].sum()) / alone
        files = [path for path in (place / "alone").rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(f"{RUNS:,} runs: {alone:.2f} s; {outside:.1%} of it outside of runs (aim: 10 %)")
        outside = 1 - runs_cpu_s(file) / cpu_s
        print(f"{RUNS:,} runs: {cpu_s:.2f} s of CPU time; {outside:.1%} of it outside of runs")
        print(f"{RUNS:,} runs: {len(files)} files, {size / 1e6:.1f} MB")
        began = time.monotonic()
        both, _ = ended(start(file, place / "both", 2), began=began)
        began = time.monotonic()
        own = [start(file, place / f"own {number}", 1) for number in range(2)]
        beside, _ = ended(*own, began=began)
        share = (RUNS / both) / (2 * RUNS / beside)
        print(
            f"{RUNS:,} runs with two workers: {both:.2f} s; {share:.0%} of the rate of two "
            "commands side by side (aim: 95 %)"
        )


if __name__ == "__main__":
    main()
