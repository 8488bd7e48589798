"""Derives from the packets of a connection what its receiver has got, and when the sender learnt of
it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

FIRST = ("data", "out of order")
"""Kinds of packets that carry data for the first time."""

OF_NO_USE = ("copy", "strange")
"""Kinds of packets that are not what a host sent or got at that time: second copies of packets
captured twice, and packets that cannot belong to the connection.
"""

AGAIN = ("fast", "timeout", "after timeout")
"""Kinds of packets that retransmit data taken for lost: the beginning of a congestion episode, or
part of one.
"""


@dataclass(frozen=True, slots=True)
class Delivery:
    """An ACK that reported data as delivered."""

    at: float
    """The capture time of the ACK, in seconds."""
    bytes: int
    """Bytes of the packets that the ACK reported, with their IP headers."""
    last_sent: float
    """The capture time of the last of these packets."""
    last_bytes: int
    """Bytes of the last packet."""
    is_plain: bool
    """Whether all of these packets were sent once, so that it is certain which ones arrived."""
    number: int
    """The number of packets that the ACK reported."""
    silence: float
    """Seconds since the previous ACK of the connection."""


@dataclass(frozen=True)
class Evidence:
    """The evidence that the packets of connections give about their path."""

    deliveries: list[Delivery]
    """Deliveries in the order of time."""
    sent: list[float]
    """The times at which packets with data were first sent."""
    lost: list[float]
    """Of these times, those of packets that were later retransmitted as lost."""
    handshakes: list[float]
    """Round-trip times of the packets of handshakes, in seconds."""
    sizes: list[int]
    """Bytes of the packets with data, with their IP headers."""


@dataclass(slots=True)
class _Piece:
    """The data of one packet in flight."""

    begin: int
    end: int
    sent: float
    bytes: int
    packets: int
    is_again: bool = False
    is_there: bool = False


def evidence_of(packets: pl.DataFrame, flows: pl.DataFrame) -> Evidence:
    """The evidence of packets, for each connection from the side that sent more data."""
    every = Evidence([], [], [], [], [])
    numbers = {row["connection"]: row for row in flows.iter_rows(named=True)}
    for (number,), rows in packets.group_by("connection", maintain_order=True):
        _Connection(numbers[number], every).read(rows)
    every.deliveries.sort(key=lambda one: one.at)
    for times in (every.sent, every.lost):
        times.sort()
    return every


def headers(flow: Mapping[str, Any]) -> int:
    """Bytes of IPv4 and TCP headers before the data of a connection."""
    return 52 if "timestamps" in (flow["options"] or "") else 40


class _Connection:
    """The packets of one connection, from the side that sent more data."""

    def __init__(self, flow: Mapping[str, Any], into: Evidence) -> None:
        self._sender = flow["sender"]
        self._headers = headers(flow)
        most = flow[f"{self._sender}_mss_bytes"]
        self._segment = most or flow[f"{self._sender}_largest_segment_bytes"]
        self._into = into
        self._flight: list[_Piece] = []
        self._acked = -1
        self._last_ack_at = float("-inf")
        self._syn: float | None = None

    def read(self, packets: pl.DataFrame) -> None:
        """Processes the packets."""
        columns = ["time_s", "sender", "kind", "flags", "seq", "payload_bytes", "ack", "sack"]
        useful = packets.filter(~pl.col("kind").is_in(OF_NO_USE)).select(columns)
        for at, sender, kind, flags, seq, payload, ack, sack in useful.iter_rows():
            if sender == self._sender:
                if "SYN" in flags:
                    # After a retransmission it is unknown which of the two SYNs was answered.
                    self._syn = at if self._syn is None else -1.0
                elif payload:
                    self._send(at, kind, seq, payload)
            elif ack is not None:
                if self._syn is not None:
                    if self._syn >= 0:
                        self._into.handshakes.append(at - self._syn)
                    self._syn = None
                self._hear(at, ack, sack)

    def _send(self, at: float, kind: str, seq: int, payload: int) -> None:
        if kind in FIRST:
            packets = max(1, -(-payload // max(self._segment, 1)))
            size = payload + packets * self._headers
            self._flight.append(_Piece(seq, seq + payload, at, size, packets))
            self._into.sent.append(at)
            self._into.sizes.append(size // packets)
            return
        for piece in self._between(seq, seq + payload):
            if not piece.is_again and not piece.is_there and kind in AGAIN:
                self._into.lost.append(piece.sent)
            piece.is_again = True

    def _between(self, begin: int, end: int) -> Iterator[_Piece]:
        at = bisect_left(self._flight, begin + 1, key=lambda piece: piece.end)
        while at < len(self._flight) and self._flight[at].begin < end:
            yield self._flight[at]
            at += 1

    def _hear(self, at: float, ack: int, sack: str | None) -> None:
        there = []
        silence, self._last_ack_at = at - self._last_ack_at, at
        if ack > self._acked:
            self._acked = ack
            count = bisect_left(self._flight, ack + 1, key=lambda piece: piece.end)
            there = [piece for piece in self._flight[:count] if not piece.is_there]
            del self._flight[:count]
        for block in (sack or "").split():
            begin, _, end = block.partition("-")
            for piece in self._between(int(begin), int(end)):
                if not piece.is_there and int(begin) <= piece.begin and piece.end <= int(end):
                    piece.is_there = True
                    there.append(piece)
        if not there:
            return
        last = max(there, key=lambda piece: piece.sent)
        self._into.deliveries.append(
            Delivery(
                at,
                sum(piece.bytes for piece in there),
                last.sent,
                last.bytes,
                not any(piece.is_again for piece in there),
                sum(piece.packets for piece in there),
                silence,
            )
        )
