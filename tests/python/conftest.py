"""Fixtures shared by several tests: small experiments, and the command in a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

import tcplab as lab

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
OWN_CC = EXAMPLES.parent / "docs" / "how-to" / "kernels.md"
"""The page of the manual with a congestion control as a C file."""

# GNU readline, which pytest loads, puts the size of the terminal into the environment of child
# processes, bypassing `os.environ`. Tables in tests must be as wide as in a file.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
    os.unsetenv(name)

# Under `nohup` this signal is ignored, and the commands of tests would ignore it too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

Command = Callable[..., subprocess.CompletedProcess[str]]


def wait_for(
    condition: Callable[[], object],
    process: subprocess.Popen[Any] | None = None,
    *,
    seconds: float = 60.0,
    pause_s: float = 0.02,
) -> None:
    """Waits until something is so, which `process` must live to see."""
    end = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, "the process has ended before"
        assert time.monotonic() < end, f"nothing happened in {seconds:g} s"
        time.sleep(pause_s)


@pytest.fixture
def small() -> lab.Experiment:
    """Four short runs: two queues, each with two seeds."""
    return lab.Experiment(
        name="small",
        duration="2 s",
        repeat=2,
        network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms")),
        flows=[lab.Flow(from_="client", to="server", start_jitter="100 ms")],
        sweep={"network.chain.queue": ["10 packets", "20 packets"]},
    )


@pytest.fixture
def tcplab(tmp_path: Path) -> Command:
    """Runs the command in an empty folder."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tcplab.cli", *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, as installed by `scripts/needs browser`. Without it, tests that need it are
    skipped.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        reason = "there is no chromium; on Debian: sudo apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as started:
        # Chromium's sandbox needs privileges that a container may lack; the pages are our own.
        yield (chromium := started.chromium.launch(executable_path=path, args=["--no-sandbox"]))
        chromium.close()


@pytest.fixture(scope="session")
def kernel() -> lab.Kernel:
    """The default kernel, as built by `make test`. Without it, tests that need it are skipped."""
    for kernel in lab.kernels():
        if kernel.name == lab.DEFAULT_KERNEL and not kernel.is_outdated:
            return kernel
    reason = "there is no kernel; `tcplab kernel build` makes one"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def manual_cc(folder: Path) -> Path:
    """The congestion control of the manual, as a file in a folder."""
    text = OWN_CC.read_text(encoding="utf-8")
    (source,) = re.findall(r'^```c title="tcp_mine.c"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    file = folder / "tcp_mine.c"
    file.write_text(source, encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def own_kernel(kernel: lab.Kernel, tmp_path_factory: pytest.TempPathFactory) -> lab.Kernel:
    """A kernel with the manual's congestion control and with Compound.

    It is kept in the cache shared by all tests: built once for each version of the kernel.
    """
    files = [manual_cc(tmp_path_factory.mktemp("cc")), EXAMPLES / "linux" / "tcp_compound.c"]
    built = lab.build_kernel("6.12", congestion_controls=files, name="tests-own", progress=False)
    assert built.release == kernel.release
    return built
