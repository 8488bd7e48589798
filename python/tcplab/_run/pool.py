"""Hands out plans to threads, several consecutive ones at a time.

The plans that a thread takes become a group of the store. Consecutive runs are read fastest in the
experiment's order.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

LONGEST_S = 0.7
"""The target duration of one group of runs: a kill costs no more than this."""

SHORTEST_S = 0.1
"""The least duration of a group. Groups shrink towards the end, so that all threads end together.
"""


@dataclass
class Pool:
    """The numbers of the plans that no thread has taken."""

    number: int
    """The number of plans."""
    threads: int
    ends: Sequence[int] = ()
    """For each plan, the end of the stretch that one thread takes as a whole: plans that are equal
    until they change. Empty if there are none.
    """

    _rest: list[range] = field(default_factory=list)
    """Ranges of plans not taken; the first plans are in the last range."""
    _taken: int = 0
    """The number of threads that hold plans."""
    _tried: int = 0
    _took_s: float = 0.0
    _is_closed: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._rest.append(range(self.number))

    def take(self) -> range:
        """The next plans for a thread; empty when nothing is left to do."""
        with self._changed:
            # Another thread may give plans back.
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
        """Returns the plans that a thread did not get to, and records that `tried` plans took
        `took_s`.
        """
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
        """Hands out no further plans."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
