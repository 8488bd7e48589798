"""The page of a study: what was asked and found, and what we find with their stack and today's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from tcplab._core import __version__
from tcplab._papers._measured import Tables
from tcplab._papers._study import Claim, Number, Study
from tcplab._papers._verdicts import (
    FAILS,
    HOLDS,
    NO_LONGER,
    NOT_RUN,
    OPEN,
    REVERSED,
    UNTESTABLE,
    VERDICTS,
    Decided,
    Finding,
    decide,
    share_below,
    summary_of,
)
from tcplab._report._html import sheet
from tcplab.statistics import Interval

MEANINGS = {
    HOLDS: "With the study's stack the whole interval is on the claim's side.",
    NO_LONGER: "It holds with the study's stack, and today's says otherwise.",
    FAILS: "With the study's stack the whole interval is outside of what the claim says.",
    REVERSED: "With the study's stack the opposite holds.",
    OPEN: "The interval is on both sides; where it helps, the number of runs that would tell "
    "is given.",
    NOT_RUN: "What decides it has not been measured yet: `tcplab paper run` does.",
    UNTESTABLE: "The claim says why.",
}


@dataclass(frozen=True)
class Heading:
    """Of a section, or of the page."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Rows:
    """A table."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[str]


Block = Heading | Rows | Items | str


def decided(study: Study, tables: Tables) -> list[Decided]:
    """All claims of a study."""
    return [decide(claim, study, tables) for claim in study.claims]


def counts(of: Sequence[Decided]) -> dict[str, int]:
    """How many claims have which verdict."""
    found = Counter(one.verdict for one in of)
    return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}


def blocks(study: Study, tables: Tables) -> list[Block]:
    """What the page of a study says."""
    of = decided(study, tables)
    told = ", ".join(f"{verdict} {number}" for verdict, number in counts(of).items())
    page: list[Block] = [
        Heading(study.title, 1),
        f"{study.authors}, {study.year}. {study.published}.",
        Heading("What was asked"),
        study.question,
        Heading("What they found"),
        study.found,
        Heading("What we find"),
        f"Of {len(of)} claims: {told}.",
        f"*Then* is the study's own stack: {study.then}. *Now* is Linux 6.12. Each difference is "
        "of runs with the same seeds, with its interval of 95 % (narrower chances of error where "
        "several checks decide one claim).",
        Items([f"**{verdict}**: {MEANINGS[verdict]}" for verdict in counts(of)]),
        Rows(
            ("claim", "what they say", "then", "now", "verdict"),
            [
                (
                    one.claim.id,
                    _words(one.claim),
                    _stack(one, "then"),
                    _stack(one, "now"),
                    told_of(one),
                )
                for one in of
            ],
        ),
        Heading("Their numbers and ours"),
        "Of each number: what is *published*, the mean with *their stack* and its *place*, the "
        "mean with *today's*. The place is the share of our runs with their stack that are below "
        "the published number, those equal to it counted half: what a single run of theirs would "
        "be among ours.",
        *_numbers(study, tables),
        Heading("What was run"),
        Rows(
            ("experiment", "what", "file"),
            [
                (
                    one.id,
                    f"{one.title} ({one.place})" if one.place else one.title,
                    one.path.name if one.path else f"not run: {one.reason}",
                )
                for one in study.experiments.values()
            ],
        ),
        Heading("What could not be known"),
        Items(study.unknown),
        Heading("Repeat it"),
        f"`tcplab paper run {study.name}` with tcplab {__version__}, then "
        f"`tcplab paper report {study.name}`.",
    ]
    return page


def told_of(one: Decided) -> str:
    """The verdict, and what it depends on."""
    text = one.verdict
    if one.verdict == OPEN and one.needed is not None:
        text += f" (about {one.needed:,} runs would tell)"
    if one.claim.reason is not None:
        text += f": {one.claim.reason}"
    if one.depends:
        text += "; depends: " + "; ".join(f"{place}: {told}" for place, told in one.depends)
    return text


def _words(claim: Claim) -> str:
    text = f"{claim.words} ({claim.place})"
    return f"{text} Their own numbers: {claim.paper}" if claim.paper else text


def _stack(one: Decided, stack: str) -> str:
    findings = one.findings.get(stack, ())
    return "; ".join(shown(finding) for finding in findings)


def shown(finding: Finding) -> str:
    """A number with its interval."""
    if finding.estimate is None:
        return finding.verdict
    if finding.is_share:
        middle, low, high = (
            None if one is None else f"{100 * one:+,.1f}".replace("-", MINUS)
            for one in (finding.estimate, finding.low, finding.high)
        )
        unit = " %"
    else:
        middle, low, high = (
            None if one is None else _written(one, f"{one:.4g}")
            for one in (finding.estimate, finding.low, finding.high)
        )
        unit = ""
    if low is None or low == high:
        return f"{middle}{unit}"
    return f"{middle}{unit} ({low} to {high})"


def _numbers(study: Study, tables: Tables) -> list[Block]:
    """Each published table in its own form, then the numbers that stand alone."""
    page: list[Block] = []
    printed: dict[str, list[Number]] = {}
    for number in study.numbers:
        if number.row:
            printed.setdefault(number.id or number.place, []).append(number)
    for name, numbers in printed.items():
        first = numbers[0]
        note = f" {first.note}" if first.note else ""
        columns = {one.column: one.unit for one in numbers}
        cells = {(one.row, one.column): " / ".join(_sides(one, tables)) for one in numbers}
        page += [
            Heading(f"{name}: {first.place}", 3),
            f"How sure of what is printed: {first.certainty}.{note} Each cell: "
            + ("published / then (place) / now." if first.side else "published; not measured."),
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
    """What is published, and what is measured of it."""
    published = _written(number.value, f"{number.value:.10g}")
    if number.side is None:
        return [published]
    then, now = (summary_of(number.side, tables, stack) for stack in ("then", "now"))
    share = share_below(number.side, tables, "then", number.value)
    place = "" if share is None else f" ({100 * share:.0f} %)"
    return [published, (_mean(then) or "not run") + place, _mean(now) or "not run"]


def _written(number: float, short: str) -> str:
    """A number as a reader writes it: thousands apart, no exponents where digits say it."""
    far = abs(number) >= 1e4
    return (f"{number:,.0f}" if far else short).replace("-", MINUS)


def _mean(found: Interval | None) -> str:
    if found is None or found.estimate is None:
        return ""
    return shown(Finding("", found.estimate, found.low, found.high))


def markdown(page: Sequence[Block]) -> str:
    """The page as Markdown."""
    parts = []
    for block in page:
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {block.text}")
        elif isinstance(block, Rows):
            lines = [block.heads, ["---"] * len(block.heads), *block.rows]
            parts.append("\n".join(f"| {' | '.join(map(_cell, row))} |" for row in lines))
        elif isinstance(block, Items):
            parts.append("\n".join(f"- {item}" for item in block.items))
        else:
            parts.append(block)
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def html(page: Sequence[Block]) -> str:
    """The page as one file of HTML, which loads nothing."""
    title = next(block.text for block in page if isinstance(block, Heading))
    parts = []
    for block in page:
        if isinstance(block, Heading):
            parts.append(f"<h{block.level}>{escape(block.text)}</h{block.level}>")
        elif isinstance(block, Rows):
            heads = "".join(f'<th scope="col">{_marked(one)}</th>' for one in block.heads)
            rows = "".join(
                "<tr>" + "".join(f"<td>{_marked(one)}</td>" for one in row) + "</tr>"
                for row in block.rows
            )
            parts.append(
                '<div class="wide" tabindex="0"><table>'
                f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
            )
        elif isinstance(block, Items):
            items = "".join(f"<li>{_marked(one)}</li>" for one in block.items)
            parts.append(f"<ul>{items}</ul>")
        else:
            parts.append(f"<p>{_marked(block)}</p>")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{sheet()}{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


MINUS = "\u2212"

STYLE = """
main { max-width: 75rem; margin: 0 auto; padding: 1rem; }
.wide { overflow-x: auto; }
td, th { text-align: left; vertical-align: top; padding: 0.3rem 0.6rem; white-space: normal; }
"""

SIGNS: Mapping[str, str] = {"**": "strong", "*": "em", "`": "code"}


def _marked(text: str) -> str:
    """Text with the few signs of Markdown that pages here use."""
    done = escape(text)
    for sign, tag in SIGNS.items():
        pieces = done.split(sign)
        if len(pieces) % 2 == 0:  # A lone sign stands for itself.
            continue
        done = "".join(
            f"<{tag}>{piece}</{tag}>" if number % 2 else piece
            for number, piece in enumerate(pieces)
        )
    return done
