"""The report of a capture: its contents, and the behaviour of its connections."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from tcplab import capture
from tcplab._capture import guess
from tcplab._core import printable
from tcplab._report._checks import Remark
from tcplab._report._html import drawn_and_saved, grid, marked, page, preformatted, remark, spoken
from tcplab._report._phrases import Piece, Sentence, name, sentence
from tcplab._report._table import Cell, Table
from tcplab._text.cells import LEFT, Column, decimals, number
from tcplab._text.english import counted
from tcplab.capture import WAITS
from tcplab.plot._export import still
from tcplab.plot._segments import segments

MOST_DRAWN = 8
"""The number of connections with a chart: those with the most data."""

MOST_BARS = 40
"""The number of connections with a bar of their time: those that took longest."""

HUES = {
    "handshake": "c5",
    "close": "c6",
    "timeout": "c3",
    "recovery": "c1",
    "peer_window": "c4",
    "window": "c0",
    "application": "line",
}
"""The colour of each reason for waiting, as a variable of the page."""

CAUSES = {
    "fast": "because ACKs asked for it",
    "probe": "as tail loss probes",
    "timeout": "by the retransmission timer",
    "after_timeout": "after it",
}


def html(path: str | PathLike[str], connections: int) -> str:
    """The page."""
    called = printable(str(path)) if str(path) != "-" else "standard input"
    with guess.seekable(Path(path)) as file:
        about, flows = capture.read(file, connections=connections)
        flows = flows.with_columns(_sent("bytes").alias("sent_bytes"))
        largest = flows.filter(pl.col("sent_bytes") > 0).sort("sent_bytes", descending=True)
        chosen = largest["connection"].head(MOST_DRAWN).to_list()
        packets = capture.packets(file, chosen, connections=connections)
    (totals,) = about.totals.iter_rows(named=True)
    charts = {str(one): [_spec(packets, one)] for one in chosen}
    sections = [
        ("answer", "In short", _short(totals, flows)),
        ("warnings", "What is wrong with it", _faults(about.faults)),
        ("time", "What the time went by", _times(flows)),
        ("segments", "One connection", _connections(flows, chosen, packets)),
        ("table", "All connections", _all(flows)),
        ("packets", "Packets", _packets(about)),
        ("definitions", "Definitions", _definitions()),
        ("repeat", "Look closer", _closer(called)),
    ]
    said = (
        f"{counted(totals['packets'], 'packet')} in {totals['duration_s']:.3f} s, "
        f"{counted(totals['connections'], 'TCP connection')}"
    )
    files = {"connections.csv": flows.drop("sent_bytes").write_csv()}
    return page(f"Capture {Path(called).name}", said, sections, drawn_and_saved(charts, files))


def _sent(column: str) -> pl.Expr:
    """A column for the side that sent more."""
    is_client = pl.col("sender") == "client"
    return pl.when(is_client).then(pl.col(f"client_{column}")).otherwise(pl.col(f"server_{column}"))


def _spec(packets: pl.DataFrame, connection: int) -> dict[str, Any]:
    """The chart of a connection, with the width and the colours of the page."""
    spec = still(segments(packets.filter(pl.col("connection") == connection)))
    for key in ("config", "title"):
        spec.pop(key, None)
    return spec | {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}


def _ends(row: dict[str, Any]) -> tuple[str, str]:
    """The sender and the receiver of a connection."""
    ends = {side: _end(row[side], row[f"{side}_port"]) for side in ("client", "server")}
    other = "server" if row["sender"] == "client" else "client"
    return ends[row["sender"]], ends[other]


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _label(row: dict[str, Any]) -> str:
    sender, receiver = _ends(row)
    return f"{row['connection']}: {sender} to {receiver}"


def _value(text: str) -> Piece:
    return Piece(text, "value")


def _short(totals: dict[str, Any], flows: pl.DataFrame) -> str:
    """The summary at the top of the page."""
    said = [f'<h2 class="tone">In short</h2><p class="headline">{spoken(_headline(flows))}</p>']
    rate = totals["rate_mbit_s"]
    if rate is not None:
        mean = totals["packet_mean_bytes"]
        about = sentence(
            f"{totals['bytes']:,} bytes in {counted(totals['packets'], 'packet')} of "
            f"{mean:.0f} bytes on average: {_digits(rate)} Mbit/s."
        )
        said.append(f'<p class="condition">{spoken(about)}</p>')
    said += [f"<p>{spoken(one)}</p>" for one in _more(flows)]
    return "".join(said)


def _headline(flows: pl.DataFrame) -> Sentence:
    sent = int(flows["sent_bytes"].sum())
    if not sent:
        return sentence(f"{counted(len(flows), 'TCP connection')}, none with data.")
    row = flows.row(int(flows["sent_bytes"].arg_max() or 0), named=True)
    sender, receiver = _ends(row)
    share = row["sent_bytes"] / sent
    whole = "All data" if share == 1 else f"{share:.0%} of all data"
    rate = row["goodput_mbit_s"]
    at: list[str | Piece] = [" at ", _value(f"{_digits(rate)} Mbit/s")] if rate is not None else []
    reason = _reason(row)
    why: list[str | Piece] = (
        []
        if reason is None
        else [f"; {reason[1]:.0f} % of its time went by ", _value(WAITS[reason[0]][1])]
    )
    return sentence(f"{whole} went from ", name(sender), " to ", name(receiver), *at, *why, ".")


def _more(flows: pl.DataFrame) -> Iterator[Sentence]:
    """Retransmissions and their causes, and connections that did not end well."""
    columns = ["segments", "retransmitted_segments", "retransmitted_spurious"]
    columns += [f"retransmitted_{cause}" for cause in CAUSES]
    sums = {
        one: int(flows[f"client_{one}"].sum()) + int(flows[f"server_{one}"].sum())
        for one in columns
    }
    again, of = sums["retransmitted_segments"], sums["segments"]
    if of:
        parts = [
            f"{sums[f'retransmitted_{cause}']:,} {words}"
            for cause, words in CAUSES.items()
            if sums[f"retransmitted_{cause}"]
        ]
        why = f", {', '.join(parts)}" if parts else ""
        spurious = sums["retransmitted_spurious"]
        idle = f"; {spurious:,} of them were not needed" if spurious else ""
        share = f" ({_digits(100 * again / of)} %)" if again else ""
        yield sentence(
            f"Of {counted(of, 'segment')}, ",
            _value(f"{again:,}{share}"),
            f" {'was' if again == 1 else 'were'} sent again{why}{idle}.",
        )
    bad = flows.filter(
        pl.col("closed").is_in(["refused", "unanswered"])
        | pl.col("closed").str.starts_with("reset")
    )
    if len(bad):
        kinds = bad["closed"].value_counts(sort=True, name="count").sort("closed")
        words = ", ".join(f"{count:,} {kind}" for kind, count in kinds.iter_rows())
        yield sentence(f"Connections that did not end as they should: {words}.")


def _digits(value: float) -> str:
    return number(value, decimals(value, 3))


def _reason(row: dict[str, Any]) -> tuple[str, float] | None:
    """The main reason for which a sender waited, and its share of the time."""
    shares = {key: row[f"time_{key}_percent"] for key in WAITS}
    known = {key: share for key, share in shares.items() if share is not None}
    if not known:
        return None
    most = max(known, key=lambda key: known[key])
    return most, known[most]


def _faults(faults: pl.DataFrame) -> str:
    parts = ["<h2>What is wrong with it</h2>"]
    for row in faults.iter_rows(named=True):
        text = f"{printable(row['seen'])}. Not known: {printable(row['unknown'])}."
        # A capture of headers alone still has everything that the page shows.
        if row["fault"] == "snap length":
            parts.append(f'<p class="calm">{escape(text[0].upper() + text[1:])}</p>')
        else:
            parts.append(remark(Remark("care", row["fault"].capitalize(), text)))
    if len(parts) == 1:
        parts.append('<p class="calm">Nothing.</p>')
    return "".join(parts)


def _times(flows: pl.DataFrame) -> str:
    """A bar for each connection, divided by the reasons for which its sender waited."""
    known = flows.filter(pl.col("duration_s") > 0, pl.col("sent_bytes") > 0)
    if known.is_empty():
        return ""
    some = known.sort("duration_s", descending=True, maintain_order=True).head(MOST_BARS)
    key = "".join(
        f'<span class="key"><i style="background: var(--{HUES[one]})"></i>{escape(words)}</span>'
        for one, (words, _) in WAITS.items()
    )
    heads = [
        Column("connection", LEFT),
        Column("time", unit="s"),
        *(Column(words, unit="%") for words, _ in WAITS.values()),
    ]
    bars, rows = [], []
    for row in some.iter_rows(named=True):
        shares = {one: row[f"time_{one}_percent"] or 0.0 for one in WAITS}
        pieces = "".join(
            f'<i style="width: {share:.2f}%; background: var(--{HUES[one]})" '
            f'title="{escape(WAITS[one][0])} {share:.1f} %"></i>'
            for one, share in shares.items()
            if share > 0
        )
        label = escape(printable(_label(row)))
        bars.append(
            f'<div class="bar"><span>{label}</span><div aria-hidden="true">{pieces}</div></div>'
        )
        cells = [Cell(printable(_label(row))), Cell(_digits(row["duration_s"]), row["duration_s"])]
        rows.append([*cells, *(Cell(number(share, 1), share) for share in shares.values())])
    left = len(known) - len(some)
    more = (
        f'<p class="note">The {len(some)} that took longest; {left:,} more are in the table of all '
        "connections.</p>"
        if left
        else ""
    )
    numbers = grid(Table(heads, rows), "What the time went by: numbers", is_sortable=True)
    return (
        f'<h2>What the time went by</h2><p class="note">The time of each connection, by what its '
        f'sender waited for.</p><p class="keys">{key}</p><div class="bars">{"".join(bars)}</div>'
        f"{more}<details><summary>The numbers of these bars</summary>{numbers}</details>"
    )


def _connections(flows: pl.DataFrame, chosen: Sequence[int], packets: pl.DataFrame) -> str:
    """The segments of each of the largest connections."""
    if not chosen:
        return ""
    rows = {row["connection"]: row for row in flows.iter_rows(named=True)}
    choices = "".join(
        f'<label class="choice"><input type="radio" name="metric" value="{one}"'
        f"{' checked' if place == 0 else ''}><span>{escape(printable(_label(rows[one])))}</span>"
        "</label>"
        for place, one in enumerate(chosen)
    )
    parts = [
        '<h2>One connection</h2><p class="note">Each segment from its first byte to its last, when '
        "it was captured. The wheel looks closer, down to one packet; dragging moves.</p>"
    ]
    if len(chosen) > 1:
        parts.append(f"<fieldset><legend>Connection</legend>{choices}</fieldset>")
    for place, one in enumerate(chosen):
        label = escape(printable(_label(rows[one])))
        described = [
            *_facts(rows[one]),
            ("Congestion control, a guess", _guess(packets, rows[one])),
        ]
        facts = "".join(
            f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in described
        )
        parts.append(
            f'<div class="comparison" data-metric="{one}"{" hidden" if place else ""}>'
            f'<h3>{label}</h3><figure class="chart"><div class="canvas" role="img" '
            f'aria-label="Segments of connection {label}; its numbers follow"></div></figure>'
            f"<dl>{facts}</dl></div>"
        )
    return "".join(parts)


def _facts(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    side = row["sender"]
    other = "server" if side == "client" else "client"

    def of(column: str) -> Any:
        return row[f"{side}_{column}"]

    yield "Data", f"{of('bytes'):,} bytes in {counted(of('segments'), 'segment')}"
    again = [
        f"{of(f'retransmitted_{cause}'):,} {words}"
        for cause, words in CAUSES.items()
        if of(f"retransmitted_{cause}")
    ]
    yield "Sent again", ", ".join(again) or "nothing"
    if of("rtt_mean_ms") is not None:
        least, mean, most = (of(f"rtt_{one}_ms") for one in ("min", "mean", "max"))
        yield (
            "Round trips from here",
            f"{_digits(least)} to {_digits(most)} ms, {_digits(mean)} ms on average",
        )
    reason = _reason(row)
    if reason is not None:
        yield "Most of its time", f"{reason[1]:.0f} % {WAITS[reason[0]][1]}"
    yield "Largest window of the receiver", f"{row[f'{other}_window_max_bytes']:,} bytes"
    yield "Options", row["options"] or "none seen"
    yield "End", row["closed"]


def _guess(packets: pl.DataFrame, row: dict[str, Any]) -> str:
    if reason := guess.refusal(row):
        return f"{guess.UNKNOWN}: {reason}"
    own = packets.filter(pl.col("connection") == row["connection"])
    answer, certainty, evidence = guess.verdict(own, row)
    sure = "" if certainty is None else f", certainty {certainty:.2f}"
    return f"{answer}{sure}: {evidence}"


def _all(flows: pl.DataFrame) -> str:
    heads = [
        Column("", LEFT),
        Column("sender", LEFT),
        Column("receiver", LEFT),
        Column("start", unit="s"),
        Column("time", unit="s"),
        Column("data", unit="kB"),
        Column("rate", unit="Mbit/s"),
        Column("resent"),
        Column("RTT min", unit="ms"),
        Column("RTT", unit="ms"),
        Column("most of its time", LEFT),
        Column("end", LEFT),
    ]
    rows = []
    for row in flows.sort("sent_bytes", descending=True, maintain_order=True).iter_rows(named=True):
        side, (sender, receiver) = row["sender"], _ends(row)
        reason = _reason(row)
        values = [
            row["start_s"],
            row["duration_s"],
            row["sent_bytes"] / 1000,
            row["goodput_mbit_s"],
            row[f"{side}_retransmitted_segments"],
            row[f"{side}_rtt_min_ms"],
            row[f"{side}_rtt_mean_ms"],
        ]
        texts = [
            str(value) if isinstance(value, int) else "-" if value is None else _digits(value)
            for value in values
        ]
        why = "-" if reason is None else f"{WAITS[reason[0]][0]} {reason[1]:.0f} %"
        rows.append(
            [
                Cell(str(row["connection"]), float(row["connection"])),
                Cell(printable(sender)),
                Cell(printable(receiver)),
                *(
                    Cell(text, None if value is None else float(value))
                    for text, value in zip(texts, values, strict=True)
                ),
                Cell(why),
                Cell(row["closed"]),
            ]
        )
    return (
        '<h2>All connections</h2><p class="note">Seen from the side that sent more data, the '
        "largest first. A press on a head sorts; the file has about a hundred columns.</p>"
        f"{grid(Table(heads, rows), 'Connections', is_sortable=True)}"
        '<p><button type="button" data-csv="connections.csv" hidden>Save as CSV</button></p>'
    )


def _packets(about: capture.Info) -> str:
    def shares(frame: pl.DataFrame, keys: Sequence[str]) -> Table:
        heads = [Column(key, LEFT) for key in keys]
        heads += [Column("packets"), Column("share", unit="%"), Column("bytes")]
        rows = [
            [
                *(Cell(row[key] or "-") for key in keys),
                Cell(f"{row['packets']:,}", float(row["packets"])),
                Cell(number(row["percent"], 2), row["percent"]),
                Cell(f"{row['bytes']:,}", float(row["bytes"])),
            ]
            for row in frame.iter_rows(named=True)
        ]
        return Table(heads, rows)

    lengths = shares(about.lengths.filter(pl.col("packets") > 0), ["length"])
    protocols = shares(about.protocols, ["network", "transport"])
    return (
        "<h2>Packets</h2><h3>By length</h3>"
        f"{grid(lengths, 'Packets by length')}"
        f"<h3>By protocol</h3>{grid(protocols, 'Packets by protocol')}"
    )


def _definitions() -> str:
    known = {
        column: meaning
        for table, column, meaning in capture.columns().iter_rows()
        if table == "capture_flows"
    }
    shown = [
        *(f"time_{one}_percent" for one in WAITS),
        *(f"client_retransmitted_{cause}" for cause in CAUSES),
        "client_rtt_samples",
        "closed",
    ]
    rows = "".join(
        f"<dt><code>{escape(column)}</code></dt><dd>{marked(known[column])}</dd>"
        for column in shown
    )
    return f"<h2>Definitions</h2><dl>{rows}</dl>"


def _closer(called: str) -> str:
    file = shlex.quote(called) if called != "standard input" else "-"
    commands = [
        ("All columns of all connections", f"tcplab capture flows {file} --format csv"),
        (
            "A second of a connection, drawn",
            f"tcplab capture packets {file} --connection 0 --from 1 --to 2 --chart second.svg",
        ),
        ("Its packets, one by one", f"tcplab capture packets {file} --connection 0 --format csv"),
    ]
    parts = [
        f"<h3>{escape(what)}</h3>{preformatted(command, what, 'command')}"
        for what, command in commands
    ]
    return f"<h2>Look closer</h2>{''.join(parts)}"
