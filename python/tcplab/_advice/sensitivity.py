"""Where the advice flips: what does best over other round trips and losses than the path's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcplab._advice.goals import Goal
from tcplab._advice.levers import TODAY
from tcplab._advice.question import Question, room
from tcplab._experiment.quantities import number_of, numbers

ROUND_TRIPS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Multiples of the path's."""

LOSSES = (0.0, 0.0001, 0.001, 0.01)

SEEDS = 5

RTT, LOSS = "rtt_ms", "loss"

BREAKS = "breaks"
"""Whether a setting breaks a limit there."""

WHOLE, COARSE, CROSS = "whole", "coarse", "cross"
"""How much of the map is drawn: all of it; with three round trips; of these, the path's own losses
at each and its own round trip with each of the losses.
"""


def grid(question: Question, size: str = WHOLE) -> list[dict[str, Any]]:
    """The paths of the map, each as values by key; nothing where the path has ranges already, or
    its round trip or losses cannot be given so.
    """
    lane = question.bottleneck()
    place = lane["place"]
    base = milliseconds(question.mine()[0].get("base_rtt"))
    loss = probability(lane.get("loss"))
    if question.over or not place.startswith("network.") or not base or loss is None:
        return []
    # A queue that may change is as each candidate has it.
    fixed = {} if "queue" in question.settings else _fixed_queue(place, lane)
    losses = sorted({*LOSSES, loss})
    factors = ROUND_TRIPS if size == WHOLE else (0.25, 1.0, 4.0)
    found = []
    for factor in factors:
        delays = _delays(question, place, base, factor * base)
        if delays is None:
            continue
        for one in losses:
            if size == CROSS and factor != 1 and one != loss:
                continue
            found.append({**delays, f"{place}.loss": f"{100 * one:.12g} %", **fixed})
    return found


def labels(question: Question, points: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Of each path of the map, its round trip in milliseconds and its losses."""
    place = question.bottleneck()["place"]
    base = milliseconds(question.mine()[0]["base_rtt"]) or 0.0
    return [
        (_round_trip(question, place, base, point), _share(point[f"{place}.loss"]))
        for point in points
    ]


def own(question: Question) -> tuple[float, float]:
    """The path's own round trip in milliseconds, and its losses."""
    base = milliseconds(question.mine()[0].get("base_rtt")) or 0.0
    return base, probability(question.bottleneck().get("loss")) or 0.0


def _fixed_queue(place: str, lane: Mapping[str, Any]) -> dict[str, Any]:
    """The queue stays as it is where the round trip changes: a router does not know it."""
    if lane["queue"]["discipline"]["kind"] != "droptail":
        return {}
    return {f"{place}.queue": room(lane["queue"])}


def _delays(question: Question, place: str, base: float, rtt: float) -> dict[str, Any] | None:
    """The values that give the path this round trip."""
    section: Any = question.plain
    for key in place.split("."):
        name, _, index = key.partition("[")
        section = section.get(name) or {}
        section = section[int(index[:-1])] if index else section
    given = section.get("rtts")
    if isinstance(given, Sequence) and not isinstance(given, str):
        scaled = [milliseconds(one) for one in given]
        if any(one is None for one in scaled):
            return None
        return {f"{place}.rtts": [f"{one * rtt / base:g} ms" for one in scaled if one is not None]}
    if section.get("rtt") or given:
        return None
    delay = milliseconds(question.bottleneck()["delay"]) or 0.0
    now = delay + (rtt - base) / _ways(place)
    return {f"{place}.delay": f"{now:.6g} ms"} if now >= 0 else None


def _ways(place: str) -> int:
    """How often a round trip crosses a link with the delay of this place."""
    return 1 if place.endswith((".forward", ".back")) else 2


def _round_trip(question: Question, place: str, base: float, point: Mapping[str, Any]) -> float:
    if f"{place}.rtts" in point:
        given = question.plain["network"][place.split(".")[1]]["rtts"]
        first, then = milliseconds(given[0]) or 1.0, milliseconds(point[f"{place}.rtts"][0]) or 1.0
        return base * then / first
    delay = milliseconds(question.bottleneck()["delay"]) or 0.0
    return base + _ways(place) * ((milliseconds(point[f"{place}.delay"]) or 0.0) - delay)


def milliseconds(text: Any) -> float | None:
    """A time in milliseconds."""
    return number_of(text, "ms")


def _share(text: str) -> float:
    """A share as it was written in percent."""
    return float(text.removesuffix(" %")) / 100


def probability(loss: Any) -> float | None:
    """The probability of independent losses; nothing where losses are of another kind."""
    if loss is None:
        return 0.0
    if loss.get("kind", "independent") != "independent" or loss.get("on", "both") != "both":
        return None
    found = numbers([str(loss["probability"])])
    return float(found[1][0]) if found is not None else None


UNTOLD = ""
"""The stand-in for the best of a cell where that cannot be told."""


def best(cells: Sequence[Mapping[str, Any]], goal: Goal) -> list[dict[str, Any]]:
    """Of each cell what does best there: a setting whose whole interval is above zero, and whose
    gain is worth a change; of those that do as well, what comes first. Today's, where no interval
    reaches as far as what is worth a change. Otherwise it cannot be told. What breaks a limit there
    is left out.
    """
    found: dict[tuple[float, float], dict[str, Any]] = {}
    for cell in cells:
        key = (cell[RTT], cell[LOSS])
        now = found.setdefault(
            key, {RTT: key[0], LOSS: key[1], "best": TODAY, "gain": 0.0, "low": None, "high": None}
        )
        if cell[BREAKS]:
            continue
        told = cell["low"] is not None and cell["low"] > 0 and cell["gain"] >= goal.worth
        if told and goal.behind(now["gain"], cell["gain"]) >= 1:
            now |= {
                "best": cell["candidate"], "gain": cell["gain"],
                "low": cell["low"], "high": cell["high"],
            }  # fmt: skip
        elif now["best"] == TODAY and (cell["high"] is None or cell["high"] >= goal.worth):
            now["best"] = UNTOLD
    return list(found.values())
