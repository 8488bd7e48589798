"""Advice in sentences: each has its number, and each number its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from tcplab._advice import sensitivity
from tcplab._advice.advice import (
    BESIDE,
    NOTHING,
    STOPPED,
    UNCONFIRMED,
    UNDECIDED,
    Advice,
    has_flow_beside,
)
from tcplab._advice.evidence import DELAY_BESIDE, Gain
from tcplab._advice.goals import GOALS, Goal
from tcplab._advice.levers import TODAY, Candidate
from tcplab._advice.limit_checks import BROKEN, EXCEEDED, KEPT, LimitCheck
from tcplab._advice.limits import Limit
from tcplab._advice.phrases import (
    change,
    count,
    gain,
    interval,
    limits_of,
    loss,
    more,
    number,
    over,
    percent,
    sentence,
    span_of,
    unit_of_difference,
    unit_of_gain,
    value,
    worth,
)
from tcplab._text.english import counted
from tcplab.capture import WAITS

APART = 3
"""Fewer percent of the time than this explain no gain."""

DEAR = 5
"""A loss in another goal of so many times what is worth a change is told with the gain."""

HARMFUL = 0.05
"""So is this share of the goodput of others."""

FEW_BARRED = 3
"""So many of the settings that a limit keeps out are named, those with the largest gains."""


def sentences(advice: Advice) -> list[str]:
    """All sentences of the advice, the answer first."""
    return [
        *answer(advice),
        *limits(advice),
        *cost(advice),
        *why(advice),
        *flips(advice),
        *alone(advice),
        *left_out(advice),
    ]


def answer(advice: Advice) -> list[str]:
    """The change, its gain, and the kernel's confirmation."""
    goal, gain = advice.question.goal, advice.gain()
    if advice.verdict in (NOTHING, UNDECIDED):
        if advice.is_cut_short():
            return [_cut_short(advice)]
        return [_nothing(advice), *_unfinished(advice)]
    if advice.log.needs_s is not None:
        return [
            "Nothing can be told within the budget: a search that tells anything takes about "
            f"{_time(advice.log.needs_s)} here. Give a larger `--budget`, or a shorter `duration`."
        ]
    if gain is None:
        return [
            "The search was stopped before anything was examined with fresh seeds: there is "
            "nothing to vouch for yet. The same command goes on from here."
        ]
    told = change(goal, gain)
    if mended := [_mended(advice, one) for one in advice.breaches()]:
        told = f"{'; '.join(mended)}. {sentence(told)}"
    if price := _price(advice):
        told += f", at a price: {'; '.join(price)}"
    found = [
        f"{_imperative(advice.candidate)}: {told}. The gain is measured on sim, {over(gain)}"
        f"{_fresh(advice, gain)}.",
        *_preference(advice),
    ]
    on_kernel = advice.gain(backend="linux")
    if on_kernel is not None and on_kernel.low is None:
        few = f"{counted(on_kernel.n, 'run')} {'is' if on_kernel.n == 1 else 'are'} too few"
        found.append(f"The kernel's runs are not finished: {few} to confirm it.")
    elif on_kernel is not None:
        kernel = advice.log.backend or "linux"
        words = f"{change(goal, on_kernel)}, {over(on_kernel)}"
        if advice.verdict == UNCONFIRMED:
            broken = [one for one in advice.broken("linux") if one.candidate == on_kernel.candidate]
            why = (
                f"by the kernel's runs it breaks the limit `{broken[0].limit}`"
                if broken
                else f"the kernel does not confirm what sim says ({words})"
            )
            found.insert(0, f"Change nothing yet: {why}.")
            found[1] = f"What sim says: {found[1]}"
        else:
            found.append(f"On the kernel ({kernel}): {words}.")
    found += _unfinished(advice)
    if gain.worst_point and advice.question.over:
        paths = len(advice.question.fresh())
        found.append(
            f"Of the {paths} paths, {gain.worst_point} gains least: there {goal.words} is "
            f"{_than_today(goal, gain.worst)}{_limits_at(advice, gain.worst_point)}."
        )
    return found


def _fresh(advice: Advice, gain: Gain) -> str:
    """What of the evidence the search did not use."""
    question = advice.question
    fresh = [] if gain.is_exact else ["seeds"]
    if question.fresh() != question.points():
        fresh.insert(0, "paths")
    return f", by {' and '.join(fresh)} that the search did not use" if fresh else ""


def _mended(advice: Advice, broken: LimitCheck) -> str:
    """The number with the change and today, and the limit that only the first keeps."""
    own = next(
        one
        for one in advice.limits
        if (one.limit, one.candidate, one.backend)
        == (broken.limit, advice.candidate.name, broken.backend)
    )
    goal = _limit(advice, broken).goal
    return (
        f"{goal.words} is {_value_of(own, goal)} in place of {_value_of(broken, goal)}, which "
        f"keeps the limit `{broken.limit}` that today's setting breaks"
    )


def _limit(advice: Advice, kept: LimitCheck) -> Limit:
    return next(one for one in advice.question.limits if one.text == kept.limit)


def _dear(advice: Advice) -> list[Goal]:
    """The other goals in which what is advised surely and clearly loses."""
    return [
        goal
        for goal in advice.question.goals[1:]
        if (gain := advice.gain(goal.name)) is not None and _is_dear(goal, gain)
    ]


def _is_dear(goal: Goal, gain: Gain) -> bool:
    loss = -math.log1p(gain.gain) if goal.is_ratio else -gain.gain
    return gain.high is not None and gain.high < 0 and loss >= DEAR * goal.worth


def _price(advice: Advice) -> list[str]:
    """What is surely and clearly lost by the change, in other goals and by others."""
    found = [
        change(goal, gain) for goal in _dear(advice) if (gain := advice.gain(goal.name)) is not None
    ]
    if (harm := advice.harm) and _is_harmful(harm):
        ends = f"{percent(harm['low'], sign=False)} to {percent(harm['high'])}"
        found.append(
            f"a flow of CUBIC beside it loses {percent(harm['harm'])} ({ends}) of its goodput"
        )
    if (delay := advice.delay_beside()) is not None and _is_dear(DELAY_BESIDE, delay):
        found.append(change(DELAY_BESIDE, delay))
    return found


def _is_harmful(harm: Mapping[str, Any]) -> bool:
    return harm["low"] is not None and harm["low"] > 0 and bool(harm["harm"] >= HARMFUL)


def _preference(advice: Advice) -> list[str]:
    """Why another setting, which gains more, is not advised."""
    told = advice.preference
    if told is None:
        return []
    goal, ahead = advice.question.goal, told.ahead
    is_sure = ahead.low is not None and ahead.low > 0
    little = "too little to count" if is_sure else "which cannot be told from nothing"
    limits = f" ({interval(goal, ahead)})" if ahead.has_interval else ""
    sizes = {one.name: len(one.settings) for one in advice.log.finalists}
    if told.saved is not None:
        why = change(next(one for one in advice.question.goals if one.name == told.by), told.saved)
    elif told.by == "settings":
        own = counted(sizes[advice.candidate.name], "setting")
        why = f"{own} changes in place of {sizes[told.over]}"
    else:
        why = "its buffers are smaller"
    goals = {one.name: one for one in advice.question.goals}
    lost = "; ".join(change(goals[gain.goal], gain) for gain in told.lost)
    price = f" With {told.over}, {lost}." if lost else ""
    return [
        f"{advice.candidate.name} is preferred to {told.over}, whose {goal.words} is "
        f"{more(goal, ahead.gain)}{limits}, {little}: {why}.{price}"
    ]


def _than_today(goal: Goal, gain: float) -> str:
    said = more(goal, gain)
    return "the same as today's" if said == "the same" else f"{said} than today's"


def _limits_at(advice: Advice, point: str) -> str:
    """The interval of the gain on one path."""
    own = next((one for one in advice.paths if one["point"] == point), None)
    if own is None or own["low"] == own["high"]:
        return ""
    ends = limits_of(advice.question.goal, own["gain"], (own["low"], own["high"]))
    return f" ({ends}, by {counted(own['n'], 'run')})"


def _unfinished(advice: Advice) -> list[str]:
    """The number of transfers that had not ended, and its consequence."""
    left, asked = advice.open.get(TODAY, (0, 0))
    mine, of = advice.open.get(advice.candidate.name, (0, 0))
    if not left and not mine:
        return []
    counts = f"{left} of {asked} with today's setting"
    bound = ""
    if advice.candidate.settings:
        counts += f", {mine} of {of} with the change"
        if left * of > mine * asked:
            bound = ", and the gain is understated"
    return [
        f"Some transfers had not ended with the run ({counts}). They count as long as they were "
        f"there, so means and intervals are of the run's length too{bound}; a longer `duration` "
        "tells more."
    ]


def _cut_short(advice: Advice) -> str:
    """How few transfers ended within the run."""
    if all(left == of for left, of in advice.open.values()):
        ended = "no transfer ended within the run, with any setting that was examined"
    else:
        left, of = advice.open[TODAY]
        ended = (
            f"{of - left} of {counted(of, 'transfer')} ended within the run with today's setting, "
            "and less than half with any that was examined"
        )
    return f"Nothing can be told: {ended}. Give a longer `duration`."


def _time(seconds: float) -> str:
    """A time to plan with."""
    return f"{math.ceil(seconds)} s" if seconds < 100 else f"{math.ceil(seconds / 60)} min"


def _nothing(advice: Advice) -> str:
    goal = advice.question.goal
    own = [one for one in advice.gains if one.goal == goal.name]
    if not own:
        return (
            f"{_head(advice)}: no setting that was tried did better than today's in the search"
            f"{_of_few(advice)}."
        )
    broken = {one.candidate for one in advice.broken()}
    keeping = [one for one in own if one.candidate not in broken]
    if breaches := advice.breaches():
        return " ".join(_kept_by_none(advice, one) for one in breaches)
    if not keeping:
        return (
            "Change nothing: every setting that was examined breaks a limit, and none that "
            "keeps all of them did better than today's in the search."
        )
    best = max(keeping, key=lambda one: one.gain)
    limits = f" ({interval(goal, best)})" if best.has_interval else ""
    if best.low is not None and best.low > 0 and best.gain >= goal.worth and not best.is_better:
        finalists = counted(len(advice.log.finalists), "finalist")
        limits += f"; by the interval that {finalists} need, it cannot be told"
    keeps = " that keeps the limits" if advice.question.limits else ""
    return (
        f"{_head(advice)}: nothing{keeps} is distinguishably better than today's setting by at "
        f"least {worth(goal)}{_of_few(advice)}. The best that was examined, {best.candidate}: "
        f"{more(goal, best.gain)}{limits}, {over(best)}, on sim."
    )


def _kept_by_none(advice: Advice, broken: LimitCheck) -> str:
    """That today's setting breaks a limit, and what comes nearest to it."""
    limit = _limit(advice, broken)
    others = [
        one
        for one in advice.limits
        if (one.limit, one.backend) == (broken.limit, broken.backend) and one.candidate != TODAY
    ]
    said = (
        f"Today's setting breaks the limit `{broken.limit}`, with "
        f"{_number_of(broken, limit.goal)}, and nothing that was examined surely keeps all limits"
    )
    nearest = min(others, key=lambda one: limit.beyond(one.mean), default=None)
    if nearest is None or limit.beyond(nearest.mean) >= limit.beyond(broken.mean):
        return f"{said}, or comes nearer."
    goal = advice.question.goal
    own = next(
        (it for it in advice.gains if (it.candidate, it.goal) == (nearest.candidate, goal.name)),
        None,
    )
    at = f"; {change(goal, own)}" if own is not None and goal != limit.goal else ""
    return f"{said}. {nearest.candidate} comes nearest, with {_value_of(nearest, limit.goal)}{at}."


def _head(advice: Advice) -> str:
    """What follows where nothing is better."""
    return "Nothing can be told yet" if advice.has_left_out() else "Change nothing"


def _of_few(advice: Advice) -> str:
    """A word of warning where the search had no time for some settings."""
    if not advice.has_left_out():
        return ""
    tried = advice.tried()
    return (
        f", of the {tried} of {tried + len(advice.log.left_out)} settings that there was time for"
    )


def _imperative(candidate: Candidate) -> str:
    sides: dict[str, list[str]] = {}
    for one in candidate.settings:
        sides.setdefault(one.side, []).append(f"{one.key} to {value(one.value)}")
    parts = [f"{' and '.join(several)} at the {side}" for side, several in sides.items()]
    return f"Set {', '.join(parts)}"


def limits(advice: Advice) -> list[str]:
    """Whether the advised setting and today's keep each limit, and what is not advised since it
    breaks one.
    """
    found = []
    names = list(dict.fromkeys([advice.candidate.name, TODAY]))
    for limit in advice.question.limits:
        own = {
            (one.candidate, one.backend): one for one in advice.limits if one.limit == limit.text
        }
        told = [
            f"{'today' if name == TODAY else 'the change'}"
            f"{'' if backend == 'sim' else f' on the kernel ({backend})'} "
            f"{_keeps(one, limit.goal)}"
            for name in names
            for (candidate, backend), one in own.items()
            if candidate == name
        ]
        if told:
            found.append(f"Limit `{limit.text}`: {'; '.join(told)}.")
        if out := _barred(advice, limit):
            found.append(f"Better and not advised, since it breaks that limit: {out}.")
    return found


def _barred(advice: Advice, limit: Limit) -> str:
    """What would be better but breaks a limit: by how much it is better, and beyond the limit."""
    goal, known = advice.question.goal, {advice.candidate.name, TODAY}
    better = {
        one.candidate: one
        for one in advice.gains
        if one.goal == goal.name and one.gain >= goal.worth
        and one.low is not None and one.low > 0
    }  # fmt: skip
    out = [
        one
        for one in advice.broken()
        if one.limit == limit.text and one.candidate in better.keys() - known
    ]
    out.sort(key=lambda one: -better[one.candidate].gain)
    unit, beyond = unit_of_gain(goal), unit_of_difference(limit.goal)
    named = []
    for one in out[:FEW_BARRED]:
        told = better[one.candidate]
        named.append(
            f"{one.candidate}, {gain(goal, told.gain)} ({span_of(goal, told)}{unit}), with "
            f"{_number_of(one, limit.goal)}, {number(limit.beyond(one.mean))}{beyond} beyond it"
        )
    rest = [f"and {len(out) - FEW_BARRED} more"] if len(out) > FEW_BARRED else []
    return "; ".join([*named, *rest])


def _keeps(one: LimitCheck, goal: Goal) -> str:
    verb = {KEPT: "keeps it", BROKEN: "breaks it", EXCEEDED: "breaks it on average"}
    said = verb.get(one.verdict, "keeps it on average, and not surely")
    return f"{said}, with {_number_of(one, goal)}"


def _number_of(one: LimitCheck, goal: Goal) -> str:
    return f"{goal.words} {_value_of(one, goal)}"


def _value_of(one: LimitCheck, goal: Goal) -> str:
    unit = f" {goal.unit}" if goal.unit else ""
    limits = ""
    if one.low is not None and one.high is not None and one.low != one.high:
        limits = f" ({number(one.low)} to {number(one.high)})"
    at = f" at {one.point}" if one.point else ""
    return f"{number(one.mean)}{unit}{limits}{at}"


def cost(advice: Advice) -> list[str]:
    """The costs: the other goals, and the harm to other flows."""
    found: list[str] = []
    if not advice.candidate.settings:
        return found
    told = _dear(advice)
    for goal in advice.question.goals[1:]:
        gain = advice.gain(goal.name)
        if gain is not None and goal not in told:
            found.append(f"{change(goal, gain)}.")
    if found:
        found = [f"With it, {'; '.join(one.rstrip('.') for one in found)}."]
    if advice.harm is None and not has_flow_beside(advice.question):
        found.append("What a flow of CUBIC beside it loses by the change was not measured.")
    return [*found, *_harm(advice)]


def _harm(advice: Advice) -> list[str]:
    """What a flow beside it loses of its goodput, and how its latency changes, as far as the answer
    has not said it.
    """
    harm, delay = advice.harm, advice.delay_beside()
    if harm is None:
        return []
    where = f"{'in' if harm['of'] == 'runs' else 'over'} {count(harm['n'], harm['of'])}"
    if harm.get("lasts"):
        where += ", while the transfers last"
    means = f"{number(harm['advised'])} in place of {number(harm['today'])} Mbit/s, {where}"
    low, high = harm["low"], harm["high"]
    if low is not None and low < 0 < high:
        said = (
            "What a flow of CUBIC beside it loses of its goodput by the change cannot be told: it "
            f"may gain {percent(-low)} or lose {percent(high)}, {where}."
        )
    elif _is_harmful(harm):
        said = f"The goodput of that flow of CUBIC beside it is {means}."
    else:
        verb, sign = ("loses", 1) if harm["harm"] >= 0 else ("gains", -1)
        ends = [] if low in (None, high) else sorted((sign * low, sign * high))
        limits = f" ({percent(ends[0], sign=False)} to {percent(ends[1])})" if ends else ""
        said = (
            f"A flow of CUBIC beside it {verb} {percent(abs(harm['harm']))}{limits} of its "
            f"goodput by the change: {means}."
        )
    if delay is None or _is_dear(DELAY_BESIDE, delay):
        return [said]
    return [said, f"{sentence(change(DELAY_BESIDE, delay))}, {over(delay)}."]


def why(advice: Advice) -> list[str]:
    """The reason for the gain, from the causes that senders wait for."""
    if len(advice.waits) != 2:
        return []
    before, after = advice.waits
    causes = [name for name in WAITS if name != "close"]
    apart = max(causes, key=lambda name: before[name] - after[name])
    grown = max(causes, key=lambda name: after[name] - before[name])
    then = max(causes, key=lambda name: after[name])
    found = []
    path = " on the first path" if advice.question.over else ""
    if before[apart] - after[apart] >= APART:
        found.append(
            f"Why, by one run of each{path}: today the sender spends {before[apart]:.0f} % of its "
            f"time waiting for {WAITS[apart][1]}; with the change {after[apart]:.0f} %."
        )
    if after[grown] - before[grown] >= APART:
        found.append(
            f"The share of time for {WAITS[grown][1]} grows from {before[grown]:.0f} to "
            f"{after[grown]:.0f} %."
        )
    if found and then not in (apart, grown):
        found.append(f"With it, it waits most for {WAITS[then][1]}: {after[then]:.0f} %.")
    return found


def flips(advice: Advice) -> list[str]:
    """Where something else does best, along the losses at the path's round trip, and along the
    round trips at its losses.
    """
    cells = sensitivity.best(advice.cells, advice.question.goal)
    if not cells:
        return []
    base, share = sensitivity.own(advice.question)
    found = []
    row = sorted((one for one in cells if abs(one[sensitivity.RTT] - base) < 1e-6 * base + 1e-9),
                 key=lambda one: one[sensitivity.LOSS])  # fmt: skip
    column = sorted((one for one in cells if abs(one[sensitivity.LOSS] - share) < 1e-12),
                    key=lambda one: one[sensitivity.RTT])  # fmt: skip
    if len({one["best"] for one in row}) > 1:
        found.append(f"At {number(base)} ms, by loss: {_runs(row, sensitivity.LOSS, loss)}.")
    if len({one["best"] for one in column}) > 1:
        runs = _runs(column, sensitivity.RTT, lambda ms: f"{number(ms)} ms")
        found.append(f"At {loss(share)} loss, by round trip: {runs}.")
    if not found:
        usual = max(cells, key=lambda one: sum(one["best"] == it["best"] for it in cells))["best"]
        others = [one for one in cells if one["best"] != usual]
        places = ", ".join(
            f"{_today(one['best'])} at {number(one[sensitivity.RTT])} ms and "
            f"{loss(one[sensitivity.LOSS])}"
            for one in others
        )
        found.append(
            f"Over the {len(cells)} round trips and losses of the map, {_today(usual)} does best"
            f"{f', but for {places}' if others else ''}."
        )
    return found


def _today(name: str) -> str:
    if name == sensitivity.UNTOLD:
        return "no significant difference"
    return "today's setting" if name == TODAY else name


def _runs(cells: Sequence[dict[str, Any]], by: str, text: Any) -> str:
    parts = []
    for best, several in groupby(cells, key=lambda one: one["best"]):
        group = list(several)
        ends = [text(group[0][by]), text(group[-1][by])]
        where = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        parts.append(f"{_today(best)} at {where}")
    return "; ".join(parts)


def alone(advice: Advice) -> list[str]:
    """What single settings do that are not worth a change, the harmful ones apart."""
    several = advice.alone()
    if not several:
        return []
    goal = GOALS[several[0].goal]
    least = goal.worth
    idle = [one for one in several if one.is_exact and one.gain == 0]
    worse = [one for one in several if one.high < 0 and one.gain <= -least]  # type: ignore[operator]
    rest = [one for one in several if one not in (*idle, *worse)]
    same = [one for one in rest if one.low is not None and one.low > -least]
    heads = {
        f"What alone makes a difference of less than {worth(goal)}": same,
        "What alone makes it worse": worse,
        f"What alone brings less than {worth(goal)}, and may make it worse": [
            one for one in rest if one not in same
        ],
    }
    nothing = ", ".join(one.candidate for one in idle)
    return [
        *([f"What alone changes nothing in any run ({goal.words}): {nothing}."] if idle else []),
        *(
            f"{head} ({goal.words}; positive is better): "
            + ", ".join(
                f"{one.candidate} ({span_of(goal, one)}{unit_of_gain(goal)})" for one in own
            )
            + "."
            for head, own in heads.items()
            if own
        ),
    ]


def left_out(advice: Advice) -> list[str]:
    found = list(advice.log.notes)
    for stage, had in advice.seeds().items():
        if had < (wanted := advice.log.seeds.get(stage, had)):
            why = "Stopped" if STOPPED in advice.log.notes else "Shortened to keep to the budget"
            found.append(f"{why}: {STAGES[stage]} {had} in place of {counted(wanted, 'seed')}.")
    examined = {one.candidate for one in advice.gains}
    if advice.log.barred is not None and advice.log.barred not in examined:
        found.append(
            f"Not examined for want of time: {advice.log.barred}, which did best in the search but "
            "for a limit."
        )
    if advice.log.left_out:
        found.append(
            f"Not tried for want of time: {', '.join(advice.log.left_out)}. A larger budget tries "
            "them."
        )
    return found


STAGES = {
    "evidence": "the evidence has",
    "confirmation": "the kernel has",
    BESIDE: "the harm to others has",
}
"""The stages of which the number of seeds is told."""
