"""Packet captures: what a capture has, what is wrong with it, and what happened to its connections.

Read are pcap and pcapng, plain or packed with gzip or Zstandard, from a file or, as `-`, from
standard input. [Captures](../how-to/capture.md) says what the columns are good for,
[result tables](tables.md#capture_flows) what each of them means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tcplab import _core
from tcplab._capture.characteristics import Characteristics
from tcplab._store.atomic_write import put

if TYPE_CHECKING:
    from tcplab._capture.twin import Twin

MOST_CONNECTIONS = 200_000
"""Connections that are followed at once, unless another number is asked for."""

WAITS = {
    "handshake": ("handshake", "the handshake"),
    "close": ("close", "the close"),
    "timeout": ("timeout", "the retransmission timer and the repair after it"),
    "recovery": ("recovery", "the repair of what ACKs said to be lost"),
    "peer_window": ("peer's window", "the receiver's window"),
    "window": ("window", "the congestion window, or pacing"),
    "application": ("application", "the application"),
}
"""What a sender waits for, as `time_NAME_percent` has it: in a word, and in a sentence."""


@dataclass(frozen=True)
class Info:
    """What a capture has. The columns of each table are those of the reference."""

    totals: pl.DataFrame
    """One row: packets, bytes, times and rates."""
    lengths: pl.DataFrame
    """Packets by their lengths."""
    protocols: pl.DataFrame
    """Packets by their protocols."""
    faults: pl.DataFrame
    """What is wrong with the capture, and what cannot be known because of it."""


def info(path: str | PathLike[str], *, connections: int = MOST_CONNECTIONS) -> Info:
    """What a capture has, and what is wrong with it.

    Args:
        path: The file; `-` is standard input.
        connections: How many connections are followed at once: beyond, the one that has been silent
            longest is given up, and the table of faults says so.

    Raises:
        ConfigError: The file cannot be read, or is no capture.
    """
    return read(path, connections=connections)[0]


def flows(path: str | PathLike[str], *, connections: int = MOST_CONNECTIONS) -> pl.DataFrame:
    """What happened to the connections of a capture: a row for each TCP connection, in the order of
    their first packets.

    Args:
        path: The file; `-` is standard input.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read, or is no capture.
    """
    return read(path, connections=connections)[1]


def packets(
    path: str | PathLike[str],
    connection: int | Sequence[int],
    *,
    connections: int = MOST_CONNECTIONS,
) -> pl.DataFrame:
    """The packets of a connection of a capture, or of several: a row for each, with what it is.

    Args:
        path: The file; `-` is standard input.
        connection: The number of the connection in `flows`, or several.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read, is no capture, or has no such connection.
    """
    chosen = [connection] if isinstance(connection, int) else [*connection]
    tables = _tables(path, connections, chosen)
    number = len(tables["capture_flows"])
    if wrong := [one for one in chosen if one >= number]:
        there = f"has those from 0 to {number - 1}" if number else "has none"
        raise _core.ConfigError(f"connection: {wrong[0]} is not in {path}, which {there}")
    return tables["capture_packets"]


def read(
    path: str | PathLike[str], *, connections: int = MOST_CONNECTIONS
) -> tuple[Info, pl.DataFrame]:
    """What `info` and `flows` give, both from one pass through the capture.

    Args:
        path: The file; `-` is standard input.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read, or is no capture.
    """
    tables = _tables(path, connections, [])
    about = Info(
        tables["capture_totals"],
        tables["capture_lengths"],
        tables["capture_protocols"],
        tables["capture_faults"],
    )
    return about, tables["capture_flows"].sort("connection")


def report(
    path: str | PathLike[str],
    page: str | PathLike[str],
    *,
    connections: int = MOST_CONNECTIONS,
) -> None:
    """Writes what a capture tells as one page of HTML that needs no network: what is in it and what
    is wrong with it, its connections and what their time went by, and the segments of the largest.

    Args:
        path: The file; `-` is standard input.
        page: Where the page goes: a name that ends with `.html`.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read, is no capture, or the page has another ending.
        OSError: The page cannot be written.
    """
    # Charts take their time to load.
    from tcplab._report._capture import html  # noqa: PLC0415

    page = Path(page)
    if page.suffix.lower() != ".html":
        raise _core.ConfigError(f"{page}: the page about a capture is written as .html")
    put(html(path, connections).encode(), page)


def columns() -> pl.DataFrame:
    """The columns of the tables of captures, and what they mean."""
    names = ["table", "column", "meaning"]
    return pl.DataFrame(_core.capture_columns(), schema=names, orient="row")


def _tables(
    path: str | PathLike[str], connections: int, chosen: Sequence[int]
) -> dict[str, pl.DataFrame]:
    """All tables of a capture; that of packets has those of the chosen connections."""
    if connections < 1:
        raise _core.ConfigError(f"connections: {connections} is not at least 1")
    if negative := [one for one in chosen if one < 0]:
        raise _core.ConfigError(f"connection: {negative[0]} is below 0")
    return {
        name: pl.concat([pl.DataFrame(frame.part(number)) for number in range(frame.parts)])
        for name, frame in _core.read_capture(Path(path), connections, chosen)
    }


def twin(
    path: str | PathLike[str],
    *,
    cc: str | None = None,
    backend: str = "sim",
    connections: Sequence[int] | None = None,
    rtt: str | None = None,
    rate: str | None = None,
    queue: int | None = None,
) -> Twin:
    """A twin of a capture: an experiment with a path and traffic like those of the two hosts that
    exchange most data in it, and how far it behaves like the capture.

    Args:
        path: The file.
        cc: The congestion control of its flows. Without, that which `congestion_control` tells is
            tried, then `cubic`, `bbr` and `newreno`, and the first that fits is taken.
        backend: Where the twin is run beside the capture: `sim` or `linux`.
        connections: The numbers of the connections, as in `flows`, if not all of them count.
        rtt: The round trip without queues, if that is known: "40 ms".
        rate: The rate of the bottleneck, if that is known: "100 Mbit/s".
        queue: How many packets its queue holds, if that is known.

    Raises:
        ConfigError: The file cannot be read, is no capture, or does not tell enough for a twin.
    """
    # What runs it takes its time to load.
    from tcplab._capture import twin as made  # noqa: PLC0415

    if str(path) == "-":
        raise _core.ConfigError("-: a twin reads its capture twice; save standard input to a file")
    given = made.Given.of(rtt, rate, queue)
    return made.twin(Path(path), cc, backend, connections, given)


def characterise(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    classes: str = "fixed",
    connections: int = MOST_CONNECTIONS,
) -> Characteristics:
    """What the traffic of captures is: sessions by size, arrivals, turns of requests and answers,
    round trips, and the families of distributions that fit. Logs of connections are read too:
    Zeek's conn.log, flow records of nfdump and of IPFIX as text, and HAR files.

    Args:
        paths: A file or several; `-` is a capture from standard input.
        classes: By which classes of size sessions are counted: `fixed`, or `found` from the data.
        connections: As for `info`.

    Raises:
        ConfigError: A file cannot be read, or has no TCP connection.
    """
    from tcplab._capture.characterise import characterised  # noqa: PLC0415 (SciPy takes its time)

    several = [paths] if isinstance(paths, (str, PathLike)) else [*paths]
    return characterised([Path(path) for path in several], classes, connections)


def congestion_control(
    path: str | PathLike[str], *, connections: int = MOST_CONNECTIONS
) -> pl.DataFrame:
    """Which congestion control the sender of each connection ran: a guess from its packets.

    The table has a row for each connection: `connection`, its number in `flows`; `sender` and
    `receiver`; `guess`, an algorithm of Linux, two between which nothing decides (`reno or lp`), or
    `unknown`; `certainty`, from 0 to 1, nothing where no guess was tried; and `evidence`, what was
    seen, or why nothing can be said.

    Args:
        path: The file; `-` is standard input.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read, or is no capture.
    """
    from tcplab._capture import guess  # noqa: PLC0415 (its model takes its time to load)

    with guess.seekable(Path(path)) as file:
        told = guess.table(
            flows(file, connections=connections),
            lambda chosen: packets(file, chosen, connections=connections),
        )
    return told.sort("connection")
