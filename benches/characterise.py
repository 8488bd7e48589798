"""Measures how well models reproduce traffic: capture, `lab.capture.characterise`, model, run.

Ten known mixes of at least 2,000 sessions run on a backend and are captured. The model of each
capture runs, and is captured too. The output compares the rates of sessions, the mean sizes, and
the distributions of sizes (Kolmogorov-Smirnov distance). A mix is reproduced if the first two agree
within 5 % and the distance is at most 0.05.

    python benches/characterise.py [--backend linux] [--mix NAME] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tcplab as lab
from tcplab._capture.fitted import ks_between

MOST_PERCENT, MOST_KS = 5.0, 0.05

CAPTURES = ["left>right", "right>left"]


def listed(quantiles: np.ndarray) -> lab.EmpiricalSizes:
    """A distribution that experiments lack, given by its quantiles."""
    return lab.EmpiricalSizes(sizes=[f"{max(round(one), 1)} B" for one in quantiles])


def flow(name: str, traffic: object, **settings: object) -> lab.Flow:
    """A flow between the first pair of hosts, or between as many pairs as there are."""
    ends = {"from_": "left*", "to": "right*"}
    return lab.Flow(name=name, traffic=traffic, **(ends | settings))  # type: ignore[arg-type]


def arrivals(name: str, per_second: float, sizes: object, transfers: int) -> lab.Flow:
    """Transfers as a Poisson process."""
    traffic = lab.ArrivalsTraffic(per_second=per_second, sizes=sizes, transfers=transfers)  # type: ignore[arg-type]
    return flow(name, traffic, from_="left1", to="right1")


def requests(name: str, count: int, response: str, number: int, think: str) -> lab.Flow:
    """Connections of a browser, at uniformly drawn times."""
    traffic = lab.RequestsTraffic(
        request="420 B", response=response, requests=number, think=think, server_time="15 ms"
    )
    return flow(name, traffic, count=count, start_jitter="100 s")


PLACES = (np.arange(1000) + 0.5) / 1000

EXPONENTIAL = listed(-20_000 * np.log1p(-PLACES))
WEIBULL = listed(10_000 * (-np.log1p(-PLACES)) ** 2)
"""A Weibull distribution with shape 0.5, whose mean is twice the scale."""


def pages() -> list[lab.Flow]:
    """Pages of 1 to 12 requests, each number half as frequent as the one before, with answers of
    lognormal sizes: 210 kinds of ten sessions.
    """
    random = np.random.default_rng(1)
    numbers = np.minimum(random.geometric(0.5, 210), 12)
    sizes = np.exp(np.log(9000) + random.standard_normal(210))
    thinks = random.exponential(200, 210)
    return [
        requests(f"page{k}", 10, f"{sizes[k]:.0f} B", int(numbers[k]), f"{thinks[k]:.3f} ms")
        for k in range(210)
    ]


MIXES: dict[str, list[lab.Flow]] = {
    "exponential": [arrivals("t", 25, EXPONENTIAL, 2500)],
    "lognormal": [
        arrivals("t", 25, lab.LognormalSizes(median="10 kB", sigma=1.5, max="10 MB"), 2500)
    ],
    "pareto": [arrivals("t", 25, lab.ParetoSizes(shape=1.2, min="4 kB", max="10 MB"), 2500)],
    "weibull": [arrivals("t", 25, WEIBULL, 2500)],
    "constant": [arrivals("t", 25, "20 kB", 2500)],
    "clockwork": [
        flow(
            "t",
            lab.ArrivalsTraffic(every="40 ms", sizes="30 kB", transfers=2500),
            from_="left1",
            to="right1",
        )
    ],
    "mixture": [
        arrivals("mice", 20, lab.LognormalSizes(median="3 kB", sigma=0.8), 2000),
        arrivals("elephants", 4, lab.ParetoSizes(shape=1.5, min="100 kB", max="5 MB"), 400),
    ],
    "classes": [
        arrivals("large", 2.5, "120 kB", 300),
        arrivals("medium", 6.25, "21 kB", 750),
        arrivals("small", 12.5, "4 kB", 1500),
    ],
    "web": pages(),
    "web and transfers": [
        requests("page", 1200, "12 kB", 6, "150 ms"),
        arrivals("backup", 10, lab.LognormalSizes(median="30 kB", sigma=1, max="3 MB"), 1000),
    ],
}
"""Known mixes: flows over a fast bottleneck."""


def experiment(flows: list[lab.Flow], seed: int) -> lab.Experiment:
    """A mix with four round-trip times, captured at the bottleneck in both directions."""
    return lab.Experiment(
        name="mix",
        duration="130 s",
        seed=seed,
        network=lab.Network(
            dumbbell=lab.Dumbbell(
                rate="1 Gbit/s", delay="2 ms", rtts=["10 ms", "20 ms", "40 ms", "80 ms"]
            )
        ),
        flows=flows,
        record=lab.Record(samples="off", links="off", captures=CAPTURES),
    )


def captured(experiment: lab.Experiment, backend: str, path: Path) -> Path:
    """Runs an experiment, and writes its capture."""
    results = lab.run(experiment, backend=backend)
    path.write_bytes(results.files(results.plans[0].id)["capture.pcapng"])
    return path


def measured(name: str, backend: str, seed: int, folder: Path) -> tuple[float, float, float]:
    """The errors of the model: the rate and the mean size in percent, and the distance of the
    distributions.
    """
    mix = experiment(MIXES[name], seed)
    seen = lab.capture.characterise(captured(mix, backend, folder / "seen.pcapng"))
    model = seen.experiment().replace(
        seed=seed + 1000, record=lab.Record(samples="off", links="off", captures=CAPTURES)
    )
    again = lab.capture.characterise(captured(model, backend, folder / "again.pcapng"))
    rates = [float(one.totals["sessions_per_s"][0]) for one in (seen, again)]
    sizes = [
        one.sessions.filter(one.sessions["size"] > 0)["size"].to_numpy().astype(float)
        for one in (seen, again)
    ]
    assert len(sizes[0]) >= 2000, name
    means = [float(one.mean()) for one in sizes]
    return (
        100 * (rates[1] / rates[0] - 1),
        100 * (means[1] / means[0] - 1),
        ks_between(sizes[0], sizes[1]),
    )


def main() -> None:
    """Measures the mixes, one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="sim")
    parser.add_argument("--mix", choices=[*MIXES], action="append")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    good, names = 0, args.mix or [*MIXES]
    print(f"{'mix':<20}{'rate %':>8}{'mean %':>8}{'KS':>8}")
    for name in names:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            rate, mean, ks = measured(name, args.backend, args.seed, Path(folder))
        is_good = max(abs(rate), abs(mean)) <= MOST_PERCENT and ks <= MOST_KS
        good += is_good
        print(
            f"{name:<20}{rate:>+8.2f}{mean:>+8.2f}{ks:>8.4f}  {'' if is_good else 'not '}given back"
            f"  {time.monotonic() - began:.1f} s",
            flush=True,
        )
    print(f"{good} of {len(names)} mixes are given back")
    sys.exit(0 if good >= 0.9 * len(names) else 1)


if __name__ == "__main__":
    main()
