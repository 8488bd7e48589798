"""Random experiments: they repeat, differences shrink, and sixty of them run on both backends.

`make fuzz` runs as many as one likes.
"""

from __future__ import annotations

import pytest

from fuzz.compare import Flow, as_experiment, compare
from fuzz.draw import KINDS, Plain, draw
from fuzz.page import table
from fuzz.shrink import shrink

SEED = 1
FIXED = 60


def test_a_number_stands_for_one_experiment() -> None:
    cases = [draw(SEED, number) for number in range(2 * len(KINDS))]
    assert cases == [draw(SEED, number) for number in range(2 * len(KINDS))]
    assert cases != [draw(SEED + 1, number) for number in range(2 * len(KINDS))]
    assert [case.kind for case in cases] == [*KINDS, *KINDS]


def test_both_backends_have_all_that_is_drawn() -> None:
    for number in range(5 * len(KINDS)):
        experiment = as_experiment(draw(SEED, number).experiment)
        assert len(experiment.plans("sim")) == len(experiment.plans("linux")) == 1


def test_a_difference_is_made_small() -> None:
    # Here a third flow of Vegas differs, 2 s after the beginning, with 3 Mbit/s or more.
    def differs_at(experiment: Plain) -> float | None:
        names = [(flow["from"], flow["cc"]) for flow in experiment["flows"]]
        rate = float(experiment["network"]["dumbbell"]["rate"].split()[0])
        duration = float(experiment["duration"].split()[0])
        return 2.0 if ("left3", "vegas") in names and rate >= 3 and duration > 2 else None

    pairs = {"pairs": 4, "rate": "3.14 Mbit/s", "delay": "17.3 ms", "queue": "23 packets"}
    flows = [
        {"from": f"left{pair}", "to": f"right{pair}", "start": "0.123 s", "cc": "vegas"}
        for pair in range(1, 5)
    ]
    large = {
        "duration": "30 s",
        "network": {"dumbbell": pairs},
        "stack": {"sack": False},
        "flows": flows,
    }
    small = shrink(large, differs_at, 200)
    assert small["duration"] == "2.1 s"
    assert small["stack"] == {}
    assert small["flows"] == [flows[2] | {"start": "0 s"}]
    assert small["network"]["dumbbell"]["rate"] == "3 Mbit/s"
    assert small["network"]["dumbbell"]["delay"] == "20 ms"


def test_what_does_not_differ_stays_as_it_is() -> None:
    experiment = draw(SEED, 0).experiment
    assert shrink(experiment, lambda _: None, 10) == experiment


def test_the_table_counts() -> None:
    flows = [
        Flow("flow1", "cubic", 10, None, (5.0, 5.0)),
        Flow("flow2", "cubic", 10, None, (5.1, 5.0)),  # 2 % apart
        Flow("flow3", "cubic", 10, None, (4.0, 5.0)),  # 20 %
    ]
    assert "| one flow | 3 | 3 (100.0%) | 1 | 2 | 2 | 1 |" in table({"one flow": flows})


@pytest.mark.usefixtures("kernel")
def test_the_simulator_does_what_the_kernel_does_where_nobody_has_looked() -> None:
    by_kind: dict[str, list[Flow]] = {}
    for number in range(FIXED):
        case = draw(SEED, number)
        by_kind.setdefault(case.kind, []).extend(compare(case.experiment).flows)
    flows = [flow for some in by_kind.values() for flow in some]
    shown = table(by_kind)
    # Of all flows 95 in 100 are to be the same at every ACK.
    assert sum(flow.difference is None for flow in flows) >= 0.95 * len(flows), shown
    # These kinds have no known difference.
    for kind in ("one flow", "short transfers", "listed loss"):
        assert all(flow.difference is None for flow in by_kind[kind]), shown
