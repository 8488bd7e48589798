"""Congestion controls that are Python classes: they take effect, and their errors are clear."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

import tcplab as lab
from tcplab.cc import Ack, Congestion, Control, FlowState, Init


class Reno:
    """NewReno of the profile `rfc`, without ECN: RFC 5681 §3.1, in whole segments."""

    def __init__(self, init: Init, beta: float = 0.5) -> None:
        self.beta = beta
        self.cwnd, self.ssthresh, self.credit = init.initial_window, 1 << 60, 0
        self.initial = init.initial_window
        self.before: tuple[int, int] | None = None

    def on_ack(self, flow: FlowState, ack: Ack) -> None:
        if flow.is_recovering or not flow.cwnd_limited:
            return
        credit = ack.credit
        if self.cwnd < self.ssthresh:
            grown = min(self.cwnd + credit, self.ssthresh)
            credit -= grown - self.cwnd
            self.cwnd = grown
        if credit:
            per = self.cwnd
            self.credit += credit
            self.cwnd += self.credit // per
            self.credit %= per

    def on_congestion(self, flow: FlowState, event: Congestion) -> None:
        if not event.again:
            self.before = (self.cwnd, self.ssthresh)
            self.ssthresh = max(int(event.flight * self.beta), 2)
        self.cwnd = min(self.cwnd, 1 if event.cause == "timeout" else self.ssthresh)
        self.credit = 0

    def on_undo(self, flow: FlowState) -> None:
        if self.before is not None and self.cwnd < self.before[0]:
            self.cwnd, self.ssthresh = self.before
            self.credit = 0
        self.before = None

    def on_restart(self, flow: FlowState, idle_s: float) -> None:
        self.cwnd, self.before, self.credit = min(self.cwnd, self.initial), None, 0

    def control(self) -> Control:
        return Control(self.cwnd, ssthresh=None if self.ssthresh == 1 << 60 else self.ssthresh)

    def probe(self) -> dict[str, float]:
        return {"credit": self.credit}


def experiment(cc: Any, **changes: Any) -> lab.Experiment:
    """A flow that loses packets now and then, and meets a full queue."""
    chain = lab.Chain(
        rate="10 Mbit/s",
        delay="10 ms",
        queue="20 packets",
        loss=lab.IndependentLoss(probability="0.2 %"),
    )
    return lab.Experiment(
        name="own",
        **{"duration": "10 s", "stack": lab.Stack(profile="rfc")} | changes,
        network=lab.Network(chain=chain),
        flows=[lab.Flow(from_="client", to="server", cc=cc)],
        record=lab.Record(samples="ack"),
    )


def test_the_same_rules_give_the_same_window_at_every_ack() -> None:
    lab.cc.register("reno-in-python", Reno)
    ours = lab.run(experiment("reno-in-python")).samples
    theirs = lab.run(experiment("newreno")).samples
    columns = ["time_s", "cwnd_segments", "ssthresh_segments", "in_flight_segments", "acked_bytes"]
    assert len(ours) > 1000
    assert ours.select(columns).equals(theirs.select(columns))
    assert ours["reno-in-python_credit"].max() > 0


def test_parameters_are_those_of_the_class() -> None:
    lab.cc.register("reno-with-beta", Reno)
    gentle = lab.run(experiment({"name": "reno-with-beta", "beta": 0.9})).flows["goodput_mbit_s"]
    harsh = lab.run(experiment({"name": "reno-with-beta", "beta": 0.1})).flows["goodput_mbit_s"]
    assert gentle[0] > harsh[0]
    with pytest.raises(lab.ConfigError, match=r"flows\[0\]\.cc: Reno: .*unexpected.*'betta'"):
        lab.run(experiment({"name": "reno-with-beta", "betta": 0.9}))


def test_a_mistake_in_the_beginning_of_a_class_has_its_line() -> None:
    class Hasty(Reno):
        def __init__(self, init: Init) -> None:
            super().__init__(init)
            1 / 0  # noqa: B018

    lab.cc.register("hasty", Hasty)
    line = Hasty.__init__.__code__.co_firstlineno + 2
    said = rf"flows\[0\]\.cc: Hasty: ZeroDivisionError: .* \(.*test_own_cc\.py, line {line}\)"
    with pytest.raises(lab.ConfigError, match=said):
        lab.run(experiment("hasty"))


@pytest.mark.parametrize("said", [{"k \n": 1.0}, {"": 1.0}, 3])
def test_names_of_probe_columns_are_checked(said: object) -> None:
    class Odd(Reno):
        def probe(self) -> Any:
            return said

    lab.cc.register("odd", Odd)
    with pytest.raises(lab.ConfigError, match=r"flows\[0\]\.cc: Odd: .*probe\(\) "):
        lab.run(experiment("odd"))


def test_exceptions_of_a_class_end_the_run_unchanged() -> None:
    class Broken(Reno):
        def on_ack(self, flow: FlowState, ack: Ack) -> None:
            if flow.now_s > 1:
                raise LookupError("no such thing")

    lab.cc.register("broken", Broken)
    with pytest.raises(LookupError, match="no such thing"):
        lab.run(experiment("broken"))


@pytest.mark.parametrize(
    ("said", "message"),
    [(7, "gives a tcplab.cc.Control, not 7"), (None, "gives a tcplab.cc.Control, not None")],
)
def test_control_must_return_a_control(said: Any, message: str) -> None:
    class Wrong(Reno):
        def control(self) -> Any:
            return said

    lab.cc.register("wrong", Wrong, version="any")
    with pytest.raises(lab.ConfigError, match=message):
        lab.run(experiment("wrong"))


def test_probed_values_must_be_finite() -> None:
    class Endless(Reno):
        def probe(self) -> dict[str, float]:
            return {"something": float("inf")}

    lab.cc.register("endless", Endless, version="any")
    with pytest.raises(ValueError, match="`something` is infinite"):
        lab.run(experiment("endless"))


@pytest.mark.parametrize("cwnd", [float("nan"), -1, float("inf")])
def test_the_window_must_be_a_number_of_segments(cwnd: float) -> None:
    with pytest.raises(ValueError, match="cwnd: expected a number of segments"):
        Control(cwnd)


def test_a_changed_class_changes_the_run_id(tmp_path: Path) -> None:
    class Slow(Reno):
        def on_ack(self, flow: FlowState, ack: Ack) -> None:
            pass

    lab.cc.register("changing", Reno)
    first = lab.run(experiment("changing"), out=tmp_path)
    again = lab.run(experiment("changing"), out=tmp_path)
    assert first.computed
    assert not again.computed
    assert first.digests == again.digests
    lab.cc.register("changing", Slow)
    other = lab.run(experiment("changing"), out=tmp_path)
    assert other.computed
    assert other.flows["goodput_mbit_s"][0] < first.flows["goodput_mbit_s"][0]


def test_a_run_that_was_planned_with_another_class_is_refused() -> None:
    lab.cc.register("planned", Reno)
    (plan,) = experiment("planned").plans()
    lab.cc.register("planned", Reno, version="another")
    with pytest.raises(lab.RunError, match="registered anew"):
        lab._core.run(plan, lab._core.Watch())


def test_names_and_classes_that_cannot_be_are_refused() -> None:
    with pytest.raises(lab.ConfigError, match="one of tcplab's own"):
        lab.cc.register("cubic", Reno)

    class Half:
        def on_ack(self) -> None: ...

    with pytest.raises(lab.ConfigError, match="the class has no on_congestion and no control"):
        lab.cc.register("half", Half)  # type: ignore[type-var]


def test_a_class_is_not_registered_without_a_name() -> None:
    message = r'register needs a name first: `@register\("mine"\)` above Reno'
    with pytest.raises(TypeError, match=message):
        lab.cc.register(Reno)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=message):
        lab.cc.register(Reno, "mine")  # type: ignore[call-overload]


IN_A_REPL = """
import tcplab as lab
from tcplab.cc import Control

@lab.cc.register("from-a-repl")
class Fixed:
    def __init__(self, init):
        self.cwnd = WINDOW
    def on_ack(self, flow, ack):
        pass
    def on_congestion(self, flow, event):
        pass
    def control(self):
        return Control(self.cwnd)
"""


def test_a_class_without_source_is_registered_and_globals_count(tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__", "WINDOW": 2}
    exec(IN_A_REPL, names)
    first = lab.run(experiment("from-a-repl"), out=tmp_path)
    assert not lab.run(experiment("from-a-repl"), out=tmp_path).computed
    # Another notebook cell changes a global of the class without registering it again.
    names["WINDOW"] = 4
    second = lab.run(experiment("from-a-repl"), out=tmp_path)
    assert second.computed
    # 2 or 4 segments per round trip of 20 ms, far below 10 Mbit/s.
    assert second.flows["bytes"][0] > 1.5 * first.flows["bytes"][0]
    names["WINDOW"] = 2
    assert not lab.run(experiment("from-a-repl"), out=tmp_path).computed


def test_attributes_of_modules_count(tmp_path: Path) -> None:
    params: Any = types.ModuleType("params")

    source = IN_A_REPL.replace("from-a-repl", "of-a-module").replace("WINDOW", "params.window")
    params.window = 2
    exec(source, {"__name__": "__main__", "params": params})
    first = lab.run(experiment("of-a-module"), out=tmp_path)
    params.window = 4
    second = lab.run(experiment("of-a-module"), out=tmp_path)
    assert second.computed
    assert second.flows["bytes"][0] > 1.5 * first.flows["bytes"][0]
    params.window = 2
    assert not lab.run(experiment("of-a-module"), out=tmp_path).computed


def test_classes_of_one_factory_have_different_fingerprints(tmp_path: Path) -> None:
    def fixed(window: int) -> type[Reno]:
        class Fixed(Reno):
            def control(self) -> Control:
                return Control(window)

        return Fixed

    moved = []
    for window in (2, 4):
        lab.cc.register("of-a-factory", fixed(window))
        moved.append(lab.run(experiment("of-a-factory"), out=tmp_path).flows["bytes"][0])
    assert moved[1] > 1.5 * moved[0]
    lab.cc.register("of-a-factory", fixed(2))
    assert not lab.run(experiment("of-a-factory"), out=tmp_path).computed


def test_classes_without_fingerprint_need_a_version(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:

        class Logging(Reno):
            def on_undo(self, flow: FlowState) -> None:
                print("undone", file=log)

        message = (
            r'logging: Logging.on_undo: the outer variable "log": an object of _io.TextIOWrapper '
            r"cannot be part of the version .*; make it in `__init__`, or give `register` a `vers"
        )
        with pytest.raises(lab.ConfigError, match=message):
            lab.cc.register("logging", Logging)
        lab.cc.register("logging", Logging, version="1")
        lab.run(experiment("logging"))


def test_runs_of_unregistered_classes_pass_verification(tcplab: Command, tmp_path: Path) -> None:
    lab.cc.register("mine", Reno)
    lab.run(experiment("mine"), out=tmp_path / "out")
    here = lab.verify(tmp_path / "out", again=True)
    assert (here.findings, here.unrepeated) == ([], [])
    elsewhere = tcplab("verify", "out", "--again")
    said, counted = elsewhere.stdout.splitlines()
    assert (elsewhere.returncode, counted) == (
        0,
        "1 run checked, 0 wrong; 1 not run again",
    )
    assert said.endswith("its congestion control, and is not registered here")
