"""tcplab capture: the contents of a packet capture, and the behaviour of its connections."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import tcplab as lab
from tcplab import _core
from tcplab._capture.frames import MOST_CONNECTIONS, WAITS, frames, in_polars
from tcplab._core import printable
from tcplab._text.cells import LEFT, MOST_ROWS, Column, decimals, number
from tcplab.cli import _arguments
from tcplab.cli._output import FORMATS, say

if TYPE_CHECKING:
    import polars as pl

    from tcplab._capture.twin import Twin
    from tcplab.capture import Info

STDIN = Path("-")

TABLES = ("totals", "lengths", "protocols", "faults")

KEPT = (*(f"capture_{name}" for name in TABLES), "capture_flows")
"""The tables that `--out` writes."""

ACTIONS = {
    "info": "print the contents and the faults of a capture",
    "flows": "print what happened to each TCP connection of a capture",
    "packets": "classify each packet of a connection, and draw the packets over time",
    "report": "write a page about a capture: its connections, their time and their segments",
    "cc": "guess the congestion control of each sender, or print why there is no guess",
    "twin": "write an experiment with a path and traffic like those of a capture, and report how "
    "well it fits",
    "characterise": "characterise the traffic of captures and logs, and write a model of it",
}

PACKETS_SHOWN = (
    "time_s",
    "sender",
    "kind",
    "flags",
    "seq",
    "payload_bytes",
    "ack",
    "window_bytes",
    "sack",
)
"""The columns of packets that are printed."""

PIECE = 5_000
"""The rows of a table that are printed at once as CSV."""

FILE_HELP = "pcap or pcapng, also compressed with gzip or Zstandard; - is standard input"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the actions and their arguments."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    one = actions.add_parser("info", help=ACTIONS["info"])
    one.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help=FILE_HELP,
    )
    one.add_argument(
        "--table",
        choices=TABLES,
        metavar="TABLE",
        help=f"print only this table: {', '.join(TABLES)} (csv and markdown: totals by default)",
    )
    _add_common(one)
    one.set_defaults(act=_info)
    one = actions.add_parser("flows", help=ACTIONS["flows"])
    one.add_argument("file", type=Path, metavar="FILE", help=FILE_HELP)
    _add_common(one)
    one.set_defaults(act=_flows)
    one = actions.add_parser("packets", help=ACTIONS["packets"])
    one.add_argument("file", type=Path, metavar="FILE", help=FILE_HELP)
    one.add_argument(
        "--connection",
        type=int,
        metavar="NUMBER",
        help="the connection, as numbered by `capture flows --format csv` (default: the one "
        "with most data)",
    )
    one.add_argument(
        "--sender",
        choices=["client", "server"],
        metavar="SIDE",
        help="the sender whose segments are drawn: client or server (default: the larger)",
    )
    one.add_argument(
        "--from", dest="begin", type=float, metavar="S", help="start at this second of the capture"
    )
    one.add_argument(
        "--to", dest="end", type=float, metavar="S", help="end at this second of the capture"
    )
    one.add_argument(
        "--chart",
        type=_arguments.chart,
        metavar="FILE",
        help="file for a chart of the segments over time: .svg, .png, .pdf, .html or .json",
    )
    _add_format(one)
    _add_connections(one)
    one.set_defaults(act=_packets)
    one = actions.add_parser("report", help=ACTIONS["report"])
    one.add_argument("file", type=Path, metavar="FILE", help=FILE_HELP)
    one.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="file for the page: .html (default: beside the capture, with its name)",
    )
    _add_connections(one)
    one.set_defaults(act=_report)
    one = actions.add_parser("cc", help=ACTIONS["cc"])
    one.add_argument("file", type=Path, metavar="FILE", help=FILE_HELP)
    _add_format(one)
    _add_connections(one)
    one.set_defaults(act=_congestion_control)
    _add_twin(actions.add_parser("twin", help=ACTIONS["twin"]))
    _add_characterise(actions.add_parser("characterise", help=ACTIONS["characterise"]))


def _add_common(parser: argparse.ArgumentParser) -> None:
    _add_format(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="write all tables of the capture into this folder, as Parquet files",
    )
    _add_connections(parser)


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="table",
        metavar="FORMAT",
        help="output format: table (the default), json, csv or markdown",
    )


def _add_connections(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--connections",
        type=int,
        default=MOST_CONNECTIONS,
        metavar="NUMBER",
        help=f"the most connections followed at once (default: {MOST_CONNECTIONS})",
    )


def run(args: argparse.Namespace) -> int | None:
    """Carries out the action. Returns the exit status if it is not 0."""
    status: int | None = args.act(args)
    return status


def _info(args: argparse.Namespace) -> None:
    if args.out is not None and len(args.files) > 1:
        raise _core.ConfigError("--out: takes the tables of one file; there are several")
    every = []
    for file in args.files:
        about, flows = lab.capture.read(file, connections=args.connections)
        every.append(about)
        if args.out is not None:
            kept = [*(getattr(about, name) for name in TABLES), flows]
            _keep(dict(zip(KEPT, kept, strict=True)), args.out)
    import polars as pl  # noqa: PLC0415

    tables = {name: pl.concat([getattr(about, name) for about in every]) for name in TABLES}
    if args.table is None and args.format == "table":
        say("\n\n".join(_about(about) for about in every), flush=True)
    elif args.table is None and args.format == "json":
        from tcplab._results import json_output  # noqa: PLC0415

        rows = (f'"{name}": {json_output.rows(table)}' for name, table in tables.items())
        say("{" + ", ".join(rows) + "}", flush=True)
    else:
        say(_shown_rows(tables[args.table or "totals"], args.format), flush=True)


def _flows(args: argparse.Namespace) -> None:
    tables = frames(args.file, args.connections)
    flows = tables["capture_flows"]
    if args.out is not None:
        _keep({name: in_polars(tables[name]) for name in KEPT}, args.out)
    # A table and CSV do without polars, which takes as long to load as a million packets to read.
    if args.format == "table":
        say(_connections(flows), flush=True)
    elif args.format == "csv":
        _say_csv(flows)
    else:
        say(_shown_rows(in_polars(flows), args.format), flush=True)
    # A capture of headers alone still has everything that the table shows.
    faults = tables["capture_faults"]
    for fault in faults.dicts(0, len(faults)):
        if fault["fault"] == "snap length":
            continue
        said = f"note: {fault['fault']}: {fault['seen']}; not known: {fault['unknown']}"
        say(printable(said), file=sys.stderr)


def _say_csv(rows: _core.Frame) -> None:
    """Prints a long table piece by piece: as one text, it takes more memory than as a table."""
    say(",".join(rows.columns))
    for place in range(rows.parts):
        part = rows.part(place)
        for first in range(0, len(part), PIECE):
            # Addresses, numbers and our own words: nothing that acts on a terminal.
            sys.stdout.write(part.csv(first, PIECE))
    sys.stdout.flush()


def _shown_rows(rows: pl.DataFrame, format_: str) -> str:
    # The tables of results take time to load.
    from tcplab.cli import _display  # noqa: PLC0415

    return _display.shown_rows(rows, format_)


def _text_table(heads: list[Column], cells: list[list[str]]) -> str:
    from tcplab._text import plain_tables  # noqa: PLC0415 (CSV does without)

    return plain_tables.table(heads, cells)


def _packets(args: argparse.Namespace) -> None:
    if args.begin is not None and args.end is not None and args.begin >= args.end:
        raise _core.ConfigError(f"--from: {args.begin:g} s is not before {args.end:g} s")
    if args.file == STDIN and args.connection is None:
        raise _core.ConfigError("--connection: is needed, since standard input is read once")
    if args.chart is not None:
        _arguments.ensure_writable(args.chart, "the chart")
    number = args.connection
    if number is None:
        number = _largest(lab.capture.read(args.file, connections=args.connections)[1])
        say(f"note: connection {number}, which has most data", file=sys.stderr)
    rows = lab.capture.packets(args.file, number, connections=args.connections)
    if args.chart is not None:
        _drawn(rows, args)
        return
    import polars as pl  # noqa: PLC0415

    low = float("-inf") if args.begin is None else args.begin
    high = float("inf") if args.end is None else args.end
    rows = rows.filter(pl.col("time_s").is_between(low, high))
    if args.format != "table":
        say(_shown_rows(rows, args.format), flush=True)
        return
    some = rows.head(MOST_ROWS)
    heads = [Column(name, LEFT if some[name].dtype == pl.String else ">") for name in PACKETS_SHOWN]
    cells = [
        ["-" if row[name] is None else _cell(row[name]) for name in PACKETS_SHOWN]
        for row in some.iter_rows(named=True)
    ]
    text = _text_table(heads, cells)
    if (more := len(rows) - len(some)) > 0:
        text += (
            f"\n... and {more:,} more packets; `--from` and `--to` choose, `--format csv` has all"
        )
    say(text, flush=True)


def _cell(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _largest(flows: pl.DataFrame) -> int:
    if flows.is_empty():
        raise _core.ConfigError("--connection: there is no TCP connection in the capture")
    sums = flows["client_bytes"] + flows["server_bytes"]
    return int(flows["connection"][sums.arg_max() or 0])


def _drawn(rows: pl.DataFrame, args: argparse.Namespace) -> None:
    # Charts take time to load.
    from tcplab import plot  # noqa: PLC0415
    from tcplab.cli import _chart  # noqa: PLC0415

    try:
        chart = plot.segments(rows, sender=args.sender, from_s=args.begin, to_s=args.end)
    except ValueError as error:
        raise _core.ConfigError(str(error)) from None
    _chart.save(lambda: chart, args.chart)
    say(f"chart   {args.chart}", file=sys.stderr)


def _report(args: argparse.Namespace) -> None:
    page = args.output
    if page is None:
        page = Path("capture.html") if args.file == STDIN else args.file.with_suffix(".html")
    _arguments.ensure_writable(page, "the page")
    lab.capture.report(args.file, page, connections=args.connections)
    say(f"report  {page}", file=sys.stderr)


def _keep(tables: Mapping[str, pl.DataFrame], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")


def _about(about: Info) -> str:
    """All contents of a capture, as printed."""
    (row,) = about.totals.iter_rows(named=True)
    parts = [
        f"{printable(row['file'])}: {row['packets']:,} packets, {row['bytes']:,} bytes in "
        f"{row['duration_s']:.3f} s; {row['connections']:,} TCP connections"
    ]
    if row["packets_per_s"] is not None:
        parts.append(
            f"{row['packets_per_s']:,.3f} packets/s, "
            f"{row['packet_mean_bytes']:.3f} bytes a packet, {row['rate_mbit_s']:.3f} Mbit/s"
        )
    head = "\n".join(parts)
    lengths = _shares(about.lengths.filter(about.lengths["packets"] > 0), ["length"])
    protocols = _shares(about.protocols, ["network", "transport"])
    said = [
        f"{fault['fault']}: {fault['seen']}\n  not known: {fault['unknown']}"
        for fault in about.faults.iter_rows(named=True)
    ]
    faults = "\n".join(map(printable_lines, said)) or "nothing is wrong with the capture"
    return "\n\n".join([head, lengths, protocols, faults])


def printable_lines(text: str) -> str:
    """Text of several lines, with unprintable characters escaped."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _shares(rows: pl.DataFrame, keys: list[str]) -> str:
    heads = [Column(key, LEFT) for key in keys]
    heads += [Column("packets"), Column("share", unit="%"), Column("bytes")]
    cells = [
        [
            *(row[key] or "-" for key in keys),
            f"{row['packets']:,}",
            number(row["percent"], 2),
            f"{row['bytes']:,}",
        ]
        for row in rows.iter_rows(named=True)
    ]
    return _text_table(heads, cells)


HEADS = [
    Column("sender", LEFT),
    Column("receiver", LEFT),
    Column("data", unit="kB"),
    Column("time", unit="s"),
    Column("rate", unit="Mbit/s"),
    Column("resent"),
    Column("fast"),
    Column("probe"),
    Column("timeout"),
    Column("RTT min", unit="ms"),
    Column("RTT", unit="ms"),
    Column("most of its time", LEFT),
    Column("end", LEFT),
]

LEFT_OUT = ("end", "RTT min", "time", "receiver", "data")
"""Columns that are dropped where there is no room, in this order."""


def _connections(flows: _core.Frame) -> str:
    rows = [_cells(row) for row in flows.dicts(0, MOST_ROWS)]
    heads, hidden = HEADS, []
    text = _table(heads, rows)
    for name in LEFT_OUT:
        if not _is_wide(text):
            break
        hidden.append(name)
        heads = [head for head in heads if head.name != name]
        text = _table(heads, rows)
    if hidden:
        text += f"\nNo room for {', '.join(hidden)}: a wider terminal or a pipe has all columns"
    if (more := len(flows) - len(rows)) > 0:
        text += f"\n... and {more} more connections; `--format csv` has them all"
    return text


def _table(heads: list[Column], rows: list[dict[str, str]]) -> str:
    return _text_table(heads, [[row[head.name] for head in heads] for row in rows])


def _is_wide(text: str) -> bool:
    from tcplab._text import plain_tables  # noqa: PLC0415

    room = plain_tables.room()
    return room is not None and max(map(plain_tables.cell_width, text.split("\n"))) > room


def _cells(row: Mapping[str, object]) -> dict[str, str]:
    """The printed cells of a connection, about the side that sent more."""
    ends = {side: f"{row[side]}:{row[f'{side}_port']}" for side in ("client", "server")}
    sender = str(row["sender"])
    after = _count(row[f"{sender}_retransmitted_after_timeout"])
    timeouts = str(_count(row[f"{sender}_retransmitted_timeout"]))
    return {
        "sender": ends[sender],
        "receiver": ends["server" if sender == "client" else "client"],
        "data": _short(_count(row[f"{sender}_bytes"]) / 1000),
        "time": _short(row["duration_s"]),
        "rate": _short(row["goodput_mbit_s"]),
        "resent": str(row[f"{sender}_retransmitted_segments"]),
        "fast": str(row[f"{sender}_retransmitted_fast"]),
        "probe": str(row[f"{sender}_retransmitted_probe"]),
        "timeout": f"{timeouts}+{after}" if after else timeouts,
        "RTT min": _short(row[f"{sender}_rtt_min_ms"]),
        "RTT": _short(row[f"{sender}_rtt_mean_ms"]),
        "most of its time": _reason(row),
        "end": str(row["closed"]),
    }


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _short(value: object) -> str:
    if not isinstance(value, int | float):
        return "-"
    return number(value, decimals(value, 3))


def _reason(row: Mapping[str, object]) -> str:
    """The main reason for which a sender waited."""
    shares = {said: row[f"time_{name}_percent"] for name, (said, _) in WAITS.items()}
    known = {said: share for said, share in shares.items() if isinstance(share, float)}
    if not known:
        return "-"
    most = max(known, key=lambda said: known[said])
    return f"{most} {known[most]:.0f} %"


MISFIT = 1
"""The exit status if a twin does not behave like its capture."""


def _add_twin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="pcap or pcapng, also compressed")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="file for the experiment (.toml), which states how well it fits",
    )
    parser.add_argument(
        "--connection",
        type=int,
        action="append",
        metavar="NUMBER",
        help="a connection, as numbered by `capture flows --format csv`; may be given several "
        "times (default: all between the two hosts that exchange most data)",
    )
    parser.add_argument(
        "--cc",
        metavar="NAME",
        help="the congestion control of the flows (default: the one guessed from packets, cubic, "
        "bbr or newreno, the first that fits)",
    )
    parser.add_argument(
        "--rtt", metavar="TIME", help="the round-trip time without queues, if known: 40ms"
    )
    parser.add_argument("--rate", metavar="RATE", help="the rate of the bottleneck, if known: 100M")
    parser.add_argument(
        "--queue",
        type=int,
        metavar="PACKETS",
        help="capacity of the bottleneck's queue in packets, if known",
    )
    parser.add_argument(
        "--on",
        choices=["sim", "linux"],
        default="sim",
        metavar="BACKEND",
        help="the backend that runs the twin: sim (the default) or linux",
    )
    parser.add_argument(
        "--format",
        choices=["table", "json"],
        default="table",
        metavar="FORMAT",
        help="output format: table (the default) or json",
    )
    parser.set_defaults(act=_twin)


def _twin(args: argparse.Namespace) -> int:
    if args.output is not None:
        if args.output.suffix != ".toml":
            raise _core.ConfigError(f"{args.output}: an experiment is written as .toml")
        _arguments.ensure_writable(args.output, "the experiment")
    made = lab.capture.twin(
        args.file,
        cc=args.cc,
        backend=args.on,
        connections=args.connection,
        rtt=args.rtt,
        rate=args.rate,
        queue=args.queue,
    )
    if args.output is not None:
        made.write(args.output)
    if args.format == "json":
        from tcplab._results import json_output  # noqa: PLC0415

        facts = {"fits": made.fits, "cc": made.congestion_control, "parts_at_s": made.parts_at_s}
        told = (
            f'"path": {json_output.rows(made.path)}, "measures": {json_output.rows(made.measures)}'
        )
        said = json.dumps({**facts, "notes": made.notes})
        say(f"{said[:-1]}, {told}}}", flush=True)
    else:
        say(f"{_path(made.path)}\n\n{_measures(made)}", flush=True)
    for note in made.notes:
        say(printable(f"note: {note}"), file=sys.stderr)
    for misfit in made.misfits:
        say(printable(f"does not fit: {misfit}"), file=sys.stderr)
    if args.output is not None:
        say(f"twin    {args.output}", file=sys.stderr)
    return 0 if made.fits else MISFIT


def _path(path: pl.DataFrame) -> str:
    heads = [Column("path", LEFT), Column("value"), Column("at least"), Column("at most")]
    heads += [Column("unit", LEFT), Column("told by", LEFT)]
    cells = [
        [
            row["quantity"],
            *(_rounded(row[key]) for key in ("value", "low", "high")),
            row["unit"],
            row["how"],
        ]
        for row in path.iter_rows(named=True)
    ]
    return _text_table(heads, cells)


def _measures(made: Twin) -> str:
    heads = [Column(made.congestion_control, LEFT), Column("capture"), Column("twin")]
    heads += [Column("of its runs"), Column("unit", LEFT), Column("fits", LEFT)]
    cells = []
    for row in made.measures.iter_rows(named=True):
        ends = [_rounded(row["low"]), _rounded(row["high"])]
        runs = "-" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        values = [_rounded(row["capture"]), _rounded(row["twin"]), runs]
        cells.append([row["measure"], *values, row["unit"], "yes" if row["fits"] else "NO"])
    parts = "never" if made.parts_at_s is None else f"first at {made.parts_at_s:.3g} s"
    verdict = "the twin behaves like the capture" if made.fits else "the twin is not vouched for"
    text = _text_table(heads, cells)
    return f"{text}\n\n{verdict}; what was delivered differs by more than 10 %: {parts}"


def _rounded(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


TOLD = ("totals", "classes", "fits", "peers", "sessions", "turns")
"""The tables of `characterise`."""


def _add_characterise(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help=f"{FILE_HELP}; or a conn.log of Zeek, flow records as text, a HAR file",
    )
    parser.add_argument(
        "--classes",
        choices=["fixed", "found"],
        default="fixed",
        metavar="HOW",
        help="size classes: fixed (the default: up to 10 kB, 100 kB, 200 kB, ...) or found from "
        "the data",
    )
    parser.add_argument(
        "--table",
        choices=TOLD,
        metavar="TABLE",
        help=f"print only this table: {', '.join(TOLD)} (csv and markdown: totals by default)",
    )
    _add_format(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="file for an experiment with traffic like this: .toml",
    )
    _add_connections(parser)
    parser.set_defaults(act=_characterise)


def _characterise(args: argparse.Namespace) -> None:
    # SciPy takes time to load.
    from tcplab._capture import presentation  # noqa: PLC0415

    if args.output is not None:
        if args.output.suffix != ".toml":
            raise _core.ConfigError(f"{args.output}: a model is written as .toml")
        _arguments.ensure_writable(args.output, "the model")
    found = lab.capture.characterise(args.files, classes=args.classes, connections=args.connections)
    if args.output is not None:
        presentation.write(found, args.output)
    if args.table is None and args.format == "table":
        say(presentation.screen(found), flush=True)
    elif args.table is None and args.format == "json":
        say(presentation.document(found), flush=True)
    else:
        say(
            _shown_rows(getattr(found, args.table or "totals"), args.format),
            flush=True,
        )
    for note in found.notes:
        say(printable(f"note: {note}"), file=sys.stderr)
    if args.output is not None:
        say(f"model   {args.output}", file=sys.stderr)


def _congestion_control(args: argparse.Namespace) -> None:
    rows = lab.capture.congestion_control(args.file, connections=args.connections)
    if args.format != "table":
        say(_shown_rows(rows, args.format), flush=True)
        return
    some = rows.head(MOST_ROWS)
    heads = [
        Column("sender", LEFT),
        Column("receiver", LEFT),
        Column("guess", LEFT),
        Column("certainty"),
    ]
    cells = [
        [row["sender"], row["receiver"], row["guess"], number(row["certainty"], 2)]
        for row in some.iter_rows(named=True)
    ]
    parts = [_text_table(heads, cells)]
    parts += [f"{row['sender']}: {row['evidence']}" for row in some.iter_rows(named=True)]
    if (more := len(rows) - len(some)) > 0:
        parts.append(f"... and {more} more connections; `--format csv` has them all")
    say("\n".join(parts), flush=True)
