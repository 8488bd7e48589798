"""The contents of a folder of results, read again when it changes."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import polars as pl

from tcplab import _core
from tcplab._report import written
from tcplab._report._content import Content, content
from tcplab._results.results import Results
from tcplab._store.failures import FAILED
from tcplab._store.manifest import RUNS, asked, stored
from tcplab._store.plans import Called, called
from tcplab._store.remote import at, is_address
from tcplab._store.run_groups import is_held
from tcplab._store.store import GROUP, Store

LOOK_S = 0.5
"""The interval at which a folder is examined. A remote folder is examined less often."""

LOOK_FAR_S = 15.0

SHARE = 0.5
"""The greatest share of the time that is spent on reading a folder that keeps changing."""

UNREADABLE = (ValueError, OSError, pl.exceptions.PolarsError)
"""The exceptions raised by reading tables that changed after they were checked."""

Signature = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class State:
    """The contents of a folder at one time."""

    number: int = 0
    """A number that differs for each state."""
    place: str = ""
    trouble: str = ""
    """Why there are no results, or no newer ones."""
    results: Results | None = None
    planned: Sequence[Called] = ()
    """The runs that were asked for; without a list of them, the runs that are stored."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The reason for each failed run, by its id."""
    is_running: bool = False
    """Whether a process is writing results."""
    left_s: float | None = None
    """The estimated remaining time of that process."""

    @cached_property
    def finished(self) -> frozenset[str]:
        """The runs whose results are stored."""
        return frozenset() if self.results is None else frozenset(self.results.runs["run"])

    @cached_property
    def said(self) -> Content | str:
        """The content of a report on the results, or the reason why there is none."""
        if self.results is None:
            return self.trouble
        with _LOCK, warnings.catch_warnings(action="ignore"):
            try:
                return content(self.results)
            except UNREADABLE as error:
                return _one_line(error)

    @cached_property
    def goodput(self) -> dict[str, float]:
        """The goodput of all flows of each run together, in Mbit/s."""
        if self.results is None:
            return {}
        try:
            flows = self.results.flows
        except UNREADABLE:
            return {}
        return dict(flows.group_by("run").agg(pl.col("goodput_mbit_s").sum()).iter_rows())

    @cached_property
    def report(self) -> bytes | None:
        """The report of all results."""
        return None if self.results is None else _report(self.results)

    def report_of(self, run: str) -> bytes | None:
        """The report of one run, if its results are stored."""
        if self.results is None or run not in self.finished:
            return None
        return _report(self.results[run])


_LOCK = threading.RLock()
"""Warning filters are global to the process: one thread at a time may change them."""


def _report(results: Results) -> bytes | None:
    with _LOCK, warnings.catch_warnings(action="ignore"):
        try:
            return written(results, "html")
        except UNREADABLE:
            return None


class Watching:
    """Watches a folder for as long as it is open."""

    def __init__(self, place: str | PathLike[str]) -> None:
        """`place` is a folder or an address. It need not exist yet."""
        self._place = place
        self._closed = threading.Event()
        self._seen: tuple[Signature, bool] | None = None
        self._began: tuple[float, int] | None = None
        self._not_before = 0.0
        self.state = State(place=str(place), trouble="the folder has not been read yet")
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Watching:
        """Reads the folder once, and continues in a thread."""
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stops the thread."""
        self._closed.set()
        self._thread.join(timeout=LOOK_S)

    def _go_on(self) -> None:
        while not self._closed.wait(LOOK_FAR_S if is_address(self._place) else LOOK_S):
            self.look()

    def look(self) -> None:
        """Reads the folder again if it has changed."""
        try:
            folder = at(self._place)
            seen = _signature(folder), _is_running(folder)
        except (OSError, _core.ConfigError) as error:
            folder, seen = None, ((("", 0),), False)
            trouble = _one_line(error)
        else:
            trouble = ""
        began = time.monotonic()
        # The end of a run is read without delay.
        if seen == self._seen or (seen[1] and began < self._not_before):
            return
        self._seen = seen
        self.state = self._read(folder, is_running=seen[1], trouble=trouble)
        took = time.monotonic() - began
        self._not_before = time.monotonic() + took * (1 / SHARE - 1)

    def _read(self, folder: Path | None, *, is_running: bool, trouble: str) -> State:
        results: Results | None = None
        planned: Sequence[Called] = ()
        failed: Mapping[str, str] = {}
        if folder is not None and not folder.is_dir():
            trouble = "the folder is not there yet" if not folder.exists() else "it is not a folder"
        elif folder is not None:
            found = asked(folder)
            planned, failed = (found.runs, found.failed) if found is not None else ((), {})
            with _LOCK, warnings.catch_warnings(action="ignore"):
                try:
                    results = stored(self._place)
                except _core.ConfigError as error:
                    # While the first run is in progress, the absence of results is no error.
                    trouble = "" if is_running and not _has_groups(folder) else _one_line(error)
        before = self.state
        if (
            results is None
            and before.results is not None
            and folder is not None
            and folder.is_dir()
        ):
            # The earlier results stay: a group may be damaged, or be on its way to another place.
            results, planned = before.results, planned or before.planned
            # Reading is tried again even if nothing else changes.
            self._seen = None
        if results is not None and not planned:
            planned = called(results.plans)
        state = State(
            number=before.number + 1,
            place=str(self._place),
            trouble=trouble,
            results=results,
            planned=tuple(planned),
            failed=failed,
            is_running=is_running,
        )
        state = replace(state, left_s=self._left_s(state))
        if state.results is before.results:
            # The files of results read earlier may be gone.
            known = {"finished", "said", "goodput", "report"} & before.__dict__.keys()
            state.__dict__.update({name: before.__dict__[name] for name in known})
        # Computed now, while the files are those that were checked.
        for name in ("said", "goodput"):
            getattr(state, name)
        return state

    def _left_s(self, state: State) -> float | None:
        """Estimated from the runs that have finished since a process was first seen to write."""
        if not state.is_running:
            self._began = None
            return None
        now, finished = time.monotonic(), len(state.finished)
        if self._began is None:
            self._began = now, finished
            return None
        since, before = self._began
        left = sum(run.run not in state.finished for run in state.planned)
        return (now - since) / (finished - before) * left if finished > before else None


def _signature(folder: Path) -> Signature:
    """A value that changes whenever results are added or removed."""
    if not folder.is_dir():
        return ()
    parts = [
        (path.name, path.stat().st_mtime_ns)
        for path in folder.iterdir()
        if GROUP.fullmatch(path.name) or path.name in (RUNS, FAILED)
    ]
    return tuple(sorted(parts))


def _has_groups(folder: Path) -> bool:
    return any(GROUP.fullmatch(path.name) for path in folder.iterdir())


def _is_running(folder: Path) -> bool:
    """Whether a living process has a working folder there."""
    if not folder.is_dir():
        return False
    for working in Store(folder).leftovers():
        try:
            if is_held(working):
                return True
        except OSError:
            continue
    return False


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
