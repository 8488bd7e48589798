"""Reconstructs the window of a sender over time from its packets: round trips and congestion
episodes.

The flight is the data sent and not acknowledged. A bulk sender fills its congestion window, so the
greatest flight of a round trip is the window, except during loss recovery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tcplab._capture.delivered import AGAIN, OF_NO_USE

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

LOSS, TIMEOUT, MARK = 0, 1, 2
"""The causes of a congestion episode."""


@dataclass(frozen=True)
class Rounds:
    """Round trips and congestion episodes of a sender: windows in segments, times in seconds."""

    time: Numbers
    """The start of each round trip."""
    window: Numbers
    """The greatest flight of each round trip."""
    rtt: Numbers
    """The median RTT sample of each round trip; NaN without one."""
    rtt_min: Numbers
    """The least RTT sample of each round trip; NaN without one."""
    sent: Numbers
    """The number of segments sent in each round trip."""
    repairing: Flags
    """Whether a congestion episode overlaps the round trip."""
    cause: Indices
    """The cause of each congestion episode."""
    first: Indices
    """The round trip in which each episode began."""
    last: Indices
    """The round trip in which each episode ended."""
    begin: Numbers
    """The start of each episode."""
    end: Numbers
    """The end of each episode."""
    before: Numbers
    """The window before each episode."""
    after: Numbers
    """The window after each episode."""
    ack_delay: Numbers
    """Quartiles of the time from an ACK to a segment of new data, over the median time between
    ACKs: near 0 if ACKs clock the sender, spread if it paces.
    """
    early: Numbers
    """The number of segments in flight at each of the first RTT samples."""
    asks_marks: bool
    """Whether SYN packets themselves are ECN-capable, as of an algorithm that needs ECN."""


def rounds(packets: pl.DataFrame, flow: dict[str, Any]) -> Rounds | None:
    """The round trips of a connection, from its packets and its row in the table of connections;
    `None` if there are none.
    """
    side = flow["sender"]
    segment = _segment(flow, side)
    table = packets.filter(
        pl.col("seq").is_not_null() & ~pl.col("kind").is_in([*OF_NO_USE, "reset"])
    )
    if segment <= 0 or len(table) < 10:
        return None
    time = table["time_s"].to_numpy()
    ours = (table["sender"] == side).to_numpy()
    kind = table["kind"]
    size = table["payload_bytes"].to_numpy().astype(np.float64)
    seq = table["seq"].to_numpy().astype(np.float64)
    fresh = ours & (kind == "data").to_numpy()
    again = ours & kind.is_in(AGAIN).to_numpy()
    ack = table["ack"].fill_null(0).to_numpy().astype(np.float64)
    sent = np.maximum.accumulate(np.where(ours & (size > 0), seq + size, 0.0))
    acked = np.maximum.accumulate(np.where(ours, 0.0, ack))
    sent = np.maximum(sent, acked)
    if not fresh.any() or not (size[fresh] > 0).any():
        return None
    start = int(np.flatnonzero(fresh)[0])
    acked[:start] = acked[start] = max(acked[start], seq[start])
    acked = np.maximum.accumulate(acked)
    flight = np.maximum(sent - acked, 0.0) / segment
    advances = np.flatnonzero(np.diff(acked, prepend=acked[0]) > 0)
    if len(advances) < 5:
        return None
    echo = (~ours) & table["flags"].str.contains("ECE").to_numpy() & (kind != "control").to_numpy()
    episodes = _episodes(again, echo, kind, sent, acked)
    inside = np.zeros(len(time) + 1)
    for begin, end, _ in episodes:
        inside[begin] += 1
        inside[min(end, len(time))] -= 1
    repairing = np.cumsum(inside[:-1]) > 0
    edges = _edges(start, sent, acked)
    if len(edges) < 4:
        return None
    cut = edges[:-1]
    length = len(cut)
    round_of = np.clip(
        np.searchsorted(edges, np.arange(len(time)), side="right") - 1, 0, length - 1
    )
    # An ACK samples the RTT of the segment that ends at its acknowledgment number.
    origin = np.searchsorted(sent, acked[advances], side="left")
    sample = time[advances] - time[np.minimum(origin, len(time) - 1)]
    good = ~repairing[advances] & ~repairing[np.minimum(origin, len(time) - 1)] & (sample > 0)
    by_round = (
        pl.DataFrame({"round": round_of[advances[good]], "rtt": sample[good]})
        .group_by("round")
        .agg(pl.col("rtt").median().alias("median"), pl.col("rtt").min().alias("min"))
        .sort("round")
    )
    median, least = np.full(length, np.nan), np.full(length, np.nan)
    median[by_round["round"].to_numpy()] = by_round["median"].to_numpy()
    least[by_round["round"].to_numpy()] = by_round["min"].to_numpy()
    begin_at = [begin for begin, _, _ in episodes]
    end_at = [min(end, len(time) - 1) for _, end, _ in episodes]
    typical = float(np.median(sample[good])) if good.any() else 0.0
    return Rounds(
        time=time[cut],
        window=np.maximum.reduceat(flight[: edges[-1]], cut),
        rtt=median,
        rtt_min=least,
        sent=np.add.reduceat(np.where(fresh, size, 0.0)[: edges[-1]], cut) / segment,
        repairing=np.maximum.reduceat(repairing[: edges[-1]], cut),
        cause=np.array([cause for _, _, cause in episodes], dtype=np.int64),
        first=round_of[begin_at].astype(np.int64) if episodes else np.zeros(0, np.int64),
        last=round_of[end_at].astype(np.int64) if episodes else np.zeros(0, np.int64),
        begin=time[begin_at] if episodes else np.zeros(0),
        end=time[end_at] if episodes else np.zeros(0),
        before=np.array([_before(at, advances, ours, flight) for at in begin_at]),
        after=np.array([_after(at, time, flight, typical) for at in end_at]),
        ack_delay=_ack_delay(time, ours, fresh, flow[f"{side}_near_rtt_ms"] or 0.0),
        early=flight[origin[: min(len(origin), 64)]],
        asks_marks=bool(
            table.filter(pl.col("flags").str.contains("SYN") & pl.col("ecn").is_not_null()).height
        ),
    )


def _segment(flow: dict[str, Any], side: str) -> float:
    """Bytes of data in a full segment."""
    largest = float(flow[f"{side}_largest_segment_bytes"] or 0)
    other = "server" if side == "client" else "client"
    announced = flow[f"{other}_mss_bytes"]
    if announced is None:
        return largest
    return min(largest, float(announced) - (12 if "timestamps" in flow["options"] else 0))


def _episodes(
    again: Flags, echo: Flags, kind: pl.Series, sent: Numbers, acked: Numbers
) -> list[tuple[int, int, int]]:
    """Congestion episodes: from a retransmission, or an ECN echo, until all data sent by then is
    acknowledged.
    """
    timed = (kind == "timeout").to_numpy()
    found = []
    signs = np.flatnonzero(again | echo)
    place = 0
    while place < len(signs):
        begin = int(signs[place])
        end = int(np.searchsorted(acked, sent[begin], side="left"))
        cause = MARK if echo[begin] else LOSS
        if timed[begin:end].any():
            cause = TIMEOUT
        found.append((begin, end, cause))
        place = int(np.searchsorted(signs, max(end, begin + 1), side="left"))
    return found


def _edges(start: int, sent: Numbers, acked: Numbers) -> Indices:
    """The starts of round trips: each lasts until all data sent at its start is acknowledged."""
    edges = [start]
    while True:
        at = max(int(np.searchsorted(acked, sent[edges[-1]], side="left")), edges[-1] + 1)
        if at >= len(acked):
            return np.array(edges, dtype=np.int64)
        edges.append(at)


def _before(at: int, advances: Indices, ours: Flags, flight: Numbers) -> float:
    """The window before an episode: the flight after the response to the last ACK without a loss
    signal.
    """
    place = int(np.searchsorted(advances, at, side="left")) - 1
    begin = int(advances[place]) if place >= 0 else 0
    stop = begin + 1
    while stop < at and ours[stop]:
        stop += 1
    return float(flight[begin:stop].max())


def _after(at: int, time: Numbers, flight: Numbers, rtt: float) -> float:
    """The window after an episode: the flight once it is filled again."""
    stop = max(int(np.searchsorted(time, time[at] + rtt / 4)), at + 4)
    return float(flight[at:stop].max())


def _ack_delay(time: Numbers, ours: Flags, fresh: Flags, near_ms: float) -> Numbers:
    replies = np.flatnonzero(~ours)
    data = np.flatnonzero(fresh)
    last = np.searchsorted(replies, data, side="right") - 1
    data, last = data[last >= 0], last[last >= 0]
    if len(replies) < 10 or len(data) < 10:
        return np.zeros(3)
    between = float(np.median(np.diff(time[replies])))
    delay = np.maximum(time[data] - time[replies[last]] - near_ms / 1e3, 0.0)
    return np.asarray(np.quantile(delay / max(between, 1e-6), [0.25, 0.5, 0.75]))
