"""Builds experiments whose traffic is like that of captures and logs.

Sessions in which one side sends become transfers: `arrivals` with a distribution of sizes. If a few
large sessions have so much of the data that random draws would not reproduce it, these become flows
of their own, in groups of similar size, each with the number of its sessions. Sessions in which
both sides send become `requests`, in groups of similar turns and sizes. Start times are drawn
uniformly from the time of the sessions, as in a Poisson process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from tcplab._capture.characterise import kind_of
from tcplab._capture.characteristics import Characteristics
from tcplab._capture.fitted import Fit, Numbers, chosen, empirical, fits, pareto_mean
from tcplab._core import ConfigError
from tcplab._schema import (
    ArrivalsTraffic,
    BulkTraffic,
    Dumbbell,
    EmpiricalSizes,
    Experiment,
    Flow,
    LognormalSizes,
    Network,
    ParetoSizes,
    Record,
    RequestsTraffic,
)

UNKNOWN_RTT_MS = 40.0
"""The assumed round-trip time of traffic without RTT samples."""

LEAST_RTT_MS = 0.02
"""The round-trip time used in place of one that is too short to be measured."""

PAIRS = 8
"""The most round-trip times in a model."""

SURE = 0.016
"""The accuracy of the total of drawn sizes, as the relative standard error of their sum. Three
times this is 5 %.
"""

TAIL = 0.2
"""The greatest share of sessions that are not drawn."""

GROUP = 0.02
"""The greatest share of sessions in a group of large ones."""

GROUPS = 80
"""The approximate number of groups of sessions with requests."""

ALIKE = 1.05
"""Sizes in a group that differ by a smaller factor are not divided."""

EXACT_MEAN = 0.02
"""A family is used only if its mean is that of the values, within 2 %."""

MANY = 500
"""From this number of sessions on, a model draws sessions like those observed; with fewer, it
repeats their sizes.
"""

CUT = 0.02
"""The approximate share of sessions that the end of a model may cut off, if sessions are long."""

LONGER = 5
"""For that purpose, a model may be this many times as long as the observation."""

HEADROOM = 4
"""The bottleneck of a model has this many times the rate that its traffic needs."""


def modelled(found: Characteristics, name: str) -> Experiment:
    """An experiment with traffic like this."""
    sessions = found.sessions.filter(pl.col("size") > 0)
    if sessions.is_empty():
        raise ConfigError("there is no session with data, of which a model could be made")
    rtts = _rtts(sessions)
    seen_s = _seen_s(found)
    lasting = sessions["duration_s"].to_numpy()
    if len(sessions) >= MANY:
        whole = float(math.ceil(max(seen_s, min(float(lasting.mean()) / CUT, LONGER * seen_s))))
        rest = 0.01 * whole
    else:
        # A few sessions are given time to end.
        whole = seen_s
        rest = float(lasting.max()) + 1
    times = Times(seen_s, whole)
    blocks: list[Flow] = []
    for kind in ("upload", "download"):
        sizes = sessions.filter(kind_of() == kind)["size"].to_numpy().astype(float)
        blocks += _transfers(sizes, f"{kind}s", times, len(rtts), len(sessions) < MANY)
    blocks += _requests(sessions.filter(kind_of() == "two-way"), found.turns, times)
    if found.totals["arrivals"][0] == "constant" and len(blocks) == 1:
        blocks = [_evenly(blocks[0], seen_s / len(sessions))]
    return Experiment(
        name=name,
        duration=_s(math.ceil(1000 * (whole + rest)) / 1000),
        network=Network(
            dumbbell=Dumbbell(
                rate=_rate(sessions, seen_s),
                delay=_ms(min(rtts) / 4),
                rtts=[_ms(rtt) for rtt in rtts],
            )
        ),
        flows=blocks,
        record=Record(samples="off"),
    )


@dataclass(frozen=True)
class Times:
    """The duration of a model."""

    seen_s: float
    """The time within which the observed sessions began."""
    whole_s: float
    """The time within which all sessions of the model begin, at the observed rate."""

    def count(self, seen: int) -> int:
        """The number of sessions of a model that corresponds to a number of observed ones."""
        return max(round(seen * self.whole_s / self.seen_s), 1)


def about(found: Characteristics, model: Experiment) -> list[str]:
    """Notes for the reader of a model, one per line."""
    (row,) = found.totals.iter_rows(named=True)
    lines = [
        f"Traffic like that of {row['with_data']:,} sessions with data in "
        f"{row['duration_s']:.6g} s.",
        "Not in the captures, and to be replaced: the bottleneck. It is so fast that this traffic",
        f"fills a quarter of it at most.{_unknown(row['rtt_p50_ms'])}",
    ]
    flows = model.flows if isinstance(model.flows, list) else []
    if row["arrivals"] in ("neither", "constant") and not any(map(_is_even, flows)):
        lines += [
            "Sessions begin as a Poisson process of the same rate; those that were seen do not:",
            f"the coefficient of variation of gaps is {row['gap_cv'] or 0:.3g}, not 1.",
        ]
    return lines


def _unknown(rtt: float | None) -> str:
    return "" if rtt is not None else f" The round trip of {UNKNOWN_RTT_MS:g} ms is a guess."


def _seen_s(found: Characteristics) -> float:
    """The time within which the sessions began, in seconds."""
    (row,) = found.totals.iter_rows(named=True)
    rate = row["sessions_per_s"]
    return max(float(row["duration_s"]), 1.0) if rate is None else float(row["sessions"]) / rate


def _rtts(sessions: pl.DataFrame) -> list[float]:
    """Round-trip times in ms, each for an equal number of sessions. A server's RTT is its least
    one, which has no queueing.
    """
    least = pl.col("rtt_ms").min().over("server")
    known = sessions.select(least.alias("rtt_ms")).drop_nulls()["rtt_ms"].to_numpy()
    if len(known) == 0:
        return [UNKNOWN_RTT_MS]
    known = np.maximum(np.sort(known), LEAST_RTT_MS)
    low, high = np.quantile(known, [0.05, 0.95])
    if high < 1.2 * low:
        return [float(known.mean())]
    number = min(PAIRS, max(len(known) // 50, 2))
    return [float(rtt) for rtt in np.quantile(known, (np.arange(number) + 0.5) / number)]


def _rate(sessions: pl.DataFrame, seen_s: float) -> str:
    """The rate of the bottleneck: 1, 2 or 5 times a power of ten Mbit/s."""
    sums = [int(sessions[f"{side}_bytes"].sum()) for side in ("client", "server")]
    need = HEADROOM * max(sums) * 8e-6 / seen_s
    # The rates of single sessions that are long enough to tell.
    long = sessions.filter((pl.col("size") >= 100_000) & (pl.col("duration_s") > 0))
    goodputs = 8e-6 * long["size"].to_numpy() / long["duration_s"].to_numpy()
    need = max(need, float(goodputs.max(initial=0)), 10.0)
    power = 10.0 ** math.floor(math.log10(need))
    nice = next((power * step for step in (1, 2, 5, 10) if power * step >= need), 10 * power)
    return f"{nice:g} Mbit/s" if nice < 1000 else f"{nice / 1000:g} Gbit/s"


def _transfers(sizes: Numbers, kind: str, times: Times, pairs: int, is_few: bool) -> Iterator[Flow]:
    """Flows for sessions in which one side sends: most are drawn, the largest are in groups. If
    there are few, all are in groups.
    """
    if len(sizes) == 0:
        return
    data = np.sort(sizes)
    drawn = 0 if is_few else _drawn(data)
    if drawn:
        traffic = ArrivalsTraffic(
            per_second=_number(drawn / times.seen_s / pairs), sizes=_sizes(data, drawn)
        )
        yield Flow(name=kind, from_="left*", to="right*", traffic=traffic)
    for number, part in enumerate(_parts(data[drawn:], GROUP * len(data)), 1):
        yield Flow(
            name=f"{kind}-{number}",
            from_="left*",
            to="right*",
            count=times.count(len(part)),
            start_jitter=_s(times.whole_s),
            class_=kind,
            traffic=BulkTraffic(size=_b(float(part.mean()))),
        )


def _drawn(data: Numbers) -> int:
    """How many of the sorted sizes are drawn, from the smallest on, for their sum to be `SURE`."""
    number, total = len(data), float(data.sum())
    least = math.ceil(number * (1 - TAIL))
    counts = np.arange(1, number + 1)
    # Sums of squares around the common mean keep their digits.
    centred = data - data.mean()
    sums, squares = np.cumsum(centred), np.cumsum(centred**2)
    errors = np.sqrt(np.maximum(squares - sums**2 / counts, 0))
    sure = np.flatnonzero(errors <= SURE * total)
    return max(int(sure[-1]) + 1 if len(sure) else 0, least)


def _parts(data: Numbers, most: float) -> list[Numbers]:
    """Sorted sizes in groups of at most `most` sizes, with no size twice as large as another."""
    parts: list[Numbers] = []
    begin = 0
    while begin < len(data):
        end = int(np.searchsorted(data, 1.5 * data[begin], side="right"))
        step = end if data[end - 1] <= ALIKE * data[begin] else begin + max(math.floor(most), 1)
        end = min(end, step)
        parts.append(data[begin:end])
        begin = end
    return parts


Sizes = str | LognormalSizes | ParetoSizes | EmpiricalSizes


def _sizes(data: Numbers, drawn: int) -> Sizes:
    """A distribution for the smallest of sorted sizes: the family fitted to all sizes, truncated,
    or to the smallest ones, if it fits; else the empirical distribution.
    """
    some = data[:drawn]
    for basis in (data, some) if drawn < len(data) else (data,):
        family = chosen(fits(basis), basis)
        if family is not None and (sizes := _family(family, some)) is not None:
            return sizes
    values = [_b(value) for value in empirical(some)]
    return values[0] if len(set(values)) == 1 else EmpiricalSizes(sizes=values)


def _family(family: Fit, data: Numbers) -> Sizes | None:
    """A family truncated at the largest of sorted sizes; `None` if experiments lack the family, or
    if its mean then differs from that of the sizes.
    """
    found, top = family.parameters, float(data[-1])
    if family.family == "constant":
        return _b(found["value"])
    if family.family == "lognormal":
        sigma = found["sigma"]
        edge = (math.log(top) - math.log(found["median"])) / sigma
        # The mean below the cut: partial expectation over probability (Aitchison and Brown 1957,
        # section 2.4).
        mean = math.exp(math.log(found["median"]) + sigma**2 / 2)
        mean *= special.ndtr(edge - sigma) / special.ndtr(edge)
        sizes: Sizes = LognormalSizes(median=_b(found["median"]), sigma=_number(sigma), max=_b(top))
        # The constraint of experiments on a cut.
        is_exact = top >= found["median"]
    elif family.family == "pareto":
        mean = pareto_mean(found["shape"], found["min"], top)
        sizes = ParetoSizes(shape=_number(found["shape"]), min=_b(found["min"]), max=_b(top))
        is_exact = True
    else:
        return None
    return sizes if is_exact and abs(mean / float(data.mean()) - 1) <= EXACT_MEAN else None


def _requests(sessions: pl.DataFrame, turns: pl.DataFrame, times: Times) -> Iterator[Flow]:
    """Flows for sessions in which both sides send, in groups."""
    if sessions.is_empty():
        return
    waits = turns.group_by("session").agg(
        pl.col("server_ms").mean(), pl.col("think_ms").mean(), pl.len().alias("seen")
    )
    every = sessions.join(waits, on="session", how="left", maintain_order="left").with_columns(
        turns=pl.col("turns").fill_null(1).clip(1)
    )
    # 1, 2, 3 and 4 turns, then up to 8, 16, ...
    few = pl.col("turns") <= 4
    doubled = pl.col("turns").log(2).ceil().cast(pl.Int64) + 2
    every = every.with_columns(
        kind=pl.when(few).then("turns").otherwise(doubled), share=pl.col("size")
    ).sort("kind", "size", "session")
    number = 0
    for _, alike in every.group_by("kind", maintain_order=True):
        most = max(math.ceil(len(every) / GROUPS), 1)
        sizes = alike["size"].to_numpy().astype(float)
        begin = 0
        for part in _cut(sizes, most):
            group = alike.slice(begin, len(part))
            begin += len(part)
            number += 1
            yield _group(group, number, times)


def _cut(data: Numbers, most: int) -> list[Numbers]:
    """Sorted sizes in groups of equal number; equal sizes stay together."""
    parts: list[Numbers] = []
    begin = 0
    while begin < len(data):
        alike = int(np.searchsorted(data, ALIKE * data[begin], side="right"))
        end = max(alike, min(begin + most, len(data)))
        parts.append(data[begin:end])
        begin = end
    return parts


def _group(group: pl.DataFrame, number: int, times: Times) -> Flow:
    """A flow for similar sessions with requests: each has the means of the group."""
    asked = max(round(_mean(group["turns"]) or 1), 1)
    each = {
        side: max(float(group[f"{side}_bytes"].sum()) / len(group) / asked, 1.0)
        for side in ("client", "server")
    }
    rest = {}
    for key, column in (("server_time", "server_ms"), ("think", "think_ms")):
        mean = _mean(group[column])
        if mean is not None and mean >= 0.01:
            rest[key] = _ms(mean)
    return Flow(
        name=f"requests-{number}",
        from_="left*",
        to="right*",
        count=times.count(len(group)),
        start_jitter=_s(times.whole_s),
        class_="requests",
        traffic=RequestsTraffic(
            request=_b(each["client"]), response=_b(each["server"]), requests=asked, **rest
        ),
    )


def _evenly(block: Flow, every_s: float) -> Flow:
    """The same sessions at constant gaps."""
    traffic: Any = block.traffic
    if isinstance(traffic, ArrivalsTraffic):
        # Each pair has one of `pairs` sessions, and so a gap that is as many times longer.
        pairs = round(1 / (float(traffic.per_second or 0) * every_s))
        traffic = traffic.replace(per_second=None, every=_s(every_s * pairs))
        return block.replace(traffic=traffic, stagger=_s(every_s))
    return block.replace(start_jitter=None, stagger=_s(every_s))


def _is_even(block: Flow) -> bool:
    """Whether the sessions of a flow begin at constant gaps."""
    traffic: Any = block.traffic
    return block.stagger is not None or getattr(traffic, "every", None) is not None


def _mean(values: pl.Series) -> float | None:
    """The mean of numbers; `None` if there are none."""
    data = values.drop_nulls().to_numpy()
    return float(data.mean()) if len(data) else None


def _number(value: float) -> float:
    return float(f"{value:.6g}")


def _b(value: float) -> str:
    number = max(round(value), 1)
    return (
        f"{number} B" if number < 10_000 else f"{number / 1000:.3f}".rstrip("0").rstrip(".") + " kB"
    )


def _s(value: float) -> str:
    return f"{max(value, 1e-9):.9f}".rstrip("0").rstrip(".") + " s"


def _ms(value: float) -> str:
    return f"{value:.4g} ms" if value < 1000 else f"{value:.0f} ms"
