"""The reason for a gain: the causes that the sender waits for, before and after."""

from __future__ import annotations

from typing import Any

import polars as pl

from tcplab import capture
from tcplab._advice.levers import Candidate
from tcplab._advice.question import Question
from tcplab._advice.stages import Laboratory

MOST_PACKETS = 3_000_000
"""Runs with more packets are not captured: that would take longer than the advice."""


def record(question: Question) -> dict[str, Any]:
    """The record of packets at the sender of the first flow, both ways."""
    flow = question.mine()[0]
    lanes = question.plan["lanes"]
    ends = (lanes[flow["forward"][0]]["name"], lanes[flow["back"][-1]]["name"])
    return {"record": {"samples": "off", "links": "off", "captures": list(ends)}}


def explained(laboratory: Laboratory, candidate: Candidate) -> None:
    """Runs today's setting and another once more, with captures."""
    question = laboratory.question
    seed = question.seed
    laboratory.run(
        "why",
        [Candidate(), candidate],
        question.points()[:1],
        range(seed, seed + 1),
        changes=record(question),
    )


def shares(results: Any) -> list[dict[str, Any]]:
    """The share of the sender's time by cause, with each setting: of all connections, weighted by
    how long they were.
    """
    found = []
    for run, name in results.runs.select("run", "variant").iter_rows():
        folder = results.folder(run)
        if folder is None:
            continue
        flows = capture.flows(folder / "capture.pcapng")
        if flows.is_empty():
            continue
        weight = pl.col("duration_s").fill_null(0.0)
        row: dict[str, Any] = {"candidate": name}
        for cause in capture.WAITS:
            column = f"time_{cause}_percent"
            mean = flows.select((pl.col(column).fill_null(0.0) * weight).sum() / weight.sum())
            row[cause] = mean.item()
        found.append(row)
    return found
