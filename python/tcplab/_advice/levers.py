"""The settings that may change, and the values that are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcplab._core import ConfigError

SIDES = ("sender", "receiver", "router")

BUFFERS = ("64 kB", "256 kB", "1 MB", "4 MB", "16 MB", "64 MB", "256 MB", "1 GB")

LEVERS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "cc": ("sender", ("bbr", "htcp", "illinois", "hybla", "westwood+", "cubic", "newreno", "yeah",
                      "veno", "vegas", "scalable", "highspeed", "bic", "cdg")),
    "qdisc": ("sender", ("fq", "fq-codel")),
    "wmem": ("sender", BUFFERS),
    "initial_window": ("sender", (4, 10, 20, 40, 80)),
    "pacing": ("sender", (False, True)),
    "min_rto": ("sender", ("50 ms", "100 ms", "200 ms")),
    "tlp": ("sender", (True, False)),
    "rack": ("sender", (True, False)),
    "frto": ("sender", (True, False)),
    "restart_after_idle": ("sender", (True, False)),
    "notsent_lowat": ("sender", ("off", "128 kB")),
    "hystart": ("sender", (True, False)),
    "rmem": ("receiver", BUFFERS),
    "initial_receive_window": ("receiver", ("off", 10, 40, 80)),
    "delayed_ack": ("receiver", ("40 ms", "off")),
    "queue": ("router", ("fq-codel", "codel", "pie", "cake", "10 ms", "50 ms", "200 ms")),
}  # fmt: skip
"""By setting, where it is changed, and the values that are tried."""

EVERYWHERE = {"ecn": (False, True)}
"""Settings that both ends must have, unless the sender asks for them and the receiver agrees, as
Linux does: `ecn` is tried at the sender where the bottleneck marks.
"""

PARAMETERS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "cubic": ({"beta": 0.85}, {"c": 1.6}, {"fast_convergence": False}, {"tcp_friendly": False}),
    "htcp": ({"use_rtt_scaling": False}, {"use_bandwidth_switch": False}),
    "hybla": ({"rtt0": 50}, {"rtt0": 10}),
    "vegas": ({"alpha": 4, "beta": 8}, {"alpha": 8, "beta": 16}),
    "bic": ({"beta": 922}, {"fast_convergence": False}),
}
"""By congestion control, the parameters that are tried once it is the one that does best, or
today's: those that the kernel has too.
"""

STEPS = {name: number for number, name in enumerate(BUFFERS)}


@dataclass(frozen=True)
class Setting:
    """One setting with a value other than today's."""

    key: str
    """The key of the stack, `qdisc` of hosts, or `queue` of the router."""
    value: Any
    side: str
    today: Any = field(compare=False)

    def __hash__(self) -> int:
        """A value may be a table, which has no hash of its own."""
        return hash((self.key, word(self.value), self.side))

    def said(self) -> str:
        """In a few words."""
        value = word(self.value)
        return value if self.key == "cc" else f"{self.key} {value}"


@dataclass(frozen=True)
class Candidate:
    """Settings that are tried together; none are today's."""

    settings: tuple[Setting, ...] = ()

    @property
    def name(self) -> str:
        """The name in tables."""
        return " + ".join(one.said() for one in self.settings) or TODAY

    def with_setting(self, setting: Setting) -> Candidate:
        """The same with one setting more; a setting that is there stays."""
        if any(one.key == setting.key for one in self.settings):
            return self
        order = list({**LEVERS, **EVERYWHERE})
        found = sorted([*self.settings, setting], key=lambda one: _place(order, one.key))
        return Candidate(tuple(found))

    def without(self, key: str) -> Candidate:
        """The same with today's value of a setting."""
        return Candidate(tuple(one for one in self.settings if one.key != key))


TODAY = "today"


def _place(order: Sequence[str], key: str) -> int:
    return order.index(key) if key in order else len(order)


def word(value: Any) -> str:
    """A value in a few words."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        kind = value.get("name") or value.get("kind") or "table"
        rest = ", ".join(
            f"{key} {word(one)}" for key, one in value.items() if key not in ("name", "kind")
        )
        return f"{kind} ({rest})" if rest else str(kind)
    return str(value)


def sides_of(names: Iterable[str]) -> list[str]:
    """The sides at which settings are changed, where each has one."""
    found = {LEVERS[name][0] if name in LEVERS else "" for name in names}
    return [] if "" in found else [side for side in SIDES if side in found]


def tried(
    today: Mapping[str, Any],
    sides: Sequence[str],
    keep: Sequence[str],
    change: Mapping[str, Sequence[Any]] | None,
    *,
    is_marked: bool = False,
) -> dict[str, list[Setting]]:
    """By setting, the values that are tried beside today's. `is_marked` says that the bottleneck
    marks packets in place of dropping them.

    Raises:
        ConfigError: Nothing may be changed, or there is no such setting.
    """
    known = {**{name: side for name, (side, _) in LEVERS.items()}, **dict.fromkeys(EVERYWHERE, "")}
    for name in keep:
        if name not in known and name not in today:
            raise ConfigError(f"keep: there is no setting {name!r}; there are {', '.join(known)}")
    if change:
        for name in change:
            _check(name, known, today, sides)
        values = {name: list(given) for name, given in change.items() if name not in keep}
    else:
        values = {
            name: list(given)
            for name, (side, given) in LEVERS.items()
            if side in sides and name not in keep and name in today
        }
        if {"sender", "receiver"} <= set(sides) or (is_marked and "sender" in sides):
            values |= {name: list(given) for name, given in EVERYWHERE.items() if name not in keep}
    found = {}
    for name, given in values.items():
        side = known.get(name) or "sender"
        settings = [
            Setting(name, value, side, _short(today[name]))
            for value in given
            if not is_same(value, today[name])
        ]
        if settings:
            found[name] = settings
    if not found and "cc" not in today:
        raise ConfigError(
            f"nothing may be changed at the {' or the '.join(sides)}: flows of UDP have no "
            "settings there; with --may router, queues of the bottleneck are tried"
        )
    if not found:
        raise ConfigError(
            "nothing may be changed: every value that would be tried is today's, or kept"
        )
    return found


def _check(
    name: str, known: Mapping[str, str], today: Mapping[str, Any], sides: Sequence[str]
) -> None:
    """Refuses a setting that is to change and cannot: `known` has the side of settings."""
    if name not in today and name in known and "cc" not in today:
        raise ConfigError(
            f"change: {name}: flows of UDP have no such setting; there are {', '.join(today)}"
        )
    if name not in today:
        raise ConfigError(f"change: there is no setting {name!r}; there are {', '.join(today)}")
    if (side := known.get(name, "sender")) and side not in sides:
        raise ConfigError(
            f"change: {name}: is changed at the {side}, and `may` allows changes only at the "
            f"{' and the '.join(sides)}"
        )


def parameters(name: str, today: Any) -> list[Setting]:
    """A congestion control with other parameters, one setting for each."""
    return [
        Setting("cc", {"name": name, **given}, "sender", _short(today))
        for given in PARAMETERS.get(name, ())
    ]


def _short(today: Any) -> Any:
    """Today's value as a file would have it: an algorithm without parameters by its name."""
    if isinstance(today, Mapping) and "name" in today and not today.get("params"):
        return today["name"]
    return today


def is_same(value: Any, today: Any) -> bool:
    """Whether a value is today's, however both are written."""
    return bool(_plain(value) == _plain(today))


def _plain(value: Any) -> Any:
    from tcplab._experiment.quantities import numbers  # noqa: PLC0415 (polars takes a while to load)

    if isinstance(value, Mapping):
        name = value.get("name")
        return (
            name
            if name and not (value.keys() - {"name", "params"} or value.get("params"))
            else (sorted((key, str(one)) for key, one in value.items()))
        )
    if isinstance(value, str):
        found = numbers([value])
        return (found[0], float(found[1][0])) if found is not None else value
    return value


def cost(candidate: Candidate) -> tuple[int, int]:
    """How much it asks for: the number of settings, then the memory of its buffers. Of settings
    that do as well, the one that asks for least is advised.
    """
    memory = sum(
        STEPS.get(one.value, 0) for one in candidate.settings if isinstance(one.value, str)
    )
    return len(candidate.settings), memory


def differ_in_size(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates differ in the sizes of buffers alone."""
    pairs = zip(one.settings, other.settings, strict=False)
    return len(one.settings) == len(other.settings) and all(
        mine == its or (mine.key == its.key and _is_size(mine.value) and _is_size(its.value))
        for mine, its in pairs
    )


def _is_size(value: Any) -> bool:
    return isinstance(value, str) and value in STEPS
