"""Decides the claims of a study from runs.

Each check is a statement about means over runs with the same seeds, evaluated by an interval: the
check holds if the whole interval is on its side, and fails if the whole interval is on the other
side. The level of the interval is 95 % for a claim with one check. With k checks, and l looks at
the claim while repetitions are added, it is 1 - 5 %/(k l), so that all checks together err in at
most 5 % of claims. A claim holds if all of its checks hold, and does not hold if one fails. If no
check is open and each failed one shows the opposite, the claim is reversed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tcplab import statistics
from tcplab._core import ConfigError
from tcplab._papers._measured import Tables, values
from tcplab._papers._study import REPEAT, Check, Claim, Side, Study

HOLDS = "holds"
NO_LONGER = "holds no longer"
FAILS = "does not hold"
REVERSED = "reversed"
OPEN = "cannot be told"
NOT_RUN = "not run"
UNTESTABLE = "not testable"

VERDICTS = (HOLDS, NO_LONGER, FAILS, REVERSED, OPEN, NOT_RUN, UNTESTABLE)

STACKS = ("then", "now")
"""The study's own stack, and today's: variants of each experiment."""

ON_LINUX = "now, on Linux"
"""Today's stack as run by the kernel itself."""

LEVEL = 0.95

MOST_RUNS = 100_000
"""A needed number of runs beyond this is not reported."""


@dataclass(frozen=True)
class Finding:
    """The verdict of the runs with one stack on one check."""

    verdict: str
    estimate: float | None = None
    """The mean, or the relative difference from the other side."""

    low: float | None = None
    high: float | None = None
    n: int = 0
    needed: int | None = None
    """The estimated number of runs that would decide, given the present spread."""

    is_share: bool = False


@dataclass(frozen=True)
class Decided:
    """The decision on a claim."""

    claim: Claim
    verdict: str
    of: Mapping[str, str]
    """The verdict with each stack."""

    findings: Mapping[str, tuple[Finding, ...]]
    """For each stack, the findings of its checks."""

    depends: tuple[tuple[str, str], ...] = ()
    """The values of unpublished parameters for which the verdict differs, each with that verdict.
    """

    needed: int | None = None

    @property
    def then(self) -> str:
        """The verdict with the study's own stack."""
        return self.of["then"]

    @property
    def is_arithmetic(self) -> bool:
        """Whether the paper's own numbers alone decide the claim, without runs."""
        checks = self.claim.checks
        return bool(checks) and all(one.arithmetic is not None for one in checks)

    @property
    def now(self) -> str:
        """The verdict with today's stack."""
        return self.of["now"]


def decide(claim: Claim, study: Study, tables: Tables, linux: Tables | None = None) -> Decided:
    """Decides a claim from measurements; `linux` are those of the kernel.

    Raises:
        ConfigError: A check names a column that its experiment does not have.
    """
    if claim.reason is not None:
        return Decided(claim, UNTESTABLE, dict.fromkeys(STACKS, UNTESTABLE), {})
    places = _places(claim, tables)
    level = 1 - (1 - LEVEL) / (len(claim.checks) * _looks(claim, study))
    found = {
        (stack, place): _all_of(claim, tables, {"variant": stack, **dict(place)}, level)
        for stack in STACKS
        for place in places
    }
    first = places[0]
    findings = {stack: found[stack, first] for stack in STACKS}
    if linux:
        findings[ON_LINUX] = _all_of(claim, linux, {"variant": "now", **dict(first)}, level)
    verdicts = {stack: _together(of) for stack, of in findings.items()}
    if verdicts.get(ON_LINUX) == NOT_RUN:
        del verdicts[ON_LINUX], findings[ON_LINUX]
    others = [(_called(place), _together(found["then", place])) for place in places[1:]]
    needs = [one.needed for one in found["then", first] if one.verdict == OPEN]
    return Decided(
        claim,
        _overall(verdicts["then"], verdicts["now"]),
        verdicts,
        findings,
        tuple(one for one in others if one[1] != verdicts["then"]),
        max((n for n in needs if n is not None), default=None)
        if verdicts["then"] == OPEN and None not in needs
        else None,
    )


def _looks(claim: Claim, study: Study) -> int:
    """The number of looks at a claim while repetitions are added, which double each time."""
    sides = [side for check in claim.checks for side in (check.side, check.other)]
    most = [study.experiments[side.experiment].at_most for side in sides if side is not None]
    return 1 + math.ceil(math.log2(max([REPEAT, *most]) / REPEAT))


def _places(claim: Claim, tables: Tables) -> list[tuple[tuple[str, str], ...]]:
    """The values of unpublished parameters with which the claim is decided: first our choice
    (empty), then each other value of one parameter at a time.
    """
    sides = [side for check in claim.checks for side in (check.side, check.other)]
    found: dict[tuple[str, str], None] = {}
    for side in sides:
        rows = None if side is None else tables.get(side.experiment)
        if side is None or rows is None:
            continue
        for key, choice in side.lost.items():
            # The kernel runs today's stack alone, to which an unpublished parameter may not apply.
            if key in side.cell or key not in rows.columns:
                continue
            values_there = rows[key].unique(maintain_order=True).to_list()
            found |= {(key, one): None for one in values_there if one not in choice}
    return [(), *((one,) for one in found)]


def _called(place: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{column} {value}" for column, value in place)


def _all_of(
    claim: Claim, tables: Tables, more: Mapping[str, str], level: float
) -> tuple[Finding, ...]:
    return tuple(_finding(one, tables, more, level) for one in claim.checks)


def _together(findings: tuple[Finding, ...]) -> str:
    verdicts = {one.verdict for one in findings}
    if NOT_RUN in verdicts:
        return NOT_RUN
    if verdicts == {REVERSED}:
        return REVERSED
    if verdicts & {FAILS, REVERSED}:
        return FAILS
    return OPEN if OPEN in verdicts else HOLDS


def _overall(then: str, now: str) -> str:
    return NO_LONGER if then == HOLDS and now in (FAILS, REVERSED) else then


def _finding(check: Check, tables: Tables, more: Mapping[str, str], level: float) -> Finding:
    if check.arithmetic is not None:
        return _of_arithmetic(check)
    assert check.side is not None
    ours = values(tables, check.side, more)
    if ours is None:
        return Finding(NOT_RUN)
    if check.other is None:
        return _of_limits(check, list(ours.values()), level)
    theirs = values(tables, check.other, more)
    if theirs is None:
        return Finding(NOT_RUN)
    pairs = [(ours[one], theirs[one]) for one in ours if one in theirs]
    return _of_pairs(check, [one for one, _ in pairs], [two for _, two in pairs], level)


def _of_arithmetic(check: Check) -> Finding:
    import duckdb  # noqa: PLC0415 (most studies need no SQL)

    try:
        with duckdb.connect() as database:
            row = database.execute(f"select cast(({check.arithmetic}) as double)").fetchone()
    except duckdb.Error as error:
        raise ConfigError(f"arithmetic: {check.arithmetic}: {str(error).splitlines()[0]}") from None
    value = float(row[0]) if row is not None and row[0] is not None else math.nan
    if not math.isfinite(value):
        raise ConfigError(f"arithmetic: {check.arithmetic} is no number")
    low = -math.inf if check.low is None else check.low
    high = math.inf if check.high is None else check.high
    return Finding(HOLDS if low <= value <= high else FAILS, value, value, value, 1)


def _of_limits(check: Check, ours: list[float], level: float) -> Finding:
    found = statistics.interval(ours, level=level)
    low = -math.inf if check.low is None else check.low
    high = math.inf if check.high is None else check.high
    if found.low is None or found.high is None or found.estimate is None:
        return Finding(OPEN, found.estimate, n=found.n)
    numbers = (found.estimate, found.low, found.high, found.n)
    if low <= found.low and found.high <= high:
        return Finding(HOLDS, *numbers)
    if found.high < low or high < found.low:
        return Finding(FAILS, *numbers)
    nearest = min(abs(found.estimate - low), abs(found.estimate - high))
    return Finding(OPEN, *numbers, _needed(found, nearest))


def _of_pairs(check: Check, ours: list[float], theirs: list[float], level: float) -> Finding:
    apart = statistics.difference(ours, theirs, level=level)
    of = abs(sum(theirs) / len(theirs)) if theirs else 0.0
    if apart.low is None or apart.high is None or apart.estimate is None or of == 0:
        shown = apart.estimate / of if apart.estimate is not None and of else None
        return Finding(OPEN, shown, n=apart.n, is_share=True)
    numbers = (apart.estimate / of, _lowest(ours, apart.low / of), apart.high / of, apart.n)
    if check.how == "similar_to":
        above = _beyond(ours, theirs, 1 + check.by, level)
        below = _beyond(ours, theirs, 1 - check.by, level)
        bounds = (above.low, above.high, below.low, below.high)
        if None in bounds:
            return Finding(OPEN, *numbers, is_share=True)
        if (above.high or 0.0) < 0 < (below.low or 0.0):
            return Finding(HOLDS, *numbers, is_share=True)
        if (above.low or 0.0) > 0 or (below.high or 0.0) < 0:
            return Finding(FAILS, *numbers, is_share=True)
        needs = [_needed(one, abs(one.estimate or 0.0)) for one in (above, below)]
        known = [n for n in needs if n is not None]
        needed = max(known) if len(known) == len(needs) else None
        return Finding(OPEN, *numbers, needed, is_share=True)
    side = 1 if check.how == "above" else -1
    beyond = _beyond(ours, theirs, 1 + side * check.by, level)
    if beyond.low is None or beyond.high is None or beyond.estimate is None:
        return Finding(OPEN, *numbers, is_share=True)
    low, high = sorted((side * beyond.low, side * beyond.high))
    if low == high == 0:
        # Equal in each pair, and nothing exceeds its equal.
        return Finding(FAILS, *numbers, is_share=True)
    if low > 0:
        return Finding(HOLDS, *numbers, is_share=True)
    if max(side * apart.low, side * apart.high) < 0:
        return Finding(REVERSED, *numbers, is_share=True)
    if high < 0:
        return Finding(FAILS, *numbers, is_share=True)
    return Finding(OPEN, *numbers, _needed(beyond, abs(beyond.estimate)), is_share=True)


def _lowest(ours: list[float], low: float) -> float:
    """The lower limit of a share. A side that is never negative cannot be more than 100 % below."""
    return max(low, -1.0) if min(ours) >= 0 else low


def _beyond(
    ours: list[float], theirs: list[float], times: float, level: float
) -> statistics.Interval:
    """The amount by which one side exceeds a multiple of the other."""
    return statistics.difference(ours, [times * one for one in theirs], level=level)


def _needed(found: statistics.Interval, distance: float) -> int | None:
    """The number of runs that would move the nearer limit off the threshold: widths shrink as
    1/sqrt(n).
    """
    width = found.half_width
    if width is None or distance == 0:
        return None
    needed = math.ceil(found.n * (width / distance) ** 2)
    return needed if needed <= MOST_RUNS else None


def summary_of(side: Side, tables: Tables, stack: str) -> statistics.Interval | None:
    """The mean of a quantity with one stack."""
    found = values(tables, side, {"variant": stack})
    return None if not found else statistics.interval(list(found.values()))


def share_below(side: Side, tables: Tables, stack: str, value: float) -> float | None:
    """The rank of a published number among our runs: the share below it, with equal ones counted
    half.
    """
    found = values(tables, side, {"variant": stack})
    if not found:
        return None
    below = sum((one < value) + (one <= value) for one in found.values())
    return below / (2 * len(found))
