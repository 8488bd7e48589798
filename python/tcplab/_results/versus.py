"""Compares variants with a baseline: paired differences, and whether they are significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from tcplab import statistics
from tcplab._results.flow_summary import BY, VERSUS, PerRun

METRICS = {
    "flow": (
        "goodput_mbit_s", "retransmitted_share", "rtt_mean_ms", "completion_s",
        "completion_p50_s", "completion_p95_s", "completion_p99_s", "lost_share", "delay_mean_ms",
        "delay_p99_ms",
    ),
    "class": (
        "goodput_mbit_s", "goodput_all_mbit_s", "jain_index", "retransmitted_share", "rtt_mean_ms",
        "completion_p50_s", "completion_p95_s", "completion_p99_s", "lost_share", "delay_mean_ms",
        "delay_p99_ms",
    ),
}  # fmt: skip
"""The metrics compared by default: the columns of the screen."""

MORE = {"goodput_mbit_s", "goodput_all_mbit_s", "bottleneck_share", "power", "equal_shares"}
LESS = {
    *("rtt_mean_ms", "rtt_min_ms", "completion_s", "completion_mean_s", "completion_p50_s"),
    *("completion_p95_s", "completion_p99_s", "retransmitted_share", "lost_share"),
    *("delay_mean_ms", "delay_p50_ms", "delay_p95_ms", "delay_p99_ms", "jitter_ms", "slowdown"),
    *("queue_delay_mean_ms", "queue_delay_p50_ms", "queue_delay_p95_ms", "queue_delay_p99_ms"),
}
"""Metrics of which more is better, and those of which less is."""

PAIR = ["seed", "repetition"]

LEVEL_OF_TESTS = 0.05

LEAST_PAIRS = 2


def versus(
    runs: PerRun,
    *,
    swept: Sequence[str],
    baseline: Mapping[str, str] | str,
    metrics: Sequence[str] | None,
    by: str,
    margin: float,
    level: float,
) -> pl.DataFrame:
    """A row for each metric of each flow of each variant but the baseline; see `Results.versus`."""
    if margin <= 0:
        raise ValueError(f"margin: {margin:g} is not greater than 0")
    is_asked = metrics is not None
    metrics = list(metrics or METRICS.get(by, METRICS["class"]))
    if unknown := [name for name in metrics if name not in runs.measures]:
        raise ValueError(f"metrics: there is no {unknown[0]!r}; there are {_listed(runs.measures)}")
    chosen = chosen_baseline(runs.rows, swept, baseline)
    is_baseline = pl.all_horizontal(pl.col(name) == value for name, value in chosen.items())
    rows = runs.rows.with_columns(is_baseline.alias("is baseline"))
    theirs, ours = rows.filter("is baseline"), rows.filter(~pl.col("is baseline"))
    if ours.is_empty():
        raise ValueError("baseline: there is no other variant")
    # Columns that identify the same subject on both sides. The congestion control may be the
    # difference.
    names = [
        name
        for name in BY[by]
        if (name == by and by != "cc") or set(theirs[name]) == set(ours[name])
    ]
    compared = stepping(rows, swept, list(chosen))
    key = [*(name for name in swept if name not in compared), *names]
    for part in (theirs, ours):
        if part.select(*compared, *key, *PAIR).is_duplicated().any():
            raise ValueError(f"by: rows by {by!r} of both cannot be told apart; try another")
    joined = ours.join(
        theirs.select(*key, *PAIR, *metrics),
        on=[*key, *PAIR],
        how="inner",
        suffix=" of baseline",
        nulls_equal=True,
        maintain_order="left",
    )
    if joined.is_empty():
        raise ValueError("baseline: no run of another variant has its seed, and all else the same")
    # A parameter may have the name of a column of comparisons.
    joined = joined.rename({name: f"sweep.{name}" for name in swept if name in VERSUS})
    swept = [f"sweep.{name}" if name in VERSUS else name for name in swept]
    kind = list(dict.fromkeys([*swept, *BY[by]]))
    found = []
    for about, pairs in joined.group_by(kind, maintain_order=True):
        for metric in metrics:
            values, others = pairs[metric], pairs[f"{metric} of baseline"]
            if not is_asked and values.count() == 0 and others.count() == 0:
                continue
            row = _row(values.to_list(), others.to_list(), margin, level)
            row["harm"] = _harm(metric, row["baseline"], row["mean"])
            found.append(dict(zip(kind, about, strict=True)) | {"metric": metric} | row)
    for name in ("p", "p_same"):
        adjusted = statistics.holm([row[name] for row in found])
        for row, p in zip(found, adjusted, strict=True):
            row[name] = p
    for row in found:
        row["verdict"] = _verdict(row)
        row["said"] = _said(row, margin)
        del row["is constant"]
    return pl.DataFrame(found, schema=dict.fromkeys(kind, pl.String) | VERSUS)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def chosen_baseline(
    rows: pl.DataFrame, swept: Sequence[str], baseline: Mapping[str, str] | str
) -> dict[str, str]:
    """The columns that identify the baseline, with its values."""
    if not swept:
        raise ValueError("baseline: nothing is swept, and there are no variants")
    if isinstance(baseline, str):
        having = [name for name in swept if baseline in set(rows[name])]
        if len(having) != 1:
            said = f"{_listed(having)} have" if having else f"none of {_listed(swept)} has"
            raise ValueError(f"baseline: {said} the value {baseline!r}")
        return {having[0]: baseline}
    chosen = {}
    for given, value in baseline.items():
        # The last part of a path is enough if no other path has it.
        ends = [name for name in swept if name.rsplit(".", 1)[-1] == given]
        if given not in swept and len(ends) != 1:
            raise ValueError(f"baseline: {given!r} is not swept; there are {_listed(swept)}")
        name = given if given in swept else ends[0]
        chosen[name] = value
        values = rows[name].unique(maintain_order=True).drop_nulls().to_list()
        if value not in values:
            raise ValueError(f"baseline: {name} has no value {value!r}; it has {_listed(values)}")
    if not chosen:
        raise ValueError("baseline: no key is given")
    return chosen


def stepping(rows: pl.DataFrame, swept: Sequence[str], chosen: list[str]) -> list[str]:
    """The chosen columns, and those that change in step with them (`zip`)."""
    number = rows.n_unique(chosen)
    return [
        name
        for name in swept
        if name in chosen
        or (rows[name].n_unique() > 1 and rows.n_unique([*chosen, name]) == number)
    ]


def _row(
    values: list[float | None], others: list[float | None], margin: float, level: float
) -> dict[str, Any]:
    """The numbers of one comparison. P-values are not corrected yet."""
    pairs = [
        (float(one), float(other))
        for one, other in zip(values, others, strict=True)
        if one is not None and other is not None
    ]
    ours, theirs = [one for one, _ in pairs], [other for _, other in pairs]
    row: dict[str, Any] = dict.fromkeys([*VERSUS, "is constant"]) | {"pairs": len(pairs)}
    del row["metric"]
    if not pairs:
        return row
    is_few = LEAST_PAIRS <= len(pairs) < statistics.FEWEST
    assume: statistics.Assume | None = "normal" if is_few else None
    apart = statistics.difference(ours, theirs, level=level, assume=assume)
    usual = statistics.interval(theirs).estimate or 0.0
    row |= {
        "baseline": usual,
        "mean": statistics.interval(ours).estimate,
        "difference": apart.estimate,
        "difference_low": apart.low,
        "difference_high": apart.high,
        "relative": _share(apart.estimate, usual),
        "relative_low": _share(apart.low, usual),
        "relative_high": _share(apart.high, usual),
        "assumes": assume,
        "is constant": len({one - other for one, other in pairs}) == 1,
    }
    if len(pairs) < LEAST_PAIRS or row["is constant"]:
        return row
    row["effect"] = statistics.effect(ours, theirs)
    row["p"] = statistics.p_different(ours, theirs, assume=assume)
    if usual != 0:
        matters = margin * abs(usual)
        row["p_same"] = statistics.p_same(ours, theirs, matters, assume=assume)
        needed = statistics.runs_needed(ours, theirs, matters)
        row["more_runs"] = None if needed is None else max(needed - len(pairs), 0)
    return row


def _harm(metric: str, alone: float | None, beside: float | None) -> float | None:
    """How much worse than the baseline, as a share of the better one (Ware et al. 2019)."""
    if alone is None or beside is None or metric not in MORE | LESS:
        return None
    better, worse = (alone, beside) if metric in MORE else (beside, alone)
    return (better - worse) / better if better > 0 else None


def _share(difference: float | None, of: float) -> float | None:
    return None if difference is None or of == 0 else difference / abs(of)


def _verdict(row: Mapping[str, Any]) -> str | None:
    if row["difference"] is None:
        return None
    is_higher = row["difference"] > 0
    if row["is constant"] and row["pairs"] >= LEAST_PAIRS:
        return "equal" if row["difference"] == 0 else "higher" if is_higher else "lower"
    if row["p_same"] is not None and row["p_same"] < LEVEL_OF_TESTS:
        return "same"
    if row["p"] is not None and row["p"] < LEVEL_OF_TESTS:
        return "higher" if is_higher else "lower"
    return "unknown"


@dataclass(frozen=True)
class _Apart:
    """A difference for readers: as a share of the baseline, or absolute where there is no share."""

    value: float
    low: float | None
    high: float | None
    is_share: bool

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> _Apart:
        """The difference in a row."""
        is_share = row["relative"] is not None
        kind = "relative" if is_share else "difference"
        return cls(row[kind], row[f"{kind}_low"], row[f"{kind}_high"], is_share)

    def text(self, value: float | None = None) -> str:
        """A value in the same form; by default the difference itself."""
        value = self.value if value is None else value
        return percent(value) if self.is_share else f"{value:.3g}"

    def signed(self) -> str:
        """The interval with signs: `-0.4 to 1.2 %`."""
        if self.low is None or self.high is None:
            return self.text()
        return f"{self.text(self.low).removesuffix(' %')} to {self.text(self.high)}"

    def directed(self) -> str:
        """The difference in words: `higher by 3.1 % (2.2 to 4.0)`."""
        sign = -1 if self.value < 0 else 1
        said = f"{'lower' if sign < 0 else 'higher'} by {self.text(abs(self.value))}"
        if self.low is None or self.high is None:
            return said
        ends = sorted((sign * self.low, sign * self.high))
        low, high = (self.text(end).removesuffix(" %") for end in ends)
        return f"{said} ({low} to {high})"


def _said(row: Mapping[str, Any], margin: float) -> str | None:
    """The verdict in words."""
    pairs = row["pairs"]
    if row["verdict"] is None:
        return "no pair of runs has it"
    if row["verdict"] == "equal":
        return f"equal in each of {pairs} pairs"
    apart = _Apart.of(row)
    if row["is constant"] and pairs >= LEAST_PAIRS:
        return f"{replace(apart, low=None).directed()} in each of {pairs} pairs"
    if row["verdict"] in ("higher", "lower"):
        return apart.directed()
    if row["verdict"] == "same":
        if row["p"] is not None and row["p"] < LEVEL_OF_TESTS:
            return f"{apart.directed()}, less than {percent(margin)}"
        return f"no difference seen: within {apart.text(bound(row, margin))}"
    if not row["more_runs"] or pairs < LEAST_PAIRS:
        is_close = row["more_runs"] == 0 and pairs >= LEAST_PAIRS
        return undecided(row) + (f": about as great as {percent(margin)}" if is_close else "")
    more = rounded(row["more_runs"])
    return f"{undecided(row)}; about {more} more runs would tell {percent(margin)}"


def undecided(row: Mapping[str, Any]) -> str:
    """The verdict `unknown` in words, without the number of runs that would tell."""
    apart = _Apart.of(row)
    if row["pairs"] < LEAST_PAIRS:
        return f"cannot be told from one pair; {apart.directed()} there"
    return f"cannot be told ({apart.signed()})"


def bound(row: Mapping[str, Any], margin: float) -> float:
    """The greatest difference of a row whose verdict is `same`: as a share, or in the metric's unit
    where there is no share. Its tests have shown that a share is within the margin, although the
    interval, which is stricter, may reach beyond.
    """
    apart = _Apart.of(row)
    most = max(abs(apart.low or 0.0), abs(apart.high or 0.0))
    return min(most, margin) if apart.is_share else most


def rounded(number: int) -> str:
    """A number rounded to two significant digits, because it is an estimate."""
    return f"{int(float(f'{number:.1e}')):,}"


def percent(share: float) -> str:
    """A share as a percentage, with at least two digits."""
    percent = 100 * share
    size = abs(percent)
    return f"{percent:.{0 if size >= 99.5 else 1 if size >= 0.95 else 2}f} %"
