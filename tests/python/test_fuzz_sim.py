"""Random experiments over the whole schema on `sim` alone: some hundreds keep the laws.

`make fuzz ARGS=--sim` runs any number of them.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from typing import Any

import pytest

from fuzz import alone
from fuzz.alone import FOUND, RAN, REFUSED, check, outcomes
from fuzz.draw import Plain
from fuzz.shrink import prune
from fuzz.whole import DISCIPLINES, draw, original, schema

SEED = 1
FIXED = 300

ELSEWHERE = {
    "Experiment": {"repeat", "kernel", "advise"},
    "Graph": {"file"},
    "Network": {"lan"},
    "Record": {"captures", "packets"},
    "settings": set(),
}
"""Parts of the schema that are not drawn: those that `sim` refuses, those that only add runs or
rows, and LANs, which test_lan.py draws.
"""

SETTINGS = ("LinkSettings", "Link", "Dumbbell", "ParkingLot", "Chain")

FURTHER = ("Star", "FatTree", "Graph")
"""Shapes that are drawn rarely, and not with all settings of links."""

SMALL: Plain = {
    "duration": "100 ms",
    "network": {"chain": {"rate": "10 Mbit/s", "delay": "1 ms"}},
    "flows": [{"from": "client", "to": "server"}],
}


def test_a_case_number_determines_the_experiment() -> None:
    drawn = [draw(SEED, number) for number in range(20)]
    assert drawn == [draw(SEED, number) for number in range(20)]
    assert drawn != [draw(SEED + 1, number) for number in range(20)]
    assert json.loads(json.dumps(drawn)) == drawn


def test_every_schema_key_is_drawn() -> None:
    drawn: dict[str, set[str]] = {}

    def note(value: Any, described: Plain, name: str) -> None:
        """Records the keys of a value and of its parts, under the names of their definitions."""
        if isinstance(value, list):
            for item in value:
                note(item, described.get("items", {}), name)
            return
        if "$ref" in described:
            name = described["$ref"].rpartition("/")[2]
            described = schema()["$defs"][name]
        if not isinstance(value, dict):
            return
        forms = [described, *described.get("anyOf", []), *described.get("oneOf", [])]
        for form in forms:
            if "$ref" in form and form is not described:
                note(value, form, name)
            # Of several alternatives, the one with this kind.
            properties = form.get("properties", {})
            kind = properties.get("kind", {}).get("const")
            if kind is None or kind == value.get("kind"):
                place = name if kind is None else f"{name} {kind}"
                for key, item in value.items():
                    if key in properties:
                        drawn.setdefault(place, set()).add(key)
                        note(item, properties[key], place)

    for number in range(3000):
        note(draw(SEED, number), schema(), "Experiment")
    definitions = schema()["$defs"] | {"Experiment": schema()}
    of_links = set(definitions["LinkSettings"]["properties"])
    for name in FURTHER:
        own = set(definitions[name]["properties"]) - of_links
        assert drawn[name] >= own - ELSEWHERE.get(name, set()), (name, own - drawn[name])
    for name in ("Experiment", "Network", "Stack", "Flow", "Record", *SETTINGS, "Antiparallel"):
        allowed = set(definitions[name]["properties"]) - ELSEWHERE.get(name, set())
        if name in SETTINGS:
            allowed -= ELSEWHERE["settings"]
        assert drawn[name] >= allowed, (name, allowed - drawn[name])
    kinds = {place for place in drawn if " " in place}
    queues = {f"Queue {kind}" for kind in DISCIPLINES}
    losses = {f"Loss {kind}" for kind in ("independent", "listed", "gilbert", "gilbert-time")}
    spreads = {f"Spread {kind}" for kind in ("uniform", "normal", "pareto", "exponential")}
    rules = {"RateRule sine", "RateRule random-walk", "DelayRule handover"}
    outages = {"OutageRule periodic", "OutageRule random", "Spread empirical"}
    traffic = {"bulk", "on-off", "web", "arrivals", "requests", "udp"}
    sizes = {"fixed", "zipf", "pareto", "lognormal", "empirical"}
    others = {f"Traffic {kind}" for kind in traffic} | {f"Sizes {kind}" for kind in sizes}
    assert kinds == queues | losses | others | spreads | rules | outages


def test_random_experiments_run_or_are_refused() -> None:
    said = Counter[str]()
    for number in range(FIXED):
        kind, says = check(draw(SEED, number), original(SEED, number))
        assert kind != FOUND, f"seed {SEED}, number {number}: {says}"
        said[kind] += 1
    # Most experiments should be valid: 70 % of thousands. Three standard deviations of 300 are
    # 0.079.
    assert said[RAN] > 0.62 * FIXED
    assert said[REFUSED] > 0


FINDS: dict[str, Plain] = {
    "an event in the nanosecond after the end": {
        "duration": "61999 ps",
        "network": {"chain": {"rate": "100 Tbit/s", "delay": "2261 ps"}},
        "flows": [{"from": "client", "to": "server"}],
        "record": {"samples": "1025 ps"},
    },
    "a SYN-ACK with a cookie is larger than the least MTU": {
        # The SYN-ACK would have 72 bytes, and is examined when most of it has not left.
        "duration": "3 s",
        "network": {"chain": {"rate": "1 kbit/s", "delay": "1 ms", "mtu": 68}},
        "stack": {"fast_open": True, "path_mtu": "known"},
        "flows": [{"from": "client", "to": "server"}],
        "record": {"links": "1 ms"},
    },
    "a notice of a packet that was too large is too large itself": {
        "duration": "114774544 ps",
        "network": {
            "links": [
                {"between": ["a", "b"], "rate": "100 Mbit/s", "delay": "69812 ps"},
                {"between": ["b", "c"], "rate": "1 Gbit/s", "delay": "9227 ps", "mtu": 68},
                {"between": ["c", "d"], "rate": "10 Gbit/s", "delay": "80979 ps", "mtu": 69},
            ]
        },
        "flows": [{"from": "d", "to": "a", "start_jitter": "788364 ps"}],
        "record": {"links": "530888 ps"},
    },
    "an RTT beyond 32 bits": {
        "duration": "3000 s",
        "network": {"chain": {"rate": "1 Mbit/s", "delay": "400 s"}},
        "stack": {"initial_rto": "1000 s", "max_rto": "1000 s"},
        "flows": [{"from": "client", "to": "server"}],
        "record": {"samples": "ack"},
    },
    "datagrams from the last picosecond on": {
        # The packets would leave exactly at the end, and must not begin.
        "duration": "999518 ps",
        "network": {"chain": {"rate": "1 Gbit/s", "delay": "1 ns"}},
        "flows": [
            {
                "from": "client",
                "to": "server",
                "start": "999517 ps",
                "traffic": {"kind": "udp", "interval": "1 us"},
            }
        ],
    },
    "an interval of CoDel beyond 64 bits": {
        "duration": "1 s",
        "network": {
            "chain": {
                "rate": "1 Mbit/s",
                "delay": "1 ms",
                "queue": {"kind": "codel", "interval": "5000 h", "target": "1 ps"},
            }
        },
        "flows": [{"from": "client", "to": "server"}],
    },
    "packets that wait for longer than their connection is there": {
        # An old ACK answered a new connection.
        "duration": "3500000 s",
        "network": {"chain": {"rate": "3 bit/s", "delay": "17.4 s", "queue": "1 packet"}},
        "stack": {"profile": "freebsd-9.2", "user_timeout": "off", "max_rto": "7000000 s"},
        "flows": [
            {
                "from": "client",
                "to": "server",
                "traffic": {
                    "kind": "arrivals",
                    "sizes": "1 B",
                    "every": "44196358224942 ps",
                    "transfers": 17,
                },
            }
        ],
        "record": {"samples": "ack", "links": "off"},
    },
}


@pytest.mark.parametrize("what", FINDS)
def test_earlier_findings_stay_fixed(what: str) -> None:
    assert check(FINDS[what]) == (RAN, "")


def test_invalid_experiments_are_refused() -> None:
    says = 'duration: -1 has no unit; write it as text with one, like "25 ms"'
    assert check(SMALL | {"duration": -1}) == (REFUSED, says)


def test_a_finding_is_reported_and_minimised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(SMALL) == (RAN, "")
    digests = iter(f"{number}" for number in range(10**6))
    run = alone._core.run

    def other(*given: Any) -> Any:
        frames, _, files = run(*given)
        return frames, next(digests), files

    monkeypatch.setattr(alone._core, "run", other)
    assert check(SMALL) == (FOUND, "the second run has the digest 1, not 0")
    large = SMALL | {"seed": 3, "stack": {"sack": False}, "record": {"links": "off"}}
    assert prune(large, lambda it: check(it)[0] == FOUND, 100) == SMALL


def test_hangs_and_crashes_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = alone.Worker(SEED, iter(range(3)), limit_s=0.0)
    assert worker.next()
    outcome = worker.outcome()
    assert outcome == alone.Outcome(0, FOUND, "takes longer than 0 s")
    worker.limit_s = 60
    assert worker.next()
    assert worker.process is not None
    assert worker.process.pid is not None
    os.kill(worker.process.pid, 9)
    while (outcome := worker.outcome()) is None or outcome.kind == RAN:
        time.sleep(0.01)
    assert outcome == alone.Outcome(1, FOUND, "the process ended with -9")
    worker.end()


def test_every_case_number_has_one_outcome() -> None:
    seen = list(outcomes(SEED, range(40), workers=2))
    assert sorted(outcome.number for outcome in seen) == list(range(40))
