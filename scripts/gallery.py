"""The gallery: pages of findings, each with an experiment, the lines that draw its chart, and the
chart.

Each section of a page in `docs/gallery` is an entry. Its title is the finding. A block ```toml
title="FILE"``` is its experiment, ```python title="NAME.py"``` are the lines, which save
`NAME.svg`. A comment `<!-- holds: ... -->` has the conditions of the finding: assertions about the
variables that the lines define, where `pl` is polars. If one fails, there is no chart.

Charts are cached in `target/gallery`, under a hash of everything they depend on; the tests and the
site share the cache.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import hashlib
import importlib.metadata
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars

import tcplab

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "gallery").glob("*.md"))
CHARTS = ROOT / "target" / "gallery"
MOST_LINES = 5

SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+) title=\"([^\"]+)\"\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOLDS = re.compile(r"^<!-- holds:\n(.*?)^-->\n", re.MULTILINE | re.DOTALL)
# A section of the overview, which stands for a page of the gallery.
LISTED = re.compile(r"^## \[.+\]\((gallery/[\w-]+\.md)\)\n+(?:.+\n)+", re.MULTILINE)


class EntryError(Exception):
    """An entry has no chart: its lines fail, or its finding does not hold."""


@dataclass(frozen=True)
class Entry:
    """A finding and the lines that show it."""

    title: str
    name: str
    lines: str
    files: tuple[tuple[str, str], ...]
    holds: str

    def chart(self) -> Path:
        """The file of the chart. It is drawn if it is not cached."""
        CHARTS.mkdir(parents=True, exist_ok=True)
        with (CHARTS / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            path = CHARTS / f"{self.name}-{self._key()}.svg"
            if not path.exists():
                for outdated in CHARTS.glob(f"{self.name}-{'?' * 16}.svg"):
                    outdated.unlink()
                drawn = path.with_suffix(".drawn")
                drawn.write_bytes(self.draw())
                drawn.rename(path)
        return path

    def draw(self) -> bytes:
        """Runs the lines unchanged, in a folder that contains only the files of the entry."""
        names: dict[str, object] = {}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for name, text in self.files:
                Path(name).write_text(text, encoding="utf-8")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", tcplab.TcplabWarning)
                    exec(self.lines, names)
                exec(compile(self.holds, "holds", "exec"), {"pl": polars} | names)
                return Path(f"{self.name}.svg").read_bytes()
            except Exception as error:
                raise EntryError(f"{self.name}: {self._said(error)}") from error

    def _said(self, error: Exception) -> str:
        """The error, with the assertion that failed."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        if isinstance(error, AssertionError) and last.filename == "holds":
            return f"this does not hold: {self.holds.splitlines()[(last.lineno or 1) - 1]}"
        return f"{type(error).__name__}: {error}"

    def _key(self) -> str:
        return hashlib.sha256(f"{self!r}{_program()}".encode()).hexdigest()[:16]


def entries(text: str) -> Iterator[Entry]:
    """The entries of a page, in order."""
    for title, body in SECTION.findall(text):
        blocks = BLOCK.findall(body)
        files = tuple((name, content) for kind, name, content in blocks if kind != "python")
        scripts = [(name, content) for kind, name, content in blocks if kind == "python"]
        if len(scripts) != 1:
            raise EntryError(f"{title}: an entry has one script; this has {len(scripts)}")
        name, lines = scripts[0]
        holds = "".join(HOLDS.findall(body))
        entry = Entry(title, name.removesuffix(".py"), lines, files, holds)
        if (number := counted(lines)) > MOST_LINES:
            raise EntryError(f"{name}: {number} lines, more than {MOST_LINES}")
        if not any(isinstance(part, ast.Assert) for part in ast.parse(holds).body):
            raise EntryError(f"{name}: nothing is asserted in `<!-- holds: ... -->`")
        yield entry


def counted(lines: str) -> int:
    """The number of lines of a script besides its imports."""
    imports = (ast.Import, ast.ImportFrom)
    statements = [part for part in ast.parse(lines).body if not isinstance(part, imports)]
    return sum((part.end_lineno or 0) - part.lineno + 1 for part in statements)


def with_charts(text: str) -> str:
    """A page of the gallery with its charts, for the site."""
    charts = iter(list(entries(text)))

    def section(found: re.Match[str]) -> str:
        entry = next(charts)
        body = HOLDS.sub("", found[2])
        return f"## {found[1]}\n\n![{_alternative(entry.title)}]({_place(entry)})\n{body}"

    return SECTION.sub(section, text)


def with_overview(text: str) -> str:
    """The overview with small versions of all charts, for the site."""

    def section(found: re.Match[str]) -> str:
        page = ROOT / "docs" / found[1]
        links = [
            f"- [![]({_place(entry)}) {entry.title}]({found[1]}#{anchor(entry.title)})\n"
            for entry in entries(page.read_text(encoding="utf-8"))
        ]
        return f"{found[0]}\n:::{{container}} gallery\n{''.join(links)}:::\n"

    return LISTED.sub(section, text)


def anchor(title: str) -> str:
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _alternative(title: str) -> str:
    return "Chart: " + re.sub(r"[\[\]`*]", "", title)


def _place(entry: Entry) -> str:
    return f"/{entry.chart().relative_to(ROOT)}"


@cache
def _program() -> str:
    """A hash of everything besides the entries that results and charts depend on."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "python" / "tcplab").rglob("*")):
        if path.suffix in (".py", ".so"):
            found.update(path.read_bytes())
    for package in ("altair", "polars", "vl-convert-python"):
        found.update(f"{package} {importlib.metadata.version(package)}".encode())
    return found.hexdigest()


def main() -> int:
    """Draws the missing charts, and names the entries that fail."""
    wrong = []
    for page in PAGES:
        try:
            for entry in entries(page.read_text(encoding="utf-8")):
                try:
                    entry.chart()
                except EntryError as error:
                    wrong.append(f"docs/gallery/{page.name}: {error}")
        except EntryError as error:
            wrong.append(f"docs/gallery/{page.name}: {error}")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
