"""Repetitions in rounds, until means are known well enough (`repeat = { until = "2 %" }`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tcplab import _core
from tcplab._results.results import Results
from tcplab._warnings import warn

FEW = 2
"""So many repetitions show whether anything is random."""


def rounds(
    plans: Sequence[_core.Plan], results: Callable[[Sequence[_core.Plan]], Results]
) -> Iterator[list[_core.Plan]]:
    """The plans of each round: all that there are, or as many repetitions of each variant as are
    known to be needed, which grow by half from round to round.

    Looking after each run would stop at the first interval that happens to be narrow; with few
    looks, intervals keep their level. All variants have the same number, so that they have pairs.

    Args:
        plans: Those of all repetitions that there may be.
        results: Gives the results of such plans, once they have run.
    """
    if not plans or plans[0].until is None:
        yield list(plans)
        return
    share, least, most, column = plans[0].until
    number = FEW
    while True:
        chosen = [plan for plan in plans if plan.repetition < number]
        yield chosen
        widest, where = _widest(results(chosen), column)
        if number == FEW and widest == 0:
            warn(f"repeat: nothing is random: {FEW} repetitions have the same {column}")
            return
        if number >= least and widest is not None and widest <= share:
            return
        if number >= most:
            if widest is None:
                warn(f"repeat: {column} has no mean to be known within {_percent(share)}")
            else:
                said = f"{column} of {where} is known within {_percent(widest)}"
                warn(f"repeat: after {most} repetitions {said}, not {_percent(share)}")
            return
        number = min(max(least, -(-number * 3 // 2)), most)


def _widest(results: Results, column: str) -> tuple[float | None, str]:
    """How far a limit of the least known mean is from it, as a share of it, and what it is of.
    Nothing where there is no mean, or one is 0.
    """
    widest, where = None, ""
    for row in results.summary(by="class").iter_rows(named=True):
        mean, low, high = row[column], row[f"{column}_low"], row[f"{column}_high"]
        if mean is None:
            continue
        if low is None or high is None:
            # As yet too few, and not equal.
            return float("inf"), ""
        width = max(mean - low, high - mean)
        share = width / abs(mean) if mean != 0 else float("inf") if width > 0 else 0.0
        if widest is None or share > widest:
            variant = [f"{name} = {row[name]}" for name in results.swept if row[name] is not None]
            widest, where = share, ", ".join([repr(row["class"]), *variant])
    return widest, where


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
