"""Hands out plans to threads, several consecutive ones at a time.

The plans that a thread takes become a group of the store. Consecutive runs are read fastest in the
experiment's order.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

LONGEST_S = 0.7
"""The longest duration of one group of runs: a kill costs no more than this."""

TARGET_S = 0.9 * LONGEST_S
"""The duration that a group should have at most. One that lasted longer than expected would be cut,
and storing the few runs behind the cut takes as long as storing many.
"""

SHORTEST_S = 0.05
"""The least duration of a group. Groups shrink towards the end, so that all threads end together.
"""


@dataclass
class Pool:
    """The numbers of the plans that no thread has taken."""

    durations_s: Sequence[float]
    """The simulated time of each plan. A longer plan is expected to take longer in proportion."""
    threads: int
    ends: Sequence[int] = ()
    """For each plan, the end of the stretch that one thread takes as a whole: plans that are equal
    until they change. Empty if there are none.
    """

    _rest: list[range] = field(default_factory=list)
    """Ranges of plans not taken; the first plans are in the last range."""
    _taken: int = 0
    """The number of threads that hold plans."""
    _until_s: list[float] = field(default_factory=list)
    """The simulated time of all plans before each plan, and of all plans."""
    _simulated_s: float = 0.0
    _took_s: float = 0.0
    _is_closed: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._until_s = [0.0, *accumulate(self.durations_s)]
        self._put(range(len(self.durations_s)))

    def take(self) -> range:
        """The next plans for a thread; empty when nothing is left to do."""
        with self._changed:
            # Another thread may give plans back.
            self._changed.wait_for(lambda: self._is_closed or self._rest or not self._taken)
            if self._is_closed or not self._rest:
                return range(0)
            first = self._rest.pop()
            number = self._most(first)
            if self.ends:
                number = self.ends[first[number - 1]] - first.start
            self._put(first[number:])
            self._taken += 1
            return first[:number]

    def _most(self, first: range) -> int:
        """The number of plans, from the first of these on, that make a group."""
        if not self._simulated_s:
            return 1
        rate = max(self._took_s / self._simulated_s, 1e-9)
        rest_s = rate * sum(map(self._simulated, [first, *self._rest])) / (2 * self.threads)
        most_s = min(max(rest_s, SHORTEST_S), TARGET_S) / rate
        end = bisect_right(self._until_s, self._until_s[first.start] + most_s) - 1
        return max(min(end, first.stop) - first.start, 1)

    def _simulated(self, numbers: range) -> float:
        """The simulated time of consecutive plans."""
        return self._until_s[numbers.stop] - self._until_s[numbers.start]

    def give_back(self, taken: range, tried: int, took_s: float) -> None:
        """Returns the plans that a thread took but did not get to: it tried the first `tried`,
        which took `took_s`.
        """
        with self._changed:
            self._put(taken[tried:])
            self._taken -= 1
            self._simulated_s += self._simulated(taken[:tried])
            self._took_s += took_s
            self._changed.notify_all()

    def _put(self, numbers: range) -> None:
        """Puts plans in front of the others, in one range with those that follow directly."""
        if numbers and self._rest and self._rest[-1].start == numbers.stop:
            numbers = range(numbers.start, self._rest.pop().stop)
        if numbers:
            self._rest.append(numbers)

    def close(self) -> None:
        """Hands out no further plans."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
