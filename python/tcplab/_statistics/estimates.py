"""The few statistics that tables need."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tcplab import _polars as pl


def limits(
    frame: pl.DataFrame, names: Sequence[str], *, statistic: str, level: float
) -> list[pl.Series]:
    """For each named column of lists: half the width of Student's interval of the mean, and the
    limits of the mean or median (`statistics.interval`), as columns `..._ci`, `..._low`,
    `..._high`.

    The limits are null where a list has too few values.
    """
    found: list[pl.Series] = []
    for name in names:
        lists = frame[name]
        half, low, high = _limits(lists, statistic, level)
        for ending, values in (("ci", half), ("low", low), ("high", high)):
            found.append(pl.Series(f"{name}_{ending}", values, dtype=pl.Float64))
    return found


def _limits(
    lists: pl.Series, statistic: str, level: float
) -> tuple[list[float | None], list[float | None], list[float | None]]:
    nothing: list[float | None] = [None] * len(lists)
    if (lists.list.len() < 2).all():
        # SciPy takes a third of a second to load.
        return nothing, nothing, nothing
    from tcplab._statistics import intervals  # noqa: PLC0415

    groups = [intervals.array(values) for values in lists.to_list()]
    half = list(nothing)
    if statistic == "mean":
        several = [place for place, values in enumerate(groups) if len(values) > 1]
        deviations = intervals.array([float(groups[place].std(ddof=1)) for place in several])
        counts = [len(groups[place]) for place in several]
        widths = intervals.half_widths(deviations, counts, level).tolist()
        for place, width in zip(several, widths, strict=True):
            half[place] = width
    pairs = intervals.of_groups(groups, None if statistic == "mean" else 0.5, level)
    return half, [pair and pair[0] for pair in pairs], [pair and pair[1] for pair in pairs]


def jain(column: str) -> pl.Expr:
    """Jain's fairness index: 1 if all values are equal, 1/n if one value has everything.

    Null if all values are zero.
    """
    values = pl.col(column)
    squares = values.pow(2).sum()
    return pl.when(squares > 0).then(values.sum().pow(2) / (values.count() * squares))


def covered(start: str, end: str) -> pl.Expr:
    """The total time during which any of the intervals from `start` to `end` runs."""
    starts, ends = (pl.col(column).sort_by(start) for column in (start, end))
    # The end of the time that earlier intervals cover.
    reached = ends.cum_max().shift(1)
    return (ends - pl.max_horizontal(starts, reached)).clip(lower_bound=0.0).sum()


def percentile(column: str, share: float, longest: pl.Expr) -> pl.Expr:
    """The least value that this share of all values does not exceed (nearest rank).

    `longest` further values count as longer than every value; the result is null where the rank
    falls on one of them.
    """
    values = pl.col(column).drop_nulls().sort()
    # In integers: 0.95 of 20 is the 19th, whatever 0.95 is in binary.
    rank = (round(share * 100) * (values.len() + longest) + 99) // 100
    return values.get((rank - 1).cast(pl.Int64), null_on_oob=True)


OUTLINE = 48
"""The number of corners of an ellipse as it is drawn."""


def ellipse(xs: pl.Series, ys: pl.Series) -> list[tuple[float, float]]:
    """The contour one standard deviation away from the mean in every direction: a level set of the
    normal distribution with the covariance of these points. Empty for fewer than three points, or
    if all points are equal.
    """
    if len(xs) < 3:
        return []
    frame = pl.DataFrame({"x": xs, "y": ys})
    mean_x, mean_y, in_x, in_y, both = frame.select(
        pl.col("x").mean(), pl.col("y").mean().alias("mean y"), pl.col("x").var().alias("var x"),
        pl.col("y").var().alias("var y"), pl.cov("x", "y").alias("cov"),
    ).row(0)  # fmt: skip
    if in_x + in_y == 0:
        return []
    # The lower triangular matrix whose product with its transpose is the covariance (Cholesky).
    a = math.sqrt(in_x)
    b = both / a if a > 0 else 0.0
    c = math.sqrt(max(in_y - b * b, 0.0))
    turns = (2 * math.pi * place / OUTLINE for place in range(OUTLINE))
    return [
        (mean_x + a * math.cos(turn), mean_y + b * math.cos(turn) + c * math.sin(turn))
        for turn in turns
    ]
