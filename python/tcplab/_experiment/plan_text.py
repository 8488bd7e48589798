"""Describes the links and flows of a plan in a few words each."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tcplab._experiment.values import FINEST

SHOWN = 3
"""The number of lost packets that are listed before the rest is cut."""


def lane(lane: dict[str, Any]) -> tuple[str, str, str, str]:
    """Rate, delay, queue and loss of one direction of a link."""
    held = lane["queue"]["discipline"].get("rate")
    is_held = held is not None and bits(held) < bits(lane["rate"])
    rate = f"{held} of {lane['rate']}" if is_held else lane["rate"]
    if lane["lan"]:
        rate += " shared"
    return rate, up_to(lane["delay"], lane["jitter"]), _queue(lane), _loss(lane)


def bits(rate: str) -> int:
    """A rate in bits per second: 9500000 for "9.5 Mbit/s"."""
    number, unit = rate.split()
    return int(Decimal(number).scaleb(FINEST[unit]))


def up_to(time: str, jitter: Any) -> str:
    """A time with its jitter: the largest random addition, or the distribution of it."""
    if isinstance(jitter, dict):
        return f"{time} + {jitter['kind']} jitter"
    return time if jitter == "0 ms" else f"{time} + up to {jitter}"


def _queue(lane: dict[str, Any]) -> str:
    queue = lane["queue"]
    if "packets" in queue["limit"]:
        size = f"{queue['limit']['packets']} packets"
    else:
        held = queue["limit"]["bytes"]
        size = f"{held} B ({held // lane['mtu']} packets)"
    return f"{size}, {queue['discipline']['kind']}"


def _loss(lane: dict[str, Any]) -> str:
    loss = lane["loss"]
    if loss is None:
        return "none"
    if loss["kind"] == "independent":
        return _share(loss["probability"])
    if loss["kind"] == "listed":
        packets = loss["packets"]
        few = ", ".join(map(str, packets[:SHOWN]))
        return f"packets {few}" + (", ..." if len(packets) > SHOWN else "")
    return str(loss["kind"])


def besides(lane: dict[str, Any]) -> str:
    """Everything else that happens on one direction of a link; empty if nothing does."""
    said = [
        _changes("rate", lane["rate_changes"]),
        "light load" if lane.get("light") else "",
        _changes("delay", lane.get("delay_changes")),
        _outages(lane.get("outages")),
        "contention" if lane.get("contention") else "",
    ]
    if reordering := lane["reordering"]:
        said.append(f"{_share(reordering['probability'])} reordered")
    for key, what in (("corruption", "corrupted"), ("duplication", "duplicated")):
        if probability := lane.get(key):
            said.append(f"{_share(probability)} {what}")
    return ", ".join(filter(None, said))


def _share(probability: float) -> str:
    return f"{probability * 100:g} %"


def _changes(what: str, changes: Any) -> str:
    if not changes:
        return ""
    if isinstance(changes, list):
        return _number(len(changes), f"{what} change")
    if "opportunities" in changes:
        return f"trace of {changes['opportunities'][-1][0]} ms"
    return f"{what} {changes['kind']}"


def _outages(outages: Any) -> str:
    if not outages:
        return ""
    if isinstance(outages, list):
        return _number(len(outages), "outage")
    if outages["kind"] == "periodic":
        return f"outages of {outages['lasts']} every {outages['every']}"
    return f"{outages['kind']} outages"


def _number(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def traffic(traffic: dict[str, Any]) -> str:
    """The traffic of a flow."""
    if traffic["kind"] == "bulk" and traffic["size"]:
        return f"bulk, {traffic['size']}"
    if traffic["kind"] == "on-off":
        return f"on-off, {_number(len(traffic['periods']), 'period')}"
    if offered := traffic.get("offered"):
        return f"{traffic['kind']}, {offered * 100:.3g} % load"
    return str(traffic["kind"])


def transport(transport: dict[str, Any]) -> str:
    """The congestion control of a TCP flow, or the name of another transport."""
    return str(transport["stack"]["cc"]["name"] if "stack" in transport else transport["kind"])
