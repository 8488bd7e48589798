"""Queues of experiment files as the words that follow `tc qdisc replace dev DEV root`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil, log2
from typing import Any

from tcplab import _core
from tcplab._advice import _values
from tcplab._core import ConfigError

FULL = 1500
"""Bytes per packet, where the experiment counts packets and Linux bytes."""

DEFAULTS_IN_LINUX = ("fq", "fq-codel", "codel", "pie", "fq-pie", "cake", "sfq")
"""Disciplines for `net.core.default_qdisc`, which takes a name without settings."""


@dataclass(frozen=True)
class Discipline:
    """A discipline in the words of `tc`."""

    kind: str
    """Its name in Linux."""
    words: str
    """Its settings."""
    notes: tuple[str, ...] = ()
    """Differences from the experiment."""
    is_default: bool = False
    """The discipline has its default settings."""


class ImpossibleError(Exception):
    """Linux or `tc` does not support the queue."""


def discipline(place: str, value: object) -> Discipline:
    """The discipline of a queue in an experiment file.

    Raises:
        ConfigError: The value is not a queue of an experiment file.
        ImpossibleError: `tc` cannot set up this queue.
    """
    if isinstance(value, str) and value not in _schema():
        value = {"kind": "droptail", "limit": value}
    given = {"kind": value} if isinstance(value, str) else dict(_values.table(place, value))
    kind = given.pop("kind", "droptail")
    known = _schema().get(kind) if isinstance(kind, str) else None
    if known is None:
        raise _values.wrong(f"{place}.kind", kind, "one of " + ", ".join(map(repr, _schema())))
    defaults, required = known
    for key in given:
        if key not in defaults:
            raise ConfigError(
                f"{place}.{key}: {kind} has no such key; it has {', '.join(defaults)}"
            )
    for key in required:
        if key not in given:
            raise ConfigError(f"{place}: {kind} needs the key {key}")
    if kind not in _WRITTEN:
        raise ImpossibleError(_MISSING[kind])
    asked = {key: value for key, value in defaults.items() if value is not None} | given
    made = _WRITTEN[kind](_Settings(place, asked))
    is_default = kind in DEFAULTS_IN_LINUX and not given
    return Discipline(made.kind, made.words, made.notes, is_default)


@cache
def _schema() -> dict[str, tuple[dict[str, Any], list[str]]]:
    """The keys of each kind of queue with their defaults, and its required keys."""
    kinds = {}
    for form in json.loads(_core.schema())["$defs"]["Queue"]["anyOf"]:
        if "properties" in form:
            properties = dict(form["properties"])
            kind = properties.pop("kind")["const"]
            defaults = {key: about.get("default") for key, about in properties.items()}
            kinds[kind] = defaults, [key for key in form["required"] if key != "kind"]
    return kinds


@dataclass(frozen=True)
class _Settings:
    """The values of a queue, with a reader for each type."""

    place: str
    values: Mapping[str, Any]

    def has(self, key: str) -> bool:
        return key in self.values

    def whole(self, key: str, least: int = 0, most: int = 2**32 - 1) -> int:
        return _values.whole(self._at(key), self.values[key], least, most)

    def number(self, key: str, least: float, most: float) -> float:
        return _values.number(self._at(key), self.values[key], least, most)

    def flag(self, key: str) -> bool:
        return _values.truth(self._at(key), self.values[key])

    def time(self, key: str) -> str:
        return _values.time(_values.micros(self._at(key), self.values[key]))

    def size(self, key: str) -> int:
        return _values.size(self._at(key), self.values[key], 2**32 - 1)

    def rate(self, key: str) -> int:
        return _values.bits_per_second(self._at(key), self.values[key])

    def choice(self, key: str, choices: Mapping[str, str]) -> str:
        return _values.choice(self._at(key), self.values[key], choices)

    def same(self, key: str, *words: str) -> str:
        """A word that `tc` shares with experiment files."""
        return self.choice(key, {word: word for word in words})

    def limit(self, key: str = "limit") -> tuple[str, int]:
        return _values.limit(self._at(key), self.values[key])

    def packets(self, key: str = "limit") -> int:
        unit, amount = self.limit(key)
        if unit != "packets":
            raise ConfigError(
                f"{self._at(key)}: Linux limits this discipline in packets, not in bytes"
            )
        return amount

    def bytes(self, key: str = "limit") -> int:
        unit, amount = self.limit(key)
        return amount * FULL if unit == "packets" else amount

    def _at(self, key: str) -> str:
        return f"{self.place}.{key}"


def _notes(settings: _Settings, *keys: str) -> tuple[str, ...]:
    """A note if packets were converted to bytes."""
    if any(settings.limit(key)[0] == "packets" for key in keys):
        return (f"`tc` counts bytes here; a packet stands for {FULL} of them.",)
    return ()


def _droptail(settings: _Settings) -> Discipline:
    unit, amount = settings.limit()
    if unit == "packets":
        return Discipline("pfifo", f"limit {amount}")
    note = "Linux counts the header of the link with each packet: 14 B on Ethernet."
    return Discipline("bfifo", f"limit {amount}", (note,))


def _drophead(settings: _Settings) -> Discipline:
    return Discipline("pfifo_head_drop", f"limit {settings.packets()}")


def _red(settings: _Settings) -> Discipline:
    if settings.flag("gentle"):
        raise ImpossibleError("Linux RED has no gentle mode.")
    limit, least, most = (settings.bytes(key) for key in ("limit", "min", "max"))
    if not least <= most <= limit:
        raise ConfigError(f"{settings.place}: red needs min <= max <= limit")
    weight_log = round(-log2(settings.number("weight", 2**-31, 1)))
    if weight_log < 1:
        raise ImpossibleError(
            "`tc` computes the weight of RED from `burst`, and reaches 0.5 at most. A threshold "
            "with the weight 1, as DCTCP has it, is a matter of switches."
        )
    average = 1000
    words = f"limit {limit} min {least} max {most} avpkt {average}"
    words += f" burst {_burst(weight_log, least, average)}"
    words += f" probability {settings.number('probability', 0, 1):.10g}"
    words += "".join(f" {key}" for key in ("ecn", "adaptive") if settings.flag(key))
    notes = (
        f"`tc` has no weight: this `burst` makes it 2^-{weight_log}.",
        "Add `bandwidth` with the rate of the link if it is not 10 Mbit/s: the average falls by it "
        "while the queue is idle.",
    )
    return Discipline("red", words, notes + _notes(settings, "limit", "min", "max"))


def _burst(weight_log: int, least: int, average: int) -> int:
    """The `burst` for which `tc` computes the weight 2^-`weight_log`: the smallest k with
    k + 1 - min / avpkt > (1 - (1 - W)^k) / W for all heavier weights W (`tc_red_eval_ewma`).
    """
    burst = max(1, ceil(least / average))
    while _weight_log(burst, least, average) < weight_log:
        burst += max(1, burst // 1000)
    return burst


def _weight_log(burst: int, least: int, average: int) -> int:
    room = burst + 1 - least / average
    for log in range(1, 32):
        weight = 2.0**-log
        if room <= (1 - (1 - weight) ** burst) / weight:
            return log
    return 32


def _codel(settings: _Settings) -> Discipline:
    words = f"limit {settings.packets()} {_targets(settings)} {_switch(settings, 'ecn')}"
    return Discipline("codel", words)


def _fq_codel(settings: _Settings) -> Discipline:
    words = f"limit {settings.packets()} {_flows(settings)} {_targets(settings)}"
    return Discipline("fq_codel", f"{words} {_switch(settings, 'ecn')}")


def _pie(settings: _Settings) -> Discipline:
    return Discipline("pie", f"limit {settings.packets()} {_pie_words(settings)}")


def _fq_pie(settings: _Settings) -> Discipline:
    words = f"limit {settings.packets()} {_flows(settings)} {_pie_words(settings)}"
    return Discipline("fq_pie", f"{words} ecn_prob {settings.whole('ecn_prob', 0, 100)}")


def _sfq(settings: _Settings) -> Discipline:
    words = f"limit {settings.packets()} depth {settings.whole('depth', 1)}"
    return Discipline("sfq", f"{words} {_flows(settings)}")


def _tbf(settings: _Settings) -> Discipline:
    rate, burst = settings.rate("rate"), settings.size("burst")
    value = settings.values["limit"]
    try:
        # A time is that of the token rate.
        waiting = _values.micros(f"{settings.place}.limit", value) * rate // 8_000_000
        notes: tuple[str, ...] = ()
    except ConfigError:
        waiting, notes = settings.bytes(), _notes(settings, "limit")
    words = f"rate {rate}bit burst {burst} limit {max(waiting, 1)}"
    if settings.has("peakrate"):
        mtu = settings.size("mtu") if settings.has("mtu") else FULL
        words += f" peakrate {settings.rate('peakrate')}bit minburst {mtu}"
    return Discipline("tbf", words, notes)


def _fq(settings: _Settings) -> Discipline:
    words = f"limit {settings.packets()} flow_limit {settings.whole('flow_limit', 1)}"
    words += f" quantum {settings.whole('quantum', 1)}"
    return Discipline("fq", f"{words} initial_quantum {settings.whole('initial_quantum', 1)}")


def _cake(settings: _Settings) -> Discipline:
    rtt = settings.values["rtt"]
    words = f"bandwidth {settings.rate('rate')}bit" if settings.has("rate") else "unlimited"
    named = rtt in _RTTS
    words += f" {rtt}" if named else f" rtt {settings.time('rtt')}"
    words += f" {settings.same('isolation', *_ISOLATIONS)} {settings.same('tins', *_TINS)}"
    words += " " + settings.choice("ack_filter", _ACK_FILTERS)
    words += " ingress" if settings.flag("ingress") else " egress"
    words += " wash" if settings.flag("wash") else " nowash"
    words += f" overhead {settings.whole('overhead', 0, 256)} mpu {settings.whole('mpu', 0, 256)}"
    words += " " + settings.choice("framing", {"none": "noatm", "atm": "atm", "ptm": "ptm"})
    words += f" memlimit {settings.bytes()}"
    return Discipline("cake", words, _notes(settings, "limit"))


_RTTS = (
    "datacentre",
    "lan",
    "metro",
    "regional",
    "internet",
    "oceanic",
    "satellite",
    "interplanetary",
)
_ISOLATIONS = (
    "flowblind",
    "srchost",
    "dsthost",
    "hosts",
    "flows",
    "dual-srchost",
    "dual-dsthost",
    "triple-isolate",
)
_TINS = ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8")
_ACK_FILTERS = {"off": "no-ack-filter", "on": "ack-filter", "aggressive": "ack-filter-aggressive"}


def _targets(settings: _Settings) -> str:
    return f"target {settings.time('target')} interval {settings.time('interval')}"


def _flows(settings: _Settings) -> str:
    return f"flows {settings.whole('flows', 1, 65536)} quantum {settings.whole('quantum', 1)}"


def _pie_words(settings: _Settings) -> str:
    words = f"target {settings.time('target')} tupdate {settings.time('update')}"
    words += f" alpha {settings.whole('alpha', 0, 32)} beta {settings.whole('beta', 0, 32)}"
    return f"{words} {_switch(settings, 'bytemode')} {_switch(settings, 'ecn')}"


def _switch(settings: _Settings, key: str) -> str:
    return key if settings.flag(key) else f"no{key}"


_WRITTEN: dict[str, Callable[[_Settings], Discipline]] = {
    "droptail": _droptail,
    "drophead": _drophead,
    "red": _red,
    "codel": _codel,
    "fq-codel": _fq_codel,
    "pie": _pie,
    "fq-pie": _fq_pie,
    "sfq": _sfq,
    "tbf": _tbf,
    "fq": _fq,
    "cake": _cake,
}

_MISSING = {
    "dualpi2": "DualPI2 needs Linux 6.17, where its settings differ from those of experiments; "
    "see tc-dualpi2(8).",
    "policer": "A policer is an action of a filter in Linux, not a queue; see tc-police(8).",
}
