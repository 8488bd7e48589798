"""Stored results are reused only if they are intact and belong to the run; disks may fail."""

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
from tcplab import _core
from tcplab._store import compaction, read_back
from tcplab._store.checksums import checksum, listed, write_list
from tcplab._store.digest_cache import Agreed
from tcplab._store.run_groups import TABLES, Loaded, OnDisk, encoded, size

Damage = Callable[[Path, Path], object]


def turn(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def swap(group: Path, other: Path) -> None:
    shutil.rmtree(group)
    shutil.copytree(other, group)


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
        lambda group, _: (group / "samples.parquet").write_bytes(b"PAR1"),
        "samples.parquet is damaged, or belongs to another group of runs",
    ),
    "a bit turned over": (
        lambda group, _: turn(group / "links.parquet"),
        "links.parquet is damaged",
    ),
    "the table of another group": (
        lambda group, other: shutil.copy(other / "flows.parquet", group / "flows.parquet"),
        "flows.parquet is damaged, or belongs to another group of runs",
    ),
    "no table": (lambda group, _: (group / "drops.parquet").unlink(), "drops.parquet is missing"),
    "no plans": (lambda group, _: (group / "plans.parquet").unlink(), "plans.parquet is missing"),
    "no list": (lambda group, _: (group / "files.sha256").unlink(), "files.sha256 cannot be read"),
    "a list that is none": (
        lambda group, _: (group / "files.sha256").write_bytes(b"\xff\xfe\n"),
        "files.sha256 is damaged",
    ),
    "an empty list": (
        lambda group, _: (group / "files.sha256").write_text(""),
        "plans.parquet is not listed in files.sha256",
    ),
    "all of another group": (swap, "plans.parquet belongs to another group of runs"),
    "a file in the place of the folder": (
        lambda group, _: put_file(group),
        "plans.parquet cannot be read: not a directory",
    ),
    "a pipe in the place of a table": (
        lambda group, _: put_pipe(group / "flows.parquet"),
        "flows.parquet is damaged, or belongs to another group of runs",
    ),
    "a folder in the place of a table": (
        lambda group, _: put_folder(group / "runs.parquet"),
        "runs.parquet cannot be read: is a directory",
    ),
}


def one(small: lab.Experiment, seed: int) -> lab.Experiment:
    """One run."""
    return small.replace(seed=seed, repeat=1, sweep={})


@pytest.fixture
def both(small: lab.Experiment, tmp_path: Path) -> lab.Experiment:
    """Two runs, stored in the folder `out`, each in a group of its own."""
    for seed in (1, 2):
        lab.run(one(small, seed), out=tmp_path / "out")
    return small.replace(repeat=1, sweep={"seed": [1, 2]})


def groups(folder: Path) -> dict[str, Path]:
    """The folder of each run."""
    found = sorted(folder.glob("group-*/plans.parquet"))
    return {run: path.parent for path in found for run in pl.read_parquet(path)["run"]}


@pytest.mark.parametrize("damage", DAMAGES)
def test_inconsistent_results_are_computed_again(
    damage: str, both: lab.Experiment, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    before = lab.run(both, out=out)
    assert not before.computed
    run, other = (plan.id for plan in both.plans())
    kept = groups(out)
    change, trouble = DAMAGES[damage]
    change(kept[run], kept[other])
    said = f"{kept[run]}: {trouble}.*; its runs? (is|are) computed anew"
    with pytest.warns(lab.TcplabWarning, match=said):
        after = lab.run(both, out=out)
    assert after.computed == {run}
    assert after.digests == before.digests
    assert after.flows.equals(lab.run(both).flows)
    assert groups(out).keys() == kept.keys()
    with warnings.catch_warnings(action="error"):
        assert not lab.run(both, out=out).computed


def test_damage_affects_only_the_runs_of_its_group(small: lab.Experiment, tmp_path: Path) -> None:
    first = lab.run(small, out=tmp_path, workers=1)
    more = small.replace(repeat=4)
    lab.run(more, out=tmp_path, workers=1)
    run = first.plans[0].id
    group = groups(tmp_path)[run]
    lost = {one for one, folder in groups(tmp_path).items() if folder == group}
    turn(group / "links.parquet")
    its = "its run is" if len(lost) == 1 else f"its {len(lost)} runs are"
    with pytest.warns(lab.TcplabWarning, match=f"links.parquet is damaged.*; {its} computed anew"):
        after = lab.run(more, out=tmp_path, workers=1)
    assert after.computed == lost
    assert after.flows.equals(lab.run(more).flows)
    assert lab.verify(tmp_path).findings == []


def test_foreign_files_are_not_results(both: lab.Experiment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = both.plans()[0].id
    (out / "notes.txt").write_text("mine")
    (groups(out)[run] / "notes.txt").write_text("mine")
    (groups(out)[run] / "pictures").mkdir()
    again = lab.run(both, out=out)
    assert not again.computed
    assert again.files(run) == {}


def test_the_command_reports_runs_computed_again(tcplab: Command, tmp_path: Path) -> None:
    first = tcplab("run", EXAMPLES / "sweep.toml", "--out", "out", "--quiet")
    found = groups(tmp_path / "out")
    for table in (tmp_path / "out").glob("*/samples.parquet"):
        table.unlink()
    again = tcplab("run", EXAMPLES / "sweep.toml", "--out", "out", "--quiet")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    # The number of groups depends on timing, and only the first few are named.
    of_group = r"samples\.parquet is missing; its (?:(\d+) runs are|run is) computed anew"
    *named, last = again.stderr.splitlines()
    in_all = re.fullmatch(
        r"warning: out: \d+ more of such reasons; (\d+) runs are computed in all", last
    )
    named += [] if in_all else [last]
    counts = [re.fullmatch(rf"warning: out/group-\w+: {of_group}", line) for line in named]
    assert all(counts)
    runs = int(in_all[1]) if in_all else sum(int(one[1] or 1) for one in counts if one)
    assert runs == len(found)


def test_a_world_writable_folder_causes_a_warning(small: lab.Experiment, tmp_path: Path) -> None:
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
    # Only owners can replace entries of a sticky folder.
    tmp_path.chmod(0o1777)
    with warnings.catch_warnings(action="error"):
        lab.run(small, out=out)


def test_checksum_lists_cannot_refer_outside_their_folder(
    small: lab.Experiment, tmp_path: Path
) -> None:
    lab.run(small, out=tmp_path / "out")
    run = small.plans()[0].id
    group = groups(tmp_path / "out")[run]
    secret = tmp_path / "secret"
    secret.write_text("mine")
    line = f"{lab._store.checksums.checksum(b'mine')}  ../../secret\n"
    with (group / "files.sha256").open("a") as sums:
        sums.write(line)
    with pytest.warns(lab.TcplabWarning, match=r"files\.sha256 names a file of another folder"):
        again = lab.run(small, out=tmp_path / "out")
    assert again.files(run) == {}


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
    assert set(before.files(run)) == {"said-server.txt", "said-client.txt"}
    group = groups(tmp_path)[run]
    output, sums = group / run / "said-client.txt", group / "files.sha256"
    output.unlink()
    with pytest.warns(lab.TcplabWarning, match=r"said-client\.txt is missing"):
        assert lab.run(experiment, out=tmp_path, backend="linux").computed
    # Likewise if the file is missing.
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
    # The list of runs may find the disk full, too, which is a warning.
    *warnings, line = done.stderr.splitlines()
    assert all("list of runs cannot be written: no space left" in each for each in warnings)
    assert line.startswith("error: disk/out/")
    assert line.endswith(": no space left on device")
    found = set(groups(small_disk / "out").values())
    assert len(found) >= 1
    for group in found:
        assert OnDisk(group).damage() is None


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
            if list(out.glob("group-*")):
                # A run may be added while others are removed.
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
    # 70,000 round trips of 20 us plus the transmission of 304 bytes: 20.24 us each, 1.4 s in all.
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
    # More than one part of 65,536 rows.
    assert pl.scan_parquet(table).select(pl.len()).collect().item() == 70_000
    assert results.transfers["transfer"].to_list() == list(range(1, 70_001))
    row = results.flows.row(0, named=True)
    assert row["transfers"] == row["completed_transfers"] == 70_000
    # The percentile of a histogram is within 0.2 % of the exact one.
    times = results.transfers["completion_s"]
    assert row["completion_p50_s"] == pytest.approx(times.sort()[34_999], rel=2e-3)
    assert row["completion_mean_s"] == pytest.approx(times.mean(), rel=1e-9)
    # The digest of the stored table as a whole equals that of the parts.
    done = tcplab("verify", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    kept = lab.run(experiment, backend="linux")
    assert kept.digests == results.digests
    assert kept.transfers.equals(results.transfers)
    again = lab.run(experiment, backend="linux", out=tmp_path / "again")
    [other] = (tmp_path / "again").glob("*/transfers.parquet")
    assert other.read_bytes() == table.read_bytes()
    assert again.digests == results.digests


def sum_up(group: Path) -> None:
    """Rewrites the list of checksums, as someone who changed files would."""
    sums = {name: checksum((group / name).read_bytes()) for name in listed(group)}
    write_list(group, sums)


def take_tables(group: Path, other: Path) -> None:
    for table in TABLES:
        shutil.copy(other / f"{table}.parquet", group / f"{table}.parquet")


def take_tables_and_digest(group: Path, other: Path) -> None:
    take_tables(group, other)
    plans = group / "plans.parquet"
    theirs = pl.read_parquet(other / "plans.parquet")["digest"]
    pl.read_parquet(plans).with_columns(theirs).write_parquet(plans)


def change_a_number(group: Path, _: Path) -> None:
    flows = pl.read_parquet(group / "flows.parquet")
    flows.with_columns(timeouts=pl.col("timeouts") + 1).write_parquet(group / "flows.parquet")


def put_other_table(group: Path, _: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(group / "links.parquet")


def put_text(group: Path, _: Path) -> None:
    (group / "links.parquet").write_text("links")


FORGERIES: dict[str, tuple[Damage, str]] = {
    "the tables of another run": (
        take_tables,
        "the tables of .* do not have the digest of plans.parquet",
    ),
    "the tables and the digest of another run": (
        take_tables_and_digest,
        "the law `value` is broken .*: the row is of another run",
    ),
    "a number": (change_a_number, "the tables of .* do not have the digest of plans.parquet"),
    "no table of ours": (
        put_other_table,
        "the tables of .* are not what they should be: the table `links` has no column `run`",
    ),
    "no table at all": (
        put_text,
        "links.parquet cannot be read",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_tables_with_a_wrong_digest_are_computed_again(
    forgery: str, both: lab.Experiment, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run, other = (plan.id for plan in both.plans())
    kept = groups(out)
    change, trouble = FORGERIES[forgery]
    change(kept[run], kept[other])
    sum_up(kept[run])
    said = f"{kept[run]}: {trouble}.*; its run is computed anew"
    with pytest.warns(lab.TcplabWarning, match=said):
        after = lab.run(both, out=out)
    assert after.computed == {run}
    assert after.flows.equals(lab.run(both).flows)
    with warnings.catch_warnings(action="error"):
        assert not lab.run(both, out=out).computed


def test_concurrent_cache_updates_are_not_lost(
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
def test_digests_of_tables_are_checked_once(
    has_cache: bool, small: lab.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("TCPLAB_CACHE", str(cache))
    lab.run(small, out=tmp_path / "ours")
    shutil.copytree(tmp_path / "ours", tmp_path / "copied")
    read = []

    def check(
        plan: _core.Plan, tables: Loaded, run: str, find: read_back.Find
    ) -> tuple[str, str | None] | None:
        read.append(plan.id)
        return read_back.check(plan, tables, run, find)

    monkeypatch.setattr("tcplab._store.store.check", check)
    assert not lab.run(small, out=tmp_path / "ours").computed
    assert not read
    if not has_cache:
        shutil.rmtree(cache)
        cache.touch()
    for _ in range(2):
        assert not lab.run(small, out=tmp_path / "copied").computed
    assert len(read) == (4 if has_cache else 8)


def test_cache_entries_of_removed_folders_are_dropped(
    small: lab.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCPLAB_CACHE", str(tmp_path / "cache"))
    for name in ("first", "second", "third"):
        lab.run(small, out=tmp_path / name)
        if name == "first":
            shutil.rmtree(tmp_path / name)
    assert len(list((tmp_path / "cache" / "agreed").iterdir())) == 2


def test_the_cache_is_for_its_owner_alone(
    small: lab.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCPLAB_CACHE", str(tmp_path / "above" / "cache"))
    # The usual umask where each user has a group.
    before = os.umask(0o002)
    try:
        lab.run(small, out=tmp_path / "out")
    finally:
        os.umask(before)
    for folder in ("above", "above/cache", "above/cache/agreed"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700
    # A cache that a group can write to would be refused.
    assert lab.kernels() == []


def test_results_of_incompatible_versions_are_refused(tcplab: Command, tmp_path: Path) -> None:
    # The layout of tcplab 0.3.0 to 0.9.0.
    old = tmp_path / "out" / "0123456789abcdef"
    old.mkdir(parents=True)
    (old / "experiment.json").write_text("{}\n")
    (old / "digest.txt").write_text("0\n")
    said = (
        "error: out/0123456789abcdef: tcplab 0.9 or before has stored this run, in a form that "
        "this version does not read; run into another folder, or remove it with the others beside "
        "it\n"
    )
    for words in (["run", EXAMPLES / "first.toml", "--out"], ["show"], ["verify"]):
        done = tcplab(*words, "out")
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [old.name]


def test_a_run_that_fails_stops_no_other(
    small: lab.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, bad = tmp_path / "out", small.plans()[1]
    run_batch = _core.run_batch

    def fail(plans: list[_core.Plan], *rest: object) -> object:
        # The run breaks a law: its path takes longer than its RTTs.
        changed = [
            _core.Plan.from_json(plan.to_json().replace('"base_rtt":"', '"base_rtt":"9'))
            if plan.id == bad.id
            else plan
            for plan in plans
        ]
        return run_batch(changed, *rest)

    monkeypatch.setattr("tcplab._core.run_batch", fail)
    with pytest.raises(lab.InternalError) as raised:
        lab.run(small, out=out)
    first, run = str(raised.value).splitlines()
    assert first == (
        f"1 of 4 runs failed; the others are kept in {out}, and the same command tries these again:"
    )
    assert run.startswith(f"  {bad.id}, network.chain.queue = 10 packets: the law `")
    with pytest.warns(lab.TcplabWarning, match=f"{out}: 1 run failed: {bad.id}: the law"):
        shown = lab.stored(out)
    assert len(shown.plans) == 3
    monkeypatch.undo()
    again = lab.run(small, out=out)
    assert again.computed == {bad.id}
    assert again.flows.equals(lab.run(small).flows)
    assert not (out / "failed.json").exists()


def test_runs_of_a_version_with_fewer_columns_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that was added later is null in their rows, also after groups are merged."""
    experiment = {
        "duration": "1 s",
        "network": {"chain": {"rate": "10 Mbit/s", "delay": "5 ms"}},
        "flows": [{"from": "client", "to": "server"}],
    }
    # This many small groups may stay; with one more, half of them are merged.
    most = 6
    monkeypatch.setattr(compaction, "MOST_SMALL", most)
    for seed in range(most):
        lab.run({**experiment, "seed": seed}, out=tmp_path)
    groups = list(tmp_path.glob("group-*"))
    assert len(groups) == most
    for group in groups:
        samples = group / "samples.parquet"
        pl.read_parquet(samples).drop("rtt_ms").write_parquet(samples)
        sum_up(group)
    # The merged groups become two.
    monkeypatch.setattr(compaction, "MERGED", size(OnDisk(groups[0]).ran) * 2)
    lab.run({**experiment, "seed": most}, out=tmp_path)
    merged = list(tmp_path.glob("group-*"))
    assert 1 < len(merged) < most
    parts = [pl.read_parquet(group / "samples.parquet") for group in merged]
    rows = pl.concat(parts, how="diagonal_relaxed")
    by_run = rows.group_by("run").agg(pl.col("rtt_ms").is_not_null().any())
    assert sorted(by_run["rtt_ms"]) == [False] * most + [True]


def test_tables_without_rows_keep_the_names_and_types_of_their_columns() -> None:
    schemas = [
        {"run": pl.String(), "time_s": pl.Float64()},
        {"run": pl.String(), "time_s": pl.Int64()},
        {"time_s": pl.Float64(), "run": pl.String()},
    ]
    for schema in [*schemas, *schemas]:
        frame = pl.DataFrame(schema=schema)
        read = pl.read_parquet(encoded(frame))
        assert list(read.schema.items()) == list(frame.schema.items())
        assert read.is_empty()
