"""Charts of the segments of a captured connection: transmissions, retransmissions by cause, and
ACKs.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from tcplab._core import printable
from tcplab._statistics.thinning import thin
from tcplab.plot._style import COLOURS, QUIET, WIDTH, data, layered, styled, titled

MOST_SEGMENTS = 4000
"""The most segments drawn of a kind. Of more, the conspicuous ones are drawn."""

KINDS = {
    "data": "#8A8F98",
    "fast": COLOURS[1],
    "probe": COLOURS[4],
    "timeout": COLOURS[3],
    "after timeout": "#8A6100",
    "out of order": COLOURS[5],
    "keepalive": QUIET,
    "window probe": QUIET,
}
"""The kinds of segments, as in the table of packets, each with its colour."""

SACKED, ACKNOWLEDGED, WINDOW = "SACKed", "acknowledged", "receiver's window"

RARE = tuple(kind for kind in KINDS if kind != "data")
"""Kinds drawn with a mark that is visible however small the segment is."""


def segments(
    packets: pl.DataFrame,
    *,
    sender: str | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
) -> alt.LayerChart:
    """Draws the segments of a connection over time, each from its first byte to its last: first
    transmissions and retransmissions, by cause; the acknowledged data, the data held out of order
    by the receiver (SACK), and the end of the receiver's window.

    Args:
        packets: The packets of one connection, as `lab.capture.packets` returns them.
        sender: The side whose segments are drawn: `client` or `server`; by default the side that
            sent more data.
        from_s: The start, in seconds after the first packet of the capture; by default the start of
            the connection.
        to_s: The end. Within a short part every packet is drawn.

    Raises:
        ValueError: The packets are of no connection or of several, the side does not exist, or
            there is nothing between these times.
    """
    numbers = packets["connection"].unique().to_list()
    if len(numbers) != 1:
        raise ValueError(f"packets: of {len(numbers)} connections; a chart is of one")
    sender = _chosen(packets, sender)
    times = packets["time_s"]
    whole = (float(times.min() or 0.0), float(times.max() or 0.0))  # type: ignore[arg-type]
    low = whole[0] if from_s is None else from_s
    high = whole[1] if to_s is None else to_s
    if low >= high and (from_s, to_s) != (None, None):
        raise ValueError(f"from_s: {low:g} s is not before {high:g} s")
    shown = packets.filter(pl.col("time_s").is_between(low, high))
    mine = pl.col("sender") == sender
    sent = shown.filter(mine, pl.col("payload_bytes") > 0, pl.col("kind").is_in([*KINDS]))
    # The last ACK before the first shown segment sets the lines at the left.
    back = packets.filter(~mine, pl.col("ack").is_not_null(), pl.col("time_s") <= high)
    if sent.is_empty() and back.filter(pl.col("time_s") >= low).is_empty():
        raise ValueError(f"no segment of the {sender} is between {low:g} s and {high:g} s")
    marks = sent.select(
        "time_s",
        "kind",
        first=pl.col("seq").cast(pl.Int64),
        last=(pl.col("seq") + pl.col("payload_bytes")).cast(pl.Int64),
    ).drop_nulls()
    lines = _lines(back, low)
    sacked = _sacked(back.filter(pl.col("time_s") >= low))
    return _drawn(
        pl.concat([marks, sacked]), lines, (low, high), f"connection {numbers[0]}", sender
    )


def _chosen(packets: pl.DataFrame, sender: str | None) -> str:
    sides = ["client", "server"]
    if sender is not None:
        if sender not in sides:
            raise ValueError(f"sender: {sender!r} is not client or server")
        return sender
    bytes_ = packets.group_by("sender").agg(pl.col("payload_bytes").sum())
    sums = dict(bytes_.iter_rows())
    return max(sides, key=lambda side: sums.get(side, 0))


def _lines(back: pl.DataFrame, low: float) -> pl.DataFrame:
    """`time_s`, `kind`, `bytes`: the acknowledgment number and the end of the receiver's window.
    Both lines begin with the values known at the left.
    """
    reached = back.select(
        pl.col("time_s").clip(low),
        (pl.col("ack").cast(pl.Int64).cum_max()).alias(ACKNOWLEDGED),
        (pl.col("ack") + pl.col("window_bytes")).cast(pl.Int64).cum_max().alias(WINDOW),
    )
    before = len(reached.filter(pl.col("time_s") <= low))
    long = reached.slice(max(before - 1, 0)).unpivot(
        index="time_s", variable_name="kind", value_name="bytes"
    )
    return long.select("time_s", "kind", "bytes")


def _sacked(back: pl.DataFrame) -> pl.DataFrame:
    """The blocks that each ACK reports as received out of order, without DSACKs."""
    blocks = back.filter(pl.col("sack").is_not_null()).with_columns(pl.col("sack").str.split(" "))
    ends = pl.col("sack").str.split("-").list
    said = blocks.explode("sack").select(
        "time_s",
        pl.lit(SACKED).alias("kind"),
        pl.col("ack").cast(pl.Int64),
        first=ends.get(0).cast(pl.Int64),
        last=ends.get(1).cast(pl.Int64),
    )
    return said.filter(pl.col("first") >= pl.col("ack")).drop("ack")


def _drawn(
    marks: pl.DataFrame, lines: pl.DataFrame, span: tuple[float, float], what: str, sender: str
) -> alt.LayerChart:
    few = thin(marks, by="kind", y="last", most=MOST_SEGMENTS)
    notes = [f"data of the {sender}"]
    if len(few) < len(marks):
        notes.append(f"{len(few):,} of {len(marks):,} marks; from_s and to_s draw a part with all")
    colours = KINDS | {SACKED: COLOURS[2], ACKNOWLEDGED: COLOURS[0], WINDOW: "#B9BDC4"}
    there = {*few["kind"], *lines["kind"]}
    names = [name for name in colours if name in there]
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
        legend=alt.Legend(title=None, orient="top", symbolType="square"),
    )
    x = alt.X(
        "time_s:Q",
        title="time (s)",
        axis=alt.Axis(tickCount=8, format=".6~g"),
        scale=alt.Scale(domain=[*span], nice=False) if span[0] < span[1] else alt.Undefined,
    )
    # The window may reach far beyond the data that is sent.
    ends = [*few["first"], *few["last"], *lines.filter(pl.col("kind") == ACKNOWLEDGED)["bytes"]]
    low, high = min(ends), max(ends)
    domain = [low / 1000, (high + max(high - low, 1) / 50) / 1000]
    scale, title = alt.Scale(domain=domain, nice=False), "sequence number (kB)"
    layers = []
    if len(lines):
        drawn = thin(lines, by="kind", y="bytes", most=MOST_SEGMENTS)
        kilobytes = (pl.col("bytes") / 1000).alias("kB")
        layers.append(
            alt.Chart(data(drawn.with_columns(kilobytes)))
            .mark_line(strokeWidth=1.3, interpolate="step-after", clip=True)
            .encode(x, alt.Y("kB:Q", title=title, scale=scale), colour)
        )
    order = pl.col("kind").replace_strict({name: n for n, name in enumerate(colours)})
    rows = few.sort(order, maintain_order=True).with_columns(
        (pl.col("first") / 1000).alias("from kB"), (pl.col("last") / 1000).alias("to kB")
    )
    y, y2 = alt.Y("from kB:Q", title=title, scale=scale), alt.Y2("to kB:Q")
    tooltip = [
        alt.Tooltip("kind:N"),
        alt.Tooltip("time_s:Q", format=".6~f"),
        alt.Tooltip("first:Q"),
        alt.Tooltip("last:Q"),
    ]
    layers.append(
        alt.Chart(data(rows))
        .mark_rule(strokeWidth=2, clip=True)
        .encode(x, y, colour, y2=y2, tooltip=tooltip)
        .properties(name="plane")
    )
    rare = rows.filter(pl.col("kind").is_in(RARE))
    if len(rare):
        layers.append(
            alt.Chart(data(rare))
            .mark_point(filled=True, opacity=1, size=28, clip=True)
            .encode(x, alt.Y("to kB:Q", title=title, scale=scale), colour, tooltip=tooltip)
        )
    title_ = titled(printable(what), notes)
    return styled(layered(layers, width=WIDTH, height=340, title=title_))
