"""Estimates the path of a capture's connections: round-trip time, rate, queue and losses, with
ranges.

All estimates use ACKs as they arrive at the capture point, which should be at or near the sender. A
packet sent before the one ahead of it left the bottleneck followed that one without a gap. The ACKs
of both packets are therefore one transmission time of the bottleneck apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
import numpy.typing as npt

from tcplab._capture.delivered import Delivery, Evidence

ACK_BYTES = 52
"""Bytes of a packet of headers alone, with timestamps."""

CHUNK = 16
"""The number of back-to-back packets from which one rate is computed."""

FEWEST = 8
"""The fewest back-to-back packets from which a rate is estimated."""

LATE_ACK_S = 0.03
"""An ACK of a single segment that follows the previous ACK after this time may have been a delayed
ACK: Linux delays by at least 40 ms.
"""

NEAR_FULL = 0.7
"""The share of the longest delay from which on a queue counts as nearly full."""


@dataclass(frozen=True)
class Estimate:
    """An estimate of a quantity of the path."""

    value: float | None
    """The best estimate; `None` if there is none."""
    low: float | None
    """The lower bound; `None` if there is none."""
    high: float | None
    """The upper bound; `None` if there is none."""
    how: str
    """The basis of the estimate."""


@dataclass(frozen=True)
class Path:
    """The estimated path."""

    base_rtt_s: Estimate
    """The round-trip time of the smallest packets without queueing, and without their transmission
    time at the bottleneck.
    """
    rate_bit_s: Estimate
    """The rate of the bottleneck, counting IP packets."""
    queue_packets: Estimate
    """The number of packets of the largest size that the queue of the bottleneck holds."""
    loss: Estimate
    """The probability of losing a packet that finds room in the queue."""
    packet_bytes: int
    """The largest packet."""


def path(evidence: Evidence) -> Path:
    """The path of these packets."""
    plain = [one for one in evidence.deliveries if one.is_plain]
    trips = [one.at - one.last_sent for one in plain] + evidence.handshakes
    size = max(evidence.sizes, default=ACK_BYTES)
    if not trips:
        nothing = Estimate(None, None, None, "no ACK tells of a packet that was sent once")
        return Path(nothing, nothing, nothing, nothing, size)
    least = min(trips)
    rate = _rate(evidence.deliveries, least)
    base = _base(evidence, plain, rate.value)
    if rate.value is None or base.value is None:
        unknown = "the rate is not known, and with it how long packets wait"
        lost, sent = len(evidence.lost), len(evidence.sent)
        return Path(
            base, rate, Estimate(None, None, None, unknown), _share(lost, sent, "packets"), size
        )
    waits = _waits(plain, base.value, rate.value)
    queue, loss = _queue_and_loss(evidence, waits, 8 * size / rate.value)
    return Path(base, rate, queue, loss, size)


def _may_be_late(one: Delivery) -> bool:
    """Whether an ACK may have been delayed until its timer expired."""
    return one.number == 1 and one.silence > LATE_ACK_S


def _rate(deliveries: Sequence[Delivery], least: float) -> Estimate:
    """The rate at which back-to-back packets left the bottleneck."""
    chunks: list[tuple[float, int]] = []
    seconds, size, packets = 0.0, 0, 0
    without_gap = 0

    def end() -> None:
        nonlocal seconds, size, packets
        if packets >= FEWEST and seconds > 0:
            chunks.append((8 * size / seconds, packets))
        seconds, size, packets = 0.0, 0, 0

    for before, one in pairwise(deliveries):
        follows = one.is_plain and one.last_sent + least <= before.at < one.at
        if not follows or _may_be_late(before) or _may_be_late(one):
            end()
            continue
        seconds += one.at - before.at
        size += one.bytes
        packets += one.number
        without_gap += one.number
        if packets >= CHUNK:
            end()
    end()
    if not chunks:
        most = _fastest(deliveries, least)
        how = "packets never followed each other without a gap; at least what a round trip brought"
        return Estimate(None, most, None, how)
    rates, weights = (np.array(column, dtype=float) for column in zip(*chunks, strict=True))
    value, low, high = (_weighted(rates, weights, share) for share in (0.5, 0.05, 0.95))
    margin = 0.01 if len(chunks) >= 3 else 0.05
    how = f"{without_gap:,} packets that followed each other without a gap"
    return Estimate(value, low * (1 - margin), high * (1 + margin), how)


def _fastest(deliveries: Sequence[Delivery], least: float) -> float | None:
    """The most bits delivered within a round trip, per second."""
    best, begin, size = 0, 0, 0
    for one in deliveries:
        size += one.bytes
        while deliveries[begin].at <= one.at - least:
            size -= deliveries[begin].bytes
            begin += 1
        best = max(best, size)
    return 8 * best / least if best and least > 0 else None


def _weighted(
    values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], share: float
) -> float:
    """A weighted quantile."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, share * sums[-1])])


def _base(evidence: Evidence, plain: Sequence[Delivery], rate: float | None) -> Estimate:
    """The least round-trip time, minus the transmission times of the packet and its ACK at the
    bottleneck.
    """
    least = min([one.at - one.last_sent for one in plain] + evidence.handshakes)
    if rate is None:
        return Estimate(
            least, None, least, "the shortest round trip, with the time of transmission"
        )
    trips = [(one.at - one.last_sent, one.last_bytes) for one in plain]
    trips += [(trip, ACK_BYTES + 8) for trip in evidence.handshakes]
    value, size = min((trip - 8 * size / rate, size) for trip, size in trips)
    is_handshake = size == ACK_BYTES + 8 and bool(evidence.handshakes)
    value = max(value - 8 * ACK_BYTES / rate, 0.0)
    how = "the handshake" if is_handshake else "the shortest round trip"
    how += ", less the time of transmission"
    return Estimate(value, 0.98 * value, max(1.02 * value, least), how)


def _waits(plain: Sequence[Delivery], base: float, rate: float) -> list[tuple[float, float]]:
    """The send times of packets, and how long each waited at the bottleneck."""
    several = sum(one.number > 1 for one in plain)
    holds_back = several > 0.2 * len(plain)
    waits = []
    for one in plain:
        if not (holds_back and _may_be_late(one)):
            trip = one.at - one.last_sent - 8 * (one.last_bytes + ACK_BYTES) / rate
            waits.append((one.last_sent, max(trip - base, 0.0)))
    waits.sort()
    return waits


def _queue_and_loss(
    evidence: Evidence, waits: Sequence[tuple[float, float]], transmission: float
) -> tuple[Estimate, Estimate]:
    """The capacity of the queue, and the loss probability of packets that find room.

    The queue is known to be full if many more packets are lost right behind one that waited long
    than elsewhere.
    """
    times = np.array([time for time, _ in waits])
    lengths = np.array([wait for _, wait in waits])
    most = float(np.quantile(lengths, 0.995))
    full = max(most - max((1 - NEAR_FULL) * most, 3 * transmission), transmission)

    def beside(sent: Sequence[float]) -> npt.NDArray[np.float64]:
        """The wait of the packet ahead of each, or of the one behind it if that is longer."""
        places = np.searchsorted(times, np.array(sent, dtype=float), side="right")
        ahead = lengths[np.maximum(places - 1, 0)]
        behind = lengths[np.minimum(places, len(lengths) - 1)]
        longest: npt.NDArray[np.float64] = np.maximum(ahead, behind)
        return longest

    by_lost, by_sent = beside(evidence.lost), beside(evidence.sent)
    lost_full, lost_else = int((by_lost >= full).sum()), int((by_lost < full).sum())
    sent_full, sent_else = int((by_sent >= full).sum()), int((by_sent < full).sum())
    expected = lost_else / sent_else * sent_full if sent_else else 0.0
    is_full = most > transmission and lost_full > expected + 3 * sqrt(expected) + 1
    if not is_full:
        queue = Estimate(
            None,
            most / transmission,
            None,
            f"never seen full: packets waited for {most * 1000:.3g} ms at most",
        )
        return queue, _share(len(by_lost), len(by_sent), "packets")
    waited = by_lost[by_lost >= full] / transmission
    # Of a burst, the last packet finds the queue full. The packet ahead of a lost one waited for as
    # many packets as fit, or for one less and part of the one in transmission.
    low, value = (float(np.quantile(waited, share)) for share in (0.1, 0.9))
    how = f"{lost_full:,} packets were lost behind up to {value:.3g} that waited"
    value += 0.25
    queue = Estimate(value, max(min(low, 0.9 * value) - 1, 0), 1.1 * value + 1, how)
    # A single loss may be an overflow that its neighbours do not show.
    by_chance = lost_else if lost_else > 1 else 0
    return queue, _share(by_chance, sent_else, "packets that found room")


def _share(lost: int, sent: int, of: str) -> Estimate:
    """The share of lost packets, with the limits of a Poisson count."""
    if not sent:
        return Estimate(None, None, None, "no packet with data was sent")
    low = max(lost - 2 * sqrt(lost), 0.0) / sent
    high = (lost + 2 * sqrt(lost) + 3) / sent
    return Estimate(lost / sent, low, min(high, 1.0), f"{lost:,} of {sent:,} {of} were lost")
