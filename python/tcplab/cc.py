"""Congestion controls of your own, in Python.

A class with three methods becomes a congestion control of `sim` when it is registered:

- `on_ack(flow, ack)`: an ACK came. Once per ACK, after losses have been looked for.
- `on_congestion(flow, event)`: congestion was signalled. Once per episode.
- `control()`: the `Control` to use from now on. Asked after each event.

It is called with an `Init` for each flow, and with the parameters of the experiment by name. It may
have `on_arrival(flow, ack)` (before losses are looked for), `on_recovered(flow)`, `on_undo(flow)`,
`on_restart(flow, idle_s)`, and `probe()`, which gives a dictionary of numbers for the samples.

Windows are in segments, times in seconds. Each event takes some microseconds: good for a first
idea, and slow for a study. What a class does must follow from what it is told, or runs do not
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
    """What a class must have."""

    def on_ack(self, flow: FlowState, ack: Ack, /) -> None:
        """An ACK came."""

    def on_congestion(self, flow: FlowState, event: Congestion, /) -> None:
        """Congestion was signalled."""

    def control(self) -> Control:
        """How much may be in flight from now on, and how fast it may be sent."""
        ...


Class = TypeVar("Class", bound=Callable[..., CongestionControl])


@overload
def register(name: str, cls: Class, *, version: str | None = None) -> Class: ...
@overload
def register(name: str, *, version: str | None = None) -> Callable[[Class], Class]: ...
def register(
    name: str, cls: Class | None = None, *, version: str | None = None
) -> Class | Callable[[Class], Class]:
    """Makes a class a congestion control that experiments can name, here and now.

    As a call, `register("mine", Mine)`, or above the class, `@register("mine")`. Registering again
    replaces the class.

    Args:
        name: What experiments call it.
        cls: The class.
        version: What tells it from another class of that name: results that are there already are
            used again only if it is the same. By default a hash over all that the class does: the
            code of its methods, class attributes, base classes, default values, closures, and the
            globals that they use, looked at again whenever an experiment is planned. Of your own
            modules count the attributes that the code reads, or all of them where it does not say
            which. Libraries count by name and version. Code counts as it is loaded: a file that was
            edited counts once it is loaded again.

    Raises:
        ConfigError: The name is one of tcplab's own, or the class uses something that is another
            in every process, like an open file.
        TypeError: There is no name.
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
