"""Kernels: refused builds, the cache, and the absence of leftovers after a build."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from conftest import Command, manual_cc, wait_for

import tcplab as lab


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TCPLAB_CACHE", str(folder))
    return folder


@pytest.fixture
def source_cache(cache: Path, kernel: lab.Kernel) -> Path:
    """A cache without kernels, from which one can be built."""
    cache.mkdir()
    for part in ("sources", "tools"):
        (cache / part).symlink_to(kernel.folder.parent.parent / part)
    return cache


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The congestion control of the manual."""
    return manual_cc(tmp_path)


def tree(folder: Path, kconfig: str | None) -> Path:
    """A minimal imitation of a source tree."""
    folder.mkdir()
    (folder / "Makefile").write_text("VERSION = 6\n")
    if kconfig is not None:
        (folder / "arch" / "um").mkdir(parents=True)
        (folder / "arch" / "um" / "Kconfig").write_text(kconfig)
    return folder


def refusal(tcplab: Command, *words: object) -> str:
    """The message with which the command refuses. The refusal must leave no kernel."""
    done = tcplab("kernel", *words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert lab.kernels() == []
    # Progress lines may precede the message.
    return re.sub(r"^\d+ s, .*\n", "", done.stderr, flags=re.MULTILINE)


def test_impossible_kernel_builds_are_refused(tcplab: Command, cache: Path, tmp_path: Path) -> None:
    assert "cannot be the name of a kernel" in refusal(tcplab, "build", "--name", "a/b")
    assert "hz: 5 is not from 100 to 1000" in refusal(tcplab, "build", "--hz", 5)
    assert "hz: -5 is not" in refusal(tcplab, "build", "--hz=-5")
    assert '"latest" is not like "6.12"' in refusal(tcplab, "build", "--version", "latest")
    assert "not a number of at least 1" in refusal(tcplab, "build", "--jobs", 0)
    assert "not allowed with" in refusal(tcplab, "build", "--version", "6.1", "--source", ".")
    missing = refusal(tcplab, "build", "--source", "missing")
    assert missing == "error: missing: no such file or directory\n"
    tree(tmp_path / "other", None)
    other = refusal(tcplab, "build", "--source", "other")
    assert other == "error: other: has no ARCH=um (arch/um/Kconfig)\n"
    tree(tmp_path / "old", "config UML\n\tdef_bool y\n")
    assert "too old for virtual time" in refusal(tcplab, "build", "--source", "old")
    (tmp_path / "notes.txt").touch()
    assert "neither a source tree nor a tarball" in refusal(
        tcplab, "build", "--source", "notes.txt"
    )
    assert not (cache / "kernels" / ".building").exists()


def test_sources_without_congestion_control_are_refused(
    tcplab: Command, cache: Path, example: Path
) -> None:
    del cache
    good = example.read_text()
    for change, message in {
        "": "",
        "tcp_register_congestion_control": "registers no congestion control",
        '"mine"': "`mine` is registered without a name",
    }.items():
        if change:
            example.write_text(good.replace(change, "other"))
            assert message in refusal(tcplab, "build", "--cc", example)
    script = example.with_suffix(".sh")
    script.write_text(good)
    assert "ends in `.c`" in refusal(tcplab, "build", "--cc", script)
    example.write_text(good)
    second = example.with_name("tcp_second.c")
    second.write_text(good)
    both = refusal(tcplab, "build", "--cc", example, "--cc", second)
    assert "registers `mine`, as tcp_mine.c does" in both


def test_a_cache_that_cannot_be_written_is_refused(
    tcplab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TCPLAB_CACHE", str(tmp_path / "file" / "cache"))
    done = tcplab("kernel", "build")
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path}/file/cache/kernels: not a directory\n"


def test_missing_kernels_are_reported(tcplab: Command, cache: Path) -> None:
    done = tcplab("kernel", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "there are no kernels; `tcplab kernel build` builds one\n"
    assert 'no kernel is called "6.12"; there are none' in refusal(tcplab, "remove", "6.12")
    assert "cannot be the name" in refusal(tcplab, "remove", "..")
    assert not cache.exists()


def test_a_kernel_is_found_copied_listed_and_removed(
    tcplab: Command, source_cache: Path, kernel: lab.Kernel
) -> None:
    shutil.copytree(kernel.folder, source_cache / "kernels" / kernel.name)
    done = tcplab("kernel", "build")
    assert done.returncode == 0
    assert done.stderr.endswith(" is there already\n")
    done = tcplab("kernel", "build", "--name", "another")
    assert done.stderr.endswith(" is a copy of one that was there already\n")
    first, second = lab.kernels()
    assert (first.name, second.name) == (kernel.name, "another")
    assert first.key == second.key
    assert {"bbr", "cubic", "dctcp", "reno", "vegas"} <= set(second.congestion_controls)
    listed = tcplab("kernel", "list").stdout
    assert len(re.findall(rf"^\S+ +{re.escape(kernel.release)} +1000 ", listed, re.M)) == 2
    assert "outdated" not in listed
    description = second.folder / "kernel.json"
    text = description.read_text()
    description.write_text(re.sub(r'("fingerprint": ")\w+', r"\1another", text))
    assert "outdated: build again" in " ".join(tcplab("kernel", "list").stdout.split())
    assert tcplab("kernel", "remove", "another").returncode == 0
    assert [left.name for left in lab.kernels()] == [kernel.name]


def test_the_congestion_control_of_the_manual_runs_in_the_kernel(own_kernel: lab.Kernel) -> None:
    assert "mine" in own_kernel.congestion_controls
    chain = lab.Chain(rate="10 Mbit/s", delay="10 ms", queue="30 packets")
    experiment = lab.Experiment(
        duration="10 s",
        network=lab.Network(chain=chain),
        flows=[lab.Flow(from_="client", to="server", cc="mine")],
        record=lab.Record(samples="ack"),
    )
    samples = lab.run(experiment, backend="linux", kernel=own_kernel.name).samples
    changes = samples.select(
        "time_s",
        "ssthresh_segments",
        before=pl.col("cwnd_segments").shift(1),
        is_cut=pl.col("ssthresh_segments") != pl.col("ssthresh_segments").shift(1),
    ).filter("is_cut")
    # CUBIC keeps three quarters of the window that met the full queue, in whole segments. Where
    # slow start ends, one recovery ends and another begins with the same ACK.
    later = changes.filter(pl.col("time_s") > 0.5)
    assert len(later) > 1
    for threshold, before in later.select("ssthresh_segments", "before").rows():
        assert threshold == before * 3 // 4


def test_the_compiler_is_quoted_when_a_congestion_control_does_not_compile(
    tcplab: Command, source_cache: Path, example: Path
) -> None:
    wrong = example.with_name("tcp_wrong.c")
    text = example.read_text().replace("mine", "wrong")
    wrong.write_text(text.replace("tcp_is_cwnd_limited(sk)", "tcp_is_window_limited(sk)"))
    # The example comes first and compiles.
    said = refusal(tcplab, "build", "--cc", example, "--cc", wrong).splitlines()
    assert said[0] == f"error: {wrong} does not compile:"
    assert re.match(r"net/ipv4/tcp_wrong.c:\d+:\d+: error: .*tcp_is_window_limited", said[1]), said
    assert said[-1] == f"the whole log: {source_cache}/build.log"
    assert len(said) < 12, said
    assert not (source_cache / "kernels" / ".building").exists()


def test_a_source_without_the_edited_lines_is_refused_unchanged(
    tcplab: Command, source_cache: Path, tmp_path: Path
) -> None:
    source = tree(tmp_path / "new", "config UML_TIME_TRAVEL_SUPPORT\n\tbool\n")
    before = sorted(source.rglob("*"))
    said = refusal(tcplab, "build", "--source", "new")
    assert said.startswith(
        f"error: {source}: arch/um/include/asm/archrandom.h has no `os_getrandom`, which tcplab "
        "replaces; without that, runs would not repeat"
    )
    assert sorted(source.rglob("*")) == before
    assert not (source_cache / "kernels" / ".building").exists()


def processes_in(folder: Path) -> list[str]:
    """The processes that run in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def test_a_build_that_is_stopped_leaves_nothing_running(
    tcplab: Command, source_cache: Path
) -> None:
    building = source_cache / "kernels" / ".building"
    command = [sys.executable, "-m", "tcplab.cli", "kernel", "build"]

    interrupted = "interrupted; nothing is left of the build\n"
    for stop, status, message in [
        (signal.SIGKILL, -signal.SIGKILL, ""),
        (signal.SIGINT, 130, interrupted),
    ]:
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            wait_for(lambda: processes_in(building), process)
            process.send_signal(stop)
            assert process.stderr is not None
            assert process.stderr.read() == message
            assert process.wait() == status
        wait_for(lambda: not processes_in(building), seconds=5)
        # The second build has removed the leftovers of the first.
        assert building.exists() == (stop == signal.SIGKILL)
    assert tcplab("kernel", "list").stdout == ""
