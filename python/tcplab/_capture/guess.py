"""Guesses the congestion control of a sender from its packets.

A forest of decision trees, trained on labelled runs of `sim` (`scripts/learn_guess.py`), votes on
the features of a connection. The certainty follows from the share of the trees that agree, and from
the number of features outside the range of runs of that algorithm.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tcplab._capture.features import features
from tcplab._capture.rounds import LOSS, MARK, TIMEOUT, Numbers, Rounds, rounds

MODEL = Path(__file__).parent / "guess.npz"

UNKNOWN = "unknown"
"""The answer if no guess is certain enough."""

LEAST_CERTAINTY = 0.5
"""A guess below this certainty is not reported."""

LEAST_ROUNDS = 20
"""The fewest round trips of a connection that is classified."""

LEAST_WINDOW = 4.0
"""The least median window over round trips, in segments. All algorithms are alike in smaller
windows.
"""

MOST_LIMITED = 25.0
"""The greatest part of the sender's time, in percent, that may be spent waiting for the application
or the receiver.
"""

MOST_MISSING = 0.01
"""The greatest part of the data that may be missing in the capture."""

MOST_NEAR = 0.1
"""The greatest part of the round trip that may lie between the sender and the capture point."""

MOST_PACKETS = 4_000_000
"""The number of packets that are processed together, which bounds the memory."""

MOST_ERROR = 0.3
"""A law of growth with a greater relative error is not reported."""

LEAF = 255
"""The feature number that marks a leaf."""

SCHEMA = {
    "connection": pl.Int64,
    "sender": pl.String,
    "receiver": pl.String,
    "guess": pl.String,
    "certainty": pl.Float64,
    "evidence": pl.String,
}


@dataclass(frozen=True)
class Model:
    """A trained model."""

    names: list[str]
    """The features, in the order of the numbers below."""
    classes: list[str]
    """The answers."""
    roots: npt.NDArray[np.uint32]
    """The first node of each tree; a node's left child follows it."""
    feature: npt.NDArray[np.uint8]
    """The feature that each node tests."""
    threshold: npt.NDArray[np.float32]
    """A feature up to this number leads to the left child."""
    right: npt.NDArray[np.uint16]
    """The right child, counted from the root; in a leaf, the number of the answer."""
    low: npt.NDArray[np.float32]
    """For each answer and feature, the number that 99 % of its runs exceed."""
    high: npt.NDArray[np.float32]
    """For each answer and feature, the number that 99 % of its runs do not exceed."""
    weights: npt.NDArray[np.float64]
    """The weights of the logistic certainty: a constant, and factors of the two values of
    `measures`.
    """


@cache
def model() -> Model:
    """The model shipped with the package."""
    with np.load(MODEL, allow_pickle=False) as file:
        data = {name: file[name] for name in file.files}
    names, classes = data.pop("names").tolist(), data.pop("classes").tolist()
    return Model(names=names, classes=classes, **data)


def shares(forest: Model, row: npt.NDArray[np.float32]) -> Numbers:
    """The share of the trees that vote for each answer."""
    votes = np.zeros(len(forest.classes))
    for root in forest.roots.tolist():
        node = root
        while (which := forest.feature[node]) != LEAF:
            is_left = row[which] <= forest.threshold[node]
            node = node + 1 if is_left else root + int(forest.right[node])
        votes[forest.right[node]] += 1
    return votes / len(forest.roots)


def measures(
    votes: Numbers,
    row: npt.NDArray[np.float32],
    low: npt.NDArray[np.float32],
    high: npt.NDArray[np.float32],
    names: list[str],
) -> tuple[int, Numbers]:
    """The answer with the most votes, and the inputs of its certainty: its odds among the trees,
    and the number of features outside the range of its runs.
    """
    best = int(votes.argmax())
    outside = (row < low[best] - 1e-6) | (row > high[best] + 1e-6)
    if outside[names.index("asks_marks")]:
        # Whether a SYN is ECN-capable depends on the algorithm alone, not on the path.
        return best, np.array([-np.inf, np.log1p(len(names))])
    odds = np.log((votes[best] + 0.01) / (1.01 - votes[best]))
    return best, np.array([odds, np.log1p(outside.sum())])


def vector(found: dict[str, float], names: list[str]) -> npt.NDArray[np.float32]:
    """The features in the order of a model."""
    return np.array([found[name] for name in names], dtype=np.float32)


def guess(found: dict[str, float], forest: Model | None = None) -> tuple[str, float]:
    """The most likely answer and its certainty."""
    forest = model() if forest is None else forest
    row = vector(found, forest.names)
    best, by = measures(shares(forest, row), row, forest.low, forest.high, forest.names)
    if not np.isfinite(by).all():
        return forest.classes[best], 0.0
    logit = float(forest.weights[0] + (forest.weights[1:] * by).sum())
    return forest.classes[best], round(1 / (1 + float(np.exp(-logit))), 3)


def refusal(flow: dict[str, Any]) -> str | None:
    """The reason why a connection cannot be classified, from its row in the table of connections;
    `None` if it can.
    """
    side = flow["sender"]
    if not flow[f"{side}_bytes"]:
        return "no data"
    near, far = flow[f"{side}_near_rtt_ms"] or 0.0, flow[f"{side}_rtt_min_ms"]
    if far is None:
        return "no ACK of its data is in the capture"
    if flow[f"{side}_rtt_samples"] < LEAST_ROUNDS:
        return "too short: too few round trips were measured"
    if near > MOST_NEAR * (near + far):
        return f"captured far from the sender: {near:.1f} of {near + far:.1f} ms lie between"
    if (limited := flow["time_application_percent"] or 0.0) > MOST_LIMITED:
        return f"limited by the application for {limited:.0f} % of the time"
    if (limited := flow["time_peer_window_percent"] or 0.0) > MOST_LIMITED:
        return f"limited by the receiver's window for {limited:.0f} % of the time"
    missing = flow[f"{side}_missing_bytes"] / flow[f"{side}_bytes"]
    if missing > MOST_MISSING:
        return f"{100 * missing:.0f} % of the data is missing in the capture"
    return None


def verdict(packets: pl.DataFrame, flow: dict[str, Any]) -> tuple[str, float | None, str]:
    """The guess for a connection that is not refused, its certainty, and the evidence in words."""
    seen = rounds(packets, flow)
    count = 0 if seen is None else len(seen.window)
    if seen is None or count < LEAST_ROUNDS:
        return UNKNOWN, None, f"too short: {count} round trips; {LEAST_ROUNDS} are needed"
    usual = float(np.median(seen.window))
    if usual < LEAST_WINDOW:
        return UNKNOWN, None, f"the window is too small to tell: {usual:.0f} segments"
    found = features(seen)
    name, certainty = guess(found)
    evidence = ", ".join(words(seen, found))
    if certainty < LEAST_CERTAINTY:
        return UNKNOWN, certainty, f"no algorithm matches well enough; closest: {name}: {evidence}"
    return name, certainty, evidence


GROWTH_WORDS = {
    "reno": "by one segment a round trip",
    "half": "by one segment in two round trips",
    "hybla": "by Hybla's law",
    "scalable": "by one segment for 100",
    "highspeed": "by HighSpeed's law",
    "bic": "by BIC's search",
    "cubic": "by CUBIC's law",
    "htcp": "by H-TCP's law",
    "illinois": "by Illinois' law",
    "veno": "by Veno's law",
    "vegas": "by Vegas' law",
    "yeah": "by YeAH's law",
}


def words(seen: Rounds, found: dict[str, float]) -> list[str]:
    """The evidence in words."""
    said = [f"{len(seen.window)} round trips"]
    for cause, name in ((LOSS, "losses"), (MARK, "marks")):
        chosen = (seen.cause == cause) & (seen.before >= 8)
        if number := int(chosen.sum()):
            kept = np.median(seen.after[chosen] / seen.before[chosen])
            said.append(f"{number} episodes of {name} left {kept:.2f} of the window")
    if number := int((seen.cause == TIMEOUT).sum()):
        said.append(f"{number} timeouts")
    if not len(seen.cause):
        said.append("no loss")
    laws = {name: found[f"grows_{name}"] for name in GROWTH_WORDS}
    best = min(laws, key=lambda name: laws[name])
    if found["epochs"] > 0 and laws[best] <= MOST_ERROR:
        said.append(f"growth best told {GROWTH_WORDS[best]} (off by {100 * laws[best]:.0f} %)")
    if found["falls"] > 0.01:
        said.append(f"falls to {found['fall']:.2f} of the window without a loss")
    if found["dips"] > 0.3:
        said.append(f"{found['dips']:.1f} falls to a few segments in 10 s")
    if found["pace_high"] - found["pace_low"] > 0.3:
        said.append("paced")
    if seen.asks_marks:
        said.append("its SYN may be marked")
    return said


def ends(flow: dict[str, Any]) -> tuple[str, str]:
    """The sender and the receiver of a connection."""
    side = flow["sender"]
    other = "server" if side == "client" else "client"

    def end(which: str) -> str:
        address, port = flow[which], flow[f"{which}_port"]
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    return end(side), end(other)


def table(flows: pl.DataFrame, packets: Callable[[list[int]], pl.DataFrame]) -> pl.DataFrame:
    """The guesses for the connections of a capture. `packets` returns the packets of connections,
    given their numbers.
    """
    said: list[tuple[int, str, str, str, float | None, str]] = []
    left = []
    for flow in flows.iter_rows(named=True):
        if reason := refusal(flow):
            said.append((flow["connection"], *ends(flow), UNKNOWN, None, reason))
        else:
            left.append(flow)
    for batch in _batches(left):
        parts = packets([flow["connection"] for flow in batch]).partition_by(
            "connection", as_dict=True
        )
        said += [
            (flow["connection"], *ends(flow), *verdict(parts[flow["connection"],], flow))
            for flow in batch
        ]
    return pl.DataFrame(said, schema=SCHEMA, orient="row")


def _batches(flows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Batches of connections whose packets are processed together."""
    found: list[list[dict[str, Any]]] = []
    room = 0
    for flow in flows:
        count = flow["client_packets"] + flow["server_packets"]
        if not found or room < count:
            found.append([])
            room = MOST_PACKETS
        found[-1].append(flow)
        room -= count
    return found


@contextmanager
def seekable(path: Path) -> Iterator[Path]:
    """A file that can be read twice: standard input is first copied to one."""
    if str(path) != "-":
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="tcplab-capture-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield Path(file.name)
