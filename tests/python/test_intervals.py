"""Intervals keep their level, and comparisons report what is significant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import tcplab as lab
from tcplab import statistics
from tcplab._statistics import intervals

REPETITIONS = 2000

Draw = Callable[[tuple[int, ...]], Any]


class Kind:
    """A distribution with its mean, median and 95th percentile."""

    def __init__(self, draw: Draw, mean: float, median: float, p95: float) -> None:
        self.draw, self.mean, self.median, self.p95 = draw, mean, median, p95


def mixture(
    random: np.random.Generator, weight: float, low: float, high: float, *, spread: float
) -> Kind:
    """A mixture of two modes. `weight` is that of the lower one."""

    def draw(shape: tuple[int, ...]) -> Any:
        centre = np.where(random.random(shape) < weight, low, high)
        return random.normal(centre, spread)

    def below(value: float) -> float:
        parts = [math.erfc((mode - value) / spread / math.sqrt(2)) / 2 for mode in (low, high)]
        return weight * parts[0] + (1 - weight) * parts[1]

    def quantile(share: float) -> float:
        least, most = low - 9 * spread, high + 9 * spread
        for _ in range(80):
            middle = (least + most) / 2
            least, most = (middle, most) if below(middle) < share else (least, middle)
        return least

    return Kind(draw, weight * low + (1 - weight) * high, quantile(0.5), quantile(0.95))


def kinds(seed: int) -> dict[str, Kind]:
    random = np.random.default_rng(seed)
    z95 = 1.6448536269514722
    return {
        "normal": Kind(lambda shape: random.normal(10, 2, shape), 10, 10, 10 + 2 * z95),
        "log-normal": Kind(
            lambda shape: random.lognormal(0, 1, shape), math.exp(0.5), 1, math.exp(z95)
        ),
        "bimodal": mixture(random, 0.7, 5, 15, spread=1),
        "even": mixture(random, 0.5, 10, 20, spread=2),
        "near": mixture(random, 0.4, 0, 4, spread=1),
    }


KINDS = list(kinds(0))


def held(limits: list[tuple[float, float] | None], truth: float) -> float:
    """The share of the intervals that cover the true value. None may be missing."""
    pairs = [pair for pair in limits if pair is not None]
    assert len(pairs) == len(limits)
    return sum(low <= truth <= high for low, high in pairs) / len(pairs)


@pytest.mark.parametrize("runs", [10, 30, 100])
@pytest.mark.parametrize("name", KINDS)
def test_intervals_of_means_hold(name: str, runs: int) -> None:
    kind = kinds(runs)[name]
    rows = kind.draw((REPETITIONS, runs))
    share = held(intervals.of_groups(list(rows), None, 0.95), kind.mean)
    assert share >= 0.93
    if name == "normal":
        assert share <= 0.97


@pytest.mark.parametrize("runs", [5, 10, 30, 100])
@pytest.mark.parametrize("name", KINDS)
def test_intervals_of_medians_hold(name: str, runs: int) -> None:
    kind = kinds(runs)[name]
    rows = kind.draw((REPETITIONS, runs))
    assert held(intervals.of_groups(list(rows), 0.5, 0.95), kind.median) >= 0.93


@pytest.mark.parametrize("name", KINDS)
def test_intervals_of_percentiles_hold_from_59_runs_on(name: str) -> None:
    # All of n values are below the 95th percentile with probability 0.95^n: 5 % at 59.
    kind = kinds(1)[name]
    rows = kind.draw((REPETITIONS, 100))
    assert held(intervals.of_groups(list(rows), 0.95, 0.95), kind.p95) >= 0.93
    for runs in (5, 10, 30, 58):
        few = statistics.interval(range(runs), of="p95")
        assert (few.low, few.high) == (None, None)
        assert few.reason == f"{runs} runs: the 95th percentile needs 59"
    assert statistics.interval(range(59), of="p95").high == 58


@pytest.mark.parametrize("runs", [10, 30])
@pytest.mark.parametrize("name", KINDS)
def test_intervals_of_differences_and_ratios_hold(name: str, runs: int) -> None:
    # Uncorrelated pairs, and strongly correlated ones.
    kind = kinds(runs + 1)[name]
    random = np.random.default_rng(2)
    found: dict[str, list[bool]] = {}
    for _ in range(150):
        one, other = kind.draw((runs,)), kind.draw((runs,))
        close = one + random.normal(1, 0.5, runs)
        cases = {
            "difference": (statistics.difference(1.3 * one, other), 0.3 * kind.mean),
            "unpaired": (statistics.difference(1.3 * one, other, paired=False), 0.3 * kind.mean),
            "close": (statistics.difference(close, one), 1.0),
            "ratio": (statistics.ratio(1.3 * one, other), 1.3),
            "unpaired ratio": (statistics.ratio(1.3 * one, other, paired=False), 1.3),
            "ratio of close": (statistics.ratio(close, one), 1 + 1 / kind.mean),
        }
        for what, (interval, truth) in cases.items():
            if interval.low is not None and interval.high is not None:
                found.setdefault(what, []).append(interval.low <= truth <= interval.high)
            else:
                # The mean of the baseline cannot be told from zero.
                assert interval.reason == statistics.NEAR_ZERO
    assert found.keys() == cases.keys()
    for what, holding in found.items():
        assert sum(holding) / len(holding) >= 0.93, what


def test_a_mean_of_few_runs_has_an_interval_only_if_they_are_normal() -> None:
    few = statistics.interval([1.0, 2.0, 3.0])
    assert (few.estimate, few.low, few.high) == (2.0, None, None)
    assert few.reason == '3 runs: a mean needs 10, or assume="normal"'
    # s = 1, t(2) = 4.3027: 4.3027 / sqrt(3) = 2.4841.
    normal = statistics.interval([1.0, None, 2.0, 3.0, math.nan], assume="normal")
    assert normal.half_width == pytest.approx(2.4841, abs=1e-4)
    assert (normal.n, normal.method) == (3, "Student's t")
    assert statistics.interval([1.0], assume="normal").reason == "one run allows none"
    assert statistics.interval([]).estimate is None


def test_equal_values_have_an_interval_of_no_width() -> None:
    equal = statistics.interval([4.0, 4.0])
    assert (equal.low, equal.high, equal.method) == (4.0, 4.0, "all are equal")


def test_of_symmetrical_values_the_interval_is_students() -> None:
    # Mean 0.5, s^2 = 82.5 / 9, t(9) = 2.26216: a half-width of 2.1658.
    found = statistics.interval(range(-4, 6))
    assert (found.low, found.high) == pytest.approx((0.5 - 2.1658, 0.5 + 2.1658), abs=2e-4)
    assert found.method == "Student's t"


def test_intervals_of_skewed_values_extend_towards_the_tail() -> None:
    values = [2.0**k for k in range(10)]
    found = statistics.interval(values)
    plain = statistics.interval(values, assume="normal")
    assert found.method == "Student's t, widened for skew"
    assert found.low is not None
    assert found.high is not None
    assert plain.low is not None
    assert plain.high is not None
    assert found.low <= plain.low
    assert found.high > 2 * plain.high
    # Negative values give the mirror image.
    mirrored = statistics.interval([-value for value in values])
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


def test_medians_have_the_ranks_of_the_tables() -> None:
    # Published ranks of 95 % intervals of medians: 1 and 6, 2 and 9, 10 and 21, 40 and 61, which
    # are symmetrical; for 100 values, ranks 40 and 60 are closer and have 95.4 %.
    for runs, ranks in ((6, (1, 6)), (10, (2, 9)), (30, (10, 21)), (100, (40, 60))):
        found = statistics.interval(range(1, runs + 1), of="median")
        assert (found.low, found.high) == ranks
    # Five values have 1 - 2 / 2^5 = 93.75 %: the range, widened by a twentieth at both ends.
    five = statistics.interval([1, 2, 3, 4, 5], of="median")
    assert (five.low, five.high) == pytest.approx((0.8, 5.2))
    assert statistics.interval([1, 2, 3, 4], of="median").reason == "4 runs: a median needs 5"


def test_paired_normal_differences_use_students_t() -> None:
    # Differences 1, 2, 3: mean 2, s = 1. t = 2 * sqrt(3) = 3.4641 with 2 degrees of freedom, for
    # which p = 1 - t / sqrt(t^2 + 2) = 1 - 3.4641 / sqrt(14) = 0.07418.
    ours, theirs = [2.0, 4.0, 6.0], [1.0, 2.0, 3.0]
    p = statistics.p_different(ours, theirs, assume="normal")
    assert p == pytest.approx(0.07418, abs=1e-4)
    # Within 5: t = (5 - 2) * sqrt(3) = 5.196, one-sided: (1 - 5.196 / sqrt(27 + 2)) / 2 = 0.01755.
    same = statistics.p_same(ours, theirs, 5.0, assume="normal")
    assert same == pytest.approx(0.01755, abs=1e-4)
    # Hedges' correction for 2 degrees of freedom: Gamma(1) / Gamma(1/2) = 0.56419.
    assert statistics.effect(ours, theirs) == pytest.approx(2 * 0.56419, abs=1e-4)
    with pytest.raises(ValueError, match="as many of one"):
        statistics.difference([1.0], [1.0, 2.0])


def test_fiellers_interval_of_a_ratio() -> None:
    # Fieller's formula with a constant baseline: it is always 2, so that the ratio has half of
    # Student's interval of the mean.
    values = [9.0, 10.0, 11.0, 10.0, 10.0]
    found = statistics.ratio(values, [2.0] * 5, assume="normal")
    mean = statistics.interval(values, assume="normal")
    assert mean.low is not None
    assert mean.high is not None
    assert (found.low, found.high) == pytest.approx((mean.low / 2, mean.high / 2))
    near = statistics.ratio(values, [-1.0, 1.0, 0.5, -0.5, 0.2], assume="normal")
    assert near.reason == "the baseline cannot be told from zero"


def test_p_values_of_several_comparisons_are_corrected() -> None:
    # Holm 1979, by hand: 0.01 * 3, then 0.02 * 2 (not below 0.03), then 0.04 * 1 (not below 0.04).
    assert statistics.holm([0.04, None, 0.01, 0.02]) == pytest.approx([0.04, None, 0.03, 0.04])
    assert statistics.holm([0.6, 0.7]) == [1.0, 1.0]


def test_needed_runs_are_estimated_from_the_interval() -> None:
    # Two one-sided tests of normal data with a spread of 1 and a margin of 0.5, at 80 %:
    # about (1.645 + 1.282)^2 / 0.25 = 34.3 pairs, and a few more for Student's t.
    random = np.random.default_rng(4).normal(0, 1, 50)
    apart = (random - random.mean()) / random.std(ddof=1)
    needed = statistics.runs_needed(apart, np.zeros(50), 0.5)
    assert needed == 36
    random = np.random.default_rng(5)
    pairs = random.normal(0, 1, (REPETITIONS, needed))
    half = 1.690 * pairs.std(axis=1, ddof=1) / math.sqrt(needed)
    within = (np.abs(pairs.mean(axis=1)) + half < 0.5).mean()
    assert within == pytest.approx(0.8, abs=0.03)


def test_a_warm_up_is_cut_where_the_rest_is_steady() -> None:
    noise = np.random.default_rng(6).normal(0, 1, 200)
    growing = [*range(40), *([40] * 160)]
    cut = statistics.warm_up([float(value) + noise[k] for k, value in enumerate(growing)])
    assert cut == pytest.approx(40, abs=5)
    assert statistics.warm_up([7.0] * 100) == 0
    assert statistics.warm_up([float(value) for value in range(100)]) is None
    assert statistics.warm_up([1.0] * 9) is None


@pytest.fixture(scope="module")
def variants() -> lab.Results:
    """Two algorithms, and a variant that is the first one under another name."""
    return lab.run(
        lab.Experiment(
            name="variants",
            duration="3 s",
            repeat=12,
            network=lab.Network(
                dumbbell=lab.Dumbbell(pairs=2, rate="10 Mbit/s", delay="10 ms", queue="30 packets")
            ),
            flows=[
                lab.Flow(name="a", from_="left1", to="right1", start_jitter="200 ms"),
                lab.Flow(name="b", from_="left2", to="right2", start_jitter="200 ms"),
            ],
            variants={"plain": {}, "again": {}, "bbr": {"flows[0].cc": "bbr"}},
        )
    )


def test_variants_are_compared_in_pairs_of_equal_seeds(variants: lab.Results) -> None:
    seeds = variants.runs.group_by("variant").agg(pl.col("seed").sort())["seed"].to_list()
    assert all(one == list(range(1, 13)) for one in seeds)
    rows = variants.versus("plain", metrics=["goodput_mbit_s"])
    assert rows.select("variant", "flow").rows() == [
        ("again", "a"), ("again", "b"), ("bbr", "a"), ("bbr", "b"),
    ]  # fmt: skip
    again, _, bbr, other = rows.rows(named=True)
    assert (again["verdict"], again["said"]) == ("equal", "equal in each of 12 pairs")
    assert again["difference"] == 0
    flows = variants.joined("flows").sort("seed").filter(pl.col("flow") == "a")
    ours, theirs = (
        flows.filter(pl.col("variant") == name)["goodput_mbit_s"].to_list()
        for name in ("bbr", "plain")
    )
    apart = statistics.difference(ours, theirs)
    assert (bbr["difference_low"], bbr["difference_high"]) == (apart.low, apart.high)
    assert bbr["relative"] == pytest.approx(sum(ours) / sum(theirs) - 1, rel=1e-12)
    assert (bbr["verdict"], other["verdict"]) == ("higher", "lower")
    # Two comparisons are random: the least p is doubled, and no other is below it.
    alone = statistics.p_different(ours, theirs)
    assert alone is not None
    assert alone <= bbr["p"] <= 2 * alone


def test_the_summary_has_the_intervals_of_the_statistics(variants: lab.Results) -> None:
    flows = variants.joined("flows").filter(pl.col("variant") == "plain", pl.col("flow") == "a")
    for statistic in ("mean", "median"):
        row = variants.summary(statistic=statistic).row(0, named=True)
        found = statistics.interval(flows["goodput_mbit_s"], of=statistic)
        assert (row["variant"], row["flow"]) == ("plain", "a")
        assert row["goodput_mbit_s"] == pytest.approx(found.estimate, rel=1e-14)
        limits = row["goodput_mbit_s_low"], row["goodput_mbit_s_high"]
        assert limits == (found.low, found.high)
    with pytest.raises(ValueError, match="there are mean, median"):
        variants.summary(statistic="mode")


def test_comparisons_that_cannot_be_made_are_refused(variants: lab.Results) -> None:
    for baseline, said in (
        ("cubic", "none of variant has the value 'cubic'"),
        ({"cc": "cubic"}, "'cc' is not swept; there are variant"),
        ({"variant": "other"}, "variant has no value 'other'; it has plain, again, bbr"),
        ({}, "no key is given"),
    ):
        with pytest.raises(ValueError, match=said):
            variants.versus(baseline)
    with pytest.raises(ValueError, match="there is no 'speed'"):
        variants.versus("plain", metrics=["speed"])
    with pytest.raises(ValueError, match="is not greater than 0"):
        variants.versus("plain", margin=0)


def test_verdicts_say_how_sure_they_are(variants: lab.Results) -> None:
    said = variants.versus("plain", margin=0.5)["said"].to_list()
    assert "equal in each of 12 pairs" in said
    assert any(" more runs would tell 50.0 %" in one or "lower by" in one for one in said)
    few = variants.versus("plain", by="class", metrics=["goodput_all_mbit_s"], margin=0.9)
    assert few.filter(pl.col("variant") == "bbr")["verdict"].to_list()
