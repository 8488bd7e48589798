"""Settings that change during a run, and runs that continue from a common state."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from conftest import EXAMPLES, Command
from test_own_cc import Reno

import tcplab as lab
from tcplab import _core
from tcplab._run import workers

EXAMPLE = EXAMPLES / "change.toml"


def experiment(**changes: Any) -> lab.Experiment:
    """A flow whose congestion control changes."""
    return lab.Experiment(
        **{"duration": "4 s", "sweep": {"change.flows[0].cc": ["cubic", "bbr", "vegas"]}} | changes,
        network={"chain": {"rate": "10 Mbit/s", "delay": "10 ms"}},
        flows=[lab.Flow(from_="client", to="server")],
        change={"at": "3 s"},
    )


def test_forked_runs_have_the_digests_of_separate_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = experiment(sweep={"change.flows[0].cc": ["cubic", "bbr", "vegas"], "seed": [1, 2]})
    batches = []
    run_batch = _core.run_batch

    def counted(plans: list[_core.Plan], *others: Any) -> _core.Batch:
        batches.append([plan.beginning for plan in plans])
        return run_batch(plans, *others)

    monkeypatch.setattr(_core, "run_batch", counted)
    shared = lab.run(given, workers=1)
    first, *others = batches
    assert len(first) == 3
    assert len(set(first)) == 1
    assert not any(set(first) & set(other) for other in others)
    by_itself = [_core.run(plan, _core.Watch())[1] for plan in given.plans()]
    assert sorted(shared.digests.values()) == sorted(by_itself)


def test_plans_share_a_beginning_unless_threads_would_idle() -> None:
    sweep = {"seed": [1, 2], "change.flows[0].cc": ["cubic", "bbr"]}
    plans = experiment(sweep=sweep).plans()
    sizes = [[len(part) for part in workers.together(plans, threads)] for threads in (1, 2, 3, 8)]
    assert sizes == [[2, 2], [2, 2], [1, 1, 2], [1, 1, 1, 1]]


def test_the_example_forks_one_run_into_three() -> None:
    samples = lab.run(EXAMPLE).samples
    windows = {
        run: one.select("time_s", "cwnd_segments")
        for (run,), one in samples.group_by("run", maintain_order=True)
    }
    cubic, bbr, vegas = windows.values()
    past = pl.col("time_s") < 30
    assert cubic.filter(past).equals(bbr.filter(past))
    assert cubic.filter(past).equals(vegas.filter(past))
    futures = [one.filter(~past)["cwnd_segments"].to_list() for one in (cubic, bbr, vegas)]
    assert all(futures[one] != futures[other] for one, other in ((0, 1), (0, 2), (1, 2)))


def test_python_controllers_are_copied_with_their_state() -> None:
    lab.cc.register("reno-that-forks", Reno, version="1")
    sweep = {"change.flows[0].cc": ["reno-that-forks", "bbr", "cubic"]}
    one = experiment(sweep=sweep)
    own = one.replace(flows=[lab.Flow(from_="client", to="server", cc="reno-that-forks")])
    shared = lab.run(own, workers=1).digests
    assert shared == lab.run(own, workers=3).digests
    assert len(set(shared.values())) == 3


class NoCopy(Reno):
    """A congestion control that cannot be copied."""

    def __deepcopy__(self, memo: object) -> NoCopy:
        """Raises an error."""
        raise RuntimeError("there is only one of me")


def test_python_controllers_that_cannot_be_copied_are_refused() -> None:
    lab.cc.register("one-of-a-kind", NoCopy, version="1")
    own = experiment(sweep={"change.flows[0].cc": ["bbr", "cubic"]})
    own = own.replace(flows=[lab.Flow(from_="client", to="server", cc="one-of-a-kind")])
    with pytest.raises(RuntimeError, match="there is only one of me"):
        lab.run(own, workers=1)


def test_changes_on_linux_are_refused_naming_sim(tcplab: Command) -> None:
    done = tcplab("run", EXAMPLE, "--on", "linux")
    assert done.returncode == 2
    assert "settings that change while a run goes on" in done.stderr
    assert "sim" in done.stderr
