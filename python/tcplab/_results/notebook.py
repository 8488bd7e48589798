"""The appearance of results in a notebook: a table and a chart, without a network."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence

import polars as pl

from tcplab import plot
from tcplab._core import printable
from tcplab._results.compare import Comparison
from tcplab._results.results import Results
from tcplab._results.summary_table import labelled, layout, measures, named, rows_are
from tcplab._text.cells import LEFT, Column
from tcplab.plot._export import drawn

MOST_ROWS = 30

CELL = "padding: 2px 10px; text-align: {}; border-bottom: 1px solid #8884"


def of_results(results: Results) -> str:
    """The summary table of the screen, and the chart that suits the swept keys."""
    by = rows_are(results)
    summary = results.summary(by=by)
    shown = labelled(summary.head(MOST_ROWS), results)
    heads, cells = layout(shown, results.swept, by, measures(summary, by))
    more = f"... and {len(summary) - MOST_ROWS} more rows" if len(summary) > MOST_ROWS else ""
    try:
        chart = _image(plot.answer(results))
    except ValueError as error:
        chart = f"<p>No chart: {html.escape(printable(str(error)))}</p>"
    return "\n".join([_paragraph(repr(results)), _table(heads, cells), _paragraph(more), chart])


def of_comparison(comparison: Comparison) -> str:
    """The number of each measure on each backend, and the windows on all backends."""
    rows = comparison.differences().filter(
        pl.any_horizontal(pl.col(name).fill_null(0) != 0 for name in comparison.backends)
    )
    shares = [name for name in rows.columns if name.endswith(f"-{comparison.backends[-1]}")]
    texts = [*comparison.swept, "repetition", "flow", "measure"]
    heads = [Column(name, LEFT) for name in texts]
    heads += [Column(name) for name in comparison.backends]
    heads += [Column(name, unit="%") for name in shares]
    cells = [
        [
            *(str(row[name]) for name in texts),
            *("-" if row[name] is None else f"{row[name]:.4g}" for name in comparison.backends),
            *("-" if row[name] is None else f"{100 * row[name]:+.2f}" for name in shares),
        ]
        for row in rows.head(MOST_ROWS).iter_rows(named=True)
    ]
    more = f"... and {len(rows) - MOST_ROWS} more rows" if len(rows) > MOST_ROWS else ""
    try:
        chart = _image(plot.compare(comparison))
    except ValueError as error:
        chart = f"<p>No chart: {html.escape(printable(str(error)))}</p>"
    return "\n".join([_paragraph(repr(comparison)), _table(heads, cells), _paragraph(more), chart])


def _table(heads: Sequence[Column], cells: Sequence[Sequence[str]]) -> str:
    sides = ["left" if head.align == LEFT else "right" for head in heads]

    def row(kind: str, texts: Sequence[str]) -> str:
        made = (
            f'<{kind} style="{CELL.format(side)}">{html.escape(printable(text))}</{kind}>'
            for side, text in zip(sides, texts, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    body = "\n".join(row("td", texts) for texts in cells)
    head = row("th", [named(column) for column in heads])
    look = "border-collapse: collapse; font-variant-numeric: tabular-nums"
    return f'<table style="{look}"><thead>{head}</thead><tbody>\n{body}\n</tbody></table>'


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(printable(text))}</p>" if text else ""


def _image(chart: object) -> str:
    """A chart as an image: images are small, and other charts on the page cannot interfere with
    them.
    """
    content = drawn(chart, ".svg")  # type: ignore[arg-type]
    encoded = base64.b64encode(content).decode()
    return f'<img alt="chart" src="data:image/svg+xml;base64,{encoded}" style="max-width: 100%">'
