"""From a question to its answer: the search, the evidence, the kernel's word, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tcplab import _core
from tcplab._advice import causes, sensitivity
from tcplab._advice.advice import (
    BESIDE,
    EVIDENCE,
    REFINEMENT,
    STOPPED,
    WHILE,
    Advice,
    Log,
    concluded,
    has_flow_beside,
    rows_of,
)
from tcplab._advice.evidence import FRESH, MOST_SEEDS, SEEDS, Gain, seeds_each, seeds_needed
from tcplab._advice.goals import TIMES
from tcplab._advice.levers import TODAY, Candidate
from tcplab._advice.question import Question
from tcplab._advice.race import differs, race
from tcplab._advice.sensitivity import milliseconds
from tcplab._advice.stages import Laboratory, table
from tcplab._results.results import Results
from tcplab._text.english import counted, were
from tcplab.statistics import FEWEST

BUDGET_S = 55.0

WHY, MAP = "why", "map"

ALSO = (BESIDE, WHY, MAP)
"""The optional stages."""


@dataclass
class _Search:
    """A search under way."""

    laboratory: Laboratory
    say: Callable[[str], object]
    log: Log = field(default_factory=Log)
    rows: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The runs of the search."""
    seeds: range = range(0)
    """The seeds of the evidence."""
    is_random: bool = True
    """Whether seeds make a difference."""
    promising: list[Candidate] = field(default_factory=list)
    """The single settings that did better than today's in the search."""

    @property
    def question(self) -> Question:
        return self.laboratory.question

    def conclude(self) -> Advice:
        """The conclusions from the results so far."""
        return concluded(self.question, self.laboratory.folder, self.log)

    @contextmanager
    def stage(self, name: str, words: str) -> Iterator[None]:
        """A stage, whose results count even if it is stopped."""
        self.say(words)
        if name not in self.log.stages:
            self.log.stages.append(name)
        try:
            yield
        except KeyboardInterrupt:
            if not (self.laboratory.folder / name / "runs.json").exists():
                self.log.stages.remove(name)
            raise

    def cost_s(self, runs: float) -> float:
        """How long so many runs take."""
        return runs * self.laboratory.each_s

    def has_time(self, runs: float, what: str) -> bool:
        """Whether so many runs fit into what is left of the budget; if not, says so."""
        cost, left = self.cost_s(runs), self.laboratory.left_s()
        if cost <= left:
            return True
        self.log.notes.append(
            f"Not done within the budget: {what}, about {max(cost - max(left, 0), 1):.0f} s more."
        )
        return False

    def shortened(self, what: str) -> None:
        """Says what was shortened."""
        self.log.notes.append(f"Shortened to keep to the budget: {what}.")


def advised(
    laboratory: Laboratory,
    *,
    backend: str | None = None,
    also: Sequence[str] = ALSO,
    notes: Sequence[str] = (),
    say: Callable[[str], object] = lambda _: None,
) -> tuple[Advice, bool]:
    """Searches, examines and confirms; and whether it was stopped before its end.

    `also` names the optional stages, in this order: the harm to other flows, which comes before the
    kernel; the reason for the gain, the single settings, the map. Single settings come before all
    of these where no finalist is better. Every stage keeps its results in a folder of its own, so
    that the same call resumes a stopped one; and every stage looks at the time that is left, and
    does less where that is short.
    """
    search = _Search(laboratory, say, Log(notes=list(notes)))
    try:
        _search(search)
        _examine(search)
        singles_decide = not search.conclude().candidate.settings
        if singles_decide:
            _promote(search)
        _refine(search)
        if BESIDE in also:
            _beside(search)
        _confirm(search, backend)
        if WHY in also:
            _explain(search)
        if not singles_decide:
            _single(search)
        if MAP in also:
            _map(search)
    except KeyboardInterrupt:
        search.log.notes.append(STOPPED)
        return search.conclude(), True
    return search.conclude(), False


def _search(search: _Search) -> None:
    search.say("search   candidates race over the same paths with the same seeds")
    found = race(search.laboratory)
    log = search.log
    log.finalists, log.singles = found.finalists, found.singles
    log.rounds, log.left_out = found.rounds, found.left_out
    log.parameters = found.parameters
    log.barred = None if found.barred is None else found.barred.name
    for what in found.shortened:
        search.shortened(what)
    log.needs_s = found.needs_s
    search.rows = found.rows
    search.is_random = found.is_random
    search.promising = found.promising


PAIR = 2
"""So many seeds show that nothing is random."""

FOR_EVIDENCE = 0.5
"""The share of the time that the search leaves which the evidence may take."""


def _examine(search: _Search) -> None:
    """Runs the finalists with fresh seeds."""
    laboratory, question, log = search.laboratory, search.question, search.log
    if not log.finalists:
        return
    points = question.fresh()
    number = wanted = seeds_each(len(points))
    if len(points) == 1:
        number = wanted = seeds_needed(search.rows, question.goal, log.finalists[0].name)
    least = 1 if len(points) >= FEWEST else FEWEST
    time_s = FOR_EVIDENCE * laboratory.left_s()
    several = list(log.finalists)

    def room(seeds: int) -> int:
        return laboratory.fitting(time_s, len(points), seeds) - 1

    while number > least and room(number) < len(several):
        number -= 1
    if room(number) < len(several):
        # The one that did best in the search is examined in any case.
        several = several[: max(room(number), 1)]
        if len(several) < len(log.finalists):
            search.shortened(
                f"{len(several)} of {counted(len(log.finalists), 'finalist')} "
                f"{were(len(several))} examined"
            )
            log.finalists = several
    if search.is_random:
        # Settings that are not examined say nothing of those that are.
        own = [TODAY, *(one.name for one in {*several, *search.promising})]
        search.is_random = differs(search.rows.filter(pl.col("candidate").is_in(own)), question)
    first = question.seed + FRESH
    with search.stage("evidence", f"evidence {counted(len(several), 'setting')}, fresh seeds"):
        if not search.is_random:
            # Two seeds that are equal say as much as many.
            search.seeds = range(first, first + PAIR)
            results = laboratory.run("evidence", [Candidate(), *several], points, search.seeds)
            search.is_random = differs(table(results, question), question)
        if search.is_random:
            log.seeds["evidence"] = wanted
            search.seeds = range(first, first + number)
            laboratory.run("evidence", [Candidate(), *several], points, search.seeds)


FOR_SINGLES = 0.6
"""The share of the time left for the single settings, of which the map takes the rest."""


def _promote(search: _Search) -> None:
    """Single settings that did better than today's in the search become finalists, since none of
    the finalists is surely better.
    """
    examined = _single(search)
    search.log.finalists += [one for one in examined if one in search.promising]


def _single(search: _Search) -> list[Candidate]:
    """Runs the best value of each setting alone with the seeds of the evidence."""
    laboratory, question, log = search.laboratory, search.question, search.log
    singles = [one for one in log.singles.values() if one not in log.finalists]
    if not log.finalists or not singles:
        return []
    points = question.fresh()
    time_s = FOR_SINGLES * laboratory.left_s()
    fitting = laboratory.fitting(time_s, len(points), len(search.seeds))
    if fitting < len(singles):
        what = "an examination of each setting alone; what makes no difference is not said"
        if fitting < 1:
            log.notes.append(f"Not done within the budget: {what}.")
            return []
        search.shortened(
            f"{fitting} of {counted(len(singles), 'single setting')} {were(fitting)} examined, "
            "the best of the search"
        )
        singles = singles[:fitting]
    with search.stage(
        "evidence", f"evidence {counted(len(singles), 'single setting')}, the same seeds"
    ):
        several = [Candidate(), *log.finalists, *singles]
        laboratory.run("evidence", several, points, search.seeds)
    return singles


FOR_REFINEMENT = 0.25
"""The share of the time left for more seeds of the advised setting."""

PART = 0.25
"""An interval is to be no wider than this share of the gain."""


def _refine(search: _Search) -> None:
    """Runs the advised setting with more seeds, where the interval of its gain is wide."""
    laboratory, question = search.laboratory, search.question
    advice = search.conclude()
    if not advice.candidate.settings or len(points := question.fresh()) > 1:
        return
    had = len(search.seeds)
    fits = laboratory.fitting(FOR_REFINEMENT * laboratory.left_s(), 1, 2)
    more = min(_seeds_wanted(advice.gain(), had) - had, fits)
    if more > 0:
        seeds = range(search.seeds.stop, search.seeds.stop + more)
        with search.stage(REFINEMENT, f"evidence {counted(more, 'more seed')} of the advised one"):
            laboratory.run(REFINEMENT, [Candidate(), advice.candidate], points, seeds)


def _seeds_wanted(gain: Gain | None, least: int) -> int:
    """How many seeds make the interval of a gain no wider than a part of it, as far as those that
    there are can say.
    """
    if gain is None or gain.low is None or gain.high is None or not gain.gain:
        return least
    width, wanted = gain.high - gain.low, PART * abs(gain.gain)
    return int(min(max(math.ceil(gain.n * (width / wanted) ** 2), least), MOST_SEEDS))


FOR_KERNEL = 0.6
"""The share of the time left for the kernel."""

ROUNDS_OF_KERNEL = 3
"""How often the number of seeds is worked out again from the kernel's own runs."""

FEWEST_ON_KERNEL = 10
"""So many seeds the kernel has at least, on one path."""

KERNEL_COSTS = 4
"""A run on the kernel takes so many times as long as one on `sim`, about."""


def _confirm(search: _Search, backend: str | None) -> None:
    """Asks the kernel, where there is one."""
    laboratory, question, log = search.laboratory, search.question, search.log
    advice = search.conclude()
    if not advice.candidate.settings or backend == "sim":
        return
    from tcplab._run.kernels import kernels  # noqa: PLC0415 (few need it)

    if backend is None and not kernels():
        log.notes.append(
            "Not confirmed on the kernel, since none is built: `tcplab kernel build` takes some "
            "minutes, and the same command goes on from there."
        )
        return
    points = question.fresh()
    least = 1 if len(points) >= FEWEST else FEWEST
    expected_s = search.cost_s(2 * len(points) * least * KERNEL_COSTS)
    if backend is None and expected_s > 2 * laboratory.left_s():
        log.notes.append(
            f"Not confirmed on the kernel within the budget: that takes about {expected_s:.0f} s."
        )
        return
    pair = [Candidate(), advice.candidate]
    first = range(question.seed + FRESH, question.seed + FRESH + 1)
    try:
        question.experiment(pair, points, first).plans("linux")
    except _core.ConfigError as error:
        log.notes.append(f"Not confirmed on the kernel, which cannot run it: {_first(error)}.")
        return
    try:
        with search.stage("confirmation", "kernel   today's setting and the advised one"):
            one = laboratory.run("confirmation", pair, points, first, backend="linux")
            log.backend = f"Linux {one.plans[0].kernel}"
            run_s = float(one.runs["wall_s"].mean() or 0.0)  # type: ignore[arg-type]
            if not search.is_random:
                two = range(first.start, first.start + PAIR)
                one = laboratory.run("confirmation", pair, points, two, backend="linux")
                if not differs(table(one, question), question):
                    return
            wanted = seeds_each(len(points))
            if len(points) == 1:
                wanted = _seeds_wanted(advice.gain(), FEWEST_ON_KERNEL)
            pair_s = 2 * len(points) * max(run_s, 1e-3) / laboratory.threads
            fits = int(max(laboratory.left_s(), 0.0) / pair_s)
            if backend is None and fits < least - 1:
                raise _core.KernelError(
                    f"that takes about {(least - 1) * pair_s - laboratory.left_s():.0f} s more "
                    "than the budget has"
                )
            number = 0
            for _ in range(ROUNDS_OF_KERNEL):
                log.seeds["confirmation"] = wanted
                fits = int(FOR_KERNEL * max(laboratory.left_s(), 0.0) / pair_s)
                if number and (wanted <= number or not fits):
                    break
                number = min(max(number + fits, least), wanted)
                seeds = range(first.start, first.start + number)
                laboratory.run("confirmation", pair, points, seeds, backend="linux")
                if len(points) == 1:
                    # The kernel's runs may differ more from each other than those of `sim`.
                    wanted = _seeds_wanted(search.conclude().gain(backend="linux"), number)
    except (_core.KernelError, _core.RunError) as error:
        log.stages.remove("confirmation")
        log.backend = None
        log.notes.append(f"Not confirmed on the kernel: {_first(error)}.")


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _explain(search: _Search) -> None:
    advice, laboratory = search.conclude(), search.laboratory
    if not advice.candidate.settings:
        return
    if not any(flow["transport"]["kind"] == "tcp" for flow in search.question.mine()):
        return
    # A capture is written and read again.
    if laboratory.packets <= causes.MOST_PACKETS and search.has_time(6, "what brings the gain"):
        with search.stage(WHY, "why      what the sender waits for, before and after"):
            causes.explained(laboratory, advice.candidate)


BESIDE_JITTER_MS = 200.0
"""The flow beside starts within this time, or a tenth of the shortest run."""

BESIDE_COSTS = 1.5
"""A run with one more flow that fills the link takes so many times as long, about."""


def _beside(search: _Search) -> None:
    """Runs a flow of CUBIC beside today's setting and the advised one."""
    advice, question = search.conclude(), search.question
    if not advice.candidate.settings:
        return
    if has_flow_beside(question):
        return
    seeds = seeds_beside(question)
    paths = len(question.fresh())
    runs = 2 * BESIDE_COSTS * paths
    least = 1 if paths >= FEWEST else FEWEST
    fitting = int(search.laboratory.left_s() / max(search.cost_s(runs), 1e-9))
    search.log.seeds[BESIDE] = len(seeds)
    if least <= fitting < len(seeds):
        seeds = seeds[:fitting]
    if search.has_time(runs * len(seeds), "what a flow of CUBIC beside it loses"):
        with search.stage(
            BESIDE, "beside   a flow of CUBIC beside today's setting and the advised"
        ):
            rows = rows_of(
                [EVIDENCE, REFINEMENT], question, search.laboratory.folder, search.log.stages
            )
            run_beside(search.laboratory, advice.candidate, BESIDE, seeds, rows)


def seeds_beside(question: Question) -> range:
    """The seeds that tell what others lose."""
    first = question.seed + 2 * FRESH
    return range(first, first + (SEEDS if len(question.fresh()) < FEWEST else 1))


def run_beside(
    laboratory: Laboratory,
    candidate: Candidate,
    stage: str,
    seeds: range | None = None,
    evidence: pl.DataFrame | None = None,
) -> Results:
    """A flow of CUBIC beside today's setting and beside a candidate. `evidence` has the runs of
    both alone; by default all runs of the stage of that name.
    """
    question, folder = laboratory.question, laboratory.folder
    if evidence is None:
        evidence = rows_of([EVIDENCE], question, folder, [EVIDENCE])
    flow, nodes = question.mine()[0], question.plan["nodes"]
    points = _while_transfers(question, candidate, evidence)
    shortest_ms = min(milliseconds(one.get(WHILE)) or math.inf for one in points)
    jitter_us = 1000 * min(BESIDE_JITTER_MS, shortest_ms / 10)
    entry = {
        "name": BESIDE, "from": nodes[flow["from"]], "to": nodes[flow["to"]], "cc": "cubic",
        "start_jitter": f"{math.floor(jitter_us)} us",
    }  # fmt: skip
    return laboratory.run(
        stage,
        [Candidate(), candidate],
        points,
        seeds or seeds_beside(question),
        changes={"flows": [*question.plain["flows"], entry]},
    )


def _while_transfers(
    question: Question, candidate: Candidate, rows: pl.DataFrame | None
) -> list[dict[str, Any]]:
    """The paths of the evidence. Where all flows are transfers of a given size, a run lasts only as
    long as the slower of today's setting and the candidate takes there: whoever shares the link
    with them loses nothing afterwards.
    """
    points, goal = question.fresh(), question.goal
    sized = all(flow["traffic"].get("size") is not None for flow in question.mine())
    if not sized or goal.name not in TIMES or WHILE in question.over or rows is None:
        return points
    own = rows.filter(pl.col("candidate").is_in([TODAY, candidate.name]))
    means = own.group_by("point", "candidate", maintain_order=True).agg(pl.col(goal.name).mean())
    slowest = means.group_by("point", maintain_order=True).agg(pl.col(goal.name).max())
    begin_s = max(
        sum(milliseconds(flow[key]) or 0.0 for key in ("start", "start_jitter")) / 1000
        for flow in question.mine()
    )
    times_s = slowest[goal.name].to_list()
    lasts_us = [max(math.ceil(1e6 * (begin_s + (time_s or 0.0))), 1) for time_s in times_s]
    return [{**point, WHILE: f"{us} us"} for point, us in zip(points, lasts_us, strict=True)]


def _map(search: _Search) -> None:
    """Runs the finalists over other round trips and losses: as many as there is time for."""
    question, log = search.question, search.log
    if not log.finalists:
        return
    whole = sensitivity.grid(question)
    if not whole:
        return
    grid, contenders = whole, _contenders(search)
    for size, most in ((sensitivity.WHOLE, 4), (sensitivity.COARSE, 2), (sensitivity.CROSS, 1)):
        grid, contenders = sensitivity.grid(question, size), _contenders(search)[:most]
        runs = (1 + len(contenders)) * len(grid) * sensitivity.SEEDS
        if search.cost_s(runs) <= search.laboratory.left_s():
            break
    if not contenders or not search.has_time(runs, "the map of round trips and losses"):
        return
    if len(grid) < len(whole):
        search.shortened(
            f"the map has {len(grid)} of {len(whole)} round trips and losses, and "
            f"{counted(len(contenders), 'setting')}"
        )
    seeds = range(question.seed + 3 * FRESH, question.seed + 3 * FRESH + sensitivity.SEEDS)
    with search.stage(MAP, f"map      {len(grid)} other round trips and losses"):
        search.laboratory.run(MAP, [Candidate(), *contenders], grid, seeds)


def _contenders(search: _Search) -> list[Candidate]:
    """The candidates of the map: the advised one, and the best values of settings that matter."""
    advice = search.conclude()
    ordered = [advice.candidate] if advice.candidate.settings else []
    own = [one for one in advice.gains if one.goal == search.question.goal.name]
    broken = {one.candidate for one in advice.broken()}
    ranked = sorted((one for one in own if one.candidate not in broken), key=lambda one: -one.gain)
    known: Mapping[str, Candidate] = {
        one.name: one for one in [*search.log.finalists, *search.log.singles.values()]
    }
    ordered += [known[one.candidate] for one in ranked if one.candidate in known]
    return list(dict.fromkeys(ordered))[:4]
