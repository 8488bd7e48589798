"""Measuring windows and intervals: the same on both backends, on disk, and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import EXAMPLES, Command
from test_linux import flow, link

import tcplab as lab


def on_both(**settings: Any) -> lab.Results:
    """Runs an experiment on both backends. Flows and intervals must be equal to the last bit."""
    experiment = lab.Experiment(**settings)
    ours = lab.run(experiment)
    theirs = lab.run(experiment, backend="linux")
    assert ours.flows.drop("run").equals(theirs.flows.drop("run")), (ours.flows, theirs.flows)
    one, other = (run.intervals.drop("run") for run in (ours, theirs))
    assert one.equals(other), one.join(other, on=one.columns, how="anti", nulls_equal=True)
    columns = ["measured_from_s", "measured_to_s"]
    assert ours.runs.select(columns).equals(theirs.runs.select(columns))
    return ours


REQUESTS = lab.RequestsTraffic(request="300 B", response="20 kB", think="30 ms", requests=30)
WEB = lab.WebTraffic(sizes=["15 kB"] * 20, connections=3)
ARRIVALS = lab.ArrivalsTraffic(per_second=20, sizes="20 kB", transfers=40)
USERS = lab.ArrivalsTraffic(users=3, think="50 ms", sizes="12 kB")
DATAGRAMS = lab.UdpTraffic(rate="2 Mbit/s", gaps="poisson")


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    "traffic",
    [
        None,
        lab.BulkTraffic(size="1 MB"),
        lab.OnOffTraffic(on="200 ms", off="150 ms"),
        REQUESTS,
        WEB,
        WEB.replace(persistent=True),
        ARRIVALS,
        USERS,
        DATAGRAMS,
        lab.UdpTraffic(interval="3 ms", packets=300, payload="20 B"),
        lab.UdpTraffic(interval="9 ms", payload="4 kB"),
    ],
)
@pytest.mark.parametrize("start", ["0 s", "700 ms", "1.4 s", "2.5 s"])
def test_windows_and_intervals_are_the_same_on_both_backends(
    traffic: lab.BulkTraffic | None, start: str
) -> None:
    results = on_both(
        duration="3 s",
        measure=lab.Measure(from_="600 ms", to="2 s"),
        every="130 ms",
        network=link(queue="15 packets"),
        flows=[flow(traffic=traffic, start=start)],
    )
    late = start == "2.5 s"
    assert (len(results.intervals) == 0) == late
    assert (results.flows["bytes"][0] == 0) == late


@pytest.mark.usefixtures("kernel")
def test_flows_that_share_a_link_are_the_same_on_both_backends() -> None:
    results = on_both(
        duration="3 s",
        measure=lab.Measure(from_="1 s"),
        every="100 ms",
        network=link(queue="15 packets"),
        flows=[
            flow(),
            flow(start="800 ms", cc="newreno"),
            flow(traffic=DATAGRAMS, start="1.05 s"),
            flow(traffic=lab.BulkTraffic(size="200 kB"), start="10 ms"),
        ],
    )
    assert results.flows["retransmitted_segments"].sum() > 0


@pytest.mark.usefixtures("kernel")
def test_measuring_does_not_change_a_run_on_linux() -> None:
    experiment = lab.Experiment(
        duration="4 s",
        network=link(queue="15 packets", loss="0.1 %"),
        flows=[flow(), flow(traffic=REQUESTS), flow(traffic=DATAGRAMS), flow(traffic=ARRIVALS)],
        record=lab.Record(samples="ack"),
    )
    plain = lab.run(experiment, backend="linux")
    measured = lab.run(experiment.replace(every="777 us"), backend="linux")
    assert len(measured.intervals) > 10_000
    for table in ("flows", "transfers", "samples", "links", "drops"):
        one, other = (run.scan(table).drop("run").collect() for run in (plain, measured))
        assert one.equals(other), table


@pytest.mark.usefixtures("kernel")
def test_the_edge_of_a_window_may_be_the_nanosecond_of_an_arrival() -> None:
    experiment = {
        "duration": "2 s",
        "network": link(),
        "flows": [flow(traffic=lab.BulkTraffic(size="100 kB"))],
    }
    whole = lab.run(lab.Experiment(**experiment, record=lab.Record(samples="ack")))  # type: ignore[arg-type]
    end_ns = round(whole.flows["end_s"][0] * 1e9)
    bytes_before = {}
    for edge in (end_ns - 1, end_ns, end_ns + 1):
        measure = lab.Measure(to=f"{edge} ns")
        bytes_before[edge - end_ns] = on_both(**experiment, measure=measure).flows["bytes"][0]
    # The last segment arrives at the edge, and belongs to what begins there: 88 bytes after 69
    # others.
    assert bytes_before == {-1: 69 * 1448, 0: 69 * 1448, 1: 100_000}
    # ACKs that arrive at the edge decide the sender's side of it.
    for time_s in whole.samples["time_s"].sample(4, seed=7):
        edge = f"{round(time_s * 1e9)} ns"
        on_both(**experiment, measure=lab.Measure(from_=edge), every="7.3 ms")


@pytest.mark.usefixtures("kernel")
def test_programs_are_measured() -> None:
    server = (
        "python3 -c \"import socket; connection = socket.create_server(('', 7000)).accept()[0]; "
        "exec('while connection.recv(65536): pass')\""
    )
    client = (
        'python3 -c "import socket, time; connection = '
        "socket.create_connection(('{server}', 7000)); "
        '[(connection.sendall(bytes(10000)), time.sleep(0.1)) for _ in range(10)]"'
    )
    command = lab.CommandTraffic(server=server, client=client)
    experiment = lab.Experiment(
        duration="3 s", every="250 ms", network=link(), flows=[flow(traffic=command)]
    )
    results = lab.run(experiment, backend="linux")
    # Ten transfers of 10 kB from the client to the server, a tenth of a second apart.
    assert results.intervals["bytes"].sum() == 100_000 == results.flows["bytes"][0]
    assert (results.intervals["bytes"] > 0).sum() in (4, 5)
    for column in ("transfers", "completed_transfers"):
        assert results.intervals[column].sum() == 1
    half = experiment.replace(measure=lab.Measure(from_="500 ms", to="1 s"))
    part = lab.run(half, backend="linux")
    within = results.intervals.filter(pl.col("start_s").is_between(0.5, 0.99))
    assert part.flows["bytes"][0] == within["bytes"].sum() > 0


def test_the_example_adds_up(tmp_path: Path) -> None:
    results = lab.run(EXAMPLES / "measure.toml", out=tmp_path)
    sums = results.intervals.group_by("flow", maintain_order=True).agg(pl.col("bytes").sum())
    assert sums["bytes"].to_list() == results.flows["bytes"].to_list()
    assert results.intervals["start_s"].to_list() == [float(20 + k // 2) for k in range(80)]
    assert results.runs.select("measured_from_s", "measured_to_s").row(0) == (20.0, 60.0)
    # Stored results are the same, and so are recomputed ones.
    again = lab.run(EXAMPLES / "measure.toml", out=tmp_path)
    assert not again.computed
    assert again.intervals.equals(results.intervals)
    assert not lab.verify(tmp_path, again=True).findings


def test_goodput_is_drawn_where_there_are_intervals(small: lab.Experiment) -> None:
    with pytest.raises(ValueError, match="there are no intervals"):
        lab.plot.goodput(lab.run(small))
    chart = lab.plot.goodput(lab.run(small.replace(every="500 ms"))).to_dict()
    values = chart["datasets"][chart["layer"][0]["data"]["name"]]
    assert [point["time_s"] for point in values] == [0.25, 0.75, 1.25, 1.75]
    assert len(lab.plot.overview(lab.run(small.replace(every="500 ms"))).to_dict()["vconcat"]) == 3


def test_a_window_is_swept_like_other_keys(tcplab: Command, tmp_path: Path) -> None:
    plain: dict[str, Any] = {
        "duration": "4 s",
        "network": {"chain": {"rate": "10 Mbit/s", "delay": "5 ms"}},
        "flows": [{"from": "client", "to": "server"}],
        "sweep": {"measure.from": ["1 s", "2 s"]},
    }
    (tmp_path / "swept.json").write_text(json.dumps(plain))
    done = tcplab("run", "swept.json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[3:5]] == ["1", "2"]
    plain["measure"] = {"to": "1500 ms"}
    (tmp_path / "empty.json").write_text(json.dumps(plain))
    refused = tcplab("run", "empty.json")
    assert "measure.to: is 1.5 s, not after `measure.from`, which is 2 s" in refused.stderr
