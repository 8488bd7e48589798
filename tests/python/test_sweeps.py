"""Large sweeps: few files, several processes, a kill at any moment, and always the same values.

`TCPLAB_KILLS=40` sets the number of kills; the default is a few, to be quick.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import polars as pl
import pytest
from conftest import Command

import tcplab as lab
from tcplab._run.pool import Pool
from tcplab._store import compaction, run_groups
from tcplab._store.run_groups import TABLES, OnDisk, name_of

KILLS = int(os.environ.get("TCPLAB_KILLS", "20"))

SEED = 16


def sweep(repeat: int) -> lab.Experiment:
    """Short runs with different values; every second one has columns that the others lack."""
    return lab.Experiment(
        name="sweep",
        duration="1 s",
        repeat=repeat,
        network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms")),
        flows=[lab.Flow(from_="client", to="server", start_jitter="100 ms")],
        sweep={"flows[0].cc": ["cubic", "newreno"]},
    )


def assert_equal(results: lab.Results, expected: lab.Results) -> None:
    """All values are equal except the elapsed time of runs."""
    for table in TABLES:
        mine, theirs = (one.scan(table).collect() for one in (results, expected))
        assert mine.drop("wall_s", strict=False).equals(theirs.drop("wall_s", strict=False)), table


def in_one_place(folder: Path) -> list[str]:
    """The runs in a folder, each of which must be in one group."""
    tables = [pl.read_parquet(path) for path in folder.glob("group-*/runs.parquet")]
    runs = [run for table in tables for run in table["run"]]
    assert len(set(runs)) == len(runs)
    return runs


def test_after_kills_the_store_equals_an_uninterrupted_sweep(tmp_path: Path) -> None:
    experiment = sweep(400)
    began = time.monotonic()
    expected = lab.run(experiment, out=tmp_path / "undisturbed")
    takes_s = time.monotonic() - began
    (tmp_path / "it.json").write_text(json.dumps(experiment.to_dict()))
    program = "import sys; from tcplab_command import main; sys.exit(main())"
    words = [sys.executable, "-c", program, "run", "it.json", "--out", "out", "--quiet"]
    chance = random.Random(SEED)
    finished: dict[str, float] = {}
    ends = []
    for _ in range(KILLS):
        process = subprocess.Popen(
            [*words, "--no-chart"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        time.sleep(0.3 + chance.uniform(0, takes_s / 8))
        process.send_signal(signal.SIGKILL)
        _, said = process.communicate(timeout=60)
        assert said == b"" or process.returncode == -signal.SIGKILL, said.decode()
        ends.append(process.returncode)
        # Finished runs were neither lost nor computed again: their elapsed time would differ.
        kept = {}
        for path in sorted((tmp_path / "out").glob("group-*/runs.parquet"), reverse=True):
            kept |= dict(pl.read_parquet(path).select("run", "wall_s").iter_rows())
        assert finished.items() <= kept.items()
        finished = kept
        if process.returncode == 0:
            break
    assert -signal.SIGKILL in ends
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    stored = lab.stored(tmp_path / "out")
    assert_equal(stored, expected)
    assert stored.digests == expected.digests
    assert sorted(in_one_place(tmp_path / "out")) == sorted(expected.digests)
    assert lab.verify(tmp_path / "out").findings == []
    assert not list((tmp_path / "out").glob(".unfinished-*"))
    for folder in ("out", "undisturbed"):
        files = [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
        assert len(files) < 10 * (compaction.MOST_SMALL + 2), folder


def test_two_processes_fill_one_store(tmp_path: Path) -> None:
    experiment = sweep(300)
    (tmp_path / "it.json").write_text(json.dumps(experiment.to_dict()))
    words = [sys.executable, "-m", "tcplab.cli", "run", "it.json", "--out", "out", "--no-chart"]
    both = [
        subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[0][0] == said[1][0]
    expected = lab.run(experiment)
    assert_equal(lab.stored(tmp_path / "out"), expected)
    assert sorted(in_one_place(tmp_path / "out")) == sorted(expected.digests)


def test_results_are_found_where_another_process_put_them(tmp_path: Path) -> None:
    first = lab.run(sweep(1), out=tmp_path)
    before = first.scan("samples").collect()
    # The same runs are in a larger group now.
    lab.run(sweep(3), out=tmp_path)
    assert first.scan("samples").collect().equals(before)
    assert first.files(first.plans[0].id) == {}
    assert len(in_one_place(tmp_path)) == 6


def test_rows_are_in_the_order_of_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = sweep(4)
    lab.run(experiment.replace(repeat=2), out=tmp_path)
    monkeypatch.setattr(run_groups, "SMALL", 0)
    lab.run(experiment.replace(seed=3, repeat=1), out=tmp_path)
    backwards = experiment.replace(sweep={"flows[0].cc": ["newreno", "cubic"]})
    for asked in (experiment, backwards):
        expected = lab.run(asked)
        for most in (500, 0):
            monkeypatch.setattr(run_groups, "MOST_STRETCHES", most)
            results = lab.run(asked, out=tmp_path)
            assert_equal(results, expected)
            assert results.flows["run"].to_list() == [plan.id for plan in asked.plans()]
    one = results.plans[0].id
    alone = results.scan("samples", one).collect()
    assert alone.equals(expected.scan("samples", one).collect())
    assert "cubic_k" not in alone.columns


def test_groups_are_read_in_place(tmp_path: Path) -> None:
    results = lab.run(sweep(5), out=tmp_path)
    flows = pl.scan_parquet(tmp_path / "*/flows.parquet").collect()
    assert sorted(flows["goodput_mbit_s"]) == sorted(results.flows["goodput_mbit_s"])


def test_small_groups_are_merged_and_large_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_SMALL", 8)
    lab.run(sweep(5), out=tmp_path)
    [larger] = tmp_path.glob("group-*")
    for seed in range(11, 31):
        lab.run(sweep(1).replace(seed=seed), out=tmp_path)
    # Each experiment left a small group. The larger one was not written again.
    assert len(list(tmp_path.glob("group-*"))) <= 9
    assert larger.is_dir()
    monkeypatch.setattr(run_groups, "SMALL", 0)
    before = {path.name for path in tmp_path.glob("group-*")}
    lab.run(sweep(1).replace(seed=40), out=tmp_path)
    assert before <= {path.name for path in tmp_path.glob("group-*")}
    assert lab.verify(tmp_path, again=True).findings == []


def test_duplicates_of_an_interrupted_merge_are_ignored(tmp_path: Path) -> None:
    results = lab.run(sweep(3), out=tmp_path / "out")
    # Another group has some of the same runs.
    part = lab.run(sweep(2), out=tmp_path / "part")
    [group] = (tmp_path / "part").glob("group-*")
    shutil.copytree(group, tmp_path / "out" / group.name)
    assert_equal(lab.stored(tmp_path / "out"), results)
    assert results.query("select count(*) from flows").item() == 6
    del results
    again = lab.run(sweep(4), out=tmp_path / "out")
    assert len(again.computed) == 2
    assert len(in_one_place(tmp_path / "out")) == 8
    assert set(part.digests.items()) <= set(again.digests.items())


def test_a_file_that_may_not_grow_is_an_error_that_names_it(
    tcplab: Command, tmp_path: Path
) -> None:
    (tmp_path / "it.json").write_text(json.dumps(sweep(40).to_dict()))
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000));"
        "from tcplab_command import main; sys.exit(main())"
    )
    words = [sys.executable, "-c", limited, "run", "it.json", "--out", "out", "--no-chart"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    [said] = done.stderr.splitlines()
    assert said.startswith("error: out/group-")
    assert said.endswith(": file too large")
    again = tcplab("run", "it.json", "--out", "out", "--no-chart", "--quiet")
    assert (again.returncode, again.stderr) == (0, "")


def test_groups_left_by_a_killed_merge_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge of three groups was killed when it had removed one. Of two groups with the same run,
    the first by name counts: the merged one loses the runs of the group before it and is written
    anew, with the run of the group behind it.
    """

    def of(seeds: Sequence[int]) -> lab.Experiment:
        return sweep(1).replace(sweep={"seed": list(seeds)})

    def name(*seeds: int) -> str:
        return name_of(plan.id for plan in of(seeds).plans())

    first, before, behind = next(
        seeds
        for seeds in permutations(range(1, 9), 3)
        if name(seeds[1]) < name(*seeds) < name(seeds[2])
    )
    whole = of([first, before, behind])
    for experiment in (of([before]), of([behind]), whole):
        lab.run(experiment, out=tmp_path / "apart" / name_of(p.id for p in experiment.plans()))
    for group in (tmp_path / "apart").glob("*/group-*"):
        shutil.copytree(group, tmp_path / "out" / group.name)
    # Groups of this size are not merged again, which would remove doubles too.
    monkeypatch.setattr("tcplab._store.run_groups.SMALL", 1)
    results = lab.run(whole, out=tmp_path / "out")
    assert not results.computed
    assert sorted(in_one_place(tmp_path / "out")) == sorted(results.digests)
    assert lab.verify(tmp_path / "out").findings == []


def test_workers_take_consecutive_plans_together() -> None:
    pool = Pool([1.0] * 1000, 2)
    first, second = pool.take(), pool.take()
    assert (first, second) == (range(1), range(1, 2))
    pool.give_back(first, 1, 0.01)
    # Nine tenths of 0.7 s, at 10 ms each.
    third = pool.take()
    assert third == range(2, 65)
    # Plans that took longer than estimated go back, and are taken next.
    pool.give_back(third, 10, 1.0)
    assert pool.take().start == 12
    pool.close()
    assert not pool.take()


def test_plans_behind_a_cut_are_taken_with_the_next_ones() -> None:
    """Three plans alone would be run before the group in front of them is stored."""
    pool = Pool([1.0] * 1000, 1)
    pool.give_back(pool.take(), 1, 0.01)
    first = pool.take()
    assert first == range(1, 64)
    pool.give_back(first, 60, 0.6)
    assert pool.take() == range(61, 124)


def test_a_long_plan_does_not_delay_short_ones() -> None:
    """A group is stored when its last run ends: 100 simulated seconds are expected to take 1 s."""
    pool = Pool([1.0, 1.0, 1.0, 100.0, 100.0], 2)
    pool.give_back(pool.take(), 1, 0.01)
    assert [pool.take() for _ in range(3)] == [range(1, 3), range(3, 4), range(4, 5)]


def test_a_stored_group_is_read_back_unchanged(tmp_path: Path) -> None:
    results = lab.run(sweep(2), out=tmp_path)
    [folder] = tmp_path.glob("group-*")
    group = OnDisk(folder)
    assert [*group.ran] == [plan.id for plan in results.plans]
    for run, ran in group.ran.items():
        for table, rows in zip(TABLES, ran.rows, strict=True):
            own = results.scan(table).filter(pl.col("run") == run).collect()
            assert len(own) == rows


def test_long_plans_are_stored_in_separate_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcplab._store.run_groups.LONGEST", 10)
    monkeypatch.setattr("tcplab._store.store.LONGEST", 10)
    lab.run(sweep(1), out=tmp_path)
    results = lab.run(sweep(2), out=tmp_path)
    assert len(list(tmp_path.glob("group-*/*/plan.json"))) == 4
    assert results.files(results.plans[0].id) == {}
    assert lab.stored(tmp_path).plans[3].to_json() == results.plans[3].to_json()
    assert lab.verify(tmp_path, again=True).findings == []
