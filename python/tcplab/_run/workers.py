"""Runs plans side by side, and stops all of them at once.

Each thread has an `Attempt` for the plans that it takes. `Here` is one on this computer, where the
Rust side releases the interpreter while it simulates; `cluster` has others.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

import polars as pl

from tcplab import _core
from tcplab._run.pool import LONGEST_S, Pool
from tcplab._run.sandbox import Access
from tcplab._store.long_table import LongTable
from tcplab._store.run_groups import Group, InMemory, Ran

TICK_S = 0.1
"""How long Ctrl-C may go unheard."""

PATIENCE_S = 1.0
"""How long a stopped run may go on before the Python class that it is in is interrupted."""

Finish = Callable[[InMemory], Mapping[str, Group]]
"""Puts tables where they are to stay; says by run where that is."""

Tick = Callable[[float], None]
"""Is told how much simulated time, in seconds, all runs have reached together."""


@dataclass(frozen=True)
class Outcome:
    """What became of runs."""

    finished: Mapping[str, Group] = field(default_factory=dict)
    """Those that finished, each with the group that it is in."""
    failed: Mapping[str, Exception] = field(default_factory=dict)
    """Those that failed, while others can go on."""
    too_large: Sequence[tuple[_core.Plan, _core.TooLargeError]] = ()
    """Those that held more memory than they get."""


@dataclass(frozen=True)
class Tried:
    """What became of plans that were tried one after the other."""

    number: int
    """How many of them: the first ones."""
    groups: Sequence[InMemory]
    failed: Sequence[tuple[int, Exception]] = ()
    """Those that failed, by their place among the plans."""
    end: BaseException | None = None
    """Why none of the others can run."""


class Attempt(Protocol):
    """Plans that are being run one after the other, and the means to stop them."""

    @property
    def reached_s(self) -> float:
        """How much simulated time, in seconds, they have reached together."""

    def stop(self) -> None:
        """Ends it soon, from another thread."""

    def run(self, plans: list[_core.Plan]) -> Tried:
        """Runs some of them, the first ones."""


class Here:
    """An attempt on this computer."""

    def __init__(self, access: Access, memory: int) -> None:
        """Programs have this access, and each run may hold so many bytes."""
        self._access = access
        self._watch = _core.Watch(memory)

    @property
    def reached_s(self) -> float:
        """How much simulated time, in seconds, they have reached together."""
        return self._watch.reached_s

    def stop(self) -> None:
        """Ends it soon, from another thread."""
        self._watch.stop()

    def run(self, plans: list[_core.Plan]) -> Tried:
        """Runs some of them, the first ones."""
        if plans[0].commands:
            plans = plans[:1]
        access = self._access
        # As it is when they begin: what changes while they run is another state.
        readable = access.state() if plans[0].commands else None
        batch = _core.run_batch(plans, self._watch, LONGEST_S, access.reads, access.hidden)
        groups = [_group(group, plans, readable) for group in batch.groups]
        return Tried(batch.tried, groups, batch.failed, batch.end)


def together(plans: Sequence[_core.Plan], threads: int) -> list[list[_core.Plan]]:
    """Plans that are equal until they change follow each other, as far as no thread idles."""
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
    """Puts the tables of runs where they are to stay; called by the threads."""
    begin: Callable[[], Attempt]
    """Begins an attempt at some of the plans; called by the threads."""
    too_large: list[_core.Plan] = field(default_factory=list)
    """Runs that held more while others went on beside them."""

    _stopping: threading.Event = field(default_factory=threading.Event)
    _running: dict[int, Attempt] = field(default_factory=dict)
    """By thread, the attempt that it is in."""
    _outcomes: queue.SimpleQueue[Outcome | BaseException] = field(default_factory=queue.SimpleQueue)

    def outcomes(self, number: int, tick: Tick) -> Generator[Outcome]:
        """Runs all plans, so many at once; gives what became of them as they end.

        If anything happens in between, like Ctrl-C, everything that runs is stopped first. For that
        to hold wherever it happens, whoever calls must close the generator.
        """
        number = min(number, len(self.plans))
        parts = together(self.plans, number)
        self.plans = [plan for part in parts for plan in part]
        last = accumulate(map(len, parts))
        ends = [end for part, end in zip(parts, last, strict=True) for _ in part]
        pool = Pool(len(self.plans), number, ends)
        # One more than run: while a thread puts tables where they are to stay, another runs plans.
        running = threading.Semaphore(number)
        several = range(min(number + 1, len(self.plans)))
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
        """Waits for the end of a thread. A method of a class of the user's own may never return: it
        gets a Ctrl-C of its own."""
        thread.join(PATIENCE_S)
        while thread.is_alive():
            if ident in self._running:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt)
                )
            thread.join(PATIENCE_S)

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
                    # The main thread raises it.
                    self._outcomes.put(error)
                    return
                pool.give_back(numbers[tried.number :], tried.number, time.monotonic() - began)
            try:
                self._finish(plans, tried)
            except BaseException as error:
                self._outcomes.put(error)
                return

    def _run(self, plans: list[_core.Plan]) -> Tried:
        """Runs some of these, the first ones."""
        attempt = self.begin()
        self._running[threading.get_ident()] = attempt
        if self._stopping.is_set():
            attempt.stop()
        try:
            return attempt.run(plans)
        finally:
            del self._running[threading.get_ident()]

    def _finish(self, plans: list[_core.Plan], tried: Tried) -> None:
        """Keeps what these left."""
        # What was finished before everything stops is kept too.
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
    """What the Rust side hands over, as it is kept."""
    frames: dict[str, pl.DataFrame | LongTable] = {
        name: pl.DataFrame(frame) if frame.parts == 1 else LongTable(frame)
        for name, frame in group.frames
    }
    walls = pl.Series("wall_s", [ran.wall_s for ran in group.runs], dtype=pl.Float64)
    frames["runs"] = frames["runs"].lazy().collect().with_columns(walls)
    own = [plans[ran.place] for ran in group.runs]
    ran = {
        plan.id: Ran(plan.id, ran.digest, tuple(ran.rows), dict(ran.further), readable)
        for plan, ran in zip(own, group.runs, strict=True)
    }
    contents = {
        plan.id: dict(ran.files) for plan, ran in zip(own, group.runs, strict=True) if ran.files
    }
    return InMemory(ran, frames, {plan.id: plan for plan in own}, contents)
