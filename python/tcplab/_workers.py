"""Runs plans side by side, and stops all of them at once."""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import polars as pl

from tcplab import _core
from tcplab._long import LongTable
from tcplab._store import READABLE, InMemory, RunTables
from tcplab._walls import Access

TICK_S = 0.1
"""How long Ctrl-C may go unheard."""

PATIENCE_S = 1.0
"""How long a stopped run may go on before the Python class that it is in is interrupted."""

Finish = Callable[[_core.Plan, InMemory], RunTables]
Tick = Callable[[float], None]
"""Is told how much simulated time, in seconds, all runs have reached together."""


Left = tuple[list[tuple[str, _core.Frame]], str, list[tuple[str, bytes]]]
"""What a run leaves: its tables, the digest of them all, and further files."""


def together(plans: Sequence[_core.Plan], threads: int) -> list[Sequence[_core.Plan]]:
    """Plans that are equal until they change run one after the other, as far as no thread idles."""
    groups: dict[str, list[_core.Plan]] = {}
    for plan in plans:
        groups.setdefault(plan.beginning or plan.id, []).append(plan)
    parts: list[Sequence[_core.Plan]] = list(groups.values())
    while len(parts) < min(threads, len(plans)):
        largest = max(range(len(parts)), key=lambda part: len(parts[part]))
        half = (len(parts[largest]) + 1) // 2
        parts[largest : largest + 1] = [parts[largest][:half], parts[largest][half:]]
    return parts


@dataclass
class Workers:
    """Threads that run plans. The Rust side releases the interpreter while it simulates."""

    plans: Sequence[_core.Plan]
    finish: Finish
    """Puts the tables of a run where they are to stay; called by the threads."""
    access: Access
    """What programs may read."""
    memory: int
    """The bytes that each run may hold."""
    too_large: list[_core.Plan] = field(default_factory=list)
    """Runs that held more while others went on beside them."""

    _stopping: threading.Event = field(default_factory=threading.Event)
    _running: dict[str, _core.Watch] = field(default_factory=dict)
    _threads: dict[str, int] = field(default_factory=dict)
    """By run that goes on, the thread that is in it."""
    _outcomes: queue.SimpleQueue[tuple[_core.Plan, RunTables | BaseException]] = field(
        default_factory=queue.SimpleQueue
    )

    def outcomes(self, number: int, tick: Tick) -> Generator[tuple[str, RunTables]]:
        """Runs all plans with so many threads; gives id and tables of each as it ends.

        If anything happens in between, like Ctrl-C, everything that runs is stopped first. For that
        to hold wherever it happens, whoever calls must close the generator.
        """
        todo: queue.SimpleQueue[Sequence[_core.Plan]] = queue.SimpleQueue()
        number = min(number, len(self.plans))
        for plans in together(self.plans, number):
            todo.put(plans)
        threads = [threading.Thread(target=self._work, args=(todo,)) for _ in range(number)]
        finished_s = 0.0
        waiting = len(self.plans)
        try:
            for thread in threads:
                thread.start()
            while waiting:
                reached_s = sum(watch.reached_s for watch in list(self._running.values()))
                tick(finished_s + reached_s)
                try:
                    plan, outcome = self._outcomes.get(timeout=TICK_S)
                except queue.Empty:
                    continue
                waiting -= 1
                if isinstance(outcome, _core.TooLargeError) and number > 1:
                    self.too_large.append(plan)
                    continue
                if isinstance(outcome, BaseException):
                    raise outcome
                finished_s += plan.duration_s
                yield plan.id, outcome
        finally:
            self._stopping.set()
            for watch in list(self._running.values()):
                watch.stop()
            for thread in threads:
                if thread.ident is not None:
                    self._wait_for(thread, thread.ident)

    def _wait_for(self, thread: threading.Thread, ident: int) -> None:
        """Waits for the end of a thread. A method of a class of the user's own may never return: it
        gets a Ctrl-C of its own."""
        thread.join(PATIENCE_S)
        while thread.is_alive():
            if ident in self._threads.values():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt)
                )
            thread.join(PATIENCE_S)

    def _work(self, todo: queue.SimpleQueue[Sequence[_core.Plan]]) -> None:
        while not self._stopping.is_set():
            try:
                plan, *others = plans = todo.get_nowait()
            except queue.Empty:
                return
            if others:
                self._run_together(plans)
                continue
            try:
                self._outcomes.put((plan, self._run(plan)))
            except BaseException as error:
                # The main thread raises it.
                self._outcomes.put((plan, error))

    def _run(self, plan: _core.Plan) -> RunTables:
        watch = _core.Watch(self.memory)
        self._running[plan.id] = watch
        if self._stopping.is_set():
            watch.stop()
        # As it is when they begin: what changes while they run is another state.
        readable = self.access.state() if plan.commands else b""
        try:
            self._threads[plan.id] = threading.get_ident()
            began = time.perf_counter()
            left = _core.run(plan, watch, self.access.reads, self.access.hidden)
            wall_s = time.perf_counter() - began
        finally:
            self._threads.pop(plan.id, None)
            del self._running[plan.id]
        return self._finished(plan, left, wall_s, readable)

    def _run_together(self, plans: Sequence[_core.Plan]) -> None:
        """Runs plans with a beginning in common, one after the other."""
        watches = [_core.Watch(self.memory) for _ in plans]
        waiting = {plan.id: plan for plan in plans}
        self._running.update(zip(waiting, watches, strict=True))
        if self._stopping.is_set():
            for watch in watches:
                watch.stop()
        began = time.perf_counter()

        def took(place: int, left: Left | BaseException) -> None:
            nonlocal began
            now = time.perf_counter()
            wall_s, began = now - began, now
            plan = waiting.pop(plans[place].id)
            del self._running[plan.id]
            outcome: RunTables | BaseException
            try:
                if isinstance(left, BaseException):
                    outcome = left
                else:
                    outcome = self._finished(plan, left, wall_s)
            except BaseException as error:
                outcome = error
            self._outcomes.put((plan, outcome))

        first = plans[0].id
        try:
            self._threads[first] = threading.get_ident()
            _core.run_together(plans, watches, took)
        except BaseException as error:
            for plan in waiting.values():
                self._outcomes.put((plan, error))
        finally:
            self._threads.pop(first, None)
            for run in waiting:
                del self._running[run]

    def _finished(
        self, plan: _core.Plan, left: Left, wall_s: float, readable: bytes = b""
    ) -> RunTables:
        """The tables of a run where they are to stay."""
        frames, digest, files = left
        tables: dict[str, pl.DataFrame | LongTable] = {
            name: pl.DataFrame(frame) if frame.parts == 1 else LongTable(frame)
            for name, frame in frames
        }
        tables["runs"] = (
            tables["runs"].lazy().with_columns(wall_s=pl.lit(wall_s, dtype=pl.Float64)).collect()
        )
        if self._stopping.is_set():
            raise _core.Interrupted("the run was stopped")
        further = dict(files)
        if plan.commands:
            further[READABLE] = readable
        return self.finish(plan, InMemory(tables, digest, further))
