"""Limits for goals: numbers of a run that advised settings must keep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcplab._advice import goals
from tcplab._advice.goals import Goal
from tcplab._core import ConfigError
from tcplab._experiment.quantities import number_of, numbers

KINDS = {"Mbit/s": ("mbit_s", 1.0), "s": ("ms", 1000.0), "ms": ("ms", 1.0), "%": ("share", 0.01)}
"""By the unit of a goal, the kind of its quantities, and the unit in that of the kind."""


MOST = {"%": 100.0, "": 1.0}
"""By the unit of a goal, the most that its number can be: Jain's index is at most 1."""


@dataclass(frozen=True)
class Limit:
    """A limit for a goal, in the goal's unit."""

    text: str
    goal: Goal
    is_most: bool
    """Whether the value is the most that is allowed; otherwise it is the least."""
    value: float

    def is_broken_by(self, number: float) -> bool:
        """Whether a number is beyond the limit."""
        return number > self.value if self.is_most else number < self.value

    def beyond(self, number: float) -> float:
        """How far a number is beyond the limit; below zero where it keeps it."""
        return number - self.value if self.is_most else self.value - number


def read(texts: Sequence[str], flows: Sequence[Mapping[str, Any]]) -> list[Limit]:
    """Limits as `[advise]` has them.

    Raises:
        ConfigError: A limit is none, or the flows give its goal no number.
    """
    limits = [_read(text, flows) for text in texts]
    for one in limits:
        for other in limits:
            is_pair = one.goal == other.goal and one.is_most and not other.is_most
            if is_pair and one.value < other.value:
                raise ConfigError(f"limits: {one.text!r} and {other.text!r} exclude each other")
    return limits


def check(
    limits: Sequence[Limit], flows: Sequence[Mapping[str, Any]], lanes: Sequence[Mapping[str, Any]]
) -> None:
    """Limits that no setting can keep are refused, on links that do not change.

    Raises:
        ConfigError: A latency below the round trip, or a goodput above the rate.
    """
    if any(lane.get("rate_changes") or lane.get("delay_changes") for lane in lanes):
        return
    trips = [number_of(flow.get("base_rtt"), "ms") or 0.0 for flow in flows]
    slowest = {flow.get("bottleneck") for flow in flows}
    for limit in limits:
        if limit.goal.name == "latency" and limit.is_most and goals.are_of_tcp(flows):
            least = sum(trips) / len(trips)
            if limit.value < least:
                raise ConfigError(
                    f"limits: {limit.text!r}: cannot be met, since the round trip without "
                    f"queues is {least:g} ms"
                )
        if limit.goal.name == "goodput" and not limit.is_most and len(slowest) == 1:
            number = slowest.pop()
            rate = number_of(lanes[number]["rate"], "mbit_s") if number is not None else None
            if rate and limit.value > rate:
                raise ConfigError(
                    f"limits: {limit.text!r}: cannot be met, since the rate of the "
                    f"bottleneck is {rate:g} Mbit/s"
                )


def _read(text: str, flows: Sequence[Mapping[str, Any]]) -> Limit:
    sign = next((sign for sign in ("<=", ">=") if sign in text), None)
    if sign is None:
        raise ConfigError(
            f"limits: {text!r} is not a goal, <= or >=, and a value, like 'retransmissions <= 3 %'"
        )
    name, value = (part.strip() for part in text.split(sign, 1))
    goal = goals.known(name, flows, "limits")
    kind, unit = KINDS.get(goal.unit, ("number", 1.0))
    found = numbers([value])
    if found is None or found[0] != kind:
        like = f"3 {goal.unit}".rstrip() if goal.unit else "0.9"
        raise ConfigError(f"limits: {text!r}: the value of {name} is one like {like!r}")
    number = float(found[1][0]) / unit
    most = MOST.get(goal.unit, math.inf)
    if not 0 <= number <= most:
        allowed = "0 or more" if most == math.inf else f"from 0 to {most:g}"
        raise ConfigError(
            f"limits: {text!r}: {name} is {allowed}{f' {goal.unit}' if goal.unit else ''}"
        )
    return Limit(f"{name} {sign} {value}", goal, sign == "<=", number)
