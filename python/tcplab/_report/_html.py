"""A report as one HTML file: texts and tables as HTML, charts drawn by the browser."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from html import escape
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from tcplab import _core
from tcplab._report._answer import Finding
from tcplab._report._charts import DARK_LINKS, LIGHT_LINKS, data_of, theme
from tcplab._report._checks import Remark
from tcplab._report._content import Content
from tcplab._report._phrases import Sentence
from tcplab._report._single_runs import PANELS
from tcplab._report._table import Table, of_frame
from tcplab._store.atomic_write import put
from tcplab._store.cache import make
from tcplab._store.checksums import checksum
from tcplab._text.cells import LEFT, Column

MOST_ROWS = 500
"""The number of table rows in the page; the downloadable file has all rows."""

MOST_DIGESTS = 100

TONES = {"better": "better", "worse": "worse", "same": "same", "unknown": "unsure", "": ""}
"""The text before a finding of each tone."""

SIGNS = {"good": "fulfilled: ", "care": "with care: ", "bad": "not fulfilled: "}
"""The text equivalents of the signs before checks, for screen readers."""


def html(content: Content) -> str:
    """The page."""
    sections = [
        ("answer", "The answer", answer_part(content)),
        ("warnings", "Warnings", warnings_part(content)),
        ("comparison", "Comparison", _comparison(content)),
        ("table", "Table", _table_part(content)),
        ("runs", "One run", _runs(content)),
        ("path", "The path", _path(content)),
        ("definitions", "Definitions", _definitions(content)),
        ("repeat", "Repeat it", _repeat(content)),
    ]
    return page(content.title, content.about, sections, _data(content))


def page(
    title: str, about: str, sections: Sequence[tuple[str, str, str]], data: Mapping[str, Any]
) -> str:
    """A page of these sections, each given by its id, title and HTML. The first section is the
    answer. `data` is what the script draws and saves.
    """
    script = _file("page.js")
    parts = {
        "title": escape(title),
        "about": escape(about),
        "version": escape(_core.__version__),
        "css": sheet(),
        "script": script,
        "policy": _policy(script),
        "libraries": _libraries(),
        "data": _packed(json.dumps(data, ensure_ascii=False, separators=(",", ":"))),
    }
    parts["nav"] = "".join(
        f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title, body in sections if body
    )
    parts["main"] = "\n".join(
        f'<section id="{key}"{" class=first" if key == "answer" else ""}>{body}</section>'
        for key, _, body in sections
        if body
    )
    # Each part is inserted once, and never searched for further placeholders.
    pieces = _file("page.html").split("{{")
    whole = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        whole += [parts[name], rest]
    return "".join(whole)


def sheet() -> str:
    """The style sheet of pages."""
    return _file("page.css")


def _file(name: str) -> str:
    return resources.files("tcplab._report").joinpath("page", name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """The content security policy: nothing is loaded, and only the script of the page and the
    libraries within it run.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = [
        "default-src 'none'", f"script-src 'sha256-{digest}' blob:", "style-src 'unsafe-inline'",
        "img-src data: blob:", "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip
    return "; ".join(rules)


@cache
def _libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed, in the versions that the charts are written for.

    Bundling them takes a second, so the bundle is kept in the user's cache.
    """
    number = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    folder = _core.cache()
    path = folder and folder / f"libraries-{version('vl-convert-python')}-{number}"
    if path and (libraries := _kept(path)):
        return libraries
    libraries = _packed(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", number))
    if path:
        with suppress(OSError):
            make(path.parent)
            put(f"{checksum(libraries.encode())}\n{libraries}".encode(), path)
            path.chmod(0o600)
    return libraries


def _kept(path: Path) -> str | None:
    """The text of a file that begins with its checksum; `None` if it is missing or damaged, or if
    another user could have written it: what it holds runs in browsers.
    """
    with suppress(OSError, ValueError), path.open(encoding="ascii") as file:
        about = os.fstat(file.fileno())
        if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        digest, _, text = file.read().partition("\n")
        return text if checksum(text.encode()) == digest else None
    return None


def _packed(text: str) -> str:
    """Text compressed and encoded in characters that are safe in a page."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def drawn_and_saved(
    charts: Mapping[str, Sequence[Mapping[str, Any]]], files: Mapping[str, str]
) -> dict[str, Any]:
    """The data for the script: the charts of each choice, and downloadable files by name."""
    return {
        "schema": alt.SCHEMA_URL,
        "themes": {"light": theme(), "dark": theme(is_dark=True)},
        "comparisons": charts,
        "csv": files,
        "panels": [],
        "dashes": [[1, 0], [5, 4]],
        "links": {"light": LIGHT_LINKS, "dark": DARK_LINKS},
        "runs": [],
    }


def _data(content: Content) -> dict[str, Any]:
    """The data for the script of a report on results."""
    charts = {one.metric: [panel.spec for panel in one.panels] for one in content.comparisons}
    files = {"summary.csv": content.csv, "runs.csv": content.repeat.runs.write_csv()}
    return drawn_and_saved(charts, files) | {
        "panels": [{"key": one.key, "title": one.title} for one in PANELS],
        "runs": [
            {
                "run": one.run,
                "label": one.label,
                "end": one.end_s,
                "note": one.left_out,
                "panels": {
                    key: [
                        {
                            "name": line.name,
                            "kind": line.kind,
                            "times": line.times,
                            "values": line.values,
                        }
                        for line in lines
                    ]
                    for key, lines in one.panels.items()
                },
            }
            for one in content.details.runs
            if one.panels
        ],
    }


def spoken(sentence: Sentence) -> str:
    return "".join(
        f'<span class="{piece.role}">{_together(piece.text)}</span>' if piece.role
        else _together(piece.text)
        for piece in sentence
    )  # fmt: skip


def _together(text: str) -> str:
    """Text in which a number and its percent sign stay on one line."""
    return escape(text).replace(" %", "\u00a0%")


def marked(text: str) -> str:
    """Text in which backticks mark code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))


def _findings(findings: Sequence[Finding]) -> str:
    has_tones = any(one.tone for one in findings)
    rows = []
    for one in findings:
        badge = f'<span class="badge {one.tone}">{TONES[one.tone]}</span>' if has_tones else ""
        rows.append(f"<li>{badge}<span>{spoken(one.said)}</span></li>")
    return f'<ul class="findings{" toned" if has_tones else ""}">{"".join(rows)}</ul>'


def answer_part(content: Content) -> str:
    """The answer, its costs, and whether it can be trusted."""
    said, trust = content.answer, content.trust
    parts = [
        f'<h2 class="tone">The answer</h2><p class="headline">{spoken(said.headline)}</p>',
        f'<p class="chip {trust.weight}"><a href="#trust">Can it be trusted?</a> '
        f"{escape(trust.verdict)}</p>",
        f'<p class="condition">{spoken(said.condition)}</p>',
        *(f"<p>{spoken(one)}</p>" for one in said.more),
    ]
    cards = []
    if said.costs:
        cards.append(_card(said.cost_title, _findings(said.costs)))
    elif said.cost_title:
        cards.append(_card(said.cost_title, "<p>No other metric was compared.</p>"))
    if said.ranking:
        cards.append(_card(said.ranking_title, _findings(said.ranking)))
    checks = "".join(
        f'<li class="{one.weight}"><span class="tone">{SIGNS[one.weight]}</span>'
        f'<span class="name">{escape(one.title)}.</span> {marked(one.text)}</li>'
        for one in [*trust.remarks, *trust.checks]
    )
    verdict = f'<ul class="checks" id="trust">{checks}</ul>'
    cards.append(_card("Can it be trusted?", verdict, trust.weight))
    return "".join(parts) + f'<div class="cards">{"".join(cards)}</div>'


def _card(title: str, body: str, kind: str = "") -> str:
    return f'<div class="card {kind}"><h3>{escape(title)}</h3>{body}</div>'


def warnings_part(content: Content) -> str:
    """The remarks against the answer."""
    if not content.trust.remarks:
        return '<h2>Warnings</h2><p class="calm">There are none.</p>'
    return "<h2>Warnings</h2>" + "".join(map(remark, content.trust.remarks))


def remark(one: Remark) -> str:
    details = "".join(f"<li>{marked(text)}</li>" for text in one.details)
    below = f"<ul>{details}</ul>" if details else ""
    return (
        f'<div class="remark {one.weight}"><h3>{escape(one.title)}</h3>'
        f"<p>{marked(one.text)}</p>{below}</div>"
    )


def _comparison(content: Content) -> str:
    choices = "".join(
        f'<label class="choice"><input type="radio" name="metric" value="{escape(one.metric)}"'
        f"{' checked' if place == 0 else ''}><span>{escape(one.title)}</span></label>"
        for place, one in enumerate(content.comparisons)
    )
    parts = ["<h2>Comparison</h2>"]
    if len(content.comparisons) > 1:
        parts.append(f"<fieldset><legend>Metric</legend>{choices}</fieldset>")
    for place, one in enumerate(content.comparisons):
        figures = "".join(_figure(panel.title, one.title) for panel in one.panels)
        rows = of_frame(data_of(one))
        parts.append(
            f'<div class="comparison" data-metric="{escape(one.metric)}"'
            f"{' hidden' if place else ''}>"
            f"<h3>{escape(one.title)}</h3>{figures}"
            f'<p class="note">{escape(one.note)}</p>'
            f"<details><summary>The numbers of this chart</summary>"
            f"{grid(rows, f'The numbers of the chart: {one.title}')}</details></div>"
        )
    return "".join(parts)


def _figure(title: str, what: str) -> str:
    caption = f"<figcaption>{escape(title)}</figcaption>" if title else ""
    label = escape(f"Chart of {what}{f', {title}' if title else ''}; its numbers follow as a table")
    return (
        f'<figure class="chart">{caption}<div class="canvas" role="img" aria-label="{label}">'
        "</div></figure>"
    )


def grid(table: Table, label: str, *, is_sortable: bool = False) -> str:
    """A table that scrolls on its own if it is too wide or too long."""
    heads = "".join(
        _head(head.name, head.unit, head.align == LEFT, is_sortable) for head in table.heads
    )
    rows = []
    for row in table.rows[:MOST_ROWS]:
        cells = []
        for head, cell in zip(table.heads, row, strict=True):
            kinds = [*(["text"] if head.align == LEFT else []), *(["best"] if cell.is_best else [])]
            class_ = f' class="{" ".join(kinds)}"' if kinds else ""
            value = "" if cell.value is None else f' data-value="{cell.value!r}"'
            best = '<span class="tone">best: </span>' if cell.is_best else ""
            cells.append(f"<td{class_}{value}>{best}{escape(cell.text)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    left = len(table.rows) - MOST_ROWS
    more = f'<p class="note">{left:,} more rows are in the file.</p>' if left > 0 else ""
    high = " high" if len(table.rows) > 20 else ""
    kind = " class=sortable" if is_sortable else ""
    return (
        f'<div class="scroll{high}" role="region" aria-label="{escape(label)}" tabindex="0">'
        f"<table{kind}><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"{more}"
    )


def table_of(
    first: str, heads: Sequence[Column], rows: Sequence[tuple[str, Sequence[str]]], label: str
) -> str:
    """A table of texts. The first cell of each row, under the head `first`, is HTML."""
    head = "".join(_head(one.name, one.unit, one.align == LEFT, False) for one in heads)
    lines = []
    for start, texts in rows:
        cells = "".join(
            f"<td{' class=text' if one.align == LEFT else ''}>{escape(text)}</td>"
            for one, text in zip(heads, texts, strict=True)
        )
        lines.append(f"<tr><td class=text>{start}</td>{cells}</tr>")
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0"><table>'
        f"<thead><tr>{_head(first, '', True, False)}{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _head(name: str, unit: str, is_text: bool, is_sortable: bool) -> str:
    below = f'<span class="unit">{escape(unit)}</span>' if unit else ""
    inside = f"<button type=button>{escape(name)}</button>" if is_sortable else escape(name)
    return f"<th scope=col{' class=text' if is_text else ''}>{inside}{below}</th>"


def _table_part(content: Content) -> str:
    return (
        f'<h2>Table</h2><p class="note">{escape(content.table_note)} A press on a head sorts.</p>'
        f"{grid(content.table, 'Results', is_sortable=True)}"
        '<p><button type="button" data-csv="summary.csv" hidden>Save as CSV</button></p>'
    )


def _runs(content: Content) -> str:
    runs = content.details.runs
    if not any(one.panels for one in runs):
        return (
            "<h2>One run</h2><p>Nothing over time was recorded: `record` of the experiment says "
            "what is.</p>"
        )
    options = "".join(f'<option value="{one.run}">{escape(one.label)}</option>' for one in runs)
    several = " hidden" if len(runs) < 2 else ""
    panels = "".join(
        f'<div id="panel-{one.key}"><figure class="chart">'
        f"<figcaption>{escape(one.title)}</figcaption>"
        f'<div class="canvas" role="img" aria-label="{escape(one.title)} over time; its numbers '
        'follow as a table"></div></figure><details><summary>The numbers of this chart</summary>'
        f'<div class="scroll high" role="region" aria-label="{escape(one.title)}: numbers" '
        'tabindex="0"></div></details></div>'
        for one in PANELS
    )
    note = " ".join(
        filter(None, [content.details.note, "Of long series, every peak is kept, not every point."])
    )
    return (
        f'<h2>One run over time</h2><p class="note">{escape(note)}</p><div class="controls">'
        f'<div><label for="run">Run</label><select id="run">{options}</select></div>'
        f'<div{several}><label for="second">Laid over it, dashed</label><select id="second">'
        f'<option value="">none</option>{options}</select></div>'
        '<div><label for="from">From (s)</label>'
        '<input type="number" id="from" min="0" step="any" placeholder="0"></div>'
        '<div><label for="to">To (s)</label>'
        '<input type="number" id="to" min="0" step="any" placeholder="end"></div>'
        '<div><button type="button" id="whole">Whole run</button></div></div>'
        f'<p class="note">Drag over a chart, or type times, to look closer. <span id="run-note">'
        f"</span></p>{panels}"
    )


def _path(content: Content) -> str:
    path = content.path
    alone = f'<p class="note">The network {escape(path.alone)}.</p>' if path.alone else ""
    sums = "".join(f"<li>{escape(one)}</li>" for one in path.sums)
    note = f'<p class="note">{escape(path.note)}</p>' if path.note else ""
    return (
        f'<h2>The path</h2>{alone}<div class="path" role="region" tabindex="0" '
        f'aria-label="The network, drawn; its links follow as a table">{path.svg}</div>'
        f'<h3>What it holds</h3><ul class="sums">{sums}</ul>{note}'
        f"<details><summary>The links as a table</summary>{grid(path.links, 'Links')}</details>"
    )


def _definitions(content: Content) -> str:
    rows = "".join(
        f"<dt>{_term(term)}</dt><dd>{marked(text)}</dd>" for term, text in content.definitions
    )
    return f"<h2>Definitions</h2><dl>{rows}</dl>"


def _term(term: str) -> str:
    name, _, column = term.partition(": ")
    return escape(name) + (f"<code>{escape(column)}</code>" if column else "")


def _repeat(content: Content) -> str:
    repeat = content.repeat
    parts = ["<h2>Repeat it</h2>"]
    for name, text in repeat.experiments:
        parts.append(
            f"<h3>The experiment, {escape(name)}</h3>{preformatted(text, f'Experiment {name}')}"
        )
    if not repeat.experiments:
        parts.append("<p>The experiment's file is not kept with these results.</p>")
    for what, command in repeat.commands:
        parts.append(f"<h3>{escape(what)}</h3>{preformatted(command, what, 'command')}")
    facts = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in repeat.facts
    )
    parts.append(f"<h3>What the numbers depend on</h3><dl>{facts}</dl>")
    runs = of_frame(repeat.runs.head(MOST_DIGESTS))
    left = len(repeat.runs) - MOST_DIGESTS
    more = f'<p class="note">{left:,} more are in the file.</p>' if left > 0 else ""
    parts.append(
        f"<details><summary>The runs, with their seeds and digests</summary>"
        f"{grid(runs, 'Runs')}{more}</details>"
        '<p><button type="button" data-csv="runs.csv" hidden>Save the list of runs as CSV</button>'
        "</p>"
    )
    return "".join(parts)


def preformatted(text: str, label: str, kind: str = "") -> str:
    """A block that scrolls on its own. Characters that a page would not show are escaped, line by
    line.
    """
    shown = "\n".join(map(_core.printable, text.expandtabs(4).split("\n")))
    about = f'tabindex="0" role="region" aria-label="{escape(label)}"'
    return f'<pre class="{kind}" {about}>{escape(shown)}</pre>'
