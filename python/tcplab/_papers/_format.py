"""Numbers and verdicts in the form for readers."""

from __future__ import annotations

import math

from tcplab import statistics
from tcplab._papers._study import Cell, Check, Study
from tcplab._papers._verdicts import OPEN, Decided, Finding

MINUS = "\u2212"

MOST_UNEVEN = 1.5
"""An interval is shown as symmetrical up to this ratio of its sides."""

MOST_UNSURE = 10
"""An interval that extends this many times the value away from it is shown by its ends."""

MOST_DIGITS = 5
"""The most digits of a mean, however narrow its interval."""


def verdict(one: Decided) -> str:
    """The verdict, and the parameters that it depends on."""
    text = one.verdict
    if one.is_arithmetic:
        text += " (by arithmetic of their numbers alone)"
    if one.verdict == OPEN and one.needed is not None:
        text += f" (about {one.needed:,} runs would tell)"
    if one.claim.reason is not None:
        text += f": {one.claim.reason}"
    if one.depends:
        text += "; depends: " + "; ".join(f"{place}: {told}" for place, told in one.depends)
    return text


def check(one: Check, study: Study) -> str:
    """The statement of a check."""
    if one.arithmetic is not None:
        return f"`{one.arithmetic}` is {_limits(one, '')}{_why(one)}"
    assert one.side is not None
    quantity = study.experiments[one.side.experiment].quantities.get(one.side.quantity)
    words = one.side.quantity if quantity is None else quantity.words
    unit = "" if quantity is None else quantity.unit
    ours = f"{one.side.experiment}: {words}{_cell(one.side.cell)}"
    if one.other is None:
        return f"{ours} is {_limits(one, unit)}{_why(one)}"
    other = _cell(one.other.cell).strip() or "all"
    if one.other.quantity != one.side.quantity:
        known = study.experiments[one.other.experiment].quantities.get(one.other.quantity)
        other = f"{one.other.quantity if known is None else known.words}{_cell(one.other.cell)}"
    if one.other.experiment != one.side.experiment:
        other = f"{one.other.experiment}: {other}"
    if one.how == "similar_to":
        return f"{ours} is within {100 * one.by:g} % of {other}{_why(one)}"
    by = f" by {100 * one.by:g} %" if one.by else ""
    return f"{ours} is {one.how} {other}{by}{_why(one)}"


def _limits(one: Check, unit: str) -> str:
    low, high = (None if end is None else f"{end:g}" for end in (one.low, one.high))
    text = f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
    return f"{text} {unit}".rstrip()


def _cell(cell: Cell) -> str:
    parts = [f"{key} {' or '.join(allowed)}" for key, allowed in cell.items()]
    return f" ({', '.join(parts)})" if parts else ""


def _why(one: Check) -> str:
    return f" ({one.why})" if one.why else ""


def shown(finding: Finding) -> str:
    """A number with its interval."""
    if finding.estimate is None:
        return finding.verdict
    if not finding.is_share:
        return measured(finding.estimate, finding.low, finding.high)
    middle, low, high = (
        None if one is None else f"{100 * one:+,.1f}".replace("-", MINUS)
        for one in (finding.estimate, finding.low, finding.high)
    )
    return f"{middle} %" if low is None or low == high else f"{middle} % ({low} to {high})"


def measured(value: float, low: float | None, high: float | None) -> str:
    """A mean with its interval, `9.43 ± 0.12`, with as many digits as the interval justifies, up to
    `MOST_DIGITS`. If both limits are about equally far, the greater distance is shown for both.
    """
    if low is None or high is None or low == high:
        return number(value, f"{value:.4g}")
    below, above = value - low, high - value
    if value and max(below, above) > MOST_UNSURE * abs(value):
        # With such an interval, the number of digits would say nothing about the value.
        return f"{number(value, f'{value:.2g}')} ({_rough(low)} to {_rough(high)})"
    places = min(_places(max(below, above)), _places(value) + MOST_DIGITS - 2)
    middle, less, more = (_fixed(one, places) for one in (value, below, above))
    least = _fixed(10.0**-places, places)
    less, more = (least if one == _fixed(0, places) else one for one in (less, more))
    is_even = max(below, above) < MOST_UNEVEN * min(below, above)
    further = less if below > above else more
    return f"{middle} ± {further}" if is_even else f"{middle} +{more} {MINUS}{less}"


def _rough(value: float) -> str:
    """A limit with two digits."""
    return _fixed(value, _places(value))


def _places(number: float) -> int:
    """The number of decimals that show two digits of a number; negative for large numbers."""
    return 1 - math.floor(math.log10(abs(number))) if number else 0


def _fixed(value: float, places: int) -> str:
    rounded = round(value, places)
    text = (
        f"{rounded:,.{max(places, 0)}f}" if abs(rounded) >= 1e4 else f"{rounded:.{max(places, 0)}f}"
    )
    return text.replace("-", MINUS)


def number(value: float, short: str) -> str:
    """A number for readers: thousands separated, no exponents where digits suffice."""
    far = abs(value) >= 1e4
    return (f"{value:,.0f}" if far else short).replace("-", MINUS)


def mean(found: statistics.Interval | None) -> str:
    """A mean with its interval."""
    if found is None or found.estimate is None:
        return ""
    return measured(found.estimate, found.low, found.high)
