"""What `verify` finds in stored results, and where it says so."""

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
    """Four runs in a folder, with a chart beside them."""
    folder = tmp_path / "stored"
    lab.run(small, out=folder)
    (folder / "chart.svg").write_text("<svg/>")
    return folder


def first(stored: Path) -> Path:
    """The folder of one run."""
    return min(path for path in stored.iterdir() if path.is_dir())


def only(verification: lab.Verification) -> lab.Finding:
    """The one finding."""
    [finding] = verification.findings
    return finding


@pytest.mark.parametrize("again", [False, True])
def test_results_as_they_were_stored_are_well(stored: Path, again: bool) -> None:
    checked = lab.verify(stored, again=again)
    assert (len(checked.runs), checked.findings) == (4, [])
    assert len(lab.verify([first(stored), stored]).runs) == 4
    assert lab.verify(first(stored)).runs == [first(stored)]


def edit(path: Path, **columns: pl.Expr) -> None:
    """Changes a stored table."""
    pl.read_parquet(path).with_columns(**columns).write_parquet(path)


def test_a_number_that_was_edited_is_found(stored: Path) -> None:
    edit(first(stored) / "flows.parquet", timeouts=pl.col("timeouts") + 1)
    finding = only(lab.verify(stored))
    assert (finding.folder, finding.where) == (first(stored), "tables")
    assert "do not have the digest of digest.txt" in finding.what


def sum_up(folder: Path) -> None:
    """Writes the list of checksums anew."""
    names = lab._checksums.listed(folder)
    sums = {name: lab._checksums.checksum((folder / name).read_bytes()) for name in names}
    lab._checksums.write_list(folder, sums)


def test_the_only_value_that_may_differ_is_the_elapsed_time(stored: Path) -> None:
    edit(first(stored) / "runs.parquet", wall_s=pl.lit(1.5))
    sum_up(first(stored))
    assert lab.verify(stored, again=True).findings == []


def test_a_file_that_the_digest_does_not_cover_has_its_checksum(stored: Path) -> None:
    edit(first(stored) / "runs.parquet", wall_s=pl.lit(1.5))
    finding = only(lab.verify(stored))
    assert (finding.where, finding.what) == ("runs.parquet", "is damaged, or of another run")
    sum_up(first(stored))
    (first(stored) / lab._checksums.LIST).unlink()
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


@pytest.mark.parametrize("kept", [0, 10, 500])
def test_a_damaged_table_is_found(stored: Path, kept: int) -> None:
    path = first(stored) / "samples.parquet"
    path.write_bytes(path.read_bytes()[:kept])
    finding = only(lab.verify(stored))
    assert (finding.folder, finding.where) == (first(stored), "samples.parquet")
    assert finding.what.startswith("cannot be read: ")


def test_bytes_turned_over_are_found(stored: Path) -> None:
    path = first(stored) / "samples.parquet"
    content = path.read_bytes()
    for place in range(4, len(content), len(content) // 7):
        changed = bytes([*content[:place], content[place] ^ 0x55, *content[place + 1 :]])
        path.write_bytes(changed)
        assert lab.verify(stored).findings


def test_a_table_of_another_run_is_found(stored: Path) -> None:
    runs = sorted(path for path in stored.iterdir() if path.is_dir())
    shutil.copy(runs[1] / "flows.parquet", runs[0] / "flows.parquet")
    changed, broken = lab.verify(stored).findings
    assert "digest" in changed.what
    assert "it is of another run" in broken.what


def test_a_table_of_another_program_is_found(stored: Path) -> None:
    pl.DataFrame({"a": [1, 2]}).write_parquet(first(stored) / "links.parquet")
    finding = only(lab.verify(stored))
    assert finding.what == "the table `links` has no column `run`"


@pytest.mark.parametrize("name", ["flows.parquet", "experiment.json", "digest.txt"])
def test_a_missing_file_is_found(stored: Path, name: str) -> None:
    (first(stored) / name).unlink()
    finding = only(lab.verify(stored))
    assert (finding.where, finding.what) == (name, "is missing")


def test_a_plan_that_was_changed_is_found(stored: Path) -> None:
    path = first(stored) / "experiment.json"
    plan = json.loads(path.read_text())
    for change, said in [
        ({"duration": "3 s"}, "was changed: another id belongs to what it says"),
        ({"id": "0123456789abcdef"}, "is of the run 0123456789abcdef"),
        ({"lanes": []}, "it names a link that it has not"),
        ({"seed": "many"}, "is no plan of this version"),
    ]:
        path.write_text(json.dumps(plan | change))
        finding = only(lab.verify(stored))
        assert finding.where == "experiment.json"
        assert said in finding.what


def test_other_results_than_again_are_found(stored: Path, small: lab.Experiment) -> None:
    # Tables with a digest of their own, as another machine might have computed them.
    other = lab.run(small.replace(seed=7), out=stored.parent / "other")
    mine, theirs = first(stored), stored.parent / "other" / other.plans[0].id
    for path in theirs.glob("*.parquet"):
        edit(path, run=pl.lit(mine.name))
        shutil.copy(path, mine)
    shutil.copy(theirs / "digest.txt", mine)
    sum_up(mine)
    assert {finding.folder for finding in lab.verify(stored, again=True).findings} == {mine}


def test_the_command_prints_a_line_for_each_run(tcplab: Command, stored: Path) -> None:
    done = tcplab("verify", "stored", "--again")
    assert (done.returncode, done.stdout) == (0, "4 runs checked, 0 wrong\n")
    edit(first(stored) / "flows.parquet", rtt_min_ms=pl.lit(9.5))
    done = tcplab("verify", "stored")
    assert done.returncode == 1
    line, totals = done.stdout.splitlines()
    assert line.startswith(f"stored/{first(stored).name}: tables: do not have the digest")
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
