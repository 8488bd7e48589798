"""Numbers, gains and paths in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcplab._advice import sensitivity
from tcplab._advice.evidence import Gain
from tcplab._advice.goals import Goal
from tcplab._advice.levers import word
from tcplab._advice.question import Question, room
from tcplab._text.english import counted


def sentence(text: str) -> str:
    """A text with a capital letter."""
    return text[:1].upper() + text[1:]


def worth(goal: Goal) -> str:
    return f"{100 * goal.worth if goal.is_ratio else goal.worth:g}{unit_of_gain(goal)}"


def value(given: Any) -> str:
    """A value in a word."""
    return word(given)


def change(goal: Goal, gain: Gain) -> str:
    """`goodput is 186 in place of 62.1 Mbit/s: 200 % more (195 to 205 %)`."""
    unit = f" {goal.unit}" if goal.unit else ""
    limits = f" ({interval(goal, gain)})" if gain.has_interval else ""
    if gain.advised is None or gain.today is None:
        return f"{goal.words}: {more(goal, gain.gain)}{limits}"
    if gain.advised == gain.today:
        return f"{goal.words} stays at {number(gain.today)}{unit}"
    means = f"{number(gain.advised)} in place of {number(gain.today)}{unit}"
    return f"{goal.words} is {means}: {more(goal, gain.gain)}{limits}"


MEANS = "(geometric means, of shares arithmetic ones)"


def over(gain: Gain) -> str:
    """What a gain is the mean of."""
    if gain.of == "paths":
        seeds = counted(gain.seeds, "seed")
        return f"over {counted(gain.n, 'path')} with {seeds} each {MEANS}"
    if gain.is_exact:
        where = f"over all paths {MEANS}" if gain.of == "seeds" else "in one run of each"
        return f"{where}, as nothing is random and {gain.seeds} seeds are all equal"
    if gain.of == "seeds":
        return f"over all paths with {counted(gain.n, 'seed')} each {MEANS}"
    return f"in {counted(gain.n, 'run')}"


def signed(goal: Goal, gain: float) -> float:
    """A gain as what the number itself does, as a share: of times, twice as fast is half less."""
    if not goal.is_ratio:
        return gain if goal.more_is_better else -gain
    return gain if goal.more_is_better else 1 / (1 + gain) - 1


def better(goal: Goal, gain: float) -> float:
    """A gain as sentences tell it, where positive is better: of times, the share that is saved."""
    value = signed(goal, gain)
    return value if goal.more_is_better else -value


def more(goal: Goal, gain: float) -> str:
    value = signed(goal, gain)
    word = "more" if value > 0 else "less"
    if goal.is_ratio:
        return f"{percent(abs(value))} {word}" if value else "the same"
    unit = " points" if goal.unit == "%" else ""
    return f"{number(abs(value))}{unit} {word}" if value else "the same"


def interval(goal: Goal, gain: Gain) -> str:
    """The interval; after "less", of how much less."""
    assert gain.low is not None
    assert gain.high is not None
    return limits_of(goal, gain.gain, (gain.low, gain.high))


def limits_of(goal: Goal, gain: float, limits: tuple[float, float]) -> str:
    """The same of a gain and its limits."""
    ends = [signed(goal, end) for end in limits]
    mean = signed(goal, gain)
    # As the sentence counts: "12 % less (10 to 14 %)".
    ends = sorted(-one for one in ends) if mean < 0 else sorted(ends)
    if goal.is_ratio:
        return f"{percent(ends[0], sign=False)} to {percent(ends[1])}"
    return f"{number(ends[0])} to {number(ends[1])}"


def percent(share: float, *, sign: bool = True) -> str:
    return f"{number(100 * share)}{' %' if sign else ''}"


def number(value: float) -> str:
    """A number with three digits that count."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.6f}".rstrip("0") if "e" in text else text


def loss(share: float) -> str:
    """A share of losses."""
    return f"{100 * share:g} %"


def gain(goal: Goal, value: float | None) -> str:
    """A gain with its sign: positive is better."""
    if value is None:
        return "-"
    value = better(goal, value)
    text = number(abs(100 * value if goal.is_ratio else value))
    sign = "-" if value < 0 and text != "0" else "+" if text != "0" else ""
    return f"{sign}{text}{unit_of_gain(goal)}"


def span_of(goal: Goal, told: Gain) -> str:
    """The interval of a gain, without its unit; of one that is exact, the gain."""
    unit = unit_of_gain(goal)
    if told.is_exact:
        return gain(goal, told.gain).removesuffix(unit)
    return " to ".join(gain(goal, end).removesuffix(unit) for end in (told.low, told.high))


def count(number: int, of: str) -> str:
    """So many runs, paths or seeds."""
    return counted(number, of.removesuffix("s"))


def unit_of_gain(goal: Goal) -> str:
    return " %" if goal.is_ratio else unit_of_difference(goal)


def unit_of_difference(goal: Goal) -> str:
    # Of a percentage, the difference is in points of it.
    return " points" if goal.unit == "%" else f" {goal.unit}" if goal.unit else ""


def share(value: float) -> str:
    """A share in percent."""
    return percent(value)


def path(question: Question) -> str:
    """The bottleneck in a few words."""
    lane, flow = question.bottleneck(), question.mine()[0]
    share = sensitivity.probability(lane.get("loss"))
    losses = "losses as in the file" if share is None else f"losses by chance {loss(share)}"
    first = f"the first of {len(question.points())} paths: " if question.over else ""
    return (
        f"{first}{lane['rate']}, round trip {flow['base_rtt']}, queue {queue(lane['queue'])}, "
        f"{losses}"
    )


def queue(given: Mapping[str, Any]) -> str:
    """A queue of a plan in a few words."""
    kind = given["discipline"]["kind"]
    limit = given.get("limit")
    if not isinstance(limit, Mapping):
        return str(kind)
    packets = limit.get("packets")
    return f"{kind}, {counted(packets, 'packet') if packets is not None else room(given)}"


def span(given: Any) -> str:
    """A range in a few words."""
    if isinstance(given, Mapping) and "kind" in given:
        several = given.get("values")
        return f"drawn from {len(several)} values" if several else f"drawn, {word(given)}"
    if isinstance(given, Mapping):
        return f"from {given['from']} to {given['to']}"
    return ", ".join(map(value, given))
