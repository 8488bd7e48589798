"""Measure the simulator on the dumbbell of `benches/ns3/dumbbell.cc`, and ns-3 if it is available.

Each measurement is a process of its own on one core. Ours runs three times and the median is
quoted, first with the default profile, which is what users run, then with the profile `rfc`. The
comparison with ns-3 uses `rfc`: both are TCP by the RFCs, without timestamps, RACK, TLP and pacing,
whereas the default profile does everything that Linux does for each ACK. ns-3 runs once, between
runs of ours. It is so much slower that it gets less simulated time. Ours also runs over that
shorter time, and the ratio is taken there: traffic is the same, and start-up has the same weight.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "target"
RESULTS = TARGET / "bench.json"
OURS = TARGET / "release" / "bench-dumbbell"
NS3 = TARGET / "ns3" / "dumbbell"
NS3_SOURCE = ROOT / "benches" / "ns3" / "dumbbell.cc"
NS3_PACKAGES = ["ns3", "libns3-dev", "libgsl-dev", "libsqlite3-dev", "libxml2-dev"]
NS3_LIBRARIES = ["-lns3-point-to-point", "-lns3-internet", "-lns3-network", "-lns3-core"]
NS3_PATIENCE_SECONDS = 600
REPETITIONS = 3
DEFAULT, PEER = "linux-6.12", "rfc"
"""The profile of experiments that name none, and the profile compared with ns-3."""
IDLE_CONNECTIONS = 100_000
SHORT_TRANSFERS = 1_000_000
SHORT_BESIDE = 100
"""The number of long flows, on the same network, that short transfers are compared with."""
QUEUES = ["fq-codel", "cake"]
"""Disciplines whose speed is compared with that of drop-tail, with the same long flows."""
MEGA = 1e-6


class BenchError(Exception):
    """A program could not be built or run; the message names the program and the reason."""


@dataclass(frozen=True)
class Scenario:
    """A dumbbell of `flows` flows, and the simulated seconds for ours and for ns-3."""

    flows: int
    rate: str
    seconds: int
    ns3_seconds: int


# A data packet makes three hops, and so does an ACK for every second one: 100 Mbit/s is 8333 x 4.5
# = 37,500 packet-hops per second. Ours gets 22 million packet-hops, which take 1.5 s at 15 million
# per second; ns-3 gets as many as it can process in less than a minute.
SCENARIOS = [
    Scenario(1, "100 Mbit/s", seconds=600, ns3_seconds=60),
    Scenario(10, "100 Mbit/s", seconds=600, ns3_seconds=60),
    Scenario(100, "1 Gbit/s", seconds=60, ns3_seconds=8),
    Scenario(1000, "10 Gbit/s", seconds=6, ns3_seconds=1),
    Scenario(10000, "10 Gbit/s", seconds=6, ns3_seconds=1),
]
QUICK_FLOWS = {10, 1000}


@dataclass(frozen=True)
class Report:
    """The output of either program about one run."""

    packet_hops: int
    wall_seconds: float
    packet_hops_per_second: float
    peak_memory_bytes: int
    goodput_mbit_s: float
    drops: int
    scenario: str


@dataclass(frozen=True)
class Measurement:
    """The measurement of one scenario: ours with both profiles, over the shorter time `rfc` and
    ns-3.
    """

    scenario: Scenario
    default: Report
    ours: Report
    short: Report | None
    ns3: Report | None

    @property
    def ratio(self) -> float | None:
        """How many times faster ours is over the same simulated time."""
        if self.short is None or self.ns3 is None:
            return None
        return self.short.packet_hops_per_second / self.ns3.packet_hops_per_second

    def row(self) -> dict[str, str | float | None]:
        """Make the row of `target/bench.json`; null where ns-3 did not run.

        Fields whose name has no profile are those of `rfc`.
        """
        ours, short, ns3 = self.ours, self.short, self.ns3
        return {
            "scenario": ours.scenario,
            "flows": self.scenario.flows,
            "default_packet_hops_per_second": self.default.packet_hops_per_second,
            "default_peak_memory_bytes": self.default.peak_memory_bytes,
            "default_goodput_mbit_s": self.default.goodput_mbit_s,
            "packet_hops": ours.packet_hops,
            "wall_seconds": ours.wall_seconds,
            "packet_hops_per_second": ours.packet_hops_per_second,
            "peak_memory_bytes": ours.peak_memory_bytes,
            "goodput_mbit_s": ours.goodput_mbit_s,
            "drops": ours.drops,
            "simulated_seconds": self.scenario.seconds,
            "short_simulated_seconds": self.scenario.ns3_seconds if short else None,
            "short_packet_hops_per_second": short.packet_hops_per_second if short else None,
            "ns3_packet_hops_per_second": ns3.packet_hops_per_second if ns3 else None,
            "ns3_peak_memory_bytes": ns3.peak_memory_bytes if ns3 else None,
            "ns3_goodput_mbit_s": ns3.goodput_mbit_s if ns3 else None,
            "ratio": self.ratio,
        }


def say(text: str) -> None:
    """Print to stderr; stdout has only the results."""
    print(text, file=sys.stderr, flush=True)


def build(command: list[str]) -> None:
    """Run a compiler, which prints its own messages."""
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
    except FileNotFoundError:
        raise BenchError(f"`{command[0]}` is not installed") from None
    if done.returncode != 0:
        raise BenchError(f"`{' '.join(command)}` failed with status {done.returncode}")


def build_ours() -> None:
    """Build `bench-dumbbell`."""
    what = ["-p", "tcplab-bench"]
    build(["cargo", "build", "--release", *what, "--target-dir", str(TARGET)])


def build_ns3() -> None:
    """Build the program for ns-3, unless it is newer than its source."""
    if NS3.exists() and NS3.stat().st_mtime > NS3_SOURCE.stat().st_mtime:
        return
    say("compiling the ns-3 program")
    NS3.parent.mkdir(parents=True, exist_ok=True)
    build(["g++", "-std=c++17", "-O3", str(NS3_SOURCE), *NS3_LIBRARIES, "-o", str(NS3)])


def missing_packages() -> list[str]:
    """List the Debian packages that ns-3 and its program need and that are not installed."""
    missing = NS3_PACKAGES
    if shutil.which("dpkg-query"):
        query = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n"]
        done = subprocess.run([*query, *NS3_PACKAGES], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        missing = [package for package in NS3_PACKAGES if f"{package} installed" not in lines]
    return missing if shutil.which("g++") else [*missing, "g++"]


def install_ns3() -> bool:
    """Install ns-3 if possible; otherwise report the missing packages in one line."""
    missing = missing_packages()
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {' '.join(missing)}")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update"], ["install", "-y", *missing]):
            command = ["apt-get", "-qq", *step]
            subprocess.run(command, env=environment, capture_output=True, check=False)
        missing = missing_packages()
    if missing:
        say(f"no comparison with ns-3: not installed: {' '.join(missing)}")
    return not missing


def run(command: list[str], timeout: float | None = None) -> dict[str, Any]:
    """Run a program that prints a JSON object."""
    shown = " ".join([Path(command[0]).name, *command[1:]])
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise BenchError(f"`{shown}` failed with status {done.returncode}: {done.stderr.strip()}")
    try:
        printed = json.loads(done.stdout)
    except json.JSONDecodeError:
        printed = None
    if not isinstance(printed, dict):
        raise BenchError(f"`{shown}` printed no JSON object but {done.stdout[:200]!r}")
    return printed


def report(scenario: Scenario, command: list[str], timeout: float | None = None) -> Report:
    """Run a program on a scenario."""
    printed = run(command, timeout)
    name = printed.get("scenario", f"{scenario.flows} flows over {scenario.rate}")
    try:
        return Report(
            packet_hops=int(printed["packet_hops"]),
            wall_seconds=float(printed["wall_seconds"]),
            packet_hops_per_second=float(printed["packet_hops_per_second"]),
            peak_memory_bytes=int(printed["peak_memory_bytes"]),
            goodput_mbit_s=float(printed["goodput_mbit_s"]),
            drops=int(printed["drops"]),
            scenario=str(name),
        )
    except KeyError as key:
        raise BenchError(f"`{Path(command[0]).name}` printed no {key}") from None


def run_ours(
    scenario: Scenario, seconds: int, profile: str = PEER, queue: str | None = None
) -> Report:
    """Run ours once, with drop-tail if no other queue is named."""
    arguments = ["--profile", profile, "--flows", str(scenario.flows)]
    arguments += ["--rate", scenario.rate, "--seconds", str(seconds)]
    arguments += ["--queue", queue] if queue else []
    return report(scenario, [str(OURS), *arguments])


def run_ns3(scenario: Scenario) -> Report | None:
    """Run ns-3 once, with a time limit."""
    rate = scenario.rate.replace(" ", "").replace("bit/s", "bps")
    arguments = [f"--flows={scenario.flows}", f"--rate={rate}", f"--seconds={scenario.ns3_seconds}"]
    try:
        return report(scenario, [str(NS3), *arguments], timeout=NS3_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        say(f"no ns-3 for {scenario.flows} flows: not done after {NS3_PATIENCE_SECONDS} s")
        return None


def median(reports: list[Report]) -> Report:
    """Pick the report with the median rate."""
    middle = statistics.median_low(one.packet_hops_per_second for one in reports)
    return next(one for one in reports if one.packet_hops_per_second == middle)


def measure(scenario: Scenario, *, with_ns3: bool) -> Measurement:
    """Measure one scenario, alternating between ours and ns-3."""
    say(f"{scenario.flows} flows over {scenario.rate}")
    default: list[Report] = []
    ours: list[Report] = []
    short: list[Report] = []
    ns3: Report | None = None
    for repetition in range(REPETITIONS):
        default.append(run_ours(scenario, scenario.seconds, DEFAULT))
        ours.append(run_ours(scenario, scenario.seconds))
        if with_ns3:
            short.append(run_ours(scenario, scenario.ns3_seconds))
        if with_ns3 and repetition == REPETITIONS // 2:
            ns3 = run_ns3(scenario)
    shortly = median(short) if short else None
    return Measurement(scenario, median(default), median(ours), shortly, ns3)


def measure_short() -> tuple[dict[str, Any], float]:
    """Run many short transfers, alternating with 100 long flows that send as many packets."""
    scenario = next(one for one in SCENARIOS if one.flows == SHORT_BESIDE)
    runs: list[dict[str, Any]] = []
    shares = []
    for _ in range(REPETITIONS):
        long = run_ours(scenario, scenario.seconds, DEFAULT)
        runs.append(run([str(OURS), "--short", str(SHORT_TRANSFERS)]))
        shares.append(runs[-1]["packet_hops_per_second"] / long.packet_hops_per_second)
    runs.sort(key=lambda one: float(one["packet_hops_per_second"]))
    return runs[len(runs) // 2], statistics.median(shares)


def measure_queues() -> dict[str, tuple[Report, float]]:
    """Run 100 long flows behind other disciplines: a report, and its rate relative to drop-tail.

    Drop-tail and the others alternate. The ratio is that of packet-hop rates.
    """
    scenario = next(one for one in SCENARIOS if one.flows == SHORT_BESIDE)
    reports: dict[str, list[Report]] = {queue: [] for queue in QUEUES}
    shares: dict[str, list[float]] = {queue: [] for queue in QUEUES}
    for _ in range(REPETITIONS):
        plain = run_ours(scenario, scenario.seconds, DEFAULT)
        for queue in QUEUES:
            managed = run_ours(scenario, scenario.seconds, DEFAULT, queue)
            reports[queue].append(managed)
            shares[queue].append(managed.packet_hops_per_second / plain.packet_hops_per_second)
    return {queue: (median(reports[queue]), statistics.median(shares[queue])) for queue in QUEUES}


def share_of_control() -> float | None:
    """Measure the share of instructions in the calls of congestion controllers, callees included.

    Instructions are counted instead of time: their number is the same in every run of a binary. The
    measurement is one short run of ten flows under valgrind; without valgrind it is left out.
    """
    if not (shutil.which("valgrind") and shutil.which("callgrind_annotate")):
        say("no share of congestion control: valgrind is not installed")
        return None
    counts = TARGET / "bench.callgrind"
    scenario = ["--flows", "10", "--rate", "100 Mbit/s", "--seconds", "10"]
    ours = [str(OURS), "--profile", DEFAULT, *scenario]
    run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", *ours])
    annotate = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(counts)]
    done = subprocess.run(annotate, capture_output=True, text=True, check=True)
    total = 0
    calls: dict[str, int] = {}
    for line in done.stdout.splitlines():
        if "PROGRAM TOTALS" in line:
            total = int(line.split()[0].replace(",", ""))
        elif (call := re.search(r":(<.* as .*seam::CongestionControl>::\w+)", line)) is not None:
            # A function has a line for each file that a part of it comes from, and a line with the
            # total.
            count = int(line.split()[0].replace(",", ""))
            calls[call[1]] = max(count, calls.get(call[1], 0))
    return sum(calls.values()) / total if total else None


def number(value: float | None, digits: int) -> str:
    """Format a number, or a dash for none."""
    return "-" if value is None else f"{value:.{digits}f}"


def cells(measurement: Measurement) -> list[str]:
    """Format one line of the table: rates, memory, goodput."""
    scenario, default, ours = measurement.scenario, measurement.default, measurement.ours
    short, ns3 = measurement.short, measurement.ns3
    return [
        str(scenario.flows),
        scenario.rate,
        number(default.packet_hops_per_second * MEGA, 2),
        number(ours.packet_hops_per_second * MEGA, 2),
        number(short.packet_hops_per_second * MEGA if short else None, 2),
        number(ns3.packet_hops_per_second * MEGA if ns3 else None, 3),
        number(measurement.ratio, 1),
        number(default.peak_memory_bytes * MEGA, 0),
        number(ours.peak_memory_bytes * MEGA, 0),
        number(ns3.peak_memory_bytes * MEGA if ns3 else None, 0),
        number(default.goodput_mbit_s, 1),
        number(ours.goodput_mbit_s, 1),
        number(short.goodput_mbit_s if short else None, 1),
        number(ns3.goodput_mbit_s if ns3 else None, 1),
    ]


def table(measurements: list[Measurement]) -> str:
    """Lay out the results as a table."""
    head = [
        *["flows", "rate", "Mhops/s", "rfc", "short", "ns-3", "ratio"],
        *["MB", "rfc", "ns-3", "Mbit/s", "rfc", "short", "ns-3"],
    ]
    lines = [head, *map(cells, measurements)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True))
        for line in lines
    )


def warn_if_busy() -> None:
    """Warn if other programs would slow down the measured ones."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load > processors / 2:
        say(f"warning: load {load:.1f} on {processors} processors: rates will be low")


def bench(scenarios: list[Scenario]) -> None:
    """Build, measure, print, and write the results."""
    warn_if_busy()
    build_ours()
    with_ns3 = install_ns3()
    if with_ns3:
        build_ns3()
    # Applies to the programs started from here on.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    measurements = [measure(scenario, with_ns3=with_ns3) for scenario in scenarios]
    idle = run([str(OURS), "--idle", str(IDLE_CONNECTIONS)])
    short, share_of_long = measure_short()
    queues = measure_queues()

    print(table(measurements))
    print()
    print("Mhops/s: million packet-hops per wall second on one core, the median of three runs,")
    print(f"with the default profile, {DEFAULT}; rfc: the same with the profile rfc as ns-3 is set")
    if with_ns3:
        print("short: rfc over the simulated time that ns-3 was given; ratio: short to ns-3")
    print(f"bytes per idle connection, {DEFAULT}: {idle.get('bytes_per_connection')}")
    print(
        f"{short['transfers']} transfers of 20 kB at 60 % of 1 Gbit/s, {DEFAULT}: "
        f"{number(short['packet_hops_per_second'] * MEGA, 2)} Mhops/s, "
        f"{share_of_long:.0%} of 100 long flows, "
        f"{number(short['peak_memory_bytes'] * MEGA, 0)} MB"
    )
    for queue, (managed, share_of_drop_tail) in queues.items():
        print(
            f"{SHORT_BESIDE} flows behind {queue}, {DEFAULT}: "
            f"{number(managed.packet_hops_per_second * MEGA, 2)} Mhops/s, "
            f"{share_of_drop_tail:.0%} of drop-tail"
        )
    print("checking the laws, as a share of a run of four flows over 10 Mbit/s:")
    for record, laws in run([str(OURS), "--laws"]).items():
        print(f"  {record}: {laws['share']:.1%}, {laws['rows']} rows of samples and links")
    share = share_of_control()
    if share is not None:
        print(f"in calls of congestion controllers: {share:.1%} of the instructions of 10 flows")
    RESULTS.write_text(json.dumps([one.row() for one in measurements], indent=2) + "\n")
    say(f"written to {RESULTS.relative_to(ROOT)}")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="bench.py", description="Measure ours beside ns-3.")
    parser.add_argument("--quick", action="store_true", help="10 and 1000 flows alone")
    args = parser.parse_args()
    try:
        bench([one for one in SCENARIOS if not args.quick or one.flows in QUICK_FLOWS])
    except (BenchError, OSError) as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
