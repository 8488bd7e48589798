"""Reports: one page with the answer, its charts and tables, and the means to repeat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from tcplab._core import ConfigError
from tcplab._results.results import Results, together
from tcplab._store.atomic_write import put

FORMATS = {"html": ".html", "markdown": ".md", "pdf": ".pdf"}
"""The formats of reports, each with the ending of its files."""


def report(
    results: Results | Mapping[str, Results],
    path: str | PathLike[str],
    *,
    versus: Mapping[str, str] | str | None = None,
    by: str | None = None,
    metrics: Sequence[str] = (),
    margin: float = 0.02,
) -> None:
    """Writes a report: the answer in a sentence, its certainty and its costs, then charts, tables
    and runs, and the experiment with the commands that repeat it.

    The ending of the file name decides the format: `.html` is one page that needs no network, `.md`
    is Markdown for a pull request, `.pdf` is for printing.

    Every number comes from `Results.summary` or `Results.versus`.

    Args:
        results: The results; or several results, each under a name that distinguishes its runs.
        path: The file.
        versus: The baseline, as for `Results.versus`. By default, the first value of the key that
            distinguishes results, variants or congestion controls, or else of the first swept key.
        by: What a row is about, as in `Results.summary`; by default the choice with few rows.
        metrics: The metrics to compare: columns of the summary, or of `Results.metrics`. The answer
            is about the first. By default it is about completion times if flows have an end, else
            about goodput.
        margin: Differences below this share of the baseline do not matter.

    Raises:
        ConfigError: A PDF is asked for, and Typst, which typesets it, is not installed.
        ValueError: The baseline, a metric or the format does not exist.
        OSError: The file cannot be written.
    """
    path = Path(path)
    format_ = next((name for name, end in FORMATS.items() if end == path.suffix.lower()), None)
    if format_ is None:
        raise ValueError(f"{path}: a report is written as {', '.join(FORMATS.values())}")
    put(written(results, format_, versus=versus, by=by, metrics=metrics, margin=margin), path)


def written(
    results: Results | Mapping[str, Results],
    format_: str,
    *,
    versus: Mapping[str, str] | str | None = None,
    by: str | None = None,
    metrics: Sequence[str] = (),
    margin: float = 0.02,
) -> bytes:
    """A report in one of the `FORMATS`."""
    # Charts take time to load.
    from tcplab._report._content import content  # noqa: PLC0415

    if format_ == "pdf":
        needs_typst()
    every = results if isinstance(results, Results) else together(results)
    said = content(every, versus=versus, by=by, metrics=metrics, margin=margin)
    match format_:
        case "html":
            from tcplab._report._html import html  # noqa: PLC0415

            return html(said).encode()
        case "pdf":
            from tcplab._report._pdf import pdf  # noqa: PLC0415

            return pdf(said)
        case _:
            from tcplab._report._markdown import markdown  # noqa: PLC0415

            return markdown(said).encode()


def needs_typst() -> None:
    """Explains how to install Typst, which makes PDFs, if it is missing."""
    try:
        import typst  # noqa: F401, PLC0415
    except ImportError:
        raise ConfigError(
            "a PDF is made by Typst, which is not installed: pip install 'tcplab[pdf]'"
        ) from None
