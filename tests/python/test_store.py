"""Stored results are used again only if they are whole and of the run; disks may fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from conftest import EXAMPLES, Command

import tcplab as lab
from tcplab import _core, _restored
from tcplab._agreed import Agreed
from tcplab._checksums import checksum, listed, write_list
from tcplab._restored import TABLES

Damage = Callable[[Path, Path], object]


def turn(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def swap(run: Path, other: Path) -> None:
    shutil.rmtree(run)
    shutil.copytree(other, run)


def put_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.touch()


def put_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def put_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a table cut short": (
        lambda run, _: (run / "samples.parquet").write_bytes(b"PAR1"),
        "samples.parquet is damaged, or of another run",
    ),
    "a bit turned over": (lambda run, _: turn(run / "links.parquet"), "links.parquet is damaged"),
    "the table of another run": (
        lambda run, other: shutil.copy(other / "flows.parquet", run / "flows.parquet"),
        "flows.parquet is damaged, or of another run",
    ),
    "no table": (lambda run, _: (run / "drops.parquet").unlink(), "drops.parquet is missing"),
    "no plan": (lambda run, _: (run / "experiment.json").unlink(), "experiment.json is missing"),
    "no list": (lambda run, _: (run / "files.sha256").unlink(), "files.sha256 cannot be read"),
    "a list that is none": (
        lambda run, _: (run / "files.sha256").write_bytes(b"\xff\xfe\n"),
        "files.sha256 is damaged",
    ),
    "an empty list": (
        lambda run, _: (run / "files.sha256").write_text(""),
        "experiment.json is not listed in files.sha256",
    ),
    "all of another run": (
        swap,
        "experiment.json is of another run",
    ),
    "a file in the place of the folder": (lambda run, _: put_file(run), "files.sha256 cannot be"),
    "a pipe in the place of a table": (
        lambda run, _: put_pipe(run / "flows.parquet"),
        "flows.parquet is damaged, or of another run",
    ),
    "a folder in the place of a table": (
        lambda run, _: put_folder(run / "runs.parquet"),
        "runs.parquet cannot be read: is a directory",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_results_that_do_not_agree_are_computed_anew(
    damage: str, small: lab.Experiment, tmp_path: Path
) -> None:
    before = lab.run(small, out=tmp_path)
    run, other = (plan.id for plan in small.plans()[1:3])
    change, trouble = DAMAGES[damage]
    change(tmp_path / run, tmp_path / other)
    with pytest.warns(lab.TcplabWarning, match=f"{run}: {trouble}.*; the run is computed anew"):
        after = lab.run(small, out=tmp_path)
    assert after.computed == {run}
    assert after.digests == before.digests
    assert after.flows.equals(before.flows)
    with warnings.catch_warnings(action="error"):
        assert not lab.run(small, out=tmp_path).computed


def test_files_of_others_are_no_results(small: lab.Experiment, tmp_path: Path) -> None:
    lab.run(small, out=tmp_path)
    run = small.plans()[0].id
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / run / "notes.txt").write_text("mine")
    (tmp_path / run / "pictures").mkdir()
    again = lab.run(small, out=tmp_path)
    assert not again.computed
    assert again.files(run) == {}


def test_the_command_says_what_is_computed_anew(tcplab: Command, tmp_path: Path) -> None:
    first = tcplab("run", EXAMPLES / "sweep.toml", "--out", "out", "--quiet")
    runs = sorted(path for path in (tmp_path / "out").iterdir() if path.is_dir())
    for run in runs:
        (run / "samples.parquet").unlink()
    again = tcplab("run", EXAMPLES / "sweep.toml", "--out", "out", "--quiet")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    *named, counted = again.stderr.splitlines()
    assert len(named) == 5
    for line in named:
        assert line.startswith("warning: out/")
        assert line.endswith(": samples.parquet is missing; the run is computed anew")
    more = len(runs) - 5
    assert counted == f"warning: out: {more} more runs are computed anew for such a reason"


def test_a_folder_that_others_write_to_is_said_to_be_one(
    small: lab.Experiment, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with warnings.catch_warnings(action="error"):
        lab.run(small, out=out)
    out.chmod(0o1777)
    with pytest.warns(lab.TcplabWarning, match=f"{out}: everyone can write to {out}: "):
        lab.run(small, out=out)
    out.chmod(0o755)
    tmp_path.chmod(0o777)
    with pytest.warns(lab.TcplabWarning, match=f"{out}: everyone can write to {tmp_path}: "):
        lab.run(small, out=out)
    # Only owners exchange what is in a sticky folder.
    tmp_path.chmod(0o1777)
    with warnings.catch_warnings(action="error"):
        lab.run(small, out=out)


def test_the_list_reaches_no_other_folder(small: lab.Experiment, tmp_path: Path) -> None:
    lab.run(small, out=tmp_path / "out")
    run = tmp_path / "out" / small.plans()[0].id
    secret = tmp_path / "secret"
    secret.write_text("mine")
    line = f"{lab._checksums.checksum(b'mine')}  ../../secret\n"
    with (run / "files.sha256").open("a") as sums:
        sums.write(line)
    with pytest.warns(lab.TcplabWarning, match=r"files\.sha256 names a file of another folder"):
        again = lab.run(small, out=tmp_path / "out")
    assert again.files(run.name) == {}


@pytest.mark.usefixtures("kernel")
def test_a_missing_output_of_a_program_is_noticed(tmp_path: Path) -> None:
    experiment = lab.Experiment(
        duration="1 s",
        network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms")),
        flows=[
            lab.Flow(
                name="said",
                from_="client",
                to="server",
                traffic=lab.CommandTraffic(server="true", client="echo hello"),
            )
        ],
    )
    before = lab.run(experiment, out=tmp_path, backend="linux")
    run = before.plans[0].id
    assert set(before.files(run)) == {"said-server.txt", "said-client.txt", "readable.json"}
    output, sums = tmp_path / run / "said-client.txt", tmp_path / run / "files.sha256"
    output.unlink()
    with pytest.warns(lab.TcplabWarning, match=r"said-client\.txt is missing"):
        assert lab.run(experiment, out=tmp_path, backend="linux").computed
    # Also if the list does not have it.
    output.unlink()
    kept = [line for line in sums.read_text().splitlines() if "said-client" not in line]
    sums.write_text("\n".join(kept) + "\n")
    with pytest.warns(lab.TcplabWarning, match=r"said-client\.txt is not listed"):
        again = lab.run(experiment, out=tmp_path, backend="linux")
    assert again.files(run) == before.files(run)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)


def test_a_disk_that_fills_up_keeps_what_is_finished(
    tcplab: Command, small_disk: Path, tmp_path: Path
) -> None:
    text = (EXAMPLES / "sweep.toml").read_text().replace("repeat = 3", "repeat = 500")
    assert "repeat = 500" in text
    (tmp_path / "large.toml").write_text(text)
    done = tcplab("run", "large.toml", "--out", "disk/out")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: disk/out/")
    assert line.endswith(": no space left on device")
    runs = list((small_disk / "out").iterdir())
    assert len(runs) >= 1
    for run in runs:
        assert lab._checksums.damage(run, lab._store.NEEDED) is None


def test_a_full_disk_is_refused(tcplab: Command, small_disk: Path) -> None:
    fill(small_disk)
    done = tcplab("run", EXAMPLES / "first.toml", "--out", "disk/out")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: .*disk/out.*: no space left on device\n", done.stderr)
    assert not list((small_disk / "out").iterdir())
    assert [path.name for path in small_disk.iterdir() if path.name != "out"] == ["filler"]


def test_a_disk_without_room_for_the_chart_keeps_the_tables(
    tcplab: Command, small_disk: Path
) -> None:
    fill(small_disk)
    done = tcplab("run", EXAMPLES / "first.toml", "--out", "out", "--chart", "disk/chart.svg")
    assert done.returncode == 2
    assert done.stderr == "error: disk/chart.svg: no space left on device\n"
    assert "cubic" in done.stdout
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_a_folder_that_cannot_be_written_is_read(
    tcplab: Command, small_disk: Path, small: lab.Experiment
) -> None:
    first = lab.run(small, out=small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    again = lab.run(small, out=small_disk)
    assert not again.computed
    assert again.digests == first.digests
    done = tcplab("run", EXAMPLES / "first.toml", "--out", "disk")
    message = "error: the folder disk cannot be written: read-only file system\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_a_folder_that_disappears_is_an_error(small: lab.Experiment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    long = small.replace(duration="600 s", repeat=20, sweep={})
    gone = threading.Event()

    def remove() -> None:
        while not gone.is_set():
            if len(list(out.glob("*"))) > 1:
                # A run may move in while others are removed.
                while out.exists():
                    shutil.rmtree(out, ignore_errors=True)
                gone.set()

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        with pytest.raises(OSError, match=r"[Nn]o such file") as raised:
            lab.run(long, out=out)
    finally:
        gone.set()
        remover.join()
    assert str(out) in str(raised.value)
    assert not out.exists() or not list(out.iterdir())


def test_a_table_longer_than_the_memory_is_stored_part_by_part(
    tcplab: Command, tmp_path: Path
) -> None:
    # 70,000 round trips of 20 us and the transmission of 304 bytes: 20.24 us, or 1.4 s.
    questions = lab.RequestsTraffic(request="100 B", response="100 B", requests=70_000)
    experiment = lab.Experiment(
        duration="2 s",
        network=lab.Network(
            links=[lab.Link(between=["a", "b"], rate="10 Gbit/s", delay="10 us", queue="9 packets")]
        ),
        flows=[lab.Flow(from_="a", to="b", traffic=questions)],
        record=lab.Record(samples="off", links="off"),
    )
    results = lab.run(experiment, backend="linux", out=tmp_path / "out")
    [table] = (tmp_path / "out").glob("*/transfers.parquet")
    # More than one part, of 65,536 rows each.
    assert pl.scan_parquet(table).select(pl.len()).collect().item() == 70_000
    assert results.transfers["transfer"].to_list() == list(range(1, 70_001))
    row = results.flows.row(0, named=True)
    assert row["transfers"] == row["completed_transfers"] == 70_000
    # The percentile of a histogram is within 0.2 % of that of all values.
    times = results.transfers["completion_s"]
    assert row["completion_p50_s"] == pytest.approx(times.sort()[34_999], rel=2e-3)
    assert row["completion_mean_s"] == pytest.approx(times.mean(), rel=1e-9)
    # The digest of what is stored, read as a whole, is that of the parts.
    done = tcplab("verify", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    kept = lab.run(experiment, backend="linux")
    assert kept.digests == results.digests
    assert kept.transfers.equals(results.transfers)
    again = lab.run(experiment, backend="linux", out=tmp_path / "again")
    [other] = (tmp_path / "again").glob("*/transfers.parquet")
    assert other.read_bytes() == table.read_bytes()
    assert again.digests == results.digests


def sum_up(run: Path) -> None:
    """Writes the list of checksums anew, as someone would who changed files."""
    sums = {name: checksum((run / name).read_bytes()) for name in listed(run)}
    write_list(run, sums)


def take_tables(run: Path, other: Path) -> None:
    for table in TABLES:
        shutil.copy(other / f"{table}.parquet", run / f"{table}.parquet")


def take_tables_and_digest(run: Path, other: Path) -> None:
    take_tables(run, other)
    shutil.copy(other / "digest.txt", run / "digest.txt")


def change_a_number(run: Path, _: Path) -> None:
    flows = pl.read_parquet(run / "flows.parquet")
    flows.with_columns(timeouts=pl.col("timeouts") + 1).write_parquet(run / "flows.parquet")


def put_other_table(run: Path, _: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(run / "links.parquet")


def put_text(run: Path, _: Path) -> None:
    (run / "links.parquet").write_text("links")


FORGERIES: dict[str, tuple[Damage, str]] = {
    "the tables of another run": (
        take_tables,
        "its tables do not have the digest of digest.txt",
    ),
    "the tables and the digest of another run": (
        take_tables_and_digest,
        "the law `value` is broken .*: it is of another run",
    ),
    "a number": (change_a_number, "its tables do not have the digest of digest.txt"),
    "no table of ours": (
        put_other_table,
        "its tables are not what they should be: the table `links` has no column `run`",
    ),
    "no table at all": (
        put_text,
        "links.parquet cannot be read",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_tables_that_have_not_their_digest_are_computed_anew(
    forgery: str, small: lab.Experiment, tmp_path: Path
) -> None:
    before = lab.run(small, out=tmp_path)
    run, other = (plan.id for plan in small.plans()[1:3])
    change, trouble = FORGERIES[forgery]
    change(tmp_path / run, tmp_path / other)
    sum_up(tmp_path / run)
    with pytest.warns(lab.TcplabWarning, match=f"{run}: {trouble}.*; the run is computed anew"):
        after = lab.run(small, out=tmp_path)
    assert after.computed == {run}
    assert after.flows.equals(before.flows)
    with warnings.catch_warnings(action="error"):
        assert not lab.run(small, out=tmp_path).computed


def test_what_is_remembered_at_the_same_time_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCPLAB_CACHE", str(tmp_path / "cache"))
    for number in range(200):
        folder = tmp_path / str(number)
        folder.mkdir()
        both = threading.Barrier(2)

        def remember(listed: str, folder: Path = folder, both: threading.Barrier = both) -> None:
            agreed = Agreed(folder)
            both.wait()
            agreed.add(listed)

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(remember, ("one", "other")))
        assert all(Agreed(folder).has(listed) for listed in ("one", "other")), number


@pytest.mark.parametrize("has_cache", [True, False])
def test_tables_are_read_for_their_digest_once(
    has_cache: bool, small: lab.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("TCPLAB_CACHE", str(cache))
    lab.run(small, out=tmp_path / "ours")
    shutil.copytree(tmp_path / "ours", tmp_path / "copied")
    read = []

    def check(
        plan: _core.Plan, folder: Path, find: _restored.Find
    ) -> tuple[str, str | None] | None:
        read.append(plan.id)
        return _restored.check(plan, folder, find)

    monkeypatch.setattr("tcplab._store.check", check)
    assert not lab.run(small, out=tmp_path / "ours").computed
    assert not read
    if not has_cache:
        shutil.rmtree(cache)
        cache.touch()
    for _ in range(2):
        assert not lab.run(small, out=tmp_path / "copied").computed
    assert len(read) == (4 if has_cache else 8)


def test_what_agrees_is_forgotten_with_its_folder(
    small: lab.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCPLAB_CACHE", str(tmp_path / "cache"))
    for name in ("first", "second", "third"):
        lab.run(small, out=tmp_path / name)
        if name == "first":
            shutil.rmtree(tmp_path / name)
    assert len(list((tmp_path / "cache" / "agreed").iterdir())) == 2
