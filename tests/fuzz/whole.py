"""Random experiments over everything in the schema that `sim` runs, each repeatable by seed and
number.

Usual values and the ends of their ranges are mixed. An experiment lasts for some hundred packets of
its link, whatever the rate, so that a run takes milliseconds. Some experiments are wrong on
purpose: one value has the wrong type or is out of range, and `sim` must refuse them.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable
from random import Random
from typing import Any

import tcplab as lab
from fuzz.draw import ISOLATIONS, TINS, Plain, log_uniform
from tcplab import _core

PICOSECOND = 1e-12
SECONDS = 2**64 * PICOSECOND
"""The longest representable time: 213 days."""

RATES = (1, 8, 300, 9600, 64e3, 1e6, 1e7, 123_457_000, 1e9, 1e11, 1e14)
"""Rates in bit/s. At 1e14 a byte takes less than a picosecond."""
FACTORS = (0.01, 0.1, 0.5, 1, 1, 1, 2, 3)
"""The factors between the rates of the links of one experiment."""
PACKETS = (4, 1500)
"""The least and the greatest number of full packets that the link carries in an experiment."""
MOST_PACKETS = 10**6
"""The most full packets carried by a link with a rate of its own."""
SAMPLES = 300
"""The most samples of a flow or link."""

DISCIPLINES = {
    "droptail": (),
    "drophead": (),
    "red": ("ecn", "adaptive"),
    "codel": ("target", "interval", "ecn"),
    "fq-codel": ("target", "interval", "ecn", "flows", "quantum"),
    "pie": ("target", "update", "alpha", "beta", "bytemode", "ecn"),
    "fq-pie": (
        *("target", "update", "alpha", "beta", "bytemode", "ecn", "ecn_prob", "flows", "quantum"),
    ),
    "sfq": ("depth", "flows", "quantum"),
    "tbf": (),
    "fq": ("flow_limit", "quantum", "initial_quantum"),
    "cake": (
        *("rtt", "rate", "overhead", "mpu", "framing", "isolation", "tins"),
        *("ack_filter", "ingress", "wash"),
    ),
    "dualpi2": (
        *("target", "coupling", "threshold", "ramp", "behind", "scheduler", "protection", "shift"),
        "drop_on_overload",
    ),
    "policer": (),
}
"""The queue disciplines of `sim`, with their optional settings."""

LEAST_SIZES = {"rmem_max": "4608 B", "wmem_max": "4608 B", "window_clamp": "1152 B"}
"""The least values that are accepted."""

QDISCS = ("fq", "fq-codel", "codel", "sfq", "1000 packets", "20 packets", "1 packets")
"""Queues of hosts."""

CHANGED = ("bbr", "bbr3", "cubic", "newreno", "vegas", "hybla", "copa", "compound", "illinois")
"""Congestion controls that replace another during a run."""

MOST_PIE_S = 1e4

TOO_LONG = "99999999999999999999 s"
WRONG: tuple[Any, ...] = (
    *(-1, 1.5, "", "x", "-3 ms", "1e3 s", "7 lightyears", TOO_LONG, [], ["a"], True),
)
"""Values that most keys refuse."""


class Draw:
    """The draws of one experiment. Everything is relative to its rate and its duration."""

    def __init__(self, seed: int, number: int) -> None:
        """Equal seeds and numbers make equal experiments on any machine."""
        self.seed, self.number = seed, number
        self.random = Random(f"whole {seed}/{number}")
        rate = self.random.choice(RATES) * self.random.choice([1, 1, 1, 1.7])
        self.rate = max(int(rate), 1)
        self.mtu = self.random.choice([1500, 1500, 1500, 576, 9000, 68, 65_535])
        self.least = 68 if self.chance(0.1) else min(self.mtu, 1500)
        """No packet that is full has fewer bytes."""
        packets = log_uniform(self.random, *PACKETS)
        seconds = packets * self.least * 8 / self.rate
        self.seconds = min(max(seconds, PICOSECOND), SECONDS / 2)

    def chance(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self.random.random() < probability

    def experiment(self) -> Plain:
        """The complete experiment."""
        network, nodes = self.network()
        number = self.random.choice([1, 1, 1, 1, 2, 2, 3, 5, 30])
        experiment: Plain = {
            "duration": time(self.seconds),
            "network": network,
            "flows": [self.flow(nodes) for _ in range(number)],
            "record": self.record(),
        }
        if self.chance(0.9):
            experiment["stack"] = self.stack()
        if self.chance(0.1):
            experiment.setdefault("stack", {})["mem"] = self.memory()
        if self.chance(0.3):
            experiment["measure"] = self.measure()
        if self.chance(0.2):
            experiment["every"] = self.part()
        if self.chance(0.5):
            experiment["seed"] = self.random.choice([0, 2, 77, 2**32, 2**63 - 1])
        if self.chance(0.1):
            experiment["name"] = self.random.choice(["x", "two words", "ü/..", "a" * 300])
        if self.chance(0.15):
            hosts = self.random.sample(nodes, min(2, len(nodes)))
            experiment["hosts"] = {host: {"stack": self.stack()} for host in hosts}
        # A separate generator, so that the rest of an experiment is as it was before hosts had CPU
        # time.
        apart = Random(f"cpu {self.seed}/{self.number}")
        if apart.random() < 0.1:
            self.add_cpus(experiment, nodes, apart)
        apart = Random(f"qdisc {self.seed}/{self.number}")
        if apart.random() < 0.1:
            for host in apart.sample(nodes, min(2, len(nodes))):
                settings = experiment.setdefault("hosts", {}).setdefault(host, {})
                settings["qdisc"] = apart.choice(QDISCS)
        apart = Random(f"gro {self.seed}/{self.number}")
        if apart.random() < 0.1:
            self.add_gro(experiment, nodes, apart)
        self.add_change(experiment, Random(f"change {self.seed}/{self.number}"))
        if self.chance(0.03):
            self.spoil(experiment)
        return experiment

    def add_change(self, experiment: Plain, apart: Random) -> None:
        """Sometimes adds one or two of the settings that can change during a run."""
        if apart.random() > 0.1:
            return
        flows = [number for number, flow in enumerate(experiment["flows"]) if "cc" in flow]
        settings: Plain = {f"flows[{number}].cc": apart.choice(CHANGED) for number in flows[:2]}
        for link in ("links[0]", "dumbbell", "chain", "star", "parking_lot"):
            if link.removesuffix("[0]") in experiment["network"]:
                rate, delay = self.rate * apart.choice([0.3, 1, 2]), self.seconds * apart.random()
                settings[f"network.{link}.rate"] = f"{max(int(rate), 1)} bit/s"
                settings[f"network.{link}.delay"] = time(delay / 10)
                settings[f"network.{link}.queue"] = apart.choice(QDISCS)
        if settings:
            keys = apart.sample(sorted(settings), min(len(settings), apart.choice([1, 1, 2])))
            changed = {key: settings[key] for key in keys}
            experiment["change"] = {"at": time(self.seconds * apart.random()), **changed}

    def add_cpus(self, experiment: Plain, nodes: list[str], apart: Random) -> None:
        """Adds hosts that take about as long per packet as a link does."""
        packet = self.least * 8 / self.rate
        for host in apart.sample(nodes, min(2, len(nodes))):
            keys = [key for key in ("packet", "ack", "call") if apart.random() < 0.6]
            times = {key: min(packet * log_uniform(apart, 0.01, 10), 1) for key in keys}
            cpu = {
                key: apart.choice(["0 s", time(cost), time(cost)]) for key, cost in times.items()
            }
            experiment.setdefault("hosts", {}).setdefault(host, {})["cpu"] = cpu

    def add_gro(self, experiment: Plain, nodes: list[str], apart: Random) -> None:
        """Adds hosts whose GRO waits for a few packet times of a link."""
        packet = self.least * 8 / self.rate
        for host in apart.sample(nodes, min(2, len(nodes))):
            wait = min(max(packet * log_uniform(apart, 0.5, 50), 1e-6), 1e-2)
            experiment.setdefault("hosts", {}).setdefault(host, {})["gro"] = time(wait)

    def measure(self) -> Plain:
        """A measuring window."""
        edges = sorted(self.seconds * self.random.random() for _ in range(2))
        names = self.random.choice([["from"], ["to"], ["from", "to"]])
        return {name: time(edges[name == "to"]) for name in names}

    # Quantities.

    def time(self) -> str:
        """A time, mostly of the order of the experiment's duration."""
        if self.chance(0.2):
            return self.random.choice(["1 ps", "1 ns", "1 us", "1 ms", "40 ms", "200 ms", "1 s"])
        if self.chance(0.1):
            return self.random.choice(["60 s", "1 h", "5000 h", "18446744 s"])
        return time(self.seconds * log_uniform(self.random, 1e-4, 3))

    def part(self, least: float = 1 / SAMPLES) -> str:
        """A time that fits into the experiment a bounded number of times."""
        return time(self.seconds * log_uniform(self.random, least, 2))

    def link_rate(self) -> str:
        """A rate near that of the experiment."""
        return rate(self.rate * self.random.choice(FACTORS))

    def delay(self) -> str:
        """A propagation delay: zero, a few packet times, longer than the experiment."""
        kind = self.random.random()
        if kind < 0.15:
            return "0 ms"
        if kind < 0.2:
            return self.random.choice(["1 ps", "10 h", "5000 h"])
        return time(self.seconds * log_uniform(self.random, 1e-5, 0.2))

    def size(self) -> str:
        """A number of bytes."""
        few = ["1 B", "2 B", "536 B", "1460 B", "4096 B", "64 KiB", "1 GiB"]
        if self.chance(0.3):
            return self.random.choice(few)
        if self.chance(0.01):
            return self.random.choice(["0 B", "1 TB"])
        return f"{round(log_uniform(self.random, 100, 3e6))} B"

    def whole(self, least: int, most: int) -> int:
        """An integer of this range: its ends, their neighbours, or any."""
        kind = self.random.random()
        if kind < 0.2:
            return least
        if kind < 0.3:
            return min(least + 1, most)
        if kind < 0.4:
            return most
        return min(round(log_uniform(self.random, least + 1, most + 1)) - 1, most)

    # The network.

    def network(self) -> tuple[Plain, list[str]]:
        """A network, and its nodes."""
        shapes = [self.dumbbell, self.parking_lot, self.chain, self.antiparallel, self.links]
        network, nodes = self.random.choice(shapes)()
        if self.chance(0.1):
            # A further link, leading on from the first node.
            link = {"between": [nodes[0], "further"], **self.settings()}
            network["links"] = [*network.get("links", []), link]
            nodes = [*nodes, "further"]
        return network, nodes

    def dumbbell(self) -> tuple[Plain, list[str]]:
        """Pairs of hosts."""
        pairs = self.random.choice([1, 1, 2, 3, 7])
        shape = {"pairs": pairs, **self.settings()}
        if self.chance(0.3):
            shape["access"] = self.some_settings()
        if self.chance(0.2):
            shape["back"] = self.some_settings()
        if self.chance(0.15) and "delay" not in shape.get("access", {}):
            shape["rtt"] = sorted((self.delay(), self.delay()), key=seconds)
        numbers = range(1, pairs + 1)
        ends = [f"{side}{number}" for side in ("left", "right") for number in numbers]
        return {"dumbbell": shape}, [*ends, "left", "right"]

    def parking_lot(self) -> tuple[Plain, list[str]]:
        """A series of bottlenecks."""
        hops = self.random.randint(1, 4)
        shape = {"hops": hops, **self.settings()}
        if self.chance(0.3):
            shape["access"] = self.some_settings()
        if self.chance(0.2):
            shape["back"] = self.some_settings()
        numbers = range(1, hops + 1)
        others = [f"{name}{number}" for name in ("entry", "exit") for number in numbers]
        return {"parking_lot": shape}, ["source", "sink", *others]

    def chain(self) -> tuple[Plain, list[str]]:
        """A series of links."""
        hops = self.random.choice([1, 1, 2, 5, 40])
        shape = {"hops": hops, **self.settings()}
        if self.chance(0.2):
            shape["back"] = self.some_settings()
        return {"chain": shape}, ["client", "server"]

    def further(self) -> tuple[Plain, list[str]]:
        """A network of a shape that `network` does not draw, and its nodes."""
        shapes = [self.star, self.fat_tree, self.graph, self.spread_dumbbell]
        return self.random.choice(shapes)()

    def star(self) -> tuple[Plain, list[str]]:
        """Hosts around a hub."""
        shape = self.settings()
        hosts = self.whole(1, 12)
        if self.chance(0.5):
            del shape["delay"]
            shape["rtts"] = self.rtts(hosts)
        if "rtts" not in shape or self.chance(0.5) or isinstance(shape["rtts"], dict):
            shape["hosts"] = hosts
        if self.chance(0.2):
            shape["back"] = self.some_settings()
            if "rtts" in shape:
                shape["back"].pop("delay", None)
        return {"star": shape}, ["hub", *(f"host{number + 1}" for number in range(hosts))]

    def rtts(self, number: int) -> Any:
        """A list of RTTs, or a distribution."""
        return [self.delay() for _ in range(number)] if self.chance(0.5) else self.spread()

    def spread_dumbbell(self) -> tuple[Plain, list[str]]:
        """Pairs with RTTs of their own."""
        network, nodes = self.dumbbell()
        shape = network["dumbbell"]
        shape.pop("rtt", None)
        shape.get("access", {}).pop("delay", None)
        if self.chance(0.9):
            # RTTs must exceed that of the bottleneck.
            shape["delay"] = "0 ms"
            shape.get("back", {}).pop("delay", None)
        shape["rtts"] = self.rtts(shape["pairs"])
        if isinstance(shape["rtts"], list) and self.chance(0.5):
            del shape["pairs"]
        return network, nodes

    def fat_tree(self) -> tuple[Plain, list[str]]:
        """Three layers of switches."""
        ports = self.random.choice([2, 4, 4, 6])
        # With so many links, each may change a thousand times per second.
        self.seconds = min(self.seconds, 10_000 / ports**3)
        shape = self.settings()
        if ports != 4 or self.chance(0.5):
            shape["k"] = ports
        if self.chance(0.3):
            shape["access"] = self.some_settings()
        hosts = [f"host{number + 1}" for number in range(ports**3 // 4)]
        return {"fat_tree": shape}, [*hosts, "core1", "edge1-1"]

    def graph(self) -> tuple[Plain, list[str]]:
        """Links with settings that all of them share."""
        network, nodes = self.links()
        shape = self.settings()
        for link in network["links"]:
            for key in ("rate", "delay", "queue"):
                if self.chance(0.5):
                    link.pop(key, None)
        return {"graph": {**shape, "links": network.pop("links")}, **network}, nodes

    def antiparallel(self) -> tuple[Plain, list[str]]:
        """An asymmetric link."""
        shape = {"down": self.settings(), "up": self.settings()}
        if self.chance(0.3):
            shape["access"] = self.some_settings()
        return {"antiparallel": shape}, ["client", "server", "near", "far"]

    def links(self) -> tuple[Plain, list[str]]:
        """A series, a star or a ring of single links, some in parallel."""
        number = self.random.randint(2, 6)
        nodes = [f"n{node}" for node in range(number)]
        pairs = list(itertools.pairwise(nodes))
        if self.chance(0.3):
            pairs = [(nodes[0], node) for node in nodes[1:]]
        elif self.chance(0.3) and number > 2:
            pairs.append((nodes[-1], nodes[0]))
        if self.chance(0.1):
            pairs.append(pairs[0])
        network: Plain = {"links": []}
        for between in pairs:
            link = {"between": list(between), **self.settings()}
            for direction in ("forward", "back"):
                if self.chance(0.1):
                    link[direction] = self.some_settings()
            network["links"].append(link)
        if self.chance(0.2):
            length = self.random.randint(2, number)
            network["routes"] = [{"path": nodes[:length]}, {"path": nodes[:length][::-1]}]
        return network, nodes

    def settings(self) -> Plain:
        """Settings of a link: a rate, a delay, and some others."""
        return {"rate": self.link_rate(), "delay": self.delay(), **self.some_settings(base=False)}

    def some_settings(self, *, base: bool = True) -> Plain:
        """Some of the optional settings of a link."""
        settings: Plain = {}
        if base and self.chance(0.5):
            settings["rate"] = self.link_rate()
        if base and self.chance(0.5):
            settings["delay"] = self.delay()
        if self.chance(0.7):
            settings["queue"] = self.queue()
        if self.chance(0.3):
            settings["loss"] = self.loss()
        if self.chance(0.15):
            settings["jitter"] = self.delay()
        if self.chance(0.7):
            other = self.random.choice([68, 69, 552, 576, 1499, 1500, 9000, 65_535])
            settings["mtu"] = self.mtu if self.chance(0.7) else max(other, self.least)
        if self.chance(0.1):
            settings["icmp"] = self.chance(0.5)
        if self.chance(0.3):
            settings |= self.changes()
        return settings

    def changes(self) -> Plain:
        """A link that damages, copies, reorders or changes."""
        on = self.random.choice(["data", "acks", "both"])
        gilbert: Plain = {"to_bad": self.probability(), "to_good": self.probability()}
        gilbert |= {"loss_good": self.probability(), "loss_bad": self.probability(), "on": on}
        timed: Plain = {"good": self.some_time(), "bad": self.some_time(), "on": on}
        timed |= {"loss_good": self.probability(), "loss_bad": self.probability()}
        timed |= {
            "holding": self.random.choice(["fixed", "exponential"]),
            "reading": self.random.choice(["time", "packets"]),
            "change": self.probability(),
        }
        sine = {"kind": "sine", "amplitude": "50 bit/s", "period": "3 ms", "every": "1 ms"}
        handover = {"kind": "handover", "every": "3 ms", "least": "0 s", "most": "1 s"}
        trace = [[0, 1], [self.whole(1, 5000), self.whole(1, 99)]]
        kinds: list[Plain] = [
            {"loss": {"kind": "independent", "probability": self.probability(), "on": on}},
            {"loss": {"kind": "gilbert", **gilbert}},
            {"loss": {"kind": "gilbert-time", **timed}},
            {"corruption": self.probability()},
            {"duplication": self.probability()},
            {"reordering": {"probability": self.probability(), "delay": self.some_time()}},
            {"jitter": self.spread(), "overtaking": self.chance(0.5)},
            {"rate_changes": [["1 us", self.link_rate()], ["100 ms", self.link_rate()]]},
            {"rate_changes": sine, "rate": "1 Mbit/s"},
            {"rate_changes": {"opportunities": trace}},
            {"outages": [["1 ms", self.some_time()]]},
            {"outages": {"kind": "periodic", "every": "100 ms", "lasts": "99 ms"}},
            {"outages": {"kind": "random", "up": "100 ms", "down": "1 s"}},
            {"delay_changes": [["5 ms", self.delay()], ["6 ms", "0 s"]]},
            {"delay_changes": handover, "overtaking": self.chance(0.5)},
            {"contention": {"access": self.spread(), "aggregate": self.whole(1, 64)}},
        ]
        walk = {"kind": "random-walk", "step": "1 Mbit/s", "every": "10 ms"}
        walk |= {"least": "1 Mbit/s", "most": "9 Mbit/s"}
        kinds.append({"rate_changes": walk, "rate": "5 Mbit/s"})
        chosen = self.random.choice(kinds)
        match chosen.get("rate_changes"):
            case {"kind": "sine"}:
                self.shorten(1e6)
            case {"kind": "random-walk"}:
                self.shorten(9e6)
            case {"opportunities": [[_, first], [milliseconds, others]]}:
                # Keeps the experiments of earlier seeds as they were before light loads were added.
                if others % 2:
                    second = {"at": f"{1 + first} ms", "delay": "0 s", "opportunities": [first]}
                    one = {"at": "0 s", "delay": f"{others} ms", "opportunities": [0, others]}
                    after = f"{milliseconds} us"
                    chosen["light"] = {"trains": [one, second], "after": after}
                self.shorten((first + others) * 1500 * 8 / milliseconds * 1000)
        return chosen

    def shorten(self, rate: float) -> None:
        """Ends the experiment before a link with a rate of its own has carried too much."""
        # Access links are ten times as fast as those between routers.
        self.seconds = min(self.seconds, MOST_PACKETS * self.least * 8 / (10 * rate))

    def spread(self) -> Plain:
        """A distribution of times."""
        kinds: list[Plain] = [
            {"kind": "uniform", "least": "0 s", "most": self.some_time()},
            {"kind": "normal", "mean": self.delay(), "deviation": self.some_time()},
            {"kind": "pareto", "shape": 1.5, "least": self.some_time()},
            {"kind": "exponential", "mean": self.some_time()},
            {"kind": "empirical", "times": [self.some_time(), "0 s"]},
        ]
        return self.random.choice(kinds)

    def some_time(self) -> str:
        """A time other than zero."""
        return f"{log_uniform(self.random, 1e-6, 1e3):.6f} ms"

    def limit(self) -> str:
        """The limit of a queue."""
        multiple = f"{log_uniform(self.random, 1e-3, 10):.3f} BDP"
        packets = f"{self.whole(1, 500)} packets"
        few = ["1 packet", "2 packets", "1 BDP", "0.0001 BDP", "1 B", "100 B", "1000000 TB"]
        few += ["1 ps", "10 us", "50 ms", "5000 h"]
        return self.random.choice([multiple, packets, packets, self.random.choice(few), "20 kB"])

    def queue(self) -> Any:
        """A queue of any discipline that `sim` has."""
        kind = self.random.choice(["size", "size", "size", *DISCIPLINES])
        # PIE updates its probability 67 times per second while packets wait: years of simulated
        # time take hours.
        if kind == "size" or ("pi" in kind and self.seconds > MOST_PIE_S):
            return self.limit()
        queue: Plain = {"kind": kind}
        if self.chance(0.8):
            queue["limit"] = self.limit()
        if kind == "red":
            queue |= {"min": self.limit(), "max": self.limit()}
            if self.chance(0.5):
                queue["probability"] = self.probability()
            if self.chance(0.5):
                queue["weight"] = self.random.choice([1e-9, 0.002, 0.1, 1.0])
            if self.chance(0.5):
                queue["gentle"] = self.chance(0.5)
        settings: dict[str, Callable[[], Any]] = {
            "target": self.time,
            "interval": self.time,
            "update": lambda: self.random.choice(["1 ps", "15 ms", "100 ms", "5000 h"]),
            "alpha": lambda: self.whole(0, 32),
            "beta": lambda: self.whole(0, 32),
            "bytemode": lambda: self.chance(0.5),
            "ecn": lambda: self.chance(0.5),
            "ecn_prob": lambda: self.whole(0, 100),
            "flows": lambda: self.random.choice([1, 2, 128, 1024, 65_408]),
            "depth": lambda: self.whole(1, 127),
            "flow_limit": lambda: self.random.choice([1, 2, 100, 1 << 40]),
            "quantum": lambda: self.random.choice([256, 1514, 3028, 1 << 20]),
            "initial_quantum": lambda: self.random.choice([1, 15_140, 1 << 30]),
            "rtt": self.time,
            "rate": lambda: rate(self.rate * self.random.choice(FACTORS)),
            "overhead": lambda: self.whole(0, 256),
            "mpu": lambda: self.whole(0, 256),
            "framing": lambda: self.random.choice(["none", "atm", "ptm"]),
            "isolation": lambda: self.random.choice(ISOLATIONS),
            "tins": lambda: self.random.choice(TINS),
            "ack_filter": lambda: self.random.choice(["off", "on", "aggressive"]),
            "ingress": lambda: self.chance(0.5),
            "adaptive": lambda: self.chance(0.5),
            "wash": lambda: self.chance(0.5),
            "coupling": lambda: self.random.choice([0, 1, 2.0, 255]),
            "threshold": lambda: self.random.choice(["0 ms", "1 ms", self.time()]),
            "ramp": lambda: self.random.choice(["0 ms", "400 us", self.time()]),
            "behind": lambda: self.whole(0, 10),
            "scheduler": lambda: self.random.choice(["wrr", "time-shifted"]),
            "protection": lambda: self.whole(0, 100),
            "shift": lambda: self.random.choice(["0 ms", "50 ms", self.time()]),
            "drop_on_overload": lambda: self.chance(0.5),
        }
        for name in DISCIPLINES[kind]:
            if self.chance(0.5):
                queue[name] = settings[name]()
        if kind == "dualpi2" and self.chance(0.5):
            gains = [2**-8, 0.16, 3.2, 8_388_607]
            queue |= {name: self.random.choice(gains) for name in ("alpha", "beta")}
            queue["update"] = self.random.choice(["1 ms", "16 ms", "5000 h"])
        if kind in ("tbf", "policer"):
            burst = self.random.choice(["1 B", "1500 B", "100 kB", "4 GB"])
            queue |= {
                "rate": rate(self.rate * self.random.choice(FACTORS)),
                "burst": burst,
                "limit": self.limit(),
            }
        if kind == "tbf" and self.chance(0.5):
            queue["peakrate"] = rate(self.rate * self.random.choice(FACTORS))
            if self.chance(0.5):
                queue["mtu"] = self.random.choice(["1 B", "1500 B", "100 kB"])
        return queue

    def probability(self) -> float | str:
        """A probability, as a number or text."""
        kinds: list[float | str] = [0, 1, 0.01, 0.5, 1e-300, "1 %", "0.1 %", "20 %", "100 %"]
        return self.random.choice(kinds)

    def loss(self) -> Any:
        """Losses other than those of a queue."""
        if self.chance(0.4):
            packets = self.random.choices(range(1, 80), k=self.random.randint(0, 20))
            if self.chance(0.1):
                packets.append(2**64 - 1)
            return {"kind": "listed", "packets": packets}
        share = self.random.choice([0.0, 0.001, 0.01, 0.05, 0.3, "1 %", "100 %", 0.999])
        return share if self.chance(0.7) else {"kind": "independent", "probability": share}

    # The transport.

    def stack(self) -> Plain:
        """A profile and some options; sometimes all options."""
        options = dict(definition("Stack")["properties"])
        stack: Plain = {}
        if self.chance(0.8):
            stack["profile"] = self.of(options["profile"], "profile")
        del options["profile"]
        number = self.random.choice([0, 1, 1, 2, 3, 5, 10, len(options)])
        for name in sorted(self.random.sample(sorted(options), number)):
            stack[name] = self.of(options[name], name)
        # Combinations that would be refused most often.
        if "min_rto" in stack and "max_rto" in stack:
            stack |= zip(
                ("min_rto", "max_rto"),
                sorted((stack["min_rto"], stack["max_rto"]), key=seconds),
                strict=True,
            )
        if self.chance(0.9):
            if stack.get("recovery") in ("tahoe", "reno"):
                stack["sack"] = False
            if stack.get("fack"):
                stack |= {"sack": True, "rack": False, "recovery": "newreno"}
            for name, other in (("min_rto", "max_rto"), ("max_rto", "min_rto")):
                # The profile sets the other one.
                if name in stack and other not in stack:
                    stack[other] = stack[name]
            stack |= {
                name: max(stack[name], least, key=bytes_of)
                for name, least in LEAST_SIZES.items()
                if stack.get(name, "off") != "off"
            }
            if stack.get("mem") != "off":
                # `mem` is per host, so that two flows of a host cannot have different ones.
                stack.pop("mem", None)
        if "max_rto" in stack and self.chance(0.5):
            stack["user_timeout"] = "off"
        elif {"max_rto", "user_timeout"} & set(stack):
            # Data is retransmitted at this interval, which may go on for long without `retries`.
            least = max(self.part(), stack.get("min_rto", "1 ps"), key=seconds)
            stack["max_rto"] = max(least, stack.get("max_rto", least), key=seconds)
        return stack

    def of(self, schema: Plain, name: str) -> Any:
        """A value that a schema allows."""
        if "$ref" in schema:
            defined = schema["$ref"].rpartition("/")[2]
            special = {
                "Duration": self.time,
                "Size": self.size,
                "Rate": lambda: rate(max(self.rate * self.random.choice(FACTORS), 8)),
                "CongestionControl": self.congestion_control,
                "Keepalive": self.keepalive,
                "Memory": self.memory,
            }
            if defined in special:
                return special[defined]()
            return self.of(definition(defined), name)
        for choices in ("anyOf", "oneOf"):
            if choices in schema:
                bounds = {key: schema[key] for key in ("minimum", "maximum") if key in schema}
                return self.of(bounds | self.random.choice(schema[choices]), name)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if schema["type"] == "boolean":
            return self.chance(0.5)
        assert schema["type"] == "integer", (name, schema)
        if name == "initial_window" and self.chance(0.95):
            # More would make many packets at once.
            return self.whole(1, 100)
        if name == "mss":
            return self.whole(self.least - 40, schema["maximum"])
        return self.whole(schema["minimum"], schema.get("maximum", 2**64 - 1))

    def keepalive(self) -> Plain:
        """Keepalive probes, few enough not to take long."""
        keepalive: Plain = {"idle": self.part(), "interval": self.part()}
        if self.chance(0.5):
            keepalive["probes"] = self.whole(1, 127)
        return keepalive

    def memory(self) -> Plain:
        """Limits on the memory of a host, in ascending order."""
        sizes = sorted((self.size() for _ in range(3)), key=bytes_of)
        return dict(zip(("low", "pressure", "high"), sizes, strict=True))

    def congestion_control(self) -> Any:
        """An algorithm, one with a preset, or one with parameters."""
        algorithm = self.random.choice(algorithms())
        name: str = algorithm["name"]
        if algorithm["presets"] and self.chance(0.3):
            name = f"{name}/{self.random.choice(algorithm['presets'])}"
        parameters: Plain = json.loads(algorithm["parameters"])
        if not parameters or self.chance(0.5):
            return name
        number = self.random.randint(0, min(3, len(parameters)))
        chosen = self.random.sample(sorted(parameters), number)
        changed = {key: self.parameter(parameters[key]) for key in chosen}
        return {"name": name, **changed}

    def parameter(self, default: Any) -> Any:
        """A value of the type of a default. Values out of range are refused."""
        if isinstance(default, bool):
            return self.chance(0.5)
        if isinstance(default, int):
            factor = self.random.choice([0.5, 1, 2, 10])
            other = self.random.choice([0, 1, 2, 1000, 2**32 - 1])
            return other if self.chance(0.2) else round(default * factor)
        if isinstance(default, float):
            if self.chance(0.7) and 0 < default < 1:
                return default ** self.random.choice([0.01, 0.5, 0.9, 1.1, 2, 100])
            return default * self.random.choice([1e-9, 0.1, 0.5, 0.9, 1.1, 2, 1e9])
        return default

    # The traffic.

    def flow(self, nodes: list[str]) -> Plain:
        """A flow between two nodes."""
        here, there = self.random.sample(nodes, 2)
        flow: Plain = {"from": here, "to": there}
        if self.chance(0.6):
            flow["start"] = self.start()
        if self.chance(0.2):
            flow["start_jitter"] = self.time()
        if self.chance(0.1):
            flow["count"] = self.random.choice([1, 2, 3, 30])
        if self.chance(0.1):
            flow["stagger"] = self.time()
        if self.chance(0.6):
            flow["cc"] = self.congestion_control()
        if self.chance(0.7):
            flow["traffic"] = self.traffic()
        traffic = flow.get("traffic")
        is_udp = isinstance(traffic, dict) and traffic["kind"] == "udp"
        if is_udp and self.chance(0.95):
            # The remaining settings do not apply to UDP, and are refused.
            flow.pop("cc", None)
        if self.chance(0.1):
            flow["class"] = self.random.choice(["large", "x/y", "ä b"])
        if self.chance(0.1):
            flow["name"] = f"flow of {self.random.random()}"
        if self.chance(0.2) and not is_udp:
            flow["stack"] = self.stack()
            if "cc" in flow:
                flow["stack"].pop("cc", None)
        return flow

    def start(self) -> str:
        """The start of a flow: mostly before the experiment ends, or at its last moment."""
        if self.chance(0.1):
            # One picosecond before the end, or the end itself, which is refused.
            picos = round(self.seconds / PICOSECOND) - self.random.choice([0, *[1] * 20])
            return f"{max(picos, 0)} ps"
        return time(self.seconds * self.random.random() * 0.9)

    def traffic(self) -> Any:
        """Traffic of any kind that `sim` has."""
        kinds = [self.bulk, self.bulk, self.bulk, self.on_off, self.on_off]
        kinds += [self.web, self.arrivals, self.requests, self.udp]
        return self.random.choice(kinds)()

    def bulk(self) -> Any:
        """A bulk transfer, with or without a size, in writes of a size."""
        if self.chance(0.2):
            return "bulk"
        traffic: Plain = {"kind": "bulk", "size": self.size()}
        if self.chance(0.2):
            traffic["write"] = f"{self.whole(self.least, 10**6)} B"
        return traffic

    def on_off(self) -> Plain:
        """Traffic that is on and off."""
        return {"kind": "on-off", **self.times()}

    def times(self) -> Plain:
        """The times at which traffic is on: alternating with pauses, or in listed periods."""
        if self.chance(0.5):
            return {"on": self.part(), "off": self.part()}
        number = 2 * self.whole(1, 20)
        ends = {time(self.seconds * self.random.uniform(0, 1.5)) for _ in range(number)}
        texts = sorted(ends, key=seconds)
        texts = texts[: len(texts) // 2 * 2] or ["0 ps", "1 ps"]
        if self.chance(0.03):
            # Some periods overlap, and are refused.
            self.random.shuffle(texts)
        if self.chance(0.2) and len(texts) > 2:
            # One period begins where the other ends.
            texts[2] = texts[1]
        periods = [list(period) for period in zip(texts[::2], texts[1::2], strict=True)]
        return {"periods": periods}

    def asking(self) -> Plain:
        """The size of requests, and the server time before an answer."""
        asking: Plain = {}
        if self.chance(0.3):
            asking["request"] = self.size()
        if self.chance(0.5):
            asking["server_time"] = self.time()
        return asking

    def web(self) -> Plain:
        """A page: some classes of sessions, or a list of sizes."""
        traffic: Plain = {"kind": "web", **self.asking()}
        if self.chance(0.5):
            traffic["sizes"] = [self.size() for _ in range(self.whole(1, 30))]
        else:
            traffic["classes"] = []
            for number in range(self.whole(1, 4)):
                loads = {"name": f"class {number}", "count": self.whole(1, 10), "size": self.size()}
                if self.chance(0.2):
                    loads["request"] = self.size()
                traffic["classes"].append(loads)
        if self.chance(0.5):
            traffic["order"] = self.random.choice(["parallel", "sequential"])
        if self.chance(0.7):
            traffic["connections"] = self.whole(1, 30)
        if self.chance(0.5):
            traffic["persistent"] = self.chance(0.5)
        return traffic

    def arrivals(self) -> Plain:
        """Transfers that begin in one of the four ways."""
        begin = self.random.choice(["per_second", "every", "load", "users"])
        traffic: Plain = {"kind": "arrivals", "sizes": self.sizes()}
        if begin == "per_second":
            traffic[begin] = self.whole(1, 50) / self.seconds
        elif begin == "every":
            traffic[begin] = self.part()
        elif begin == "load":
            traffic[begin] = self.random.choice([0.01, 0.5, "90 %", 1.5])
        else:
            traffic |= {begin: self.whole(1, 30), "think": self.part()}
        # With many small transfers, a run would take too long.
        traffic["transfers"] = self.whole(1, 100)
        if begin in ("every", "users") and self.chance(0.3):
            del traffic["transfers"]
        return traffic

    def sizes(self) -> Any:
        """One size for all, or a distribution."""
        least, most = sorted((self.size(), self.size()), key=bytes_of)
        kinds: list[Any] = [
            least,
            {"kind": "fixed", "size": least},
            {"kind": "zipf", "exponent": self.random.choice([0.1, 1, 1.7, 30]), "max": most},
            {"kind": "pareto", "shape": self.random.choice([0.1, 1, 1.2, 30]), "min": least},
            {"kind": "lognormal", "median": least, "sigma": self.random.choice([0, 1e-9, 1.5, 30])},
            {"kind": "empirical", "sizes": [self.size() for _ in range(self.whole(1, 9))]},
        ]
        sizes = self.random.choice(kinds)
        if isinstance(sizes, dict):
            if sizes["kind"] == "zipf" and self.chance(0.5):
                sizes["unit"] = least
            if sizes["kind"] in ("pareto", "lognormal") and self.chance(0.5):
                sizes["max"] = most
        return sizes

    def requests(self) -> Plain:
        """Requests and answers."""
        traffic: Plain = {"kind": "requests", "response": self.size(), **self.asking()}
        if self.chance(0.7):
            traffic["think"] = self.part()
        if self.chance(0.7) or "think" not in traffic:
            traffic["requests"] = self.whole(1, 100)
        return traffic

    def udp(self) -> Plain:
        """Datagrams, few enough not to take long."""
        payload = self.whole(1, 65_507)
        traffic: Plain = {"kind": "udp", "payload": f"{payload} B"}
        if self.chance(0.5):
            traffic["interval"] = self.part()
        else:
            number = log_uniform(self.random, 1, SAMPLES)
            traffic["rate"] = rate((payload + 28) * 8 * number / self.seconds)
        if self.chance(0.5):
            traffic["gaps"] = self.random.choice(["constant", "poisson"])
        if self.chance(0.4):
            traffic["packets"] = self.whole(1, 1000)
        if self.chance(0.3):
            traffic |= self.times()
        return traffic

    def record(self) -> Plain:
        """The recording settings."""
        samples = self.random.choice(["ack", "ack", "off", self.part()])
        links = self.random.choice(["off", self.part(), self.part()])
        return {"samples": samples, "links": links}

    def spoil(self, experiment: Plain) -> None:
        """Puts a wrong value somewhere."""
        places = list(leaves(experiment))
        holder, key = self.random.choice(places)
        holder[key] = self.random.choice(WRONG)


FURTHER = 1 / 8
"""The share of experiments whose network has a shape that was added later. The rest is drawn as
without it.
"""

NAMED = 1 / 5
"""The share of experiments in which some values come from parameters, a sweep or a variant. The
meaning is the same.
"""


def original(seed: int, number: int) -> Plain:
    """The experiment of this number, with every value in its place."""
    drawing = Draw(seed, number)
    experiment = drawing.experiment()
    drawing.random = Random(f"further {seed}/{number}")
    if drawing.chance(FURTHER):
        before = drawing.seconds
        network, nodes = drawing.further()
        if drawing.seconds < before:
            experiment["duration"] = time(drawing.seconds)
            experiment.pop("measure", None)
        flows = [drawing.flow(nodes) for _ in range(drawing.random.choice([1, 2, 3, 9]))]
        experiment |= {"network": network, "flows": flows}
        experiment.pop("hosts", None)
    return experiment


def named(experiment: Plain, random: Random) -> Plain:
    """The same experiment, with some values moved to parameters, a sweep or a variant."""
    varied: Plain = json.loads(json.dumps(experiment))
    for number in range(random.randint(1, 4)):
        places = [place for place in inside(varied) if place[2][0] not in ("name", *VARYING)]
        # Parameters may refer to other parameters.
        places += inside(varied.get("let", {}))
        holder, key, path = random.choice(places)
        value = holder[key]
        is_table = isinstance(value, dict) and "kind" not in value
        way = random.choice(["let", "let", "sweep", "zip", "variants"])
        written = spelled(path)
        others = [*varied.get("sweep", {}), *varied.get("variants", {}).get("named", {})]
        others += [path for tied in varied.get("zip", []) for path in tied]
        if any(written.startswith(other) or other.startswith(written) for other in others):
            # Two sources must not set the same key.
            continue
        if way == "let" or is_table or path[0].startswith("parameter"):
            holder[key] = f"$parameter{number}"
            varied.setdefault("let", {})[f"parameter{number}"] = value
            continue
        if isinstance(holder, dict) and random.random() < 0.5:
            del holder[key]
        if way == "variants":
            varied.setdefault(way, {}).setdefault("named", {})[written] = value
        elif way == "zip":
            varied.setdefault(way, [{}])[0][written] = [value]
        else:
            varied.setdefault(way, {})[written] = [value]
    return varied


VARYING = ("let", "sweep", "zip", "variants")

Path = tuple[str | int, ...]


def inside(value: Any, path: Path = ()) -> list[tuple[Any, Any, Any]]:
    """All places in a value: container, key or index, and path."""
    found: list[tuple[Any, Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        found.append((value, key, (*path, key)))
        if isinstance(item, dict | list):
            found += inside(item, (*path, key))
    return found


def spelled(path: Path) -> str:
    """A path in the notation of a sweep."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(parts).removeprefix(".")


def leaves(value: Any) -> list[tuple[Any, Any]]:
    """All places of scalar values: container, and key or index."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        found += leaves(item) if isinstance(item, dict | list) else [(value, key)]
    return found


@functools.cache
def algorithms() -> list[dict[str, Any]]:
    """The congestion controls of `sim`."""
    return lab.algorithms().to_dicts()


@functools.cache
def schema() -> Plain:
    """The schema of experiments."""
    read: Plain = json.loads(_core.schema_of_values())
    return read


def definition(name: str) -> Plain:
    """A definition of the schema."""
    found: Plain = schema()["$defs"][name]
    return found


def time(seconds: float) -> str:
    """A time in the notation of experiments, in whole picoseconds."""
    return f"{min(max(round(seconds / PICOSECOND), 1), 2**64 - 1)} ps"


def rate(bits: float) -> str:
    """A rate in the notation of experiments, in whole bits per second."""
    return f"{min(max(round(bits), 1), 2**64 - 1)} bit/s"


UNITS_OF_TIME = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12, "h": 3600 * 10**12}
UNITS_OF_SIZE = {"B": 1, "KiB": 2**10, "GiB": 2**30, "kB": 10**3, "TB": 10**12}


def seconds(text: str) -> int:
    """The length of a time, for sorting."""
    number, unit = text.split()
    return int(number) * UNITS_OF_TIME[unit]


def bytes_of(text: str) -> int:
    """The number of bytes of a size, for sorting."""
    number, unit = text.split()
    return int(number) * UNITS_OF_SIZE[unit]


def draw(seed: int, number: int) -> Plain:
    """The experiment of this number, as it is written."""
    random = Random(f"named {seed}/{number}")
    experiment = original(seed, number)
    return named(experiment, random) if random.random() < NAMED else experiment
