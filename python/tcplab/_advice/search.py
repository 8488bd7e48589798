"""From a question to its answer: the search, the evidence, the kernel's word, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import polars as pl

from tcplab import _core
from tcplab._advice import causes, terrain
from tcplab._advice.advice import BESIDE, Advice, Log, concluded
from tcplab._advice.evidence import (
    FRESH,
    MOST_SEEDS,
    SEEDS,
    seeds_each,
    seeds_needed,
)
from tcplab._advice.levers import Candidate
from tcplab._advice.question import Question
from tcplab._advice.race import race
from tcplab._advice.stages import Laboratory
from tcplab._results.results import Results
from tcplab.statistics import FEWEST

BUDGET_S = 60.0

WHY, MAP = "why", "map"

ALSO = (WHY, BESIDE, MAP)
"""The optional stages, most important first."""


@dataclass
class _Search:
    """A search under way."""

    laboratory: Laboratory
    say: Callable[[str], object]
    log: Log = field(default_factory=Log)
    rows: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The runs of the search."""

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
        self.log.stages.append(name)
        try:
            yield
        except KeyboardInterrupt:
            if not (self.laboratory.folder / name / "runs.json").exists():
                self.log.stages.remove(name)
            raise

    def has_time(self, runs: float, what: str) -> bool:
        """Whether so many runs fit into what is left of the budget; if not, says so."""
        cost = runs * self.laboratory.run_s / self.laboratory.threads
        left = self.laboratory.left_s()
        if cost <= left:
            return True
        self.log.notes.append(
            f"Not done within the budget: {what}, about {max(cost - max(left, 0), 1):.0f} s more."
        )
        return False


def advised(
    laboratory: Laboratory,
    *,
    backend: str | None = None,
    also: Sequence[str] = ALSO,
    notes: Sequence[str] = (),
    say: Callable[[str], object] = lambda _: None,
) -> tuple[Advice, bool]:
    """Searches, examines and confirms; and whether it was stopped before its end.

    `also` names the optional stages: the reason for the gain, the harm to other flows, the map.
    Every stage keeps its results in a folder of its own, so that the same call resumes a stopped
    one.
    """
    search = _Search(laboratory, say, Log(notes=list(notes)))
    try:
        _search(search)
        _examine(search)
        _confirm(search, backend)
        for one in also:
            {WHY: _explain, BESIDE: _beside, MAP: _map}[one](search)
    except KeyboardInterrupt:
        search.log.notes.append(
            "Stopped before its end: what is said rests on the runs until then."
        )
        return search.conclude(), True
    return search.conclude(), False


def _search(search: _Search) -> None:
    search.say("search   candidates race over the same paths with the same seeds")
    found = race(search.laboratory)
    log = search.log
    log.finalists, log.singles = found.finalists, found.singles
    log.rounds, log.left_out = found.rounds, found.left_out
    search.rows = found.rows


def _examine(search: _Search) -> None:
    """Runs the finalists and the best value of each setting with fresh seeds."""
    laboratory, question, log = search.laboratory, search.question, search.log
    if not log.finalists:
        return
    points = question.points()
    number = seeds_each(len(points))
    if len(points) == 1:
        number = seeds_needed(search.rows, question.goal, log.finalists[0].name)
    several = [Candidate(), *log.finalists]
    singles = [one for one in log.singles.values() if one not in several]
    cost = (len(several) + len(singles)) * len(points) * number
    if cost * laboratory.run_s / laboratory.threads <= 0.5 * max(laboratory.left_s(), 1.0):
        several += singles
    else:
        log.notes.append(
            "Not done within the budget: an examination of each setting alone; what makes no "
            "difference is not said."
        )
    seeds = range(question.seed + FRESH, question.seed + FRESH + number)
    with search.stage("evidence", f"evidence {len(several)} settings, {number} fresh seeds"):
        laboratory.run("evidence", several, points, seeds)


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
    points = question.points()
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
            number = seeds_each(len(points))
            if len(points) == 1:
                number = _seeds_for_kernel(search, advice)
            fits = int(max(laboratory.left_s(), 0.0) * laboratory.threads * 0.35 / max(run_s, 1e-3))
            least = 1 if len(points) >= FEWEST else FEWEST
            number = min(number, max(fits // (2 * len(points)), least))
            seeds = range(first.start, first.start + number)
            laboratory.run("confirmation", pair, points, seeds, backend="linux")
    except (_core.KernelError, _core.RunError) as error:
        log.stages.remove("confirmation")
        log.backend = None
        log.notes.append(f"Not confirmed on the kernel: {_first(error)}.")


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _seeds_for_kernel(search: _Search, advice: Advice) -> int:
    """So many that the interval is no wider than a quarter of the gain, as far as runs on `sim` can
    say.
    """
    gain = advice.gain()
    if gain is None or gain.low is None or gain.high is None:
        return SEEDS
    width, wanted = gain.high - gain.low, abs(gain.gain) / 4
    needed = gain.n * (width / wanted) ** 2 if wanted else MOST_SEEDS
    return int(min(max(needed, 10), MOST_SEEDS))


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


def _beside(search: _Search) -> None:
    """Runs a flow of CUBIC beside today's setting and the advised one."""
    advice, question = search.conclude(), search.question
    if not advice.candidate.settings:
        return
    if any(one["name"] == BESIDE for one in question.plan["flows"]):
        return
    runs = 2.5 * len(seeds_beside(question)) * len(question.points())
    if search.has_time(runs, "what a flow of CUBIC beside it loses"):
        with search.stage(
            BESIDE, "beside   a flow of CUBIC beside today's setting and the advised"
        ):
            run_beside(search.laboratory, advice.candidate, BESIDE)


def seeds_beside(question: Question) -> range:
    """The seeds that tell what others lose."""
    first = question.seed + 2 * FRESH
    return range(first, first + (SEEDS if len(question.points()) < FEWEST else 1))


def run_beside(laboratory: Laboratory, candidate: Candidate, stage: str) -> Results:
    """A flow of CUBIC beside today's setting and beside a candidate."""
    question = laboratory.question
    flow, nodes = question.mine()[0], question.plan["nodes"]
    entry = {
        "name": BESIDE, "from": nodes[flow["from"]], "to": nodes[flow["to"]], "cc": "cubic",
        "start_jitter": "200 ms",
    }  # fmt: skip
    return laboratory.run(
        stage,
        [Candidate(), candidate],
        question.points(),
        seeds_beside(question),
        changes={"flows": [*question.plain["flows"], entry]},
    )


def _map(search: _Search) -> None:
    """Runs the finalists over other round trips and losses."""
    question, log = search.question, search.log
    if not log.finalists:
        return
    for size in (5, 3):
        grid = terrain.grid(question, size)
        if not grid:
            return
        contenders = _contenders(search)[: size if size == 5 else 2]
        runs = (1 + len(contenders)) * len(grid) * terrain.SEEDS
        # Longer round trips and more losses cost less than the path itself.
        if size == 3 or runs * search.laboratory.run_s <= search.laboratory.left_s() * (
            search.laboratory.threads
        ):
            break
    if not search.has_time(runs, "the map of round trips and losses"):
        return
    seeds = range(question.seed + 3 * FRESH, question.seed + 3 * FRESH + terrain.SEEDS)
    with search.stage(MAP, f"map      {len(grid)} other round trips and losses"):
        search.laboratory.run(MAP, [Candidate(), *contenders], grid, seeds)


def _contenders(search: _Search) -> list[Candidate]:
    """The candidates of the map: the advised one, and the best values of settings that matter."""
    advice = search.conclude()
    ordered = [advice.candidate] if advice.candidate.settings else []
    own = [one for one in advice.gains if one.goal == search.question.goal.name]
    ranked = sorted(own, key=lambda one: -one.gain)
    known: Mapping[str, Candidate] = {
        one.name: one for one in [*search.log.finalists, *search.log.singles.values()]
    }
    ordered += [known[one.candidate] for one in ranked if one.candidate in known]
    return list(dict.fromkeys(ordered))[:4]
