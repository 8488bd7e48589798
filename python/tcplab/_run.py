"""Runs experiments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

from tcplab import _core
from tcplab._asked import keep
from tcplab._backends import prepared
from tcplab._experiment import loaded
from tcplab._failed import keep_failed
from tcplab._groups import Group, InMemory, OnDisk
from tcplab._memory import Budget
from tcplab._progress import Progress
from tcplab._results import Results
from tcplab._store import Store, Workplace, held, located
from tcplab._until import rounds
from tcplab._walls import Access, access_for, announce
from tcplab._warnings import warn, warn_of
from tcplab._workers import Attempt, Finish, Here, Workers
from tcplab.experiment import Experiment

if TYPE_CHECKING:
    from distributed import Client

MOST_TROUBLES = 5
"""So many reasons to compute runs anew are said; more are counted."""

OFTEN = 64
"""So many groups are written before small ones become larger ones."""

MOST_FAILURES = 10
"""So many runs that failed are named; more are counted."""


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
    client: Client | None = None,
) -> Results:
    """Runs all that an experiment, or the file of one, asks for.

    Args:
        experiment: The experiment, also as a plain dict, or the path of its file.
        out: A folder for the tables of all runs, or the address of one that fsspec knows, like
            "s3://bucket/sweep". Runs that are there already are not run again, so
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
        client: A client of Dask (`distributed.Client`): the workers of its cluster run the
            experiment, each with the memory and the threads that it was given, and this computer
            stores what they send.

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
    if client is not None and (workers is not None or memory is not None):
        raise ValueError("workers, memory: the workers of a cluster have limits of their own")
    if out is not None and not os.fspath(out):
        raise ValueError("out: an empty name is no folder; `.` is the current one")
    budget = Budget.of(memory)
    given = loaded(experiment)
    plans = prepared(given, backend, kernel, progress)
    warn_of(plans)
    access = access_for(given, allow_read, out)
    work = _Work(given, plans, None if out is None else Store.at(out), budget, access)
    site: Site = Computer(access, budget, workers or os.cpu_count() or 1)
    if client is not None:
        from tcplab._cluster import Cluster  # noqa: PLC0415 (Dask is an extra)

        site = Cluster(client)
    work.warn_of_others()
    try:
        for chosen in rounds(plans, work.results):
            work.begin(chosen)
            work.take_stored()
            work.run_others(site, progress)
            if work.failed:
                break
    except KeyboardInterrupt:
        raise KeyboardInterrupt(work.interrupted()) from None
    work.write_down()
    if work.failed:
        raise work.failure()
    return work.results(work.plans)


class Site(Protocol):
    """Where plans run."""

    def threads(self, plans: Sequence[_core.Plan]) -> int:
        """How many attempts at these plans go on at once.

        Raises:
            ConfigError: A plan cannot run there.
        """

    def begin(self, threads: int) -> Attempt:
        """Begins an attempt, one of so many that go on at once."""


@dataclass(frozen=True)
class Computer:
    """This computer."""

    access: Access
    """What programs may read."""
    budget: Budget
    wanted: int
    """How many runs are to go on at once, where there is memory for so many."""

    def threads(self, plans: Sequence[_core.Plan]) -> int:
        """How many attempts at these plans go on at once."""
        return self.budget.threads(plans, self.wanted)

    def begin(self, threads: int) -> Here:
        """Begins an attempt, one of so many that go on at once."""
        return Here(self.access, self.budget.size // threads)


@dataclass
class _Work:
    """The runs of an experiment, on the way to their tables."""

    given: Experiment
    plans: list[_core.Plan]
    store: Store | None
    budget: Budget
    access: Access
    tables: dict[str, Group] = field(default_factory=dict)
    """By run, the group that it is in."""
    unusable: list[OnDisk] = field(default_factory=list)
    """Stored groups whose runs are computed anew."""
    replaced: set[str] = field(default_factory=set)
    """Stored runs that are computed anew, while their groups are good."""
    computed: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)
    is_untidy: bool = False
    """Whether a stored run is in two groups."""
    is_listed: bool = False
    """Whether these runs were written down as those that are asked for."""

    @cached_property
    def by_id(self) -> dict[str, _core.Plan]:
        """The plans. Two variants may be the same, written differently: they have one id and run
        once.
        """
        return {plan.id: plan for plan in self.plans}

    def begin(self, plans: list[_core.Plan]) -> None:
        """Goes on with these plans: those that have run, and others."""
        self.plans, self.is_listed = plans, False
        vars(self).pop("by_id", None)

    def results(self, plans: Sequence[_core.Plan]) -> Results:
        """What came out of plans that have run."""
        return Results(plans, self.tables, computed=frozenset(self.computed))

    def write_down(self) -> None:
        """Writes down what was asked for, and what failed, beside the results."""
        if self.store is not None:
            keep(self.store.folder, self.given, self.plans)
            failed = {run: str(error) for run, error in self.failed.items()}
            keep_failed(self.store.folder, self.plans, failed)
            self.store.send()

    def warn_of_others(self) -> None:
        """Warns where others can write results."""
        # Who can write to an address cannot be told.
        if self.store is None or self.store.remote is not None:
            return
        if writers := self.store.writers():
            folder = self.store.folder
            warn(f"{folder}: {writers}: results there may be another's than this computer computed")

    def take_stored(self) -> None:
        """Takes the tables that are there already, and warns of those that cannot be used."""
        if self.store is not None:
            with held(self.store.folder):
                self._take(self.store)

    def _take(self, store: Store) -> None:
        troubles: list[tuple[OnDisk, str]] = []
        reads: list[str] = []
        for group in store.groups():
            try:
                self.is_untidy |= not self.tables.keys().isdisjoint(group.ran)
                runs = [run for run in group.ran if run in self.by_id and run not in self.tables]
                trouble = runs and store.trouble(group, self.by_id)
            except ValueError as error:
                trouble = str(error)
            if trouble:
                troubles.append((group, trouble))
                continue
            if runs:
                group.hold()
            for run in runs:
                if self._reads_the_same(run, group):
                    self.tables[run] = group
                else:
                    reads.append(run)
        self.unusable = [group for group, _ in troubles]
        self.replaced = {run for run in reads if run not in self.tables}
        self._warn(troubles)

    def _reads_the_same(self, run: str, group: OnDisk) -> bool:
        """Programs are no part of a run's id, nor what they read: it must be what it was."""
        if not self.by_id[run].commands:
            return True
        now = self.access.state()
        return bool(now) and group.ran[run].readable == now

    def _warn(self, troubles: Sequence[tuple[OnDisk, str]]) -> None:
        missing = self.by_id.keys() - self.tables.keys()
        anew = ((group, trouble, _anew(group, missing)) for group, trouble in troubles)
        said = [f"{group.folder}: {trouble}; {what}" for group, trouble, what in anew if what]
        said += [
            f"{run}: its programs may read other files than they could then, or files that have "
            "changed; the run is computed anew"
            for run in sorted(self.replaced)
        ]
        for line in said[:MOST_TROUBLES]:
            warn(line)
        if self.store is not None and (more := len(said) - MOST_TROUBLES) > 0:
            runs = "1 run is" if len(missing) == 1 else f"{len(missing)} runs are"
            warn(f"{self.store.name}: {more} more of such reasons; {runs} computed in all")

    def run_others(self, site: Site, progress: bool | None) -> None:
        """Runs what is not there, and stores the tables."""
        missing = [plan for run, plan in self.by_id.items() if run not in self.tables]
        self.computed += [plan.id for plan in missing]
        if not missing:
            self._tidy_after_kill()
            return
        threads = site.threads(missing)
        announce(missing, self.access, show=progress is not False)
        with ExitStack() as stack:
            place = None if self.store is None else stack.enter_context(self.store.open())
            finish: Finish = place.write if place else self._keep
            simulated_s = sum(plan.duration_s for plan in missing)
            shown = stack.enter_context(
                Progress(runs=len(missing), simulated_s=simulated_s, show=progress)
            )
            written = 0
            while missing:
                workers = Workers(missing, finish, partial(site.begin, threads))
                with closing(workers.outcomes(threads, shown.tick)) as outcomes:
                    for outcome in outcomes:
                        self.tables |= outcome.finished
                        self.failed |= outcome.failed
                        shown.done += len(outcome.finished) + len(outcome.failed)
                        written += 1
                        if place is not None and outcome.finished and not self.is_listed:
                            # With the first results: after a kill, what is missing is known.
                            keep(place.store.folder, self.given, self.plans)
                            place.store.send()
                            self.is_listed = True
                        if place is not None and written % OFTEN == 0:
                            self._tidy(place)
                        if self.failed and (self.store is None or len(self.by_id) == 1):
                            raise next(iter(self.failed.values()))
                # What was too large for its share may have all of it, alone.
                missing, threads = workers.too_large, 1
            if place is not None:
                self._tidy(place)

    def _tidy_after_kill(self) -> None:
        """Removes what a killed process left, where all runs are there."""
        if self.store is not None and (self.is_untidy or self.unusable or self.store.leftovers()):
            # Where nothing can be written, nothing need be.
            with suppress(OSError), self.store.open() as place:
                self._tidy(place)

    def _tidy(self, place: Workplace) -> None:
        """Leaves few groups, each run in one of them, in the order in which they were asked for."""
        own = {run: self.tables[run] for run in self.by_id if run in self.tables}
        stored = {run: group for run, group in own.items() if isinstance(group, OnDisk)}
        self.tables.update(place.tidy(stored, self.unusable))
        # Runs of an earlier round may have been merged too.
        self.tables.update(located(self.tables))

    def failure(self) -> Exception:
        """What to raise for the runs that failed."""
        first = next(iter(self.failed.values()))
        runs = [self.by_id[run] for run in self.failed]
        lines = [
            f"  {plan.id}{''.join(f', {name} = {value}' for name, value in plan.swept)}: "
            f"{str(self.failed[plan.id]).splitlines()[0]}"
            for plan in runs[:MOST_FAILURES]
        ]
        if (more := len(runs) - MOST_FAILURES) > 0:
            lines.append(f"  and {more} more")
        folder = self.store.name if self.store is not None else None
        said = (
            f"{len(runs)} of {len(self.by_id)} runs failed; the others are kept in {folder}, and "
            "the same command tries these again"
        )
        return type(first)("\n".join([f"{said}:", *lines]))

    def _keep(self, group: InMemory) -> dict[str, Group]:
        return dict.fromkeys(group.ran, self.budget.keep(group))

    def interrupted(self) -> str:
        """How much is finished."""
        kept, finished = "", set(self.tables)
        if self.store is not None:
            # The last ones may have been stored without having been heard of here.
            unusable = {group.folder for group in self.unusable}
            for group in self.store.groups():
                with suppress(ValueError):
                    if group.folder not in unusable:
                        finished |= self.by_id.keys() & group.ran.keys() - self.replaced
            kept = f" and kept in {self.store.name}"
        return f"interrupted; {len(finished)} of {len(self.by_id)} runs are finished{kept}"


def _anew(group: OnDisk, missing: Set[str]) -> str:
    """How many runs of a group that cannot be used are computed anew; empty if there are none."""
    try:
        number = len(missing & group.ran.keys())
    except ValueError:
        return "its runs are computed anew"
    if not number:
        return ""
    runs = "its run is" if number == 1 else f"its {number} runs are"
    return f"{runs} computed anew"
