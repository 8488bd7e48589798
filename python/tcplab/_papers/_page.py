"""The page of a study: its questions and findings, and our findings with its stack and today's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from tcplab._core import __version__
from tcplab._papers import _figures, _format
from tcplab._papers._measured import Measured, Tables
from tcplab._papers._placeholders import NOT_MEASURED, filled
from tcplab._papers._study import Cell, Number, Study
from tcplab._papers._verdicts import (
    FAILS,
    HOLDS,
    NO_LONGER,
    NOT_RUN,
    ON_LINUX,
    OPEN,
    REVERSED,
    UNTESTABLE,
    VERDICTS,
    Decided,
    decide,
    share_below,
    summary_of,
)
from tcplab._text.blocks import Block, Heading, Items, Picture, Rows

MEANINGS = {
    HOLDS: "With the study's stack the whole interval is on the claim's side.",
    NO_LONGER: "It holds with the study's stack, and today's says otherwise.",
    FAILS: "With the study's stack the whole interval is outside of what the claim says.",
    REVERSED: "With the study's stack the opposite holds.",
    OPEN: "The interval is on both sides, or there are too few runs for one; where more help, "
    "about how many is given.",
    NOT_RUN: "What decides it has not been measured yet: `tcplab paper run` does.",
    UNTESTABLE: "The claim says why.",
}


LEFT_OUT = "(Left out here is what rests on experiments that were not run.)"


def decided(study: Study, measured: Measured) -> list[Decided]:
    """The decisions on all claims of a study."""
    return [decide(claim, study, measured.tables, measured.linux) for claim in study.claims]


def counts(of: Sequence[Decided]) -> dict[str, int]:
    """The number of claims for each verdict."""
    found = Counter(one.verdict for one in of)
    return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}


def blocks(study: Study, measured: Measured, of: Sequence[Decided]) -> list[Block]:
    """The blocks of the page of a study, with the decisions on its claims."""
    by_id = {one.claim.id: one for one in of}

    def told(text: str) -> list[Block]:
        parts = filled(text, study, measured, by_id).strip().split("\n\n")
        whole = [" ".join(part.split()) for part in parts if NOT_MEASURED not in part]
        return [*whole, LEFT_OUT] if len(whole) < len(parts) else list(whole)

    page: list[Block] = [
        Heading(study.title, 1),
        f"{study.authors}, {study.year}. {study.published}.",
        Heading("What was asked"),
        *told(study.question),
        Heading("What they found"),
        *told(study.found),
    ]
    if study.ours:
        page += [Heading("What we find with their stack"), *told(study.ours)]
    if study.today:
        page += [Heading("What happens today"), *told(study.today)]
    page += _claims(study, of)
    if study.figures:
        page += [
            Heading("Their figures, drawn again"),
            f"`tcplab paper report {study.name} -o page.html` has them all, as has the site.",
        ]
        for figure in study.figures:
            name = "".join(c if c.isalnum() else "-" for c in figure.id.lower()).strip("-")
            words = f"{figure.id}: {figure.title}"
            page.append(Picture(name, words, partial(_figures.chart, study, figure, measured)))
    page += [
        Heading("Their numbers and ours"),
        "Of each number: what is *published*, the mean with *their stack* and its *place*, the "
        "mean with *today's*. The place is the share of our runs with their stack that are below "
        "the published number, those equal to it counted half: what a single run of theirs would "
        "be among ours.",
        *_numbers(study, measured.tables),
        Heading("What was run"),
        "Runs of a setting have different seeds: what chance decides, such as starts, losses, "
        "jitter and arrivals, is in the file. Where nothing does, all are the same, and there is "
        "no interval.",
        _experiments(study, measured),
        *_on_linux(study, measured),
        Heading("What could not be known"),
        Items(study.unknown),
        Heading("Repeat it"),
        f"`tcplab paper run {study.name}` with tcplab {__version__}, then "
        f"`tcplab paper report {study.name}`.",
    ]
    return page


def _claims(study: Study, of: Sequence[Decided]) -> list[Block]:
    told = ", ".join(f"{verdict} {number}" for verdict, number in counts(of).items())
    has_linux = any(ON_LINUX in one.of for one in of)
    heads = ["claim", "what they say", "decided by", "then", "now"]
    if has_linux:
        heads.append(ON_LINUX)
    heads.append("verdict")
    return [
        Heading("Claim by claim"),
        f"Of {len(of)} claims: {told}." + _by_arithmetic(of),
        f"*Then* is the study's own stack: {study.then}. *Now* is Linux 6.12. Each difference is "
        "of runs with the same seeds, with its interval of 95 % (narrower chances of error where "
        "several checks decide one claim, or where repetitions are added until it is decided). "
        "Where a check names several values, *a or b*, it is about their mean in each run.",
        Items([f"**{verdict}**: {MEANINGS[verdict]}" for verdict in counts(of)]),
        Rows(
            heads,
            [
                (
                    one.claim.id,
                    claim_words(one),
                    "; ".join(_format.check(check, study) for check in one.claim.checks),
                    *(
                        _stack(one, stack)
                        for stack in ("then", "now", *([ON_LINUX] if has_linux else []))
                    ),
                    _format.verdict(one),
                )
                for one in of
            ],
        ),
    ]


def _by_arithmetic(of: Sequence[Decided]) -> str:
    number = sum(one.is_arithmetic for one in of)
    return (
        f" Of these, {number} by arithmetic of their numbers alone, without a run."
        if number
        else ""
    )


def claim_words(one: Decided) -> str:
    """A claim, its place in the paper, and the verdict of the authors' own numbers on it."""
    claim = one.claim
    text = f"{claim.words} ({claim.place})"
    return f"{text} Remark: {claim.paper}" if claim.paper else text


def _stack(one: Decided, stack: str) -> str:
    findings = one.findings.get(stack, ())
    return "; ".join(_format.shown(finding) for finding in findings)


def _cells(cell: Cell) -> str:
    return ", ".join(f"{key} {' or '.join(of)}" for key, of in cell.items())


def _experiments(study: Study, measured: Measured) -> Rows:
    """The experiments that were run, and the number of their repetitions."""
    rows = []
    for one in study.experiments.values():
        table = measured.tables.get(one.id)
        often = "" if table is None else f"{table.height:,} ({table['repetition'].n_unique()})"
        title = f"{one.title} ({one.place})" if one.place else one.title
        file = one.path.name if one.path else f"not run: {one.reason}"
        rows.append((one.id, title, often, file))
    return Rows(("experiment", "what", "runs (of each setting)", "file"), rows)


def _on_linux(study: Study, measured: Measured) -> list[Block]:
    """The experiments that the kernel ran too, and why it did not run the others."""
    items = []
    for one in study.experiments.values():
        if one.linux_reason is not None:
            items.append(f"{one.id}: not run on the kernel: {one.linux_reason}")
        elif one.linux is not None:
            told = "on the kernel too" if one.id in measured.linux else "not run on the kernel yet"
            item = f"{one.id}: {told}, {_cells(one.linux) or 'all of it'}"
            if one.linux_own:
                item += f"; with a kernel that has it, also {_cells(one.linux_own)}"
            items.append(item)
    return [Items(items)] if items else []


def _numbers(study: Study, tables: Tables) -> list[Block]:
    """Each published table in its own form, then the remaining numbers."""
    page: list[Block] = []
    printed: dict[str, list[Number]] = {}
    for number in study.numbers:
        if number.row:
            printed.setdefault(number.id or number.place, []).append(number)
    for name, numbers in printed.items():
        first = numbers[0]
        is_measured = any(one.side is not None for one in numbers)
        note = f" {first.note}" if first.note else ""
        columns = {one.column: one.unit for one in numbers}
        cells = {(one.row, one.column): " / ".join(_sides(one, tables)) for one in numbers}
        page += [
            Heading(f"{name}: {first.place}", 3),
            f"How sure of what is printed: {first.certainty}.{note} Each cell: "
            + ("published / then (place) / now." if is_measured else "published; not measured."),
            Rows(
                (
                    "",
                    *(f"{column}, {unit}" if unit else column for column, unit in columns.items()),
                ),
                [
                    (", ".join(row), *(cells.get((row, column), "") for column in columns))
                    for row in dict.fromkeys(one.row for one in numbers)
                ],
            ),
        ]
    alone = [one for one in study.numbers if not one.row]
    if alone:
        page += [
            Heading("Other numbers", 3),
            Rows(
                ("what", "unit", "published / then (place) / now", "where it is printed"),
                [
                    (
                        f"{one.what} ({one.note})" if one.note else one.what,
                        one.unit,
                        " / ".join(_sides(one, tables)),
                        f"{one.place}, {one.certainty}",
                    )
                    for one in alone
                ],
            ),
        ]
    return page


def _sides(number: Number, tables: Tables) -> list[str]:
    """The published number and our measurement."""
    published = _format.number(number.value, f"{number.value:.10g}")
    if number.side is None:
        return [published]
    then, now = (summary_of(number.side, tables, stack) for stack in ("then", "now"))
    share = share_below(number.side, tables, "then", number.value)
    place = "" if share is None else f" ({100 * share:.0f} %)"
    return [
        published,
        (_format.mean(then) or "not run") + place,
        _format.mean(now) or "not run",
    ]


def overview(studies: Mapping[str, tuple[Study, Sequence[Decided]]]) -> list[Block]:
    """All claims of all studies, by verdict."""
    page: list[Block] = [Heading("All claims of all studies", 1)]
    verdicts = [
        verdict
        for verdict in VERDICTS
        if any(one.verdict == verdict for _, of in studies.values() for one in of)
    ]
    page.append(
        Rows(
            ("study", "claims", *verdicts),
            [
                (
                    f"{study.authors}, {study.year}: {study.title}",
                    str(len(of)),
                    *(str(counts(of).get(verdict, 0)) for verdict in verdicts),
                )
                for study, of in studies.values()
            ],
        )
    )
    page += _beside_the_kernel([one for _, of in studies.values() for one in of])
    for verdict in verdicts:
        page += [Heading(verdict.capitalize()), MEANINGS[verdict]]
        page.append(
            Rows(
                ("study", "claim", "what they say", "verdict", "now"),
                [
                    (name, one.claim.id, one.claim.words, _format.verdict(one), one.now)
                    for name, (_, of) in studies.items()
                    for one in of
                    if one.verdict == verdict
                ],
            )
        )
    return page


def _beside_the_kernel(of: Sequence[Decided]) -> list[Block]:
    """The verdicts of the kernel on claims whose cells it ran, beside those of the simulator."""
    both = [(one, one.of[ON_LINUX]) for one in of if ON_LINUX in one.of and not one.is_arithmetic]
    if not both:
        return []
    same = sum(there == one.now for one, there in both)
    told = [(one, there) for one, there in both if OPEN not in (one.now, there)]
    apart = [
        f"{one.claim.id} ({one.now} on `sim`, {there} on `linux`)"
        for one, there in told
        if there != one.now
    ]
    few = len(both) - len(told) - sum(one.now == there == OPEN for one, there in both)
    text = (
        f"The kernel ran the cells that decide {len(both)} of these claims too, with today's "
        f"stack, ten seeds for most: {same} have the verdict that `sim` gives for *now*."
    )
    if few:
        text += f" Of {few} one side alone has enough runs to tell."
    if apart:
        text += f" Another verdict: {', '.join(apart)}."
    return [Heading("On the kernel"), text]
