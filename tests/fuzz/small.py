"""Small random experiments with features of the backend `linux`; `whole` has those of `sim`."""

from __future__ import annotations

import itertools
import random
from typing import Any

CC = (
    "newreno",
    "cubic",
    "vegas",
    "bbr",
    "westwood+",
    "htcp",
    "bic",
    "illinois",
    "dctcp",
    "scalable",
)


def experiment(seed: int) -> dict[str, Any]:
    """An experiment as plain values."""
    chance = random.Random(seed)
    duration_ms = chance.choice([300, 1000, 2500])
    hops = chance.randint(1, 3)
    names = [f"n{number}" for number in range(hops + 1)]
    links = [
        {"between": [here, there], **_link(chance)} for here, there in itertools.pairwise(names)
    ]
    flows = [_flow(chance, names, duration_ms) for _ in range(chance.randint(1, 4))]
    return {
        "duration": f"{duration_ms} ms",
        "seed": chance.randint(0, 10**6),
        "network": {"links": links},
        "stack": _stack(chance),
        "flows": flows,
        "record": {
            "samples": chance.choice(["ack", "10 ms", "off"]),
            "links": chance.choice(["1 ms", "10 ms", "77 ms", "off"]),
        },
    }


def _link(chance: random.Random) -> dict[str, Any]:
    link: dict[str, Any] = {
        "rate": chance.choice(["64 kbit/s", "1 Mbit/s", "10 Mbit/s", "123457 kbit/s", "1 Gbit/s"]),
        "delay": chance.choice(["0 ms", "100 us", "3 ms", "20 ms"]),
        "queue": _queue(chance),
        "mtu": chance.choice([1500, 1500, 1500, 576, 9000]),
    }
    if chance.random() < 0.3:
        packets = sorted(chance.sample(range(1, 60), 5))
        link["loss"] = chance.choice(["1 %", "20 %", {"kind": "listed", "packets": packets}])
    if chance.random() < 0.2:
        link["jitter"] = "1 ms"
    if chance.random() < 0.2:
        link["forward"] = {"rate": "2 Mbit/s", "queue": "3 packets"}
    if chance.random() < 0.2:
        link["reordering"] = {"probability": "5 %", "delay": "2 ms"}
    if chance.random() < 0.2:
        link["rate_changes"] = [["200 ms", "3 Mbit/s"], ["500 ms", "20 Mbit/s"]]
    return link


def _queue(chance: random.Random) -> Any:
    sizes = ["1 packet", "5 packets", "1 BDP", "0.5 BDP", "20 kB", "200 packets"]
    if chance.random() < 0.6:
        return chance.choice(sizes)
    kinds = ["codel", "red", "fq-codel", "pie", "cake", "fq"]
    queue: dict[str, Any] = {"kind": chance.choice(kinds), "limit": "60 packets"}
    if queue["kind"] == "red":
        queue |= {"min": "5 packets", "max": "15 packets", "gentle": False}
    if queue["kind"] in ("codel", "red"):
        queue["ecn"] = chance.random() < 0.5
    return queue


def _stack(chance: random.Random) -> dict[str, Any]:
    stack: dict[str, Any] = {}
    for option in ("sack", "timestamps", "ecn", "pacing"):
        if chance.random() < 0.2:
            stack[option] = chance.random() < 0.5
    return stack


def _flow(chance: random.Random, names: list[str], duration_ms: int) -> dict[str, Any]:
    here, there = chance.sample(names, 2)
    flow: dict[str, Any] = {
        "from": here,
        "to": there,
        "cc": chance.choice(CC),
        "start": f"{chance.choice([0, 0, 1, 150, duration_ms - 1])} ms",
        "traffic": _traffic(chance),
    }
    if flow["traffic"]["kind"] == "udp":
        del flow["cc"]
    if chance.random() < 0.2:
        flow["start_jitter"] = "20 ms"
    return flow


def _traffic(chance: random.Random) -> Any:
    kinds = [
        {"kind": "bulk"},
        {"kind": "bulk", "size": chance.choice(["1 B", "3 kB", "100 kB", "2 MB"])},
        {"kind": "on-off", "on": "50 ms", "off": "80 ms"},
        {"kind": "udp", "rate": "500 kbit/s"},
        {"kind": "requests", "response": "30 kB", "think": "10 ms"},
        {
            "kind": "arrivals",
            "per_second": 20,
            "transfers": 5,
            "sizes": {"kind": "fixed", "size": "10 kB"},
        },
    ]
    return chance.choice(kinds)
