"""The content of a report, independent of its format. Every number comes from `Results`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import polars as pl

from tcplab import _core
from tcplab._core import printable
from tcplab._report._answer import Answer, answer
from tcplab._report._charts import Comparison, comparisons
from tcplab._report._checks import Trust, trust
from tcplab._report._comparison import Question, question
from tcplab._report._path import Path, path
from tcplab._report._phrases import TERMS, phrase
from tcplab._report._single_runs import Details, details
from tcplab._report._table import Table, runs_table, table
from tcplab._results.metrics import METRICS
from tcplab._results.results import Results
from tcplab._store.manifest import Asked, asked
from tcplab._text.english import counted, listed

UNNAMED = "experiment"
"""The name of experiments that have none."""


@dataclass(frozen=True)
class Repeat:
    """The means to reproduce the numbers."""

    commands: Sequence[tuple[str, str]]
    """Pairs of purpose and command."""
    experiments: Sequence[tuple[str, str]]
    """The names and texts of the experiments' files."""
    facts: Sequence[tuple[str, str]]
    runs: pl.DataFrame
    """A row for each run, with its digest."""


@dataclass(frozen=True)
class Content:
    """The content of a report."""

    title: str
    about: str
    answer: Answer
    trust: Trust
    comparisons: Sequence[Comparison]
    table: Table
    table_note: str
    csv: str
    """The summary, as `tcplab show --format csv` prints it."""
    details: Details
    path: Path
    definitions: Sequence[tuple[str, str]]
    repeat: Repeat


def content(
    results: Results,
    *,
    versus: Mapping[str, str] | str | None = None,
    by: str | None = None,
    metrics: Sequence[str] = (),
    margin: float = 0.02,
) -> Content:
    """The content of a report on results.

    Raises:
        ValueError: The baseline or a metric does not exist.
    """
    on = question(results, versus=versus, by=by, metrics=metrics, margin=margin)
    folders = [found for folder in results.folders if (found := asked(folder)) is not None]
    checked = trust(on, folders)
    said = answer(replace(on, is_sound=checked.weight != "bad"))
    shown = table(on, folders)
    return Content(
        title=_title(results),
        about=_about(on),
        answer=said,
        trust=checked,
        comparisons=comparisons(on),
        table=shown,
        table_note=_table_note(on, shown),
        csv=on.summary.write_csv(),
        details=details(on, said.leading),
        path=path(on),
        definitions=_definitions(on, shown),
        repeat=_repeat(on, folders),
    )


def _title(results: Results) -> str:
    """The name of the experiment, or of the folder with its results if it has none."""
    names = results.runs["experiment"].unique(maintain_order=True).to_list()
    if names == [UNNAMED]:
        names = [folder.name for folder in results.folders] or names
    return printable(listed(names))


def _about(on: Question) -> str:
    """The size of the experiment: `36 runs: 3 variants with 12 repetitions each, on sim`."""
    runs = on.results.runs
    number = runs["run"].n_unique()
    variants = runs.select(on.results.swept).unique().height if on.results.swept else 1
    repetitions = runs["repetition"].n_unique()
    parts = []
    if variants > 1:
        parts.append(counted(variants, "variant"))
    if repetitions > 1:
        most = "" if len(runs) == variants * repetitions else "up to "
        of_each = " of each" if variants > 1 else ""
        parts.append(f"{most}{counted(repetitions, 'repetition')}{of_each}")
    backends = " and ".join(runs["backend"].unique(maintain_order=True))
    inside = f": {', '.join(parts)}" if parts else ""
    return f"{counted(number, 'run')}{inside}, on {backends}"


def _table_note(on: Question, shown: Table) -> str:
    repetitions = on.results.runs["repetition"].n_unique()
    said = []
    if repetitions > 1:
        fewer = ", if normally distributed" if repetitions < 10 else ""
        said.append(f"Means over the repetitions, with 95 % confidence intervals{fewer}.")
    if any(cell.is_best for row in shown.rows for cell in row):
        said.append(
            "The best mean is marked where its difference from the baseline can be told: "
            f"{on.label(on.base())}."
        )
    (from_s, to_s, simulated_s), *others = (
        on.results.runs.select("measured_from_s", "measured_to_s", "simulated_s").unique().rows()
    )
    if not others and (from_s, to_s) != (0.0, simulated_s):
        said.append(f"Measured from {from_s:g} s to {to_s:g} s, of {simulated_s:g} s.")
    return " ".join(said)


def _definitions(on: Question, shown: Table) -> list[tuple[str, str]]:
    """The definitions of the names in this report."""
    meanings = {column: text for of, column, text in _core.columns() if of == "flows"}
    names = [*on.metrics, *(name for name in shown.names if name is not None)]
    found: list[tuple[str, str]] = []
    for one in dict.fromkeys(names):
        usual = METRICS[one].definition if one in METRICS else meanings.get(one, "")
        meaning = TERMS.get(one) or usual
        if meaning and one not in on.results.swept:
            heading = phrase(one).title() if phrase(one).unit or one in TERMS else one
            found.append((f"{heading}: {one}" if heading != one else one, meaning))
    if on.versus is not None:
        found += [
            ("Pairs of runs", "A variant and the baseline with equal seeds. What the seed decides, "
             "like when flows begin, is the same in both, and is no part of their difference."),
            ("Interval", "95 % of such intervals contain the true value, each taken alone. A "
             "difference is called one only if that holds for all comparisons together (Holm), so "
             "an interval without zero may still be chance. The unit is a run: its flows are not "
             "independent."),
            ("No difference seen", f"The difference is less than {100 * on.margin:g} % of the "
             "baseline (two one-sided tests, p < 5 %)."),
            ("Cannot be told", "Neither a difference nor that there is none can be shown. About so "
             "many more runs of each variant would tell with a probability of 80 %."),
        ]  # fmt: skip
    found.append(
        ("BDP", "The bandwidth-delay product: what fits on the path in one round trip, the rate of "
         "the bottleneck times the RTT without queues.")
    )  # fmt: skip
    return found


def _repeat(on: Question, folders: Sequence[Asked]) -> Repeat:
    """The commands, the experiments, and everything else that the numbers depend on."""
    results = on.results
    runs = runs_table(on)
    experiments = [
        (one.file, one.text) for one in folders if one.file is not None and one.text is not None
    ]
    backends = runs["backend"].unique(maintain_order=True).to_list()
    place = [shlex.quote(folder.name) for folder in results.folders] or ["RESULTS"]
    commands = []
    for number, (file, _) in enumerate(experiments):
        backend = backends[0] if len(backends) == 1 else backends[min(number, len(backends) - 1)]
        where = "" if backend == "sim" else f" --on {backend}"
        commands.append(
            ("Run it again", f"tcplab run {shlex.quote(file)} --out {place[number]}{where}")
        )
    further = f" --metrics {','.join(on.metrics)}"
    if on.baseline and on.versus is not None and len(place) == 1:
        chosen = "".join(
            f" --versus {shlex.quote(f'{key}={value}')}" for key, value in on.baseline.items()
        )
        margin = "" if on.margin == 0.02 else f" --margin {on.margin:g}"
        commands.append(
            ("The comparisons", f"tcplab show {place[0]} --by {on.by}{chosen}{further}{margin}")
        )
    if len(place) == 1:
        commands.append(("Check the files", f"tcplab verify {place[0]} --again"))
    seeds = runs["seed"].unique().sort().to_list()
    each = sorted(set(zip(runs["run"], runs["digest"], strict=True)))
    digest = sha256("\n".join(f"{run} {one}" for run, one in each).encode())
    versions = runs["version"].unique(maintain_order=True).to_list()
    facts = [
        (
            "Version",
            f"tcplab {_core.__version__}; runs computed by {', '.join(map(str, versions))}",
        ),
        ("Seeds", _ranges(seeds)),
        ("Digest of all runs", digest.hexdigest()),
    ]
    return Repeat(
        [(what, printable(command)) for what, command in commands],
        [(printable(file), text) for file, text in experiments],
        facts,
        runs,
    )


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers as ranges: `1 to 12, 20`."""
    parts: list[list[int]] = []
    for one in numbers:
        if parts and one == parts[-1][-1] + 1:
            parts[-1][1:] = [one]
        else:
            parts.append([one])
    return ", ".join(" to ".join(map(str, part)) for part in parts)
