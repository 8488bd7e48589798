"""How long a window takes from one loss to the next, where that is arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tcplab._experiment import plan_text
from tcplab._experiment.quantities import quantity

KEPT = {"newreno": 0.5, "cubic": 0.7}
"""The share of the window that is left after a loss: RFC 5681, and RFC 9438 §4.6."""

CUBIC_C = 0.4
"""Segments per second cubed, of CUBIC's growth (RFC 9438 §5.1)."""

LEAST_SHARE = 0.5
"""The least share of the receive buffer that is advertised as window."""

Plan = dict[str, Any]


def cycles(plan: Plan) -> Iterator[tuple[str, float]]:
    """The flows whose window only a full queue limits, each with the seconds from one loss to the
    next: bulk flows without a size through a drop-tail queue, with equal shares and without random
    loss.
    """
    flows = [flow for flow in plan["flows"] if _is_endless(plan, flow)]
    number = Counter(flow["bottleneck"] for flow in flows)
    for flow in flows:
        lane = plan["lanes"][flow["bottleneck"]]
        rate, mtu = plan_text.bits(lane["rate"]) / 8, lane["mtu"]
        limit = lane["queue"]["limit"]
        queue = limit["packets"] * mtu if "packets" in limit else limit["bytes"]
        base_s = _amount(flow["base_rtt"]) / 1000
        full_s = base_s + queue / rate
        window = rate * full_s / number[flow["bottleneck"]]
        stack = flow["transport"]["stack"]
        room = min(_amount(flow["transport"]["peer_stack"]["rmem"]), _amount(stack["wmem"]))
        if window > LEAST_SHARE * room:
            continue
        cc, segments = stack["cc"]["name"], window / mtu
        kept = KEPT[cc]
        rtt_s = (max(base_s, kept * full_s) + full_s) / 2
        if cc == "newreno":
            # One segment for each round trip.
            yield flow["name"], (1 - kept) * segments * rtt_s
        else:
            # The window of NewReno's growth (RFC 9438 §4.3), or the cubic one where that is faster.
            slow = 3 * (1 - kept) / (1 + kept)
            k = ((1 - kept) * segments / CUBIC_C) ** (1 / 3)
            yield flow["name"], min(k, (1 - kept) * segments / slow * rtt_s)


def _is_endless(plan: Plan, flow: Plan) -> bool:
    transport, traffic = flow["transport"], flow["traffic"]
    lanes = [plan["lanes"][number] for number in flow["forward"]]
    return (
        transport["kind"] == "tcp"
        and transport["stack"]["cc"]["name"] in KEPT
        and not transport["stack"]["cc"]["params"]
        and traffic["kind"] == "bulk"
        and traffic["size"] is None
        and plan["lanes"][flow["bottleneck"]]["queue"]["discipline"]["kind"] == "droptail"
        and all(lane["loss"] is None and lane["rate_changes"] is None for lane in lanes)
    )


def _amount(text: str) -> float:
    """Milliseconds of a time, bytes of a size."""
    read = quantity(text)
    return float("inf") if read is None else float(read[1])
