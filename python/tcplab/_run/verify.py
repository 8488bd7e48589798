"""Checks stored results: against their digests, against the laws, and by running them again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from os import PathLike
from pathlib import Path

import polars as pl

from tcplab import _core
from tcplab._experiment.reading import load
from tcplab._run.backends import other_version
from tcplab._run.memory import Budget
from tcplab._run.sandbox import Access, named
from tcplab._store.long_table import ROWS
from tcplab._store.manifest import RUNS, asked, groups_at, is_group
from tcplab._store.plans import Called, called
from tcplab._store.read_back import Find, check, parts
from tcplab._store.remote import at
from tcplab._store.run_groups import PLANS, TABLES, Loaded, OnDisk

FILE = f"{PLANS}.parquet"

FAILED = (_core.ConfigError, _core.KernelError, _core.RunError, _core.InternalError)


@dataclass(frozen=True)
class Finding:
    """A fault of stored results."""

    folder: Path
    """The folder of the group of runs."""
    run: str | None
    """The run, or `None` if the fault concerns all runs of the group."""
    where: str
    """The file."""
    what: str
    """The fault, and the row in which it is."""
    is_unrepeated: bool = False
    """Whether the only finding is that the run cannot be repeated here."""

    def __str__(self) -> str:
        """The finding in one line."""
        what = " ".join(self.what.split())
        run = "" if self.run is None else f"{self.run}: "
        return f"{self.folder}: {run}{self.where}: {what}"


@dataclass(frozen=True)
class Verification:
    """The outcome of checking stored results."""

    runs: Sequence[str]
    """The runs that were checked, as far as the files tell which runs there are."""
    findings: Sequence[Finding]
    """The faults, in the order of the runs. Empty if there are none."""
    unrepeated: Sequence[Finding] = ()
    """Runs without a fault that were not repeated, with the reason."""


def verify(
    results: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    again: bool = False,
    workers: int | None = None,
    allow_read: Sequence[str | PathLike[str]] = (),
) -> Verification:
    """Checks stored results.

    The tables of each run must have the digest that was stored with them, belong to the plan that
    was stored with them, and keep the laws that every run must keep. Every file must have its
    checksum. The stored experiment must be the one that the list of runs was made from, and ask for
    the runs of that list.

    Args:
        results: A folder or address of results, a folder of several of these, or the folder of one
            group of runs; or a list of such places.
        again: Whether every run is also computed again, and compared bit for bit. Only `wall_s`,
            the elapsed time, may differ. A run is not repeated if it is of another version of
            tcplab, needs a kernel that is not installed, or uses a congestion control of your own
            that is not registered: `unrepeated` lists these runs.
        workers: The number of concurrent checks; by default the number of processors.
        allow_read: With `again`, the files and folders that programs may read besides the machine's
            own: those that they could read before, including the folder of the experiment.

    Raises:
        ConfigError: One of the places has no results, or its results cannot be read.
        KeyboardInterrupt: Ctrl-C.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers: {workers} is less than 1")
    given = [results] if isinstance(results, (str, PathLike)) else [*results]
    if not given:
        raise _core.ConfigError("results: none are named")
    groups = {group.folder: group for place in given for group in _groups(at(place))}
    threads = workers or os.cpu_count() or 1
    reads = tuple(named(path) for path in allow_read)
    checks = _Checks(again, Budget.of(None).size // threads, reads)
    runs, found = checks.all([*groups.values()], threads)
    found = [*_of_lists([*groups.values()]), *found]
    wrong = [finding for finding in found if not finding.is_unrepeated]
    return Verification(runs, wrong, [finding for finding in found if finding.is_unrepeated])


def _of_lists(groups: Sequence[OnDisk]) -> list[Finding]:
    """The faults of the lists of runs in the folders of these groups. A folder without a list has
    none: its results are complete without it.
    """
    found = []
    for folder in dict.fromkeys(group.folder.parent for group in groups):
        if (folder / RUNS).exists():
            own = [group for group in groups if group.folder.parent == folder]
            found += [Finding(folder, None, RUNS, what) for what in _of_list(folder, own)]
    return found


def _of_list(folder: Path, groups: Sequence[OnDisk]) -> Iterator[str]:
    """The first fault of the list of runs in a folder."""
    listed = asked(folder)
    if listed is None:
        yield "is not the list of runs that tcplab run writes"
    elif listed.file is None:
        yield "the experiment beside it is missing, or is not the one of these runs"
    elif (runs := _runs_of(folder / listed.file, groups)) is not None:
        if len(runs) != len(listed.runs):
            yield f"has {len(listed.runs)} runs, and {listed.file} asks for {len(runs)}"
            return
        pairs = zip(listed.runs, runs, strict=True)
        differ = ((at, *pair) for at, pair in enumerate(pairs) if pair[0] != pair[1])
        for at, one, other in islice(differ, 1):
            yield f"run {at} is {_said(one)}, and {listed.file} asks for {_said(other)}"


def _said(one: Called) -> str:
    swept = "".join(f", {path} = {text}" for path, text in one.swept)
    return f"{one.run} ({one.experiment}, repetition {one.repetition}{swept})"


def _runs_of(file: Path, groups: Sequence[OnDisk]) -> list[Called] | None:
    """The runs that an experiment asks for; `None` if they cannot be worked out here: another
    version made them, something that they need is missing, or their number depends on results.
    """
    try:
        texts = next((texts for group in groups if (texts := group.plan_texts())), {})
        ran = _core.Plan.from_json(next(iter(texts.values())))
        if other_version(ran):
            return None
        plans = load(file).plans(ran.backend, kernel=ran.kernel)
    except (_core.ConfigError, _core.KernelError, OSError, StopIteration, ValueError):
        return None
    return None if any(plan.until for plan in plans) else called(plans)


def _groups(place: Path) -> list[OnDisk]:
    """The groups of runs at a place."""
    if not place.is_dir():
        what = "is not a folder" if place.exists() else "there is no such folder"
        raise _core.ConfigError(f"{place}: {what}; expected results of tcplab run")
    try:
        # A folder of one experiment, or of several: `results`, and the output of `tcplab compare`.
        found = groups_at(place) or [
            group
            for folder in sorted(place.iterdir())
            if folder.is_dir() and not is_group(folder)
            for group in groups_at(folder)
        ]
    except OSError as error:
        raise _core.ConfigError(f"{place}: {(error.strerror or 'unknown').lower()}") from None
    if not found:
        raise _core.ConfigError(f"{place}: has no results of a run; expected results of tcplab run")
    return found


class _UnrepeatableError(Exception):
    """A run without fault cannot be repeated, because something that it needs is missing."""


@dataclass
class _Checks:
    """Checks of several runs at once. All of them stop together."""

    again: bool
    memory: int
    """The bytes that a run may hold when it is computed again."""
    reads: tuple[Path, ...]
    """The files that programs may read, provided that they could read them before."""
    _watches: list[_core.Watch] = field(default_factory=list)

    def all(self, groups: Sequence[OnDisk], workers: int) -> tuple[list[str], list[Finding]]:
        """The runs, and the findings about them."""
        with ThreadPoolExecutor(workers) as pool:
            futures: list[Future[list[Finding]]] = []
            runs: list[str] = []
            try:
                for group in groups:
                    damage, known = self._check_group(group)
                    runs += known
                    tables, texts = group.loaded(), {} if damage else group.plan_texts()
                    futures += [
                        pool.submit(self._check, tables, run, texts[run])
                        for run in known
                        if not damage
                    ]
                    done: Future[list[Finding]] = Future()
                    done.set_result(damage)
                    futures.append(done)
                return runs, [finding for future in futures for finding in future.result()]
            except BaseException:
                for future in futures:
                    future.cancel()
                for watch in list(self._watches):
                    watch.stop()
                raise

    @staticmethod
    def _check_group(group: OnDisk) -> tuple[list[Finding], list[str]]:
        """The faults of the files of a group, and its runs."""
        findings = []
        if damage := group.damage():
            findings.append(Finding(group.folder, None, *damage))
        try:
            return findings, list(group.ran)
        except ValueError as error:
            return findings or [Finding(group.folder, None, FILE, str(error))], []

    def _check(self, tables: Loaded, run: str, text: str) -> list[Finding]:
        findings = []

        def find(where: str, what: object) -> None:
            findings.append(Finding(tables.group.folder, run, where, str(what)))

        plan = _plan(run, text, find)
        if plan is None:
            return findings
        digest = self._check_tables(tables, plan, find)
        if self.again and not findings:
            try:
                self._run_again(tables, plan, digest, find)
            except _UnrepeatableError as error:
                said = f"not run again: {error}"
                findings.append(Finding(tables.group.folder, run, FILE, said, is_unrepeated=True))
        return findings

    @staticmethod
    def _check_tables(tables: Loaded, plan: _core.Plan, find: Find) -> str:
        """Compares the digest and checks the laws. Returns the digest of the tables."""
        try:
            checked = check(plan, tables, plan.id, find)
        except (TypeError, ValueError) as error:
            find("tables", error)
            return ""
        if checked is None:
            return ""
        digest, broken = checked
        if digest != tables.group.ran[plan.id].digest:
            find("tables", f"do not have the digest of {FILE}: they were changed, or it was")
        if broken is not None:
            find("tables", broken)
        return digest

    def _run_again(self, tables: Loaded, plan: _core.Plan, digest: str, find: Find) -> None:
        if other := other_version(plan):
            raise _UnrepeatableError(f"tcplab {other} made it, and this is {_core.__version__}")
        if not plan.has_classes:
            raise _UnrepeatableError(
                "a class of your own is its congestion control, and is not registered here"
            )
        access = Access()
        if plan.commands:
            found = self._access(tables.group.ran[plan.id].readable or b"")
            if isinstance(found, str):
                find(FILE, f"it cannot be run again: {found}")
                return
            access = found
        watch = _core.Watch(self.memory)
        self._watches.append(watch)
        try:
            frames, computed, files = _core.run(plan, watch, access.reads, access.hidden)
        except _core.KernelError as error:
            raise _UnrepeatableError(str(error)) from None
        except FAILED as error:
            find(FILE, f"it cannot be run again: {error}")
            return
        finally:
            self._watches.remove(watch)
        if computed != digest:
            found = _difference(tables, plan.id, dict(frames), find)
            find("tables", f"run again, it has other results: {found}")
        stored = tables.group.files(plan.id)
        for name, content in files:
            if stored.get(name) != content:
                find(name, "run again, it leaves another file")

    def _access(self, content: bytes) -> Access | str:
        """The files that the programs of a run could read, if they may read them again; else the
        reason.

        Stored lists may come from someone else: only files that the user names are readable.
        """
        try:
            said = json.loads(content)
            reads, hidden = ([Path(path) for path in said[kind]] for kind in ("reads", "hidden"))
        except (ValueError, TypeError, KeyError):
            return "the files that its programs could read are not known"
        if more := [str(path) for path in reads if path not in self.reads]:
            return f"its programs could read {' and '.join(more)}; to allow that, --allow-read"
        access = Access(tuple(reads), tuple(hidden))
        if access.state() != content:
            return "the files that its programs could read have changed"
        return access


def _plan(run: str, text: str, find: Find) -> _core.Plan | None:
    """The plan stored with the tables, or `None` if it does not belong to them."""
    try:
        plan = _core.Plan.from_json(text)
    except ValueError as error:
        find(FILE, error)
        return None
    if plan.id != run:
        find(FILE, f"is of the run {plan.id}")
    elif plan.derived_id != plan.id:
        find(FILE, "was changed: its content has another id")
    else:
        return plan
    return None


def _difference(tables: Loaded, run: str, computed: dict[str, _core.Frame], find: Find) -> str:
    """The first place in which two runs differ."""
    for name in TABLES:
        frame = computed[name]
        numbers = range(frame.parts)
        both = zip_longest(parts(tables, run, name, find), map(frame.part, numbers))
        lengths = [0, 0]
        difference = None
        for number, (stored, other) in enumerate(both):
            old = pl.DataFrame() if stored is None else stored.drop("wall_s", strict=False)
            new = pl.DataFrame(other or ()).drop("wall_s", strict=False)
            lengths = [lengths[0] + len(old), lengths[1] + len(new)]
            if stored is not None and other is not None and old.columns != new.columns:
                return f"the columns of {name}"
            if difference is None and len(old) == len(new):
                difference = _difference_of_rows(name, number * ROWS, old, new)
        if lengths[0] != lengths[1]:
            return f"{name} has {lengths[1]} rows, stored are {lengths[0]}"
        if difference is not None:
            return difference
    return "in the order of texts"


def _difference_of_rows(name: str, first: int, old: pl.DataFrame, new: pl.DataFrame) -> str | None:
    """The first difference between two parts of a table, whose first row has number `first`."""
    for column in old.columns:
        differ = old[column].ne_missing(new[column])
        if differ.any():
            row = differ.arg_max() or 0
            values = f"{new[column][row]!r}, stored is {old[column][row]!r}"
            return f"{name}, row {first + row}: `{column}` is {values}"
    return None
