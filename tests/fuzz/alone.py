"""Runs random experiments on `sim` alone: no panic, no law broken, the same tables twice.

The experiments run in processes of their own, so that one that hangs or kills its process is a
finding like any other.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

import tcplab as lab
from fuzz.draw import Plain
from fuzz.whole import draw, original
from tcplab import _core

LIMIT_S = 20.0
"""The processor time limit of a run, which normally takes milliseconds. A longer run is a finding.
"""
WALL_PER_CPU = 10
"""How many times the limit may pass in wall time for a process that gets no processor."""
MEMORY = 8 << 30
"""The limit on the address space of a process, in bytes. Exceeding it is a finding."""
NEWS = 5000
"""The number of experiments between progress messages."""

RAN, REFUSED, FOUND = "ran", "refused", "found"


@dataclass(frozen=True)
class Outcome:
    """The outcome of an experiment."""

    number: int
    kind: str
    says: str = ""
    """The message of a refusal, or the finding."""


@dataclass
class Survey:
    """The outcomes of all experiments so far."""

    counts: Counter[str] = field(default_factory=Counter)
    finds: list[Outcome] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Counts one outcome."""
        self.counts[outcome.kind] += 1
        if outcome.kind == FOUND:
            self.finds.append(outcome)
        if outcome.kind == REFUSED:
            self.refusals[_without_numbers(outcome.says)] += 1

    def __str__(self) -> str:
        """The counts as text."""
        total = sum(self.counts.values())
        ran, refused = self.counts[RAN], self.counts[REFUSED]
        return f"{total} experiments: {ran} ran, {refused} refused, {len(self.finds)} finds"


def check(experiment: Plain, meant: Plain | None = None) -> tuple[str, str]:
    """Runs an experiment twice. Returns the kind of outcome and its message.

    `meant` is the same experiment written in another way; both must have one id.
    """
    if meant is not None and meant != experiment:
        ids = [_id(one) for one in (experiment, meant)]
        if ids[0] != ids[1]:
            return FOUND, f"its id is {ids[0]}, and with all values in their places {ids[1]}"
    try:
        written = _core.Document.from_json(json.dumps(experiment))
        [plan] = written.plans("sim")
    except lab.ConfigError as error:
        return REFUSED, _first_line(error)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return FOUND, f"when read: {_named(error)}"
    try:
        _, digest, _ = _core.run(plan, _core.Watch())
        # The second run uses the plan as it is stored beside results.
        stored = _core.Plan.from_json(plan.to_json())
        _, again, _ = _core.run(stored, _core.Watch())
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return FOUND, _named(error)
    if stored.derived_id != plan.id:
        return FOUND, f"stored and read back, the plan {plan.id} is {stored.derived_id}"
    if again != digest:
        return FOUND, f"the second run has the digest {again}, not {digest}"
    if plan.beginning is not None:
        batch = _core.run_batch([plan, stored], _core.Watch(), 1e9)
        shared = [ran.digest for group in batch.groups for ran in group.runs]
        if shared != [digest] * 2:
            return FOUND, f"from one state the runs have the digests {shared}, not {digest}"
    return RAN, ""


def _id(experiment: Plain) -> str | None:
    """The id of the only run; `None` if the experiment is refused."""
    try:
        [plan] = _core.Document.from_json(json.dumps(experiment)).plans("sim")
    except lab.ConfigError:
        return None
    return plan.id


def _named(error: BaseException) -> str:
    # A panic is not an `Exception`, and its class cannot be imported.
    return f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?( ?[pnumkMGT]?(s|B|bit/s)\b)?", "N", text)


@dataclass
class Worker:
    """A process that runs experiments from a range of numbers. It is restarted when it dies."""

    seed: int
    numbers: Iterator[int]
    limit_s: float = LIMIT_S
    number: int | None = None
    """The experiment in progress, and when it began."""
    since: float = 0.0
    used_s: float = 0.0
    """Processor time used before that experiment."""
    process: SpawnProcess | None = None
    pipe: Connection | None = None

    def next(self) -> bool:
        """Begins the next experiment. Returns whether there is one."""
        self.number = next(self.numbers, None)
        if self.number is None:
            self.end()
            return False
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, other = context.Pipe()
            self.process = context.Process(target=_work, args=(self.seed, other), daemon=True)
            self.process.start()
            other.close()
        assert self.pipe is not None
        self.pipe.send(self.number)
        self.since, self.used_s = time.monotonic(), _processor_s(self.process)
        return True

    def outcome(self) -> Outcome | None:
        """The outcome of the experiment, or `None` while it is running."""
        assert self.pipe is not None
        assert self.process is not None
        assert self.number is not None
        if self.pipe.poll():
            try:
                return Outcome(self.number, *self.pipe.recv())
            except (EOFError, ConnectionError):
                self.process.join()
                code = self.process.exitcode
                self.end()
                return Outcome(self.number, FOUND, f"the process ended with {code}")
        used_s = _processor_s(self.process) - self.used_s
        if max(used_s, (time.monotonic() - self.since) / WALL_PER_CPU) > self.limit_s:
            self.end()
            return Outcome(self.number, FOUND, f"takes longer than {self.limit_s:g} s")
        return None

    def end(self) -> None:
        """Kills the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
        if self.pipe is not None:
            self.pipe.close()
        self.process = self.pipe = None


def _processor_s(process: SpawnProcess) -> float:
    """The processor time that a process has used."""
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    # After the name, which may contain spaces; then fields 14 and 15 of proc_pid_stat(5).
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _work(seed: int, pipe: Connection) -> None:
    """The main function of a worker's process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The parent reports panics.
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
    while True:
        try:
            number = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(check(draw(seed, number), original(seed, number)))


def outcomes(seed: int, numbers: range, workers: int) -> Iterator[Outcome]:
    """The outcomes of these experiments, in the order in which they finish."""
    # A shared iterator, so that no worker waits for the others.
    shared = iter(numbers)
    crew = [Worker(seed, shared) for _ in range(workers)]
    busy = [worker for worker in crew if worker.next()]
    try:
        while busy:
            wait([worker.pipe for worker in busy if worker.pipe], timeout=1)
            for worker in list(busy):
                outcome = worker.outcome()
                if outcome is None:
                    continue
                yield outcome
                if not worker.next():
                    busy.remove(worker)
    finally:
        for worker in crew:
            worker.end()


def survey(seed: int, numbers: range, workers: int) -> Survey:
    """Runs these experiments, and prints findings and progress."""
    so_far, began = Survey(), time.monotonic()
    for done, outcome in enumerate(outcomes(seed, numbers, workers), 1):
        so_far.add(outcome)
        if outcome.kind == FOUND:
            print(f"seed {seed}, number {outcome.number}: {outcome.says}", flush=True)
        if done % NEWS == 0:
            print(f"{so_far}; {time.monotonic() - began:.0f} s", flush=True)
    return so_far
