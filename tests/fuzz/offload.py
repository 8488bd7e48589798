"""Random experiments with receive offload (GRO) on hosts."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from fuzz.draw import (
    ALGORITHMS,
    DRAWING,
    LEAST_QUEUE_PACKETS,
    Bottleneck,
    Plain,
    log_uniform,
    long_flows,
    rounded,
)

RATE_MBIT_S = (20.0, 1000.0)
RTT_MS = (6.0, 60.0)
WAIT_US = (5.0, 500.0)
PACKETS = 60_000
"""The approximate number of full packets that the slowest link carries in an experiment."""
MOST_BYTES = 16_000_000
"""The most bytes of one flow. The kernel's receivers read 2^24 bytes per call, and the packet in
which a call ends keeps all of its memory; the receivers of `sim` read everything there is.
"""


def gro(random: Random) -> Plain:
    """One to three flows to a host that receives several packets at once, sometimes with losses."""
    rate = rounded(log_uniform(random, *RATE_MBIT_S))
    rtt = rounded(log_uniform(random, *RTT_MS))
    most = max(2.5 * rate * rtt / 12, LEAST_QUEUE_PACKETS + 1)
    queue = round(log_uniform(random, LEAST_QUEUE_PACKETS, most))
    duration = min(max(PACKETS * 0.012 / rate, 3), 20)
    path = Bottleneck(rate, rtt, queue, math.ceil(duration))
    flows = long_flows(random, path, random.randint(1, 3), [*ALGORITHMS, *DRAWING])
    for flow in flows:
        flow["from"], flow["to"] = "client", "server"
        flow["traffic"] = {"kind": "bulk", "size": f"{MOST_BYTES} B"}
    hops = random.randint(1, 2)
    settings = path.settings() | {"delay": f"{rtt / 2 / hops:.6g} ms"}
    if random.random() < 0.4:
        share = rounded(log_uniform(random, 1e-4, 1e-2))
        settings["loss"] = {"kind": "independent", "probability": share}
    experiment = path.experiment({"chain": {"hops": hops, **settings}}, flows)
    waits = {"server": f"{log_uniform(random, *WAIT_US):.3f} us"}
    if random.random() < 0.3:
        waits["client"] = f"{log_uniform(random, *WAIT_US):.3f} us"
    return experiment | {"hosts": {host: {"gro": wait} for host, wait in waits.items()}}


OFFLOAD: dict[str, Callable[[Random], Plain]] = {"gro": gro}
"""Kinds of device features. Each kind numbers its experiments separately."""
