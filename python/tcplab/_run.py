"""Runs experiments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from tcplab import _core
from tcplab._asked import keep
from tcplab._backends import prepared
from tcplab._experiment import loaded
from tcplab._memory import Budget
from tcplab._progress import Progress
from tcplab._results import Results
from tcplab._store import READABLE, InMemory, OnDisk, RunTables, Store
from tcplab._walls import Access, access_for, announce
from tcplab._warnings import warn, warn_of
from tcplab._workers import Finish, Workers
from tcplab.experiment import Experiment

MOST_TROUBLES = 5
"""So many runs that are computed anew are named; more are counted."""


def run(
    experiment: Experiment | Mapping[str, Any] | str | PathLike[str],
    *,
    out: str | PathLike[str] | None = None,
    workers: int | None = None,
    memory: str | None = None,
    backend: str = "sim",
    kernel: str | None = None,
    progress: bool | None = None,
    allow_read: Sequence[str | PathLike[str]] = (),
) -> Results:
    """Runs all that an experiment, or the file of one, asks for.

    Args:
        experiment: The experiment, also as a plain dict, or the path of its file.
        out: A folder for the tables of all runs. Runs that are there already are not run again, so
            that what was interrupted goes on where it stopped; those whose files are missing,
            damaged or of another run, or whose tables have not their digest, are, with a
            `TcplabWarning`. Without a folder, tables stay in memory.
        workers: How many runs go on at once; by default as many as there are processors. Results
            do not depend on it.
        memory: How much memory all runs that go on at once may take together, like "4 GB"; by
            default half of what is free. Fewer of them go on at once where more would not fit. A
            run that cannot fit is refused before it begins; one that turns out not to is stopped.
        backend: What runs it: `sim` or `linux`. If `linux` needs the default kernel and there is
            none, that is built first.
        kernel: Which kernel the backend `linux` uses, whatever the experiment says. The backend
            `sim` boots none and refuses it.
        progress: Whether progress is shown on standard error: by default as a bar on a terminal,
            and as a line now and then elsewhere.
        allow_read: Files and folders of the machine that programs (traffic of the kind `command`)
            may read, besides the machine's programs and libraries and the folder of the
            experiment's file.

    Raises:
        ConfigError: The experiment cannot be run.
        KernelError: A kernel is needed and cannot be had.
        RunError: A kernel, or a program in it, failed.
        InternalError: A run broke a law that no run may break: a mistake in tcplab.
        OSError: The folder cannot be written.
        KeyboardInterrupt: Ctrl-C. What was finished until then is kept in the folder.
    """
    if workers is not None and not isinstance(workers, int):
        raise TypeError(f"workers: a whole number is needed, not a {type(workers).__name__}")
    if workers is not None and workers < 1:
        raise ValueError(f"workers: {workers} is less than 1")
    budget = Budget.of(memory)
    given = loaded(experiment)
    plans = prepared(given, backend, kernel, progress)
    warn_of(plans)
    access = access_for(given, allow_read, out)
    work = _Work(plans, None if out is None else Store(Path(out)), budget, access)
    try:
        work.take_stored()
        work.run_others(workers or os.cpu_count() or 1, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(work.interrupted()) from None
    if out is not None:
        keep(Path(out), given, plans)
    return Results(plans, work.tables, computed=frozenset(work.computed))


@dataclass
class _Work:
    """The runs of an experiment, on the way to their tables."""

    plans: list[_core.Plan]
    store: Store | None
    budget: Budget
    access: Access
    tables: dict[str, RunTables] = field(default_factory=dict)
    unusable: dict[str, str] = field(default_factory=dict)
    """Stored results that are computed anew: by run, what is wrong with them."""
    computed: list[str] = field(default_factory=list)

    def take_stored(self) -> None:
        """Takes the tables that are there already, and warns of those that cannot be used."""
        if self.store is None:
            return
        if writers := self.store.writers():
            folder = self.store.folder
            warn(f"{folder}: {writers}: results there may be another's than this computer computed")
        for run, plan in {plan.id: plan for plan in self.plans}.items():
            stored = self.store.find(run)
            if stored is None:
                continue
            if trouble := stored.trouble(plan, self.store.agreed) or self._other_reads(
                plan, stored
            ):
                self.unusable[run] = trouble
            else:
                self.tables[run] = stored
        for run, trouble in list(self.unusable.items())[:MOST_TROUBLES]:
            path = self.store.folder / run
            warn(f"{path}: {trouble}; the run is computed anew")
        if (more := len(self.unusable) - MOST_TROUBLES) > 0:
            warn(f"{self.store.folder}: {more} more runs are computed anew for such a reason")

    def _other_reads(self, plan: _core.Plan, stored: OnDisk) -> str | None:
        """Programs are no part of a run's id, nor what they read: it must be what it was."""
        if not plan.commands:
            return None
        now = self.access.state()
        if now and stored.files().get(READABLE) == now:
            return None
        return "its programs may read other files than they could then, or files that have changed"

    def run_others(self, threads: int, progress: bool | None) -> None:
        """Runs what is not there, and stores the tables."""
        # Two variants may be the same, written differently; they have one id and run once.
        by_id = {plan.id: plan for plan in self.plans}
        missing = [plan for run, plan in by_id.items() if run not in self.tables]
        self.computed = [plan.id for plan in missing]
        if not missing:
            return
        threads = self.budget.threads(missing, threads)
        announce(missing, self.access, show=progress is not False)
        with ExitStack() as stack:
            finish: Finish = self._keep
            if self.store is not None:
                finish = stack.enter_context(self.store.open()).write
            simulated_s = sum(plan.duration_s for plan in missing)
            shown = stack.enter_context(
                Progress(runs=len(missing), simulated_s=simulated_s, show=progress)
            )
            while missing:
                workers = Workers(missing, finish, self.access, self.budget.size // threads)
                with closing(workers.outcomes(threads, shown.tick)) as outcomes:
                    for run, outcome in outcomes:
                        self.tables[run] = outcome
                        shown.done += 1
                # What was too large for its share may have all of it, alone.
                missing, threads = workers.too_large, 1

    def _keep(self, _plan: _core.Plan, tables: InMemory) -> RunTables:
        return self.budget.keep(tables)

    def interrupted(self) -> str:
        """How much is finished."""
        runs = {plan.id for plan in self.plans}
        kept, finished = "", set(self.tables)
        if self.store is not None:
            # The last ones may have been stored without having been heard of here.
            finished |= {run for run in runs - set(self.unusable) if self.store.find(run)}
            kept = f" and kept in {self.store.folder}"
        return f"interrupted; {len(finished)} of {len(runs)} runs are finished{kept}"
