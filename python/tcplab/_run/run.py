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
from tcplab._experiment.reading import loaded
from tcplab._results.results import Results
from tcplab._run.backends import prepared
from tcplab._run.memory import Budget
from tcplab._run.progress import Progress
from tcplab._run.repetitions import rounds
from tcplab._run.sandbox import Access, access_for, announce
from tcplab._run.workers import Attempt, Finish, Here, Workers
from tcplab._schema import Experiment
from tcplab._store.failures import keep_failed
from tcplab._store.manifest import Listing, keep, listing
from tcplab._store.run_groups import Group, InMemory, OnDisk
from tcplab._store.store import Store, Workplace, held, located
from tcplab._warnings import warn, warn_of

if TYPE_CHECKING:
    from distributed import Client

MOST_TROUBLES = 5
"""The number of reasons for recomputing runs that are listed; further ones are only counted."""

OFTEN = 64
"""The number of groups written before small groups are merged."""

MOST_FAILURES = 10
"""The number of failed runs that are listed; further ones are only counted."""


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
    """Runs everything that an experiment, or the file of one, asks for.

    Args:
        experiment: The experiment, also as a plain dict, or the path of its file.
        out: A folder for the tables of all runs, or the address of one that fsspec knows, such as
            "s3://bucket/sweep". Runs stored there already are not repeated, so that an interrupted
            experiment continues where it stopped. Stored runs whose files are missing, damaged or
            of another run, or whose tables do not match their digest, are computed again with a
            `TcplabWarning`. Without a folder, tables stay in memory.
        workers: The number of concurrent runs; by default the number of processors. Results do not
            depend on it.
        memory: The memory that all concurrent runs may use together, like "4 GB"; by default half
            of what is free. Fewer runs go on at once if more would not fit. A run that cannot fit
            is refused before it begins; a run that turns out not to fit is stopped.
        backend: The backend: `sim` or `linux`. If `linux` needs the default kernel and it is
            missing, the kernel is built first.
        kernel: The kernel that the backend `linux` uses, in place of the experiment's own. The
            backend `sim` boots no kernel and refuses it.
        progress: Whether progress is shown on standard error: by default as a bar on a terminal,
            and as occasional lines elsewhere.
        allow_read: Files and folders of the machine that programs (traffic of the kind `command`)
            may read, besides the machine's programs and libraries and the folder of the
            experiment's file.
        client: A Dask client (`distributed.Client`). The workers of its cluster run the experiment,
            each with the memory and the threads that it was given, and this computer stores the
            tables that they send.

    Raises:
        ConfigError: The experiment cannot be run.
        KernelError: A kernel is needed and cannot be built.
        RunError: A kernel, or a program in it, failed.
        InternalError: A run broke a law that every run must keep: a bug in tcplab.
        OSError: The folder cannot be written.
        KeyboardInterrupt: Ctrl-C. Runs that had finished are kept in the folder.
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
        from tcplab._run.cluster import Cluster  # noqa: PLC0415 (Dask is an extra)

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
    """A place where plans run."""

    def threads(self, plans: Sequence[_core.Plan]) -> int:
        """The number of concurrent attempts at these plans.

        Raises:
            ConfigError: A plan cannot run there.
        """

    def begin(self, threads: int) -> Attempt:
        """Begins one of this many concurrent attempts."""


@dataclass(frozen=True)
class Computer:
    """This computer."""

    access: Access
    """The files that programs may read."""
    budget: Budget
    wanted: int
    """The number of concurrent runs asked for; memory may allow fewer."""

    def threads(self, plans: Sequence[_core.Plan]) -> int:
        """The number of concurrent attempts at these plans."""
        return self.budget.threads(plans, self.wanted)

    def begin(self, threads: int) -> Here:
        """Begins one of this many concurrent attempts."""
        return Here(self.access, self.budget.size // threads)


@dataclass
class _Work:
    """The runs of an experiment while they are loaded, computed and stored."""

    given: Experiment
    plans: list[_core.Plan]
    store: Store | None
    budget: Budget
    access: Access
    tables: dict[str, Group] = field(default_factory=dict)
    """The group of each run."""
    unusable: list[OnDisk] = field(default_factory=list)
    """Stored groups whose runs are computed again."""
    replaced: set[str] = field(default_factory=set)
    """Stored runs that are computed again although their groups are intact."""
    computed: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)
    is_untidy: bool = False
    """Whether a stored run is in two groups."""
    is_listed: bool = False
    """Whether the list of these runs has been written to the folder."""

    @cached_property
    def by_id(self) -> dict[str, _core.Plan]:
        """The plans by id. Two variants may be the same, written differently: they share an id and
        run once.
        """
        return {plan.id: plan for plan in self.plans}

    @cached_property
    def listing(self) -> Listing:
        """The experiment and its list of runs, as they are written."""
        return listing(self.given, self.plans)

    def begin(self, plans: list[_core.Plan]) -> None:
        """Continues with these plans, some of which may have run already."""
        self.plans, self.is_listed = plans, False
        for worked_out in ("by_id", "listing"):
            vars(self).pop(worked_out, None)

    def results(self, plans: Sequence[_core.Plan]) -> Results:
        """The results of plans that have run."""
        return Results(plans, self.tables, computed=frozenset(self.computed))

    def write_down(self) -> None:
        """Writes the experiment, its list of runs and its failures beside the results."""
        if self.store is not None:
            keep(self.store.folder, self.listing)
            failed = {run: str(error) for run, error in self.failed.items()}
            keep_failed(self.store.folder, self.plans, failed)
            self.store.send()

    def warn_of_others(self) -> None:
        """Warns if others can write to the folder of results."""
        # Write access to an address cannot be determined.
        if self.store is None or self.store.remote is not None:
            return
        if writers := self.store.writers():
            folder = self.store.folder
            warn(f"{folder}: {writers}: results in it may be someone else's")

    def take_stored(self) -> None:
        """Takes the tables that are stored already, and warns of those that cannot be used."""
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
        """Whether the programs of a run could read the same files then as now. Neither programs nor
        what they read is part of a run's id.
        """
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
        """Runs the plans that are not stored, and stores their tables."""
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
                            # Along with the first results: after a kill, the missing runs are
                            # known.
                            keep(place.store.folder, self.listing)
                            place.store.send()
                            self.is_listed = True
                        if place is not None and written % OFTEN == 0:
                            self._tidy(place)
                        if self.failed and (self.store is None or len(self.by_id) == 1):
                            raise next(iter(self.failed.values()))
                # Runs that exceeded their share of the memory run again alone, with all of it.
                missing, threads = workers.too_large, 1
            if place is not None:
                self._tidy(place)

    def _tidy_after_kill(self) -> None:
        """Removes the remains of a killed process if all runs are stored."""
        if self.store is not None and (self.is_untidy or self.unusable or self.store.leftovers()):
            # Without write access, tidying can be left out.
            with suppress(OSError), self.store.open() as place:
                self._tidy(place)

    def _tidy(self, place: Workplace) -> None:
        """Merges the groups into few, each run in one of them, in the order of the experiment."""
        own = {run: self.tables[run] for run in self.by_id if run in self.tables}
        stored = {run: group for run, group in own.items() if isinstance(group, OnDisk)}
        self.tables.update(place.tidy(stored, self.unusable))
        # Runs of an earlier round may have been merged too.
        self.tables.update(located(self.tables))

    def failure(self) -> Exception:
        """The exception to raise for the failed runs."""
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
        """The number of finished runs, for the message after an interrupt."""
        kept, finished = "", set(self.tables)
        if self.store is not None:
            # The last runs may have been stored without this thread having been told.
            unusable = {group.folder for group in self.unusable}
            for group in self.store.groups():
                with suppress(ValueError):
                    if group.folder not in unusable:
                        finished |= self.by_id.keys() & group.ran.keys() - self.replaced
            kept = f" and kept in {self.store.name}"
        return f"interrupted; {len(finished)} of {len(self.by_id)} runs are finished{kept}"


def _anew(group: OnDisk, missing: Set[str]) -> str:
    """How many runs of an unusable group are computed again, as text; empty if none are."""
    try:
        number = len(missing & group.ran.keys())
    except ValueError:
        return "its runs are computed anew"
    if not number:
        return ""
    runs = "its run is" if number == 1 else f"its {number} runs are"
    return f"{runs} computed anew"
