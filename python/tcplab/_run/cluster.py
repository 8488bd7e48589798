"""Runs plans on the workers of a Dask cluster.

A worker is given a few plans at a time and sends back its tables as files; this computer stores
them. With a single writer, a run is stored once or not at all, whatever happens to a worker: Dask
gives the plans of a lost worker to another one.
"""

from __future__ import annotations

import pickle
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import polars as pl

from tcplab import _core
from tcplab._cc import registry
from tcplab._run.backends import BACKENDS, other_version
from tcplab._run.memory import Budget
from tcplab._run.sandbox import Access
from tcplab._run.workers import Here, Tried
from tcplab._store.long_table import LongTable
from tcplab._store.run_groups import Encoded, InMemory, Ran, encoded

if TYPE_CHECKING:
    from distributed import Client

LEAST_THREADS = 64
"""The least number of attempts that are submitted at once. More than there are workers: a cluster
may grow.
"""

SCHEDULER_TIMEOUT = "10 s"
"""The time that a scheduler has to answer."""

HEED_S = 1.0
"""The interval at which a worker checks whether it should stop."""


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address.

    Raises:
        ConfigError: Dask is not installed.
        OSError: No scheduler answers.
    """
    try:
        from distributed import Client  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError:
        raise _core.ConfigError(
            "a cluster needs Dask: pip install 'tcplab[cluster]', here and on the workers"
        ) from None
    try:
        client = Client(address, timeout=SCHEDULER_TIMEOUT)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise OSError(0, f"no scheduler of Dask can be reached: {reason}", address) from None
    with client:
        yield client


@dataclass(frozen=True)
class Task:
    """The work for one worker."""

    plans: Sequence[str]
    """The plans as JSON."""
    classes: bytes
    """The user's own classes that the plans may name, each with its version, by name; pickled."""
    is_alone: bool
    """Whether the worker runs nothing else, so that the task may use all of its memory."""
    stop: str
    """The name of the Dask event that stops the task."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickling a task runs it."""
        return answer, (self.plans, self.classes, self.is_alone, self.stop)


@dataclass(frozen=True)
class Sent:
    """A group of runs as a worker sends it."""

    ran: Mapping[str, Ran]
    files: Mapping[str, bytes]
    """The file of each table."""
    contents: Mapping[str, Mapping[str, bytes]]


@dataclass(frozen=True)
class Answer:
    """The result of a task."""

    tried: int
    groups: Sequence[Sent]
    failed: Sequence[tuple[int, Exception]]
    end: Exception | None


class Cluster:
    """The workers that a Dask client reaches."""

    def __init__(self, client: Client) -> None:
        """Raises: TypeError: `client` is not a client, or is an asynchronous one."""
        if not callable(getattr(client, "submit", None)) or getattr(client, "asynchronous", True):
            raise TypeError(
                f"client: a distributed.Client is needed, not a {type(client).__name__}; "
                "one with asynchronous=True cannot be used"
            )
        self.client = client
        self.name = f"tcplab-{uuid.uuid4().hex}"
        """The name of the event that stops all tasks, and the prefix of their keys."""
        self.numbers = count()
        self.submitting = threading.Lock()

    def threads(self, plans: Sequence[_core.Plan]) -> int:
        """The number of attempts at these plans that go on at once: two for each thread of the
        workers, so that no thread waits for its next task.

        Raises:
            ConfigError: A plan cannot run there.
        """
        if any(plan.commands for plan in plans):
            raise _core.ConfigError(
                "programs (traffic of the kind `command`) run on this computer only, where what "
                "they read is: not on a cluster"
            )
        there: int = 2 * sum(self.client.nthreads().values())
        return min(max(there, LEAST_THREADS), len(plans))

    def begin(self, threads: int) -> There:
        """Begins one of this many concurrent attempts."""
        return There(self, is_alone=threads == 1)


@dataclass
class There:
    """An attempt on a worker."""

    cluster: Cluster
    is_alone: bool
    reached_s: float = 0.0
    """The simulated time is known only when a worker ends."""
    _is_stopped: threading.Event = field(default_factory=threading.Event)
    _future: Any = None

    def stop(self) -> None:
        """Stops the attempt soon. Called from another thread."""
        from distributed import Event  # noqa: PLC0415 (an extra)

        self._is_stopped.set()
        future = self._future
        if future is not None and not future.done():
            Event(self.cluster.name, client=self.cluster.client).set()
            future.cancel()

    def run(self, plans: list[_core.Plan]) -> Tried:
        """Runs some of the plans, from the first on."""
        from distributed import KilledWorker  # noqa: PLC0415 (an extra)

        try:
            answer = self._answer(plans)
        except KilledWorker as error:
            if len(plans) > 1:
                # At least one of these plans brings the worker down: try the first alone.
                return self.run(plans[:1])
            failure = _core.RunError(
                f"{plans[0].id}: each worker that began it was lost, the last one "
                f"{error.last_worker.address}; a worker that takes more memory than its limit is "
                "ended by Dask"
            )
            return Tried(1, [], [(0, failure)])
        groups = [_received(sent, plans) for sent in answer.groups]
        return Tried(answer.tried, groups, answer.failed, answer.end)

    def _answer(self, plans: Sequence[_core.Plan]) -> Answer:
        cluster = self.cluster
        texts = [plan.to_json() for plan in plans]
        task = Task(texts, _classes(texts), self.is_alone, cluster.name)
        with cluster.submitting:
            if self._is_stopped.is_set():
                return Answer(0, [], [], _core.Interrupted())
            # As bytes: the scheduler inspects what it passes on, and may not have tcplab installed.
            self._future = cluster.client.submit(
                pickle.loads,
                pickle.dumps(task),
                key=f"{cluster.name}-{next(cluster.numbers)}",
                pure=False,
            )
        try:
            found = self._future.result()
        except CancelledError:
            if self._is_stopped.is_set():
                return Answer(0, [], [], _core.Interrupted())
            raise OSError(
                "the scheduler of the cluster was lost, or its task was cancelled by another; the "
                "same command goes on where it stopped"
            ) from None
        except ModuleNotFoundError as error:
            raise _core.RunError(
                f"the workers of the cluster have no {error.name}: install the same version of "
                "tcplab there, with what it needs"
            ) from None
        assert isinstance(found, Answer)
        return found


def _classes(plans: Sequence[str]) -> bytes:
    """The registered classes that plans name.

    A class is pickled by value, with everything it uses of its module: workers need not have the
    module.
    """
    import cloudpickle  # noqa: PLC0415 (it comes with Dask)

    named = {
        name: one
        for name, one in registry.registered.items()
        if any(f'"{name}"' in plan for plan in plans)
    }
    own = (cls.__module__ for cls, _ in named.values())
    modules = {name for name in own if name in sys.modules and name != "__main__"}
    with ExitStack() as stack:
        for name in modules - cloudpickle.list_registry_pickle_by_value():
            cloudpickle.register_pickle_by_value(sys.modules[name])
            stack.callback(cloudpickle.unregister_pickle_by_value, sys.modules[name])
        content: bytes = cloudpickle.dumps(named)
        return content


def _received(sent: Sent, plans: Sequence[_core.Plan]) -> InMemory:
    frames = {name: Encoded(file) for name, file in sent.files.items()}
    own = {plan.id: plan for plan in plans if plan.id in sent.ran}
    return InMemory(sent.ran, frames, own, sent.contents)


def answer(texts: Sequence[str], classes: bytes, is_alone: bool, stop: str) -> Answer:
    """Runs a task; called on the worker."""
    from distributed import Event, get_worker  # noqa: PLC0415 (an extra)

    worker = get_worker()
    plans = [_core.Plan.from_json(text) for text in texts]
    for plan in plans:
        if plan.id != plan.derived_id:
            raise _core.RunError(
                f"the worker {worker.address} reads the plan of {plan.id} in another way: it needs "
                "the same version of tcplab"
            )
    _make_ready(plans, pickle.loads(classes), worker.address)
    share = 1 if is_alone else worker.state.nthreads
    limit = worker.memory_manager.memory_limit
    memory = (limit // 2 if limit else Budget.of(None).size) // share
    here = Here(Access(), memory)
    tried: list[Tried | BaseException] = []

    def work() -> None:
        try:
            tried.append(here.run(plans))
        except BaseException as error:  # Raised again in the waiting thread.
            tried.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(HEED_S)
    while thread.is_alive():
        # Dask cancels only tasks that have not begun.
        if Event(stop).is_set():
            here.stop()
        thread.join(HEED_S)
    found = tried[0]
    if isinstance(found, BaseException):
        raise found
    if not all(plan.has_classes for plan in plans):
        raise _core.RunError(f"{worker.address}: another user's class took the place of yours")
    end = found.end if isinstance(found.end, Exception) else None
    return Answer(found.number, [_sent(group) for group in found.groups], found.failed, end)


def _make_ready(
    plans: Sequence[_core.Plan], classes: Mapping[str, tuple[Any, str]], worker: str
) -> None:
    """Builds what the plans need and the worker lacks.

    Raises:
        RunError: It cannot be built.
    """
    for name, (cls, version) in classes.items():
        if not all(plan.has_classes for plan in plans):
            _core.register(name, cls, version)
    for name in dict.fromkeys(plan.backend for plan in plans):
        if (prepare := BACKENDS[name].prepare) is not None:
            prepare([plan for plan in plans if plan.backend == name], False)
    if other := next(filter(None, map(other_version, plans)), None):
        raise _core.RunError(f"the worker {worker} has tcplab {_core.__version__}, not {other}")
    if not all(plan.has_classes for plan in plans):
        raise _core.RunError(f"the worker {worker} cannot be given your own class")


def _sent(group: InMemory) -> Sent:
    files = {name: _file(frame) for name, frame in group.frames.items()}
    return Sent(group.ran, files, group.contents)


def _file(frame: pl.DataFrame | LongTable | Encoded) -> bytes:
    match frame:
        case Encoded():
            return frame.content
        case LongTable():
            return encoded(frame.lazy().collect())
        case _:
            return encoded(frame)
