"""Analytical models of a flow's throughput as a function of loss and round-trip time.

All take round-trip times in milliseconds and the probability that a segment is lost as a share
(0.001 is 0.1 %), and return Mbit/s of data. Each states its assumptions. `beside` puts them next to
measurements, and `tcplab.plot.models` draws them.
"""

from __future__ import annotations

import math

import polars as pl

from tcplab._results.results import Results

MSS = 1448
"""Bytes of data in a segment on Ethernet, with timestamps."""


def mathis(rtt_ms: float, loss: float, *, mss: int = MSS, ack_every: int = 2) -> float:
    """Reno's rate with few losses, all repaired without a timeout: `C/sqrt(p)` segments per round
    trip, with `C = sqrt(3/(2b))` for an ACK for every b-th segment (Mathis, Semke, Mahdavi and Ott:
    The macroscopic behavior of the TCP congestion avoidance algorithm, CCR 27(3), 1997, equation 3
    and table 1).
    """
    _check(rtt_ms, loss)
    return _rate(math.sqrt(1.5 / ack_every / loss), rtt_ms, mss)


def pftk(
    rtt_ms: float,
    loss: float,
    *,
    mss: int = MSS,
    ack_every: int = 2,
    rto_ms: float | None = None,
    most_segments: float = math.inf,
) -> float:
    """Reno's rate with timeouts, which dominate fast retransmissions where losses are many (Padhye,
    Firoiu, Towsley and Kurose: Modeling TCP throughput, SIGCOMM 1998, equation 30; RFC 5348 section
    3.1).

    Args:
        rtt_ms: The mean round-trip time.
        loss: The probability of a loss event.
        mss: Bytes of data in a segment.
        ack_every: The number of segments that an ACK covers.
        rto_ms: The retransmission timeout; by default four round-trip times, but at least 200 ms.
        most_segments: The largest window that the receiver allows.
    """
    _check(rtt_ms, loss)
    timeout = max(4 * rtt_ms, 200.0) if rto_ms is None else rto_ms
    repair = rtt_ms * math.sqrt(2 * ack_every * loss / 3)
    waits = min(1.0, 3 * math.sqrt(3 * ack_every * loss / 8))
    per_ms = 1 / (repair + timeout * waits * loss * (1 + 32 * loss**2))
    return _rate(min(most_segments, per_ms * rtt_ms), rtt_ms, mss)


def reno(rtt_ms: float, loss: float, *, mss: int = MSS) -> float:
    """The rate of a Reno that gets an ACK for each segment, halves its window at each loss and
    never times out: `sqrt(2(1-p)/p)` segments per round trip (equation 2 of Grieco and Mascolo
    2004, from the balance of growth and decrease for each ACK).
    """
    _check(rtt_ms, loss)
    return _rate(math.sqrt(2 * (1 - loss) / loss), rtt_ms, mss)


def westwood(rtt_ms: float, loss: float, *, queueing_ms: float, mss: int = MSS) -> float:
    """The rate of Westwood+, which sets its window at a loss to what the path holds without a
    queue: `sqrt((1-p)/p) / sqrt(RTT Tq)` (equation 3 of Grieco and Mascolo 2004).

    Args:
        rtt_ms: The mean round-trip time.
        loss: The probability of a loss.
        queueing_ms: The part of it spent in queues: the mean RTT less the least.
        mss: Bytes of data in a segment.
    """
    _check(rtt_ms, loss)
    if not 0 < queueing_ms <= rtt_ms:
        raise ValueError(f"queueing_ms: {queueing_ms} is not in (0, {rtt_ms}]")
    segments = math.sqrt((1 - loss) / loss) * math.sqrt(rtt_ms / queueing_ms)
    return _rate(segments, rtt_ms, mss)


def cubic(
    rtt_ms: float, loss: float, *, c: float = 0.4, beta: float = 0.7, mss: int = MSS
) -> float:
    """CUBIC's rate: `(C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT/p)^(3/4)` segments per round trip,
    and at least the rate of the Reno-friendly region, which is Reno's mean with an ACK for every
    segment (RFC 9438, section 5).
    """
    _check(rtt_ms, loss)
    seconds = rtt_ms / 1000
    own = (c * (3 + beta) / (4 * (1 - beta))) ** 0.25 * (seconds / loss) ** 0.75
    friendly = math.sqrt(1.5 / loss)
    return _rate(max(own, friendly), rtt_ms, mss)


def bbr_ceiling(rate_mbit_s: float, loss: float) -> float:
    """The highest rate that BBR (version 1) gets from a link that loses packets at random: the part
    of a full link that arrives, `rate (1 - p)`, as long as its probes at 1.25 times the estimated
    rate deliver more than that estimate. This holds up to a loss of 1 - 1/1.25 = 20 %. Beyond, each
    probe delivers less than the one before, and the rate falls to zero (Cardwell et al., BBR, ACM
    Queue 14(5), 2016, figure 8 and text).
    """
    if rate_mbit_s <= 0:
        raise ValueError(f"rate_mbit_s: {rate_mbit_s} is not above 0")
    if not 0 <= loss < 1:
        raise ValueError(f"loss: {loss} is not in [0, 1)")
    return rate_mbit_s * (1 - loss) if 1.25 * (1 - loss) > 1 else 0.0


MODELS = ("mathis", "pftk", "cubic")
"""The models that need only the round-trip time and the losses of a flow."""


def beside(results: Results, *, ack_every: int = 1) -> pl.DataFrame:
    """Compares models with the TCP flows of all runs: a row for each flow that had losses, with
    `goodput_mbit_s`, `rtt_mean_ms`, `loss` (losses that reduced the window, as a share of the
    segments sent) and a column for each of the `MODELS`.

    The models assume a flow that always has data to send, and whose window is limited by losses
    only.

    Args:
        results: The results.
        ack_every: The number of segments per ACK that increases the window: 1 if growth counts
            every segment that an ACK covers, as in Linux and RFC 3465; 2 if a delayed ACK counts as
            one (`abc = "off"`).
    """
    rows = results.joined("flows").filter(
        pl.col("transport") == "tcp",
        pl.col("loss_episodes") > 0,
        pl.col("rtt_mean_ms").is_not_null(),
        pl.col("goodput_mbit_s") > 0,
    )
    taken = {one: f"sweep.{one}" for one in results.swept if one in ("loss", *MODELS)}
    rows = rows.rename(taken)
    rows = rows.with_columns((pl.col("loss_episodes") / pl.col("sent_segments")).alias("loss"))
    pairs = rows.select("rtt_mean_ms", "loss").rows()
    predicted = {
        "mathis": [mathis(*pair, ack_every=ack_every) for pair in pairs],
        "pftk": [pftk(*pair, ack_every=ack_every) for pair in pairs],
        "cubic": [cubic(*pair) for pair in pairs],
    }
    swept = [taken.get(one, one) for one in results.swept]
    about = ["run", *swept, "repetition", "flow", "cc"]
    measured = ["goodput_mbit_s", "rtt_mean_ms", "loss"]
    return rows.select(*about, *measured).with_columns(
        *(pl.Series(name, values, dtype=pl.Float64) for name, values in predicted.items())
    )


def _rate(segments: float, rtt_ms: float, mss: int) -> float:
    """Converts segments per round trip to Mbit/s."""
    return segments * mss * 8 / (rtt_ms * 1000)


def _check(rtt_ms: float, loss: float) -> None:
    if not isinstance(rtt_ms, int | float):
        raise TypeError(f"rtt_ms: {rtt_ms!r} is not a number of milliseconds")
    if not rtt_ms > 0:
        raise ValueError(f"rtt_ms: {rtt_ms} is not above 0")
    if not 0 < loss < 1:
        raise ValueError(f"loss: {loss} is not in (0, 1)")
