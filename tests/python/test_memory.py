"""No experiment takes more memory than it may; none that fits is refused.

What a run takes is measured in a process of its own, as the peak of its resident set, less that of
a run of next to nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import EXAMPLES, Command

import tcplab as lab
from tcplab._memory import Budget, amount, free

MEASURED = """
import json, sys, tcplab as lab
results = lab.run(json.load(open(sys.argv[1])), out=sys.argv[2], workers=1, progress=False)
# Of this program alone: getrusage counts what the process was before, too.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) * 1024
tables = ("flows", "samples", "links", "drops", "packets")
rows = {t: len(getattr(results, t)) for t in tables}
print(json.dumps([peak, results.plans[0].memory, rows]))
"""

ROW, DROP = 256, 400
"""Bytes of a row as they are counted (`crates/model/src/memory.rs`)."""

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
def test_what_is_counted_is_what_is_taken(name: str, tmp_path: Path) -> None:
    nothing = lab.Experiment(duration="10 ms", network=link("1 Mbit/s"), flows=[flow()], record=OFF)
    before, _, _ = measured(nothing, tmp_path / "nothing")
    peak, least, rows = measured(LARGE[name], tmp_path / "large")
    tabled = (rows["samples"] + rows["links"] + rows["packets"]) * ROW + rows["drops"] * DROP
    flows = rows["flows"] * 4_000
    counted = max(least, flows + tabled)
    assert 0.5 < counted / (peak - before) < 2, (counted, peak - before)


def test_what_does_not_fit_is_refused_before_it_begins(tcplab: Command, tmp_path: Path) -> None:
    experiment = LARGE["links every millisecond"].replace(duration="4 min")
    (tmp_path / "it.json").write_text(json.dumps(experiment.to_dict()))
    done = tcplab("run", "it.json", "--memory", "2 GB")
    # 101 links with two directions, 1,000 samples a second, for 240 seconds, 256 bytes each.
    assert 202 * 1_000 * 240 * 256 == 12_410_880_000
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: one run needs at least 12.4 GB of memory and gets 2.0 GB; 12.4 GB of it is for "
        "samples of links, less with a longer interval of `record.links`; `--memory` allows more, "
        "and fewer `--workers` leave more to each\n"
    )
    assert not list((tmp_path / "results").glob("*/*"))


def test_a_run_that_turns_out_too_large_stops_where_it_always_does() -> None:
    experiment = LARGE["samples at every ACK"]
    said = set()
    for _ in range(2):
        with pytest.raises(lab.ConfigError) as raised:
            lab.run(experiment, memory="50 MB")
        said.add(str(raised.value))
    (text,) = said
    assert "holds more than the 50 MB of memory that it gets, at " in text
    assert "of it is for samples of flows, less with a longer interval of `record.samples`" in text


def test_what_is_too_large_for_its_share_has_all_of_it_alone() -> None:
    # About 40,000 samples a second of 256 bytes: 10 MB each.
    experiment = LARGE["samples at every ACK"].replace(duration="2 s", repeat=2)
    needed = 2 * len(lab.run(experiment.replace(repeat=1)).samples) * ROW
    results = lab.run(experiment, workers=2, memory=f"{needed * 3 // 4} B", out=None)
    assert len(results.computed) == 2


def test_tables_that_stay_in_memory_count() -> None:
    experiment = LARGE["samples at every ACK"].replace(duration="1 s", repeat=8)
    with pytest.raises(
        lab.ConfigError, match=r"the tables of all runs take more than 20 MB of memory; .*`out`"
    ):
        lab.run(experiment, workers=1, memory="20 MB")


@pytest.mark.usefixtures("kernel")
def test_the_kernel_counts() -> None:
    experiment = lab.Experiment(
        duration="1 s", network=link("100 Mbit/s"), flows=[flow(count=5_000)], record=OFF
    )
    # 70 MB, and 85 kB for each of the connections.
    with pytest.raises(lab.ConfigError, match=r"495 MB of it is for the kernel, less with fewer"):
        lab.run(experiment, backend="linux", memory="400 MB")
    acks = LARGE["samples at every ACK"]
    with pytest.raises(lab.ConfigError, match="is for samples of flows"):
        lab.run(acks, backend="linux", memory="200 MB")


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
