"""Advice as a page that can be sent to somebody who doubts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import altair as alt

from tcplab import _core
from tcplab._advice import phrases, sensitivity, words
from tcplab._advice.advice import CHANGE, NOTHING, UNCONFIRMED, UNDECIDED, Advice
from tcplab._advice.evidence import Gain
from tcplab._advice.levers import TODAY
from tcplab._advice.question import Question
from tcplab._text.blocks import Block, Heading, Items, Picture, Rows
from tcplab._text.english import counted
from tcplab.capture import WAITS
from tcplab.plot._style import COLOURS, data, styled

TITLES = {
    CHANGE: "Advice: {}",
    NOTHING: "Advice: change nothing",
    UNDECIDED: "Advice: nothing can be told",
    UNCONFIRMED: "Advice: nothing that the kernel confirms",
}


def blocks(advice: Advice, files: Mapping[str, str], command: str | None) -> list[Block]:
    """The page."""
    title = TITLES.get(advice.verdict, "Advice: not finished")
    if advice.verdict == NOTHING and advice.breaches():
        title = "Advice: nothing that keeps the limits"
    page: list[Block] = [
        Heading(title.format(advice.candidate.name), 1),
        *words.answer(advice),
        *words.limits(advice),
        *words.cost(advice),
    ]
    if explained := words.why(advice):
        page += [Heading("Why"), *explained, _waits(advice.waits)]
    page += [Heading("What it is about"), *_about(advice)]
    page += [Heading("What was examined"), *_gains(advice)]
    if advice.cells:
        page += [Heading("Where it flips"), *words.flips(advice), *_map(advice)]
    if advice.paths:
        page += [Heading("Path by path"), _paths(advice)]
    if rest := [*words.alone(advice), *words.left_out(advice)]:
        page += [Heading("What else was found"), Items(rest)]
    if files:
        page += [
            Heading("Put it in, and take it out"),
            "These files stand beside this page, in the folder `apply`. They change nothing until "
            "they are run; `undo.sh` restores what was there.",
            Items([f"`{name}`" for name in files]),
        ]
    page += [Heading("Repeat it"), *_repeat(advice, command)]
    return page


def _about(advice: Advice) -> list[Block]:
    """The path, the traffic and what was searched."""
    question = advice.question
    items = [
        f"bottleneck `{question.bottleneck()['name']}`: {phrases.path(question)}",
        f"flows that may change: {', '.join(question.flows[:8])}"
        + (f" and {len(question.flows) - 8} more" if len(question.flows) > 8 else ""),
        f"what is to be best: {question.goal.words}; it may be changed at the "
        f"{', '.join(question.asked['may'])}",
    ]
    if question.over:
        items.append(
            f"it is to hold over {len(question.points())} paths: "
            + "; ".join(f"{key} {phrases.span(given)}" for key, given in question.over.items())
        )
    tried = [
        f"{key} ({', '.join(phrases.value(one.value) for one in several)})"
        for key, several in question.settings.items()
    ]
    left = "; what there was no time for stands below" if advice.log.left_out else ""
    items.append(f"tried beside today's: {'; '.join(tried)}{left}")
    today = [
        f"{key} {phrases.value(several[0].today)}" for key, several in question.settings.items()
    ]
    items.append(f"today's setting, as the experiment has it: {'; '.join(today)}")
    if advice.log.parameters:
        items.append(
            "tried of the congestion control that did best alone (or today's), other parameters: "
            + ", ".join(advice.log.parameters)
        )
    items.append(_untried(question))
    rounds = "; ".join(
        f"{counted(number, 'setting')} with {counted(seeds, 'seed')}"
        for number, seeds in advice.log.rounds
    )
    items.append(
        f"the search, in rounds: {rounds or 'the first was not finished'}. What falls "
        "least behind the best, over the path where it falls behind most, goes on. Then fresh "
        "seeds examine what is left"
    )
    return [Items(items)]


def _untried(question: Question) -> str:
    """What the search leaves out, and how to ask for it."""
    if question.asked.get("change"):
        return "not tried: everything else, since the question names what may change"
    left = ["parameters of other congestion controls"]
    is_kept = "ecn" in (question.asked.get("keep") or [])
    if "ecn" not in question.settings and not is_kept and "sender" in question.asked["may"]:
        left.append("ECN, since the bottleneck does not mark and the receiver may not change")
    left.append("all other keys of `[stack]`")
    return f"not tried unless `--change` names it: {'; '.join(left)}"


def _gains(advice: Advice) -> list[Block]:
    """A row for each goal of each setting, and the gains of the first goal as a chart."""
    goal = advice.question.goal
    own = [one for one in advice.gains if one.goal == goal.name]
    if not own:
        return ["Nothing was examined."]
    # Of what is not advised, only the first goal decided.
    name = advice.candidate.name
    shown = [one for one in advice.gains if one.goal == goal.name or one.candidate == name]
    rows = [
        _row(one, advice)
        for one in [*advice.kernel, *sorted(shown, key=lambda it: it.candidate != name)]
    ]
    return [
        "Today's mean and the setting's, and the gain: positive is better. Intervals are of 95 %, "
        f"over {own[0].of}; each is of one comparison.",
        Picture("gains", f"The gain in {goal.words} of each setting", partial(_chart, advice)),
        Rows(["setting", "goal", "on", "today", "with it", "gain", "interval", "n"], rows),
    ]


def _row(one: Gain, advice: Advice) -> list[str]:
    goal = next(goal for goal in advice.question.goals if goal.name == one.goal)
    unit = f" {goal.unit}" if goal.unit else ""
    means = [
        "-" if it is None else f"{phrases.number(it)}{unit}" for it in (one.today, one.advised)
    ]
    gain = [phrases.gain(goal, it) for it in (one.gain, one.low, one.high)]
    interval = f"{gain[1]} to {gain[2]}" if one.has_interval else "-"
    name = f"**{one.candidate}**"
    return [name, goal.words, one.backend, *means, gain[0], interval, phrases.count(one.n, one.of)]


def _chart(advice: Advice) -> alt.LayerChart:
    goal = advice.question.goal

    def shown(gain: float | None) -> float | None:
        scale = 100 if goal.is_ratio else 1
        return None if gain is None else scale * phrases.better(goal, gain)

    rows: list[dict[str, Any]] = [
        {
            "setting": one.candidate,
            "backend": one.backend,
            "gain": shown(one.gain),
            "low": shown(one.low),
            "high": shown(one.high),
        }
        for one in [*advice.gains, *advice.kernel]
        if one.goal == goal.name
    ]
    order = list(
        dict.fromkeys(row["setting"] for row in sorted(rows, key=lambda row: -float(row["gain"])))
    )
    backends = list(dict.fromkeys(row["backend"] for row in rows))
    given = data(rows)
    unit = "%" if goal.is_ratio else goal.unit
    y = alt.Y("setting:N", sort=order, title=None, axis=alt.Axis(labelLimit=400))
    offset = alt.YOffset("backend:N", sort=backends)
    colour = alt.Color(
        "backend:N",
        title=None,
        scale=alt.Scale(domain=backends, range=list(COLOURS[: len(backends)])),
    )
    title = f"gain in {goal.words} ({unit})" if unit else f"gain in {goal.words}"
    base = alt.Chart(given).encode(y=y, yOffset=offset, color=colour)
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title), x2=alt.X2("high:Q"))
    dots = base.mark_point(filled=True, size=60).encode(x=alt.X("gain:Q", title=title))
    zero = alt.Chart(data([{"x": 0}])).mark_rule(strokeDash=[4, 3]).encode(x="x:Q")
    chart: alt.LayerChart = zero + bars + dots
    return styled(chart.properties(width=520, height=alt.Step(22)))


def _map(advice: Advice) -> list[Block]:
    cells = sensitivity.best(advice.cells, advice.question.goal)
    losses = sorted({one[sensitivity.LOSS] for one in cells})
    trips = sorted({one[sensitivity.RTT] for one in cells})
    of = {(one[sensitivity.RTT], one[sensitivity.LOSS]): one for one in cells}
    goal = advice.question.goal
    rows = [
        [f"{phrases.number(trip)} ms", *(_cell(of.get((trip, loss)), goal) for loss in losses)]
        for trip in trips
    ]
    return [
        "Of each round trip (rows) and each share of losses by chance (columns), the setting that "
        "does best, with its gain and its 99 % interval (5 runs, normal data; of the path itself "
        "that of the evidence). Today's where no interval reaches what is worth a change, and `?` "
        f"where it cannot be told.{_limited(advice)}",
        Picture("map", "What does best, by round trip and losses", partial(_drawn_map, cells)),
        Rows(["", *(phrases.loss(one) for one in losses)], rows),
    ]


def _limited(advice: Advice) -> str:
    if not advice.question.limits:
        return ""
    return " A setting whose mean breaks a limit somewhere is left out there."


def _cell(cell: Mapping[str, Any] | None, goal: Any) -> str:
    if cell is None:
        return "-"
    if cell["best"] == TODAY:
        return "today's"
    if cell["best"] == sensitivity.UNTOLD:
        return "?"
    gain = [phrases.gain(goal, cell[it]) for it in ("gain", "low", "high")]
    limits = f" ({gain[1]} to {gain[2]})" if cell["low"] != cell["high"] else ""
    return f"{cell['best']}: {gain[0]}{limits}"


def _drawn_map(cells: Sequence[Mapping[str, Any]]) -> alt.Chart:
    told = {TODAY: TODAY, sensitivity.UNTOLD: "cannot be told"}
    others = [one["best"] for one in cells if one["best"] not in told]
    names = list(dict.fromkeys([*told.values(), *others]))
    rows = [
        {
            "round trip": f"{phrases.number(one[sensitivity.RTT])} ms",
            "loss": phrases.loss(one[sensitivity.LOSS]),
            "best": told.get(one["best"], one["best"]),
        }
        for one in cells
    ]
    trips = [f"{phrases.number(one)} ms" for one in sorted({it[sensitivity.RTT] for it in cells})]
    losses = [phrases.loss(one) for one in sorted({it[sensitivity.LOSS] for it in cells})]
    base = alt.Chart(data(rows)).encode(
        x=alt.X("loss:N", sort=losses, title="losses by chance", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("round trip:N", sort=trips[::-1], title="round trip"),
    )
    colour = alt.Color(
        "best:N",
        title="does best",
        scale=alt.Scale(domain=names, range=["#bfbfbf", "#efefef", *COLOURS[: len(names) - 2]]),
        legend=alt.Legend(orient="bottom", labelLimit=400, columns=1),
    )
    chart: alt.Chart = (
        base.mark_rect(stroke="white").encode(color=colour).properties(width=420, height=220)
    )
    return styled(chart)


def _waits(waits: Sequence[Mapping[str, Any]]) -> Rows:
    heads = ["setting", *(word for word, _ in WAITS.values())]
    rows = [
        [
            str(one["candidate"]),
            *("-" if one[name] is None else f"{one[name]:.1f} %" for name in WAITS),
        ]
        for one in waits
    ]
    return Rows(heads, rows)


def _paths(advice: Advice) -> Rows:
    goal = advice.question.goal
    rows = [
        [
            one["point"],
            phrases.number(one["today"]),
            phrases.number(one["advised"]),
            phrases.gain(goal, one["gain"]),
            "-"
            if one["low"] == one["high"]
            else f"{phrases.gain(goal, one['low'])} to {phrases.gain(goal, one['high'])}",
            str(one["n"]),
        ]
        for one in sorted(advice.paths, key=lambda one: one["gain"])
    ]
    unit = f" ({goal.unit})" if goal.unit else ""
    heads = [
        ", ".join(advice.question.over), f"today{unit}", f"with the change{unit}", "gain",
        "99 % interval (normal data)", "runs",
    ]  # fmt: skip
    if all(row[4] == "-" for row in rows):
        # Few runs of one path have no interval that says anything.
        heads, rows = heads[:4] + heads[5:], [row[:4] + row[5:] for row in rows]
    return Rows(heads, rows)


def _repeat(advice: Advice, command: str | None) -> list[Block]:
    made = f"Made by `{command}` with" if command else "Made with"
    return [
        f"{made} tcplab {_core.__version__}. The question is in `question.toml`, what this page "
        "says for programs in `advice.json`, and the runs are in the folders "
        f"{', '.join(f'`{one}`' for one in advice.log.stages)}, which `tcplab show` and "
        "`tcplab report` read. `tcplab verify` with this folder runs all of them again, compares "
        "them bit for bit, and draws the conclusions once more.",
    ]
