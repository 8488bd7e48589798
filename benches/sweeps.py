"""Measures sweeps: 10,000 short runs, from the command to the table, and their size on disk.

Prints the share of the time spent outside runs (a run is simulation, checks of the laws, and the
digest), with one worker: of the elapsed time, by the column `wall_s`, and of the CPU time. Then
prints the rate of two workers relative to two concurrent commands with one worker each. Nothing
else should run meanwhile; the share of the CPU time holds on a busy computer too. Python keeps its
bytecode, as it does for an installed package, and a first command writes it.

The CPU time of the runs is measured within the sweep itself: the clock rate of a processor changes
from one second to the next.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

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


TIMED = "--timed"
"""The first argument of this program where it is the sweep, and notes the CPU time of the runs."""


def timed(note: Path, words: list[str]) -> int:
    """Runs the command, and writes the CPU time of all runs, in seconds, to a file."""
    from tcplab_command import main  # noqa: PLC0415 (the benchmark itself does without)

    run_batch = _core.run_batch
    cpu_s: list[float] = []

    def noted(*args: Any) -> _core.Batch:
        batch = run_batch(*args)
        cpu_s.append(batch.cpu_s)
        return batch

    vars(_core)["run_batch"] = noted
    sys.argv[1:] = words
    status = main()
    note.write_text(str(sum(cpu_s)), encoding="utf-8")
    return status


def note_of(out: Path) -> Path:
    """The file with the CPU time of the runs of a sweep."""
    return out.with_suffix(".txt")


def start(file: Path, out: Path, workers: int) -> subprocess.Popen[bytes]:
    """Starts the sweep."""
    unwanted = "PYTHONDONTWRITEBYTECODE"
    kept = {name: value for name, value in os.environ.items() if name != unwanted}
    words = ["run", str(file), "--no-chart", "--out", str(out), "--workers", str(workers)]
    return subprocess.Popen(
        [sys.executable, __file__, TIMED, str(note_of(out)), *words],
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


def main() -> None:
    """Runs the sweeps."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        file = place / "sweep.toml"
        file.write_text(TEXT, encoding="utf-8")
        # Two repetitions have intervals: the bytecode of SciPy is written too.
        few = place / "few.toml"
        few.write_text(TEXT.replace(f"repeat = {RUNS // 2}", "repeat = 2"), encoding="utf-8")
        ended(start(few, place / "few", 1), began=time.monotonic())
        began = time.monotonic()
        alone, cpu_s = ended(start(file, place / "alone", 1), began=began)
        runs = pl.read_parquet(place / "alone/*/runs.parquet")
        outside = 1 - float(runs["wall_s"].sum()) / alone
        files = [path for path in (place / "alone").rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(f"{RUNS:,} runs: {alone:.2f} s; {outside:.1%} of it outside of runs (aim: 10 %)")
        outside = 1 - float(note_of(place / "alone").read_text(encoding="utf-8")) / cpu_s
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
    if sys.argv[1:2] == [TIMED]:
        sys.exit(timed(Path(sys.argv[2]), sys.argv[3:]))
    main()
