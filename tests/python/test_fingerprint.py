"""The version of a class changes with everything that the class does, and with nothing else."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import math
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tcplab._cc.fingerprint import UnstableError, fingerprint

SCRIPT = """
import collections, dataclasses, decimal, enum, fractions, functools, json, math, pathlib, re
from collections import OrderedDict, namedtuple
import tcplab as lab
from tcplab.cc import CongestionControl, Control

class Colour(enum.Enum):
    RED = 1
    BLUE = "two"

@dataclasses.dataclass
class Config:
    step: float = 2.0
    names: set = dataclasses.field(default_factory=lambda: {"a", "b"})

Point = namedtuple("Point", "x y")
TABLE = {"b": frozenset(["x", "y", "z"]), "a": [1, 2.5, None, (True, b"x")]}
config = Config(3.0)
nothing = object()
pattern = re.compile("a+")
numbers = {fractions.Fraction(1, 3), decimal.Decimal("0.1"), Colour.RED, pathlib.PurePath("a")}

@functools.lru_cache
def helper(x, *, y=Point(1, 2)):
    return math.sqrt(x) + y.x if x in {1, 2, 3, "four", "five"} else other(x)

def other(x):
    return helper(x - 1) if x > 1 else len(TABLE)

class Base:
    limit = OrderedDict(a=1)
    @property
    def width(self):
        return self.limit["a"]
    @functools.cached_property
    def height(self):
        return config.step

def made(factor):
    class Made(Base, CongestionControl):
        __slots__ = ("cwnd",)
        def __init__(self, init, mode=Colour.BLUE):
            super().__init__()
            self.cwnd = init.initial_window * factor
        def on_ack(self, flow, ack):
            self.cwnd += helper(ack.credit) + len(numbers) if nothing else pattern
        def on_congestion(self, flow, event):
            self.cwnd = min(json.loads("2"), collections.Counter("aab")["a"])
        def control(self):
            return Control(self.cwnd)
        @staticmethod
        def undefined():
            return not_there_yet
    return Made
"""


def in_a_process(seed: int) -> str:
    program = (
        SCRIPT + "\nfrom tcplab._cc.fingerprint import fingerprint; print(fingerprint(made(2)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    assert len({in_a_process(seed) for seed in range(6)}) == 1


def of(source: str, **known: Any) -> str:
    """The fingerprint of the last class that a source defines."""
    names: dict[str, Any] = {"__name__": "__main__", **known}
    exec(source, names)
    return fingerprint([value for value in names.values() if isinstance(value, type)][-1])


PLAIN = """
import math
K = 2
TABLE = {"a": [1, 2]}
def helper(x, y=1): return deeper(x) + y
def deeper(x): return x * K
class Base:
    limit = 5
    def width(self): return self.limit
class Mine(Base):
    step = 3
    def on_ack(self, flow, ack, factor=2, *, power=1): return helper(ack) + math.sqrt(TABLE["a"][0])
    def control(self): return 1
"""

CHANGES = {
    "a constant": ("return 1", "return 2"),
    "an operation": ("helper(ack) +", "helper(ack) -"),
    "an attribute": ("self.limit", "self.least"),
    "a default value": ("factor=2", "factor=3"),
    "a default value by name": ("power=1", "power=2"),
    "a class attribute": ("step = 3", "step = 4"),
    "one of another type": ("step = 3", "step = 3.0"),
    "a base class": ("limit = 5", "limit = 6"),
    "a global of a function of a function": ("K = 2", "K = 3"),
    "a default value of a function": ("y=1", "y=2"),
    "deep in a table": ("[1, 2]", "[1, 3]"),
    "a method more": ("    step = 3", "    step = 3\n    def on_undo(self, flow): pass"),
    "another function of a module": ("math.sqrt", "math.cbrt"),
    "another module": ("import math", "import cmath as math"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_fingerprint_changes_with_behaviour(change: str) -> None:
    old, new = CHANGES[change]
    assert PLAIN.count(old) == 1
    assert of(PLAIN) != of(PLAIN.replace(old, new))


UNCHANGED = {
    "a comment": ("step = 3", "step = 3  # segments"),
    "lines": ("class Mine", "\n\n\nclass Mine"),
    "a global that nobody uses": ("K = 2", "K = 2\nL = open"),
    "a type": ("flow, ack,", "flow: int, ack: 'float',"),
}


@pytest.mark.parametrize("change", UNCHANGED)
def test_the_fingerprint_ignores_what_does_not_affect_behaviour(change: str) -> None:
    old, new = UNCHANGED[change]
    assert PLAIN.count(old) == 1
    assert of(PLAIN) == of(PLAIN.replace(old, new))


def test_the_fingerprint_includes_closure_values() -> None:
    def made(value: Any) -> type:
        class Made:
            def control(self) -> Any:
                return value

        return Made

    assert fingerprint(made(2)) == fingerprint(made(2))
    sums = [fingerprint(made(value)) for value in (2, 3, "2", 2.0, True, (2,), [2], {2}, None)]
    assert len(set(sums)) == len(sums)
    assert fingerprint(made(made(1))) != fingerprint(made(made(2)))


def test_the_fingerprint_of_objects_is_by_content() -> None:
    @dataclasses.dataclass
    class Config:
        step: float

    class Mode(enum.Enum):
        SLOW = 1
        FAST = 2

    assert fingerprint(Config(1.0)) == fingerprint(Config(1.0))
    assert fingerprint(Config(1.0)) != fingerprint(Config(2.0))
    assert fingerprint(Mode.SLOW) != fingerprint(Mode.FAST)
    assert fingerprint(functools.partial(max, 1)) != fingerprint(functools.partial(max, 2))
    assert fingerprint(math.sin) != fingerprint(math.cos)
    assert fingerprint([].append) != fingerprint([1].append)


def test_cyclic_objects_have_a_fingerprint() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    other: list[Any] = [1]
    other.append(other)
    assert fingerprint(loop) == fingerprint(other) != fingerprint([1, [1]])


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A module of the user's own."""
    (tmp_path / "own_params.py").write_text(
        "import threading\n__version__ = '1'\nlock = threading.Lock()\nwindow = 10\nunread = 1\n"
        "def twice(): return 2 * window\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("own_params")
    yield module
    sys.modules.pop("own_params")


READS = {
    "an attribute": "return own_params.window",
    "a function": "return own_params.twice()",
    "in a function inside": "return (lambda: own_params.window)()",
    "a name that is imported": "from own_params import window; return window",
}


@pytest.mark.parametrize("read", READS)
def test_current_module_attributes_are_in_the_fingerprint(read: str, params: Any) -> None:
    source = f"class Mine:\n    def control(self): {READS[read]}"
    before = of(source, own_params=params)
    params.unread = 2
    Path(str(params.__file__)).write_text("window = 30\n")
    assert of(source, own_params=params) == before
    params.window = 20
    assert of(source, own_params=params) != before
    params.window = 10
    assert of(source, own_params=params) == before


def test_a_module_in_a_package_is_followed() -> None:
    package, params = types.ModuleType("own_package"), types.ModuleType("own_package.params")
    package.params, package.unread = params, threading.Lock()  # type: ignore[attr-defined]
    source = "class Mine:\n    def control(self): return package.params.window"
    sums = []
    for params.window in (10, 20):  # type: ignore[attr-defined]
        sums.append(of(source, package=package))
    assert len(set(sums)) == 2


WHOLE = {
    "by a name": "return getattr(own_params, name)",
    "handed on": "return name(own_params)",
    "under another name": "mine = own_params; return mine.window",
    "imported": "import own_params as mine; return mine.window",
}


@pytest.mark.parametrize("read", WHOLE)
def test_dynamic_module_access_includes_the_whole_module(read: str, params: Any) -> None:
    source = f"class Mine:\n    def control(self, name): {WHOLE[read]}"
    with pytest.raises(UnstableError, match=r"own_params\.lock: an object of _thread.lock"):
        of(source, own_params=params)
    del params.lock
    before = of(source, own_params=params)
    params.window = 20
    assert of(source, own_params=params) != before


def test_circular_module_references_have_a_fingerprint() -> None:
    one, two = types.ModuleType("own_one"), types.ModuleType("own_two")
    one.two, two.one = two, one  # type: ignore[attr-defined]
    assert fingerprint(one) == fingerprint(one)


UNSTABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "a file": (lambda: sys.__stdin__, "_io.TextIOWrapper"),
    "a lock": (threading.Lock, "_thread.lock"),
    "a generator": (lambda: (x for x in "ab"), "generator"),
    "deep in a table": (lambda: {"a": [threading.Lock()]}, "_thread.lock"),
}


@pytest.mark.parametrize("what", UNSTABLE)
def test_process_specific_objects_are_refused_by_name(what: str) -> None:
    make, kind = UNSTABLE[what]
    source = "class Mine:\n    def control(self): return helper()\ndef helper(): return log"
    with pytest.raises(UnstableError) as raised:
        of(source, log=make())
    assert str(raised.value) == (
        f'Mine.control: the global "helper": the global "log": an object of {kind}'
    )


def test_too_deeply_nested_objects_are_refused() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(UnstableError, match="too deeply nested"):
        fingerprint(nested)
