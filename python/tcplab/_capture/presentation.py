"""Presents the characteristics of traffic: for the screen, as JSON, and as an experiment file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from tcplab._capture.characteristics import Characteristics
from tcplab._capture.modelled import about
from tcplab._experiment.reading import as_written
from tcplab._results import json_output
from tcplab._store.atomic_write import put
from tcplab._text import plain_tables
from tcplab._text.cells import LEFT, MOST_ROWS, Column, decimals, number

SUMMARY = ("totals", "classes", "fits", "peers")
"""The tables that `--format json` prints together."""

ARRIVALS = {
    "Poisson": "arrivals are Poisson",
    "constant": "arrivals are constant",
    "neither": "arrivals are neither Poisson nor constant",
}
"""The arrival processes, in words for the screen."""

MEANINGS = {"response": "answer", "think": "think time"}
"""Fitted quantities whose name on the screen differs."""


def write(found: Characteristics, path: Path) -> None:
    """Writes a model: an experiment with traffic like this."""
    model = found.experiment(path.stem)
    text, _ = as_written(model)
    comment = "".join(f"# {line}\n" for line in about(found, model))
    put(f"{comment}\n{text}".encode(), path)


def document(found: Characteristics) -> str:
    """The tables with a row for each question, as one JSON object."""
    parts = (f'"{name}": {json_output.rows(getattr(found, name))}' for name in SUMMARY)
    return "{" + ", ".join(parts) + "}"


def screen(found: Characteristics) -> str:
    """All tables except that of single sessions."""
    (row,) = found.totals.iter_rows(named=True)
    parts = [_head(row), _classes(found.classes)]
    if len(found.fits):
        parts.append(_fits(found.fits))
    parts.append(_peers(found.peers))
    return "\n\n".join(parts)


def _head(row: Mapping[str, Any]) -> str:
    rate = f", {_short(row['sessions_per_s'])} a second" if row["sessions_per_s"] else ""
    lines = [
        f"{row['sessions']:,} sessions in {_short(row['duration_s'])} s{rate}; "
        f"{row['bytes']:,} bytes, {_bytes(row['size_mean_bytes'])} a session",
    ]
    if row["arrivals"] in ARRIVALS:
        lines.append(
            f"{ARRIVALS[row['arrivals']]}: gaps of {_short(row['gap_mean_s'])} s, coefficient of "
            f"variation {_short(row['gap_cv'])}, correlation {_short(row['gap_correlation'])}"
        )
    if row["at_once_mean"] is not None:
        lines.append(
            f"at once: {_short(row['at_once_mean'])} on average, {row['at_once_max']} at most; "
            f"a session takes {_short(row['session_mean_s'])} s"
        )
    if row["turns_mean"] is not None:
        turns = (
            f"turns: {_short(row['turns_mean'])} in each of {row['sessions_with_turns']:,} "
            f"sessions, {row['turns_max']} at most; {_bytes(row['request_mean_bytes'])} bytes "
            f"asked, {_bytes(row['response_mean_bytes'])} answered"
        )
        lines.append(turns)
        times = [
            f"{what} {_short(row[key])} ms"
            for what, key in (("server", "server_p50_ms"), ("think time", "think_p50_ms"))
            if row[key] is not None
        ]
        if times:
            lines.append(f"medians: {', '.join(times)}")
    return "\n".join(lines)


def _classes(classes: pl.DataFrame) -> str:
    heads = [
        Column("class", LEFT),
        Column("from", unit="kB"),
        Column("to", unit="kB"),
        Column("sessions"),
        Column("share", unit="%"),
        Column("data", unit="kB"),
        Column("share", unit="%"),
        Column("mean", unit="kB"),
        Column("lasts", unit="s"),
    ]
    cells = [
        [
            row["class"],
            f"{row['from_bytes'] / 1000:g}",
            "-" if row["to_bytes"] is None else f"{row['to_bytes'] / 1000:g}",
            f"{row['sessions']:,}",
            number(row["sessions_percent"], 2),
            f"{row['bytes'] / 1000:,.0f}",
            number(row["bytes_percent"], 2),
            _short(_thousandth(row["size_mean_bytes"])),
            _short(row["duration_mean_s"]),
        ]
        for row in classes.iter_rows(named=True)
    ]
    return plain_tables.table(heads, cells)


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1000


def _fits(fits: pl.DataFrame) -> str:
    heads = [
        Column("of", LEFT),
        Column("family", LEFT),
        Column("parameters", LEFT),
        Column("unit", LEFT),
        Column("KS"),
        Column("fits", LEFT),
    ]
    cells = [
        [
            MEANINGS.get(row["quantity"], row["quantity"]),
            row["family"],
            row["parameters"],
            row["unit"],
            number(row["ks"], 3),
            "yes" if row["fits"] else "",
        ]
        for row in fits.iter_rows(named=True)
    ]
    return plain_tables.table(heads, cells)


def _peers(peers: pl.DataFrame) -> str:
    heads = [
        Column("server", LEFT),
        Column("sessions"),
        Column("asked", unit="kB"),
        Column("answered", unit="kB"),
        Column("RTT min", unit="ms"),
        Column("RTT", unit="ms"),
    ]
    some = peers.head(MOST_ROWS)
    cells = [
        [
            row["server"],
            f"{row['sessions']:,}",
            f"{row['client_bytes'] / 1000:,.0f}",
            f"{row['server_bytes'] / 1000:,.0f}",
            _short(row["rtt_min_ms"]),
            _short(row["rtt_p50_ms"]),
        ]
        for row in some.iter_rows(named=True)
    ]
    text = plain_tables.table(heads, cells)
    if (more := len(peers) - len(some)) > 0:
        text += f"\n... and {more:,} more servers; `--table peers --format csv` has them all"
    return text


def _short(value: float | None) -> str:
    return "-" if value is None else number(value, decimals(value, 3))


def _bytes(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
