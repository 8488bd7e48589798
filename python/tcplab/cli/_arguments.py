"""What the commands that run experiments have in common."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from tcplab._memory import amount

FORMATS = (".svg", ".png", ".html", ".json")


def add_common(parser: argparse.ArgumentParser) -> None:
    """The file, and where the results go."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the experiment, as TOML or JSON")
    parser.add_argument(
        "--out",
        type=_folder,
        metavar="DIR",
        help="where tables go (default: results/ and the experiment's name, or its file's)",
    )
    add_workers(parser)
    parser.add_argument(
        "--memory",
        type=_size,
        metavar="SIZE",
        help='what all runs at once may take, like "4 GB" (default: half of what is free)',
    )
    parser.add_argument(
        "--chart",
        type=chart,
        metavar="FILE",
        help="where the chart goes: .svg, .png, .html or .json (default: into DIR, as .svg)",
    )
    parser.add_argument(
        "--kernel", metavar="NAME", help="the kernel for the backend linux (see tcplab kernel list)"
    )
    parser.add_argument("--quiet", action="store_true", help="print the table and warnings alone")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """How many runs go on at once."""
    parser.add_argument(
        "--workers", type=_at_least_one, metavar="N", help="runs at once (default: all processors)"
    )


def safe(name: str) -> str:
    """A name as part of a path."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.").encode()[:80]
    return plain.decode(errors="ignore") or "experiment"


def _at_least_one(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 1")
    return number


def _size(text: str) -> str:
    try:
        amount(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("the name of a folder is not empty")
    return Path(text)


def chart(text: str) -> Path:
    """The name of a chart's file."""
    path = Path(text)
    if path.suffix.lower() not in FORMATS:
        raise argparse.ArgumentTypeError(f"{path}: a chart is saved as {', '.join(FORMATS)}")
    return path


def ensure_writable(chart: Path) -> None:
    """Says before anything is run that a chart cannot be saved there."""
    folder, said = chart.parent, f"the chart {chart} cannot be written"
    if not folder.is_dir():
        raise NotADirectoryError(f"{said}: {folder} is not a folder")
    if chart.is_dir():
        raise IsADirectoryError(f"{said}: it is a folder")
    if chart.exists() and not os.access(chart, os.W_OK):
        raise PermissionError(f"{said}: permission denied")
    # A chart is written beside its place first.
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{said}: {folder}: permission denied")


def add_allow_read(parser: argparse.ArgumentParser, what: str) -> None:
    """What programs of an experiment may read."""
    parser.add_argument("--allow-read", action="append", default=[], metavar="PATH", help=what)
