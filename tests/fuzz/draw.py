"""Random experiments, each repeatable by its seed and number.

An experiment is a plain dict, as JSON would hold it, so that any part of it can be made simpler.
Rates, RTTs and queues are log-uniform. The access links take 4 ms of the RTT, as in the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

Plain = dict[str, Any]

ALGORITHMS = (
    *("newreno", "cubic", "bic", "vegas", "westwood+", "htcp", "highspeed", "hybla"),
    *("scalable", "illinois", "veno", "yeah", "dctcp"),
)
"""Those of the kernel that draw no random numbers."""

DRAWING = ("bbr", "cdg", "nv", "lp")
"""Algorithms that draw some, as LP does where a receiver's timestamps begin."""

RATE_MBIT_S = (0.5, 150.0)
RTT_MS = (6.0, 310.0)
LEAST_QUEUE_PACKETS = 7
MOST_QUEUE_BDP = 2.5
PACKETS = 12_000
"""How many full packets the bottleneck carries in an experiment, more or less."""


@dataclass(frozen=True)
class Case:
    """One random experiment."""

    kind: str
    number: int
    experiment: Plain


def log_uniform(random: Random, least: float, most: float) -> float:
    """A number whose logarithm is uniform."""
    return math.exp(random.uniform(math.log(least), math.log(most)))


def rounded(value: float, digits: int = 3) -> float:
    """To so many significant digits."""
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True)
class Bottleneck:
    """What all kinds have in common."""

    rate_mbit_s: float
    rtt_ms: float
    queue_packets: int
    duration_s: float

    @classmethod
    def draw(cls, random: Random) -> Bottleneck:
        """A path and how long it is looked at."""
        rate = rounded(log_uniform(random, *RATE_MBIT_S))
        rtt = rounded(log_uniform(random, *RTT_MS))
        bdp = rate * rtt / 12
        most = max(MOST_QUEUE_BDP * bdp, LEAST_QUEUE_PACKETS + 1)
        queue = round(log_uniform(random, LEAST_QUEUE_PACKETS, most))
        duration = min(max(PACKETS * 0.012 / rate, 40 * rtt / 1e3, 3), 30)
        return cls(rate, rtt, queue, math.ceil(duration))

    def settings(self, hops: int = 1) -> Plain:
        """Of the bottleneck, in both directions."""
        delay = max((self.rtt_ms / 2 - 2) / hops, 0.1)
        return {
            "rate": f"{self.rate_mbit_s:g} Mbit/s",
            "delay": f"{delay:.6g} ms",
            "queue": f"{self.queue_packets} packets",
        }

    def experiment(self, network: Plain, flows: list[Plain], stack: Plain | None = None) -> Plain:
        """The whole of it."""
        return {
            "duration": f"{self.duration_s:g} s",
            "network": network,
            "stack": stack or {},
            "flows": flows,
            "record": {"samples": "ack", "links": "off"},
        }


def start(random: Random, path: Bottleneck) -> str:
    """In the first third of an experiment; every other one at its beginning."""
    if random.random() < 0.5:
        return "0 s"
    return f"{random.uniform(0, path.duration_s / 3):.3f} s"


def long_flows(
    random: Random, path: Bottleneck, number: int, algorithms: Sequence[str] = ALGORITHMS
) -> list[Plain]:
    """Flows that do not end, each between a pair of its own."""
    same = random.choice(algorithms) if random.random() < 0.5 else None
    return [
        {
            "from": f"left{pair}",
            "to": f"right{pair}",
            "start": "0 s" if pair == 1 else start(random, path),
            "cc": same or random.choice(algorithms),
        }
        for pair in range(1, number + 1)
    ]


def pairs(random: Random, number: int) -> Plain:
    """A dumbbell with so many long flows."""
    path = Bottleneck.draw(random)
    network = {"dumbbell": {"pairs": number, **path.settings()}}
    return path.experiment(network, long_flows(random, path, number))


def drawing(random: Random) -> Plain:
    """One to three flows whose congestion control draws random numbers."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 3)
    network = {"dumbbell": {"pairs": number, **path.settings()}}
    return path.experiment(network, long_flows(random, path, number, DRAWING))


def both_directions(random: Random) -> Plain:
    """Flows from left to right and others back."""
    path = Bottleneck.draw(random)
    number = random.randint(2, 4)
    flows = long_flows(random, path, number)
    for flow in flows[number // 2 :]:
        flow["from"], flow["to"] = flow["to"], flow["from"]
    network = {"dumbbell": {"pairs": number, **path.settings()}}
    return path.experiment(network, flows)


def parking_lot(random: Random) -> Plain:
    """One flow through all bottlenecks and one through each."""
    path = Bottleneck.draw(random)
    hops = random.randint(2, 4)
    ends = [("source", "sink"), *((f"entry{hop}", f"exit{hop}") for hop in range(1, hops + 1))]
    flows = [
        {
            "from": sender,
            "to": receiver,
            "start": start(random, path),
            "cc": random.choice(ALGORITHMS),
        }
        for sender, receiver in ends
    ]
    return path.experiment({"parking_lot": {"hops": hops, **path.settings(hops)}}, flows)


def two_hosts(random: Random) -> Plain:
    """Flows between the same two hosts, over one to three links, maybe slower on the way back."""
    path = Bottleneck.draw(random)
    hops = random.randint(1, 3)
    settings = path.settings() | {"delay": f"{path.rtt_ms / 2 / hops:.6g} ms"}
    if random.random() < 0.5:
        back = rounded(path.rate_mbit_s / log_uniform(random, 1, 20))
        settings["back"] = {"rate": f"{back:g} Mbit/s"}
    flows = long_flows(random, path, random.randint(2, 5))
    for flow in flows:
        ends = ("client", "server")
        flow["from"], flow["to"] = ends if random.random() < 0.7 else ends[::-1]
    return path.experiment({"chain": {"hops": hops, **settings}}, flows)


def antiparallel(random: Random) -> Plain:
    """Downloads and uploads that meet on an asymmetric link."""
    path = Bottleneck.draw(random)
    down, settings = path.rate_mbit_s, path.settings()
    up = rounded(down / log_uniform(random, 1, 30))
    waiting = round(log_uniform(random, LEAST_QUEUE_PACKETS, 200))
    network = {
        "down": settings,
        "up": settings | {"rate": f"{up:g} Mbit/s", "queue": f"{waiting} packets"},
    }
    flows = long_flows(random, path, random.randint(2, 4))
    for number, flow in enumerate(flows):
        ends = ("server", "client")
        flow["from"], flow["to"] = ends if number % 2 == 0 else ends[::-1]
    return path.experiment({"antiparallel": network}, flows)


OPTIONS: dict[str, Callable[[Random], Any]] = {
    "sack": lambda _: False,
    "dsack": lambda _: False,
    "timestamps": lambda _: False,
    "window_scaling": lambda _: False,
    "hystart": lambda _: False,
    "ecn": lambda _: True,
    "delayed_ack": lambda _: "off",
    "rack": lambda _: False,
    "tlp": lambda _: False,
    "frto": lambda _: False,
    "pacing": lambda _: True,
    "nagle": lambda random: random.random() < 0.5,
    "restart_after_idle": lambda _: False,
    "initial_window": lambda random: random.choice((1, 2, 3, 4, 20, 32)),
    "min_rto": lambda random: f"{random.choice((20, 50, 100, 500, 1000))} ms",
    "dup_thresh": lambda random: random.choice((2, 4, 6, 10)),
    "rmem": lambda random: f"{round(log_uniform(random, 8e3, 4e6))} B",
    "wmem": lambda random: f"{round(log_uniform(random, 16e3, 4e6))} B",
    "app_win": lambda random: random.choice((0, 1, 2, 8)),
    "mss": lambda random: random.randint(536, 1459),
}
"""Options of the stack that both backends have, with a value other than the usual one."""


def options(random: Random) -> Plain:
    """One or two flows with one to three options."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 2)
    chosen = random.sample(sorted(OPTIONS), random.randint(1, 3))
    stack = {name: OPTIONS[name](random) for name in chosen}
    network = {"dumbbell": {"pairs": number, **path.settings()}}
    return path.experiment(network, long_flows(random, path, number), stack)


def on_off(random: Random) -> Plain:
    """One or two flows that pause."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 2)
    flows = long_flows(random, path, number)
    for flow in flows:
        if random.random() < 0.5:
            on, off = (log_uniform(random, 0.05, path.duration_s / 3) for _ in range(2))
            flow["traffic"] = {"kind": "on-off", "on": f"{on:.3f} s", "off": f"{off:.3f} s"}
            continue
        times = sorted(random.uniform(0, path.duration_s) for _ in range(2 * random.randint(1, 4)))
        texts = [f"{time:.3f} s" for time in times]
        periods = [list(period) for period in zip(texts[::2], texts[1::2], strict=True)]
        flow["traffic"] = {"kind": "on-off", "periods": periods}
    network = {"dumbbell": {"pairs": number, **path.settings()}}
    return path.experiment(network, flows)


def short_transfers(random: Random) -> Plain:
    """Transfers of some kilobytes, most of them between the same hosts."""
    path = Bottleneck.draw(random)
    number = random.randint(3, 15)
    hosts = random.randint(1, 3)
    cc = random.choice(ALGORITHMS)
    flows = []
    for transfer in range(number):
        pair = 1 + transfer % hosts
        flows.append(
            {
                "from": f"left{pair}",
                "to": f"right{pair}",
                "start": f"{random.uniform(0, path.duration_s / 2):.4f} s",
                "cc": cc,
                "traffic": {"kind": "bulk", "size": f"{round(log_uniform(random, 100, 1e6))} B"},
            }
        )
    network = {"dumbbell": {"pairs": hosts, **path.settings()}}
    return path.experiment(network, flows)


def listed_loss(random: Random) -> Plain:
    """One or two flows that lose the same packets on both sides."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 2)
    share = log_uniform(random, 0.0005, 0.03)
    lost = [packet for packet in range(1, 2 * PACKETS) if random.random() < share]
    settings = path.settings() | {"loss": {"kind": "listed", "packets": lost}}
    network = {"dumbbell": {"pairs": number, **settings}}
    return path.experiment(network, long_flows(random, path, number))


def codel(random: Random) -> Plain:
    """One to three flows over a CoDel queue, with marks or without."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 3)
    marks = random.random() < 0.5
    queue: Plain = {"kind": "codel", "ecn": marks}
    if random.random() < 0.5:
        queue["target"] = f"{rounded(log_uniform(random, 1, 30), 2):g} ms"
    network = {"dumbbell": {"pairs": number, **path.settings(), "queue": queue}}
    stack = {"ecn": True} if marks else {}
    return path.experiment(network, long_flows(random, path, number), stack)


def path_mtu(random: Random) -> Plain:
    """One or two flows over a bottleneck whose packets are smaller than usual."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 2)
    settings = path.settings() | {"mtu": random.randint(552, 1499)}
    network = {"dumbbell": {"pairs": number, **settings}}
    return path.experiment(network, long_flows(random, path, number))


JITTERED: dict[str, Callable[[str], Plain]] = {
    "data": lambda most: {"jitter": most, "back": {"jitter": "0 ms"}},
    "acks": lambda most: {"back": {"jitter": most}},
    "both": lambda most: {"jitter": most},
}
"""Which way packets take a time that varies."""


def jitter(random: Random) -> Plain:
    """One to three flows whose data, ACKs or both are delayed by chance.

    By up to a tenth of a packet's transmission time at the least, by up to the RTT at the most.
    On a single link between two hosts packets arrive at once; a link behind the one with jitter
    spreads them again.
    """
    path = Bottleneck.draw(random)
    number = random.randint(1, 3)
    packet_ms = 12 / path.rate_mbit_s
    most = rounded(log_uniform(random, packet_ms / 10, max(path.rtt_ms, packet_ms)))
    way = JITTERED[random.choice(sorted(JITTERED))]
    settings = path.settings() | way(f"{most:g} ms")
    flows = long_flows(random, path, number)
    if random.random() < 0.5:
        return path.experiment({"dumbbell": {"pairs": number, **settings}}, flows)
    for flow in flows:
        flow["from"], flow["to"] = "client", "server"
    hops = random.randint(1, 2)
    settings["delay"] = f"{path.rtt_ms / 2 / hops:.6g} ms"
    return path.experiment({"chain": {"hops": hops, **settings}}, flows)


KINDS: dict[str, Callable[[Random], Plain]] = {
    "one flow": lambda random: pairs(random, 1),
    "two flows": lambda random: pairs(random, 2),
    "three to eight": lambda random: pairs(random, random.randint(3, 8)),
    "both directions": both_directions,
    "parking lot": parking_lot,
    "options": options,
    "on-off": on_off,
    "short transfers": short_transfers,
    "listed loss": listed_loss,
    "codel": codel,
    "path mtu": path_mtu,
    "two hosts": two_hosts,
    "antiparallel": antiparallel,
    "drawn numbers": drawing,
    "jitter": jitter,
}
"""All kinds in equal shares: number n is of the n-th kind, and so on in turn."""


def draw(seed: int, number: int) -> Case:
    """The experiment of this number. Equal seeds and numbers give equal ones, on any machine."""
    kind = list(KINDS)[number % len(KINDS)]
    random = Random(f"{seed}/{number}")
    return Case(kind, number, KINDS[kind](random))
