"""Runs with the names that an experiment gives them, and their plans, which are read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, overload

from tcplab import _core


class Called(NamedTuple):
    """A run with the name that an experiment gives it. The id identifies the result only."""

    run: str
    experiment: str
    repetition: int
    swept: Sequence[tuple[str, str]]


def called(plans: Iterable[_core.Plan]) -> list[Called]:
    """The names that an experiment gives the runs of these plans."""
    return [Called(plan.id, plan.experiment, plan.repetition, plan.swept) for plan in plans]


class StoredPlans(Sequence[_core.Plan]):
    """Plans of stored runs, read on demand: with thousands of runs, plans take longer to read than
    results.
    """

    def __init__(self, called: Sequence[Called], read: Callable[[], dict[str, _core.Plan]]) -> None:
        """`read` returns the plan of each run, by its id."""
        self.called = called
        self._read = read

    @cached_property
    def _plans(self) -> list[_core.Plan]:
        plans = self._read()
        return [
            plans[one.run].named(one.experiment, one.repetition, one.swept) for one in self.called
        ]

    @overload
    def __getitem__(self, place: int) -> _core.Plan: ...
    @overload
    def __getitem__(self, place: slice) -> list[_core.Plan]: ...
    def __getitem__(self, place: int | slice) -> _core.Plan | list[_core.Plan]:
        """One plan, or a slice of the plans."""
        return self._plans[place]

    def __len__(self) -> int:
        """The number of plans."""
        return len(self.called)
