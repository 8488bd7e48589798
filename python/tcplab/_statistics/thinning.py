"""Thins long series of points, so that they are quick to draw."""

from __future__ import annotations

import polars as pl

MOST_POINTS = 2000
"""The most points of one line: about two for each pixel of its width."""

GROUP, LENGTH = "thin: group", "thin: length"
"""Temporary columns. No column of a table has such a name."""


def thin(points: pl.DataFrame, *, by: str, y: str, most: int = MOST_POINTS) -> pl.DataFrame:
    """Thins each series to a number of points that look the same when drawn.

    Neighbours are grouped, and the least and the greatest point of each group are kept: no peak is
    lost.

    Args:
        points: The points of all series, in the order of time.
        by: The column that identifies the series.
        y: The column that is drawn.
        most: The most points of a series.
    """
    place = pl.int_range(pl.len()).over(by)
    length = pl.len().over(by)
    group = place * (most // 2) // length
    drawn = pl.col(y)
    # The first of equal points only, so that each group keeps at most two.
    within = [by, GROUP]
    is_least = place_in(drawn.arg_min(), within)
    is_greatest = place_in(drawn.arg_max(), within)
    return (
        points.with_columns(group.alias(GROUP), length.alias(LENGTH))
        .filter((pl.col(LENGTH) <= most) | is_least | is_greatest)
        .drop(GROUP, LENGTH)
    )


def place_in(index: pl.Expr, within: list[str]) -> pl.Expr:
    """Whether a point is the one with this index in its group."""
    return pl.int_range(pl.len()).over(within) == index.over(within)
