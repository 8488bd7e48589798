"""Statistics agree with cases worked out by hand."""

from __future__ import annotations

import polars as pl
import pytest

from tcplab._series import thin
from tcplab._statistics import half_width, jain, t_quantile


def of(values: list[float | None], expression: pl.Expr) -> float | None:
    result: float | None = pl.DataFrame({"x": values}).select(expression).item()
    return result


def test_the_interval_of_three_values() -> None:
    # Mean 2, s = 1, t(2) = 4.303: 4.303 / sqrt(3) = 2.4843.
    assert of([1.0, 2.0, 3.0], half_width("x")) == pytest.approx(2.4843, abs=1e-4)


def test_missing_values_do_not_count() -> None:
    assert of([1.0, None, 2.0, 3.0], half_width("x")) == pytest.approx(2.4843, abs=1e-4)


def test_one_value_has_no_interval() -> None:
    assert of([1.0], half_width("x")) is None
    assert of([], half_width("x").cast(pl.Float64)) is None


def test_quantiles_never_grow() -> None:
    quantiles = [t_quantile(freedom) for freedom in range(1, 2000)]
    assert quantiles == sorted(quantiles, reverse=True)
    assert quantiles[4] == 2.571
    assert quantiles[-1] >= 1.960


def test_jain_of_equal_and_of_unequal_shares() -> None:
    assert of([3.0, 3.0, 3.0], jain("x")) == pytest.approx(1.0)
    assert of([4.0, 0.0], jain("x")) == pytest.approx(0.5)


def test_thinned_lines_keep_their_peaks() -> None:
    heights = [float(x % 7) for x in range(10_000)]
    heights[1234], heights[4321] = 100.0, -100.0
    points = pl.DataFrame({"flow": "a", "time_s": range(10_000), "cwnd": heights})
    thinned = thin(points, by="flow", y="cwnd", most=200)
    assert len(thinned) <= 200
    assert {100.0, -100.0} <= set(thinned["cwnd"])
    assert thinned["time_s"].is_sorted()
    assert thin(points.head(150), by="flow", y="cwnd", most=200).equals(points.head(150))
