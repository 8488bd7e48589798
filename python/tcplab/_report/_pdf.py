"""A report as a PDF, typeset by Typst. Typst is a compiler in one wheel: it needs no browser,
breaks tables and paragraphs across pages, and tags the PDF for screen readers.

Texts are passed to the template as data, so that none can be taken for Typst markup.
"""

from __future__ import annotations

import json
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import altair as alt
import typst
import vl_convert

from tcplab import _core
from tcplab._report._charts import inline
from tcplab._report._content import Content
from tcplab._report._phrases import Sentence
from tcplab._report._table import Table
from tcplab._text.cells import LEFT

WIDTH = 500
"""The width of charts, in pixels, which fits a page."""

MOST_ROWS = 200


def pdf(content: Content) -> bytes:
    """The PDF."""
    files: dict[str, bytes] = {}
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    charts = []
    for one in content.comparisons:
        panels = []
        for panel in one.panels:
            drawn = vl_convert.vegalite_to_pdf(inline(panel.spec, width=WIDTH), vl_version=version)
            name = f"chart{len(files)}.pdf"
            files[name] = drawn
            panels.append({"title": panel.title, "file": name})
        charts.append({"title": one.title, "note": one.note, "panels": panels})
    files["path.pdf"] = vl_convert.svg_to_pdf(content.path.svg)
    files["data.json"] = json.dumps(_data(content, charts), ensure_ascii=False).encode()
    files["page.typ"] = resources.files("tcplab._report").joinpath("page", "page.typ").read_bytes()
    # Typst reads images from one folder, and nothing outside it.
    with tempfile.TemporaryDirectory(prefix="tcplab-report-") as name:
        for file, written in files.items():
            (Path(name) / file).write_bytes(written)
        made = typst.compile(str(Path(name) / "page.typ"), root=name, format="pdf")
    assert isinstance(made, bytes)
    return made


def _data(content: Content, charts: list[dict[str, Any]]) -> dict[str, Any]:
    said, trust, repeat = content.answer, content.trust, content.repeat
    return {
        "title": content.title,
        "about": content.about,
        "version": _core.__version__,
        "headline": _said(said.headline),
        "condition": _said(said.condition),
        "more": [_said(one) for one in said.more],
        "findings": [
            {
                "title": title,
                "rows": [{"tone": one.tone, "said": _said(one.said)} for one in rows],
            }
            for title, rows in (
                (said.cost_title, said.costs),
                (said.ranking_title, said.ranking),
            )
            if rows
        ],
        "weight": trust.weight,
        "verdict": trust.verdict,
        "checks": [
            {
                "weight": one.weight,
                "title": one.title,
                "text": one.text.replace("`", ""),
                "details": [text.replace("`", "") for text in one.details],
            }
            for one in [*trust.remarks, *trust.checks]
        ],
        "charts": charts,
        "table": _table(content.table),
        "table_note": content.table_note,
        "sums": list(content.path.sums),
        "links": _table(content.path.links),
        "definitions": [
            [term.partition(": ")[0], text.replace("`", "")] for term, text in content.definitions
        ],
        "commands": [list(one) for one in repeat.commands],
        "facts": [list(one) for one in repeat.facts],
        "experiments": [
            [name, "\n".join(map(_core.printable, text.expandtabs(4).rstrip().split("\n")))]
            for name, text in repeat.experiments
        ],
    }


def _said(sentence: Sentence) -> list[dict[str, str]]:
    return [{"text": piece.text, "role": piece.role} for piece in sentence]


def _table(table: Table) -> dict[str, Any]:
    return {
        "heads": [
            {"name": head.name, "unit": head.unit, "is_text": head.align == LEFT}
            for head in table.heads
        ],
        "rows": [
            [{"text": cell.text, "is_best": cell.is_best} for cell in row]
            for row in table.rows[:MOST_ROWS]
        ],
        "left": max(len(table.rows) - MOST_ROWS, 0),
    }
