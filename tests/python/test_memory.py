"""No experiment uses more memory than allowed, and none that fits is refused.

The memory of a run is measured in a process of its own, as its peak resident set minus that of a
minimal run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import EXAMPLES, Command

import tcplab as lab
from tcplab._run.memory import Budget, amount, free

MEASURED = """
import json, polars as pl, sys, tcplab as lab
results = lab.run(json.load(open(sys.argv[1])), out=sys.argv[2], workers=1, progress=False)
# The memory of the program alone: getrusage includes that of the process before exec.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) * 1024
tables = ("flows", "samples", "links", "drops", "packets")
rows = {t: results.scan(t).select(pl.len()).collect().item() for t in tables}
print(json.dumps([peak, results.plans[0].memory, rows]))
"""

ROW, DROP = 256, 400
"""Counted bytes per row (`crates/model/src/memory.rs`)."""

ROWS = 65_536
"""The most rows of a table that are in memory."""

STORING = 100_000_000
"""The memory for storing longer tables (`docs/explanation/security-host.md`)."""

OFF = lab.Record(samples="off", links="off")


def link(rate: str, **settings: object) -> lab.Network:
    defaults = {"between": ("a", "b"), "rate": rate, "delay": "5 ms"}
    return lab.Network(links=[lab.Link(**(defaults | settings))])  # type: ignore[arg-type]


def flow(**settings: object) -> lab.Flow:
    return lab.Flow(from_="a", to="b", **settings)  # type: ignore[arg-type]


LARGE = {
    "samples at every ACK": lab.Experiment(
        duration="20 s",
        network=link("1 Gbit/s"),
        flows=[flow()],
        record=lab.Record(samples="ack", links="off"),
    ),
    "all packets": lab.Experiment(
        duration="3 s",
        network=link("1 Gbit/s"),
        flows=[flow()],
        record=lab.Record(samples="off", links="off", packets=["a>b", "b>a"]),
    ),
    "links every millisecond": lab.Experiment(
        duration="8 s",
        network=lab.Network(dumbbell=lab.Dumbbell(pairs=50, rate="10 Mbit/s", delay="5 ms")),
        flows=[lab.Flow(from_="left1", to="right1")],
        record=lab.Record(samples="off", links="1 ms"),
    ),
    "changes of links": lab.Experiment(
        duration="60 s",
        network=lab.Network(
            fat_tree=lab.FatTree(
                rate="10 Mbit/s",
                delay="1 ms",
                rate_changes=lab.SineRateRule(amplitude="1 Mbit/s", period="1 s", every="1 ms"),
            )
        ),
        flows=[lab.Flow(from_="host1", to="host16", traffic=lab.BulkTraffic(size="1 kB"))],
        record=OFF,
    ),
    "many flows": lab.Experiment(
        duration="1 s",
        network=link("100 Mbit/s"),
        flows=[flow(count=50_000, start="900 ms", traffic=lab.BulkTraffic(size="1 kB"))],
        record=OFF,
    ),
    "heavy loss": lab.Experiment(
        duration="60 s",
        network=link("1 Gbit/s", loss="30 %"),
        flows=[flow(count=5_000)],
        record=OFF,
    ),
}


def measured(experiment: lab.Experiment, folder: Path) -> tuple[int, int, dict[str, int]]:
    """Peak, estimate and rows of a run."""
    folder.mkdir()
    (folder / "it.json").write_text(json.dumps(experiment.to_dict()))
    command = [sys.executable, "-c", MEASURED, folder / "it.json", folder / "out"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    peak, least, rows = json.loads(said)
    return peak, least, rows


@pytest.mark.parametrize("name", LARGE)
def test_the_counted_memory_matches_the_process(name: str, tmp_path: Path) -> None:
    nothing = lab.Experiment(duration="10 ms", network=link("1 Mbit/s"), flows=[flow()], record=OFF)
    before, _, _ = measured(nothing, tmp_path / "nothing")
    peak, least, rows = measured(LARGE[name], tmp_path / "large")
    held = {table: min(number, ROWS) for table, number in rows.items()}
    tabled = (held["samples"] + held["links"] + held["packets"]) * ROW + held["drops"] * DROP
    flows = rows["flows"] * 4_000
    counted = max(least, flows + tabled)
    storing = STORING if max(rows.values()) > ROWS else 0
    assert counted / 2 < peak - before < 2 * counted + storing, (counted, peak - before)


def test_memory_does_not_grow_with_rows(tmp_path: Path) -> None:
    name = "samples at every ACK"
    peaks, samples = [], []
    for duration in ("5 s", "60 s"):
        peak, _, rows = measured(LARGE[name].replace(duration=duration), tmp_path / duration)
        peaks.append(peak)
        samples.append(rows["samples"])
    # Three parts, and more than 36: 600 MB if they were held. The allocators of the threads that
    # write tables differ by 40 MB between runs.
    assert 3 * ROWS < samples[0] < samples[1] / 12
    assert peaks[1] - peaks[0] < (samples[1] - samples[0]) * ROW / 10


def test_runs_that_do_not_fit_are_refused_before_they_start(
    tcplab: Command, tmp_path: Path
) -> None:
    flows = [flow(count=100_000, start="900 ms", traffic=lab.BulkTraffic(size="1 kB"))]
    experiment = LARGE["many flows"].replace(flows=flows)
    (tmp_path / "it.json").write_text(json.dumps(experiment.to_dict()))
    done = tcplab("run", "it.json", "--memory", "300 MB")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: one run needs at least 400 MB of memory and gets 300 MB; 400 MB of it is for "
        "connections, less with fewer `flows` or arrivals; `--memory` allows more, "
        "and fewer `--workers` leave more to each\n"
    )
    assert not list((tmp_path / "results").glob("*/*"))


def test_changes_of_links_are_counted_before_they_are_made() -> None:
    # Each direction of 48 links changes a thousand times per second: 2,832,000 changes in 59 s.
    experiment = LARGE["changes of links"]
    plans = [experiment.replace(duration=duration).plans()[0] for duration in ("1 s", "60 s")]
    assert plans[1].memory - plans[0].memory == 2 * 48 * 59_000 * 40


def test_rows_that_will_be_in_a_file_are_not_refused() -> None:
    # 202 directions of links a thousand times a second: 48 million rows.
    (plan,) = LARGE["links every millisecond"].replace(duration="4 min").plans()
    assert plan.memory == ROWS * ROW + 4_000


ON_THEIR_WAY = lab.Experiment(
    duration="3 s",
    network=link("1 Gbit/s", delay="2 s"),
    flows=[flow(traffic=lab.UdpTraffic(rate="100 Mbit/s", payload="100 B"))],
    record=OFF,
)
"""Packets of 128 bytes: some 100,000 per second for two seconds, each counted as 300 bytes."""


def test_a_run_that_turns_out_too_large_stops_where_it_always_does() -> None:
    said = set()
    for _ in range(2):
        with pytest.raises(lab.ConfigError) as raised:
            lab.run(ON_THEIR_WAY, memory="50 MB")
        said.add(str(raised.value))
    (text,) = said
    assert "holds more than the 50 MB of memory that it gets, at " in text
    assert "of it is for packets on their way, less with a shorter `queue`" in text


def test_a_run_larger_than_its_share_runs_alone() -> None:
    # About 60 MB each. Together, each run gets 45 MB; alone, 90 MB.
    results = lab.run(ON_THEIR_WAY.replace(repeat=2), workers=2, memory="90 MB", out=None)
    assert len(results.computed) == 2


def test_unspilled_tables_count_as_memory() -> None:
    experiment = LARGE["samples at every ACK"].replace(duration="1 s", repeat=8)
    with pytest.raises(
        lab.ConfigError, match=r"the tables of all runs take more than 20 MB of memory; .*`out`"
    ):
        lab.run(experiment, workers=1, memory="20 MB")


@pytest.mark.usefixtures("kernel")
def test_memory_of_the_kernel_and_of_captures_counts() -> None:
    experiment = lab.Experiment(
        duration="1 s", network=link("100 Mbit/s"), flows=[flow(count=5_000)], record=OFF
    )
    # 70 MB, and 85 kB per connection.
    with pytest.raises(lab.ConfigError, match=r"495 MB of it is for the kernel, less with fewer"):
        lab.run(experiment, backend="linux", memory="400 MB")
    record = lab.Record(samples="off", links="off", captures=["a>b"])
    captured = LARGE["samples at every ACK"].replace(record=record)
    with pytest.raises(lab.ConfigError, match="is for captured packets"):
        lab.run(captured, backend="linux", memory="200 MB")


def test_more_flows_than_linux_runs_are_refused_with_the_number_that_it_does() -> None:
    flows = [lab.Flow(from_="left*", to="right*", count=20_000)]
    shape = lab.Dumbbell(pairs=10, rate="1 Gbit/s", delay="5 ms")
    experiment = lab.Experiment(
        duration="1 s", network=lab.Network(dumbbell=shape), flows=flows, record=OFF
    )
    with pytest.raises(lab.ConfigError, match="20000 flows in one run are too many; the most is"):
        experiment.plans("linux")
    one = experiment.replace(network=link("1 Gbit/s"), flows=[flow(count=6_000)])
    with pytest.raises(
        lab.ConfigError, match=r"flows with the same server are too many; the most is 5000"
    ):
        one.plans("linux")
    assert one.replace(flows=[flow(count=5_000)]).plans("linux")


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_all_examples_fit_into_a_small_computer(example: Path) -> None:
    experiment = lab.load(example)
    for backend in ("sim", "linux"):
        try:
            plans = experiment.plans(backend)
        except lab.ConfigError:
            continue
        assert Budget(2 * 10**9).threads(plans, 2) == min(2, len(plans))


def test_many_flows_fit_into_a_small_computer() -> None:
    for count in (10_000, 100_000):
        plans = lab.Experiment(
            duration="60 s",
            network=link("1 Gbit/s"),
            flows=[flow(count=count)],
            record=lab.Record() if count == 10_000 else OFF,
        ).plans()
        assert Budget(2 * 10**9).threads(plans, 1) == 1


def test_sizes_have_units(tcplab: Command) -> None:
    assert amount("1.5 GB") == 1_500_000_000
    assert amount("2GiB") == 2 << 30
    for text in ("", "4", "0 GB", "-1 GB", "4 GBit", "four GB"):
        with pytest.raises(ValueError, match="is not a size"):
            amount(text)
    done = tcplab("run", "x.toml", "--memory", "much")
    assert done.returncode == 2
    assert 'much is not a size; write it like "4 GB"' in done.stderr
    assert 0 < free() < 1 << 50
