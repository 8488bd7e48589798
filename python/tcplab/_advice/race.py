"""The search: candidates race over the same paths with the same seeds, and the better ones go on.

The candidate with the least regret wins: on the path where it falls furthest behind the best of
all candidates, it falls behind least. Rounds have different seeds, and the evidence has none of
them, so that a candidate which has won by luck does not win again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import polars as pl

from tcplab._advice import ranges
from tcplab._advice.evidence import NEAR, preferred
from tcplab._advice.goals import Goal
from tcplab._advice.levers import BUFFERS, TODAY, Candidate, cost, parameters
from tcplab._advice.limit_checks import worst
from tcplab._advice.question import Question
from tcplab._advice.stages import Laboratory, gains, table
from tcplab._core import ConfigError
from tcplab._text.english import counted
from tcplab.statistics import FEWEST

SEEDS = (2, 3, 5)
"""How many seeds each round has. In the first, only the better ones get the second seed."""

SURVIVORS = (6, 4, 3)
"""How many candidates each round leaves."""

FIRST_SURVIVORS = 12
"""So many candidates, and the best value of each setting, get the second seed of the first
round.
"""

BROKEN, BROKEN_POINTS = 10.0, 1000.0
"""Added to the regret of what breaks a limit: as a logarithm, and in a goal's own unit."""

FOR_SEARCH = (0.18, 0.25, 0.36, 0.45)
"""The share of the budget that the search may have taken after the first seed, the first round, the
second and the third.
"""

FEWEST_PATHS = 4
"""The fewest paths that a search looks at, where the range has more."""

FEWEST_SETTINGS = 4
"""The fewest settings among which a search is worth its time."""

ENOUGH = 2.0
"""The most that a search may take, in budgets; if it takes longer, nothing is tried."""


@dataclass
class Race:
    """The result of a search."""

    finalists: list[Candidate] = field(default_factory=list)
    """The best first."""
    singles: dict[str, Candidate] = field(default_factory=dict)
    """By setting, the best value of it alone."""
    promising: list[Candidate] = field(default_factory=list)
    """Those of them that did better than today's setting."""
    needs_s: float | None = None
    """How long the shortest search that tells anything takes, if the budget is far too short."""
    rounds: list[tuple[int, int]] = field(default_factory=list)
    """Of each round, how many candidates and seeds it had."""
    left_out: list[str] = field(default_factory=list)
    """Settings that there was no time for."""
    barred: Candidate | None = None
    """What was best of all in the first round but for a limit that it broke: it is examined with
    the finalists, so that its gain is known.
    """
    parameters: list[str] = field(default_factory=list)
    """Congestion controls with other parameters that were tried."""
    shortened: list[str] = field(default_factory=list)
    """What was shortened for want of time."""
    is_random: bool = True
    """Whether seeds make a difference to any run."""
    rows: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The runs of those that were left to the end, and of today's setting."""


@dataclass
class _Course:
    """A race under way."""

    laboratory: Laboratory
    points: list[dict[str, Any]]
    budget_s: float
    found: Race = field(default_factory=Race)

    @property
    def question(self) -> Question:
        return self.laboratory.question

    def left_s(self, round_: int) -> float:
        """How much time is left of what the race may have taken after a round."""
        left = self.laboratory.left_s() - (1 - FOR_SEARCH[round_]) * self.budget_s
        return max(left, 0.0)

    def turn(self, name: str, candidates: Sequence[Candidate], seeds: range) -> dict[str, float]:
        """Runs candidates beside today's setting, and ranks all that ran."""
        found = self.found
        results = self.laboratory.run(name, [Candidate(), *candidates], self.points, seeds)
        parts = [*([found.rows] if len(found.rows) else []), table(results, self.question)]
        found.rows = pl.concat(parts).unique(["candidate", "point", "seed"], maintain_order=True)
        return ranking(found.rows, self.question)

    def fitting(self, candidates: Sequence[Candidate], round_: int, seeds: int) -> list[Candidate]:
        """The first candidates, as many as there is time for, and always some."""
        room = self.laboratory.fitting(self.left_s(round_), len(self.points), seeds) - 1
        kept = list(candidates)[: max(room, FEWEST_SETTINGS)]
        if len(kept) < len(candidates):
            self.found.shortened.append(
                f"round {round_} of the search had {len(kept)} of "
                f"{counted(len(candidates), 'setting')}"
            )
        return kept


def race(laboratory: Laboratory) -> Race:
    """Finds the candidates that are worth an examination. Every stage looks at the time that is
    left: where it is short, the search looks at fewer paths, and later rounds at fewer candidates.
    """
    question = laboratory.question
    points, seed = question.points(), question.seed
    # Some paths tell whether there is time at all, and a run of each how long the others take.
    laboratory.time(points[: laboratory.threads], seed)
    if (needs_s := _least_s(laboratory)) > ENOUGH * max(laboratory.left_s(), 0.0):
        return Race(needs_s=needs_s)
    laboratory.time(points, seed)
    course = _Course(laboratory, points, laboratory.left_s())
    found = course.found
    first = _first(question)
    while len(course.points) > FEWEST_PATHS and len(first) + 1 > laboratory.fitting(
        course.left_s(0), len(course.points), 1
    ):
        course.points = _half(course.points, question.over)
    if len(course.points) < len(points):
        found.shortened.append(f"the search looked at {len(course.points)} of {len(points)} paths")
    alive, ranked = _round_of_all(course, first, seed)
    if not alive:
        return found
    if found.rows["goodput"].max() == 0:
        raise ConfigError(
            f"nothing arrives over this path within {question.plan['duration']}, today or with any "
            "setting that was tried, so there is nothing to compare; give a longer `duration` if "
            "the path is slow"
        )
    found.singles = _singles(alive, ranked)
    found.promising = [it for it in found.singles.values() if ranked[it.name] < ranked[TODAY]]
    best, combined = _best(alive, ranked, SURVIVORS[0]), _combined(found.singles, ranked)
    # The best two first: they go on, whatever the time.
    alive = list(dict.fromkeys([*best[:2], *combined, *best[2:]]))
    for round_, name in ((1, "race-2"), (2, "race-3")):
        seed += SEEDS[round_ - 1]
        seeds = SEEDS[round_] if found.is_random else 1
        alive = course.fitting(alive, round_ + 1, seeds)
        names = [TODAY, *(one.name for one in alive)]
        course.turn(name, alive, range(seed, seed + seeds))
        found.rows = found.rows.filter(pl.col("candidate").is_in(names))
        found.rounds.append((len(alive), seeds))
        ranked = ranking(found.rows, question)
        if round_ == 2:
            break
        if course.left_s(3) <= 0:
            found.shortened.append("the search had no third round")
            break
        # A part of a candidate that does as well takes its place: after each of the best two, its
        # parts, since what comes last goes first where time is short.
        best = _best(alive, ranked, SURVIVORS[1])
        parts = {one: [one.without(it.key) for it in one.settings] for one in best[:2]}
        ordered = [it for one in best for it in (one, *parts.get(one, ())) if it.settings]
        alive = list(dict.fromkeys(ordered))
    found.finalists = _finalists(alive, ranked, found.rows, question)
    if found.barred is not None and found.barred not in found.finalists:
        # Second, so that there is time for it whenever there is for two.
        found.finalists.insert(1, found.barred)
    return found


def _least_s(laboratory: Laboratory) -> float:
    """How long the shortest search that tells anything takes: some settings over some paths with
    two seeds, then the best of them over all paths with the fewest seeds of the evidence.
    """
    question = laboratory.question
    paths = len(question.points())
    fresh = len(question.fresh())
    searched = (1 + FEWEST_SETTINGS) * min(paths, FEWEST_PATHS) * SEEDS[0]
    examined = 2 * fresh * (1 if fresh >= FEWEST else FEWEST)
    return laboratory.each_s * (searched + examined)


def _half(points: list[dict[str, Any]], over: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every second combination of lists. Of Halton's sequence the first half is as even as the
    whole, and every second point is not.
    """
    return points[::2] if ranges.are_combinations(over) else points[: len(points) // 2]


def _round_of_all(
    course: _Course, first: Sequence[Candidate], seed: int
) -> tuple[list[Candidate], dict[str, float]]:
    """The first round: every candidate with one seed, the better ones with another. What is left,
    with its ranks.
    """
    found, ranked = course.found, dict[str, float]()
    tried: list[Candidate] = []
    one = range(seed, seed + 1)
    for number, chunk in enumerate(_chunks(first, course.laboratory.short_buffers)):
        if tried and course.left_s(0) <= 0:
            found.left_out += [it.name for it in chunk]
            continue
        ranked = course.turn(f"race-1-{number}", chunk, one)
        tried += chunk
    tuned = _tuned(course.question, tried, ranked)
    if tuned and course.left_s(0) <= 0:
        found.left_out += [it.name for it in tuned]
    elif tuned:
        ranked = course.turn("race-1-parameters", tuned, one)
        found.parameters = [it.name for it in tuned]
        tried += tuned
    found.rounds.append((len(tried), 1))
    found.barred = _barred(tried, found.rows, course.question)
    own = [*_best(tried, ranked, FIRST_SURVIVORS), *_singles(tried, ranked).values()]
    alive = course.fitting(list(dict.fromkeys(own)), 1, SEEDS[0] - 1)
    course.turn("race-1-again", alive, range(seed + 1, seed + SEEDS[0]))
    names = [TODAY, *(it.name for it in alive)]
    found.rows = found.rows.filter(pl.col("candidate").is_in(names))
    found.rounds.append((len(alive), SEEDS[0]))
    found.is_random = differs(found.rows, course.question)
    return alive, ranking(found.rows, course.question)


def regrets(rows: pl.DataFrame, question: Question) -> dict[str, float]:
    """The maximum regret of each candidate over all paths, today's setting included."""
    own = gains(rows, question.goal, TODAY)
    means = own.group_by("candidate", "point", maintain_order=True).agg(pl.col("gain").mean())
    points = means.select("point").unique(maintain_order=True)
    today = points.with_columns(candidate=pl.lit(TODAY), gain=pl.lit(0.0))
    means = pl.concat([means, today.select(means.columns)])
    best = means.group_by("point", maintain_order=True).agg(pl.col("gain").max().alias("best"))
    behind = means.join(best, on="point", maintain_order="left").with_columns(
        regret=pl.col("best") - pl.col("gain")
    )
    worst = behind.group_by("candidate", maintain_order=True).agg(
        pl.col("regret").max(), pl.col("gain").mean()
    )
    # Of equal regrets, the better mean.
    return {name: regret - 1e-6 * gain for name, regret, gain in worst.iter_rows()}


def differs(rows: pl.DataFrame, question: Question) -> bool:
    """Whether results vary with the seed, for any setting over the same path."""
    names = [goal.name for goal in question.goals]
    several = rows.group_by("candidate", "point").agg(pl.col(name).n_unique() for name in names)
    return any(max(several[name].to_list(), default=0) > 1 for name in names)


def ranking(rows: pl.DataFrame, question: Question) -> dict[str, float]:
    """The regrets, where what breaks a limit comes after all that keep every limit."""
    found = regrets(rows, question)
    beyond = worst(rows, question.limits)
    step = BROKEN if question.goal.is_ratio else BROKEN_POINTS
    return {
        name: regret + (step * _breach(beyond[name]) if beyond.get(name, 0) > 0 else 0)
        for name, regret in found.items()
    }


def _breach(beyond: float) -> float:
    """From 1 to 2: the further beyond a limit, the later."""
    return 1 + beyond / (1 + beyond)


def _barred(tried: Sequence[Candidate], rows: pl.DataFrame, question: Question) -> Candidate | None:
    """What is best of all without the limits, and better than today's, where it breaks one."""
    if not question.limits:
        return None
    beyond, behind = worst(rows, question.limits), regrets(rows, question)
    best = min(tried, key=lambda one: behind[one.name])
    return best if beyond[best.name] > 0 and behind[best.name] < behind[TODAY] else None


def _tuned(
    question: Question, tried: Sequence[Candidate], ranked: Mapping[str, float]
) -> list[Candidate]:
    """The congestion control that does best alone, or today's where none does better, with other
    parameters.
    """
    several = question.settings.get("cc", [])
    if question.asked.get("change") or not several:
        return []
    # Without its parameters, today's algorithm is the same as it was.
    today = several[0].today
    own = [one for one in tried if [it.key for it in one.settings] == ["cc"]]
    best = min(own, key=lambda one: ranked[one.name], default=None)
    name = today
    if best is not None and ranked[best.name] < ranked[TODAY]:
        name = best.settings[0].value
    if not isinstance(name, str):
        return []
    return [Candidate((one,)) for one in parameters(name, today)]


def _first(question: Question) -> list[Candidate]:
    """Each value of each setting alone; buffers of both ends together too, since the smaller one
    counts.
    """
    found = [Candidate((one,)) for several in question.settings.values() for one in several]
    if {"wmem", "rmem"} <= question.settings.keys():
        for size in BUFFERS:
            both = [
                one
                for key in ("wmem", "rmem")
                for one in question.settings[key]
                if one.value == size
            ]
            if len(both) == 2:
                found.append(Candidate(tuple(both)))
    return found


FIRST_OF_EACH = 5
"""So many values of a setting come before the next setting, and its other values come last."""


def _chunks(
    candidates: Sequence[Candidate], short_buffers: AbstractSet[str]
) -> list[list[Candidate]]:
    """The candidates in parts that are run one after the other, those of one setting together.
    Where time is short, the last are not tried: so buffers that hold less than the path come first,
    and whole, and of long lists only the first values come before other settings.
    """
    found: dict[str, list[Candidate]] = {}
    for one in candidates:
        found.setdefault(" ".join(it.key for it in one.settings), []).append(one)
    limiting = [one for key, one in found.items() if short_buffers & {*key.split()}]
    others = [one for one in found.values() if one not in limiting]
    first = [one[:FIRST_OF_EACH] for one in others]
    rest = [more for one in others if (more := one[FIRST_OF_EACH:])]
    return [*limiting, *first, *rest]


def _best(
    candidates: Sequence[Candidate], ranked: dict[str, float], number: int
) -> list[Candidate]:
    return sorted(candidates, key=lambda one: (ranked[one.name], cost(one)))[:number]


def _finalists(
    candidates: Sequence[Candidate],
    ranked: dict[str, float],
    rows: pl.DataFrame,
    question: Question,
) -> list[Candidate]:
    """The preferred one of those that do as well as the best, then its parts, so that each setting
    in it is put to the test; then those with the least regrets, but for what does exactly the same.
    """
    ordered = _best(candidates, ranked, len(candidates))
    if not ordered:
        return []
    goal = question.goal
    as_gain = {one: _as_gain(-ranked[one.name], goal) for one in ordered}
    near = [one for one in ordered if goal.behind(as_gain[one], as_gain[ordered[0]]) <= 1]
    first, _ = preferred(near, rows, question.goals)
    parts = [first.without(it.key) for it in first.settings if len(first.settings) > 1]
    others = [one for one in ordered if not _does_the_same(one, first, rows, goal)]
    return list(dict.fromkeys([first, *parts, *others]))[: SURVIVORS[2]]


def _does_the_same(one: Candidate, other: Candidate, rows: pl.DataFrame, goal: Goal) -> bool:
    """Whether two candidates have the same number in every run."""
    columns = ["point", "seed", goal.name]
    mine, its = (
        rows.filter(pl.col("candidate") == it.name).select(columns).sort(columns)
        for it in (one, other)
    )
    return mine.equals(its)


def _as_gain(value: float, goal: Goal) -> float:
    return math.expm1(value) if goal.is_ratio else value


def _singles(candidates: Sequence[Candidate], ranked: dict[str, float]) -> dict[str, Candidate]:
    """By setting, its best value alone."""
    found: dict[str, Candidate] = {}
    for one in _best(candidates, ranked, len(candidates)):
        found.setdefault(" and ".join(it.key for it in one.settings), one)
    return found


def _combined(singles: Mapping[str, Candidate], ranked: Mapping[str, float]) -> list[Candidate]:
    """The best values of several settings together, where each is no worse than today's alone."""
    today = ranked[TODAY]
    good = [one for one in singles.values() if ranked[one.name] <= today + NEAR][:4]
    found = []
    for several in (*combinations(good, 2), *combinations(good, 3)):
        together = several[0]
        for other in several[1:]:
            for setting in other.settings:
                together = together.with_setting(setting)
        found.append(together)
    return found
