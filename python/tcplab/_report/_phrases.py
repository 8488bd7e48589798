"""Sentences of a report, and the wording of metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tcplab._core import printable
from tcplab._results.metrics import METRICS
from tcplab._results.versus import percent
from tcplab._text.cells import decimals, number


@dataclass(frozen=True)
class Piece:
    """A part of a sentence."""

    text: str
    role: str = ""
    """`value` for an important number, `range` for its interval, `name` for a compared thing."""


Sentence = tuple[Piece, ...]


def sentence(*parts: str | Piece | Iterable[Piece]) -> Sentence:
    """Joins parts into a sentence. Characters that act on a terminal are escaped."""
    pieces: list[Piece] = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(Piece(part))
        elif isinstance(part, Piece):
            pieces.append(part)
        else:
            pieces += part
    return tuple(Piece(printable(one.text), one.role) for one in pieces if one.text)


def plain(said: Sentence) -> str:
    """A sentence as plain text."""
    return "".join(piece.text for piece in said)


def name(text: str) -> Piece:
    """The name of a compared thing: a variant, a flow."""
    return Piece(text, "name")


@dataclass(frozen=True)
class Phrase:
    """The wording of a metric in sentences."""

    noun: str
    unit: str = ""
    factor: float = 1.0
    more: str = "higher"
    less: str = "lower"
    verb: str = "has"
    article: str = "a "

    def title(self) -> str:
        """The metric as a heading, with its unit."""
        noun = self.noun[:1].upper() + self.noun[1:]
        return f"{noun} ({self.unit})" if self.unit else noun

    def amount(self, value: float | None) -> str:
        """A value with its unit."""
        if value is None:
            return "-"
        return f"{self.bare(value)} {self.unit}".rstrip()

    def bare(self, value: float) -> str:
        """A value without its unit."""
        scaled = value * self.factor
        return number(scaled, decimals(scaled, 3))


def _rate(noun: str) -> Phrase:
    return Phrase(noun, "Mbit/s", more="more", less="less", verb="gives", article="")


def _time(noun: str) -> Phrase:
    return Phrase(noun, "s", more="longer", less="shorter")


def _share(noun: str) -> Phrase:
    return Phrase(f"share of {noun}", "%", 100.0)


PHRASES: Mapping[str, Phrase] = {
    "goodput_mbit_s": _rate("goodput"),
    "goodput_all_mbit_s": _rate("goodput of all flows together"),
    "jain_index": Phrase("Jain's index of fairness"),
    "retransmitted_share": _share("resent segments"),
    "lost_share": _share("lost datagrams"),
    "rtt_mean_ms": Phrase("mean RTT", "ms"),
    "rtt_min_ms": Phrase("least RTT", "ms"),
    "completion_s": _time("completion time"),
    "completion_mean_s": _time("mean completion time"),
    "completion_p50_s": _time("median completion time"),
    "completion_p95_s": _time("completion time (p95)"),
    "completion_p99_s": _time("completion time (p99)"),
    "delay_mean_ms": Phrase("mean one-way delay", "ms"),
    "delay_p95_ms": Phrase("one-way delay (p95)", "ms"),
    "delay_p99_ms": Phrase("one-way delay (p99)", "ms"),
    "queue_delay_mean_ms": Phrase("mean queueing delay", "ms"),
    "queue_delay_p95_ms": Phrase("queueing delay (p95)", "ms"),
    "queue_delay_p99_ms": Phrase("queueing delay (p99)", "ms"),
}

TERMS = {
    "goodput_mbit_s": "Bytes that reached the application, over the time for which the flow ran.",
    "queue_delay_p95_ms": "How long packets wait at the flow's bottleneck. The queue is recorded "
    "at regular times; in 95 % of the steps between two records packets waited no longer.",
    "bottleneck_share": "Goodput as a share of the rate of the flow's slowest link.",
    "jain_index": "Jain's index of the goodput of all flows that share a bottleneck: 1 if all are "
    "equal, 1/n if one of n has everything.",
    "goodput_all_mbit_s": "All bytes of the flows over the time in which any of them ran.",
    "retransmitted_share": "Segments with data that were sent again, of all that were sent.",
    "lost_share": "Datagrams that were lost, of all that were sent.",
    "unfinished": "Flows with a size that did not complete, and flows that broke.",
}
"""The definitions of columns that summaries add to those of tables."""


def phrase(metric: str) -> Phrase:
    """The wording of a metric."""
    if metric in PHRASES:
        return PHRASES[metric]
    if metric in METRICS:
        # A unit without a name, such as that of a share of 1.
        unit = METRICS[metric].unit
        return Phrase(metric.replace("_", " "), "" if unit in ("ratio", "share") else unit)
    return Phrase(metric.replace("_", " "))


def apart(row: Mapping[str, Any], *, is_relative: bool = True, sign: int = 0) -> Sentence:
    """The difference in a row of comparisons, with its interval: `12.3 % [10.1, 14.2]`.

    Both are multiplied by `sign`, or by the sign that makes the difference positive.
    """
    is_share = is_relative and row["relative"] is not None
    kind = "relative" if is_share else "difference"
    words = phrase(row["metric"])
    value, low, high = (row[f"{kind}{end}"] for end in ("", "_low", "_high"))
    sign = sign or (-1 if value < 0 else 1)

    def text(one: float) -> str:
        return percent(sign * one) if is_share else words.amount(sign * one)

    if low is None or high is None or low == high:
        return (Piece(text(value), "value"),)
    unit = "%" if is_share else words.unit
    first, last = (
        text(end).removesuffix(unit).rstrip() for end in sorted((low, high), key=lambda x: sign * x)
    )
    return Piece(text(value), "value"), Piece(f" [{first}, {last}]", "range")
