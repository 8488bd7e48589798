"""The few statistics that tables need."""

from __future__ import annotations

import polars as pl

# Quantiles of Student's t at 97.5 %, for 1, 2, ... 30 degrees of freedom (any statistics textbook).
_QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip

# The same beyond, each from this number of degrees of freedom on; it is right there and wide of the
# truth by less than 1.1 % up to the next.
_FURTHER = ((1000, 1.962), (300, 1.968), (120, 1.980), (60, 2.000), (40, 2.021), (30, 2.042))


def t_quantile(freedom: int) -> float:
    """The quantile of Student's t at 97.5 %; between the values of the table, the wider one."""
    if freedom < 1:
        raise ValueError(f"{freedom} is less than 1 degree of freedom")
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    return next(quantile for least, quantile in _FURTHER if freedom >= least)


def half_width(column: str) -> pl.Expr:
    """Half the width of the 95 % confidence interval of a column's mean; nothing below two values.

    Student's interval: t * s / sqrt(n), with n - 1 degrees of freedom.
    """
    values = pl.col(column)
    count = values.count()
    known = range(_FURTHER[0][0] + 1)
    quantile = count.replace_strict(
        list(known),
        [t_quantile(number - 1) if number > 1 else None for number in known],
        default=_FURTHER[0][1],
        return_dtype=pl.Float64,
    )
    return quantile * values.std() / count.cast(pl.Float64).sqrt()


def jain(column: str) -> pl.Expr:
    """Jain's fairness index: 1 if all values are equal, 1/n if one has everything.

    Nothing where all values are zero.
    """
    values = pl.col(column)
    squares = values.pow(2).sum()
    return pl.when(squares > 0).then(values.sum().pow(2) / (values.count() * squares))


def covered(start: str, end: str) -> pl.Expr:
    """The length of the time in which any of the intervals from `start` to `end` runs."""
    starts, ends = (pl.col(column).sort_by(start) for column in (start, end))
    # What the intervals before have covered already.
    reached = ends.cum_max().shift(1)
    return (ends - pl.max_horizontal(starts, reached)).clip(lower_bound=0.0).sum()


def percentile(column: str, share: float, longest: pl.Expr) -> pl.Expr:
    """The least value that this share of all does not exceed (the nearest rank).

    So many more count as longer than every value; nothing where the rank is one of those.
    """
    values = pl.col(column).drop_nulls().sort()
    # In whole numbers: 0.95 of 20 is the 19th, whatever 0.95 is in binary.
    rank = (round(share * 100) * (values.len() + longest) + 99) // 100
    return values.get((rank - 1).cast(pl.Int64), null_on_oob=True)
