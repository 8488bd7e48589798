"""Packet captures: what a capture has, what is wrong with it, and what happened to its connections.

Read are pcap and pcapng, plain or packed with gzip or Zstandard, from a file or, as `-`, from
standard input. [Captures](../how-to/capture.md) says what the columns are good for,
[result tables](tables.md#capture_flows) what each of them means.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import polars as pl

from tcplab import _core

MOST_CONNECTIONS = 200_000
"""Connections that are followed at once, unless another number is asked for."""


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
    if connections < 1:
        raise _core.ConfigError(f"connections: {connections} is not at least 1")
    tables = {
        name: pl.concat([pl.DataFrame(frame.part(number)) for number in range(frame.parts)])
        for name, frame in _core.read_capture(Path(path), connections)
    }
    about = Info(
        tables["capture_totals"],
        tables["capture_lengths"],
        tables["capture_protocols"],
        tables["capture_faults"],
    )
    return about, tables["capture_flows"].sort("connection")


def columns() -> pl.DataFrame:
    """The columns of the tables of captures, and what they mean."""
    names = ["table", "column", "meaning"]
    return pl.DataFrame(_core.capture_columns(), schema=names, orient="row")
