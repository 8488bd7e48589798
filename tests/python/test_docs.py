"""What README and docs show is what happens: every console block is run and compared.

A block ```toml title="FILE"``` is written to a file first, beside the examples. In the expected
output `...` stands for any text: what differs from run to run, like elapsed time.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS_KERNEL = re.compile(r"^\$ .*(--on linux|tcplab compare|backend='linux')", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def pages_with(kind: str) -> list[Path]:
    """The pages that have such a block."""
    return [page for page in PAGES if f"```{kind}" in page.read_text(encoding="utf-8")]


def name(page: Path) -> str:
    """How a page is called in the list of tests."""
    return str(page.relative_to(ROOT))


def steps(console: str) -> list[tuple[str, str]]:
    """The commands of a console block and the output shown for each; empty if none is."""
    found: list[tuple[str, str]] = []
    for line in console.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].strip(), ""))
        else:
            command, output = found[-1]
            found[-1] = (command, output + line)
    return found


def is_shown(shown: str, printed: str) -> bool:
    """Whether the output is as shown, where `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


@pytest.mark.parametrize("page", pages_with("console"), ids=name)
def test_console_blocks_print_what_they_show(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if NEEDS_KERNEL.search(page.read_text(encoding="utf-8")):
        request.getfixturevalue("kernel")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for kind, title, content in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind in ("toml", "python") and title:
            (tmp_path / title).write_text(content, encoding="utf-8")
        if kind != "console":
            continue
        for command, shown in steps(content):
            if shlex.split(command)[0] in ("make", "git", "pip"):
                continue
            done = subprocess.run(
                command,
                check=False,
                shell=True,
                cwd=tmp_path,
                env=os.environ | {"PATH": path, "COLUMNS": "100"},
                capture_output=True,
                text=True,
                timeout=120,
            )
            printed = done.stdout + done.stderr
            assert "Traceback" not in printed, printed
            assert done.returncode == (2 if "error:" in shown else 0), printed
            if shown:
                assert is_shown(shown, printed), f"{command} printed\n{printed}\nnot\n{shown}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("example", sorted((ROOT / "examples").rglob("*.toml")), ids=name)
def test_every_example_runs(example: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    backend = "linux" if example.parent.name == "linux" else "sim"
    if backend == "linux":
        request.getfixturevalue("kernel")
    if "iperf3" in example.read_text(encoding="utf-8") and not shutil.which("iperf3"):
        pytest.skip("there is no iperf3; on Debian: sudo apt-get install iperf3")
    command = [sys.executable, "-m", "tcplab.cli", "run", str(example), "--on", backend]
    command += ["--out", str(tmp_path / "out")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "chart.svg").exists()
