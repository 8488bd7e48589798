"""The answer of a report: which variant is best, by how much, how certain that is, and its cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tcplab import _core, statistics
from tcplab._experiment import plan_text
from tcplab._experiment.labels import labels
from tcplab._report._comparison import Question, Row, Values, called, is_better
from tcplab._report._phrases import (
    Piece,
    Sentence,
    apart,
    name,
    phrase,
    sentence,
)
from tcplab._results.versus import LESS, bound, percent, rounded, undecided
from tcplab._text.cells import number
from tcplab._text.english import counted, listed

MOST_PATHS = 200
"""The number of variants up to which the paths of all are compared."""

MOST_OTHERS = 3
"""So many other flows are named beside the answer; all are in the list of costs."""

MOST_LISTED = 12
"""The number of variants or cases listed beside the answer; the table has all of them."""


KINDS = {"flow": "flow", "class": "class", "cc": "congestion control"}
"""The kinds of rows, in words."""


@dataclass(frozen=True)
class Finding:
    """A finding, and whether it is good."""

    tone: str
    """`better`, `worse`, `same`, `unknown`, or empty."""
    said: Sentence


@dataclass(frozen=True)
class Answer:
    """The opening of a report."""

    headline: Sentence
    condition: Sentence
    """The subject of the headline, and where it holds."""
    more: list[Sentence]
    """Further sentences of the answer."""
    costs: list[Finding]
    """The changes in other metrics and of other flows."""
    cost_title: str
    ranking: list[Finding]
    """Each variant, or each case, beside the baseline."""
    ranking_title: str
    leading: tuple[Values, ...]
    """The variants that the answer is about, which decide the runs to show."""


def answer(asked: Question) -> Answer:
    """The answer to a question."""
    if asked.versus is None or not asked.baseline:
        return _of_one(asked)
    rows = list(asked.versus.iter_rows(named=True))
    goal = [
        row for row in rows if row["metric"] == asked.goal and asked.group_of(row) == asked.subject
    ]
    goal = [row for row in goal if row["verdict"] is not None]
    if not goal:
        return _of_one(asked)
    if len({asked.condition_of(row, is_compared=True) for row in goal}) > 1:
        return _of_cases(asked, rows, goal)
    return _of_variants(asked, rows, goal)


def _is_good(row: Row) -> bool | None:
    return is_better(row["metric"], row["verdict"])


def _gain(row: Row) -> float:
    """How much better the mean is, for sorting; negative if it is worse."""
    value = row["relative"] if row["relative"] is not None else row["difference"]
    return -float(value) if row["metric"] in LESS else float(value)


# ---- One case: variants beside a baseline. ----


def _of_variants(asked: Question, rows: list[Row], goal: list[Row]) -> Answer:
    base = asked.base()
    by_gain = sorted(goal, key=_gain, reverse=True)
    told = [row for row in by_gain if _is_good(row)]
    row = told[0] if told else by_gain[0]
    variant = asked.variant_of(row, is_compared=True)
    own = [one for one in rows if asked.variant_of(one, is_compared=True) == variant]
    more = _next(asked, variant if told else base) if len(goal) > 1 else []
    more += _others_pay(asked, own) if told else []
    label, other = asked.label(variant), asked.label(base)
    if all(one["verdict"] == "equal" for one in rows if one["verdict"] is not None):
        said = "All that is compared is equal to the last digit: what is swept has no effect here."
        more = [sentence(said)]
    if told or len(goal) == 1:
        cost_title = f"What else changes with {label}, compared with {other}"
    else:
        cost_title = f"What else {label} would change, compared with {other}"
    return Answer(
        headline=_headline(asked, row, len(goal) + 1, _tail(asked, own) if told else ()),
        condition=_condition(asked, row),
        more=more,
        costs=_costs(asked, own),
        cost_title=cost_title,
        ranking=_ranking(asked, by_gain) if len(goal) > 1 else [],
        ranking_title=f"{_title(asked.goal)} of all, compared with {other}",
        leading=(base, variant),
    )


def _headline(asked: Question, row: Row, number_of: int, tail: Sequence[Piece]) -> Sentence:
    """The difference between a variant and the baseline in words."""
    words = phrase(row["metric"])
    ours = name(asked.label(asked.variant_of(row, is_compared=True)))
    theirs = name(asked.label(asked.base()))
    direction = words.more if row["difference"] > 0 else words.less
    a = words.article
    verdict, pairs = row["verdict"], row["pairs"]
    if verdict == "equal":
        return sentence(ours, " and ", theirs, f" have the same {words.noun} in each of ",
                        counted(pairs, "pair"), " of runs.")  # fmt: skip
    if verdict == "same":
        most = bound(row, asked.margin)
        shown = percent(most) if row["relative"] is not None else words.amount(most)
        return sentence("No difference in ", words.noun, " is seen between ", ours, " and ",
                        theirs, ": it is within ", Piece(shown, "value"), ".")  # fmt: skip
    if verdict in ("higher", "lower"):
        good = is_better(row["metric"], verdict)
        if good is False and number_of > 2:
            return sentence(theirs, f" is best of {number_of}: the nearest, ", ours, ", ",
                            f"{words.verb} {a}", apart(row),
                            f" {direction} {words.noun}.")  # fmt: skip
        return sentence(ours, f" {words.verb} {a}", apart(row), f" {direction} {words.noun} than ",
                        theirs, tail, ".")  # fmt: skip
    if pairs < 2 and row["relative"] is not None and abs(row["relative"]) <= asked.margin:
        return sentence(f"In one run of each, the {words.noun} of ", ours, " and ", theirs,
                        " differs by ", Piece(percent(abs(row["relative"])), "value"),
                        f", no more than the {percent(asked.margin)} that matter.")  # fmt: skip
    if pairs < 2:
        return sentence("In one run of each, ", ours, f" {words.verb} {a}", apart(row),
                        f" {direction} {words.noun} than ", theirs, tail,
                        ". One pair of runs cannot tell how much of that is chance.")  # fmt: skip
    if _has_one_sign(row):
        return sentence("It cannot be told whether ", ours, f" {words.verb} {a}{words.more} or ",
                        f"{words.less} {words.noun} than ", theirs, ": in ",
                        counted(pairs, "pair"), " of runs the difference is ",
                        apart(row, sign=1), f", but {_as_one_of(asked)}that may be chance",
                        _would_tell(asked, row), ".")  # fmt: skip
    return sentence("It cannot be told whether ", ours, f" {words.verb} {a}{words.more} or ",
                    f"{words.less} {words.noun} than ", theirs, ": the difference is between ",
                    Piece(_between(row), "value"), _would_tell(asked, row), ".")  # fmt: skip


def _as_one_of(asked: Question) -> str:
    """The reason why an interval without zero does not tell: there are other comparisons."""
    tests = 0 if asked.versus is None else asked.versus["p"].count()
    return f"as one of {tests} comparisons " if tests > 1 else ""


def _has_one_sign(row: Row) -> bool:
    """Whether the whole interval is on one side of no difference."""
    kind = "relative" if row["relative"] is not None else "difference"
    low, high = row[f"{kind}_low"], row[f"{kind}_high"]
    return low is not None and high is not None and low * high > 0


def _between(row: Row) -> str:
    """The interval in words: `-2.6 % and 8.5 %`."""
    is_share = row["relative"] is not None
    kind = "relative" if is_share else "difference"
    low, high = row[f"{kind}_low"], row[f"{kind}_high"]
    if low is None or high is None:
        low = high = row[kind]
    words = phrase(row["metric"])
    ends = (percent(end) if is_share else words.amount(end) for end in (low, high))
    return " and ".join(f"\u2212{end[1:]}" if end.startswith("-") else end for end in ends)


def _would_tell(asked: Question, row: Row) -> str:
    if not asked.is_sound:
        return ""
    if row["more_runs"]:
        more = rounded(row["more_runs"])
        said = f"about {more} more pairs of runs would be enough to detect a difference of"
        return f"; {said} {percent(asked.margin)}"
    if row["more_runs"] == 0:
        low, high = row["relative_low"], row["relative_high"]
        if low is not None and high is not None and max(-low, high) <= asked.margin:
            within = f"within the margin of {percent(asked.margin)}"
            return f", {within} taken alone, but not after correction for all comparisons"
        return f", about as great as the margin of {percent(asked.margin)}"
    return ""


def _tail(asked: Question, rows: list[Row]) -> Sentence:
    """The first cost, for the headline: ` at 38.0 ms [30.1, 45.2] higher queueing delay (p95)`.

    Delay comes first, then the losses of other flows, then wasted transmissions.
    """
    worse = [row for row in rows if _is_good(row) is False]
    own = [
        row for row in worse if asked.group_of(row) == asked.subject and row["metric"] != asked.goal
    ]
    for row in own:
        words = phrase(row["metric"])
        if words.unit in ("ms", "s"):
            direction = words.more if row["difference"] > 0 else words.less
            return sentence(
                f", at {words.article}{words.noun} that is ",
                apart(row, is_relative=False),
                f" {direction}",
            )
    for row in worse:
        if asked.group_of(row) != asked.subject and row["metric"] == asked.goal:
            words = phrase(row["metric"])
            direction = words.more if row["difference"] > 0 else words.less
            parts: list[str | Sentence] = [
                f" {_verb(words.verb)} {words.article}",
                apart(row),
                f" {direction}",
            ]
            about = name(asked.about(asked.group_of(row)))
            return sentence(f", while the {KINDS[asked.by]} ", about, *parts)
    for row in own:
        words = phrase(row["metric"])
        if words.unit == "%":
            said = f"{words.bare(row['baseline'])} to {words.amount(row['mean'])}"
            return sentence(f", with {words.article}{words.noun} from ", Piece(said, "value"))
    return ()


def _loss(row: Row) -> float:
    return _gain(row) if row["verdict"] in ("higher", "lower") else 0.0


def _others_pay(asked: Question, rows: list[Row]) -> list[Sentence]:
    """What gets worse for other flows than the one in question: for each, the most."""
    worst: dict[Values, Row] = {}
    for row in sorted(rows, key=_loss):
        group = asked.group_of(row)
        is_worse = _is_good(row) is False and _is_cost(asked, row, rows)
        if is_worse and group != asked.subject:
            worst.setdefault(group, row)
    said = [
        sentence(f"The {KINDS[asked.by]} ", name(asked.about(group)), " pays for it: its ",
                 phrase(row["metric"]).noun, " goes ", Piece(_change(row), "value"), ".")
        for group, row in worst.items()
    ]  # fmt: skip
    return said[:MOST_OTHERS]


def _next(asked: Question, best: Values) -> list[Sentence]:
    """How the best variant compares with the second best. It may be unknown which of the two is
    better although each is better than the baseline, so the best is the baseline here.
    """
    chosen = {
        column: value
        for column, value in zip(asked.compared, best, strict=True)
        if column in asked.baseline and value is not None
    }
    if not chosen or best == asked.base():
        return []
    try:
        frame = asked.results.versus(
            chosen, metrics=asked.metrics, by=asked.by, margin=asked.margin
        )
    except ValueError:
        return []
    base = asked.base()
    rows = [
        row
        for row in frame.iter_rows(named=True)
        if row["metric"] == asked.goal
        and asked.group_of(row) == asked.subject
        and row["verdict"] is not None
        and asked.variant_of(row, is_compared=True) != base
    ]
    if not rows:
        return []
    row = max(rows, key=_gain)
    other = name(asked.label(asked.variant_of(row, is_compared=True)))
    return [
        sentence("The next is ", other, ". Compared with ", name(asked.label(best)),
                 f", its {phrase(asked.goal).noun}: ", row["said"], ".")
    ]  # fmt: skip


def _told(asked: Question, row: Row) -> str:
    """The verdict in words; without the number of further runs where these would not help."""
    if row["verdict"] == "unknown" and not asked.is_sound:
        return undecided(row)
    return str(row["said"])


def _change(row: Row) -> str:
    """The change of the mean: `from 23.9 to 127 ms`, or `23.9 ms` if both look the same."""
    words = phrase(row["metric"])
    before, after = words.bare(row["baseline"]), words.amount(row["mean"])
    if after == words.amount(row["baseline"]):
        return after
    return f"from {before} to {after}"


def _is_cost(asked: Question, row: Row, rows: list[Row]) -> bool:
    """Whether a row is a cost: about something other than the goal. For other flows, that is the
    goal itself, and metrics that the subject lacks, such as the delay of datagrams. Metrics of
    both, such as the delay of their queue, are reported once.
    """
    if asked.group_of(row) == asked.subject:
        return bool(row["metric"] != asked.goal)
    own = {
        one["metric"]
        for one in rows
        if asked.group_of(one) == asked.subject and one["verdict"] is not None
    }
    return row["metric"] == asked.goal or row["metric"] not in own


def _title(metric: str) -> str:
    noun = phrase(metric).noun
    return f"{noun[:1].upper()}{noun[1:]}"


def _ranking(asked: Question, by_gain: list[Row]) -> list[Finding]:
    """All variants, best mean first, with the baseline among them."""
    words = phrase(asked.goal)
    found = []
    usual = by_gain[0]["baseline"]
    base = Finding("", sentence(name(asked.label(asked.base())), f" ({words.amount(usual)}): ",
                                "the baseline"))  # fmt: skip
    is_placed = False
    for row in by_gain:
        if not is_placed and _gain(row) < 0:
            found.append(base)
            is_placed = True
        label = name(asked.label(asked.variant_of(row, is_compared=True)))
        said = sentence(label, f" ({words.amount(row['mean'])}): ", row["said"])
        found.append(Finding(_tone(row), said))
    if not is_placed:
        found.append(base)
    return found[:MOST_LISTED]


def _tone(row: Row) -> str:
    """Whether a difference is good, as far as it is significant."""
    good = _is_good(row)
    if good is None:
        kinds = {"same": "same", "equal": "same", "unknown": "unknown"}
        return kinds.get(row["verdict"] or "", "")
    return "better" if good else "worse"


def _costs(asked: Question, rows: list[Row]) -> list[Finding]:
    """The changes in other metrics and of other flows; changes for the worse come first."""
    found = []
    for row in rows:
        is_own = asked.group_of(row) == asked.subject
        if row["verdict"] is None or not _is_cost(asked, row, rows):
            continue
        words = phrase(row["metric"])
        whose = "" if is_own else f" of the {KINDS[asked.by]} {asked.about(asked.group_of(row))}"
        noun = f"{words.noun[:1].upper()}{words.noun[1:]}{whose}"
        found.append(
            Finding(_tone(row), sentence(name(noun), ": ", _change(row), "; ", _told(asked, row)))
        )
    order = ["worse", "better", "", "same", "unknown"]
    found.sort(key=lambda one: order.index(one.tone))
    return found


# ---- Several cases: all else that is swept. ----


def _of_cases(asked: Question, rows: list[Row], goal: list[Row]) -> Answer:
    base = asked.base()
    by_variant: dict[Values, list[Row]] = {}
    for row in goal:
        by_variant.setdefault(asked.variant_of(row, is_compared=True), []).append(row)

    def worth(variant: Values) -> tuple[int, float]:
        own = by_variant[variant]
        seen = [_seen(asked, row) for row in own]
        return seen.count("better") - seen.count("worse"), sum(map(_gain, own)) / len(own)

    variant = max(by_variant, key=worth)
    own = by_variant[variant]
    every = [one for one in rows if asked.variant_of(one, is_compared=True) == variant]
    ours, theirs = asked.label(variant), asked.label(base)
    ranking = [
        Finding(
            _tone(row),
            sentence(
                name(asked.case(asked.condition_of(row, is_compared=True))), ": ", row["said"]
            ),
        )
        for row in own[:MOST_LISTED]
    ]
    return Answer(
        headline=_over_cases(asked, own, ours, theirs),
        condition=_condition(asked, own[0]),
        more=[_most(asked, own)]
        if any(row["verdict"] in ("higher", "lower") for row in own)
        else [],
        costs=_costs_over_cases(asked, every),
        cost_title=f"What else changes with {ours}, compared with {theirs}",
        ranking=ranking,
        ranking_title=f"{_title(asked.goal)} of {ours} compared with {theirs}"
        + (f": the first {MOST_LISTED} of {len(own)} cases" if len(own) > MOST_LISTED else ""),
        leading=(base, variant),
    )


def _over_cases(asked: Question, rows: list[Row], ours: str, theirs: str) -> Sentence:
    """How often a variant is better than the baseline, and by how much."""
    words, cases = phrase(asked.goal), len(rows)
    told: dict[str, list[Row]] = {"better": [], "worse": [], "same": [], "unknown": []}
    for row in rows:
        told[_seen(asked, row)].append(row)
    good, bad = told["better"], told["worse"]
    once = "In one run of each, " if all(row["pairs"] < 2 for row in rows) else ""
    # Shares are relative to the baseline, so the variant is the subject of "more" or "less".
    is_better_one = len(good) >= len(bad)
    wins, losses = (good, bad) if is_better_one else (bad, good)
    is_more = is_better_one == (asked.goal not in LESS)
    direction = words.more if is_more else words.less
    if not wins:
        rest = "no difference is seen" if len(told["same"]) >= len(told["unknown"]) else (
            "it cannot be told which is better")  # fmt: skip
        most = max(len(told["same"]), len(told["unknown"]))
        between = f"{once}between " if once else "Between "
        return sentence(between, name(ours), " and ", name(theirs), f", {rest} in ",
                        Piece(f"{most} of {cases}", "value"),
                        f" cases ({words.noun}).")  # fmt: skip
    head = sentence(once, name(ours), f" {words.verb} {words.article}{direction} {words.noun}",
                    " than ", name(theirs), " in ", Piece(_of(len(wins), cases), "value"), " cases",
                    *_by(wins))  # fmt: skip
    left = []
    if losses:
        other = words.less if direction == words.more else words.more
        left.append(f"{other} in {len(losses)}")
    if told["same"]:
        left.append(f"no difference is seen in {len(told['same'])}")
    if told["unknown"]:
        left.append(f"it cannot be told in {len(told['unknown'])}")
    return sentence(head, f"; {listed(left)}" if left else "", ".")


def _seen(asked: Question, row: Row) -> str:
    """The verdict on a case. With one run each, the two numbers decide."""
    if row["pairs"] >= 2:
        return _tone(row) or "same"
    relative = row["relative"] if row["relative"] is not None else row["difference"]
    if abs(relative) <= asked.margin:
        return "same"
    verdict = "higher" if relative > 0 else "lower"
    good = is_better(row["metric"], verdict)
    return "unknown" if good is None else "better" if good else "worse"


def _of(number_of: int, cases: int) -> str:
    if number_of == cases:
        return "both" if cases == 2 else f"all {cases}"
    return f"{number_of} of {cases}"


def _by(rows: list[Row]) -> list[Piece]:
    """The range of the shares: `, by 0.4 % to 12.2 %`."""
    shares = sorted(abs(row["relative"]) for row in rows if row["relative"] is not None)
    if not shares:
        return []
    ends = [percent(shares[0]), percent(shares[-1])]
    said = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    return [Piece(", by "), Piece(said, "value")]


def _most(asked: Question, rows: list[Row]) -> Sentence:
    """The case with the greatest difference."""
    told = [row for row in rows if _seen(asked, row) in ("better", "worse")]
    row = max(told, key=lambda one: abs(_gain(one)))
    words = phrase(asked.goal)
    direction = words.more if row["difference"] > 0 else words.less
    where = asked.case(asked.condition_of(row, is_compared=True))
    return sentence("The difference is greatest where ", name(where), ": ", apart(row),
                    f" {direction} with ",
                    name(asked.label(asked.variant_of(row, is_compared=True))), ".")  # fmt: skip


def _costs_over_cases(asked: Question, rows: list[Row]) -> list[Finding]:
    """The changes in other metrics over all cases."""
    kinds: dict[tuple[Values, str], list[Row]] = {}
    for row in rows:
        if row["verdict"] is not None and _is_cost(asked, row, rows):
            kinds.setdefault((asked.group_of(row), row["metric"]), []).append(row)
    found = []
    for (group, metric), own in kinds.items():
        words, cases = phrase(metric), len(own)
        whose = "" if group == asked.subject else f" of the {KINDS[asked.by]} {asked.about(group)}"
        parts: list[str] = []
        tones: set[str] = set()
        is_single = all(row["pairs"] < 2 for row in own)
        for sign, direction in ((1, words.more), (-1, words.less)):
            told = [
                row
                for row in own
                if sign * row["difference"] > 0 and _seen(asked, row) in ("better", "worse")
            ]
            if told:
                by = "".join(piece.text for piece in _by(told)).replace(", by", " by")
                parts.append(f"{direction} in {_of(len(told), cases)} cases{by}")
                tones.add(_seen(asked, told[0]))
        for kind, said in (("same", "no difference seen"), ("unknown", "cannot be told")):
            if alike := sum(_seen(asked, row) == kind for row in own):
                parts.append(f"{said} in {alike}")
        if is_single:
            parts.append("in one run of each")
        tone = "worse" if "worse" in tones else next(iter(tones), _tone(own[0]))
        noun = f"{words.noun[:1].upper()}{words.noun[1:]}{whose}"
        found.append(Finding(tone, sentence(name(noun), ": ", ", ".join(parts))))
    order = ["worse", "better", "", "same", "unknown"]
    found.sort(key=lambda one: order.index(one.tone))
    return found


# ---- Nothing to compare: what there is. ----


def _of_one(asked: Question) -> Answer:
    """The results of a single variant, or of several that cannot be compared."""
    rows = list(asked.summary.iter_rows(named=True))
    if asked.compared or len(asked.variants()) > 1:
        return _uncompared(asked, rows)
    words = phrase(asked.goal)
    shown = [row for row in rows if row[asked.goal] is not None]
    if not shown:
        said = f"No flow has a {words.noun}: see the table."
        return Answer(sentence(said), _condition(asked, None), [], [], "", [], "", ((),))
    order = sorted(shown, key=lambda row: row[asked.goal], reverse=asked.goal not in LESS)
    more = []
    if len(order) == 1:
        headline = sentence(name(called(asked, order[0])), f" {_verb(words.verb)} {words.article}",
                            _mean(asked, order[0]), f" {words.noun}.")  # fmt: skip
    else:
        parts: list[str | Piece | Sequence[Piece]] = []
        for place, row in enumerate(order[:3]):
            parts += [
                ", " if place and place < min(len(order), 3) - 1 else " and " if place else ""
            ]
            parts += [name(called(asked, row)), " ", _mean(asked, row)]
        left = (
            f", {len(order) - 3} others less" if len(order) > 3 and asked.goal not in LESS else ""
        )
        headline = sentence(f"{words.noun.capitalize()}: ", *parts, left, ".")
        if difference := _within(asked, order):
            more.append(difference)
    return Answer(
        headline=headline,
        condition=_condition(asked, None),
        more=more,
        costs=_beside(asked, order),
        cost_title="What comes with it",
        ranking=[],
        ranking_title="",
        leading=((),),
    )


def _verb(verb: str) -> str:
    return "gets" if verb == "gives" else verb


def _mean(asked: Question, row: Row) -> Sentence:
    """The mean with its interval."""
    words = phrase(asked.goal)
    mean, low, high = (row[f"{asked.goal}{end}"] for end in ("", "_low", "_high"))
    half = row[f"{asked.goal}_ci"]
    if low is None and half is not None:
        low, high = mean - half, mean + half
    value = Piece(words.amount(mean), "value")
    if low is None or high is None or low == high:
        return (value,)
    return value, Piece(f" [{words.bare(low)}, {words.bare(high)}]", "range")


def _within(asked: Question, order: list[Row]) -> Sentence | None:
    """For two flows of a variant, by how much one exceeds the other: paired by run."""
    if len(order) != 2 or asked.by != "flow":
        return None
    goal, words = asked.goal, phrase(asked.goal)
    flows = asked.results.flows
    if goal not in flows.columns:
        return None
    first, second = (
        flows.filter(pl.col("flow") == row["flow"]).sort("run")[goal].to_list() for row in order
    )
    if len(first) != len(second):
        return None
    is_few = 2 <= len(first) < statistics.FEWEST
    found = statistics.difference(first, second, assume="normal" if is_few else None)
    base = order[1][goal]
    if found.estimate is None or not base:
        return None
    row = {"metric": goal} | {
        f"relative{end}": None if value is None else value / abs(base)
        for end, value in (("", found.estimate), ("_low", found.low), ("_high", found.high))
    }
    direction = words.more if found.estimate > 0 else words.less
    unsure = found.low is not None and found.high is not None and found.low <= 0 <= found.high
    if unsure and found.low != found.high:
        return sentence("Which of them has more cannot be told: the difference is between ",
                        Piece(_between(row), "value"), ".")  # fmt: skip
    first_one, other = (name(called(asked, row)) for row in order)
    return sentence(first_one, f" {_verb(words.verb)} {words.article}",
                    apart(row), f" {direction} than ", other, ".")  # fmt: skip


def _beside(asked: Question, rows: list[Row]) -> list[Finding]:
    """Other metrics of the same rows."""
    found = []
    for metric in asked.metrics[1:]:
        words = phrase(metric)
        parts = [
            f"{called(asked, row)} {words.amount(row[metric])}" if len(rows) > 1
            else words.amount(row[metric])
            for row in rows if row.get(metric) is not None
        ]  # fmt: skip
        if parts:
            noun = f"{words.noun[:1].upper()}{words.noun[1:]}"
            found.append(Finding("", sentence(name(noun), ": ", listed(parts))))
    if rows and rows[0].get("bottleneck_share") is not None and asked.by == "flow":
        shares = [
            f"{called(asked, row)} {number(100 * row['bottleneck_share'], 1)} %" if len(rows) > 1
            else f"{number(100 * row['bottleneck_share'], 1)} %"
            for row in rows if row["bottleneck_share"] is not None
        ]  # fmt: skip
        found.insert(0, Finding("", sentence(name("Share of the bottleneck's rate"), ": ",
                                             listed(shares))))  # fmt: skip
    return found


def _uncompared(asked: Question, rows: list[Row]) -> Answer:
    """Several variants without paired runs: reports which has the best mean."""
    own = [
        row for row in rows if asked.group_of(row) == asked.subject and row[asked.goal] is not None
    ]
    words = phrase(asked.goal)
    if not own:
        headline = sentence(f"No run has a {words.noun}: there is nothing to compare.")
        return Answer(headline, _condition(asked, None), [], [], "", [], "", ((),))
    best = (min if asked.goal in LESS else max)(own, key=lambda row: row[asked.goal])
    where = ", ".join(
        labels(asked.results.runs[column].to_list())[best[column]]
        for column in asked.results.swept
        if best[column] is not None
    )
    extreme = "least" if asked.goal in LESS else "greatest"
    headline = sentence(name(where), f" has the {extreme} {words.noun}: ", _mean(asked, best), ".")
    no_pair = f"in no pair of runs do both have a {words.noun}"
    why = asked.why_not.removeprefix("baseline: ") or no_pair
    without = [row for row in rows if asked.group_of(row) == asked.subject and row not in own]
    if without and asked.compared and not asked.conditions:
        having, others = (
            name(listed(asked.label(asked.variant_of(row)) for row in part))
            for part in (own, without)
        )
        headline = sentence("Only ", having, f" has a {words.noun}: ", _mean(asked, best), ". ",
                            others, " did not complete.")  # fmt: skip
    more = [sentence(f"Variants cannot be compared in pairs of runs: {why}.")]
    costs: list[Finding] = []
    label = ""
    if asked.versus is not None and not asked.conditions:
        variant = asked.variant_of(best)
        if variant == asked.base():
            variant = next(one for one in asked.variants() if one != variant)
        every = asked.versus.iter_rows(named=True)
        own_rows = [row for row in every if asked.variant_of(row, is_compared=True) == variant]
        costs = _costs(asked, own_rows)
        label = f"What can be compared: {asked.label(variant)} with {asked.label(asked.base())}"
    return Answer(
        headline, _condition(asked, None), more, costs, label if costs else "", [], "",
        (asked.variant_of(best),),
    )  # fmt: skip


# ---- Where it holds. ----


def _condition(asked: Question, row: Row | None) -> Sentence:
    """The subject of the headline, and the path that it holds for."""
    results = asked.results
    repetitions = results.runs["repetition"].n_unique()
    whose = ""
    if asked.others and row is not None:
        whose = f"For the {KINDS[asked.by]} {asked.about(asked.subject)}, "
    if row is not None and row["pairs"] > 1:
        over = f"over {counted(row['pairs'], 'pair')} of runs with equal seeds; 95 % intervals in "
        over += "brackets, each taken alone"
        if row["assumes"] == "normal":
            over += ", which hold if differences are normally distributed"
    elif row is not None:
        over = "over one pair of runs with equal seeds"
    elif repetitions > 1:
        over = f"mean of {repetitions} repetitions; 95 % interval in brackets"
    else:
        over = "from a single run" if len(results.plans) == 1 else "from one run of each"
    first, second = f"{whose}{over}", _path(asked)
    return sentence(f"{first[:1].upper()}{first[1:]}. {second[:1].upper()}{second[1:]}.")


def _path(asked: Question) -> str:
    """The bottleneck in a few words: that of all variants, of the two compared, or else of the
    first.
    """
    variants: dict[tuple[tuple[str, str], ...], _core.Plan] = {}
    for plan in asked.results.plans:
        variants.setdefault(tuple(plan.swept), plan)
    plans = [json.loads(plan.to_json()) for plan in [*variants.values()][:MOST_PATHS]]
    paths = list(dict.fromkeys(_bottleneck(asked, plan) for plan in plans))
    first = f"{listed(list(paths[0]))}, for {plans[0]['duration']}"
    if len(paths) == 1 and len(variants) <= MOST_PATHS:
        return first
    if len(variants) == len(asked.variants()) == 2:
        differs = [part for part in paths[1] if part not in paths[0]]
        one, other = (asked.label(variant) for variant in asked.variants())
        return f"with {one}, {first}; with {other}, {listed(differs)}"
    return f"in the first variant, {first}"


def _bottleneck(asked: Question, plan: dict[str, Any]) -> tuple[str, ...]:
    """The properties of the path of the flows in question."""
    flows = [flow for flow in plan["flows"] if flow["name"] in asked.subject] or plan["flows"]
    rate, _, queue, loss = plan_text.lane(plan["lanes"][flows[0]["bottleneck"]])
    size, _, discipline = queue.rpartition(", ")
    size = "1 packet" if size == "1 packets" else size
    said = [f"a bottleneck of {rate}", f"a base RTT of {flows[0]['base_rtt']}"]
    said += [f"a queue of {size} ({discipline})", f"loss of {loss}"]
    return tuple(part for part in said if part != "loss of none")
