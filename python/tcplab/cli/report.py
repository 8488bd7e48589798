"""tcplab report RESULTS: writes one page with the answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tcplab._core import ConfigError
from tcplab._report import FORMATS, needs_typst, written
from tcplab._results.results import Results
from tcplab._store.atomic_write import put
from tcplab._store.manifest import stored
from tcplab.cli import _arguments, _signals
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the results, the comparison and the output."""
    parser.add_argument(
        "results",
        type=_arguments.results,
        nargs="+",
        metavar="RESULTS",
        help="a folder or address of results (DIR of tcplab run); several folders are compared "
        "with each other",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=_arguments.report,
        metavar="FILE",
        help="file for the report: .html, .md or .pdf (default: report.html in RESULTS, or here "
        "if there are several; Markdown goes to standard output)",
    )
    parser.add_argument(
        "--format",
        choices=[*FORMATS],
        metavar="FORMAT",
        help="html (the default), markdown or pdf (default: from the ending of FILE)",
    )
    _arguments.add_by(parser)
    _arguments.add_comparison(parser)


def run(args: argparse.Namespace) -> None:
    """Writes the report."""
    format_ = _format(args.format, args.output)
    path = args.output
    if path is None and format_ != "markdown":
        is_folder = len(args.results) == 1 and isinstance(args.results[0], Path)
        here = args.results[0] if is_folder else Path()
        path = here / f"report{FORMATS[format_]}"
    if path is not None:
        _arguments.ensure_writable(path, "the report")
    if format_ == "pdf":
        needs_typst()
    results = _named(args.results)
    content = made(results, format_, args)
    if path is None:
        say(content.decode().rstrip("\n"), flush=True)
        return
    put(content, path)
    say(f"report  {path}", file=sys.stderr)


def made(results: Results | dict[str, Results], format_: str, args: argparse.Namespace) -> bytes:
    """A report with the options given by the arguments."""
    options: dict[str, Any] = {
        "versus": _arguments.baseline(args),
        "by": args.by,
        "metrics": args.metrics,
        "margin": args.margin,
    }
    # Typst works in a temporary folder, which must be removed; other formats leave nothing behind.
    with nullcontext() if format_ == "pdf" else _signals.deadly():
        try:
            return written(results, format_, **options)
        except ConfigError:
            raise
        except ValueError as error:
            raise ConfigError(str(error)) from None


def format_of(path: Path) -> str:
    """The format of a report, by its file name."""
    return next(name for name, end in FORMATS.items() if end == path.suffix.lower())


def _format(asked: str | None, path: Path | None) -> str:
    if path is None:
        return asked or "html"
    if asked is not None and format_of(path) != asked:
        raise ConfigError(
            f"-o: {path} does not end with {FORMATS[asked]}, as --format {asked} has it"
        )
    return format_of(path)


def _named(folders: Sequence[Path | str]) -> Results | dict[str, Results]:
    """Results by folder: under the last part of the path where that is unique."""
    if len(folders) == 1:
        return stored(folders[0])
    short = [
        folder.resolve().name if isinstance(folder, Path) else folder.rstrip("/").rpartition("/")[2]
        for folder in folders
    ]
    names = short if len(set(short)) == len(short) else [str(folder) for folder in folders]
    if len(set(names)) < len(names):
        raise ConfigError("RESULTS: a folder is named twice")
    return {name: stored(folder) for name, folder in zip(names, folders, strict=True)}
