"""Runs as an experiment calls them, and their plans, which are read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, overload

from tcplab import _core


class Called(NamedTuple):
    """A run as an experiment calls it: the id is about results, not names."""

    run: str
    experiment: str
    repetition: int
    swept: Sequence[tuple[str, str]]


def called(plans: Iterable[_core.Plan]) -> list[Called]:
    """How an experiment calls the runs of these plans."""
    return [Called(plan.id, plan.experiment, plan.repetition, plan.swept) for plan in plans]


class StoredPlans(Sequence[_core.Plan]):
    """Plans of stored runs. Those of thousands take longer to read than their results."""

    def __init__(self, called: Sequence[Called], read: Callable[[], dict[str, _core.Plan]]) -> None:
        """`read` gives the plan of each run."""
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
        """One of them, or some."""
        return self._plans[place]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.called)
