"""Long series of points made short enough to draw."""

from __future__ import annotations

import polars as pl

MOST_POINTS = 2000
"""The most points of one line: about two for each pixel of its width."""

GROUP, LENGTH = "thin: group", "thin: length"
"""Columns for the time being, called as no column of a table is."""


def thin(points: pl.DataFrame, *, by: str, y: str, most: int = MOST_POINTS) -> pl.DataFrame:
    """At most so many points of each series, which look the same when drawn.

    Neighbours are put together, and of each group the least and the greatest are kept: no peak
    is lost.

    Args:
        points: The points of all series, in the order of time.
        by: The column that tells series apart.
        y: The column that is drawn.
        most: The most points of a series.
    """
    place = pl.int_range(pl.len()).over(by)
    length = pl.len().over(by)
    group = place * (most // 2) // length
    drawn = pl.col(y)
    # Of equal ones the first, so that of each group at most two remain.
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
