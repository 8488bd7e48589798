"""Tables on the terminal: alignment, line breaks and numbers."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tcplab._text import plain_tables
from tcplab._text.cells import LEFT, Column, number


def test_columns_are_aligned_by_display_width() -> None:
    # Wide characters take two columns, combining ones none.
    names = ["上海 東京", "cafe\u0301", "plain"]
    text = plain_tables.table(
        [Column("flow", LEFT), Column("rate")], [[name, "1.00"] for name in names]
    )
    lines = text.split("\n")
    # 4 wide characters and a space, two spaces, and the 4 characters of a rate.
    assert {cell_len(line) for line in lines} == {9 + 2 + 4}
    assert all(line.endswith("1.00") for line in lines[2:])


def test_long_text_is_wrapped_by_display_width() -> None:
    said = "東京 " * 20 + "x" * 70
    text = plain_tables.table([Column("a", LEFT), Column("b")], [[said, "1"]], width=40)
    assert max(map(cell_len, text.split("\n"))) <= 40
    assert "".join(text.split("\n")[2:]).replace(" ", "").replace("1", "") == said.replace(" ", "")


@pytest.mark.parametrize(
    ("value", "decimals", "shown"),
    [
        (-0.0, 2, "0.00"),
        (-0.004, 2, "0.00"),
        (-0.006, 2, "-0.01"),
        (1.5, 0, "2"),
        (None, 2, "-"),
        (float("nan"), 2, "-"),
        (float("inf"), 2, "-"),
    ],
)
def test_zero_is_never_negative_and_no_number_is_a_dash(
    value: float | None, decimals: int, shown: str
) -> None:
    assert number(value, decimals) == shown


def test_differences_have_a_sign_unless_they_are_zero() -> None:
    signed = [number(value, 2, sign="+") for value in (0.5, -0.5, 0.001, -0.001)]
    assert signed == ["+0.50", "-0.50", "0.00", "0.00"]
