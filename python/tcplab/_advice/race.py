"""The search: candidates race over the same paths with the same seeds, and the better ones go on.

The candidate with the least regret wins: on the path where it falls furthest behind the best of
all candidates, it falls behind least. Rounds have different seeds, and the evidence has none of
them, so that a candidate which has won by luck does not win again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import polars as pl

from tcplab._advice.evidence import NEAR, simplest
from tcplab._advice.goals import Goal
from tcplab._advice.levers import BUFFERS, TODAY, Candidate, cost
from tcplab._advice.question import Question
from tcplab._advice.stages import Laboratory, gains, table

SEEDS = (2, 3, 5)
"""How many seeds each round has."""

KEPT = (8, 4, 3)
"""How many candidates each round leaves."""

FOR_SEARCH = 0.45
"""The share of the budget that the search may take."""


@dataclass
class Race:
    """The result of a search."""

    finalists: list[Candidate] = field(default_factory=list)
    """The best first."""
    singles: dict[str, Candidate] = field(default_factory=dict)
    """By setting, the best value of it alone."""
    rounds: list[tuple[int, int]] = field(default_factory=list)
    """Of each round, how many candidates and seeds it had."""
    left_out: list[str] = field(default_factory=list)
    """Settings that there was no time for."""
    rows: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The runs of those that were left to the end, and of today's setting."""


def race(laboratory: Laboratory) -> Race:
    """Finds the candidates that are worth an examination."""
    question = laboratory.question
    points, seed = question.points(), question.seed
    # A run of each path tells how long the others take.
    laboratory.time(points, seed)
    enough = laboratory.left_s() * (1 - FOR_SEARCH)
    found = Race()

    def turn(name: str, candidates: Sequence[Candidate], seeds: range) -> None:
        results = laboratory.run(name, [Candidate(), *candidates], points, seeds)
        parts = [*([found.rows] if len(found.rows) else []), table(results, question)]
        found.rows = pl.concat(parts).unique(["candidate", "point", "seed"], maintain_order=True)

    alive: list[Candidate] = []
    for number, chunk in enumerate(_chunks(_first(question))):
        if alive and laboratory.left_s() < enough:
            found.left_out += [one.name for one in chunk]
            continue
        turn(f"race-1-{number}", chunk, range(seed, seed + SEEDS[0]))
        alive += chunk
    found.rounds.append((len(alive), SEEDS[0]))
    ranked = regrets(found.rows, question)
    found.singles = _singles(alive, ranked)
    best = _best(alive, ranked, KEPT[0])
    alive = list(dict.fromkeys([*best, *_combined(found.singles, ranked)]))
    for round_, name in ((1, "race-2"), (2, "race-3")):
        seed += SEEDS[round_ - 1]
        names = [TODAY, *(one.name for one in alive)]
        turn(name, alive, range(seed, seed + SEEDS[round_]))
        found.rows = found.rows.filter(pl.col("candidate").is_in(names))
        found.rounds.append((len(alive), SEEDS[round_]))
        ranked = regrets(found.rows, question)
        if round_ == 2 or laboratory.left_s() < enough:
            break
        # A part of a candidate that does as well takes its place.
        parts = [one.without(it.key) for one in _best(alive, ranked, 2) for it in one.settings]
        parts = [one for one in parts if one.settings]
        alive = list(dict.fromkeys([*_best(alive, ranked, KEPT[1]), *parts]))
    found.finalists = _simplest(alive, ranked, KEPT[2], question.goal)
    return found


def regrets(rows: pl.DataFrame, question: Question) -> dict[str, float]:
    """By candidate, today included, how far it falls behind the best where it does so most."""
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


def _chunks(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """The candidates in parts that are run one after the other: those of one setting together."""
    found: dict[str, list[Candidate]] = {}
    for one in candidates:
        found.setdefault(" ".join(it.key for it in one.settings), []).append(one)
    return list(found.values())


def _best(
    candidates: Sequence[Candidate], ranked: dict[str, float], number: int
) -> list[Candidate]:
    return sorted(candidates, key=lambda one: (ranked[one.name], cost(one)))[:number]


def _simplest(
    candidates: Sequence[Candidate], ranked: dict[str, float], number: int, goal: Goal
) -> list[Candidate]:
    """The simplest that does as well as the best, then those with the least regrets."""
    ordered = _best(candidates, ranked, len(candidates))
    if not ordered:
        return []
    first = simplest({one: _as_gain(-ranked[one.name], goal) for one in ordered}, goal)
    return [first, *[one for one in ordered if one != first]][:number]


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
    good = [one for one in singles.values() if ranked[one.name] <= today + NEAR][:5]
    found = []
    for several in (*combinations(good, 2), *combinations(good[:4], 3)):
        together = several[0]
        for other in several[1:]:
            for setting in other.settings:
                together = together.with_setting(setting)
        found.append(together)
    return found
