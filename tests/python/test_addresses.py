"""Results at an address: a place that fsspec knows, with a copy in the cache."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import polars as pl
import pytest
from conftest import Command, wait_for
from fsspec.implementations.memory import MemoryFileSystem

import tcplab as lab
from tcplab._store.remote import Remote


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate cache, as another computer would have."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TCPLAB_CACHE", str(folder))
    return folder


@pytest.fixture
def address() -> Iterator[str]:
    """A place in the memory of this process."""
    MemoryFileSystem.store.clear()
    yield "memory://bucket/sweep"
    MemoryFileSystem.store.clear()


def names(address: str) -> list[str]:
    files, top = fsspec.core.url_to_fs(address)
    return sorted(path.removeprefix(top).lstrip("/") for path in files.find(top))


def test_results_stored_remotely_equal_those_in_a_folder(
    small: lab.Experiment, address: str, cache: Path, tmp_path: Path
) -> None:
    here = lab.run(small, out=tmp_path / "here")
    there = lab.run(small, out=address)
    assert there.digests == here.digests
    shutil.rmtree(cache)
    # As on another computer: only the address has the results.
    again = lab.run(small, out=address)
    assert not again.computed
    assert lab.stored(address).flows.equals(here.flows)
    assert not lab.verify(address).findings
    found = lab.stored(address).query("select count(*) as flows from flows")
    assert found["flows"].to_list() == [4]
    kept = {name.split("/")[-1] for name in names(address)}
    stored = {path.name for path in (tmp_path / "here").rglob("*") if path.is_file()}
    assert kept == stored


def test_a_remote_group_without_checksum_list_is_ignored(
    small: lab.Experiment, address: str
) -> None:
    """A kill leaves a group without its list, because the list of checksums is sent last."""
    lab.run(small, out=address)
    files, top = fsspec.core.url_to_fs(address)
    [listed] = [path for path in files.find(top) if path.endswith("files.sha256")]
    files.rm(listed)
    assert len(lab.run(small, out=address).computed) == 4
    assert not lab.run(small, out=address).computed
    assert not lab.verify(address).findings


def test_results_removed_remotely_are_computed_again(small: lab.Experiment, address: str) -> None:
    lab.run(small, out=address)
    files, top = fsspec.core.url_to_fs(address)
    files.rm(top, recursive=True)
    with pytest.raises(lab.ConfigError, match="has no results of a run"):
        lab.stored(address)
    assert len(lab.run(small, out=address).computed) == 4


def test_damaged_remote_results_are_computed_again(small: lab.Experiment, address: str) -> None:
    lab.run(small, out=address)
    files, top = fsspec.core.url_to_fs(address)
    [flows] = [path for path in files.find(top) if path.endswith("flows.parquet")]
    files.pipe_file(flows, b"rubbish")
    shutil.rmtree(Remote(address).folder)
    with pytest.warns(lab.TcplabWarning, match=r"flows\.parquet is damaged"):
        assert len(lab.run(small, out=address).computed) == 4
    assert not lab.verify(address).findings


def test_two_computers_share_a_remote_store_without_loss_or_duplicates(
    small: lab.Experiment, address: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each computer has what the other stored, and neither removes groups that the other is about
    to read.
    """
    lab.run(small, out=address)
    monkeypatch.setenv("TCPLAB_CACHE", f"{cache}-of-another")
    other = small.changed({"sweep": {"network.chain.queue": ["10 packets", "30 packets"]}})
    assert len(lab.run(other, out=address).computed) == 2
    monkeypatch.setenv("TCPLAB_CACHE", str(cache))
    assert not lab.run(small, out=address).computed
    files, top = fsspec.core.url_to_fs(address)
    plans = [path for path in files.find(top) if path.endswith("plans.parquet")]
    runs = [run for path in plans for run in pl.read_parquet(files.cat(path))["run"]]
    assert len(runs) == len(set(runs)) == 6


def test_a_killed_process_loses_at_most_its_last_group(
    small: lab.Experiment, tmp_path: Path, tcplab: Command
) -> None:
    place = tmp_path / "place"
    address = f"file://{place}"
    words = ["run", "it.json", "--out", address, "--quiet"]
    experiment = small.changed({"repeat": 100, "duration": "20 s"})
    (tmp_path / "it.json").write_text(json.dumps(experiment.to_dict()), encoding="utf-8")
    command = [sys.executable, "-m", "tcplab.cli", *words]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    wait_for(lambda: list(place.glob("group-*/files.sha256")), running)
    running.kill()
    running.wait()
    groups = place.glob("group-*")
    kept = [one for one in groups if (one / "files.sha256").exists()]
    runs = {run for one in kept for run in pl.read_parquet(one / "plans.parquet")["run"]}
    again = lab.run(experiment, out=address)
    assert runs
    assert runs.isdisjoint(again.computed)
    assert not lab.verify(address).findings
    shown = tcplab("show", address)
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nowhere://x/y", "nowhere"),
        ("s3://bucket/sweep", "s3fs"),
    ],
)
def test_invalid_addresses_are_refused_by_name(
    small: lab.Experiment, tcplab: Command, tmp_path: Path, address: str, said: str
) -> None:
    (tmp_path / "it.json").write_text(json.dumps(small.to_dict()), encoding="utf-8")
    for words in (["run", "it.json", "--out", address], ["show", address], ["verify", address]):
        done = tcplab(*words)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {address}: ")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_errors_of_remote_storage_name_the_address(
    small: lab.Experiment, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError("Access Denied")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryFileSystem, "put_file", refuse)
        with pytest.raises(OSError, match="cannot be used: Access Denied") as found:
            lab.run(small, out=address)
    assert found.value.filename == address
    # The computed runs stay in the copy, and are sent by the next run.
    assert len(lab.run(small, out=address).computed) < 4
    shutil.rmtree(Remote(address).folder)
    assert not lab.run(small, out=address).computed
