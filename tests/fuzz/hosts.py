"""Random experiments with hosts whose devices have queues of their own."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fuzz.draw import Bottleneck, Plain, long_flows

QDISCS = ["fq", "fq-codel", "1000 packets", "sfq", "pie"]


def qdisc(random: Random) -> Plain:
    """One to three flows from a host whose own queue is ahead of the slowest link of the path."""
    path = Bottleneck.draw(random)
    flows = long_flows(random, path, random.randint(1, 3))
    for flow in flows:
        flow["from"], flow["to"] = "client", "server"
    settings = path.settings() | {"delay": f"{path.rtt_ms / 2:.6g} ms"}
    experiment = path.experiment({"chain": {"hops": 1, **settings}}, flows)
    return experiment | {"hosts": {"client": {"qdisc": random.choice(QDISCS)}}}


HOSTS: dict[str, Callable[[Random], Plain]] = {"qdisc": qdisc}
"""Kinds of host features. Each kind numbers its experiments separately."""
