"""Repetitions are added until means are known well enough."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcplab as lab
from tcplab._statistics import intervals


def experiment(repeat: Any, *, jitter: str = "50 ms") -> lab.Experiment:
    return lab.Experiment(
        duration="1 s",
        repeat=repeat,
        network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms", queue="20 packets")),
        flows=[lab.Flow(from_="client", to="server", start_jitter=jitter)],
        sweep={"flows[0].cc": ["cubic", "newreno"]},
    )


def worst(results: lab.Results) -> float:
    """The relative distance of a limit from its mean, for the class with the widest interval."""
    rows = results.summary(by="class").rows(named=True)
    widths = [
        max(row["goodput_mbit_s"] - row["goodput_mbit_s_low"],
            row["goodput_mbit_s_high"] - row["goodput_mbit_s"]) / row["goodput_mbit_s"]
        for row in rows
    ]  # fmt: skip
    return max(widths)


def test_repetitions_end_when_means_are_known() -> None:
    known = worst(lab.run(experiment(10)))
    # The precision of ten repetitions is enough; twice that precision is not.
    assert len(lab.run(experiment(lab.Until(until=known * 1.001))).plans) == 20
    results = lab.run(experiment({"until": known / 2}))
    number = results.runs["repetition"].n_unique()
    # Rounds of 10, 15, 23, 35, 53, 80 and 100.
    assert number in (15, 23, 35, 53, 80)
    assert worst(results) <= known / 2
    assert len(results.plans) == 2 * number
    # They are plain repetitions.
    plain = experiment(number).plans()
    assert [plan.id for plan in results.plans] == [plan.id for plan in plain]


def test_means_unknown_after_the_last_repetition_are_reported() -> None:
    with pytest.warns(
        lab.TcplabWarning, match=r"after 12 repetitions goodput_mbit_s of .*, not 0.001 %"
    ):
        results = lab.run(experiment({"until": "0.001 %", "at_most": 12}))
    assert len(results.plans) == 24


def test_where_nothing_is_random_two_repetitions_are_enough() -> None:
    with pytest.warns(lab.TcplabWarning, match="nothing is random: 2 repetitions have the same"):
        results = lab.run(experiment("2 %", jitter="0 ms"))
    assert len(results.plans) == 4


def test_finished_repetitions_are_not_run_again(tmp_path: Path) -> None:
    asked = experiment({"until": "0.001 %", "at_most": 15})
    with pytest.warns(lab.TcplabWarning, match="after 15 repetitions"):
        first = lab.run(asked, out=tmp_path)
    assert len(first.computed) == 30
    with pytest.warns(lab.TcplabWarning, match="after 15 repetitions"):
        again = lab.run(asked, out=tmp_path)
    assert not again.computed
    assert again.digests == first.digests
    stored = lab.stored(tmp_path)
    assert stored.summary().equals(first.summary())


@pytest.mark.parametrize(
    ("repeat", "said"),
    [
        ('{ until = "0 %" }', "repeat.until: no interval is narrower than zero"),
        ('{ until = "1 %", at_least = 20, at_most = 15 }', "at_least: is more than at_most, 15"),
        ('{ until = "1 %", of = "speed" }', 'no measure is called "speed"'),
        ("{ at_most = 20 }", "repeat.until: is missing"),
        ('{ until = "1 %", at_most = 9 }', "9 is outside the range from 10 to 1000000"),
        ('"often"', '"often" is not a whole number'),
        ("0", "repeat: must be more than zero"),
        ('{ until = "1 %", at_most = 100_001 }', "100001 runs are too many"),
    ],
)
def test_mistakes_are_named(repeat: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(
        f'duration = "1 s"\nrepeat = {repeat}\n'
        'network.chain = { rate = "1 Mbit/s", delay = "1 ms" }\n'
        '[[flows]]\nfrom = "client"\nto = "server"\n'
    )
    with pytest.raises(lab.ConfigError, match=said):
        lab.run(file)


@pytest.mark.parametrize("spread", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("kind", ["normal", "log-normal", "bimodal"])
def test_intervals_hold_although_runs_end_when_they_are_narrow(kind: str, spread: float) -> None:
    random = np.random.default_rng(3)
    shape = (2000, 100)
    if kind == "normal":
        values, truth = random.normal(1, spread, shape), 1.0
    elif kind == "log-normal":
        deviation = math.sqrt(math.log(1 + spread * spread))
        values, truth = random.lognormal(0, deviation, shape), math.exp(deviation**2 / 2)
    else:
        centre = np.where(random.random(shape) < 0.7, 1 - spread / 2, 1 + spread)
        values, truth = random.normal(centre, spread / 3), 1 - 0.05 * spread
    ended, held = np.zeros(2000, bool), np.zeros(2000, bool)
    number = 10
    while not ended.all():
        low, high = intervals.of_means(values[:, :number], 0.95)
        mean = values[:, :number].mean(axis=1)
        is_known = np.maximum(mean - low, high - mean) <= 0.02 * mean
        ends = (is_known | (number == 100)) & ~ended
        held[ends] = ((low <= truth) & (truth <= high))[ends]
        ended |= ends
        number = min(-(-number * 3 // 2), 100)
    assert held.mean() >= 0.93
