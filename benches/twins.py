"""Measures how well `tcplab capture twin` estimates a path, on captures of known random paths.

Each path has its own rate, round-trip time, queue and losses, and one or three flows of CUBIC,
NewReno or BBR. The paths are run, captured at the sender, and estimated from the capture alone:

    python benches/twins.py --seed 1 --count 100
    python benches/twins.py --seed 2 --count 30 --on linux
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import tcplab as lab

TOLERANCE = {"base RTT": 0.02, "rate": 0.05, "queue": 0.2}
"""The relative error that an estimate may have."""

MOST_MBITS = 1200
"""The most data that a run sends."""


@dataclass(frozen=True)
class Known:
    """A path with known parameters."""

    rate_mbit_s: float
    rtt_ms: float
    queue: int
    loss: float
    cc: str
    flows: int
    seed: int

    @classmethod
    def drawn(cls, rng: random.Random) -> Known:
        """A random path."""
        rate = 10 ** rng.uniform(0, 2.3)
        rtt = 10 ** rng.uniform(0.3, 2.48)
        bdp = rate * 1e3 * rtt / 8 / 1500
        return cls(
            rate_mbit_s=round(rate, 4),
            rtt_ms=round(rtt, 4),
            queue=max(round(rng.uniform(0.3, 3) * bdp), 4),
            loss=rng.choice([0.0, 0.0, 0.0, round(10 ** rng.uniform(-4, -2), 6)]),
            cc=rng.choice(["cubic", "newreno", "bbr"]),
            flows=rng.choice([1, 1, 1, 3]),
            seed=rng.randrange(1000),
        )

    def experiment(self) -> lab.Experiment:
        """The experiment that is captured: the path behind a short link."""
        seconds = min(max(10.0, self.rtt_ms / 10), 30.0)
        seconds = max(min(seconds, MOST_MBITS / self.rate_mbit_s), 4.0)
        path = lab.Link(
            between=("router", "receiver"),
            rate=f"{self.rate_mbit_s} Mbit/s",
            delay=f"{self.rtt_ms / 2:.6f} ms",
            queue=f"{self.queue} packets",
            forward=lab.LinkSettings(loss=self.loss) if self.loss else None,
        )
        near = lab.Link(between=("sender", "router"), rate="10 Gbit/s", delay="10 us")
        return lab.Experiment(
            duration=f"{seconds:.3f} s",
            seed=self.seed,
            record=lab.Record(captures=["sender>router", "router>sender"]),
            network=lab.Network(links=[near, path]),
            flows=[
                lab.Flow(
                    from_="sender",
                    to="receiver",
                    traffic=lab.BulkTraffic(),
                    cc=self.cc,
                    start=f"{number * 0.5} s",
                )
                for number in range(self.flows)
            ],
        )

    def truth(self) -> dict[str, float]:
        """The true values, in the units of the table. The short link adds its 20 us."""
        return {
            "base RTT": self.rtt_ms + 0.02,
            "rate": self.rate_mbit_s,
            "queue": self.queue,
            "loss": 100 * self.loss,
        }


def main() -> None:
    """Prints how often the estimates are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--on", default="sim", choices=["sim", "linux"], help="who is captured")
    args = parser.parse_args()
    warnings.simplefilter("ignore", lab.TcplabWarning)
    rng = random.Random(args.seed)
    told, near, covered, fits = Counter[str](), Counter[str](), Counter[str](), 0
    for number in range(args.count):
        known = Known.drawn(rng)
        results = lab.run(known.experiment(), backend=args.on)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "capture.pcapng"
            file.write_bytes(results.files(results.plans[0].id)["capture.pcapng"])
            twin = lab.capture.twin(file, cc=known.cc)
        fits += twin.fits
        for row in twin.path.iter_rows(named=True):
            name, truth = row["quantity"], known.truth()[row["quantity"]]
            low = float("-inf") if row["low"] is None else row["low"]
            high = float("inf") if row["high"] is None else row["high"]
            covers = low - 1e-9 <= truth <= high + 1e-9
            covered[name] += covers
            is_near = True
            if row["value"] is not None and name in TOLERANCE:
                told[name] += 1
                is_near = abs(row["value"] / truth - 1) <= TOLERANCE[name]
                near[name] += is_near
            if not covers or not is_near:
                said = [row["value"], row["low"], row["high"]]
                print(f"{number}: {name} {truth:g}, told {said}: {known}", file=sys.stderr)
        if not twin.fits:
            print(f"{number}: {'; '.join(twin.misfits)}: {known}", file=sys.stderr)
    print("| of the path | told | as near as | so near | range covers the truth |")
    print("|---|---:|---:|---:|---:|")
    for name in known.truth():
        within = f"{100 * TOLERANCE[name]:.0f} %" if name in TOLERANCE else "-"
        number_told = str(told[name]) if name in TOLERANCE else "-"
        number_near = str(near[name]) if name in TOLERANCE else "-"
        print(f"| {name} | {number_told} | {within} | {number_near} | {covered[name]} |")
    print(f"\n{args.count} paths; {fits} twins behave like their capture")


if __name__ == "__main__":
    main()
