"""Settings that change while a run goes on, and runs that go on from one state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from test_own_cc import Reno

import tcplab as lab
from tcplab import _core, _workers

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "change.toml"


def experiment(**changes: Any) -> lab.Experiment:
    """A flow whose congestion control changes."""
    return lab.Experiment(
        **{"duration": "4 s", "sweep": {"change.flows[0].cc": ["cubic", "bbr", "vegas"]}} | changes,
        network={"chain": {"rate": "10 Mbit/s", "delay": "10 ms"}},
        flows=[lab.Flow(from_="client", to="server")],
        change={"at": "3 s"},
        record="10 ms" if "record" in changes else None,
    )


def test_runs_with_one_beginning_have_the_digests_of_each_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    together = _core.run_together

    def counted(plans: Any, *others: Any) -> None:
        calls.append(len(plans))
        together(plans, *others)

    monkeypatch.setattr(_core, "run_together", counted)
    shared = lab.run(experiment(), workers=1)
    assert calls == [3]
    monkeypatch.setattr(_workers, "together", lambda plans, _: [[plan] for plan in plans])
    assert lab.run(experiment(), workers=1).digests == shared.digests
    assert calls == [3]


def test_plans_are_together_as_far_as_no_thread_idles() -> None:
    plans = lab.plan(experiment(sweep={"seed": [1, 2], "change.flows[0].cc": ["cubic", "bbr"]}))
    raw = [run._plan if hasattr(run, "_plan") else run for run in plans]
    sizes = [[len(part) for part in _workers.together(raw, threads)] for threads in (1, 2, 3, 8)]
    assert sizes == [[2, 2], [2, 2], [1, 1, 2], [1, 1, 1, 1]]


def test_the_example_has_one_past_and_three_futures() -> None:
    samples = lab.run(EXAMPLE).samples
    times, windows = samples["time_s"], {}
    for (name,), one in samples.group_by("change.flows[0].cc", maintain_order=True):
        windows[name] = one.filter(one["time_s"] < 30)["cwnd_segments"].to_list()
    assert len(windows) == 3 and times.max() >= 59
    assert windows["cubic"] == windows["bbr"] == windows["vegas"]


def test_a_class_is_copied_with_all_that_it_knows() -> None:
    lab.cc.register("reno-that-forks", Reno)
    sweep = {"change.flows[0].cc": ["reno-that-forks", "bbr", "cubic"]}
    one = experiment(sweep=sweep)
    own = one.replace(flows=[lab.Flow(from_="client", to="server", cc="reno-that-forks")])
    shared = lab.run(own, workers=1).digests
    assert shared == lab.run(own, workers=3).digests
    assert len(set(shared.values())) == 3


class NoCopy(Reno):
    """Cannot be copied."""

    def __deepcopy__(self, memo: object) -> NoCopy:
        """Says so."""
        raise RuntimeError("there is only one of me")


def test_a_class_that_cannot_be_copied_says_so() -> None:
    lab.cc.register("one-of-a-kind", NoCopy)
    own = experiment(sweep={"change.flows[0].cc": ["bbr", "cubic"]})
    own = own.replace(flows=[lab.Flow(from_="client", to="server", cc="one-of-a-kind")])
    with pytest.raises(RuntimeError, match="there is only one of me"):
        lab.run(own, workers=1)


def test_linux_says_who_runs_it(command: Command) -> None:
    said = command("run", EXAMPLE, "--on", "linux", status=2).stderr
    assert "settings that change while a run goes on" in said
    assert "sim" in said
