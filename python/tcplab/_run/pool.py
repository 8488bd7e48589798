"""Hands out plans to threads, some that follow each other at a time.

What one thread takes becomes a group of the store. Runs that follow each other are read fastest in
the experiment's order.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

LONGEST_S = 0.7
"""Runs that take so long together are one group: a kill costs no more."""

SHORTEST_S = 0.1
"""Towards the end there is less in a group, so that threads end together: so much, at least."""


@dataclass
class Pool:
    """The numbers of plans that nobody has taken."""

    number: int
    """How many plans there are."""
    threads: int
    ends: Sequence[int] = ()
    """By number, where those end that one thread takes together, if any are: plans that are equal
    until they change."""

    _rest: list[range] = field(default_factory=list)
    """The first ones stand last."""
    _taken: int = 0
    """How many threads have some."""
    _tried: int = 0
    _took_s: float = 0.0
    _is_closed: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._rest.append(range(self.number))

    def take(self) -> range:
        """The next ones; none when there is nothing more to do."""
        with self._changed:
            # What another thread gives back may be left.
            self._changed.wait_for(lambda: self._is_closed or self._rest or not self._taken)
            if self._is_closed or not self._rest:
                return range(0)
            first = self._rest.pop()
            number = min(self._most(len(first)), len(first))
            if self.ends:
                number = self.ends[first[number - 1]] - first.start
            self._put(first[number:])
            self._taken += 1
            return first[:number]

    def _most(self, first: int) -> int:
        if not self._tried:
            return 1
        each_s = max(self._took_s / self._tried, 1e-6)
        rest = (first + sum(map(len, self._rest))) // (2 * self.threads)
        return max(int(min(max(rest * each_s, SHORTEST_S), LONGEST_S) / each_s), 1)

    def give_back(self, rest: range, tried: int, took_s: float) -> None:
        """Takes back what is left of those taken, after so many took so long."""
        with self._changed:
            self._put(rest)
            self._taken -= 1
            self._tried += tried
            self._took_s += took_s
            self._changed.notify_all()

    def _put(self, numbers: range) -> None:
        if numbers:
            self._rest.append(numbers)

    def close(self) -> None:
        """Hands out nothing more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
