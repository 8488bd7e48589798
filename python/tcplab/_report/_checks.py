"""Assesses whether an answer can be trusted: warnings, missing runs, and checks that were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tcplab import statistics
from tcplab._core import printable
from tcplab._experiment.quantities import quantity
from tcplab._report._comparison import Question
from tcplab._report._path import variants_of
from tcplab._report._sawtooth import cycles
from tcplab._results.flow_summary import is_unfinished
from tcplab._results.summary_table import are_equal, unconnected
from tcplab._results.versus import rounded
from tcplab._store.manifest import Asked
from tcplab._text.english import counted, listed
from tcplab._warnings import warnings_of

MOST_REASONS = 5
"""The number of failed runs that are listed with their reasons."""

FEW_PACKETS = 4
"""A shorter queue drops packets of slow-start bursts: the ACK of two segments releases four."""

FEW = 0.01
"""The share of many transfers that the end of a run may cut short without a remark."""


@dataclass(frozen=True)
class Remark:
    """Something to know before the answer is used."""

    weight: str
    """`bad`: the answer does not hold as it stands; `care`: it may not be the intended answer."""
    title: str
    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trust:
    """Whether the answer can be trusted."""

    weight: str
    verdict: str
    remarks: list[Remark]
    """The warnings, `bad` ones first."""
    checks: list[Remark]
    """The checks that support the answer."""


def trust(asked: Question, folders: Sequence[Asked]) -> Trust:
    """Everything that speaks against the answer, and for it."""
    remarks = [
        *_missing(asked, folders),
        *_unfinished(asked),
        *_queues(asked),
        *_repetitions(asked),
        *_without_effect(asked),
        *_short(asked),
        *_warned(asked),
    ]
    remarks.sort(key=lambda one: ["bad", "care"].index(one.weight))
    weight = remarks[0].weight if remarks else "good"
    named = ", ".join(one.title[:1].lower() + one.title[1:] for one in remarks)
    path = "the path and the traffic of the experiment"
    verdict = {
        "good": f"Yes, for {path}, {_by(asked)}: there are no warnings.",
        "care": f"With care: {named}.",
        "bad": f"Not as it stands: {named}.",
    }[weight]
    return Trust(weight, verdict, remarks, _checks(asked, folders))


def _missing(asked: Question, folders: Sequence[Asked]) -> list[Remark]:
    """Runs that failed, and runs that were asked for and are missing."""
    failed = [(run, why) for one in folders for run, why in one.failed.items()]
    there = set(asked.results.runs["run"])
    number = sum(len(one.runs) for one in folders)
    absent = [
        one
        for folder in folders
        for one in folder.runs
        if one.run not in there and one.run not in folder.failed
    ]
    remarks = []
    if failed:
        details = [f"{run}: {why.splitlines()[0]}" for run, why in failed[:MOST_REASONS]]
        if (more := len(failed) - MOST_REASONS) > 0:
            details.append(f"and {more} more")
        text = f"{len(failed)} of {number} runs failed, and are left out of all numbers."
        remarks.append(Remark("bad", f"{counted(len(failed), 'run')} failed", text, (*details,)))
    if absent:
        text = (
            f"{len(absent)} of {number} runs have not been run: the command that began them runs "
            "them."
        )
        title = f"{counted(len(absent), 'run')} {'is' if len(absent) == 1 else 'are'} missing"
        remarks.append(Remark("bad", title, text))
    return remarks


def _unfinished(asked: Question) -> list[Remark]:
    """Flows that never connected, and flows that the end of the experiment cut short."""
    remarks = []
    if said := unconnected(asked.results):
        remarks.append(Remark("bad", "Flows never connected", said))
    flows = asked.results.flows
    cut = flows.filter(is_unfinished() & pl.col("goodput_mbit_s").is_not_null())
    if not cut.is_empty():
        runs = cut["run"].n_unique()
        text = (
            f"{counted(len(cut), 'flow')} of {len(flows)} with a size did not complete, in "
            f"{counted(runs, 'run')}. They have no completion time. {_needed(asked, cut)}"
        )
        remarks.append(Remark("bad", f"{counted(len(cut), 'flow')} unfinished", text))
    began, done = (int(flows[name].sum()) for name in ("transfers", "completed_transfers"))
    if began and began > done:
        share = (began - done) / began
        text = (
            f"{began - done:,} of {began:,} transfers did not complete. In percentiles they count "
            "as longest."
        )
        if share > FEW:
            weight = "bad" if share > 0.05 else "care"
            remarks.append(Remark(weight, "Transfers unfinished", text))
    return remarks


def _needed(asked: Question, cut: pl.DataFrame) -> str:
    """The time that unfinished flows would need at the rate that they had."""
    rates = cut.group_by("flow").agg(pl.col("goodput_mbit_s").min())
    slowest = dict(rates.iter_rows())
    needed = 0.0
    for plan in variants_of(asked.results.plans):
        for flow in plan["flows"]:
            size = quantity(str(flow["traffic"].get("size") or ""))
            if size is not None and (rate := slowest.get(flow["name"])):
                needed = max(needed, float(size[1]) * 8e-6 / rate)
    if not needed:
        return "A longer `duration` may let them finish."
    return f"At the rate that they had, the slowest needs about {rounded(round(needed))} s."


def _queues(asked: Question) -> list[Remark]:
    """Bottlenecks whose queue is too short for the bursts of any sender."""
    found: dict[str, str] = {}
    for plan in variants_of(asked.results.plans):
        for number in dict.fromkeys(flow["bottleneck"] for flow in plan["flows"]):
            lane = plan["lanes"][number]
            limit, mtu = lane["queue"]["limit"], lane["mtu"]
            packets = limit["packets"] if "packets" in limit else limit["bytes"] // mtu
            if packets < FEW_PACKETS:
                found.setdefault(printable(lane["name"]), counted(packets, "packet"))
    if not found:
        return []
    lanes = listed(f"that of {lane} {size}" for lane, size in found.items())
    text = (
        f"A bottleneck's queue has room for next to nothing: {lanes}. Bursts of a few packets, "
        "which every sender makes, are dropped, and numbers say more about that than about what is "
        "compared. Give the queue 20 packets or so, unless this is what is meant."
    )
    return [Remark("bad", f"A queue of {next(iter(found.values()))}", text)]


def _short(asked: Question) -> list[Remark]:
    """Runs that end before a window has gone from one loss to the next."""
    runs = asked.results.runs
    least = min(runs["measured_to_s"] - runs["measured_from_s"], default=0.0)
    found = [one for plan in variants_of(asked.results.plans) for one in cycles(plan)]
    if not found or (longest := max(found, key=lambda one: one[1]))[1] <= least:
        return []
    text = (
        f"The window of {printable(longest[0])} takes up to about {longest[1]:.2g} s from one loss "
        f"to the next, and {least:g} s are measured: the means are those of the start. A longer "
        "`duration`, with `measure` after the start, shows what lasts."
    )
    return [Remark("care", "Less than one cycle of the window", text)]


def _without_effect(asked: Question) -> list[Remark]:
    """Remarks that the swept key had no effect: it may not have come into play, or may not be the
    intended one.
    """
    if asked.versus is None or set(asked.versus["verdict"].drop_nulls()) != {"equal"}:
        return []
    swept = listed([f"`{name}`" for name in asked.results.swept])
    text = (
        f"Each pair of runs has the same numbers to the last digit: {swept} changed nothing that "
        "is compared. Either it never came into play here, or it is not what was meant."
    )
    return [Remark("care", "Nothing differs", text)]


def _repetitions(asked: Question) -> list[Remark]:
    """Too few repetitions, or repetitions without any randomness."""
    repetitions = asked.results.runs["repetition"].n_unique()
    if repetitions == 1:
        text = (
            "There are no repetitions, so no interval: nobody can tell how much of a number is "
            "chance. `--repeat 10` has one, if something in the experiment is random, like "
            "`start_jitter`."
        )
        return [Remark("care", "One run of each", text)]
    if are_equal(asked.summary):
        text = (
            f"All {repetitions} repetitions have equal measures: nothing in the experiment is "
            "random, and they are worth one run. `start_jitter`, `jitter` and `loss` are random."
        )
        return [Remark("care", "All repetitions are equal", text)]
    if repetitions < statistics.FEWEST:
        text = (
            f"{repetitions} repetitions: intervals hold if numbers are normally distributed. From "
            f"{statistics.FEWEST} on they hold for other distributions too."
        )
        return [Remark("care", "Few repetitions", text)]
    return []


def _warned(asked: Question) -> list[Remark]:
    """The warnings of the experiment itself."""
    said = warnings_of(asked.results.plans)
    title = "The experiment has a warning" if len(said) == 1 else f"{len(said)} warnings"
    return [Remark("care", title, "It may not be what was meant.", (*said,))] if said else []


def _checks(asked: Question, folders: Sequence[Asked]) -> list[Remark]:
    """The checks that passed."""
    runs = asked.results.runs
    repetitions = runs["repetition"].n_unique()
    checks = []
    number = runs["run"].n_unique()
    if not any(one.failed for one in folders):
        text = (
            "Each obeyed the laws that every run must obey: among others, no packet and no byte is "
            "lost from the counts."
        )
        checks.append(Remark("good", f"No run failed, of {number:,}", text))
    if repetitions >= statistics.FEWEST and not are_equal(asked.summary):
        text = (
            "The intervals hold for skewed and for bimodal numbers too. They cover what the seeds "
            "decide in this experiment, not other paths or other traffic."
        )
        checks.append(Remark("good", f"{repetitions} repetitions", text))
    if asked.versus is not None and (tests := asked.versus["p"].count()) > 1:
        text = (
            "Each metric of each flow is one. With so many, some seem to differ by chance; that is "
            "taken into account (Holm)."
        )
        checks.append(Remark("good", f"Corrected for {tests} comparisons", text))
    return checks


def _by(asked: Question) -> str:
    """What ran the experiment."""
    words = {
        "sim": "as simulated by a model of Linux 6.12's TCP",
        "linux": "as run by the Linux kernel's TCP in virtual time",
    }
    backends = asked.results.runs["backend"].unique(maintain_order=True).to_list()
    return " and ".join(words.get(one, one) for one in backends)
