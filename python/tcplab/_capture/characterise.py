"""Characterises the traffic of captures and logs: sessions, their sizes, arrivals and turns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from tcplab import _core
from tcplab._capture.characteristics import Characteristics
from tcplab._capture.conn_logs import SESSION, TURN, read_log
from tcplab._capture.fitted import (
    CLOSE,
    FEWEST,
    Numbers,
    chosen,
    fits,
    following,
    is_poisson,
    is_poisson_by_counts,
)
from tcplab._capture.frames import in_polars
from tcplab._core import ConfigError

CLASSES: Sequence[tuple[str, float]] = (
    ("small", 10e3),
    ("medium", 100e3),
    ("large", 200e3),
    ("0.2-1 MB", 1e6),
    ("1-10 MB", 10e6),
    ("10-100 MB", 100e6),
    ("over 100 MB", float("inf")),
)
"""Size classes of sessions, each with its upper end in bytes: the three of the study `martic-2013`,
and one for larger sessions.
"""

MOST_CLASSES = 6
"""The most classes that are found from data."""

BINS = 120
"""The number of logarithmic size steps in which classes are searched."""


def characterised(files: Sequence[Path], classes: str, connections: int) -> Characteristics:
    """Characterises the traffic of all files together. `classes` is `fixed` or `found`."""
    if classes not in ("fixed", "found"):
        raise ConfigError(f'classes: "{classes}" is neither "fixed" nor "found"')
    if not files:
        raise ConfigError("characterise: a file is needed")
    every = [_read(file, connections) for file in files]
    sessions, turns = _together([one[:2] for one in every])
    notes = list(dict.fromkeys(note for one in every for note in one[2]))
    if sessions.is_empty():
        raise ConfigError(f"{', '.join(map(str, files))}: there is no TCP connection")
    sessions = _sized(sessions)
    sessions, table = _classified(sessions, classes)
    if partial := int((sessions["is_whole"] == False).sum()):  # noqa: E712
        notes.append(
            f"not seen from beginning to end, and perhaps larger: {partial:,} of "
            f"{len(sessions):,} sessions"
        )
    sessions, step = _spread(sessions)
    if step is not None:
        notes.append(f"times are whole {step[1]}: the sessions of one are spread over it evenly")
    gaps = _gaps(sessions)
    how = _arrivals(sessions, gaps, step)
    table_of_fits = _fits_table(sessions, gaps if step is None else gaps[:0], turns)
    totals = _totals(sessions, turns, gaps, how)
    return Characteristics(totals, table, table_of_fits, _peers(sessions), sessions, turns, notes)


Read = tuple[pl.DataFrame, pl.DataFrame, list[str]]


def _read(file: Path, connections: int) -> Read:
    """The sessions, turns and notes of a file."""
    if file != Path("-") and (log := read_log(file)) is not None:
        turns = pl.DataFrame(schema=TURN) if log.turns is None else log.turns
        return log.sessions, turns, [f"{file}: {note}" for note in log.notes]
    if connections < 1:
        raise ConfigError(f"connections: {connections} is not at least 1")
    tables = {
        name: in_polars(frame)
        for name, frame in _core.read_capture(file, connections, [], turns=True)
    }
    begin = tables["capture_totals"]["start_s"][0]
    flows = tables["capture_flows"]
    turns = tables["capture_turns"].sort("connection", "turn")
    near = [pl.col(f"{side}_near_rtt_ms") for side in ("client", "server")]
    least = [pl.col(f"{side}_rtt_min_ms") for side in ("client", "server")]
    seen = pl.sum_horizontal(least)
    has_least = pl.any_horizontal(*(one.is_not_null() for one in least))
    rtt = (
        pl.when(pl.col("handshake_ms").is_not_null())
        .then(near[0] + near[1])
        .when(has_least)
        .then(seen)
    )
    numbers = turns.group_by("connection").len("turns")
    sessions = flows.join(numbers, on="connection", how="left", maintain_order="left").select(
        "client",
        "client_port",
        "server",
        "server_port",
        pl.col("start_s") + begin,
        "duration_s",
        "client_bytes",
        "server_bytes",
        "client_wire_bytes",
        "server_wire_bytes",
        pl.col("turns").fill_null(0),
        rtt.alias("rtt_ms"),
        (
            pl.col("handshake_ms").is_not_null()
            & ~pl.col("closed").is_in(["open", "half closed"])
            & (pl.col("client_missing_bytes") + pl.col("server_missing_bytes") == 0)
        ).alias("is_whole"),
    )
    # As seen from the capture point: the rest of a wait is server time, the rest of a pause is user
    # time.
    around = turns.join(flows, on="connection", how="left", maintain_order="left")
    turns = around.select(
        pl.col("connection").alias("session"),
        "request_bytes",
        "response_bytes",
        "wait_ms",
        (pl.col("wait_ms") - near[1]).clip(0).alias("server_ms"),
        (pl.col("pause_ms") - near[0]).clip(0).alias("think_ms"),
    )
    faults = tables["capture_faults"].filter(pl.col("fault") != "snap length")
    notes = [f"{file}: {fault}: {seen}" for fault, seen in faults.select("fault", "seen").rows()]
    return _cast(sessions, SESSION), _cast(turns, TURN), notes


def _cast(frame: pl.DataFrame, schema: object) -> pl.DataFrame:
    kinds = dict(schema)  # type: ignore[call-overload]
    return frame.select(pl.col(name).cast(kind) for name, kind in kinds.items())


def _together(every: Sequence[tuple[pl.DataFrame, pl.DataFrame]]) -> tuple[pl.DataFrame, ...]:
    """The sessions of all files in the order of arrival, and their turns. A session that is in
    several files, such as captures at several points, is taken from the file with more of its data.
    """
    before, all_sessions, all_turns = 0, [], []
    for number, (sessions, turns) in enumerate(every):
        places = pl.int_range(pl.len(), dtype=pl.Int64) + before
        all_sessions.append(sessions.with_columns(places.alias("session"), file=pl.lit(number)))
        all_turns.append(turns.with_columns(pl.col("session") + before))
        before += len(sessions)
    sessions = pl.concat(all_sessions)
    if len(every) > 1:
        sessions = _once(sessions)
    sessions = sessions.sort("start_s", "session", maintain_order=True)
    numbers = sessions.select(
        pl.col("session"), pl.int_range(pl.len(), dtype=pl.Int64).alias("now")
    )
    turns = pl.concat(all_turns).join(numbers, on="session", how="inner", maintain_order="left")
    turns = (
        turns.with_columns(session=pl.col("now")).drop("now").sort("session", maintain_order=True)
    )
    sessions = sessions.with_columns(session=pl.int_range(pl.len(), dtype=pl.Int64))
    return sessions.select("session", "file", *SESSION), turns


def _once(sessions: pl.DataFrame) -> pl.DataFrame:
    """Sessions without duplicates: same ends, another file, at the same time."""
    ends = ["client", "client_port", "server", "server_port"]
    data = pl.col("client_bytes") + pl.col("server_bytes")
    ordered = sessions.with_columns(data=data).sort(*ends, "start_s", "session")
    end = pl.col("start_s") + pl.col("duration_s")
    # A group begins when all earlier sessions between the same ends are over.
    before = end.cum_max().shift(1).over(ends)
    group = (pl.col("start_s") > before).fill_null(value=True).cum_sum()
    best = ordered.with_columns(group=group).sort(
        "group", "data", "session", descending=[False, True, False]
    )
    return best.group_by("group", maintain_order=True).first().drop("group", "data")


def _sized(sessions: pl.DataFrame) -> pl.DataFrame:
    """Sessions with their size, the data of the side that sent more, and with that side."""
    client, server = pl.col("client_bytes"), pl.col("server_bytes")
    sends = client >= server
    wire = pl.when(sends).then("client_wire_bytes").otherwise("server_wire_bytes")
    size = pl.max_horizontal(client, server)
    return sessions.with_columns(
        sender=pl.when(sends).then(pl.lit("client")).otherwise(pl.lit("server")),
        size=size,
        with_headers=pl.coalesce(wire, size),
    )


def _classified(sessions: pl.DataFrame, how: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sessions with their class, and the table of classes. Classes count bytes with headers."""
    if how == "fixed":
        names, ends = [name for name, _ in CLASSES], [end for _, end in CLASSES[:-1]]
    else:
        ends = _found(sessions["with_headers"].to_numpy())
        names = [
            f"{_bytes(low)}-{_bytes(high)}" if high is not None else f"{_bytes(low)} and more"
            for low, high in zip([0.0, *ends], [*ends, None], strict=True)
        ]
    starts = [0.0, *ends]
    place = np.searchsorted(ends, sessions["with_headers"].to_numpy(), side="right")
    sessions = sessions.with_columns(pl.Series("class", [names[one] for one in place], pl.String))
    rows = []
    every = max(int(sessions["size"].sum()), 1)
    for number, name in enumerate(names):
        of_class = sessions.filter(pl.col("class") == name)
        last = number == len(names) - 1
        if not len(of_class) and number > 2:
            continue
        rows.append(
            {
                "class": name,
                "from_bytes": int(starts[number]),
                "to_bytes": None if last else int(ends[number]),
                "sessions": len(of_class),
                "sessions_percent": 100 * len(of_class) / len(sessions),
                "bytes": int(of_class["size"].sum()),
                "bytes_percent": 100 * int(of_class["size"].sum()) / every,
                "size_mean_bytes": of_class["size"].mean(),
                "duration_mean_s": of_class["duration_s"].mean(),
            }
        )
    return sessions, pl.DataFrame(rows, orient="row", infer_schema_length=None)


def _found(sizes: Numbers) -> list[float]:
    """The ends of the classes that the sizes themselves suggest: the best division of their
    logarithms (least squares). Classes are added as long as each halves the spread within classes.
    """
    logs = np.log10(sizes[sizes > 0])
    if len(logs) == 0 or logs.max() - logs.min() < 1e-9:
        return []
    low, high = float(logs.min()), float(logs.max())
    counts, edges = np.histogram(logs, bins=BINS, range=(low, high))
    at = np.minimum(((logs - low) / (high - low) * BINS).astype(int), BINS - 1)
    sums, squares = (np.bincount(at, weights=logs**power, minlength=BINS) for power in (1, 2))
    n, s, q = (np.concatenate([[0.0], np.cumsum(one)]) for one in (counts, sums, squares))
    first, behind = np.meshgrid(np.arange(BINS + 1), np.arange(BINS + 1), indexing="ij")
    number = np.maximum(n[behind] - n[first], 1.0)
    # The spread of a class that covers a range of bins, from sums of squares.
    spread = q[behind] - q[first] - (s[behind] - s[first]) ** 2 / number
    spread = np.where(behind > first, np.maximum(spread, 0), np.inf)
    best, paths = spread[0].copy(), [np.zeros(BINS + 1, dtype=int)]
    ends: list[float] = []
    for _ in range(2, MOST_CLASSES + 1):
        every = best[:, None] + spread
        before = np.argmin(every, axis=0)
        now = every[before, np.arange(BINS + 1)]
        if now[BINS] > best[BINS] / 2:
            break
        best, paths = now, [*paths, before]
        bin_, bins = BINS, []
        for path in reversed(paths[1:]):
            bin_ = int(path[bin_])
            bins.append(bin_)
        ends = [float(10 ** edges[one]) for one in reversed(bins)]
    return [float(f"{end:.2g}") for end in ends]


def _bytes(value: float) -> str:
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.3g} B"


def _gaps(sessions: pl.DataFrame) -> Numbers:
    """The gaps between consecutive arrivals. Gaps between the periods of different files are left
    out.
    """
    start = sessions["start_s"].to_numpy()
    gaps = np.diff(start)
    if sessions["file"].n_unique() == 1:
        return gaps
    end = pl.col("start_s") + pl.col("duration_s")
    spans = sessions.group_by("file").agg(pl.col("start_s").min(), end.max().alias("end"))
    begins = spans.sort("start_s")
    reached = begins["end"].cum_max().shift(1)
    new = begins.filter(pl.col("start_s") > reached)["start_s"].to_numpy()
    return gaps[~np.isin(start[1:], new)]


def _fits_table(sessions: pl.DataFrame, gaps: Numbers, turns: pl.DataFrame) -> pl.DataFrame:
    sized = sessions.filter(pl.col("size") > 0)
    kinds = {kind: sized.filter(kind_of() == kind) for kind in KINDS}
    of = [("size", "B", _numbers(sized["size"]))]
    # With a single kind of session, its sizes are those of all sessions.
    of += [
        (f"{kind} size", "B", _numbers(some["size"]))
        for kind, some in kinds.items()
        if 0 < len(some) < len(sized)
    ]
    of += [
        ("gap", "s", gaps),
        ("response", "B", _numbers(_asked(turns)["response_bytes"])),
        ("think", "ms", _numbers(turns["think_ms"].drop_nulls())),
    ]
    rows = []
    for quantity, unit, values in of:
        every = fits(values)
        best = chosen(every, values)
        for fit in every:
            rows.append(
                {
                    "quantity": quantity,
                    "unit": unit,
                    "family": fit.family,
                    "parameters": fit.said(),
                    "ks": fit.distance,
                    "mean": fit.mean,
                    "fits": fit is best,
                }
            )
    columns = {
        "quantity": pl.String(), "unit": pl.String(), "family": pl.String(),
        "parameters": pl.String(), "ks": pl.Float64(), "mean": pl.Float64(), "fits": pl.Boolean(),
    }  # fmt: skip
    return pl.DataFrame(rows, columns, orient="row")


KINDS = ("upload", "download", "two-way")
"""Kinds of sessions: only the client sends, only the server sends, or both."""


def kind_of() -> pl.Expr:
    """The kind of a session with data."""
    return (
        pl.when(pl.min_horizontal("client_bytes", "server_bytes") > 0)
        .then(pl.lit("two-way"))
        .when(pl.col("sender") == "client")
        .then(pl.lit("upload"))
        .otherwise(pl.lit("download"))
    )


def _numbers(values: pl.Series) -> Numbers:
    return values.to_numpy().astype(float)


def _asked(turns: pl.DataFrame) -> pl.DataFrame:
    """The turns in which both sides send."""
    return turns.filter((pl.col("request_bytes") > 0) & (pl.col("response_bytes") > 0))


UNITS = ((1.0, "seconds"), (1e-3, "milliseconds"))
"""The resolutions of timestamps in logs."""


def _spread(sessions: pl.DataFrame) -> tuple[pl.DataFrame, tuple[float, str] | None]:
    """Sessions with their start times spread evenly over the resolution of the log, if gaps are not
    much longer than that resolution; and the resolution.
    """
    start = sessions["start_s"].to_numpy()
    if len(start) < FEWEST:
        return sessions, None
    mean_gap = (start[-1] - start[0]) / (len(start) - 1)
    for step in UNITS:
        unit = step[0]
        steps = np.round(start / unit)
        # Seconds since 1970 have seven decimals in a double.
        if unit > 0.01 * mean_gap and np.all(np.abs(start - steps * unit) < 1e-6):
            break
    else:
        return sessions, None
    place = (pl.int_range(pl.len()).over("step") + 0.5) / pl.len().over("step")
    spread = sessions.with_columns(step=pl.Series(steps)).with_columns(
        start_s=(pl.col("step") + place) * unit
    )
    return spread.drop("step"), step


def _arrivals(sessions: pl.DataFrame, gaps: Numbers, step: tuple[float, str] | None) -> str:
    """The arrival process of sessions: `Poisson`, `constant`, `neither`, or `too few` to tell."""
    if len(gaps) < FEWEST:
        return "too few"
    if step is not None:
        start = sessions["start_s"].to_numpy()
        # Multiples of the resolution, long enough for one session on average.
        each = step[0] * max(math.ceil(float(gaps.mean()) / step[0]), 1)
        first = math.floor(start.min() / step[0]) * step[0]
        counts = np.bincount(((start - first) / each).astype(int)).astype(float)
        return "Poisson" if is_poisson_by_counts(counts) else "neither"
    if is_poisson(gaps):
        return "Poisson"
    family = chosen(fits(gaps), gaps)
    # The few other gaps must not make up most of the time.
    is_constant = (
        family is not None
        and family.family == "constant"
        and abs(family.mean / float(gaps.mean()) - 1) <= CLOSE
    )
    return "constant" if is_constant else "neither"


def _totals(sessions: pl.DataFrame, turns: pl.DataFrame, gaps: Numbers, how: str) -> pl.DataFrame:
    size, start = sessions["size"], sessions["start_s"].to_numpy()
    length = sessions["duration_s"].to_numpy()
    # Plus one at each start, minus one at each end; at equal times, ends count first.
    times = np.concatenate([start, start + length])
    steps = np.concatenate([np.ones(len(start)), -np.ones(len(start))])
    at_once = np.cumsum(steps[np.lexsort((steps, times))])
    mean_gap = float(gaps.mean()) if len(gaps) else 0.0
    whole = float((start + length).max() - start.min())
    rate = 1 / mean_gap if mean_gap > 0 else None
    asked = _asked(turns)
    numbers = asked.group_by("session").len()["len"]
    row = {
        "sessions": len(sessions),
        "with_data": int((size > 0).sum()),
        "duration_s": whole,
        "sessions_per_s": rate,
        "arrivals": how,
        "gap_mean_s": mean_gap if len(gaps) else None,
        "gap_cv": float(gaps.std() / mean_gap) if mean_gap > 0 else None,
        "gap_correlation": following(gaps) if len(gaps) > 1 else None,
        "bytes": int(size.sum()),
        "size_mean_bytes": size.mean(),
        "size_p50_bytes": size.median(),
        "size_p95_bytes": size.quantile(0.95),
        "size_max_bytes": size.max(),
        "session_mean_s": float(length.mean()),
        "at_once_mean": float(length.sum()) / whole if whole > 0 else None,
        "at_once_max": int(max(at_once.max(), 1)),
        "sessions_with_turns": len(numbers),
        "turns_mean": numbers.mean(),
        "turns_max": numbers.max(),
        "request_mean_bytes": asked["request_bytes"].mean(),
        "response_mean_bytes": asked["response_bytes"].mean(),
        "server_p50_ms": asked["server_ms"].median(),
        "think_mean_ms": turns["think_ms"].mean(),
        "think_p50_ms": turns["think_ms"].median(),
        "rtt_min_ms": sessions["rtt_ms"].min(),
        "rtt_p50_ms": sessions["rtt_ms"].median(),
    }
    return pl.DataFrame([row], orient="row")


def _peers(sessions: pl.DataFrame) -> pl.DataFrame:
    """Sessions by server, the server with the most data first."""
    rtt = pl.col("rtt_ms")
    table = sessions.group_by("server").agg(
        pl.len().alias("sessions"),
        pl.col("client_bytes").sum(),
        pl.col("server_bytes").sum(),
        rtt.min().alias("rtt_min_ms"),
        rtt.median().alias("rtt_p50_ms"),
    )
    data = pl.col("client_bytes") + pl.col("server_bytes")
    return table.sort(-data, pl.col("server"))
