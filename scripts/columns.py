"""Ends the lines of Markdown and comments at column 100; with `--check`, names those that do not.

A paragraph, or an item of a list, is filled anew if one of its lines is longer. All others stay as
they are, and so does what cannot be broken: tables, headings, code, a long link. Comments of Python
are left to Ruff, which knows their strings.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDTH = 100

WORD = re.compile(r"(?:(`+)(?:(?!\1).)+?\1(?!`)|[^\s`]|`)+")
"""A word; code between backquotes is in one piece."""

FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r"(\s*(?:[-*+]|\d+[.)])\s+)\S")
UNBROKEN = re.compile(r"\s*(?:$|#{1,6}\s|\||<|\[[^\]]+\]:|---|===|>|\{)")
"""Lines that are no part of a paragraph: empty, headings, tables, HTML, targets of links, rules."""
BLOCK = re.compile(r"(?:[-*+>|]|#+|\d+[.)]|=+|-+|:.*)$")
"""Words that would begin something else at the beginning of a line."""


def filled(text: str, first: str, rest: str, width: int) -> list[str]:
    """Words in lines, the first with its own prefix."""
    lines: list[str] = []
    line: list[str] = []
    for word in (found[0] for found in WORD.finditer(text)):
        prefix = rest if lines else first
        if line and len(prefix) + len(" ".join([*line, word])) > width:
            over = [word]
            while BLOCK.match(over[0]) and len(line) > 1:
                over.insert(0, line.pop())
            lines.append(prefix + " ".join(line))
            line = over
        else:
            line.append(word)
    return [*lines, (rest if lines else first) + " ".join(line)]


def paragraphs(lines: list[str]) -> Iterator[tuple[list[str], bool]]:
    """The lines of a text in groups, each with whether it may be filled anew."""
    group: list[str] = []
    fence = ""
    in_comment = False
    for line in lines:
        begins = FENCE.match(line)
        if fence or in_comment or begins or line.lstrip().startswith("<!--"):
            if group:
                yield group, True
            group = []
            if begins and (not fence or begins[1] == fence):
                fence = "" if fence else begins[1]
            elif not fence:
                in_comment = "-->" not in line
            yield [line], False
        elif UNBROKEN.match(line):
            if group:
                yield group, True
            group = []
            yield [line], False
        elif group and not ITEM.match(line):
            group.append(line)
        else:
            if group:
                yield group, True
            group = [line]
    if group:
        yield group, True


def markdown(text: str, width: int = WIDTH) -> str:
    """The text with its long paragraphs filled anew."""
    written: list[str] = []
    for group, is_prose in paragraphs(text.split("\n")):
        is_code = (
            not ITEM.match(group[0]) and group[0].startswith("    ") and not is_after_item(written)
        )
        has_breaks = any(line.endswith(("  ", "\\")) for line in group)
        if not is_prose or is_code or has_breaks or max(map(len, group)) <= width:
            written += group
            continue
        item = ITEM.match(group[0])
        first = item[1] if item else re.match(r"\s*", group[0])[0]  # type: ignore[index]
        words = " ".join([group[0][len(first) :], *group[1:]])
        written += filled(words, first, " " * len(first), width)
    return "\n".join(written)


def is_after_item(written: list[str]) -> bool:
    """Whether an indented line goes on with an item of a list."""
    for line in reversed(written):
        if line and not line.startswith(" "):
            return bool(ITEM.match(line))
    return False


def comments(mark: str) -> Callable[[str], str]:
    """What fills anew the comments that begin with this mark, a pattern, in their own lines."""
    pattern = re.compile(rf"(\s*(?:{mark}))(?: (.*)|$)")

    def fill(text: str) -> str:
        written: list[str] = []
        block: list[str] = []
        prefix = ""

        def end() -> None:
            width = WIDTH - len(prefix) - 1
            for line in markdown("\n".join(block), width).split("\n") if block else ():
                written.append(f"{prefix} {line}".rstrip())
            block.clear()

        is_string = False
        for line in text.split("\n"):
            found = None if is_string else pattern.fullmatch(line)
            if found is None or found[1] != prefix:
                end()
            if found is None:
                written.append(line)
                is_string ^= line.count('"""') % 2 == 1
            else:
                prefix = found[1]
                block.append(found[2] or "")
        end()
        return "\n".join(written)

    return fill


FILL: dict[str, Callable[[str], str]] = {
    ".md": markdown,
    ".rs": comments("///|//!|//"),
    ".js": comments(r"//| \*"),
    ".toml": comments("#"),
    ".sh": comments("#"),
}
"""What fills files anew, by the endings of their names."""


def main(*, check: bool) -> int:
    """Writes all files of the repository anew that have longer lines, or names them."""
    patterns = [f"*{ending}" for ending in FILL]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    long = 0
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_symlink() or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        if max(map(len, text.split("\n"))) <= WIDTH:
            continue
        filled_anew = FILL[path.suffix](text)
        if filled_anew == text:
            continue
        long += 1
        if check:
            print(f"{name}: lines are longer than {WIDTH} columns; `make fmt` fills them anew")
        else:
            path.write_text(filled_anew, encoding="utf-8")
    return int(check and long > 0)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
