"""Runs plans in parallel, and stops all of them together.

Each thread has an `Attempt` for the plans that it takes. `Here` is an attempt on this computer,
where the Rust side releases the interpreter lock while it simulates; `cluster` has attempts on
other computers.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from tcplab import _core
from tcplab import _polars as pl
from tcplab._run.pool import LONGEST_S, Pool
from tcplab._run.sandbox import Access
from tcplab._store.long_table import LongTable
from tcplab._store.run_groups import Group, InMemory, Ran

TICK_S = 0.1
"""The longest time for which Ctrl-C may go unnoticed."""

STOP_TIMEOUT_S = 1.0
"""The time that a stopped run has before the Python class that it is in is interrupted."""

STORING = 2
"""The number of threads that may store tables without keeping others from running."""

Finish = Callable[[InMemory], Mapping[str, Group]]
"""Stores tables. Returns the group of each run."""

Tick = Callable[[float], None]
"""Called with the simulated time, in seconds, that all runs together have reached."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of runs."""

    finished: Mapping[str, Group] = field(default_factory=dict)
    """The runs that finished, each with its group."""
    failed: Mapping[str, Exception] = field(default_factory=dict)
    """The runs that failed without preventing others."""
    too_large: Sequence[tuple[_core.Plan, _core.TooLargeError]] = ()
    """The runs that exceeded their share of the memory."""


@dataclass(frozen=True)
class Tried:
    """The outcome of plans that were tried in order."""

    number: int
    """The number of plans tried, from the first on."""
    groups: Iterable[InMemory]
    """Finished runs. The tables are converted when they are asked for."""
    failed: Sequence[tuple[int, Exception]] = ()
    """The failures, by position among the plans."""
    end: BaseException | None = None
    """The reason why none of the remaining plans can run."""


class Attempt(Protocol):
    """Plans that run one after the other, and the means to stop them."""

    @property
    def reached_s(self) -> float:
        """The simulated time, in seconds, that the plans together have reached."""

    def stop(self) -> None:
        """Stops the attempt soon. Called from another thread."""

    def run(self, plans: list[_core.Plan]) -> Tried:
        """Runs some of the plans, from the first on."""


class Here:
    """An attempt on this computer."""

    def __init__(self, access: Access, memory: int) -> None:
        """`access` is what programs may read; `memory` is the number of bytes each run may hold."""
        self._access = access
        self._watch = _core.Watch(memory)

    @property
    def reached_s(self) -> float:
        """The simulated time, in seconds, that the plans together have reached."""
        return self._watch.reached_s

    def stop(self) -> None:
        """Stops the attempt soon. Called from another thread."""
        self._watch.stop()

    def run(self, plans: list[_core.Plan]) -> Tried:
        """Runs some of the plans, from the first on."""
        if plans[0].commands:
            plans = plans[:1]
        access = self._access
        # The state when the programs begin. A change while they run is another state.
        readable = access.state() if plans[0].commands else None
        batch = _core.run_batch(plans, self._watch, LONGEST_S, access.reads, access.hidden)
        # Converted by whoever stores them, while the next plans run.
        groups = (_group(group, plans, readable) for group in batch.groups)
        return Tried(batch.tried, groups, batch.failed, batch.end)


def together(plans: Sequence[_core.Plan], threads: int) -> list[list[_core.Plan]]:
    """Groups plans that are equal until they change, unless a thread would then idle."""
    groups: dict[str, list[_core.Plan]] = {}
    for plan in plans:
        groups.setdefault(plan.beginning or plan.id, []).append(plan)
    parts = list(groups.values())
    while len(parts) < min(threads, len(plans)):
        longest = max(range(len(parts)), key=lambda part: len(parts[part]))
        half = (len(parts[longest]) + 1) // 2
        parts[longest : longest + 1] = [parts[longest][:half], parts[longest][half:]]
    return parts


@dataclass
class Workers:
    """Threads that run plans."""

    plans: list[_core.Plan]
    finish: Finish
    """Stores the tables of runs. Called by the threads."""
    begin: Callable[[], Attempt]
    """Begins an attempt at some of the plans. Called by the threads."""
    too_large: list[_core.Plan] = field(default_factory=list)
    """Runs that exceeded their share of the memory while others ran."""

    _stopping: threading.Event = field(default_factory=threading.Event)
    _running: dict[int, Attempt] = field(default_factory=dict)
    """The attempt of each thread."""
    _outcomes: queue.SimpleQueue[Outcome | BaseException] = field(default_factory=queue.SimpleQueue)

    def outcomes(self, number: int, tick: Tick) -> Generator[Outcome]:
        """Runs all plans, `number` at a time, and yields their outcomes as they end.

        If an exception such as Ctrl-C occurs in between, everything that runs is stopped first. For
        this to hold everywhere, the caller must close the generator.
        """
        number = min(number, len(self.plans))
        parts = together(self.plans, number)
        self.plans = [plan for part in parts for plan in part]
        last = accumulate(map(len, parts))
        ends = [end for part, end in zip(parts, last, strict=True) for _ in part]
        pool = Pool([plan.duration_s for plan in self.plans], number, ends)
        # More threads than runs: while some store tables, others run plans.
        running = threading.Semaphore(number)
        several = range(min(number + STORING, len(self.plans)))
        threads = [threading.Thread(target=self._work, args=(pool, running)) for _ in several]
        finished_s = 0.0
        waiting = len(self.plans)
        durations = {plan.id: plan.duration_s for plan in self.plans}
        try:
            for thread in threads:
                thread.start()
            while waiting:
                reached_s = sum(attempt.reached_s for attempt in list(self._running.values()))
                tick(finished_s + reached_s)
                try:
                    outcome = self._outcomes.get(timeout=TICK_S)
                except queue.Empty:
                    continue
                if isinstance(outcome, BaseException):
                    raise outcome
                if outcome.too_large and number == 1:
                    raise outcome.too_large[0][1]
                self.too_large += [plan for plan, _ in outcome.too_large]
                ended = [*outcome.finished, *outcome.failed]
                waiting -= len(ended) + len(outcome.too_large)
                finished_s += sum(durations[run] for run in ended)
                yield outcome
        finally:
            self._stopping.set()
            pool.close()
            for attempt in list(self._running.values()):
                attempt.stop()
            for thread in threads:
                if thread.ident is not None:
                    self._wait_for(thread, thread.ident)

    def _wait_for(self, thread: threading.Thread, ident: int) -> None:
        """Waits for a thread to end. A method of a user's class may never return: its thread gets a
        KeyboardInterrupt of its own.
        """
        thread.join(STOP_TIMEOUT_S)
        while thread.is_alive():
            if ident in self._running:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt)
                )
            thread.join(STOP_TIMEOUT_S)

    def _work(self, pool: Pool, running: threading.Semaphore) -> None:
        while True:
            with running:
                numbers = pool.take()
                if not numbers or self._stopping.is_set():
                    return
                plans = self.plans[numbers.start : numbers.stop]
                began = time.monotonic()
                try:
                    tried = self._run(plans)
                except BaseException as error:
                    # The main thread raises the exception.
                    self._outcomes.put(error)
                    return
                pool.give_back(numbers, tried.number, time.monotonic() - began)
            try:
                self._finish(plans, tried)
            except BaseException as error:
                self._outcomes.put(error)
                return

    def _run(self, plans: list[_core.Plan]) -> Tried:
        """Runs some of these plans, from the first on."""
        attempt = self.begin()
        self._running[threading.get_ident()] = attempt
        if self._stopping.is_set():
            attempt.stop()
        try:
            return attempt.run(plans)
        finally:
            del self._running[threading.get_ident()]

    def _finish(self, plans: list[_core.Plan], tried: Tried) -> None:
        """Keeps the tables and failures of an attempt."""
        # Runs that finished before everything stops are kept too.
        finished: dict[str, Group] = {}
        for group in tried.groups:
            finished |= self.finish(group)
        too_large, failed = [], {}
        for place, error in tried.failed:
            if isinstance(error, _core.TooLargeError):
                too_large.append((plans[place], error))
            else:
                failed[plans[place].id] = error
        self._outcomes.put(Outcome(finished, failed, too_large))
        if tried.end is not None:
            raise tried.end


def _group(group: _core.Group, plans: Sequence[_core.Plan], readable: bytes | None) -> InMemory:
    """A group from the Rust side in the form in which Python keeps it."""
    frames: dict[str, pl.DataFrame | LongTable] = {
        name: pl.DataFrame(frame) if frame.parts == 1 else LongTable(frame)
        for name, frame in group.frames
    }
    walls = pl.Series("wall_s", [ran.wall_s for ran in group.runs], dtype=pl.Float64)
    runs = frames["runs"]
    table = runs if isinstance(runs, pl.DataFrame) else runs.lazy().collect()
    frames["runs"] = table.replace_column(table.get_column_index(walls.name), walls)
    own = [plans[ran.place] for ran in group.runs]
    ran = {
        plan.id: Ran(plan.id, ran.digest, tuple(ran.rows), dict(ran.further), readable)
        for plan, ran in zip(own, group.runs, strict=True)
    }
    contents = {
        plan.id: dict(ran.files) for plan, ran in zip(own, group.runs, strict=True) if ran.files
    }
    return InMemory(ran, frames, {plan.id: plan for plan in own}, contents)
