"""The findings of `verify` in stored results, and their places."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from conftest import Command

import tcplab as lab


@pytest.fixture
def stored(small: lab.Experiment, tmp_path: Path) -> Path:
    """Four runs in a folder, the first in a group of its own, with a chart beside them."""
    folder = tmp_path / "stored"
    lab.run(small.replace(repeat=1, sweep={}), out=folder)
    lab.run(small.replace(seed=7, repeat=3, sweep={}), out=folder)
    (folder / "chart.svg").write_text("<svg/>")
    return folder


def first(stored: Path) -> Path:
    """The folder of the group of one run."""
    lengths = {path.parent: len(pl.read_parquet(path)) for path in groups(stored)}
    return next(folder for folder, runs in sorted(lengths.items()) if runs == 1)


def groups(stored: Path) -> list[Path]:
    return sorted(stored.glob("group-*/plans.parquet"))


def run_of(group: Path) -> str:
    """The one run of a group."""
    [run] = pl.read_parquet(group / "plans.parquet")["run"]
    return str(run)


def only(verification: lab.Verification) -> lab.Finding:
    """The one finding."""
    [finding] = verification.findings
    return finding


@pytest.mark.parametrize("again", [False, True])
def test_unchanged_results_verify(stored: Path, again: bool) -> None:
    checked = lab.verify(stored, again=again)
    assert (len(checked.runs), checked.findings) == (4, [])
    assert len(lab.verify([first(stored), stored]).runs) == 4
    assert lab.verify(first(stored)).runs == [run_of(first(stored))]


def sum_up(folder: Path) -> None:
    """Rewrites the list of checksums."""
    names = lab._store.checksums.listed(folder)
    sums = {name: lab._store.checksums.checksum((folder / name).read_bytes()) for name in names}
    lab._store.checksums.write_list(folder, sums)


def edit(path: Path, **columns: pl.Expr) -> None:
    """Changes a stored table, and the list of checksums with it."""
    pl.read_parquet(path).with_columns(**columns).write_parquet(path)
    sum_up(path.parent)


def test_a_number_that_was_edited_is_found(stored: Path) -> None:
    edit(first(stored) / "flows.parquet", timeouts=pl.col("timeouts") + 1)
    finding = only(lab.verify(stored))
    assert (finding.folder, finding.where) == (first(stored), "tables")
    assert finding.run == run_of(first(stored))
    assert "do not have the digest of plans.parquet" in finding.what


def test_the_only_value_that_may_differ_is_the_elapsed_time(stored: Path) -> None:
    edit(first(stored) / "runs.parquet", wall_s=pl.lit(1.5))
    assert lab.verify(stored, again=True).findings == []


def test_a_file_that_the_digest_does_not_cover_has_its_checksum(stored: Path) -> None:
    runs = first(stored) / "runs.parquet"
    pl.read_parquet(runs).with_columns(wall_s=pl.lit(1.5)).write_parquet(runs)
    finding = only(lab.verify(stored))
    assert (finding.run, finding.where, finding.what) == (
        None,
        "runs.parquet",
        "is damaged, or belongs to another group of runs",
    )
    sum_up(first(stored))
    (first(stored) / lab._store.checksums.LIST).unlink()
    finding = only(lab.verify(stored))
    assert (finding.where, finding.what) == (
        "files.sha256",
        "cannot be read: no such file or directory",
    )


def test_a_law_that_stored_tables_break_is_named(stored: Path) -> None:
    # The path takes 10 ms.
    edit(first(stored) / "flows.parquet", rtt_min_ms=pl.lit(9.5))
    changed, broken = lab.verify(stored).findings
    assert "digest" in changed.what
    assert broken.what.startswith("the law `rtt` is broken")
    assert "flows, row 0" in broken.what


def test_a_list_of_runs_that_was_changed_is_found(stored: Path) -> None:
    listed = stored / "runs.json"
    text = listed.read_text()
    plain = json.loads(text)
    plain["runs"][0]["repetition"] += 1
    listed.write_text(json.dumps(plain))
    (found,) = lab.verify(stored).findings
    assert (found.folder, found.where) == (stored, "runs.json")
    assert "run 0 is " in found.what
    assert "experiment.toml asks for" in found.what
    plain["runs"].pop()
    listed.write_text(json.dumps(plain))
    (found,) = lab.verify(stored).findings
    assert found.what.startswith(f"has {len(plain['runs'])} runs, and")
    listed.write_text("{")
    (found,) = lab.verify(stored).findings
    assert found.what == "is not the list of runs that tcplab run writes"
    listed.write_text(text)
    experiment = stored / "experiment.toml"
    experiment.write_text(experiment.read_text() + "# changed\n")
    (found,) = lab.verify(stored).findings
    assert "is missing, or is not the one of these runs" in found.what
    listed.unlink()
    assert not lab.verify(stored).findings


@pytest.mark.parametrize("kept", [0, 10, 500])
def test_a_damaged_table_is_found(stored: Path, kept: int) -> None:
    path = first(stored) / "samples.parquet"
    path.write_bytes(path.read_bytes()[:kept])
    finding = only(lab.verify(stored))
    assert (finding.folder, finding.where) == (first(stored), "samples.parquet")
    assert finding.what == "is damaged, or belongs to another group of runs"
    sum_up(first(stored))
    finding = only(lab.verify(stored))
    assert finding.what.startswith("cannot be read: ")


def test_bytes_turned_over_are_found(stored: Path) -> None:
    path = first(stored) / "samples.parquet"
    content = path.read_bytes()
    for place in range(4, len(content), len(content) // 7):
        changed = bytes([*content[:place], content[place] ^ 0x55, *content[place + 1 :]])
        path.write_bytes(changed)
        assert lab.verify(stored).findings


def test_a_table_of_another_run_is_found(stored: Path, small: lab.Experiment) -> None:
    lab.run(small.replace(seed=5, repeat=1, sweep={}), out=stored / "more")
    shutil.copy(first(stored / "more") / "flows.parquet", first(stored) / "flows.parquet")
    sum_up(first(stored))
    changed, broken = lab.verify(stored).findings
    assert "digest" in changed.what
    assert "the row is of another run" in broken.what


def test_a_table_of_another_program_is_found(stored: Path) -> None:
    pl.DataFrame({"a": [1, 2]}).write_parquet(first(stored) / "links.parquet")
    sum_up(first(stored))
    finding = only(lab.verify(stored))
    assert finding.what == "the table `links` has no column `run`"


@pytest.mark.parametrize("name", ["flows.parquet", "plans.parquet"])
def test_a_missing_file_is_found(stored: Path, name: str) -> None:
    (first(stored) / name).unlink()
    finding = only(lab.verify(stored))
    assert (finding.where, finding.what) == (name, "is missing")


def test_a_plan_that_was_changed_is_found(stored: Path) -> None:
    path = first(stored) / "plans.parquet"
    table = pl.read_parquet(path)
    plan = json.loads(table["plan"][0])
    for change, said in [
        ({"duration": "3 s"}, "was changed: its content has another id"),
        ({"id": "0123456789abcdef"}, "is of the run 0123456789abcdef"),
        ({"lanes": []}, "the plan names a link that it does not have"),
        ({"seed": "many"}, "cannot read the plan"),
    ]:
        table.with_columns(plan=pl.lit(json.dumps(plan | change))).write_parquet(path)
        sum_up(path.parent)
        finding = only(lab.verify(stored))
        assert finding.where == "plans.parquet"
        assert said in finding.what


def test_results_that_differ_from_a_repetition_are_found(
    stored: Path, small: lab.Experiment
) -> None:
    # Tables with a digest of their own, as another machine might have computed them.
    lab.run(small.replace(seed=5, repeat=1, sweep={}), out=stored.parent / "other")
    mine, theirs = first(stored), first(stored.parent / "other")
    run = run_of(mine)
    for path in theirs.glob("*.parquet"):
        if path.name == "plans.parquet":
            continue
        edit(path, run=pl.lit(run))
        shutil.copy(path, mine)
    edit(mine / "plans.parquet", digest=pl.read_parquet(theirs / "plans.parquet")["digest"])
    assert {finding.run for finding in lab.verify(stored, again=True).findings} == {run}


def test_the_command_prints_a_line_for_each_run(tcplab: Command, stored: Path) -> None:
    done = tcplab("verify", "stored", "--again")
    assert (done.returncode, done.stdout) == (0, "4 runs checked, 0 wrong\n")
    edit(first(stored) / "flows.parquet", rtt_min_ms=pl.lit(9.5))
    done = tcplab("verify", "stored")
    assert done.returncode == 1
    line, totals = done.stdout.splitlines()
    place = f"stored/{first(stored).name}: {run_of(first(stored))}"
    assert line.startswith(f"{place}: tables: do not have the digest")
    assert "; tables: the law `rtt` is broken" in line
    assert totals == "4 runs checked, 1 wrong"
    assert done.stderr == ""


def test_folders_of_results_of_several_experiments_are_looked_through(
    tcplab: Command, stored: Path, tmp_path: Path
) -> None:
    stored.rename(tmp_path / "all")
    (tmp_path / "results").mkdir()
    (tmp_path / "all").rename(tmp_path / "results/one")
    (tmp_path / "results/note.txt").touch()
    done = tcplab("verify", "results")
    assert (done.returncode, done.stdout) == (0, "4 runs checked, 0 wrong\n")


def test_places_without_results_are_refused(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for place, said in [
        ("nowhere", "there is no such folder"),
        ("file", "is not a folder"),
        ("empty", "has no results of a run"),
    ]:
        done = tcplab("verify", place)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"error: {place}: {said}; expected results of tcplab run\n"


def test_runs_of_another_version_are_not_run_again_and_not_wrong(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = lab.__version__
    monkeypatch.setattr("tcplab._core.__version__", "99.0.0")
    checked = lab.verify(stored, again=True)
    assert checked.findings == []
    assert len(checked.unrepeated) == len(checked.runs) > 0
    said = f"not run again: tcplab {own} made it, and this is 99.0.0"
    assert {finding.what for finding in checked.unrepeated} == {said}
