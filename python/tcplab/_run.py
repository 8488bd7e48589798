"""Runs experiments."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing
from os import PathLike
from pathlib import Path

from tcplab import _core
from tcplab._experiment import loaded
from tcplab._kernels import DEFAULT_KERNEL, build_kernel
from tcplab._progress import Progress
from tcplab._results import Results
from tcplab._store import InMemory, RunTables, Store
from tcplab._workers import Finish, Workers
from tcplab.experiment import Experiment


def run(
    experiment: Experiment | str | PathLike[str],
    *,
    out: str | PathLike[str] | None = None,
    workers: int | None = None,
    backend: str = "sim",
    kernel: str | None = None,
    progress: bool | None = None,
) -> Results:
    """Runs all that an experiment, or the file of one, asks for.

    Args:
        experiment: The experiment, or the path of its file.
        out: A folder for the tables of all runs. Runs that are there already are not run again, so
            that what was interrupted goes on where it stopped. Without a folder, tables stay in
            memory.
        workers: How many runs go on at once; by default as many as there are processors. Results
            do not depend on it.
        backend: What runs it: `sim` or `linux`. If `linux` needs the default kernel and there is
            none, that is built first.
        kernel: Which kernel the backend `linux` uses, whatever the experiment says.
        progress: Whether progress is shown; by default if standard error is a terminal.

    Raises:
        ConfigError: The experiment cannot be run.
        KernelError: A kernel is needed and cannot be had.
        RunError: A kernel, or a program in it, failed.
        InternalError: A run broke a law that no run may break: a mistake in tcplab.
        OSError: The folder cannot be written.
        KeyboardInterrupt: Ctrl-C. What was finished until then is kept in the folder.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers: {workers} is less than 1")
    plans = _planned(loaded(experiment), backend, kernel, progress)
    tables: dict[str, RunTables] = {}
    with ExitStack() as stack:
        finish: Finish = _keep
        if out is not None:
            store = Store(Path(out))
            place = stack.enter_context(store.open())
            finish = place.write
            for plan in plans:
                if stored := store.find(plan.id):
                    tables[plan.id] = stored
        # Two variants may be the same, written differently; they have one id and run once.
        missing = list({plan.id: plan for plan in plans if plan.id not in tables}.values())
        simulated_s = sum(plan.duration_s for plan in missing)
        shown = stack.enter_context(
            Progress(runs=len(missing), simulated_s=simulated_s, show=progress)
        )
        threads = workers or os.cpu_count() or 1
        try:
            outcomes = Workers(missing, finish).outcomes(threads, shown.tick)
            with closing(outcomes):
                for run_id, outcome in outcomes:
                    tables[run_id] = outcome
                    shown.done += 1
        except KeyboardInterrupt:
            ids = {plan.id for plan in plans}
            kept, finished = "", len(tables)
            if out is not None:
                # The last ones may have been stored without having been heard of here.
                kept = f" and kept in {out}"
                finished = sum(store.find(run_id) is not None for run_id in ids)
            message = f"interrupted; {finished} of {len(ids)} runs are finished{kept}"
            raise KeyboardInterrupt(message) from None
    return Results(plans, tables, computed=frozenset(plan.id for plan in missing))


def _planned(
    experiment: Experiment, backend: str, kernel: str | None, progress: bool | None
) -> list[_core.Plan]:
    """The plans, for kernels that are there: the default one is built if it is needed."""
    plans = experiment.plans(backend, kernel=kernel)
    if any(plan.kernel == DEFAULT_KERNEL for plan in plans):
        found = [known for known in _core.kernels() if known.name == DEFAULT_KERNEL]
        if not found or found[0].is_outdated:
            if progress is not False:
                why = "is of another version of tcplab" if found else "is not there yet"
                said = f"the kernel {DEFAULT_KERNEL} {why}; building it, which takes some minutes"
                print(said, file=sys.stderr, flush=True)
            build_kernel(progress=progress)
            plans = experiment.plans(backend, kernel=kernel)
    return plans


def _keep(_plan: _core.Plan, tables: InMemory) -> RunTables:
    return tables
