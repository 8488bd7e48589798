"""Tables as plain text."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from tcplab._core import printable
from tcplab._text.cells import LEFT, Column

LEAST_WIDTH = 40
"""The least width of a table. A narrower terminal wraps its lines."""


def room() -> int | None:
    """The width of the terminal, or the value of `COLUMNS`; `None` for a pipe or a file, where
    lines may have any length.
    """
    if os.environ.get("COLUMNS", "").isdecimal() or sys.stdout.isatty():
        return max(shutil.get_terminal_size().columns, LEAST_WIDTH)
    return None


def cell_width(text: str) -> int:
    """The width of a text on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 (takes time to load)

    return cell_len(text)


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int | None = None
) -> str:
    """A table with aligned columns. If it is wider than `width`, or than the terminal, the widest
    column of text is wrapped.
    """
    # A cell is one line: a line break in a name must not begin another row.
    columns = [column._replace(name=printable(column.name)) for column in columns]
    rows = [[printable(cell) for cell in row] for row in rows]
    heads = [[column.name for column in columns]]
    if any(column.unit for column in columns):
        heads.append([column.unit for column in columns])
    widths = [max(map(cell_width, cells)) for cells in zip(*heads, *rows, strict=True)]
    texts = [number for number, column in enumerate(columns) if column.align == LEFT]
    most = room() if width is None else width
    surplus = 0 if most is None else sum(widths) + 2 * (len(widths) - 1) - most
    if surplus > 0 and texts:
        widest = max(texts, key=lambda number: widths[number])
        widths[widest] = max(widths[widest] - surplus, 12)
    rule = ["-" * size for size in widths]
    lines = [_line(columns, widths, cells) for cells in [*heads, rule]]
    for row in rows:
        broken = [_wrapped(cell, size) for cell, size in zip(row, widths, strict=True)]
        for part in range(max(map(len, broken))):
            cells = [parts[part] if part < len(parts) else "" for parts in broken]
            lines.append(_line(columns, widths, cells))
    return "\n".join(lines)


def _line(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str]) -> str:
    padded = []
    for column, size, cell in zip(columns, widths, cells, strict=True):
        blank = " " * (size - cell_width(cell))
        padded.append(cell + blank if column.align == LEFT else blank + cell)
    return "  ".join(padded).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    """Text in lines of at most this display width, broken between words where possible."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_width(longer) <= width:
            lines[-1] = longer
            continue
        from rich.cells import chop_cells  # noqa: PLC0415

        parts = chop_cells(word, width)
        lines = [*lines, *parts] if lines[-1] else [*lines[:-1], *parts]
    return lines


def wrapped(text: str, width: int = 100) -> str:
    """A paragraph wrapped to the width of the terminal, or to a readable one."""
    return "\n".join(_wrapped(printable(text), min(room() or width, width)))


def folded(rows: Sequence[list[str]], most: int) -> tuple[list[list[str]], int]:
    """The first rows, and the number of rows left out. A single further row is shown instead of
    counted.
    """
    if len(rows) <= most + 1:
        return list(rows), 0
    return list(rows[:most]), len(rows) - most
