"""Your own congestion controls, in Python.

A class with three methods becomes a congestion control of `sim` when it is registered:

- `on_ack(flow, ack)`: an ACK arrived. Once per ACK, after loss detection.
- `on_congestion(flow, event)`: congestion was signalled. Once per episode.
- `control()`: returns the `Control` to use from now on. Called after each event.

The constructor is called for each flow with an `Init`, and with the parameters of the experiment by
name. The class may also have `on_arrival(flow, ack)` (before loss detection), `on_recovered(flow)`,
`on_undo(flow)`, `on_restart(flow, idle_s)`, and `probe()`, which returns a dictionary of numbers
for the samples.

Windows are in segments, times in seconds. Each event takes a few microseconds: fast enough to try
an idea, slow for a study. The behaviour of a class must depend on its inputs only, or runs do not
repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, overload

from tcplab import _core
from tcplab._cc import registry
from tcplab._core import Ack, Congestion, Control, FlowState, Init

__all__ = ["Ack", "Congestion", "CongestionControl", "Control", "FlowState", "Init", "register"]


class CongestionControl(Protocol):
    """The methods that a class must have."""

    def on_ack(self, flow: FlowState, ack: Ack, /) -> None:
        """Called when an ACK has arrived."""

    def on_congestion(self, flow: FlowState, event: Congestion, /) -> None:
        """Called when congestion has been signalled."""

    def control(self) -> Control:
        """Returns the window and the pacing rate to use from now on."""
        ...


Class = TypeVar("Class", bound=Callable[..., CongestionControl])


@overload
def register(name: str, cls: Class, *, version: str | None = None) -> Class: ...
@overload
def register(name: str, *, version: str | None = None) -> Callable[[Class], Class]: ...
def register(
    name: str, cls: Class | None = None, *, version: str | None = None
) -> Class | Callable[[Class], Class]:
    """Registers a class as a congestion control that experiments in this process can name.

    Used as a call, `register("mine", Mine)`, or as a decorator, `@register("mine")`. Registering a
    name again replaces the class.

    Args:
        name: The name in experiments.
        cls: The class.
        version: A text that identifies the behaviour of the class: stored results are reused only
            if it is the same. By default it is a hash of everything the class does: the code of its
            methods, class attributes, base classes, default values, closures, and the globals that
            they use, recomputed whenever an experiment is planned. Your own modules count by the
            attributes that the code reads, or by all attributes if the code does not say which.
            Libraries count by name and version. Code counts as loaded: an edited file counts once
            it is loaded again.

    Raises:
        ConfigError: The name is one of tcplab's own, or the class uses something that differs in
            every process, such as an open file.
        TypeError: The name is missing.
    """
    if not isinstance(name, str):
        given = getattr(name, "__name__", repr(name))
        raise TypeError(f'register needs a name first: `@register("mine")` above {given}')
    if cls is None:
        return lambda decorated: register(name, decorated, version=version)
    missing = [
        method for method in ("on_ack", "on_congestion", "control") if not hasattr(cls, method)
    ]
    if missing:
        raise _core.ConfigError(f"{name}: the class has no {' and no '.join(missing)}")
    registry.register(name, cls, version)
    return cls
