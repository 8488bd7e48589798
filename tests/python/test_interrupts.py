"""Ctrl-C ends everything soon, with one line of output and no leftovers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import wait_for

import tcplab as lab

MANY = lab.Experiment(
    duration="1 h",
    network=lab.Network(
        dumbbell=lab.Dumbbell(pairs=100_000, rate="10 Gbit/s", delay="10 ms", queue="1000 packets")
    ),
    flows=[lab.Flow(from_="left1", to="right1")],
    record=lab.Record(samples="off", links="off"),
)

SOON_S = 10.0
"""The size of an experiment whose planning takes several times as long on a slow machine."""


@contextmanager
def interrupted_after(seconds: float) -> Iterator[pytest.ExceptionInfo[KeyboardInterrupt]]:
    """Sends Ctrl-C after a while. The response must be prompt."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt) as raised:
        yield raised
    timer.join()
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__


@pytest.mark.parametrize("backend", ["sim", "linux"])
def test_interrupt_stops_planning_at_once(backend: str) -> None:
    # In a separate process: other tests here register classes of congestion controls, which
    # planning may call.
    words = [sys.executable, "-c", f"import test_interrupts as it; it.hear_planning({backend!r})"]
    subprocess.run(words, cwd=Path(__file__).parent, check=True)


def hear_planning(backend: str) -> None:
    """Plans once, and is interrupted while planning a second time."""
    began = time.monotonic()
    MANY.plans(backend)
    takes_s = time.monotonic() - began
    began = time.monotonic()
    with interrupted_after(takes_s / 8):
        MANY.plans(backend)
    assert time.monotonic() - began < takes_s * 0.8


def test_interrupt_stops_runs_and_reports_kept(tmp_path: Path) -> None:
    short = lab.Experiment(
        duration="1 s",
        network=lab.Network(chain=lab.Chain(rate="1 Gbit/s", delay="5 ms")),
        flows=[lab.Flow(from_="client", to="server")],
        record=lab.Record(samples="off", links="off"),
        sweep={"duration": ["1 s", "100 h"]},
    )
    began = time.monotonic()
    with interrupted_after(3.0) as raised:
        lab.run(short, out=tmp_path, workers=2)
    assert time.monotonic() - began < 3 + SOON_S
    assert str(raised.value) == f"interrupted; 1 of 2 runs are finished and kept in {tmp_path}"
    assert len(list(tmp_path.glob("group-*"))) == 1
    with pytest.warns(lab.TcplabWarning, match="1 of 2 runs are there"):
        assert len(lab.stored(tmp_path).plans) == 1


def test_interrupt_prints_one_line_at_any_stage(tmp_path: Path) -> None:
    (tmp_path / "many.json").write_text(json.dumps(MANY.to_dict()))
    program = "import sys; from tcplab_command import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "run", "many.json", "--on", "linux"]
    for seconds in (0.0, 0.5, 1.0, 2.0):
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        # Before polars is loaded, only the interpreter itself handles signals.
        maps = Path(f"/proc/{process.pid}/maps")
        wait_for(lambda: "polars" in maps.read_text(), process, pause_s=0.01)  # noqa: B023
        time.sleep(seconds)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert time.monotonic() - began < SOON_S
        assert process.returncode == 130
        assert len(said.splitlines()) == 1
        assert said.startswith("interrupted")


def test_interrupt_stops_a_python_controller_that_hangs() -> None:
    class Endless:
        def __init__(self, init: lab.cc.Init) -> None:
            self.cwnd = init.initial_window

        def on_ack(self, flow: lab.cc.FlowState, ack: lab.cc.Ack) -> None:
            while True:
                self.cwnd ^= 1

        def on_congestion(self, flow: lab.cc.FlowState, event: lab.cc.Congestion) -> None: ...

        def control(self) -> lab.cc.Control:
            return lab.cc.Control(10)

    lab.cc.register("endless", Endless)
    endless = lab.Experiment(
        duration="2 s",
        network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms")),
        flows=[lab.Flow(from_="client", to="server", cc="endless")],
        sweep={"seed": [1, 2]},
    )
    began = time.monotonic()
    with interrupted_after(1.0):
        lab.run(endless, workers=2)
    assert time.monotonic() - began < 1 + SOON_S
