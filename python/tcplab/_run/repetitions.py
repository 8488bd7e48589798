"""Repeats in rounds until means are known well enough (`repeat = { until = "2 %" }`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tcplab import _core
from tcplab._results.results import Results
from tcplab._warnings import warn

FEW = 2
"""The number of repetitions that shows whether anything is random."""


def rounds(
    plans: Sequence[_core.Plan], results: Callable[[Sequence[_core.Plan]], Results]
) -> Iterator[list[_core.Plan]]:
    """Yields the plans of each round: all plans, or as many repetitions of each variant as are
    known to be needed, growing by half from round to round.

    Looking after each run would stop at the first interval that happens to be narrow. With few
    looks, intervals keep their level. All variants get the same number of repetitions, so that they
    form pairs.

    Args:
        plans: The plans of the greatest possible number of repetitions.
        results: Returns the results of plans that have run.
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
    """The greatest relative half-width of an interval, and its subject. `None` if there is no mean,
    or one is 0.
    """
    widest, where = None, ""
    for row in results.summary(by="class").iter_rows(named=True):
        mean, low, high = row[column], row[f"{column}_low"], row[f"{column}_high"]
        if mean is None:
            continue
        if low is None or high is None:
            # Too few repetitions yet, and not all equal.
            return float("inf"), ""
        width = max(mean - low, high - mean)
        share = width / abs(mean) if mean != 0 else float("inf") if width > 0 else 0.0
        if widest is None or share > widest:
            variant = [f"{name} = {row[name]}" for name in results.swept if row[name] is not None]
            widest, where = share, ", ".join([repr(row["class"]), *variant])
    return widest, where


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
