"""Compares the state on both backends at every ACK.

The two sequences of ACKs are aligned by what they acknowledge: the n-th ACK with a given number of
acknowledged bytes on one side is paired with the n-th such ACK on the other. An ACK that the other
side did not receive stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

import tcplab as lab

STATE = {
    "cwnd": "cwnd_segments",
    "ssthresh": "ssthresh_segments",
    "in flight": "in_flight_segments",
}
"""Integer quantities that are equal as long as both sides behave alike."""

TIMES_MS = {"time": 0.05, "srtt": 0.05}
"""Times, with the difference in milliseconds that is tolerated because clocks round."""

Ack = dict[str, Any]
Pair = tuple[Ack | None, Ack | None]


@dataclass(frozen=True)
class Trace:
    """One flow: a row for each ACK of data."""

    acks: pl.DataFrame

    def window_at(self, place: int) -> int | None:
        """The window after the n-th ACK, from 1; `None` if there are fewer."""
        window: int | None = self.acks["cwnd"][place - 1] if place <= len(self.acks) else None
        return window

    def time_of(self, place: int) -> float:
        """The time of the n-th ACK, or of the last one."""
        if self.acks.is_empty():
            return 0.0
        return float(self.acks["time_ms"][min(place, len(self.acks)) - 1]) / 1e3


def trace(results: lab.Results, run: str, flow: str) -> Trace:
    """The trace of a flow in a run."""
    of_flow = pl.col("flow") == flow
    about = results.scan("flows", run).filter(of_flow).collect().row(0, named=True)
    acks = (
        results.scan("samples", run)
        .filter(of_flow)
        .select(
            *(pl.col(column).alias(name) for name, column in STATE.items()),
            # The kernel counts the end of the stream as a byte: 30,001 of 30,000.
            acked=pl.col("acked_bytes").clip(upper_bound=about["bytes"]),
            time_ms=pl.col("time_s") * 1e3,
            srtt_ms="srtt_ms",
        )
        .collect()
    )
    # The number of the flow's packets dropped by then.
    drops = results.scan("drops", run).filter(of_flow).select(at="time_s").collect()["at"].sort()
    dropped = drops.search_sorted(acks["time_ms"] / 1e3, side="right").cast(pl.Int64)
    return Trace(acks.with_columns(dropped.alias("dropped"), number=pl.int_range(1, pl.len() + 1)))


def first_difference(sim: Trace, linux: Trace, of: str = "cwnd") -> int | None:
    """The first ACK, from 1, after which a quantity differs; `None` if there is none."""
    ours, theirs = sim.acks[of], linux.acks[of]
    common = min(len(ours), len(theirs))
    differing = ours.head(common).ne_missing(theirs.head(common)).arg_true()
    if len(differing):
        return int(differing[0]) + 1
    return None if len(ours) == len(theirs) else common + 1


def aligned(sim: Sequence[Ack], linux: Sequence[Ack]) -> Iterator[Pair]:
    """The ACKs of both sides in pairs, by what they acknowledge."""
    ours, theirs = list(sim), list(linux)
    i = j = 0
    while i < len(ours) or j < len(theirs):
        if j == len(theirs) or (i < len(ours) and ours[i]["acked"] < theirs[j]["acked"]):
            yield ours[i], None
            i += 1
        elif i == len(ours) or theirs[j]["acked"] < ours[i]["acked"]:
            yield None, theirs[j]
            j += 1
        else:
            yield ours[i], theirs[j]
            i, j = i + 1, j + 1


def is_same(pair: Pair) -> bool:
    """Whether both sides received this ACK and have the same state after it."""
    sim, linux = pair
    return sim is not None and linux is not None and all(sim[name] == linux[name] for name in STATE)


def report(sim: Trace, linux: Trace, *, before: int = 12, after: int = 24) -> str:
    """The first difference of each quantity, and both traces around the first differing ACK."""
    pairs = list(aligned(sim.acks.to_dicts(), linux.acks.to_dicts()))
    place = next((number for number, pair in enumerate(pairs) if not is_same(pair)), None)
    lines = [f"ACKs: sim {len(sim.acks)}, linux {len(linux.acks)}", *_firsts(pairs)]
    if place is None:
        return "\n".join([*lines, "all ACKs leave both in the same state"])
    shown = pairs[max(place - before, 0) : place + after + 1]
    return "\n".join([*lines, "", *_table(shown, marked=place - max(place - before, 0))])


def _firsts(pairs: Sequence[Pair]) -> Iterator[str]:
    """For each quantity, the first ACK at which it differs."""
    alone = next(((ours or theirs, ours) for ours, theirs in pairs if not (ours and theirs)), None)
    if alone is not None:
        ack, is_ours = alone
        side = "sim" if is_ours else "linux"
        yield f"first ACK that only {side} got: {_place(ack)}"
    for name in [*STATE, *TIMES_MS]:
        most, key = TIMES_MS.get(name, 0), f"{name}_ms" if name in TIMES_MS else name
        for ours, theirs in pairs:
            if ours and theirs and _distance(ours[key], theirs[key]) > most:
                values = f"sim {_text(ours[key])}, linux {_text(theirs[key])}"
                yield f"first other {name}: {_place(theirs)}: {values}"
                break


def _distance(ours: float | None, theirs: float | None) -> float:
    if ours is None or theirs is None:
        return 0.0 if ours is theirs else float("inf")
    return abs(ours - theirs)


def _place(ack: Ack | None) -> str:
    return f"ACK {ack['number']}, at {ack['time_ms']:.3f} ms" if ack else "-"


FIELDS = {
    "ACK": "number",
    "time (ms)": "time_ms",
    "cwnd": "cwnd",
    "ssthresh": "ssthresh",
    "in flight": "in flight",
    "srtt (ms)": "srtt_ms",
    "dropped": "dropped",
}


def _table(pairs: Sequence[Pair], *, marked: int) -> Iterator[str]:
    """The quantities of both sides, the simulator's on the left; `*` marks differences."""
    heads = ["", "acked"]
    for name in FIELDS:
        heads += [name, "linux", ""]
    rows = [heads]
    for number, (ours, theirs) in enumerate(pairs):
        acked = (theirs or ours or {})["acked"]
        cells = [">" if number == marked else "", f"{acked:,}"]
        for key in FIELDS.values():
            cells += _cells(ours, theirs, key)
        rows.append(cells)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield " ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _cells(ours: Ack | None, theirs: Ack | None, key: str) -> list[str]:
    """One quantity of both sides, and the mark."""
    if ours and theirs:
        is_other = _distance(ours[key], theirs[key]) > TIMES_MS.get(key.removesuffix("_ms"), 0)
        return [_text(ours[key]), _text(theirs[key]), "*" if is_other else ""]
    return [_text(ours[key]) if ours else "", _text(theirs[key]) if theirs else "", ""]


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else f"{value}"
