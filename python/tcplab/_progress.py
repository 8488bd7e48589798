"""Shows how far a long computation is."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

PATIENCE_S = 2.0
"""What ends sooner needs no progress shown."""


class Progress:
    """A line on the terminal that says how many runs are done, and how much time is simulated."""

    def __init__(self, *, runs: int, simulated_s: float, show: bool | None) -> None:
        """`show` decides; without a decision it is shown if someone watches."""
        self.runs = runs
        self.done = 0
        self.simulated_s = simulated_s
        self._is_wanted = sys.stderr.isatty() if show is None else show
        self._began = time.monotonic()
        self._display: _Display | None = None

    def tick(self, reached_s: float) -> None:
        """All runs together have reached so much simulated time."""
        if self._display is None:
            has_patience = time.monotonic() - self._began < PATIENCE_S
            if has_patience or not self._is_wanted:
                return
            self._display = _Display(self)
        self._display.update(self.done, reached_s)

    def __enter__(self) -> Self:
        """Begins to wait."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leaves the terminal as it was."""
        if self._display is not None:
            self._display.stop()


class _Display:
    def __init__(self, progress: Progress) -> None:
        # Most commands never show any; they need not wait for it to load.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415
        from rich.progress import Progress as Bars  # noqa: PLC0415

        self._runs = progress.runs
        self._total_s = progress.simulated_s
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[simulated]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True, force_terminal=True),
            transient=True,
        )
        self._task = self._bars.add_task("", total=progress.simulated_s, simulated="")
        self._bars.start()

    def update(self, done: int, reached_s: float) -> None:
        self._bars.update(
            self._task,
            completed=reached_s,
            description=f"{done} of {self._runs} runs",
            simulated=f"{reached_s:.0f} of {self._total_s:.0f} s simulated",
        )

    def stop(self) -> None:
        self._bars.stop()
