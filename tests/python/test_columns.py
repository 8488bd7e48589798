"""Long lines of Markdown and comments are filled anew, and nothing else changes."""

from __future__ import annotations

import re
import sys

import pytest
from conftest import EXAMPLES

ROOT = EXAMPLES.parent
sys.path.insert(0, str(ROOT / "scripts"))

from columns import FILL, WIDTH, markdown  # noqa: E402

LONG = "word " * 30


def test_a_long_paragraph_is_filled_and_a_short_one_stays() -> None:
    text = f"{LONG}\nend\n\nshort\nlines\n"
    lines = markdown(text).split("\n")
    # 20 words of 5 columns less the last space are 99, and a line of 21 would have 104.
    assert lines == [("word " * 20).strip(), "word " * 10 + "end", "", "short", "lines", ""]


def test_items_of_lists_keep_their_indent() -> None:
    first, second = markdown(f"- {LONG}\n").rstrip().split("\n")
    assert first.startswith("- word")
    assert second.startswith("  word")


@pytest.mark.parametrize(
    "text",
    [
        f"| {LONG} |",
        f"# {LONG}",
        f"```\n{LONG}\n```",
        f"<!-- {LONG}\n{LONG} -->",
        f"    {LONG}",
        f"{LONG.strip()}  \nafter a break",
        f"[target]: https://example.org/{'x' * 100}",
    ],
)
def test_unbreakable_lines_stay(text: str) -> None:
    assert markdown(text) == text


def test_code_is_not_broken_and_no_line_begins_a_list() -> None:
    text = "word " * 18 + "`a code span` - " + LONG
    filled = markdown(text)
    assert "`a code span`" in filled
    assert not re.search(r"^- ", filled, re.MULTILINE)
    assert filled.split() == text.split()


def test_comments_keep_their_marks_and_code_stays() -> None:
    code = f"    let x = {'1 + ' * 40}1;"
    text = f"    /// {LONG}\n{code}\n    // {LONG}\n"
    lines = FILL[".rs"](text).split("\n")
    assert [line.split()[0] for line in lines[:-1]] == ["///", "///", "let", "//", "//"]
    assert code in lines
    assert all(len(line) <= WIDTH for line in lines if line != code)


def test_strings_of_toml_are_no_comments() -> None:
    text = f'x = """\n# {LONG}\n"""\n# {LONG}\n'
    filled = FILL[".toml"](text)
    assert f"\n# {LONG}\n" in filled
    assert filled.count("\n") == text.count("\n") + 1


@pytest.mark.parametrize("ending", FILL)
def test_filling_is_idempotent(ending: str) -> None:
    mark = {".md": "", ".toml": "# ", ".sh": "# "}.get(ending, "// ")
    once = FILL[ending](f"{mark}{LONG}- {LONG}\n{mark}\n{mark}- {LONG}\n")
    assert FILL[ending](once) == once
