"""Packet captures: their contents, their faults, and the behaviour of their connections.

Captures are pcap or pcapng files, plain or compressed with gzip or Zstandard, or standard input
(`-`). [Captures](../how-to/capture.md) shows how to use the columns; [result
tables](tables.md#capture_flows) defines each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tcplab import _core
from tcplab._capture.frames import MOST_CONNECTIONS, frames, in_polars
from tcplab._capture.frames import WAITS as WAITS  # noqa: PLC0414 (also a name of this module)

if TYPE_CHECKING:
    import polars as pl

    from tcplab._capture.characteristics import Characteristics
    from tcplab._capture.twin import Twin


@dataclass(frozen=True)
class Info:
    """The contents of a capture. The columns of each table are those of the reference."""

    totals: pl.DataFrame
    """One row: packets, bytes, times and rates."""
    lengths: pl.DataFrame
    """Packets by their lengths."""
    protocols: pl.DataFrame
    """Packets by their protocols."""
    faults: pl.DataFrame
    """The faults of the capture, and what cannot be known because of them."""


def info(path: str | PathLike[str], *, connections: int = MOST_CONNECTIONS) -> Info:
    """Returns the contents and the faults of a capture.

    Args:
        path: The file; `-` is standard input.
        connections: The number of connections that are followed at once. Beyond it, the connection
            that has been silent longest is given up, and the table of faults says so.

    Raises:
        ConfigError: The file cannot be read, or is not a capture.
    """
    return read(path, connections=connections)[0]


def flows(path: str | PathLike[str], *, connections: int = MOST_CONNECTIONS) -> pl.DataFrame:
    """Returns the connections of a capture: a row for each TCP connection, in the order of their
    first packets.

    Args:
        path: The file; `-` is standard input.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read, or is not a capture.
    """
    return read(path, connections=connections)[1]


def packets(
    path: str | PathLike[str],
    connection: int | Sequence[int],
    *,
    connections: int = MOST_CONNECTIONS,
) -> pl.DataFrame:
    """Returns the packets of one or several connections of a capture: a row for each packet, with
    its classification.

    Args:
        path: The file; `-` is standard input.
        connection: The number of the connection in `flows`, or several.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read, is not a capture, or has no such connection.
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
    """Returns the results of `info` and `flows`, from one pass through the capture.

    Args:
        path: The file; `-` is standard input.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read, or is not a capture.
    """
    tables = _tables(path, connections, [])
    about = Info(
        tables["capture_totals"],
        tables["capture_lengths"],
        tables["capture_protocols"],
        tables["capture_faults"],
    )
    return about, tables["capture_flows"]


def report(
    path: str | PathLike[str],
    page: str | PathLike[str],
    *,
    connections: int = MOST_CONNECTIONS,
) -> None:
    """Writes a report of a capture as one HTML page that needs no network: its contents and faults,
    its connections and how their time was spent, and the segments of the largest connection.

    Args:
        path: The file; `-` is standard input.
        page: The path of the page, which ends with `.html`.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read or is not a capture, or the page has another ending.
        OSError: The page cannot be written.
    """
    # Charts take time to load.
    from tcplab._report._capture import html  # noqa: PLC0415
    from tcplab._store.atomic_write import put  # noqa: PLC0415

    page = Path(page)
    if page.suffix.lower() != ".html":
        raise _core.ConfigError(f"{page}: the page about a capture is written as .html")
    put(html(path, connections).encode(), page)


def columns() -> pl.DataFrame:
    """Returns the columns of the tables of captures, and their meaning."""
    import polars as pl  # noqa: PLC0415 (takes time to load)

    names = ["table", "column", "meaning"]
    return pl.DataFrame(_core.capture_columns(), schema=names, orient="row")


def _tables(
    path: str | PathLike[str], connections: int, chosen: Sequence[int]
) -> dict[str, pl.DataFrame]:
    """All tables of a capture. The table of packets has those of the chosen connections."""
    # Polars takes as long to load as a million packets take to read. Reading leaves Python free.
    loading = Thread(target=import_module, args=["polars"])
    loading.start()
    try:
        tables = frames(Path(path), connections, chosen)
    finally:
        loading.join()
    return {name: in_polars(frame) for name, frame in tables.items()}


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
    """Returns a twin of a capture: an experiment with a path and traffic like those of the two
    hosts that exchange most data in it, and a measure of how closely it behaves like the capture.

    Args:
        path: The file.
        cc: The congestion control of the flows. By default, that which `congestion_control` reports
            is tried, then `cubic`, `bbr` and `newreno`; the first that fits is taken.
        backend: The backend on which the twin is compared with the capture: `sim` or `linux`.
        connections: The numbers of the connections, as in `flows`, if not all of them count.
        rtt: The round-trip time without queueing, if known: "40 ms".
        rate: The rate of the bottleneck, if known: "100 Mbit/s".
        queue: The capacity of its queue in packets, if known.

    Raises:
        ConfigError: The file cannot be read, is not a capture, or holds too little for a twin.
    """
    # The simulator takes time to load.
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
    """Returns a characterisation of the traffic of captures: sessions by size, arrivals, turns of
    requests and answers, round-trip times, and the families of distributions that fit. Connection
    logs are accepted too: Zeek's conn.log, flow records of nfdump and of IPFIX as text, and HAR
    files.

    Args:
        paths: One file or several; `-` is a capture from standard input.
        classes: The size classes by which sessions are counted: `fixed`, or `found` in the data.
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
    """Returns a guess of the congestion control that the sender of each connection ran, from its
    packets.

    The table has a row for each connection: `connection`, its number in `flows`; `sender` and
    `receiver`; `guess`, an algorithm of Linux, two algorithms that the evidence cannot separate
    (`reno or lp`), or `unknown`; `certainty`, from 0 to 1, null if no guess was tried; and
    `evidence`, the observations behind the guess, or the reason for having none.

    Args:
        path: The file; `-` is standard input.
        connections: As for `info`.

    Raises:
        ConfigError: The file cannot be read, or is not a capture.
    """
    from tcplab._capture import guess  # noqa: PLC0415 (its model takes its time to load)

    with guess.seekable(Path(path)) as file:
        told = guess.table(
            flows(file, connections=connections),
            lambda chosen: packets(file, chosen, connections=connections),
        )
    return told.sort("connection")
