"""The tables of a capture as frames of the extension, and as frames of polars, which takes time to
load.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tcplab import _core

if TYPE_CHECKING:
    import polars as pl


MOST_CONNECTIONS = 200_000
"""The default for the number of connections that are followed at once."""

WAITS = {
    "handshake": ("handshake", "the handshake"),
    "close": ("close", "the close"),
    "timeout": ("timeout", "the retransmission timer and the repair after it"),
    "recovery": ("recovery", "the repair of what ACKs said to be lost"),
    "peer_window": ("peer's window", "the receiver's window"),
    "window": ("window", "the congestion window, or pacing"),
    "application": ("application", "the application"),
}
"""The reasons for which a sender waits, as in `time_NAME_percent`: in a word, and in a sentence."""


def frames(path: Path, connections: int, chosen: Sequence[int] = ()) -> dict[str, _core.Frame]:
    """All tables of a capture. The table of packets has those of the chosen connections."""
    if connections < 1:
        raise _core.ConfigError(f"connections: {connections} is not at least 1")
    if negative := [one for one in chosen if one < 0]:
        raise _core.ConfigError(f"connection: {negative[0]} is below 0")
    return dict(_core.read_capture(path, connections, chosen))


def in_polars(frame: _core.Frame) -> pl.DataFrame:
    """The same rows in polars."""
    import polars as pl  # noqa: PLC0415

    return pl.concat([pl.DataFrame(frame.part(number)) for number in range(frame.parts)])
