"""The answer: what the stages of a search say together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tcplab import _core
from tcplab._advice import causes, sensitivity
from tcplab._advice.evidence import Gain, Preference, by_point, found, harm, preferred
from tcplab._advice.folder import ADVICE
from tcplab._advice.goals import ASKED, OPEN
from tcplab._advice.levers import TODAY, Candidate, Setting
from tcplab._advice.limit_checks import BREAKS, LimitCheck, broken_at, kept
from tcplab._advice.question import Question
from tcplab._advice.stages import short, swept, table
from tcplab._results.results import Results
from tcplab._store.manifest import stored

CHANGE, NOTHING, UNDECIDED = "change", "nothing", "cannot be told"
"""Verdicts: change settings; nothing is distinguishably better; there was no time for some of the
settings, or for most transfers to end.
"""

UNCONFIRMED, UNFINISHED = "not confirmed", "unfinished"
"""Verdicts: the kernel does not confirm the simulator; the search was stopped before the evidence.
"""

STOPPED = "Stopped before its end: what is said rests on the runs until then."
"""The note of a search that was stopped."""

FORMAT = 1
"""Of the JSON; it changes when what a program relies on does."""


@dataclass
class Log:
    """The decisions of a search that the results of its stages do not show."""

    finalists: list[Candidate] = field(default_factory=list)
    singles: dict[str, Candidate] = field(default_factory=dict)
    rounds: list[tuple[int, int]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    barred: str | None = None
    """What did best in the search but for a limit that it broke."""
    parameters: list[str] = field(default_factory=list)
    """Congestion controls with other parameters that the search tried."""
    stages: list[str] = field(default_factory=list)
    """The stages that have results, each in a folder of this name."""
    seeds: dict[str, int] = field(default_factory=dict)
    """How many seeds stages were to have: where time is short, they have fewer."""
    backend: str | None = None
    """The backend that confirmed the answer, like "Linux 6.12"."""
    notes: list[str] = field(default_factory=list)
    needs_s: float | None = None
    """How long a search takes at least, where the budget was far too short for any."""

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "finalists": [_plain(one) for one in self.finalists],
            "singles": {name: _plain(one) for name, one in self.singles.items()},
            "rounds": [list(one) for one in self.rounds],
            "left_out": self.left_out,
            "barred": self.barred,
            "parameters": self.parameters,
            "stages": self.stages,
            "seeds": self.seeds,
            "backend": self.backend,
            "notes": self.notes,
            "needs_s": self.needs_s,
        }

    @staticmethod
    def of(plain: Mapping[str, Any]) -> Log:
        """From JSON."""
        return Log(
            [_candidate(one) for one in plain["finalists"]],
            {name: _candidate(one) for name, one in plain["singles"].items()},
            [(one[0], one[1]) for one in plain["rounds"]],
            list(plain["left_out"]),
            plain.get("barred"),
            list(plain["parameters"]),
            list(plain["stages"]),
            dict(plain.get("seeds", {})),
            plain["backend"],
            list(plain["notes"]),
            plain.get("needs_s"),
        )


def _plain(candidate: Candidate) -> list[dict[str, Any]]:
    return [
        {"key": one.key, "value": one.value, "side": one.side, "today": one.today}
        for one in candidate.settings
    ]


def _candidate(plain: Sequence[Mapping[str, Any]]) -> Candidate:
    return Candidate(
        tuple(Setting(it["key"], it["value"], it["side"], it["today"]) for it in plain)
    )


@dataclass(frozen=True)
class Advice:
    """Which settings are best, by how much, how sure that is, and at whose cost."""

    question: Question
    log: Log
    verdict: str
    """`change`, `nothing`, `cannot be told`, `not confirmed` or `unfinished`."""
    candidate: Candidate
    """The advised settings; none where nothing is to change."""
    gains: list[Gain]
    """Of everything that was examined with fresh seeds, for each goal."""
    kernel: list[Gain]
    """The same on the kernel."""
    harm: dict[str, Any] | None
    """The goodput that a CUBIC flow beside it loses by the change, and how its latency changes."""
    waits: list[dict[str, Any]]
    """The sender's waiting times by cause, in percent: with today's setting and the advised one."""
    cells: list[dict[str, Any]]
    """The map: for round trips and losses, what does best."""
    paths: list[dict[str, Any]]
    """For each path of the range, what is gained there."""
    open: dict[str, tuple[int, int]]
    """By setting, how many transfers or pages had not ended with the run, and of how many."""
    limits: list[LimitCheck] = field(default_factory=list)
    """Whether each setting that was examined keeps each limit."""
    preference: Preference | None = None
    """Why it is advised, where another one gains more."""

    def is_cut_short(self) -> bool:
        """Whether more than half of the transfers or pages had not ended with the run, with every
        setting that was examined.
        """
        return is_cut_short(self.open)

    def tried(self) -> int:
        """How many settings the search tried."""
        return self.log.rounds[0][0] if self.log.rounds else 0

    def has_left_out(self) -> bool:
        """Whether the search had no time for some settings."""
        return bool(self.log.left_out)

    def breaches(self) -> list[LimitCheck]:
        """The limits that today's setting breaks."""
        return [one for one in self.broken() if one.candidate == TODAY]

    def broken(self, backend: str = "sim") -> list[LimitCheck]:
        """The limits that settings break, on `sim` or on the kernel."""
        return [
            one
            for one in self.limits
            if one.verdict in BREAKS and (one.backend == "sim") == (backend == "sim")
        ]

    def seeds(self) -> dict[str, int]:
        """By stage, how many seeds it has; the evidence, for what is advised."""
        own = [one for one in self.gains if one.candidate == self.candidate.name]
        found = {
            "evidence": min((one.seeds for one in own or self.gains), default=0),
            "confirmation": min((one.seeds for one in self.kernel), default=0),
            BESIDE: 0 if self.harm is None else int(self.harm["seeds"]),
        }
        return {stage: number for stage, number in found.items() if number}

    def delay_beside(self) -> Gain | None:
        """The change of the latency of the flow beside it."""
        told = None if self.harm is None else self.harm["latency"]
        return None if told is None else Gain(**told)

    def gain(self, goal: str | None = None, backend: str = "sim") -> Gain | None:
        """The gain of what is advised."""
        name = goal or self.question.goal.name
        rows = self.gains if backend == "sim" else self.kernel
        for one in rows:
            if one.candidate == self.candidate.name and one.goal == name:
                return one
        return None

    def alone(self) -> list[Gain]:
        """The best value of each setting alone whose gain is surely not worth a change; that of
        some is surely a loss.
        """
        names = {one.name for one in self.log.singles.values()} - {self.candidate.name}
        name = self.question.goal.name
        return [
            one
            for one in self.gains
            if one.goal == name
            and one.candidate in names
            and one.high is not None
            and one.high < self.question.goal.worth
        ]

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        from tcplab._advice.words import sentences  # noqa: PLC0415 (it is made of this module)

        return {
            "format": FORMAT,
            "version": _core.__version__,
            "verdict": self.verdict,
            "goal": self.question.goal.name,
            "advised": _plain(self.candidate),
            "says": sentences(self),
            "gains": [one.plain() for one in self.gains],
            "kernel": [one.plain() for one in self.kernel],
            "limits": [one.plain() for one in self.limits],
            "preference": None if self.preference is None else self.preference.plain(),
            "harm": self.harm,
            "waits": self.waits,
            "map": self.cells,
            "paths": self.paths,
            "unfinished": {name: list(one) for name, one in self.open.items()},
            "search": self.log.plain(),
        }


def concluded(question: Question, folder: Path, log: Log) -> Advice:
    """The conclusions from the results of all stages. Equal results give equal advice."""
    evidence = rows_of([EVIDENCE, REFINEMENT], question, folder, log.stages)
    confirming = rows_of(["confirmation"], question, folder, log.stages)
    gains = (
        found(evidence, question.goals, "sim", max(len(log.finalists), 1))
        if evidence is not None
        else []
    )
    backend = log.backend or "linux"
    kernel = found(confirming, question.goals, backend) if confirming is not None else []
    limits = kept(evidence, question.limits, "sim") if evidence is not None else []
    if confirming is not None:
        limits += kept(confirming, question.limits, backend)
    several = _contenders(question, log, gains, limits)
    candidate, preference = Candidate(), None
    if several and evidence is not None:
        candidate, preference = preferred(several, evidence, question.goals)
    ends = _ends(evidence) if evidence is not None else {}
    verdict = _verdict(question, log, candidate, [*gains, *kernel], limits)
    if verdict == NOTHING and (log.left_out or is_cut_short(ends)):
        verdict = UNDECIDED
    loss = None
    if "beside" in log.stages and candidate.settings:
        loss = harm_in(stored(folder / "beside"), question, candidate)
    waits = causes.shares(stored(folder / "why")) if "why" in log.stages else []
    cells: list[dict[str, Any]] = []
    if "map" in log.stages:
        mapped = stored(folder / "map")
        points = _points(question, mapped)
        told = table(mapped, question)
        beyond = broken_at(told, question.limits)
        for cell in by_point(told, question.goal):
            is_out = (cell["candidate"], cell["point"]) in beyond
            rtt, share = points[cell.pop("point")]
            cells.append(
                {sensitivity.RTT: rtt, sensitivity.LOSS: share, **cell, sensitivity.BREAKS: is_out}
            )
        cells = _with_evidence(cells, gains, question)
    paths: list[dict[str, Any]] = []
    if question.over and evidence is not None and candidate.settings:
        told = evidence.filter(pl.col("candidate").is_in([TODAY, candidate.name]))
        paths = by_point(told, question.goal)
    return Advice(
        question, log, verdict, candidate, gains, kernel, loss, waits, cells, paths, ends, limits,
        preference,
    )  # fmt: skip


def rows_of(
    stages: Sequence[str], question: Question, folder: Path, done: Sequence[str]
) -> pl.DataFrame | None:
    """The runs of those of the stages that are done."""
    found = [table(stored(folder / one), question) for one in stages if one in done]
    return pl.concat(found) if found else None


def is_cut_short(ends: Mapping[str, tuple[int, int]]) -> bool:
    """Whether more than half of the transfers had not ended, with every setting."""
    several = ends.values()
    return any(of for _, of in several) and all(2 * left > of for left, of in several)


def _ends(rows: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """By setting, how many transfers had not ended, and of how many."""
    if OPEN not in rows.columns:
        return {}
    sums = rows.group_by("candidate", maintain_order=True).agg(
        pl.col(OPEN).sum(), pl.col(ASKED).sum()
    )
    return {name: (int(left), int(number)) for name, left, number in sums.iter_rows()}


def has_flow_beside(question: Question) -> bool:
    """Whether a flow of the experiment has the name of the one that tells the harm to others, which
    then cannot be measured.
    """
    return any(flow["name"] == BESIDE for flow in question.plan["flows"])


def harm_in(results: Results, question: Question, candidate: Candidate) -> dict[str, Any] | None:
    """The goodput that a CUBIC flow beside a candidate loses, by results that have both."""
    own = results.flows.filter(pl.col("flow") == BESIDE).select(
        "run",
        pl.col("goodput_mbit_s").fill_null(0.0).alias("beside"),
        pl.col("rtt_mean_ms").alias("delay_beside"),
    )
    rows = table(results, question).join(own, on="run", maintain_order="left")
    told = harm(rows, candidate.name)
    if told is not None:
        told["lasts"] = WHILE in swept(results) and WHILE not in question.over
    return told


EVIDENCE = "evidence"
"""The stage that examines the finalists."""

REFINEMENT = "refinement"
"""The stage with more seeds of the advised setting."""

WHILE = "duration"
"""The key of paths by which a run is as long as its transfers."""


BESIDE = "beside"
"""The flow of CUBIC that tells what others lose."""


def _points(question: Question, mapped: Any) -> dict[str, tuple[float, float]]:
    """By the name of a point of the map, its round trip and losses."""
    grid = sensitivity.grid(question)
    at = sensitivity.labels(question, grid)
    names = swept(mapped)
    found = {}
    for point, label in zip(grid, at, strict=True):
        texts = [f"{short(name)} {_text(point[name])}" for name in names]
        found[", ".join(texts)] = label
    return found


def _with_evidence(
    cells: Sequence[dict[str, Any]], gains: Sequence[Gain], question: Question
) -> list[dict[str, Any]]:
    """The map, with what the evidence says of the path itself: it has more runs."""
    own = {one.candidate: one for one in gains if one.goal == question.goal.name}
    base, loss = sensitivity.own(question)
    return [
        cell | {"gain": told.gain, "low": told.low, "high": told.high, "n": told.n}
        if abs(cell[sensitivity.RTT] - base) < 1e-6 * base
        and abs(cell[sensitivity.LOSS] - loss) < 1e-12
        and (told := own.get(cell["candidate"])) is not None
        else cell
        for cell in cells
    ]


def _text(value: Any) -> str:
    """A value as tables of results have it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _contenders(
    question: Question, log: Log, gains: Sequence[Gain], limits: Sequence[LimitCheck]
) -> list[Candidate]:
    """The finalists that may be advised: those that break no limit and are surely better in the
    goal. Where there is none, and today's setting breaks a limit: those that break none, and
    surely do better in each goal whose limit is broken today.
    """
    told = [one for one in limits if one.backend == "sim" and one.verdict in BREAKS]
    broken = {one.candidate for one in told}
    keeping = [one for one in log.finalists if one.name not in broken]
    better = {(one.candidate, one.goal) for one in gains if one.is_better}
    goal = question.goal
    worth = {one.candidate for one in gains if one.goal == goal.name and one.gain >= goal.worth}
    several = [one for one in keeping if (one.name, goal.name) in better and one.name in worth]
    if several or TODAY not in broken:
        return several
    texts = {one.limit for one in told if one.candidate == TODAY}
    to_mend = [one.goal.name for one in question.limits if one.text in texts]
    return [one for one in keeping if all((one.name, name) in better for name in to_mend)]


def _verdict(
    question: Question,
    log: Log,
    candidate: Candidate,
    gains: Sequence[Gain],
    limits: Sequence[LimitCheck],
) -> str:
    """The verdict on a candidate, by the gains on `sim` and on the kernel."""
    goal = question.goal.name
    own = [one for one in gains if one.goal == goal]
    if not own:
        return UNFINISHED if log.finalists or not log.rounds else NOTHING
    if not candidate.settings:
        return NOTHING
    told = [one for one in own if one.candidate == candidate.name]
    was_better = any(one.is_better for one in told if one.backend == "sim")
    is_denied = any(
        one.low is not None and not one.is_better for one in told if one.backend != "sim"
    )
    is_broken = any(one.candidate == candidate.name and one.verdict in BREAKS for one in limits)
    return UNCONFIRMED if is_broken or (was_better and is_denied) else CHANGE


def read(folder: Path, question: Question) -> Advice:
    """Advice that is stored, concluded anew from its results."""
    plain = json.loads((folder / ADVICE).read_text(encoding="utf-8"))
    return concluded(question, folder, Log.of(plain["search"]))
