"""The laws that every run must keep: both backends are checked, and keep them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Command

import tcplab as lab
from fuzz.small import experiment
from tcplab import _core

SMALL = """
duration = "1 s"
[network.chain]
rate = "10 Mbit/s"
delay = "5 ms"
[[flows]]
from = "client"
to = "server"
"""


def too_long(plan: _core.Plan) -> _core.Plan:
    """The same plan with a path that claims to take longer: every RTT is too short for it."""
    changed = json.loads(plan.to_json())
    changed["flows"][0]["base_rtt"] = "2 s"
    return _core.Plan.from_json(json.dumps(changed))


@pytest.mark.parametrize("backend", ["sim", "linux"])
def test_every_run_is_checked(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if backend == "linux":
        request.getfixturevalue("kernel")
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    [plan] = lab.load(file).plans(backend)
    _core.run(plan, _core.Watch())
    with pytest.raises(lab.InternalError) as raised:
        _core.run(too_long(plan), _core.Watch())
    said = str(raised.value)
    assert said.startswith("the law `rtt` is broken (no RTT or one-way delay is shorter")
    # Twice 40 bytes at 10 Mbit/s are 64 us.
    assert "the path takes 2000.064 ms" in said
    assert 'flows, row 0: run = "' in said
    assert f"backend {backend} {plan.version}, run {plan.id}, seed 1" in said


def test_results_of_a_run_that_breaks_a_law_are_discarded(
    tcplab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    # The interpreter imports this module when it starts.
    (tmp_path / "sitecustomize.py").write_text(
        "import json\n"
        "from tcplab import _core\n"
        "from tcplab._run import workers\n"
        "run = _core.run_batch\n"
        "def broken(plans, *others):\n"
        "    changed = json.loads(plans[0].to_json())\n"
        "    changed['flows'][0]['base_rtt'] = '2 s'\n"
        "    return run([_core.Plan.from_json(json.dumps(changed))], *others)\n"
        "_core.run_batch = broken\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = tcplab("run", "small.toml", "--out", "out")
    assert done.returncode == 70
    assert done.stderr.startswith("internal error: the law `rtt` is broken")
    assert "Please report it" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list((tmp_path / "out").iterdir()) == []


def test_random_experiments_keep_the_laws_on_linux(kernel: lab.Kernel, tmp_path: Path) -> None:
    file = tmp_path / "random.json"
    for seed in range(20):
        file.write_text(json.dumps(experiment(seed)))
        lab.run(file, backend="linux", kernel=kernel.name, progress=False)


def test_a_flow_that_never_connects_has_no_goodput(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "lost.toml"
    file.write_text(SMALL.replace('delay = "5 ms"', 'delay = "5 ms"\nloss = 1.0'))
    for backend in ("sim", "linux"):
        if backend == "linux":
            request.getfixturevalue("kernel")
        [flow] = lab.run(file, backend=backend).flows.iter_rows(named=True)
        assert (flow["goodput_mbit_s"], flow["bottleneck_share"]) == (None, None), backend
        # SYNs do not count as segments with data.
        assert (flow["sent_segments"], flow["retransmitted_segments"]) == (0, 0), backend


@pytest.mark.parametrize("queue", ["'20 packets'", "{ kind = 'codel', limit = '20 packets' }"])
@pytest.mark.usefixtures("kernel")
def test_bursts_between_samples_are_seen_alike_on_both_backends(queue: str, tmp_path: Path) -> None:
    file = tmp_path / "burst.toml"
    file.write_text(
        'duration = "1 s"\nrecord.links = "500 ms"\n'
        "network.links = [\n"
        '  { between = ["a", "r"], rate = "1 Gbit/s", delay = "1 ms", queue = "100 packets" },\n'
        f'  {{ between = ["r", "b"], rate = "12 Mbit/s", delay = "20 ms", queue = {queue} }},\n'
        "]\n"
        '[[flows]]\nfrom = "a"\nto = "b"\ntraffic = { kind = "bulk", size = "14480 B" }\n'
    )
    for backend in ("sim", "linux"):
        links = lab.run(file, backend=backend).links.filter(link="r>b")
        row = links.row(0, named=True)
        # An ACK of 52 bytes is followed by ten segments of 1500 bytes, 12 us apart: each takes 1 ms
        # to transmit, the ACK 34.67 us. The last arrives while the first is being transmitted, and
        # nine wait.
        assert row["queue_packets"] == 0, backend
        assert (row["queue_max_packets"], row["queue_max_bytes"]) == (9, 13_500), backend
        waited_us = sum(34.667 + 1000 * number - 12 * (number + 1) for number in range(10))
        assert row["queue_mean_packets"] == pytest.approx(waited_us / 500_000, rel=1e-6), backend
        assert row["queue_mean_bytes"] == pytest.approx(1500 * waited_us / 500_000, rel=1e-6)


def test_coarse_timestamp_clocks_give_no_rtt_below_the_path(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    # The path takes 10.064 ms; the kernel's clock has whole milliseconds.
    lossy = 'delay = "5 ms"\nloss = "10 %"'
    file.write_text(
        "repeat = 20\n"
        + SMALL.replace('delay = "5 ms"', lossy)
        + '[stack]\nprofile = "linux-2.6.26"\ntimestamps = true\n'
    )
    least = lab.run(file).flows["rtt_min_ms"].drop_nulls()
    assert least.min() >= 10.063


def test_data_that_came_with_the_syn_counts(tmp_path: Path) -> None:
    file = tmp_path / "fast.toml"
    # The data of the second connection has reached the server, the answer not yet the client.
    file.write_text(
        'duration = "300 ms"\n'
        '[network.chain]\nrate = "10 Mbit/s"\ndelay = "50 ms"\n'
        "[stack]\nfast_open = true\n"
        '[[flows]]\nfrom = "client"\nto = "server"\ntraffic = { kind = "bulk", size = "1 kB" }\n'
        '[[flows]]\nfrom = "client"\nto = "server"\nstart = "220 ms"\n'
    )
    row = lab.run(file).flows.row(1, named=True)
    # 80 ms remain until the end.
    assert row["bytes"] > 0
    assert row["goodput_mbit_s"] == pytest.approx(row["bytes"] * 8 / 0.08 / 1e6)
