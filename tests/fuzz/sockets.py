"""Random experiments with socket options of programs and options of hosts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fuzz.draw import ALGORITHMS, OPTIONS, Bottleneck, Plain, log_uniform, long_flows, rounded

CALLS = {"so_rcvbuf": "rmem_max", "so_sndbuf": "wmem_max"}
"""The socket options of programs, and the sysctls that limit them."""


def size(random: Random) -> str:
    """A size from two segments to more than any path here needs."""
    return f"{round(log_uniform(random, 3e3, 4e6))} B"


def buffers(random: Random) -> Plain:
    """One or two flows with buffers set by programs."""
    path = Bottleneck.draw(random)
    number = random.randint(1, 2)
    stack: Plain = {}
    for call in random.sample(sorted(CALLS), random.randint(1, 2)):
        stack[call] = size(random)
        if random.random() < 0.7:
            stack[CALLS[call]] = "8 MB" if random.random() < 0.7 else "100 kB"
    network = {"dumbbell": {"pairs": number, **path.settings()}}
    return path.experiment(network, long_flows(random, path, number), stack)


def stacks(random: Random) -> Plain:
    """Two to four flows between two hosts, each with one to three options of its own."""
    path = Bottleneck.draw(random)
    flows = long_flows(random, path, random.randint(2, 4))
    # These options apply to all flows of the machine.
    known = sorted(set(OPTIONS) - {"hystart"})
    for flow in flows:
        flow["from"], flow["to"] = "client", "server"
        chosen = random.sample(known, random.randint(1, 3))
        flow["stack"] = {name: OPTIONS[name](random) for name in chosen}
        if random.random() < 0.3:
            flow["stack"]["so_rcvbuf"] = size(random)
    settings = path.settings() | {"delay": f"{path.rtt_ms / 2:.6g} ms"}
    return path.experiment({"chain": {"hops": 1, **settings}}, flows)


def calls(random: Random) -> Plain:
    """One to three flows between two hosts with limits on rate, windows or unsent data."""
    path = Bottleneck.draw(random)
    flows = long_flows(random, path, random.randint(1, 3), (*ALGORITHMS, "bbr"))
    bdp = path.rate_mbit_s * path.rtt_ms * 125
    drawn: dict[str, Callable[[], object]] = {
        "max_pacing_rate": lambda: (
            f"{rounded(path.rate_mbit_s * log_uniform(random, 0.02, 1.5)):g} Mbit/s"
        ),
        "window_clamp": lambda: f"{max(round(bdp * log_uniform(random, 0.05, 4)), 3000)} B",
        "initial_receive_window": lambda: random.choice((2, 4, 10, 20, 40)),
        "notsent_lowat": lambda: f"{round(log_uniform(random, 1e3, 3e5))} B",
    }
    for flow in flows:
        flow["from"], flow["to"] = "client", "server"
        chosen = random.sample(sorted(drawn), random.randint(1, 2))
        flow["stack"] = {name: drawn[name]() for name in chosen}
    settings = path.settings() | {"delay": f"{path.rtt_ms / 2:.6g} ms"}
    return path.experiment({"chain": {"hops": 1, **settings}}, flows)


SOCKETS: dict[str, Callable[[Random], Plain]] = {
    "buffers": buffers,
    "stacks": stacks,
    "calls": calls,
}
"""Kinds of socket features. Each kind numbers its experiments separately."""
