"""Compound as a kernel module has the same windows as that of `sim` at every ACK.

`make fuzz ARGS="--cc compound --kernel 6.12-compound"` compares random experiments.
"""

from __future__ import annotations

from typing import Any

import pytest

import tcplab as lab
from fuzz.compare import Outcome, compare
from fuzz.draw import KINDS, Plain, draw, with_cc

TUNED: Any = "compound"
FIXED: Any = {"name": "compound", "gamma_tuning": False}

LONG_FAT = {"rate": "50 Mbit/s", "delay": "40 ms"}
"""344 packets are in flight; the delay window grows by 9 segments per round trip."""

LISTED = {"kind": "listed", "packets": [700, 701, 2500, 2507, 6000, 9000, 9001, 9002, 15000]}
PATHS: dict[str, Plain] = {
    "a clean link": LONG_FAT | {"queue": "0.3 BDP"},
    "a deep queue": LONG_FAT | {"queue": "3 BDP"},
    "a shallow queue": LONG_FAT | {"queue": "0.05 BDP"},
    "random losses": LONG_FAT | {"queue": "1 BDP", "loss": "0.02 %"},
    "chosen losses": LONG_FAT | {"queue": "1 BDP", "loss": LISTED},
    "a slow link": {"rate": "2 Mbit/s", "delay": "20 ms", "queue": "100 packets"},
    "jitter": LONG_FAT | {"queue": "0.3 BDP", "jitter": "2 ms"},
}
SETTINGS: dict[str, Any] = {"tuned": TUNED, "as in 2005": FIXED, "narrow": FIXED | {"gamma": 3}}


def on_both(own_kernel: lab.Kernel, path: Plain, *ccs: Any, stack: Plain | None = None) -> Outcome:
    """Flows over a dumbbell, the second one starting later."""
    flows = [
        {"from": f"left{pair}", "to": f"right{pair}", "start": f"{2 * (pair - 1)} s", "cc": cc}
        for pair, cc in enumerate(ccs, 1)
    ]
    experiment = {
        "duration": "12 s",
        "network": {"dumbbell": {"pairs": len(flows), **path}},
        "stack": stack or {},
        "flows": flows,
        "record": {"samples": "ack", "links": "off"},
    }
    return compare(experiment, kernel=own_kernel.name)


def assert_same(outcome: Outcome, acks: int = 500) -> None:
    """All flows are the same at every ACK, and there were at least `acks` ACKs."""
    assert [flow.difference or flow.parts for flow in outcome.flows] == [None] * len(outcome.flows)
    assert max(flow.acks for flow in outcome.flows) > acks


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("path", PATHS)
def test_one_flow_is_the_same_at_every_ack(
    own_kernel: lab.Kernel, path: str, settings: str
) -> None:
    assert_same(on_both(own_kernel, PATHS[path], SETTINGS[settings]))


@pytest.mark.parametrize("other", [TUNED, "newreno", "cubic"], ids=str)
def test_two_flows_are_the_same_at_every_ack(own_kernel: lab.Kernel, other: Any) -> None:
    assert_same(on_both(own_kernel, PATHS["random losses"], TUNED, other))


@pytest.mark.parametrize(
    "stack",
    [{"ecn": True}, {"sack": False}, {"timestamps": False}, {"initial_window": 2}],
    ids=str,
)
def test_options_of_the_stack_make_no_difference(own_kernel: lab.Kernel, stack: Plain) -> None:
    path = PATHS["chosen losses"] | {"queue": {"kind": "codel", "ecn": "ecn" in stack}}
    assert_same(on_both(own_kernel, path, TUNED, stack=stack))


@pytest.mark.parametrize("kind", ["one flow", "on-off", "short transfers", "both directions"])
def test_random_flows_are_the_same_at_every_ack(own_kernel: lab.Kernel, kind: str) -> None:
    experiment = with_cc(draw(7, list(KINDS).index(kind)).experiment, "compound")
    assert_same(compare(experiment, kernel=own_kernel.name), acks=10)


def test_compound_differs_from_newreno_in_the_tests(own_kernel: lab.Kernel) -> None:
    # Without this check, the tests above might compare NewReno with itself.
    experiment = lab.Experiment(
        duration="12 s",
        network=lab.Network(chain=lab.Chain(**LONG_FAT, queue="0.3 BDP", loss="0.02 %")),
        flows=[lab.Flow(from_="client", to="server")],
        sweep={"stack.cc": ["compound", "newreno"]},
    )
    flows = lab.run(experiment, backend="linux", kernel=own_kernel.name).flows
    compound, newreno = flows["goodput_mbit_s"]
    assert compound > 1.1 * newreno
