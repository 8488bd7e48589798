"""The Rust side: text in, tables out. `tcplab` wraps it; nothing else should need it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

__all__ = [
    "Ack",
    "Algorithm",
    "ConfigError",
    "Congestion",
    "Control",
    "Document",
    "FlowState",
    "Frame",
    "Init",
    "Interrupted",
    "Kernel",
    "KernelError",
    "Plan",
    "RunError",
    "Watch",
    "__version__",
    "algorithms",
    "build_kernel",
    "columns",
    "kernels",
    "profile",
    "profiles",
    "register",
    "remove_kernel",
    "run",
    "schema",
]

__version__: str

class ConfigError(ValueError):
    """An experiment that cannot be run: one line for each mistake, with its place."""

class KernelError(Exception):
    """A kernel cannot be had, or not used."""

class RunError(Exception):
    """A run failed: what it ran in, or its programs."""

class Interrupted(Exception):  # noqa: N818 (a state, not a mistake)
    """A run was stopped before its end."""

@final
class Algorithm:
    """A congestion control, as listings show it."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def year(self) -> int: ...
    @property
    def summary(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def explanation(self) -> str: ...
    @property
    def parameters(self) -> list[tuple[str, str, str]]: ...
    @property
    def presets(self) -> list[tuple[str, str, str, str]]: ...

@final
class Document:
    """An experiment as it was written, and the name of its file for messages."""

    @staticmethod
    def from_toml(text: str, file: str | None = None) -> Document: ...
    @staticmethod
    def from_json(text: str, file: str | None = None) -> Document: ...
    @property
    def name(self) -> str: ...
    def to_json(self) -> str: ...
    def plans(self, backend: str, kernel: str | None = None) -> list[Plan]: ...

@final
class Plan:
    """One run with nothing left open."""

    @property
    def id(self) -> str: ...
    @property
    def experiment(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def repetition(self) -> int: ...
    @property
    def swept(self) -> list[tuple[str, str]]: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def backend(self) -> str: ...
    @property
    def kernel(self) -> str | None: ...
    def to_json(self) -> str: ...

@final
class Watch:
    """How far a run is; and the means to stop it."""

    def __new__(cls) -> Watch: ...
    @property
    def reached_s(self) -> float: ...
    def stop(self) -> None: ...

@final
class Frame:
    """A table of results, to be read by the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Kernel:
    """A kernel in the cache."""

    @property
    def name(self) -> str: ...
    @property
    def release(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def hz(self) -> int: ...
    @property
    def source(self) -> str: ...
    @property
    def congestion_controls(self) -> list[str]: ...
    @property
    def compiler(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def is_outdated(self) -> bool: ...

def run(
    plan: Plan, watch: Watch
) -> tuple[list[tuple[str, Frame]], str, list[tuple[str, bytes]]]: ...
def algorithms() -> list[Algorithm]: ...
def profiles() -> list[tuple[str, str]]: ...
def profile(name: str) -> list[tuple[str, str, str]]: ...
def columns() -> list[tuple[str, str, str]]: ...
def schema() -> str: ...
def build_kernel(
    wish: Mapping[str, Any], progress: Callable[[str, int, int, str], object]
) -> Kernel: ...
def kernels() -> list[Kernel]: ...
def remove_kernel(name: str) -> None: ...
def register(name: str, class_: Any, version: str) -> None: ...

@final
class Init:
    """What a flow is started with."""

    @property
    def mss(self) -> int: ...
    @property
    def initial_window(self) -> int: ...
    @property
    def seed(self) -> int: ...

@final
class FlowState:
    """What the sender knows. Windows are in segments."""

    @property
    def now_s(self) -> float: ...
    @property
    def mss(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def delivered(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def srtt_s(self) -> float | None: ...
    @property
    def min_rtt_s(self) -> float | None: ...
    @property
    def rto_s(self) -> float: ...
    @property
    def una(self) -> int: ...
    @property
    def nxt(self) -> int: ...
    @property
    def cwnd_limited(self) -> bool: ...
    @property
    def is_recovering(self) -> bool: ...

@final
class Ack:
    """What one ACK brought. Counts are of segments."""

    @property
    def acked(self) -> int: ...
    @property
    def credit(self) -> int: ...
    @property
    def delivered(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def marked(self) -> int: ...
    @property
    def rtt_s(self) -> float | None: ...
    @property
    def rate_mbit_s(self) -> float | None: ...
    @property
    def round_min_rtt_s(self) -> float | None: ...
    @property
    def ends_round(self) -> bool: ...

@final
class Congestion:
    """The start of a congestion episode."""

    @property
    def cause(self) -> str: ...
    @property
    def flight(self) -> int: ...
    @property
    def again(self) -> bool: ...

@final
class Control:
    """A decision."""

    def __new__(
        cls,
        cwnd: float,
        *,
        ssthresh: float | None = None,
        pacing_mbit_s: float | None = None,
        prr: bool = True,
    ) -> Control: ...
