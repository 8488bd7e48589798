"""Random experiments: they repeat, differences shrink, and sixty of them run on both backends.

`make fuzz` runs any number of them.
"""

from __future__ import annotations

import pytest

from fuzz import queues, transfers
from fuzz.compare import Flow, as_experiment, compare, run
from fuzz.draw import APPLICATIONS, KINDS, Plain, draw
from fuzz.page import table, table_of_transfers
from fuzz.queues import QUEUES
from fuzz.shrink import shrink
from fuzz.sockets import SOCKETS

SEED = 1
FIXED = 60
APPLIED = 10


def test_a_case_number_determines_the_experiment() -> None:
    cases = [draw(SEED, number) for number in range(2 * len(KINDS))]
    assert cases == [draw(SEED, number) for number in range(2 * len(KINDS))]
    assert cases != [draw(SEED + 1, number) for number in range(2 * len(KINDS))]
    assert [case.kind for case in cases] == [*KINDS, *KINDS]


def test_application_cases_are_deterministic() -> None:
    cases = [draw(SEED, number, APPLICATIONS) for number in range(2 * len(APPLICATIONS))]
    assert [case.kind for case in cases] == [*APPLICATIONS, *APPLICATIONS]
    assert cases == [draw(SEED, number, APPLICATIONS) for number in range(2 * len(APPLICATIONS))]
    for number in range(20 * len(APPLICATIONS)):
        experiment = as_experiment(draw(SEED, number, APPLICATIONS).experiment)
        assert len(experiment.plans("sim")) == len(experiment.plans("linux")) == 1


def test_drawn_experiments_run_on_both_backends() -> None:
    for number in range(5 * len(KINDS)):
        experiment = as_experiment(draw(SEED, number).experiment)
        assert len(experiment.plans("sim")) == len(experiment.plans("linux")) == 1


def test_socket_cases_are_deterministic() -> None:
    cases = [draw(SEED, number, SOCKETS) for number in range(20 * len(SOCKETS))]
    assert cases == [draw(SEED, number, SOCKETS) for number in range(20 * len(SOCKETS))]
    for case in cases:
        experiment = as_experiment(case.experiment)
        assert len(experiment.plans("sim")) == len(experiment.plans("linux")) == 1


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("number", range(6))
def test_sockets_are_the_same_on_both_backends(number: int) -> None:
    outcome = compare(draw(SEED, number, SOCKETS).experiment)
    assert outcome.first is None, outcome.first


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("number", range(len(QUEUES)))
def test_queues_are_the_same_on_both_backends(number: int) -> None:
    outcome = queues.compare(draw(SEED, number, QUEUES).experiment)
    assert outcome.identical == outcome.flows
    assert outcome.sim == outcome.linux


def test_a_difference_is_minimised() -> None:
    # In this test, a third flow with Vegas differs, 2 s after the start, at 3 Mbit/s or more.
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


def test_a_case_without_difference_is_not_minimised() -> None:
    experiment = draw(SEED, 0).experiment
    assert shrink(experiment, lambda _: None, 10) == experiment


def test_the_table_counts_equal_and_differing_flows() -> None:
    flows = [
        Flow("flow1", "cubic", 10, None, (5.0, 5.0)),
        Flow("flow2", "cubic", 10, None, (5.1, 5.0)),  # 2 % apart
        Flow("flow3", "cubic", 10, None, (4.0, 5.0)),  # 20 %
    ]
    assert "| one flow | 3 | 3 (100.0%) | 1 | 2 | 2 | 1 |" in table({"one flow": flows})


@pytest.mark.usefixtures("kernel")
def test_random_experiments_agree_between_sim_and_linux() -> None:
    by_kind: dict[str, list[Flow]] = {}
    for number in range(FIXED):
        case = draw(SEED, number)
        by_kind.setdefault(case.kind, []).extend(compare(case.experiment).flows)
    flows = [flow for some in by_kind.values() for flow in some]
    shown = table(by_kind)
    # At least 95 of 100 flows must be the same at every ACK.
    assert sum(flow.difference is None for flow in flows) >= 0.95 * len(flows), shown
    # These kinds have no known difference.
    for kind in ("one flow", "short transfers", "listed loss"):
        assert all(flow.difference is None for flow in by_kind[kind]), shown


@pytest.mark.usefixtures("kernel")
def test_transfers_complete_when_they_do_in_the_kernel() -> None:
    by_kind: dict[str, list[transfers.Transfers]] = {}
    for number in range(APPLIED):
        case = draw(SEED, number, APPLICATIONS)
        by_kind.setdefault(case.kind, []).append(transfers.compare(case.experiment))
    shown = table_of_transfers(by_kind)
    for outcomes in by_kind.values():
        counted = [transfer for outcome in outcomes for transfer in outcome.counted]
        assert sum(transfer.same for transfer in counted) >= 0.9 * len(counted), shown


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("cc", ["dctcp", "westwood+"])
def test_a_request_counts_as_an_ack_without_new_data(cc: str) -> None:
    # tcp_rcv_established: a connection that holds no memory takes the slow path, tcp_in_ack_event.
    # The alpha of DCTCP then falls, and Westwood+ counts the first window, on which its ssthresh
    # depends.
    path = {"pairs": 1, "rate": "20 Mbit/s", "delay": "24.35 ms", "queue": "10 packets"}
    traffic = {"kind": "web", "sizes": ["261059 B", "40000 B"], "connections": 1}
    flow = {"from": "left1", "to": "right1", "cc": cc, "traffic": traffic}
    plain = {"duration": "2 s", "network": {"dumbbell": path}, "flows": [flow]}
    plain["record"] = {"samples": "ack", "links": "off"}
    results = run(plain)
    wanted = ["time_s", "ssthresh_segments", *(["dctcp_alpha"] if cc == "dctcp" else [])]
    sim, linux = (result.samples.select(wanted) for result in results.values())
    assert linux.height > 100
    assert sim.equals(linux)


@pytest.mark.usefixtures("kernel")
def test_the_requesting_end_uses_the_congestion_control_of_the_flow() -> None:
    # hybla_init: at 32 ms the window begins at one segment, so that three segments take three round
    # trips.
    path = {"hops": 1, "rate": "17.5 Mbit/s", "delay": "16 ms", "queue": "19 packets"}
    traffic = {"kind": "requests", "response": "586 B", "request": "4021 B", "requests": 1}
    flow = {"from": "client", "to": "server", "cc": "hybla", "traffic": traffic}
    results = run({"duration": "1 s", "network": {"chain": path}, "flows": [flow]})
    sim, linux = (result.transfers["end_s"][0] for result in results.values())
    assert sim == linux > 0.096


@pytest.mark.usefixtures("kernel")
def test_arrivals_that_the_experiment_cuts_short_are_unfinished() -> None:
    traffic = {"kind": "arrivals", "every": "300 ms", "transfers": 5, "sizes": "10 kB"}
    path = {"pairs": 1, "rate": "20 Mbit/s", "delay": "5 ms", "queue": "50 packets"}
    flow = {"from": "left1", "to": "right1", "traffic": traffic}
    results = run({"duration": "1 s", "network": {"dumbbell": path}, "flows": [flow]})
    for result in results.values():
        row = result.flows.row(0, named=True)
        assert (row["transfers"], row["completed_transfers"]) == (4, 4)
        assert (row["outcome"], row["end_s"]) == ("unfinished", 1.0)


@pytest.mark.usefixtures("kernel")
def test_the_first_datagram_leaves_at_once() -> None:
    # 128 bytes at 8 Mbit/s take 128 us, plus 10 ms of propagation.
    path = {"hops": 1, "rate": "8 Mbit/s", "delay": "10 ms", "queue": "10 packets"}
    traffic = {"kind": "udp", "rate": "1 Mbit/s", "payload": "100 B", "packets": 1}
    flow = {"from": "client", "to": "server", "traffic": traffic}
    results = run({"duration": "1 s", "network": {"chain": path}, "flows": [flow]})
    assert [result.flows["end_s"][0] for result in results.values()] == [0.010128, 0.010128]
