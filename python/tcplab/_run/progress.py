"""Shows the progress of a long computation."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from tcplab._core import printable

PROGRESS_AFTER_S = 2.0
"""A computation that ends within this time shows no progress."""

PAUSE_S = 15.0
"""The interval between lines where there is no terminal."""


class _Line:
    """A progress line on a terminal, or occasional lines elsewhere. `show` turns it on, in the form
    for terminals, or off.
    """

    def __init__(self, *, show: bool | None) -> None:
        self._is_wanted = show is not False
        self._is_watched = sys.stderr.isatty() if show is None else show
        self._began = time.monotonic()
        self._said = self._began
        self._display: _Display | None = None

    def _show(self, what: str, done: float, total: float | None, amount: str) -> None:
        if not self._is_wanted:
            return
        now = time.monotonic()
        if not self._is_watched:
            if now - self._said >= PAUSE_S:
                self._said = now
                after = f"{now - self._began:.0f} s"
                parts = [part for part in (after, what, amount) if part]
                sys.stderr.write(printable(", ".join(parts)) + "\n")
                sys.stderr.flush()
            return
        if self._display is None:
            if now - self._began < PROGRESS_AFTER_S:
                return
            self._display = _Display()
        self._display.update(what, done, total, amount)

    def __enter__(self) -> Self:
        """Starts the wait before anything is shown."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restores the terminal."""
        if self._display is not None:
            self._display.stop()


class Progress(_Line):
    """Shows the number of finished runs and the simulated time."""

    def __init__(self, *, runs: int, simulated_s: float, show: bool | None) -> None:
        super().__init__(show=show)
        self.runs = runs
        self.done = 0
        self.simulated_s = simulated_s

    def tick(self, reached_s: float) -> None:
        """Updates the line: all runs together have reached this simulated time."""
        runs = f"{self.done} of {self.runs} runs"
        amount = f"{reached_s:.0f} of {self.simulated_s:.0f} s simulated"
        self._show(runs, reached_s, self.simulated_s, amount)


class Stages(_Line):
    """Shows the current stage of several, and how many of its steps are done."""

    _stage = ""

    def tick(self, stage: str, done: int, total: int, unit: str) -> None:
        """Updates the line: `done` of `total` steps of a stage are done. 0 is an unknown total."""
        if stage != self._stage and self._display is not None:
            # The estimate of the remaining time starts anew with each stage.
            self._display.restart()
        self._stage = stage
        amount = f"{done} of {total} {unit}" if total else ""
        self._show(stage, done, total or None, amount)


class _Display:
    def __init__(self) -> None:
        # Most commands show no progress and need not wait for rich to load.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415
        from rich.progress import Progress as Bars  # noqa: PLC0415

        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True, force_terminal=True),
            transient=True,
        )
        self._task = self._bars.add_task("", total=None, amount="")
        self._bars.start()

    def update(self, what: str, done: float, total: float | None, amount: str) -> None:
        what, amount = printable(what), printable(amount)
        self._bars.update(self._task, completed=done, total=total, description=what, amount=amount)

    def restart(self) -> None:
        self._bars.reset(self._task)

    def stop(self) -> None:
        self._bars.stop()
