"""A report as Markdown, for a pull request: the answer, the table and the commands to repeat it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcplab import _core
from tcplab._report._answer import Finding
from tcplab._report._content import Content
from tcplab._report._phrases import Sentence
from tcplab._report._table import Table
from tcplab._text.cells import LEFT

MOST_ROWS = 60

MEANING = re.compile(r"[\\`*_{}\[\]<>#|~&!$@]")
"""Characters with a meaning in Markdown, and "@", which notifies a user."""

ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "@\u2060"}
"""Replacements for characters that a backslash does not disarm: "\\@name" notifies a user."""

SIGNS = {"better": "better", "worse": "worse", "same": "same", "unknown": "unsure", "": ""}


def markdown(content: Content) -> str:
    """The report as Markdown."""
    said, trust = content.answer, content.trust
    parts = [
        f"# {_escaped(content.title)}",
        f"{_escaped(content.about)}.",
        f"**{_plain(said.headline)}**",
        f"Can it be trusted? {_escaped(trust.verdict)}",
        _said(said.condition),
        *map(_said, said.more),
    ]
    if said.costs:
        parts += [f"**{_escaped(said.cost_title)}**", _findings(said.costs)]
    if said.ranking:
        parts += [f"**{_escaped(said.ranking_title)}**", _findings(said.ranking)]
    checks = [
        f"- {'' if one.weight == 'good' else '**Warning:** '}{_escaped(one.title)}. "
        f"{_marked(one.text)}" + "".join(f"\n  - {_marked(text)}" for text in one.details)
        for one in [*trust.remarks, *trust.checks]
    ]
    parts += ["## Why it can be trusted, or not", "\n".join(checks)]
    parts += ["## Table", _escaped(content.table_note), _table(content.table)]
    if (left := len(content.table.rows) - MOST_ROWS) > 0:
        parts.append(f"{left:,} more rows: `tcplab show --format csv` has all.")
    parts += ["## The path", "\n".join(f"- {_escaped(one)}" for one in content.path.sums)]
    repeat = content.repeat
    parts.append("## Repeat it")
    parts += [f"{_escaped(what)}:\n\n{_fenced(command, 'sh')}" for what, command in repeat.commands]
    parts.append("\n".join(f"- {_escaped(name)}: {_escaped(text)}" for name, text in repeat.facts))
    for name, text in repeat.experiments:
        shown = "\n".join(map(_core.printable, text.expandtabs(4).rstrip().split("\n")))
        kind = "json" if name.endswith(".json") else "toml"
        parts.append(
            f"<details><summary>The experiment, {_escaped(name)}</summary>\n\n"
            f"{_fenced(shown, kind)}\n\n</details>"
        )
    return "\n\n".join(part for part in parts if part) + "\n"


def _escaped(text: str) -> str:
    """Text that Markdown renders literally."""
    return MEANING.sub(lambda found: ENTITIES.get(found[0], f"\\{found[0]}"), text)


def _marked(text: str) -> str:
    """Text whose backticks mark code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return "".join(f"`{part}`" if n % 2 else _escaped(part) for n, part in enumerate(parts))


def _plain(sentence: Sentence) -> str:
    return "".join(_escaped(piece.text) for piece in sentence)


def _said(sentence: Sentence) -> str:
    return "".join(
        f"**{_escaped(piece.text)}**" if piece.role in ("name", "value") else _escaped(piece.text)
        for piece in sentence
    )


def _findings(findings: Sequence[Finding]) -> str:
    lines = []
    for one in findings:
        sign = f"*{SIGNS[one.tone]}*: " if SIGNS[one.tone] else ""
        lines.append(f"- {sign}{_said(one.said)}")
    return "\n".join(lines)


def _table(table: Table) -> str:
    heads = [f"{head.name} ({head.unit})" if head.unit else head.name for head in table.heads]
    rules = ["---" if head.align == LEFT else "--:" for head in table.heads]
    rows = [
        [f"**{_escaped(cell.text)}**" if cell.is_best else _escaped(cell.text) for cell in row]
        for row in table.rows[:MOST_ROWS]
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in [[*map(_escaped, heads)], rules, *rows])


def _fenced(text: str, kind: str) -> str:
    """A block of code, fenced with more backticks than the text contains."""
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"
