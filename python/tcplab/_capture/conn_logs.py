"""Reads connection logs: Zeek's conn.log, flow records of nfdump and of IPFIX as text, and HAR
files.

A file is recognised by its content. All formats become sessions: a row for each TCP connection,
with the bytes of the client and of the server.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from tcplab import _core
from tcplab._core import ConfigError

SESSION: Mapping[str, pl.DataType] = {
    "client": pl.String(),
    "client_port": pl.Int64(),
    "server": pl.String(),
    "server_port": pl.Int64(),
    "start_s": pl.Float64(),
    "duration_s": pl.Float64(),
    "client_bytes": pl.Int64(),
    "server_bytes": pl.Int64(),
    "client_wire_bytes": pl.Int64(),
    "server_wire_bytes": pl.Int64(),
    "turns": pl.Int64(),
    "rtt_ms": pl.Float64(),
    "is_whole": pl.Boolean(),
}
"""The columns of sessions. Times are seconds since 1970, or since the start of an experiment. A
value is null if the source does not have it.
"""

TURN: Mapping[str, pl.DataType] = {
    "session": pl.Int64(),
    "request_bytes": pl.Int64(),
    "response_bytes": pl.Int64(),
    "wait_ms": pl.Float64(),
    "server_ms": pl.Float64(),
    "think_ms": pl.Float64(),
}
"""The columns of turns. `session` is the row number of the session; `wait_ms` is the time before
the first byte of an answer is seen, `server_ms` is that time without the round trip.
"""

PART_GAP_S = 60.0
"""Records of the same connection that are further apart belong to two connections."""

HEADERS, MORE_OF_IPV6, MORE_OF_SYN = 52, 20, 8
"""Bytes of headers per packet, for logs that do not count data: IPv4, and TCP with timestamps.
Headers of IPv6, and of a SYN, are larger.
"""

MAGICS = (
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\xc3\xd4",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x0a\x0d\x0d\x0a",
)
"""The first bytes of captures."""

COLUMNS = {
    "start": ("ts", "firstseen", "stime", "flowstartmilliseconds", "flowstartmicroseconds",
              "flowstartnanoseconds", "flowstartseconds", "first"),
    "end": ("te", "lastseen", "etime", "flowendmilliseconds", "flowendmicroseconds",
            "flowendnanoseconds", "flowendseconds", "last"),
    "duration": ("td", "duration", "dur"),
    "from": ("sa", "srcaddr", "sip", "sourceipv4address", "sourceipv6address", "src4_addr",
             "src6_addr"),
    "to": ("da", "dstaddr", "dip", "destinationipv4address", "destinationipv6address",
           "dst4_addr", "dst6_addr"),
    "from_port": ("sp", "srcport", "sport", "sourcetransportport", "src_port"),
    "to_port": ("dp", "dstport", "dport", "destinationtransportport", "dst_port"),
    "protocol": ("pr", "proto", "pro", "protocol", "protocolidentifier"),
    "packets": ("ipkt", "packets", "packetdeltacount", "packettotalcount", "in_packets"),
    "bytes": ("ibyt", "bytes", "octetdeltacount", "octettotalcount", "in_bytes"),
    "back_packets": ("opkt", "reversepacketdeltacount", "reversepackettotalcount", "out_packets"),
    "back_bytes": ("obyt", "reverseoctetdeltacount", "reverseoctettotalcount", "out_bytes"),
}  # fmt: skip
"""Names of the columns of flow records, in lower case: those of nfdump and SiLK, and the
information elements of IPFIX.
"""

NEEDED = ("start", "from", "to", "from_port", "to_port", "protocol", "bytes")


WRONG = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""The exceptions raised by reading an entry of a HAR file that lacks a value or has one of another
type.
"""


@dataclass(frozen=True)
class Log:
    """The content of a log."""

    kind: str
    """The format: `Zeek conn.log`, `flow records`, `HAR`."""
    sessions: pl.DataFrame
    turns: pl.DataFrame | None
    """`None` if the log does not separate requests."""
    notes: list[str] = field(default_factory=list)
    """What cannot be known because of the log."""


def read_log(path: Path) -> Log | None:
    """The log in a file, or `None` if the file is a capture or of an unknown format.

    Raises:
        ConfigError: The log cannot be read.
    """
    head, whole = _head(path)
    if head is None:
        return None
    try:
        return _log(path, head, whole)
    except UnreadableError as error:
        raise ConfigError(f"{path}:{error}") from None


class UnreadableError(ValueError):
    """A value of a log cannot be read. The message has its line."""


def _log(path: Path, head: str, whole: Callable[[], str]) -> Log | None:
    lines = head.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith(("#separator", "#fields", "#path")):
        return _zeek(_zeek_lines(path, whole()))
    if first.lstrip().startswith(("{", "[")):
        return _of_json(path, whole())
    delimiter = _delimiter(first)
    if delimiter is None:
        return None
    return _records(_table(whole(), delimiter))


def _head(path: Path) -> tuple[str | None, Callable[[], str]]:
    """The first kilobytes if they are text, and a function that reads the whole file."""

    def whole() -> str:
        try:
            content = gzip.decompress(path.read_bytes()) if is_packed else path.read_bytes()
            return content.decode("utf-8-sig")
        except (OSError, EOFError) as error:
            raise ConfigError(f"{path}: cannot be unpacked: {error}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: this is not text (UTF-8)") from None

    try:
        with path.open("rb") as file:
            head = file.read(4096)
        is_packed = head.startswith(b"\x1f\x8b")
        if is_packed:
            with gzip.open(path) as packed:
                head = packed.read(4096)
    except (OSError, EOFError):
        # The capture reader reports the fault.
        return None, whole
    if head.startswith(MAGICS) or b"\0" in head:
        return None, whole
    return head.decode("utf-8-sig", errors="replace"), whole


def _delimiter(header: str) -> str | None:
    """The delimiter between the columns of flow records; `None` if this is not their header."""
    for delimiter in (",", "|", "\t", ";"):
        names = [_plain(name) for name in header.split(delimiter)]
        if all(any(name in COLUMNS[one] for name in names) for one in NEEDED):
            return delimiter
    return None


def _plain(name: str) -> str:
    """The name of a column without case, quotes, and the organisation of an information element.
    Names of the reverse direction begin with `reverse`.
    """
    name = name.strip().strip('"').lower()
    organisation, _, element = name.rpartition(":")
    return f"reverse{element}" if organisation.endswith("@reverse") else element


def _table(text: str, delimiter: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows with their line numbers, up to nfdump's summary."""
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    names: list[str] | None = None
    for row in rows:
        if not row or not any(row):
            continue
        if row[0].strip() == "Summary":
            return
        if names is None:
            names = [_plain(name) for name in row]
            continue
        values = zip(names, (value.strip() for value in row), strict=False)
        yield rows.line_num, dict(values)


def _of_json(path: Path, text: str) -> Log:
    """A HAR file, or one record per line: Zeek's or IPFIX."""
    try:
        # One object over several lines, or a list.
        every = json.loads(text)
    except json.JSONDecodeError as error:
        # One record per line: extra data follows only a first line that is a valid object.
        if error.msg != "Extra data":
            raise ConfigError(f"{path}:{error.lineno}: this is not JSON: {error.msg}") from None
        every = None
    if isinstance(every, dict) and isinstance(every.get("log"), dict):
        entries = every["log"].get("entries")
        if isinstance(entries, list):
            return _har(path, entries)
    rows = _json_lines(path, text) if every is None else _json_list(path, every)
    numbered = list(rows)
    one = numbered[0][1] if numbered else {}
    if "id.orig_h" in one:
        return _zeek(numbered)
    names = [_plain(str(name)) for name in one]
    if not all(any(name in COLUMNS[key] for name in names) for key in NEEDED):
        raise ConfigError(
            f"{path}: this JSON is neither a HAR file, nor records of Zeek's conn.log, nfdump or "
            "IPFIX"
        )
    return _records(
        (number, {_plain(name): str(value) for name, value in row.items()})
        for number, row in numbered
    )


def _json_list(path: Path, every: object) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a list, numbered from 1."""
    for number, row in enumerate(every if isinstance(every, list) else [every], 1):
        if not isinstance(row, dict):
            raise ConfigError(f"{path}:{number}: this is not a record")
        yield number, row


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{path}:{number}: this is not JSON: {error.msg}") from None
        if not isinstance(row, dict):
            raise ConfigError(f"{path}:{number}: this is not a record")
        yield number, row


def _zeek_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of Zeek's own format, whose header declares the delimiter."""
    separator, unset, names = "\t", "-", list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#separator"):
            separator = line.split(" ", 1)[-1].encode().decode("unicode_escape")
        elif line.startswith("#unset_field"):
            unset = line.split(separator, 1)[-1]
        elif line.startswith("#fields"):
            names = line.split(separator)[1:]
            if "id.orig_h" not in names:
                raise ConfigError(f"{path}:{number}: this log of Zeek is not a conn.log")
        elif line and not line.startswith("#"):
            values = line.split(separator)
            if len(values) != len(names):
                raise ConfigError(
                    f"{path}:{number}: has {len(values)} columns; #fields has {len(names)}"
                )
            yield number, {n: v for n, v in zip(names, values, strict=True) if v != unset}


def _zeek(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Log:
    sessions: list[dict[str, Any]] = []
    others = lost = 0
    for number, row in rows:
        if row.get("proto") != "tcp":
            others += 1
            continue
        lost += _whole(row.get("missed_bytes"), number) or 0
        client, server = (_whole(row.get(f"{side}_bytes"), number) for side in ("orig", "resp"))
        on_wire = [_whole(row.get(f"{side}_ip_bytes"), number) for side in ("orig", "resp")]
        sessions.append(
            {
                "client": row.get("id.orig_h"),
                "client_port": _whole(row.get("id.orig_p"), number),
                "server": row.get("id.resp_h"),
                "server_port": _whole(row.get("id.resp_p"), number),
                "start_s": _seconds(row.get("ts"), number),
                "duration_s": _number(row.get("duration", 0), number),
                "client_bytes": client or 0,
                "server_bytes": server or 0,
                "client_wire_bytes": on_wire[0],
                "server_wire_bytes": on_wire[1],
                "turns": None,
                "rtt_ms": None,
                # SF, and the resets of an established connection (RSTO, RSTR).
                "is_whole": row.get("conn_state") in ("SF", "RSTO", "RSTR", "REJ"),
            }
        )
    notes = ["requests of one connection and round trips are not in a conn.log"]
    if lost:
        notes.append(f"Zeek missed {lost:,} bytes")
    return Log("Zeek conn.log", frame(sessions), None, [*notes, *_left_out(others)])


def _records(rows: Iterable[tuple[int, Mapping[str, str]]]) -> Log:
    """The sessions of flow records, which are unidirectional or bidirectional."""
    parts: list[dict[str, Any]] = []
    others = 0
    for number, row in rows:
        found = {
            key: next((row[name] for name in names if row.get(name)), None)
            for key, names in COLUMNS.items()
        }
        if str(found["protocol"]).upper() not in ("6", "TCP"):
            others += 1
            continue
        start = _seconds(found["start"], number)
        if found["duration"] is not None:
            end = start + _number(found["duration"], number)
        else:
            end = start if found["end"] is None else _seconds(found["end"], number)
        counts = {
            key: _whole(found[key], number) or 0
            for key in ("packets", "bytes", "back_packets", "back_bytes")
        }
        ends = [
            (str(found[side]), _whole(found[f"{side}_port"], number) or 0)
            for side in ("from", "to")
        ]
        parts.append({"start": start, "end": max(end, start), "ends": ends, **counts})
    notes = [
        "flow records count packets with their headers: data is estimated, at 52 bytes a packet",
        "requests of one connection and round trips are not in flow records",
    ]
    return Log("flow records", frame(_joined(parts)), None, [*notes, *_left_out(others)])


def _joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Joins both directions of a connection, and the parts into which an exporter's timeout has
    split it, to one session.
    """
    open_: dict[tuple[Any, ...], dict[str, Any]] = {}
    sessions: list[dict[str, Any]] = []
    # Of two records with the same time, the client's is the one with the larger port.
    for part in sorted(parts, key=lambda part: (part["start"], -part["ends"][0][1], part["ends"])):
        key = tuple(sorted(part["ends"]))
        session = open_.get(key)
        if session is None or part["start"] > session["end"] + PART_GAP_S:
            session = {"ends": part["ends"], "start": part["start"], "end": part["end"]}
            session |= {f"{what}{side}": 0 for what in ("packets", "bytes") for side in (0, 1)}
            open_[key] = session
            sessions.append(session)
        session["end"] = max(session["end"], part["end"])
        ahead = int(part["ends"] != session["ends"])
        for what in ("packets", "bytes"):
            session[f"{what}{ahead}"] += part[what]
            session[f"{what}{1 - ahead}"] += part[f"back_{what}"]
    return [
        {
            "client": one["ends"][0][0],
            "client_port": one["ends"][0][1],
            "server": one["ends"][1][0],
            "server_port": one["ends"][1][1],
            "start_s": one["start"],
            "duration_s": one["end"] - one["start"],
            "client_bytes": _data(one, 0),
            "server_bytes": _data(one, 1),
            "client_wire_bytes": one["bytes0"],
            "server_wire_bytes": one["bytes1"],
            "turns": None,
            "rtt_ms": None,
            "is_whole": None,
        }
        for one in sessions
    ]


def _data(session: Mapping[str, Any], side: int) -> int:
    """An estimate of the bytes of data that one side sent."""
    headers = HEADERS + (MORE_OF_IPV6 if ":" in session["ends"][0][0] else 0)
    data = session[f"bytes{side}"] - headers * session[f"packets{side}"] - MORE_OF_SYN
    return int(max(data, 0))


def _har(path: Path, entries: Sequence[Any]) -> Log:
    """The requests of a browser. Requests with the same `connection` are turns of one session."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    nameless = 0
    for number, entry in enumerate(entries):
        try:
            request, response = entry["request"], entry["response"]
            timings = entry.get("timings") or {}
            start = _seconds(entry["startedDateTime"], number)
            took = float(entry.get("time") or 0)
            host = str(entry.get("serverIPAddress") or request["url"].split("/")[2])
            sizes = [max(int(part.get("headersSize") or 0), 0) for part in (request, response)]
            sizes[0] += max(int(request.get("bodySize") or 0), 0)
            sent = int(response.get("_transferSize") or 0)
            sizes[1] = sent if sent > 0 else sizes[1] + max(int(response.get("bodySize") or 0), 0)
            times = {
                name: max(float(timings.get(name) or 0), 0.0)
                for name in ("blocked", "dns", "connect", "ssl", "send", "wait", "receive")
            }
        except WRONG as error:
            said = f"{path}: log.entries[{number}]: is not a HAR request"
            raise ConfigError(f"{said}: {error}") from None
        connection = entry.get("connection")
        nameless += connection is None
        key = (host, connection) if connection is not None else (host, None, number)
        # `startedDateTime` precedes the wait for a connection and its handshake.
        sent_at = start + (took - times["receive"] - times["wait"] - times["send"]) / 1000
        found.setdefault(key, []).append(
            {"start": sent_at, "end": start + took / 1000, "sizes": sizes, "times": times}
        )
    sessions: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    ordered = sorted(found.items(), key=lambda item: (item[1][0]["start"], str(item[0])))
    for number, ((host, connection, *_), every) in enumerate(ordered):
        every.sort(key=lambda turn: float(turn["start"]))
        times = every[0]["times"]
        # Some browsers include TLS in `connect`; the round trips of TLS are not part of TCP's
        # handshake.
        opened = times["connect"] - (times["ssl"] if times["ssl"] < times["connect"] else 0)
        begin = every[0]["start"] - times["connect"] / 1000
        last = None
        for turn in every:
            turns.append(
                {
                    "session": number,
                    "request_bytes": turn["sizes"][0],
                    "response_bytes": turn["sizes"][1],
                    "wait_ms": turn["times"]["wait"],
                    "server_ms": max(turn["times"]["wait"] - opened, 0.0),
                    "think_ms": None if last is None else max(turn["start"] - last, 0.0) * 1000,
                }
            )
            last = turn["end"]
        sums = [sum(turn["sizes"][side] for turn in every) for side in (0, 1)]
        port = str(connection) if connection is not None else ""
        sessions.append(
            {
                "client": "browser",
                "client_port": int(port) if port.isdecimal() else number,
                "server": host,
                "server_port": 443 if times["ssl"] > 0 else 80,
                "start_s": begin,
                "duration_s": max(max(turn["end"] for turn in every) - begin, 0.0),
                "client_bytes": sums[0],
                "server_bytes": sums[1],
                "client_wire_bytes": None,
                "server_wire_bytes": None,
                "turns": len(every),
                "rtt_ms": opened if opened > 0 else None,
                "is_whole": True,
            }
        )
    notes = []
    if nameless:
        notes.append(f"{nameless} requests do not name their connection: each counts as a session")
    return Log("HAR", frame(sessions), pl.DataFrame(turns, TURN, orient="row"), notes)


def frame(sessions: list[dict[str, Any]]) -> pl.DataFrame:
    """Sessions as a table."""
    return pl.DataFrame(sessions, SESSION, orient="row")


def _left_out(others: int) -> list[str]:
    return [f"{others:,} records of other protocols than TCP are left out"] if others else []


def _whole(value: object, line: int) -> int | None:
    """A count. Flow tools abbreviate large ones: `1.2 M`."""
    if value is None or value == "":
        return None
    text = str(value)
    factor = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1:].upper(), 0)
    if factor:
        return round(_number(text[:-1], line) * factor)
    return round(_number(text, line))


def _number(value: object, line: int) -> float:
    try:
        return float(str(value).strip())
    except ValueError:
        raise UnreadableError(f"{line}: {_core.printable(str(value))!r} is not a number") from None


def _seconds(value: object, line: int) -> float:
    """A time: seconds, milliseconds or finer since 1970, or a date, in UTC unless it has a zone."""
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        try:
            date = datetime.fromisoformat(text.replace("/", "-"))
        except ValueError:
            said = _core.printable(text)
            raise UnreadableError(f"{line}: {said!r} is not a time") from None
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    # As seconds, numbers below this limit reach the year 5138; finer units are never that small.
    for unit in (1.0, 1e3, 1e6, 1e9):
        if number < 1e11 * unit:
            return number / unit
    raise UnreadableError(f"{line}: {_core.printable(text)!r} is not a time")
