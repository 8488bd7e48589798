"""Runs on a Dask cluster: a scheduler and two workers, each a process on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import distributed
import polars as pl
import pytest
from conftest import Command, wait_for
from polars.testing import assert_frame_equal

import tcplab as lab
from tcplab.cc import Ack, Congestion, Control, FlowState, Init, register

DASK = str(Path(sys.executable).parent / "dask")

LOCAL = ["--host", "127.0.0.1", "--no-dashboard"]

TIMEOUT_S = 60.0


@dataclass
class Running:
    """A cluster of processes."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def begin(self, *words: str) -> None:
        with (self.folder / f"dask-{len(self.processes)}.log").open("wb") as log:
            command = [DASK, *words, *LOCAL, "--scheduler-file", str(self.folder / "scheduler")]
            self.processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
            )

    @property
    def address(self) -> str:
        found = json.loads((self.folder / "scheduler").read_text(encoding="utf-8"))
        return str(found["address"])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Running]:
    """Two workers without a nanny, which would restart them."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    running = Running(folder)
    try:
        running.begin("scheduler", "--port", "0")
        wait_for((folder / "scheduler").exists)
        for _ in range(2):
            running.begin("worker", "--no-nanny", "--nthreads", "1")
        with distributed.Client(running.address) as client:
            client.wait_for_workers(2, timeout=TIMEOUT_S)
        yield running
    finally:
        for process in running.processes:
            process.kill()
            process.wait()


@pytest.fixture
def client(cluster: Running) -> Iterator[distributed.Client]:
    with distributed.Client(cluster.address) as client:
        yield client


def many(duration: str, repeat: int) -> lab.Experiment:
    """Runs that differ in their seed, two with each swept value."""
    return lab.Experiment(
        name="many",
        duration=duration,
        repeat=repeat,
        network=lab.Network(chain=lab.Chain(rate="50 Mbit/s", delay="5 ms", loss="0.1 %")),
        flows=[lab.Flow(from_="client", to="server", cc="cubic")],
        sweep={"flows[0].cc": ["cubic", "newreno"]},
    )


def assert_same(one: lab.Results, other: lab.Results) -> None:
    """Compares everything except the elapsed time."""
    assert one.digests == other.digests
    assert_frame_equal(one.runs.drop("wall_s"), other.runs.drop("wall_s"))
    assert_frame_equal(one.flows, other.flows)
    assert_frame_equal(one.samples, other.samples)


def stored_runs(folder: Path) -> list[str]:
    """The runs of all groups. Duplicates appear twice."""
    files = folder.glob("group-*/plans.parquet")
    return [run for file in files for run in pl.read_parquet(file)["run"]]


def test_cluster_results_equal_local_results(client: distributed.Client, tmp_path: Path) -> None:
    experiment = many("2 s", 3)
    here = lab.run(experiment)
    assert_same(lab.run(experiment, client=client), here)
    stored = lab.run(experiment, client=client, out=tmp_path / "out")
    assert len(stored.computed) == 6
    assert_same(stored, here)
    assert not lab.run(experiment, out=tmp_path / "out").computed
    assert not lab.verify(tmp_path / "out", again=True).findings


def test_a_killed_worker_causes_no_loss_or_duplicates(
    cluster: Running, tcplab: Command, tmp_path: Path
) -> None:
    experiment = many("20 s", 100)
    file = tmp_path / "many.json"
    file.write_text(json.dumps(experiment.to_dict()), encoding="utf-8")
    out = tmp_path / "out"
    words = ["run", file, "--out", out, "--dask", cluster.address, "--quiet", "--no-chart"]
    running = subprocess.Popen(
        [sys.executable, "-m", "tcplab.cli", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: len(stored_runs(out)) > 20)
    cluster.processes[1].send_signal(signal.SIGKILL)
    assert running.poll() is None, "it was over before"
    _, said = running.communicate(timeout=TIMEOUT_S * 3)
    assert running.returncode == 0, said
    runs = stored_runs(out)
    assert len(runs) == len(set(runs)) == 200
    again = lab.run(experiment, out=out)
    assert not again.computed
    assert_same(again, lab.run(experiment))


def test_ctrl_c_cancels_the_work_of_workers(cluster: Running, tmp_path: Path) -> None:
    """A long run would block a worker for others."""
    file = tmp_path / "long.json"
    file.write_text(json.dumps(many("100000 s", 1).to_dict()), encoding="utf-8")
    words = ["run", str(file), "--out", "out", "--dask", cluster.address, "--quiet"]
    running = subprocess.Popen(
        [sys.executable, "-m", "tcplab.cli", *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    )
    with distributed.Client(cluster.address) as client:

        def busy() -> int:
            return sum(len(keys) for keys in client.processing().values())

        wait_for(lambda: busy() == 2)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=TIMEOUT_S)
        assert running.returncode == 130
        assert said.decode().startswith("interrupted; 0 of 2 runs are finished")
        # Both threads are free: tasks of other clients are executed.
        assert client.submit(os.getpid, workers=list(client.nthreads())[:1]).result(timeout=10)
        assert client.submit(os.getppid, workers=list(client.nthreads())[1:]).result(timeout=10)


class Slow:
    """A constant window of four segments."""

    def __init__(self, init: Init) -> None:
        pass

    def on_ack(self, flow: FlowState, ack: Ack) -> None:
        pass

    def on_congestion(self, flow: FlowState, event: Congestion) -> None:
        pass

    def control(self) -> Control:
        return Control(4)


def test_python_controllers_are_sent_to_workers(client: distributed.Client) -> None:
    # Workers cannot import this module: the class itself is sent.
    register("slow-of-cluster", Slow)
    experiment = many("2 s", 1).changed({"flows[0].cc": "slow-of-cluster"})
    assert_same(lab.run(experiment, client=client), lab.run(experiment))


def test_exceptions_of_python_controllers_are_raised_locally(
    client: distributed.Client, tmp_path: Path
) -> None:
    class Failing(Slow):
        def on_ack(self, flow: FlowState, ack: Ack) -> None:
            raise LookupError("no more")

    register("failing-of-cluster", Failing)
    sweep = {"sweep": {"flows[0].cc": ["cubic", "failing-of-cluster"]}}
    with pytest.raises(LookupError, match="no more"):
        lab.run(many("2 s", 1).to_dict() | sweep, client=client, out=tmp_path / "out")


def test_options_without_meaning_on_a_cluster_are_refused(client: distributed.Client) -> None:
    with pytest.raises(TypeError, match=r"a distributed.Client is needed, not a str"):
        lab.run(many("1 s", 1), client="tcp://127.0.0.1:1")
    for option in ({"workers": 2}, {"memory": "1 GB"}):
        with pytest.raises(ValueError, match="limits of their own"):
            lab.run(many("1 s", 1), client=client, **option)  # type: ignore[arg-type]


def test_a_scheduler_that_does_not_answer_is_named(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "it.json").write_text(json.dumps(many("1 s", 1).to_dict()), encoding="utf-8")
    done = tcplab("run", "it.json", "--dask", "tcp://127.0.0.1:9")
    assert done.returncode == 2
    assert "tcp://127.0.0.1:9: no scheduler of Dask can be reached" in done.stderr
    assert not (tmp_path / "results").exists()
    done = tcplab("run", "it.json", "--dask", "nonsense://x")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
