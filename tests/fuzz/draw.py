"""Random experiments, each repeatable by its seed and number.

An experiment is a plain dict, as JSON would hold it, so that any part can be simplified. Rates,
RTTs and queues are log-uniform. The access links take 4 ms of the RTT, as in the parity grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

Plain = dict[str, Any]

Kinds = dict[str, Callable[[Random], Plain]]

ALGORITHMS = (
    *("newreno", "cubic", "bic", "vegas", "westwood+", "htcp", "highspeed", "hybla"),
    *("scalable", "illinois", "veno", "yeah", "dctcp"),
)
"""Algorithms of the kernel that draw no random numbers."""

DRAWING = ("bbr", "cdg", "nv", "lp")
"""Algorithms that draw random numbers, as LP does for the start of a receiver's timestamps."""

RATE_MBIT_S = (0.5, 150.0)
RTT_MS = (6.0, 310.0)
LEAST_QUEUE_PACKETS = 7
MOST_QUEUE_BDP = 2.5
PACKETS = 12_000
"""The approximate number of full packets that the bottleneck carries in an experiment."""


@dataclass(frozen=True)
class Case:
    """One random experiment."""

    kind: str
    number: int
    experiment: Plain


def log_uniform(random: Random, least: float, most: float) -> float:
    """A log-uniform random number."""
    return math.exp(random.uniform(math.log(least), math.log(most)))


def rounded(value: float, digits: int = 3) -> float:
    """A number rounded to this many significant digits."""
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True)
class Bottleneck:
    """The bottleneck and the duration, common to all kinds."""

    rate_mbit_s: float
    rtt_ms: float
    queue_packets: int
    duration_s: float

    @classmethod
    def draw(cls, random: Random) -> Bottleneck:
        """A random path, with the duration of its experiment."""
        rate = rounded(log_uniform(random, *RATE_MBIT_S))
        rtt = rounded(log_uniform(random, *RTT_MS))
        bdp = rate * rtt / 12
        most = max(MOST_QUEUE_BDP * bdp, LEAST_QUEUE_PACKETS + 1)
        queue = round(log_uniform(random, LEAST_QUEUE_PACKETS, most))
        duration = min(max(PACKETS * 0.012 / rate, 40 * rtt / 1e3, 3), 30)
        return cls(rate, rtt, queue, math.ceil(duration))

    def settings(self, hops: int = 1) -> Plain:
        """The settings of the bottleneck, for both directions."""
        delay = max((self.rtt_ms / 2 - 2) / hops, 0.1)
        return {
            "rate": f"{self.rate_mbit_s:g} Mbit/s",
            "delay": f"{delay:.6g} ms",
            "queue": f"{self.queue_packets} packets",
        }

    def experiment(self, network: Plain, flows: list[Plain], stack: Plain | None = None) -> Plain:
        """The complete experiment."""
        return {
            "duration": f"{self.duration_s:g} s",
            "network": network,
            "stack": stack or {},
            "flows": flows,
            "record": {"samples": "ack", "links": "off"},
        }


def start(random: Random, path: Bottleneck) -> str:
    """A start time in the first third of an experiment; every other flow starts with it."""
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
    """A dumbbell with this many long flows."""
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
    """One flow through all bottlenecks, and one through each."""
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
    """Flows between two hosts over one to three links, sometimes with a slower way back."""
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
"""Options of the stack on both backends, with values other than the usual ones."""


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
    """One or two flows that lose the same listed packets on both backends."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 2)
    share = log_uniform(random, 0.0005, 0.03)
    lost = [packet for packet in range(1, 2 * PACKETS) if random.random() < share]
    settings = path.settings() | {"loss": {"kind": "listed", "packets": lost}}
    network = {"dumbbell": {"pairs": number, **settings}}
    return path.experiment(network, long_flows(random, path, number))


def codel(random: Random) -> Plain:
    """One to three flows over a CoDel queue, with or without ECN marks."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 3)
    marks = random.random() < 0.5
    queue: Plain = {"kind": "codel", "ecn": marks}
    if random.random() < 0.5:
        queue["target"] = f"{rounded(log_uniform(random, 1, 30), 2):g} ms"
    network = {"dumbbell": {"pairs": number, **path.settings(), "queue": queue}}
    stack = {"ecn": True} if marks else {}
    return path.experiment(network, long_flows(random, path, number), stack)


def managed(random: Random, queue: Plain, *, marks: bool) -> Plain:
    """One to four flows over a queue of this discipline, sometimes two between one pair."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 4)
    network = {"dumbbell": {"pairs": number, **path.settings(), "queue": queue}}
    flows = long_flows(random, path, number)
    if number > 1 and random.random() < 0.3:
        flows[1] |= {"from": "left1", "to": "right1"}
    return path.experiment(network, flows, {"ecn": True} if marks else {})


def red(random: Random) -> Plain:
    """RED, with or without ECN marks; both backends drop by the same random numbers."""
    marks = random.random() < 0.5
    least = round(log_uniform(random, 3, 60))
    most = round(least * log_uniform(random, 1.5, 5))
    queue: Plain = {"kind": "red", "gentle": False, "ecn": marks, "limit": f"{4 * most} packets"}
    queue |= {"min": f"{least} packets", "max": f"{most} packets"}
    queue["probability"] = rounded(log_uniform(random, 0.01, 0.5))
    queue["weight"] = rounded(log_uniform(random, 0.001, 0.5))
    return managed(random, queue, marks=marks)


def fq_codel(random: Random) -> Plain:
    """FQ-CoDel, sometimes with so few queues that flows share one, or with a low limit."""
    marks = random.random() < 0.5
    queue: Plain = {"kind": "fq-codel", "ecn": marks}
    if random.random() < 0.3:
        queue["flows"] = random.randint(1, 4)
    if random.random() < 0.3:
        queue["quantum"] = round(log_uniform(random, 256, 20_000))
    if random.random() < 0.3:
        queue["limit"] = f"{round(log_uniform(random, 5, 200))} packets"
    if random.random() < 0.5:
        queue["target"] = f"{rounded(log_uniform(random, 1, 30), 2):g} ms"
    return managed(random, queue, marks=marks)


def pie(random: Random) -> Plain:
    """PIE, with or without ECN marks; both backends drop by the same random numbers."""
    marks = random.random() < 0.5
    queue: Plain = {"kind": "pie", "ecn": marks, "bytemode": random.random() < 0.2}
    if random.random() < 0.3:
        queue["limit"] = f"{round(log_uniform(random, 5, 200))} packets"
    if random.random() < 0.5:
        queue["target"] = f"{rounded(log_uniform(random, 3, 60), 2):g} ms"
    return managed(random, queue, marks=marks)


def fq_pie(random: Random) -> Plain:
    """FQ-PIE, sometimes with so few queues that flows share one."""
    marks = random.random() < 0.5
    queue: Plain = {"kind": "fq-pie", "ecn": marks}
    if random.random() < 0.3:
        queue["flows"] = random.randint(1, 4)
    if random.random() < 0.3:
        queue["limit"] = f"{round(log_uniform(random, 5, 200))} packets"
    if random.random() < 0.5:
        queue["target"] = f"{rounded(log_uniform(random, 3, 60), 2):g} ms"
    return managed(random, queue, marks=marks)


def sfq(random: Random) -> Plain:
    """SFQ, sometimes with a low limit, or with fewer buckets than flows."""
    queue: Plain = {"kind": "sfq"}
    if random.random() < 0.5:
        queue["limit"] = f"{round(log_uniform(random, 5, 200))} packets"
    if random.random() < 0.3:
        queue["depth"] = round(log_uniform(random, 2, 127))
    if random.random() < 0.2:
        queue["flows"] = random.randint(1, 4)
    if random.random() < 0.3:
        queue["quantum"] = round(log_uniform(random, 256, 20_000))
    return managed(random, queue, marks=False)


def fq(random: Random) -> Plain:
    """FQ, which does not pace on a router, sometimes with a low limit per flow."""
    queue: Plain = {"kind": "fq"}
    if random.random() < 0.5:
        queue["flow_limit"] = round(log_uniform(random, 5, 200))
    if random.random() < 0.3:
        queue["limit"] = f"{round(log_uniform(random, 5, 200))} packets"
    if random.random() < 0.3:
        queue["quantum"] = round(log_uniform(random, 256, 20_000))
    return managed(random, queue, marks=False)


def tbf(random: Random) -> Plain:
    """A token bucket that is slower than the link, or faster and without effect."""
    rate = rounded(log_uniform(random, RATE_MBIT_S[0] / 2, RATE_MBIT_S[1]))
    burst = round(log_uniform(random, 1500, 200_000))
    time = rounded(log_uniform(random, 5, 500))
    queue = {"kind": "tbf", "rate": f"{rate:g} Mbit/s", "burst": f"{burst} B"}
    return managed(random, queue | {"limit": f"{time:g} ms"}, marks=False)


def peak_rate(random: Random) -> Plain:
    """A token bucket whose peak rate is above its token rate and below the link's rate."""
    rate = rounded(log_uniform(random, RATE_MBIT_S[0] / 2, RATE_MBIT_S[1]))
    burst = round(log_uniform(random, 3000, 200_000))
    time = rounded(log_uniform(random, 5, 500))
    peak = rounded(rate * log_uniform(random, 1.1, 10))
    queue = {"kind": "tbf", "rate": f"{rate:g} Mbit/s", "burst": f"{burst} B"}
    queue |= {"peakrate": f"{peak:g} Mbit/s", "limit": f"{time:g} ms"}
    if random.random() < 0.5:
        queue["mtu"] = f"{round(log_uniform(random, 1500, 20_000))} B"
    return managed(random, queue, marks=False)


def drop_head(random: Random) -> Plain:
    """A queue that drops its oldest packets."""
    bdps = rounded(log_uniform(random, 0.1, 3))
    return managed(random, {"kind": "drophead", "limit": f"{bdps:g} BDP"}, marks=False)


def path_mtu(random: Random) -> Plain:
    """One or two flows over a bottleneck with a smaller MTU."""
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
"""The directions in which packets have jitter."""


def jitter(random: Random) -> Plain:
    """One to three flows with jitter on data, ACKs or both.

    The jitter ranges from a tenth of a packet's transmission time to the RTT. On a single link
    between two hosts packets arrive in bunches; a link behind the one with jitter spreads them
    again.
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


ISOLATIONS = (
    *("flowblind", "srchost", "dsthost", "hosts", "flows"),
    *("dual-srchost", "dual-dsthost", "triple-isolate"),
)
TINS = ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8")


def cake(random: Random) -> Plain:
    """CAKE, sometimes with a shaper, little memory, or a slow way back with ACK filtering."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 5)
    queue: Plain = {"kind": "cake"}
    if random.random() < 0.6:
        queue["isolation"] = random.choice(ISOLATIONS)
    if random.random() < 0.4:
        queue["tins"] = random.choice(TINS)
    if random.random() < 0.4:
        queue["rtt"] = f"{rounded(log_uniform(random, 0.1, 1000), 3):g} ms"
    if random.random() < 0.3:
        queue["limit"] = f"{round(log_uniform(random, 8, 400))} kB"
    if random.random() < 0.4:
        queue["rate"] = f"{rounded(path.rate_mbit_s * random.uniform(0.3, 0.98)):g} Mbit/s"
        queue["framing"] = random.choice(("none", "atm", "ptm"))
        queue["overhead"] = random.choice((0, 8, 18, 38, 44))
        queue["mpu"] = random.choice((0, 64, 84))
        queue["ingress"] = random.random() < 0.4
    settings = {**path.settings(), "queue": queue}
    if random.random() < 0.4:
        slow = rounded(path.rate_mbit_s * log_uniform(random, 0.01, 0.1))
        back = {"kind": "cake", "ack_filter": random.choice(("off", "on", "aggressive"))}
        settings["back"] = {"rate": f"{slow:g} Mbit/s", "queue": back}
    flows = long_flows(random, path, number)
    for flow in flows[1:]:
        if random.random() < 0.4:
            flow["from"] = "left1"
        if random.random() < 0.4:
            flow["to"] = "right1"
    stack = {"ecn": True} if random.random() < 0.4 else {}
    return path.experiment({"dumbbell": {"pairs": number, **settings}}, flows, stack)


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
    "red": red,
    "fq-codel": fq_codel,
    "pie": pie,
    "fq-pie": fq_pie,
    "sfq": sfq,
    "fq": fq,
    "tbf": tbf,
    "drop-head": drop_head,
    "cake": cake,
    "peak rate": peak_rate,
}
"""All kinds in equal shares: experiment n is of kind n modulo the number of kinds."""


def amount(random: Random, path: Bottleneck, parts: float) -> int:
    """The size of a transfer in bytes, of which the path carries `parts` during an experiment."""
    carried = path.rate_mbit_s * 1e6 / 8 * path.duration_s
    return round(log_uniform(random, 100, max(min(1e6, carried / parts), 200)))


def milliseconds(random: Random, most: float) -> str:
    """A time, sometimes zero; every other one in whole milliseconds."""
    if random.random() < 0.25:
        return "0 ms"
    drawn = log_uniform(random, 0.5, most)
    return f"{max(round(drawn), 1)} ms" if random.random() < 0.5 else f"{drawn:.3f} ms"


def web(random: Random, path: Bottleneck) -> Plain:
    """Pages whose objects use one to six connections, at once or one after another."""
    number = random.randint(2, 20)
    traffic: Plain = {
        "kind": "web",
        "sizes": [f"{amount(random, path, number)} B" for _ in range(number)],
        "connections": random.randint(1, 6),
        "persistent": random.random() < 0.6,
    }
    if random.random() < 0.25:
        traffic["order"] = "sequential"
    if random.random() < 0.5:
        traffic["server_time"] = milliseconds(random, 300)
    if random.random() < 0.3:
        traffic["request"] = f"{round(log_uniform(random, 50, 5000))} B"
    return traffic


def sizes(random: Random, path: Bottleneck, parts: float) -> Any:
    """One size for all transfers, or a distribution of sizes."""
    most = f"{amount(random, path, parts / 10)} B"
    middle = amount(random, path, parts)
    kinds: list[Any] = [
        f"{middle} B",
        {
            "kind": "zipf",
            "exponent": rounded(random.uniform(1.2, 2.5)),
            "unit": "100 B",
            "max": most,
        },
        {
            "kind": "pareto",
            "shape": rounded(random.uniform(1.1, 2.5)),
            "min": f"{middle} B",
            "max": f"{20 * middle} B",
        },
        {"kind": "lognormal", "median": f"{middle} B", "sigma": rounded(random.uniform(0.2, 2))},
        {"kind": "empirical", "sizes": [f"{amount(random, path, parts)} B" for _ in range(4)]},
    ]
    return random.choice(kinds)


def arrivals(random: Random, path: Bottleneck) -> Plain:
    """Transfers that begin at random, at fixed intervals, by offered load, or one after another."""
    number = round(log_uniform(random, 4, 60))
    traffic: Plain = {"kind": "arrivals", "sizes": sizes(random, path, number)}
    gap_s = path.duration_s / number
    kind = random.randint(1, 4)
    if kind == 1:
        traffic["per_second"] = rounded(1 / gap_s)
    elif kind == 2:
        traffic["every"] = f"{1e3 * gap_s:.3f} ms"
    elif kind == 3:
        traffic["load"] = rounded(random.uniform(0.05, 0.9), 2)
    else:
        traffic["users"] = random.randint(1, 4)
        traffic["think"] = milliseconds(random, 1e3 * gap_s + 1)
    if kind > 2 or random.random() < 0.3:
        traffic["transfers"] = number
    return traffic


def requests(random: Random, path: Bottleneck) -> Plain:
    """Requests and answers over one connection."""
    number = random.randint(2, 30)
    traffic: Plain = {"kind": "requests", "response": f"{amount(random, path, number)} B"}
    if random.random() < 0.8:
        traffic["think"] = milliseconds(random, 2000)
    if random.random() < 0.5:
        traffic["server_time"] = milliseconds(random, 300)
    if random.random() < 0.3:
        traffic["request"] = f"{round(log_uniform(random, 50, 5000))} B"
    if random.random() < 0.7:
        traffic["requests"] = number
    return traffic


def udp(random: Random, path: Bottleneck) -> Plain:
    """Datagrams at a rate or an interval, permanently or intermittently, some fragmented."""
    payload = random.choice((100, 500, 1000, 1472, 1473, 5000, random.randint(20, 9000)))
    bits = rounded(path.rate_mbit_s * 1e6 * log_uniform(random, 0.05, 1.3))
    bits = min(bits, 2e4 * 8 * payload / path.duration_s)
    traffic: Plain = {"kind": "udp", "payload": f"{payload} B"}
    if random.random() < 0.7:
        traffic["rate"] = f"{round(bits)} bit/s"
    else:
        traffic["interval"] = f"{round(8e9 * payload / bits)} ns"
    if random.random() < 0.5:
        traffic["gaps"] = "poisson"
    when = random.random()
    if when < 0.25:
        on, off = (log_uniform(random, 0.05, path.duration_s / 3) for _ in range(2))
        traffic |= {"on": f"{on:.3f} s", "off": f"{off:.3f} s"}
    elif when < 0.4:
        times = sorted(random.uniform(0, path.duration_s) for _ in range(4))
        texts = [f"{time:.3f} s" for time in times]
        traffic["periods"] = [texts[:2], texts[2:]]
    if random.random() < 0.4:
        traffic["packets"] = round(log_uniform(random, 10, 5000))
    return traffic


def writes(random: Random, path: Bottleneck) -> Plain:
    """Data handed over in writes of a given size."""
    write = random.choice((512, 1000, 1460, 3000, 4096, 65536, random.randint(200, 20_000)))
    size = amount(random, path, 1)
    return {"kind": "bulk", "size": f"{size} B", "write": f"{write} B"}


def applied(traffic: Callable[[Random, Bottleneck], Plain]) -> Callable[[Random], Plain]:
    """One to three flows of an application, sometimes with a long flow in the same or the opposite
    direction.
    """

    def make(random: Random) -> Plain:
        path = Bottleneck.draw(random)
        number = random.choice((1, 1, 2, 3))
        one_host = random.random() < 0.3
        pairs = 2 if one_host else number + 1
        flows = []
        for place in range(1, number + 1):
            pair = 1 if one_host else place
            flow: Plain = {"from": f"left{pair}", "to": f"right{pair}"}
            flow["start"] = start(random, path)
            flow["traffic"] = traffic(random, path)
            if flow["traffic"]["kind"] != "udp":
                flow["cc"] = random.choice(ALGORITHMS)
            flows.append(flow)
        if random.random() < 0.5:
            ends = [f"left{pairs}", f"right{pairs}"]
            if random.random() < 0.3:
                ends.reverse()
            beside = {"from": ends[0], "to": ends[1], "start": start(random, path)}
            flows.append(beside | {"cc": random.choice(ALGORITHMS)})
        network = {"dumbbell": {"pairs": pairs, **path.settings()}}
        if random.random() < 0.3:
            hops = random.randint(1, 2)
            for flow in flows:
                way = flow["from"].startswith("left")
                flow["from"], flow["to"] = ("client", "server") if way else ("server", "client")
            settings = path.settings() | {"delay": f"{path.rtt_ms / 2 / hops:.6g} ms"}
            network = {"chain": {"hops": hops, **settings}}
        seeded = {"seed": random.randint(0, 10**6)}
        quiet = {"record": {"samples": "off", "links": "off"}}
        return path.experiment(network, flows) | seeded | quiet

    return make


FAR_RTT_MS = (300.0, 1200.0)
"""Round-trip times over satellites, in ms."""
LEAST_SHORT_QUEUE = 2


def crowd(random: Random, path: Bottleneck) -> Plain:
    """Many concurrent connections: a page with up to 40, or as many users, who may pause."""
    number = random.randint(10, 40)
    if random.random() < 0.5:
        sizes = [f"{amount(random, path, number)} B" for _ in range(random.randint(number, 60))]
        persistent = random.random() < 0.5
        return {"kind": "web", "sizes": sizes, "connections": number, "persistent": persistent}
    transfers = random.randint(number, 120)
    size = amount(random, path, transfers)
    think = milliseconds(random, 500)
    users = {"users": number, "think": think, "transfers": transfers}
    return {"kind": "arrivals", "sizes": f"{size} B", **users}


def large(random: Random, path: Bottleneck) -> Plain:
    """A few answers that keep the path busy for seconds, without think time between them."""
    carried = path.rate_mbit_s * 1e6 / 8 * path.duration_s
    response = round(log_uniform(random, 1e5, max(carried / 3, 2e5)))
    return {"kind": "requests", "response": f"{response} B", "requests": random.randint(2, 6)}


def discipline(random: Random, path: Bottleneck, stack: Plain) -> Any:
    """A queue: as drawn, of a few packets, CoDel, or RED, with marks in every other experiment."""
    when = random.random()
    if when < 0.4:
        return f"{path.queue_packets} packets"
    if when < 0.6:
        return f"{random.randint(LEAST_SHORT_QUEUE, LEAST_QUEUE_PACKETS)} packets"
    marks = random.random() < 0.5
    if marks:
        stack["ecn"] = True
    if when < 0.85:
        target = f"{rounded(log_uniform(random, 1, 30), 2):g} ms"
        return {"kind": "codel", "ecn": marks, "target": target}
    least = random.randint(5, 20)
    most = least * random.randint(2, 4)
    limits = {"min": f"{least} packets", "max": f"{most} packets", "limit": f"{2 * most} packets"}
    return {"kind": "red", **limits, "gentle": False, "ecn": marks}


def mixed(random: Random) -> Plain:
    """Two to five flows of any kind, in both directions, over any kind of path, with options."""
    path = Bottleneck.draw(random)
    if random.random() < 0.2:
        path = replace(path, rtt_ms=rounded(log_uniform(random, *FAR_RTT_MS)), duration_s=30)
    chosen = random.sample(sorted(OPTIONS), random.choice((0, 0, 1, 2)))
    stack = {name: OPTIONS[name](random) for name in chosen}
    settings = path.settings() | {"queue": discipline(random, path, stack)}
    if random.random() < 0.25:
        settings["mtu"] = random.choice((576, 1280, 9000, random.randint(552, 1499)))
    if random.random() < 0.25:
        share = rounded(log_uniform(random, 0.0005, 0.05))
        settings["loss"] = {"kind": "independent", "probability": share}
    hosts = random.randint(1, 3)
    flows: list[Plain] = []
    for place in range(random.randint(2, 5)):
        pair = 1 + place % hosts
        ends = [f"left{pair}", f"right{pair}"]
        if random.random() < 0.3:
            ends.reverse()
        flow: Plain = {"from": ends[0], "to": ends[1], "start": start(random, path)}
        kind = random.choice((web, arrivals, requests, udp, writes, crowd, large, None))
        if kind:
            flow["traffic"] = kind(random, path)
        if kind is not udp:
            flow["cc"] = random.choice(ALGORITHMS)
        flows.append(flow)
    network = {"dumbbell": {"pairs": hosts, **settings}}
    seeded = {"seed": random.randint(0, 10**6)}
    quiet = {"record": {"samples": "off", "links": "off"}}
    return path.experiment(network, flows, stack) | seeded | quiet


APPLICATIONS: dict[str, Callable[[Random], Plain]] = {
    "web": applied(web),
    "arrivals": applied(arrivals),
    "requests": applied(requests),
    "udp": applied(udp),
    "writes": applied(writes),
    "crowd": applied(crowd),
    "mixed": mixed,
}
"""Kinds whose transfers are compared one by one. Each kind numbers its experiments separately."""


def draw(seed: int, number: int, kinds: Kinds = KINDS) -> Case:
    """The experiment of this number. Seed and number determine it on any machine."""
    kind = list(kinds)[number % len(kinds)]
    random = Random(f"{seed}/{number}" if kinds is KINDS else f"{kind} {seed}/{number}")
    measuring = Random(f"measure {kind} {seed}/{number}")
    return Case(kind, number, kinds[kind](random) | measure(measuring))


def with_cc(plain: Plain, cc: str | None) -> Plain:
    """An experiment with this congestion control for all flows; without one, unchanged."""
    if cc is None:
        return plain
    flows = [flow | {"cc": cc} if "cc" in flow else flow for flow in plain["flows"]]
    return plain | {"flows": flows}


def measure(random: Random) -> Plain:
    """For every other experiment, a measuring window, intervals, or both.

    They change nothing else, and have a random generator of their own.
    """
    measured: Plain = {}
    if random.random() < 0.5:
        return measured
    if random.random() < 0.7:
        # No experiment is shorter than 3 s.
        edges = sorted(random.uniform(0, 3) for _ in range(2))
        names = random.choice([["from"], ["to"], ["from", "to"]])
        measured["measure"] = {name: f"{edges[name == 'to']:.9f} s" for name in names}
    if not measured or random.random() < 0.7:
        measured["every"] = f"{log_uniform(random, 0.01, 5):.6f} s"
    return measured
