"""A twin of a capture: an experiment on a path like the captured one, compared with the capture.

The path is estimated by `path`. The traffic comes from the connections: each sends as much as it
did, at the same times. The fit of the twin is measured: it is run, its packets are captured at the
same point, and the same analysis reads both captures.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path as File
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

import tcplab
from tcplab import _core
from tcplab._capture.delivered import Evidence, evidence_of, headers
from tcplab._capture.guess import UNKNOWN
from tcplab._capture.path import Estimate, Path, path
from tcplab._experiment import toml_writer
from tcplab._experiment.quantities import numbers
from tcplab._store.atomic_write import put

SENDER, ROUTER, RECEIVER = "sender", "router", "receiver"
NEAR_DELAY_S = 10e-6
"""The delay of the short link beside the sender, at which the twin is captured."""

MOST_CONNECTIONS = 500
"""The most connections of a twin: those with the most data."""

MOST_PACKETS = 3_000_000
"""The most packets of a capture that are analysed one by one."""

CAPTURE = "capture.pcapng"

SMALL_QUEUE = 12
"""The queue size, in packets, up to which neighbouring sizes are tried as well."""

USUAL = ("cubic", "bbr", "newreno")
"""Congestion controls that are tried in this order, after the one guessed from the capture."""

OURS = {"reno or lp": "newreno", "westwood": "westwood+"}
"""The names in experiments of algorithms that a guess names differently."""

SEEDS = 10
"""The number of runs of a twin with random losses: the capture is one such outcome."""

MARGIN = 0.1
"""The relative difference between twin and capture that is allowed for a measure."""

MARGINS = {"resent": 0.25, "least rate there": 0.25}
"""Exceptions: a single overshoot decides how much is retransmitted, and few packets decide the
lowest rate.
"""

LEAST_MARGIN = {
    "RTT least": 0.1,
    "RTT median": 1.0,
    "RTT 95 %": 1.0,
    "resent": 0.3,
    "time to complete": 0.05,
}
"""The absolute difference that is always allowed, in the unit of the measure."""

PARTED = 0.1
"""Twin and capture part when the delivered data differs by this share."""


@dataclass(frozen=True)
class Measure:
    """A measure of the capture and of its twin."""

    name: str
    unit: str
    capture: float | None
    twin: float | None
    """The median over the runs of the twin."""
    low: float | None
    """The least over the runs."""
    high: float | None
    """The greatest over the runs."""
    fits: bool
    """Whether the value of the capture is within or near those of the twin."""


@dataclass(frozen=True)
class Twin:
    """An experiment with a path and traffic like those of a capture."""

    experiment: tcplab.Experiment
    """The experiment, for any backend."""
    congestion_control: str
    """The congestion control of the flows."""
    path: pl.DataFrame
    """The estimated path: a row for each quantity, with its range."""
    measures: pl.DataFrame
    """The measures of capture and twin, side by side."""
    parts_at_s: float | None
    """The time at which the delivered data first differs by more than a tenth, in seconds after the
    start; `None` if it never does.
    """
    misfits: list[str]
    """The excessive differences, in words; empty if the twin behaves like the capture."""
    fits: bool
    """Whether the twin behaves like the capture."""
    notes: list[str]
    """Aspects that differ from the capture or are unknown."""

    def toml(self) -> str:
        """Returns the experiment as TOML, whose first lines state how well it fits."""
        verdict = ["It behaves like the capture in all that was measured."]
        if not self.fits:
            verdict = ["NOT VOUCHED FOR: it does not behave like the capture:"]
            verdict += [f"- {one}" for one in self.misfits]
        lines = ["A twin of a capture, as `tcplab capture twin` makes it.", *verdict]
        if self.notes:
            lines += ["To be known:", *(f"- {note}" for note in self.notes)]
        head = "".join(f"# {line}\n" for line in lines)
        return f"{head}\n{toml_writer.written(self.experiment.to_dict())}"

    def write(self, file: File) -> None:
        """Writes the experiment to a file."""
        put(self.toml().encode(), file)


@dataclass(frozen=True)
class Given:
    """Path quantities that the user knows, in place of estimates."""

    rtt_s: float | None = None
    rate_bit_s: float | None = None
    queue_packets: float | None = None

    @classmethod
    def of(cls, rtt: str | None, rate: str | None, queue: int | None) -> Given:
        """Parses quantities written as in experiments."""
        if queue is not None and queue < 1:
            raise _core.ConfigError(f"queue: {queue} is not at least 1 packet")
        milliseconds = _quantity("rtt", rtt, "ms", "40 ms")
        megabits = _quantity("rate", rate, "mbit_s", "100 Mbit/s")
        return cls(
            None if milliseconds is None else milliseconds / 1000,
            None if megabits is None else megabits * 1e6,
            queue,
        )

    def over(self, base: Path) -> Path:
        """The path with known quantities in place of estimates."""

        def known(value: float | None, estimate: Estimate) -> Estimate:
            return estimate if value is None else Estimate(value, value, value, "given")

        return Path(
            known(self.rtt_s, base.base_rtt_s),
            known(self.rate_bit_s, base.rate_bit_s),
            known(self.queue_packets, base.queue_packets),
            base.loss,
            base.packet_bytes,
        )


def _quantity(name: str, text: str | None, kind: str, example: str) -> float | None:
    """A quantity above zero, in the unit of its kind."""
    if text is None:
        return None
    read = numbers([text])
    if read is None or read[0] != kind or not 0 < (value := float(read[1][0])) < float("inf"):
        raise _core.ConfigError(f"{name}: {text!r} is not a quantity like {example!r}")
    return value


def twin(
    capture: File, cc: str | None, backend: str, connections: Sequence[int] | None, given: Given
) -> Twin:
    """A twin of the connections between the two hosts of a capture that exchange most data. Without
    a given congestion control, the first that fits is used: the guessed one, then the usual ones.
    """
    flows = tcplab.capture.flows(capture)
    chosen, notes = _chosen(flows, connections)
    packets = tcplab.capture.packets(capture, chosen["connection"].to_list())
    begin: float = chosen["start_s"].min()  # type: ignore[assignment]
    seen = (chosen, evidence_of(packets, chosen), begin)
    estimated = given.over(path(seen[1]))
    notes += _path_notes(estimated, chosen)
    best: Twin | None = None
    names = [cc] if cc else _guessed(capture, chosen)
    for candidate in _candidates(names, estimated):
        name = candidate[0]
        said = [*notes, *([] if cc else [f"{name} is a guess: no capture says it"])]
        experiment = _experiment(estimated, chosen, packets, candidate, said)
        runs = [_run(experiment, backend, seed) for seed in _seeds(experiment)]
        measures, parts = _beside(seen, runs, estimated.packet_bytes)
        misfits = _misfits(measures)
        table = _table(estimated)
        found = Twin(experiment, name, table, measures, parts, misfits, not misfits, said)
        if best is None or len(found.misfits) < len(best.misfits):
            best = found
        if best.fits:
            break
    assert best is not None
    return best


def _guessed(capture: File, flows: pl.DataFrame) -> list[str]:
    """The congestion controls to try, first the one guessed for the largest connection."""
    guesses = tcplab.capture.congestion_control(capture)
    largest = flows.sort("sent", descending=True, maintain_order=True)["connection"][0]
    (guess,) = guesses.filter(pl.col("connection") == largest)["guess"]
    first = [] if guess == UNKNOWN else [OURS.get(guess, guess)]
    return list(dict.fromkeys([*first, *USUAL]))


def _candidates(names: Sequence[str], known: Path) -> Iterator[tuple[str, int]]:
    """Congestion controls and queue sizes in packets, in the order of trial."""
    room = known.queue_packets.value
    if room is None:
        # Large enough for the queue of the twin never to fill either.
        bdp = (known.rate_bit_s.value or 0) * (known.base_rtt_s.value or 0) / 8 / known.packet_bytes
        rooms = [ceil(max(2 * (known.queue_packets.low or 0), bdp, 10))]
    else:
        likely = max(ceil(room - 0.3), 1)
        # In a small queue, one packet makes a difference.
        rooms = [likely, likely + 1, max(likely - 1, 1)] if room <= SMALL_QUEUE else [likely]
    for name in names:
        for one in rooms:
            yield name, one


def _chosen(
    flows: pl.DataFrame, connections: Sequence[int] | None
) -> tuple[pl.DataFrame, list[str]]:
    """The connections of the twin."""
    flows = flows.filter(pl.col("client_bytes") + pl.col("server_bytes") > 0)
    if connections is not None:
        absent = sorted(set(connections) - set(flows["connection"]))
        if absent:
            raise _core.ConfigError(f"connection: {absent[0]} is none that has data")
        flows = flows.filter(pl.col("connection").is_in(list(connections)))
    if flows.is_empty():
        raise _core.ConfigError("no TCP connection of the capture has data: there is no twin of it")
    is_client = pl.col("sender") == "client"
    sent = pl.when(is_client).then("client_bytes").otherwise("server_bytes")
    flows = flows.with_columns(
        pl.when(is_client).then("client").otherwise("server").alias("from"),
        pl.when(is_client).then("server").otherwise("client").alias("to"),
        sent.alias("sent"),
        pl.when(is_client).then("client_packets").otherwise("server_packets").alias("packets"),
    )
    pairs = flows.group_by("from", "to", maintain_order=True).agg(pl.col("sent").sum())
    most = pairs.row(int(pairs["sent"].arg_max() or 0), named=True)
    chosen = flows.filter((pl.col("from") == most["from"]) & (pl.col("to") == most["to"]))
    notes = []
    if (others := len(flows) - len(chosen)) > 0:
        share = 100 * most["sent"] / max(int(flows["sent"].sum()), 1)
        notes.append(
            f"the twin is of the connections from {most['from']} to {most['to']}, which have "
            f"{share:.0f} % of the data; {others:,} others are left out"
        )
    largest = chosen.sort("sent", descending=True, maintain_order=True).head(MOST_CONNECTIONS)
    if len(largest) < len(chosen):
        notes.append(f"the {MOST_CONNECTIONS} connections with most data of {len(chosen):,}")
    if int(largest["packets"].sum()) > MOST_PACKETS:
        raise _core.ConfigError(
            f"these connections have more than {MOST_PACKETS:,} packets: choose some of them with "
            "`connection`, or capture less"
        )
    return largest.sort("connection"), notes


def _path_notes(known: Path, flows: pl.DataFrame) -> list[str]:
    notes = []
    if known.base_rtt_s.value is None:
        raise _core.ConfigError(
            f"the round trip is not known: {known.base_rtt_s.how}; is one direction missing?"
        )
    if known.rate_bit_s.value is None and known.rate_bit_s.low is None:
        raise _core.ConfigError(f"the rate is not known: {known.rate_bit_s.how}")
    if known.rate_bit_s.value is None:
        notes.append(f"the rate is a lower bound: {known.rate_bit_s.how}")
    if known.queue_packets.value is None:
        notes.append(f"the size of the queue is a guess: {known.queue_packets.how}")
    near = [row[f"{row['sender']}_near_rtt_ms"] or 0.0 for row in flows.iter_rows(named=True)]
    if (most := max(near)) > 0.1 * 1000 * known.base_rtt_s.value:
        notes.append(
            f"the capture was made {most:.3g} ms from the sender: the twin has only what is behind"
        )
    marks = int(flows["client_ece_packets"].sum()) + int(flows["server_ece_packets"].sum())
    if marks:
        notes.append("packets were marked (ECN); the twin's queue drops and does not mark")
    for row in flows.iter_rows(named=True):
        if (share := row["time_application_percent"]) > 10:
            notes.append(
                f"connection {row['connection']} waited for its application {share:.0f} % of the "
                "time; in the twin it does not"
            )
            break
    return notes


def _experiment(
    known: Path,
    flows: pl.DataFrame,
    packets: pl.DataFrame,
    candidate: tuple[str, int],
    notes: list[str],
) -> tcplab.Experiment:
    """The path with its traffic, for a congestion control and a queue size."""
    cc, room = candidate
    rate = known.rate_bit_s.value or known.rate_bit_s.low or 0.0
    base = known.base_rtt_s.value or 0.0
    link: dict[str, Any] = {
        "between": (ROUTER, RECEIVER),
        "rate": f"{rate / 1e6:.6g} Mbit/s",
        "delay": f"{max(base / 2 - NEAR_DELAY_S, 0) * 1000:.6g} ms",
        "queue": f"{room} packets",
    }
    if known.loss.value:
        link["forward"] = tcplab.LinkSettings(loss=float(f"{known.loss.value:.3g}"))
    if (mtu := _mtu(flows)) != 1500:
        link["mtu"] = mtu
    near = tcplab.Link(
        between=(SENDER, ROUTER),
        rate=f"{max(10 * rate / 1e9, 10):.6g} Gbit/s",
        delay=f"{NEAR_DELAY_S * 1e6:g} us",
    )
    begin, end = float(flows["start_s"].min()), 0.0  # type: ignore[arg-type]
    is_open = False
    entries = []
    for row in flows.iter_rows(named=True):
        is_whole = row["closed"] not in ("", None, "open", "unanswered")
        is_open = is_open or not is_whole
        end = max(end, row["start_s"] + row["duration_s"] - begin)
        rows = packets.filter(pl.col("connection") == row["connection"])
        entries.append(_flow(row, rows, begin, cc, is_whole=is_whole))
    if is_open:
        notes.append("a connection was still open at the end: the twin ends then, too")
    seconds = end if is_open else 1.5 * end + 1
    return tcplab.Experiment(
        duration=f"{max(seconds, 0.1):.4g} s",
        network=tcplab.Network(links=[near, tcplab.Link(**link)]),
        flows=entries,
    )


def _mtu(flows: pl.DataFrame) -> int:
    """The size of packets that carry as much data as the smaller MSS allows."""
    announced = [*flows["client_mss_bytes"].drop_nulls(), *flows["server_mss_bytes"].drop_nulls()]
    return min(announced, default=1460) + 40


def _flow(
    row: dict[str, Any], packets: pl.DataFrame, begin: float, cc: str, *, is_whole: bool
) -> tcplab.Flow:
    """A flow that sends what the connection sent."""
    sender = row["sender"]
    receiver = "server" if sender == "client" else "client"
    size = int(row["sent"])
    traffic: tcplab.BulkTraffic | tcplab.RequestsTraffic
    if sender == "server" and row["client_bytes"] > 0:
        traffic = tcplab.RequestsTraffic(
            request=f"{row['client_bytes']} B",
            response=f"{size} B",
            requests=1,
            server_time=_server_time(packets),
        )
    else:
        traffic = tcplab.BulkTraffic(size=f"{size} B" if is_whole else None)
    options = row["options"] or ""
    stack: dict[str, Any] = {}
    if row["handshake_ms"] is not None:
        stack |= {
            name: False
            for name, word in (
                ("sack", "sack"),
                ("timestamps", "timestamps"),
                ("window_scaling", "window scale"),
            )
            if word not in options
        }
        segment = min(row["client_mss_bytes"] or 1460, row["server_mss_bytes"] or 1460)
        data = segment - (headers(row) - 40)
        first = row[f"{sender}_initial_window_bytes"]
        # The first ACK may be in transit while another segment leaves.
        if first and size > first and abs((window := round(first / data)) - 10) > 1:
            stack["initial_window"] = max(window, 1)
    per_ack = row[f"{receiver}_segments_per_ack"]
    if per_ack is not None and per_ack < 1.15 and size > 50_000:
        stack["delayed_ack"] = "off"
    if row["time_peer_window_percent"] > 5 and row[f"{receiver}_window_max_bytes"]:
        # The window that a buffer gives is slightly larger, because data is counted without
        # headers.
        room = round(0.95 * row[f"{receiver}_window_max_bytes"])
        stack |= {"so_rcvbuf": f"{room} B", "rmem_max": f"{max(2 * room, 212_992)} B"}
    settings: dict[str, Any] = {"stack": tcplab.Stack(**stack)} if stack else {}
    return tcplab.Flow(
        name=f"connection{row['connection']}",
        from_=SENDER,
        to=RECEIVER,
        start=f"{max(row['start_s'] - begin, 0):.9g} s",
        cc=cc,
        traffic=traffic,
        **settings,
    )


def _server_time(packets: pl.DataFrame) -> str | None:
    """The time that the server took before its first byte."""
    data = packets.filter(pl.col("payload_bytes") > 0)
    first = data.filter(pl.col("sender") == "server")["time_s"].min()
    asked = data.filter((pl.col("sender") == "client") & (pl.col("time_s") < (first or 0)))
    last = asked["time_s"].max()
    seconds = 0.0 if first is None or last is None else float(first) - float(last)  # type: ignore[arg-type]
    return f"{seconds * 1000:.4g} ms" if seconds > 0.0005 else None


def _seeds(experiment: tcplab.Experiment) -> range:
    """The seeds of the runs: only one if nothing is random."""
    loses = any(
        "loss" in link.get("forward", {}) for link in experiment.to_dict()["network"]["links"]
    )
    return range(1, (SEEDS if loses else 1) + 1)


Seen = tuple[pl.DataFrame, Evidence, float]
"""The connections, the evidence of their packets, and the start of the first."""


def _run(experiment: tcplab.Experiment, backend: str, seed: int) -> Seen:
    """A run of the twin, analysed from a capture at its sender."""
    captured = experiment.changed(
        {"seed": seed, "record.captures": [f"{SENDER}>{ROUTER}", f"{ROUTER}>{SENDER}"]}
    )
    results = tcplab.run(captured, backend=backend)
    with tempfile.TemporaryDirectory() as folder:
        file = File(folder) / CAPTURE
        file.write_bytes(results.files(results.plans[0].id)[CAPTURE])
        flows = tcplab.capture.flows(file)
        packets = tcplab.capture.packets(file, flows["connection"].to_list())
    return flows, evidence_of(packets, flows), 0.0


def _beside(capture: Seen, runs: Sequence[Seen], packet: int) -> tuple[pl.DataFrame, float | None]:
    """The measures of both, and the time at which they part."""
    rows = []
    for name, unit, measure in MEASURES:
        mine = measure(*capture)
        theirs = [value for run in runs if (value := measure(*run)) is not None]
        rows.append(_measure(name, unit, mine, theirs))
    schema = ["measure", "unit", "capture", "twin", "low", "high", "fits"]
    table = pl.DataFrame(
        [(it.name, it.unit, it.capture, it.twin, it.low, it.high, it.fits) for it in rows],
        schema=dict.fromkeys(schema[:2], pl.String)
        | dict.fromkeys(schema[2:6], pl.Float64)
        | {"fits": pl.Boolean},
        orient="row",
    )
    return table, _parting(capture, runs, packet)


def _misfits(measures: pl.DataFrame) -> list[str]:
    return [
        f"{row['measure']} is {_number(row['twin'])} {row['unit']} in the twin and "
        f"{_number(row['capture'])} {row['unit']} in the capture"
        for row in measures.filter(~pl.col("fits")).iter_rows(named=True)
    ]


def _measure(name: str, unit: str, mine: float | None, theirs: Sequence[float]) -> Measure:
    if mine is None or not theirs:
        return Measure(name, unit, mine, None, None, None, mine is None and not theirs)
    low, high = min(theirs), max(theirs)
    margin = max(MARGINS.get(name, MARGIN) * abs(mine), LEAST_MARGIN.get(name, 0.0))
    fits = low - margin <= mine <= high + margin
    return Measure(name, unit, mine, float(np.median(theirs)), low, high, fits)


def _rate(flows: pl.DataFrame, evidence: Evidence, begin: float) -> float | None:
    """The delivery rate of all connections together."""
    if not evidence.deliveries:
        return None
    seconds = evidence.deliveries[-1].at - begin
    return sum(one.bytes for one in evidence.deliveries) * 8e-6 / seconds if seconds > 0 else None


def _bottleneck(flows: pl.DataFrame, evidence: Evidence, begin: float) -> float | None:
    """The rate at which back-to-back packets arrived."""
    rate = path(evidence).rate_bit_s.value
    return None if rate is None else rate / 1e6


def _slowest(flows: pl.DataFrame, evidence: Evidence, begin: float) -> float | None:
    """The rate that one in twenty back-to-back packets stayed below: far lower if it varies."""
    rate = path(evidence).rate_bit_s
    return None if rate.value is None or rate.low is None else rate.low / 1e6


def _last(flows: pl.DataFrame, evidence: Evidence, begin: float) -> float | None:
    """The time at which the last data was acknowledged."""
    return evidence.deliveries[-1].at - begin if evidence.deliveries else None


def _resent(flows: pl.DataFrame, evidence: Evidence, begin: float) -> float | None:
    segments = resent = 0
    for row in flows.iter_rows(named=True):
        segments += row[f"{row['sender']}_segments"]
        resent += row[f"{row['sender']}_retransmitted_segments"]
    return 100 * resent / segments if segments else None


def _trips(share: float) -> Callable[[pl.DataFrame, Evidence, float], float | None]:
    def measure(flows: pl.DataFrame, evidence: Evidence, begin: float) -> float | None:
        trips = [one.at - one.last_sent for one in evidence.deliveries if one.is_plain]
        return float(np.quantile(trips, share)) * 1000 if trips else None

    return measure


MEASURES: list[tuple[str, str, Callable[[pl.DataFrame, Evidence, float], float | None]]] = [
    ("rate", "Mbit/s", _rate),
    ("rate of bottleneck", "Mbit/s", _bottleneck),
    ("least rate there", "Mbit/s", _slowest),
    ("time to complete", "s", _last),
    ("RTT least", "ms", _trips(0.0)),
    ("RTT median", "ms", _trips(0.5)),
    ("RTT 95 %", "ms", _trips(0.95)),
    ("resent", "%", _resent),
]
"""The measures of capture and twin: name, unit and function."""


def _parting(capture: Seen, runs: Sequence[Seen], packet: int) -> float | None:
    """The time at which the delivered data first differs by more than a share from every run of the
    twin.
    """

    def curve(seen: Seen) -> tuple[list[float], npt.NDArray[np.int64]]:
        times = [one.at - seen[2] for one in seen[1].deliveries]
        return times, np.cumsum([0, *(one.bytes for one in seen[1].deliveries)])

    times, mine = curve(capture)
    theirs = [curve(run) for run in runs]
    # A difference of ten packets may be a matter of their order.
    room = 10 * packet
    for at, delivered in zip(times, mine[1:], strict=True):
        there = [float(sums[bisect_right(when, at)]) for when, sums in theirs]
        margin = max(PARTED * float(delivered), room)
        if not min(there) - margin <= delivered <= max(there) + margin:
            return at
    return None


def _table(known: Path) -> pl.DataFrame:
    """The estimates of a path as a table."""
    rows = [
        ("base RTT", "ms", known.base_rtt_s, 1000.0),
        ("rate", "Mbit/s", known.rate_bit_s, 1e-6),
        ("queue", "packets", known.queue_packets, 1.0),
        ("loss", "%", known.loss, 100.0),
    ]

    def scaled(value: float | None, by: float) -> float | None:
        return None if value is None else value * by

    return pl.DataFrame(
        [
            (name, unit, scaled(it.value, by), scaled(it.low, by), scaled(it.high, by), it.how)
            for name, unit, it, by in rows
        ],
        schema={
            "quantity": pl.String,
            "unit": pl.String,
            "value": pl.Float64,
            "low": pl.Float64,
            "high": pl.Float64,
            "how": pl.String,
        },
        orient="row",
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
