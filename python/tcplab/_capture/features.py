"""Features that distinguish congestion controls: how the window grows, what a loss leaves of it,
and whether ACKs clock the sender.

The laws of growth and of reduction are those of Linux 6.12, evaluated per round trip.
"""

from __future__ import annotations

import numpy as np

from tcplab._capture.rounds import LOSS, MARK, TIMEOUT, Indices, Numbers, Rounds

LEAST_EPOCH = 4
"""The number of round trips that an epoch of growth needs to be compared with the laws."""

UNKNOWN = -1.0
"""The value of a feature that a connection does not show."""

GROWTH = ("reno", "half", "hybla", "scalable", "highspeed", "bic", "cubic", "htcp", "illinois",
          "veno", "vegas", "yeah")  # fmt: skip
"""Laws of growth. `half` is Reno's growth counted per ACK, with one ACK for two segments."""

REDUCTION = ("reno", "cubic", "fixed", "scalable", "highspeed", "htcp", "westwood", "veno",
             "illinois", "yeah")  # fmt: skip
"""Laws of reduction. `fixed` keeps 80 %, as BIC and NV do."""


def features(seen: Rounds) -> dict[str, float]:
    """The features of a connection."""
    rtt = _filled(seen.rtt_min)
    base = float(np.nanmin(seen.rtt_min)) if np.isfinite(seen.rtt_min).any() else UNKNOWN
    high = float(np.nanmax(seen.rtt)) if np.isfinite(seen.rtt).any() else UNKNOWN
    window = seen.window
    slow_start = _slow_start_end(seen)
    calm = ~seen.repairing
    calm[:slow_start] = False
    steady = calm & np.roll(calm, 1)
    steady[0] = False
    step = np.diff(window, prepend=window[0])
    part = step / np.maximum(np.roll(window, 1), 1)
    queue = window * (1 - base / np.maximum(rtt, base))
    before = np.roll(window, 1)
    falls = steady & (part < -0.1) & (before >= 8)
    count = max(int(steady.sum()), 1)
    found = {
        "window": float(np.log(max(np.median(window), 1.0))),
        "rtt": float(np.log(max(base, 1e-6))),
        "delay": high / base,
        "episodes": len(seen.cause) / len(window),
        "timeouts": float((seen.cause == TIMEOUT).mean()) if len(seen.cause) else 0.0,
        "marks": float((seen.cause == MARK).sum() / len(window)),
        "asks_marks": float(seen.asks_marks),
        "calm": float(steady.mean()),
        "pace_low": float(seen.ack_delay[0]),
        "pace": float(seen.ack_delay[1]),
        "pace_high": float(seen.ack_delay[2]),
        "falls": float(falls.sum()) / count,
        "fall": float(np.median(1 + part[falls])) if falls.any() else UNKNOWN,
        "fall_spread": _spread(1 + part[falls]),
        "dips": _dips(window, seen.time),
        "queue": _quantile(queue[calm], 0.5),
        "queue_high": _quantile(queue[calm], 0.9),
        "queue_share": _quantile(queue[calm] / np.maximum(window[calm], 1), 0.5),
        "rate_spread": _spread(seen.sent[calm] / np.maximum(rtt[calm], 1e-6))
        / max(_quantile(seen.sent[calm] / np.maximum(rtt[calm], 1e-6), 0.5), 1e-6),
        "flat": float((steady & (np.abs(step) < 0.5)).sum()) / count,
        "up_one": float((steady & (np.abs(step - 1) < 0.5)).sum()) / count,
        "up_more": float((steady & (step >= 1.5)).sum()) / count,
        "down_one": float((steady & (np.abs(step + 1) < 0.5)).sum()) / count,
        "step_low": _quantile(step[steady], 0.25),
        "step": _quantile(step[steady], 0.5),
        "step_high": _quantile(step[steady], 0.75),
        "step_mean": float(np.clip(step[steady], -2, 50).mean()) if steady.any() else UNKNOWN,
        "part": _quantile(part[steady], 0.5),
        "part_high": _quantile(part[steady], 0.9),
        "step_empty": _mean(step[steady & (queue < 2)]),
        "step_queue": _mean(step[steady & (queue > 4)]),
        "start_growth": _start_growth(window, slow_start),
        "start_end": float(window[slow_start - 1] / window.max()),
        "start_queue": float(rtt[slow_start - 1] / base),
        "start_lost": float(bool(seen.repairing[: slow_start + 1].any())),
    }
    found |= _reductions(seen, rtt, base, high)
    found |= _growths(seen, rtt, base, high, slow_start)
    return {name: _clean(value) for name, value in found.items()}


def _clean(value: float) -> float:
    return float(np.float32(np.clip(value, -100, 1000))) if np.isfinite(value) else UNKNOWN


def _filled(values: Numbers) -> Numbers:
    """Values with each unknown number replaced by the last known one."""
    known = np.isfinite(values)
    if not known.any():
        return np.ones_like(values)
    place = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    place[place < 0] = int(np.flatnonzero(known)[0])
    return np.asarray(values[place])


def _quantile(values: Numbers, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else UNKNOWN


def _mean(values: Numbers) -> float:
    return float(np.clip(values, -3, 30).mean()) if len(values) >= 5 else UNKNOWN


def _spread(values: Numbers) -> float:
    if len(values) < 2:
        return UNKNOWN
    return float(np.quantile(values, 0.75) - np.quantile(values, 0.25))


def _slow_start_end(seen: Rounds) -> int:
    """The first round trip after slow start: after a loss, or when growth is below a fifth."""
    window = seen.window
    slow = 0
    for place in range(1, len(window)):
        if seen.repairing[place]:
            return place
        slow = slow + 1 if window[place] < 1.2 * window[place - 1] else 0
        if slow == 2:
            return place - 1
    return len(window) - 1


def _start_growth(window: Numbers, end: int) -> float:
    stop = min(end, 6)
    if stop < 2:
        return UNKNOWN
    return float((window[stop - 1] / max(window[0], 1.0)) ** (1 / (stop - 1)))


def _dips(window: Numbers, time: Numbers) -> float:
    """The number of drops to a few segments and back within a few round trips, per ten seconds:
    PROBE_RTT.
    """
    usual = np.median(window)
    if usual < 12:
        return UNKNOWN
    low = window <= 6
    begins = low[1:] & ~low[:-1]
    return float(begins.sum() / max(time[-1] - time[0], 1.0) * 10)


def _reductions(seen: Rounds, rtt: Numbers, base: float, high: float) -> dict[str, float]:
    """The part of the window kept after losses and marks, and its distance from each law."""
    lost = (seen.cause == LOSS) & (seen.before >= 8)
    # The first episode ends slow start, where the flight may far exceed the acknowledged data.
    kept = np.clip(seen.after / np.maximum(seen.before, 1), 0, 1.5)
    marked = (seen.cause == MARK) & (seen.before >= 8)
    found = {
        "kept_low": _quantile(kept[lost], 0.1),
        "kept": _quantile(kept[lost], 0.5),
        "kept_high": _quantile(kept[lost], 0.9),
        "kept_spread": _spread(kept[lost]),
        "kept_number": float(min(lost.sum(), 50)),
        "kept_marked": _quantile(kept[marked], 0.5),
        "kept_marked_spread": _spread(kept[marked]),
        "lost_window": _quantile(np.log(seen.before[lost]), 0.5) if lost.any() else UNKNOWN,
    }
    at = seen.first[lost]
    window, delay = seen.before[lost], np.maximum(rtt[np.maximum(at - 1, 0)], base)
    empty = base / delay
    queue = window * (1 - empty)
    highspeed = np.clip(
        0.5 - 0.4 * np.log(np.maximum(window, 38) / 38) / np.log(83000 / 38), 0.1, 1
    )
    most = max(high - base, 1e-9)
    laws = {
        "reno": np.full(len(window), 0.5),
        "cubic": np.full(len(window), 0.7),
        "fixed": np.where(window > 14, 0.8, 0.5),
        "scalable": np.full(len(window), 0.875),
        "highspeed": 1 - highspeed,
        "htcp": np.clip(empty, 0.5, 0.8),
        "westwood": empty,
        "veno": np.where(queue < 3, 0.8, 0.5),
        "illinois": 1 - np.clip(0.125 + 0.375 * ((delay - base) / most - 0.1) / 0.7, 0.125, 0.5),
        "yeah": 1 - np.clip(1 - empty, 0.125, 0.5),
    }
    for name in REDUCTION:
        error = np.abs(kept[lost] - laws[name])
        found[f"kept_{name}"] = _quantile(error, 0.5)
        found[f"kept_{name}_high"] = _quantile(error, 0.8)
    # For laws that depend on the delay: the correlation between delay and the part kept.
    if lost.sum() >= 4 and np.std(empty) > 0.02 and np.std(kept[lost]) > 0.005:
        found["kept_by_delay"] = float(np.corrcoef(empty, kept[lost])[0, 1])
    else:
        found["kept_by_delay"] = UNKNOWN * 2
    return found


def _growths(
    seen: Rounds, rtt: Numbers, base: float, high: float, slow_start: int
) -> dict[str, float]:
    """The distance of the growth between losses from each law."""
    errors: dict[str, list[float]] = {name: [] for name in GROWTH}
    weights: list[float] = []
    slopes: list[float] = []
    bends: list[float] = []
    late: list[float] = []
    peak = 0.0
    for begin, end, origin, most, kept in _epochs(seen, slow_start):
        peak = most if most >= peak else most * 0.85
        window, delay = seen.window[begin:end], np.maximum(rtt[begin:end], base)
        after = seen.time[begin:end] - origin
        rise = window - window[0]
        bounds = max(float(np.ptp(window)), 3.0)
        laws = _laws(window, delay, after, base=base, high=high, peak=peak, kept=kept)
        for name, law in laws.items():
            error = np.sqrt(np.mean((law - rise) ** 2)) / bounds
            errors[name].append(float(min(error, 5.0)))
        weights.append(float(end - begin))
        slopes.append(float(rise[-1]) / (end - begin - 1))
        if end - begin >= 10 and np.ptp(window) >= 5:
            bends.append(float(np.clip(rise[len(rise) // 2] / max(rise[-1], 1.0), -1, 2)))
        second = after > 1.5
        if second.sum() >= 4 and (~second).sum() >= 4:
            step = np.diff(window)
            late.append(float(np.clip(step[second[1:]].mean() - step[~second[1:]].mean(), -20, 50)))
    found: dict[str, float] = {}
    medians = {name: _weighted(values, weights) for name, values in errors.items()}
    least = min(medians.values())
    for name in GROWTH:
        found[f"grows_{name}"] = medians[name]
        found[f"worse_{name}"] = medians[name] - least
    found["slope"] = _weighted(slopes, weights)
    found["slope_spread"] = _spread(np.array(slopes))
    found["slope_hybla"] = found["slope"] / max(base / 0.025, 1.0) ** 2
    found["bend"] = _quantile(np.array(bends), 0.5)
    found["late"] = _quantile(np.array(late), 0.5)
    found["epochs"] = float(min(len(weights), 50))
    found["epoch"] = float(np.log(max(weights))) if weights else UNKNOWN
    return found


def _epochs(seen: Rounds, slow_start: int) -> list[tuple[int, int, float, float, float]]:
    """Epochs of growth: their round trips, start time, the window before and the part kept."""
    found = []
    stops = [*seen.first.tolist(), len(seen.window) - 1]
    if stops[0] - slow_start > LEAST_EPOCH:
        found.append(
            (
                slow_start,
                stops[0],
                float(seen.time[slow_start]),
                float(seen.window[slow_start]),
                0.5,
            )
        )
    for place in range(len(seen.cause)):
        begin, end = int(seen.last[place]) + 1, int(stops[place + 1])
        if seen.cause[place] == TIMEOUT or end - begin < LEAST_EPOCH:
            continue
        kept = float(np.clip(seen.after[place] / max(seen.before[place], 1.0), 0, 1))
        before = float(seen.before[place])
        found.append((begin, end, float(seen.end[place]), before, kept))
    return found


def _laws(
    window: Numbers,
    delay: Numbers,
    after: Numbers,
    *,
    base: float,
    high: float,
    peak: float,
    kept: float,
) -> dict[str, Numbers]:
    """How far each law lets the window rise by each round trip, given the observed windows and
    delays.
    """
    ones = np.ones(len(window))
    queue = window * (1 - base / delay)
    scalable = np.maximum(window / 100, 1)
    wide = np.maximum(window, 38)
    cut = 0.5 - 0.4 * np.log(wide / 38) / np.log(83000 / 38)
    fast = np.maximum(np.ceil(wide**0.8 * 0.078 * 2 * cut / (2 - cut)), 1)
    # H-TCP: from one second after the loss on, growth depends on time.
    wait = np.maximum(after - 1, 0)
    factor = (1 + 10 * wait + (wait / 2) ** 2) / np.clip(0.1 / base, 0.5, 10)
    htcp = 2 * np.maximum(factor, 1) * (1 - np.clip(kept, 0.5, 0.8))
    most = max(high - base, 1e-9)
    late = delay - base
    illinois = np.where(late <= most / 100, 10, np.clip(_illinois(late, most), 0.3, 10))
    below = peak - window
    bic = np.where(below > 0, np.clip(below / 4, 0.2, 16), np.clip(-below / 3, 0.2, 16))
    bic = np.where(window <= 14, 1, bic)
    steps = {
        "reno": ones,
        "half": ones / 2,
        "hybla": ones * max(base / 0.025, 1.0) ** 2,
        "scalable": scalable,
        "highspeed": fast / 2,
        "bic": bic,
        "htcp": htcp,
        "illinois": np.where(window < 15, 1, illinois),
        "veno": np.where(queue < 3, 1.0, 0.5),
        "vegas": np.sign(3 - window * (delay / base - 1))
        * (np.abs(window * (delay / base - 1) - 3) > 1),
        "yeah": np.where((queue <= 80) & (late <= base / 8), scalable, 1.0),
    }
    rises = {name: np.concatenate([[0.0], np.cumsum(step[:-1])]) for name, step in steps.items()}
    return rises | {"cubic": _cubic(window, after, delay, base, peak)}


def _illinois(late: Numbers, most: float) -> Numbers:
    least = most / 100
    k1 = (most - least) * 0.3 * 10 / (10 - 0.3)
    k2 = (most - least) * 0.3 / (10 - 0.3) - least
    return np.asarray(k1 / np.maximum(k2 + late, 1e-9))


def _cubic(window: Numbers, after: Numbers, delay: Numbers, base: float, peak: float) -> Numbers:
    peak = max(peak, float(window[0]))
    wait = np.cbrt((peak - window[0]) / 0.4)
    curve = peak + 0.4 * (after + base - wait) ** 3
    friendly = window[0] + 0.529 * np.arange(len(window))
    rise = np.maximum(np.maximum(curve, friendly) - window[0], 0)
    return np.asarray(rise - rise[0])


def _weighted(values: list[float], weights: list[float]) -> float:
    """The weighted median."""
    if not values:
        return UNKNOWN
    order: Indices = np.argsort(np.array(values), kind="stable")
    total = np.cumsum(np.array(weights)[order])
    return values[int(order[int(np.searchsorted(total, total[-1] / 2))])]
