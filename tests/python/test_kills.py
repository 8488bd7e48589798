"""A kill at any moment: no process survives, the next run removes all leftover files, and finished
runs are kept.

`TCPLAB_KILLS=40` sets the number of kills; the default is a few, to be quick.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from conftest import wait_for

import tcplab as lab

KILLS = int(os.environ.get("TCPLAB_KILLS", "6"))

SEED = 13

LONG_S = {"sim": 3.0, "linux": 4.0}
"""The latest time of a kill, in seconds."""


def several(backend: str) -> lab.Experiment:
    """More runs than finish before the last kill."""
    return lab.Experiment(
        name="several",
        duration="20 s" if backend == "sim" else "2 s",
        repeat=60,
        network=lab.Network(chain=lab.Chain(rate="50 Mbit/s", delay="5 ms")),
        flows=[lab.Flow(from_="client", to="server", start_jitter="100 ms")],
    )


def of_ours(mark: str) -> list[str]:
    """The processes that have this mark in their environment, or are kernels."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
            where = str((process / "cwd").readlink())
        except OSError:
            continue
        if mark.encode() in environment or (b"tcplab.stream=" in words and mark in where):
            found.append(f"{process.name} {words[:80]!r}")
    return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A short path for the folders of runs."""
    with tempfile.TemporaryDirectory(prefix="tcplab-kills-") as folder:
        yield Path(folder)


def until_gone(mark: str) -> list[str]:
    for _ in range(100):
        if not of_ours(mark):
            break
        time.sleep(0.05)
    return of_ours(mark)


def stored(out: Path) -> dict[str, float]:
    """The finished runs, each with its elapsed time, which changes if the run is computed again."""
    tables = [pl.read_parquet(path) for path in out.glob("group-*/runs.parquet")]
    return dict(row for table in tables for row in table.select("run", "wall_s").iter_rows())


@pytest.mark.parametrize("backend", ["sim", "linux"])
def test_kills_at_random_moments_lose_no_stored_run(
    backend: str, tmp_path: Path, place: Path, request: pytest.FixtureRequest
) -> None:
    if backend == "linux":
        request.getfixturevalue("kernel")
    (tmp_path / "it.json").write_text(json.dumps(several(backend).to_dict()))
    program = "import sys; from tcplab_command import main; sys.exit(main())"
    words = [sys.executable, "-c", program, "run", "it.json", "--out", "out", "--workers", "2"]
    words += ["--on", backend, "--quiet"]
    environment = os.environ | {"TMPDIR": str(place)}
    chance = random.Random(SEED)
    finished: dict[str, float] = {}
    for _ in range(KILLS):
        number = chance.choice([signal.SIGKILL, signal.SIGTERM])
        process = subprocess.Popen(
            words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        time.sleep(chance.uniform(0, LONG_S[backend]))
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode in (-number, 128 + number, 0), said.decode()
        assert b"Traceback" not in said, said.decode()
        assert until_gone(str(place)) == []
        out = tmp_path / "out"
        kept = stored(out)
        # Runs finished earlier were neither lost nor computed again.
        assert finished.items() <= kept.items()
        finished = kept
        if number == signal.SIGTERM and process.returncode == 143:
            assert not list(out.glob(".unfinished-*"))
            assert not list(place.iterdir())
    # Any next run removes leftovers; here it has a single run to do.
    last = several(backend).replace(seed=100, repeat=1)
    (tmp_path / "it.json").write_text(json.dumps(last.to_dict()))
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert until_gone(str(place)) == []
    left = sorted(path.name for path in (tmp_path / "out").iterdir() if path.name.startswith("."))
    assert left == []
    assert list(place.iterdir()) == []
    runs = {plan.id for plan in last.plans(backend)}
    assert runs <= stored(tmp_path / "out").keys()


def test_a_signal_stops_drawing_a_chart(tmp_path: Path) -> None:
    program = """
import os, signal, threading, time, tcplab
from tcplab.cli import _chart, _signals
class Chart:
    def to_dict(self, *_, **__):
        os.kill(os.getpid(), signal.{name})
        sum(range(10**9))
with _signals.obeyed():
    _chart.save(Chart, __import__("pathlib").Path("chart.svg"))
"""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", program.replace("{name}", name)],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert done.returncode == -signal.Signals[name]
        assert time.monotonic() - began < 8
        assert list(tmp_path.iterdir()) == []


def test_signals_have_their_exit_status(tmp_path: Path) -> None:
    long = several("sim").replace(duration="100 h", repeat=1)
    (tmp_path / "it.json").write_text(json.dumps(long.to_dict()))
    program = "import sys; from tcplab_command import main; sys.exit(main())"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = subprocess.Popen(
            [sys.executable, "-c", program, "run", "it.json", "--out", "out"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        # At the first sight of the folder: its own process may not have recorded it yet.
        wait_for(lambda: list((tmp_path / "out").glob(".unfinished-*")), process, pause_s=0)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert said == "interrupted; 0 of 1 runs are finished and kept in out\n"
        assert list((tmp_path / "out").iterdir()) == []
