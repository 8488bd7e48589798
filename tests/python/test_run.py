"""Running gives the documented tables, always the same ones however it is done."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from conftest import wait_for
from polars.testing import assert_frame_equal

import tcplab as lab
from tcplab import _core
from tcplab._store.run_groups import name_of

LONG = """
duration = "100 h"
repeat = 3
network.chain = { rate = "1 Gbit/s", delay = "5 ms" }
flows = [{ from = "client", to = "server" }]
record = { samples = "off", links = "off" }
"""


def test_tables_have_the_documented_columns(small: lab.Experiment) -> None:
    results = lab.run(small)
    for name in ("runs", "flows", "samples", "links"):
        documented = lab.columns().filter(pl.col("table") == name)["column"].to_list()
        frame = getattr(results, name)
        assert frame.columns[: len(documented)] == documented
        assert len(frame) > 0
    swept = ["network.chain.queue", "network.chain.queue_packets"]
    assert results.runs.columns[-2:] == swept
    assert set(results.flows.dtypes) == {pl.String, pl.Int64, pl.Float64}
    assert results.runs["wall_s"].null_count() == 0


def test_runs_are_in_the_order_of_plans(small: lab.Experiment) -> None:
    for workers in (1, 4):
        results = lab.run(small, workers=workers)
        assert results.runs["run"].to_list() == [plan.id for plan in small.plans()]
        queues = results.runs["network.chain.queue"].to_list()
        assert queues == ["10 packets", "10 packets", "20 packets", "20 packets"]


def test_the_number_of_workers_changes_no_bit(small: lab.Experiment) -> None:
    one, two = (lab.run(small, workers=workers) for workers in (1, 2))
    assert one.digests == two.digests
    assert_frame_equal(one.samples, two.samples)


def test_joined_tables_say_what_was_swept(small: lab.Experiment) -> None:
    results = lab.run(small)
    flows = results.joined("flows")
    assert flows.columns[:4] == ["run", "seed", "repetition", "network.chain.queue"]
    assert len(flows) == len(results.flows)


def test_a_swept_seed_has_a_sweep_seed_column(small: lab.Experiment) -> None:
    results = lab.run(small.replace(sweep={"seed": [5, 9]}))
    assert results.runs["seed"].to_list() == [5, 6, 9, 10]
    assert results.runs["sweep.seed"].to_list() == ["5", "5", "9", "9"]


def test_variants_that_are_the_same_run_once(small: lab.Experiment) -> None:
    same = small.replace(repeat=1, sweep={"network.chain.queue": ["10 packets", " 10  packets"]})
    results = lab.run(same)
    assert results.runs["run"].n_unique() == len(results.computed) == 1
    assert len(results.runs) == len(results.joined("flows")) == 2


def test_a_finished_run_is_not_run_again(
    small: lab.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.run(small, out=tmp_path)
    monkeypatch.setattr(_core, "run", None)
    second = lab.run(small, out=tmp_path)
    assert (len(first.computed), len(second.computed)) == (4, 0)
    assert first.digests == second.digests
    for name in ("runs", "flows", "samples", "links"):
        assert_frame_equal(getattr(first, name), getattr(second, name))


def test_a_run_is_found_under_another_name(small: lab.Experiment, tmp_path: Path) -> None:
    lab.run(small, out=tmp_path)
    sweep = {"seed": [2], "network.chain.queue": ["20 packets"]}
    other = lab.run(small.replace(name="other", repeat=1, sweep=sweep), out=tmp_path)
    assert not other.computed
    row = other.runs.row(0, named=True)
    assert (row["experiment"], row["repetition"], row["sweep.seed"]) == ("other", 0, "2")


def test_equal_tables_are_equal_files(small: lab.Experiment, tmp_path: Path) -> None:
    for out in ("a", "b"):
        lab.run(small, out=tmp_path / out)
    files = [file.relative_to(tmp_path / "a") for file in tmp_path.glob("a/*/*")]
    # The plans, the list of checksums and eight tables, for all runs together.
    assert len(files) == 10
    for file in files:
        # The elapsed time differs, and with it a checksum.
        if file.name not in ("runs.parquet", "files.sha256"):
            assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_folders_may_have_any_name(small: lab.Experiment, tmp_path: Path) -> None:
    out = tmp_path / "a [1] * ?"
    assert len(lab.run(small, out=out).samples) == len(lab.run(small, out=out).samples) > 0


def kept(experiment: lab.Experiment) -> list[str]:
    """The content of a folder after a small experiment: one group of all runs."""
    group = name_of(plan.id for plan in experiment.plans())
    return ["experiment.toml", group, "runs.json"]


def test_a_killed_run_leaves_no_files(small: lab.Experiment, tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    file.write_text(LONG)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tcplab.cli", "run", str(file), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    wait_for(lambda: list(out.glob(".unfinished-*")), process)
    process.kill()
    process.communicate()
    assert not list(out.glob("group-*"))
    lab.run(small, out=out)
    assert sorted(path.name for path in out.iterdir()) == kept(small)


def test_processes_may_share_a_folder(small: lab.Experiment, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: lab.run(small, out=tmp_path), range(24)))
    assert all(one.digests == results[0].digests for one in results)
    runs = [pl.read_parquet(path)["run"] for path in tmp_path.glob("group-*/runs.parquet")]
    assert sorted(pl.concat(runs)) == sorted(plan.id for plan in small.plans())
    others = [path.name for path in tmp_path.iterdir() if not path.name.startswith("group-")]
    assert sorted(others) == ["experiment.toml", "runs.json"]


def runs_in(group: Path) -> int:
    """The number of runs of a group."""
    return len(pl.read_parquet(group / "runs.parquet"))


def test_ctrl_c_stops_at_once_and_keeps_what_is_finished(tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    file.write_text(LONG + 'sweep.duration = ["1 s", "100 h"]\n')
    command = [sys.executable, "-m", "tcplab.cli", "run", "long.toml", "--out", "out"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    out = tmp_path / "out"
    # Two of the short runs may be in one group.
    wait_for(lambda: sum(map(runs_in, out.glob("group-*"))) == 3, process)
    began = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert process.returncode == 130
    assert said == "interrupted; 3 of 6 runs are finished and kept in out\n"
    assert len(list(out.glob("group-*"))) == 3


def test_the_summary_is_over_repetitions(small: lab.Experiment) -> None:
    results = lab.run(small)
    summary = results.summary()
    assert summary["network.chain.queue"].to_list() == ["10 packets", "20 packets"]
    assert summary["repetitions"].to_list() == [2, 2]
    flows = results.joined("flows").filter(pl.col("network.chain.queue") == "10 packets")
    mean = flows["goodput_mbit_s"].mean()
    assert summary["goodput_mbit_s"][0] == pytest.approx(mean)
    # For two values, s / sqrt(2) is half their distance; t with one degree of freedom is 12.706,
    # from the Cauchy distribution: tan(0.475 pi).
    distance = abs(flows["goodput_mbit_s"][0] - flows["goodput_mbit_s"][1])
    assert summary["goodput_mbit_s_ci"][0] == pytest.approx(
        math.tan(0.475 * math.pi) * distance / 2
    )


def test_progress_is_shown_of_long_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcplab._run.progress.PROGRESS_AFTER_S", 0.0)
    file = tmp_path / "experiment.toml"
    file.write_text(LONG.replace("100 h", "20 s"))
    lab.run(file, progress=True)
    assert "of 3 runs" in capsys.readouterr().err


def test_a_comparison_is_in_the_order_of_the_experiment(small: lab.Experiment) -> None:
    flows = [lab.Flow(from_="client", to="server", count=12)]
    results = lab.run(small.replace(flows=flows))
    comparison = lab.Comparison({"one": results, "other": results})
    table = comparison.differences()
    measures = table["measure"].unique(maintain_order=True).to_list()
    assert measures[:3] == ["goodput_mbit_s", "completion_s", "cwnd_mean_segments"]
    index = ["network.chain.queue", "repetition", "flow"]
    expected = [
        (*row, measure)
        for row in results.joined("flows").select(index).iter_rows()
        for measure in measures
    ]
    assert len(expected) == 4 * 12 * len(measures)
    assert table.select(*index, "measure").rows() == expected
    for _ in range(5):
        assert_frame_equal(comparison.differences(), table)


def test_a_plain_dict_is_an_experiment(small: lab.Experiment) -> None:
    plain = small.to_dict()
    assert lab.run(plain).digests == lab.run(small).digests
    # Dicts may contain classes, and classes may contain dicts.
    mixed = plain | {"network": small.network, "flows": tuple(small.flows or ())}
    assert lab.run(mixed).digests == lab.run(small).digests
    with pytest.raises(lab.ConfigError, match="flow_s"):
        lab.run(plain | {"flow_s": []})
    with pytest.raises(lab.ConfigError, match="duration"):
        lab.run({name: value for name, value in plain.items() if name != "duration"})
    with pytest.raises(TypeError, match=r"an experiment, a dict or the path .* not a list"):
        lab.run([plain])  # type: ignore[arg-type]
