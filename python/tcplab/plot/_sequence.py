"""Charts of sequence numbers over time: transmissions, retransmissions and acknowledgments."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import polars as pl

from tcplab._core import printable
from tcplab._results.results import Results
from tcplab._statistics.thinning import MOST_POINTS, thin
from tcplab.plot._single_run import chosen, titles_of
from tcplab.plot._style import COLOURS, INK, WIDTH, data, layered, styled

WRAP = 1 << 32

OUT_OF_ORDER = "arrived out of order (SACK)"

KINDS = {
    "sent": ("#8A8F98", "circle", 9),
    "sent again": (COLOURS[1], "square", 26),
    "dropped": (INK, "cross", 44),
    OUT_OF_ORDER: (COLOURS[2], "circle", 18),
}
"""The colour, shape and size of each kind of point."""

ACKNOWLEDGED = "acknowledged"

SCHEMA = {"time_s": pl.Float64, "kind": pl.String, "first": pl.Int64, "last": pl.Int64}


@dataclass(frozen=True)
class Sequence:
    """The packets of a connection, counted from the first byte of data."""

    points: pl.DataFrame
    """`time_s`, `kind`, `first`, `last`: the range of bytes."""
    acknowledged: pl.DataFrame
    """`time_s`, `bytes`: the data that the sender knows to have arrived."""


def sequence(
    results: Results,
    *,
    flow: str | None = None,
    run: str | None = None,
    from_s: float = 0.0,
    to_s: float | None = None,
) -> alt.LayerChart:
    """Draws the sequence numbers of a flow over time: segments sent, retransmitted, dropped, and
    received out of order, which a receiver with SACK reports; and the line up to which the sender
    has acknowledgments.

    The chart uses the table `packets`: the experiment must record the packets of the links at the
    sender, in both directions, as `record = {packets = ["client>router", "router>client"]}`, and
    for out-of-order arrivals also those of the link to the receiver.

    Args:
        results: The results.
        flow: The flow; by default the first whose data was recorded.
        run: The run; by default the first.
        from_s: The start.
        to_s: The end; by default that of the run. Within a short part every packet is drawn.

    Raises:
        ValueError: No packets of this flow were recorded, or it has many connections.
    """
    run = chosen(results, run)
    flow = _chosen_flow(results, run, flow)
    found = sequences(results, run, flow)
    end_s = float(results.runs.filter(pl.col("run") == run)["simulated_s"][0])
    to_s = end_s if to_s is None else to_s
    if not from_s < to_s:
        raise ValueError(f"from_s: {from_s:g} s is not before {to_s:g} s")
    is_shown = pl.col("time_s").is_between(from_s, to_s)
    points = found.points.filter(is_shown)
    line = found.acknowledged.filter(is_shown)
    if points.is_empty() and line.is_empty():
        raise ValueError(f"no packet of {flow!r} is between {from_s:g} s and {to_s:g} s")
    few = thin(points, by="kind", y="last")
    notes = [printable(f"flow {flow}")]
    if len(few) < len(points):
        notes.append(
            f"{len(few):,} of {len(points):,} packets; from_s and to_s draw a part with all"
        )
    if line.is_empty():
        notes.append("no acknowledgments: packets of the reverse direction are not recorded")
    kinds = [kind for kind in KINDS if kind in set(few["kind"])]
    # Rare kinds are drawn above frequent ones.
    few = few.sort(pl.col("kind").replace_strict({kind: n for n, kind in enumerate(KINDS)}))
    legend = alt.Legend(title=None, orient="top")
    names = [*kinds, *([ACKNOWLEDGED] if len(line) else [])]
    looks = [KINDS[kind] for kind in kinds]
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(
            domain=names, range=[*(look[0] for look in looks), COLOURS[0]][: len(names)]
        ),
        legend=legend,
    )
    x = alt.X(
        "time_s:Q",
        title="time (s)",
        axis=alt.Axis(tickCount=8, format=".6~g"),
        scale=alt.Scale(domain=[from_s, to_s], nice=False),
    )
    title, axis = "sequence number (kB)", alt.Scale(zero=from_s == 0)
    tooltip = [
        alt.Tooltip("kind:N"),
        alt.Tooltip("time_s:Q", format=".6~f"),
        alt.Tooltip("first:Q"),
        alt.Tooltip("last:Q"),
    ]
    kilobytes = (pl.col("last") / 1000).alias("kB")
    marks = (
        alt.Chart(data(few.with_columns(kilobytes)))
        .mark_point(filled=True, opacity=1, clip=True, strokeWidth=1.4)
        .encode(
            x,
            alt.Y("kB:Q", title=title, scale=axis),
            colour,
            shape=alt.Shape(
                "kind:N",
                scale=alt.Scale(domain=names, range=[*(look[1] for look in looks), "stroke"]),
                legend=legend,
            ),
            size=alt.Size(
                "kind:N",
                scale=alt.Scale(domain=kinds, range=[look[2] for look in looks]),
                legend=None,
            ),
            tooltip=tooltip,
        )
        .properties(name="plane")
    )
    line = line.with_columns(
        pl.lit(ACKNOWLEDGED).alias("kind"), (pl.col("bytes") / 1000).alias("kB")
    )
    acks = (
        alt.Chart(data(thin(line, by="kind", y="bytes", most=2 * MOST_POINTS)))
        .mark_line(strokeWidth=1.3, interpolate="step-after", clip=True)
        .encode(x, alt.Y("kB:Q", title=title, scale=axis), colour)
    )
    layers = [acks, marks] if len(line) else [marks]
    title_ = titles_of(results, run, *notes)
    return styled(layered(layers, width=WIDTH, height=340, title=title_))


def sequences(results: Results, run: str, flow: str) -> Sequence:
    """The packets of a flow, from the links on which they were recorded."""
    about = results.scan("flows", run).filter(pl.col("flow") == flow).collect().row(0, named=True)
    if about["transport"] != "tcp":
        raise ValueError(f"{flow!r} is a flow of UDP, which has no sequence numbers")
    if about["transfers"] is not None:
        raise ValueError(
            f"{flow!r} has many connections, and packets do not say of which they are; a flow with "
            "one, like bulk traffic, has a chart of sequence numbers"
        )
    packets = results.scan("packets", run).filter(
        pl.col("flow") == flow, pl.col("transport") == "tcp"
    )
    rows = packets.select(
        "time_s", "link", "point", "seq", "ack", "flags", "payload_bytes"
    ).collect()
    sender, receiver = str(about["from"]), str(about["to"])
    data_rows = rows.filter(pl.col("payload_bytes") > 0)
    ways = data_rows["link"].unique(maintain_order=True).to_list()
    if not ways:
        raise ValueError(f"no data of {flow!r} was written down: {_wanted(about)}")
    # From the sender's point of view, if the links at the sender were recorded.
    out = next((link for link in ways if link.startswith(f"{sender}>")), ways[0])
    seen = (
        ((pl.col("point") == "enter") & (pl.col("link") == out))
        | ((pl.col("point") == "arrive") & pl.col("link").str.ends_with(f">{receiver}"))
        | (pl.col("point") == "drop")
    )
    points, first = _points(data_rows.filter(seen))
    others = rows.filter(~pl.col("link").is_in(ways), pl.col("ack").is_not_null())
    backs = others["link"].unique(maintain_order=True).to_list()
    back = next((link for link in backs if link.endswith(f">{sender}")), (backs or [None])[0])
    acks = rows.filter(pl.col("link") == pl.lit(back), pl.col("ack").is_not_null())
    # The sender learns of an ACK when it arrives.
    last = "arrive" if "arrive" in set(acks["point"]) else "enter"
    reached = _acknowledged(acks.filter(pl.col("point") == last), first)
    # A FIN takes one sequence number.
    ends = pl.min_horizontal("bytes", pl.lit(points["last"].max(), dtype=pl.Int64)).alias("bytes")
    return Sequence(points, reached.with_columns(ends))


def _chosen_flow(results: Results, run: str, flow: str | None) -> str:
    flows = results.scan("flows", run).select("flow", "transport", "transfers", "from", "to")
    known = flows.collect()
    if flow is not None:
        if flow not in set(known["flow"]):
            names = ", ".join(map(printable, known["flow"].head(12)))
            raise ValueError(f"flow: no flow is called {flow!r}; there are {names}")
        return flow
    written = (
        results.scan("packets", run)
        .filter(pl.col("payload_bytes") > 0, pl.col("transport") == "tcp")
        .select(pl.col("flow").unique())
        .collect()["flow"]
    )
    single = known.filter(
        pl.col("flow").is_in(written.to_list()),
        pl.col("transfers").is_null(),
        pl.col("transport") == "tcp",
    )
    if single.is_empty():
        raise ValueError(
            f"no packets of a TCP flow with one connection were written down: "
            f"{_wanted(known.row(0, named=True))}"
        )
    return str(single["flow"][0])


def _wanted(flow: dict[str, object]) -> str:
    ends = f'"{flow["from"]}>...", "...>{flow["from"]}"'
    return f"write down those of the links at its sender: `record = {{packets = [{ends}]}}`"


def _points(packets: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The points of a connection, and the sequence number of its first byte."""
    ordered = packets.sort("time_s", maintain_order=True)
    if ordered.is_empty():
        return pl.DataFrame(schema=SCHEMA), 0
    first = int(ordered["seq"][0])
    rows: list[tuple[float, str, int, int]] = []
    sent = arrived = 0
    beyond: dict[int, int] = {}
    names = {"enter": 0, "arrive": 1, "drop": 2}
    columns = ordered.select("time_s", "point", "seq", "payload_bytes")
    for time_s, point, seq, length in columns.iter_rows():
        if point not in names:
            continue
        # Sequence numbers wrap around: the interpretation closest to the last number sent is used.
        away = (seq - first - sent) % WRAP
        start = sent + (away - WRAP if away > WRAP // 2 else away)
        end = start + length
        if point == "drop":
            rows.append((time_s, "dropped", start, end))
        elif point == "enter":
            rows.append((time_s, "sent" if end > sent else "sent again", start, end))
            sent = max(sent, end)
        elif start > arrived:
            if beyond.get(start, 0) < end:
                rows.append((time_s, OUT_OF_ORDER, start, end))
                beyond[start] = end
        else:
            arrived = max(arrived, end)
            # Segments that waited for this one are in order now.
            while beyond and (lowest := min(beyond)) <= arrived:
                arrived = max(arrived, beyond.pop(lowest))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row"), first


def _acknowledged(acks: pl.DataFrame, first: int) -> pl.DataFrame:
    """The byte up to which the sender has acknowledgments."""
    reached = 0
    rows = []
    for time_s, ack in acks.sort("time_s", maintain_order=True).select("time_s", "ack").iter_rows():
        away = (ack - first - reached) % WRAP
        if away < WRAP // 2 and away > 0:
            reached += away
            rows.append((time_s, reached))
    kinds = {"time_s": pl.Float64, "bytes": pl.Int64}
    return pl.DataFrame([(0.0, 0), *rows] if rows else [], schema=kinds, orient="row")
