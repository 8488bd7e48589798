"""Measures sweeps: 10,000 short runs, from the command to the table, and their size on disk.

Prints the share of the time spent outside runs (a run is simulation, checks of the laws, and the
digest), with one worker: of the elapsed time, by the column `wall_s`, and of the CPU time. Then
prints the rate of two workers relative to two concurrent commands with one worker each. The median
of several turns is quoted, with the least and the greatest. Nothing else should run meanwhile; the
share of the CPU time holds on a busy computer too. Python keeps its bytecode, as it does for an
installed package, and a first command writes it.

The CPU time of the runs is measured within the sweep itself: the clock rate of a processor changes
from one second to the next.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from tcplab import _core

RUNS = 10_000

TURNS = 5

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


@dataclass(frozen=True)
class Turn:
    """The measurements of one turn: of one worker, and of two."""

    elapsed_s: float
    outside: float
    """The share of the elapsed time outside of runs."""
    cpu_s: float
    cpu_outside: float
    both_s: float
    share: float
    """The rate of two workers, relative to that of two commands side by side."""


def measured(file: Path, place: Path) -> Turn:
    """Runs the sweep with one worker, with two, and twice with one."""
    alone = place / "alone"
    elapsed_s, cpu_s = ended(start(file, alone, 1), began=time.monotonic())
    in_runs_s = float(pl.read_parquet(alone / "*/runs.parquet")["wall_s"].sum())
    cpu_in_runs_s = float(note_of(alone).read_text(encoding="utf-8"))
    both_s, _ = ended(start(file, place / "both", 2), began=time.monotonic())
    began = time.monotonic()
    own = [start(file, place / f"own {number}", 1) for number in range(2)]
    beside_s, _ = ended(*own, began=began)
    return Turn(
        elapsed_s=elapsed_s,
        outside=1 - in_runs_s / elapsed_s,
        cpu_s=cpu_s,
        cpu_outside=1 - cpu_in_runs_s / cpu_s,
        both_s=both_s,
        share=beside_s / (2 * both_s),
    )


def of_turns(values: Iterable[float]) -> str:
    """The median of shares, and their range."""
    every = sorted(values)
    least, greatest = every[0], every[-1]
    return f"{statistics.median(every):.1%} ({least:.1%} to {greatest:.1%})"


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
        turns = []
        for number in range(TURNS):
            folder = place / f"{number}"
            folder.mkdir()
            turns.append(measured(file, folder))
            files = [path for path in (folder / "alone").rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in files)
            shutil.rmtree(folder)
        elapsed_s = statistics.median(turn.elapsed_s for turn in turns)
        cpu_s = statistics.median(turn.cpu_s for turn in turns)
        both_s = statistics.median(turn.both_s for turn in turns)
        outside = of_turns(turn.outside for turn in turns)
        cpu_outside = of_turns(turn.cpu_outside for turn in turns)
        share = of_turns(turn.share for turn in turns)
        print(f"{RUNS:,} runs: {elapsed_s:.2f} s; outside of runs {outside}; aim: 10 %")
        print(f"{RUNS:,} runs: {cpu_s:.2f} s of CPU time; outside of runs {cpu_outside}")
        print(f"{RUNS:,} runs: {len(files)} files, {size / 1e6:.1f} MB")
        print(
            f"{RUNS:,} runs with two workers: {both_s:.2f} s; of the rate of two commands side by "
            f"side {share}; aim: 95 %"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == [TIMED]:
        sys.exit(timed(Path(sys.argv[2]), sys.argv[3:]))
    main()
