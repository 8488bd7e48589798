"""README and docs show what happens: every console block is run and compared.

A block ```toml title="FILE"``` is first written to a file, beside the examples. In the expected
output `...` stands for any text, such as the elapsed time, which differs between runs. Python and
SQL blocks are executed. A fragment of an experiment is tried within an experiment; commands that
take minutes are parsed, not run; entries of the gallery draw their charts.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts"))

import gallery

import tcplab as lab
from tcplab.cli._main import parsed

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS_KERNEL = re.compile(r"^\$ .*(--on linux|tcplab compare|backend='linux')", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def pages_with(*kinds: str) -> list[Path]:
    """The pages that have a block of these kinds, except those of the gallery."""
    return [page for page in PAGES if page not in gallery.PAGES and any(blocks(page, *kinds))]


def blocks(page: Path, *kinds: str) -> list[tuple[str, str, str]]:
    """The blocks of these kinds: kind, title and content."""
    text = page.read_text(encoding="utf-8")
    return [block for block in BLOCK.findall(text) if not kinds or block[0] in kinds]


def name(page: Path) -> str:
    """The name of a page in the list of tests."""
    return str(page.relative_to(ROOT))


def steps(console: str) -> list[tuple[str, str]]:
    """The commands of a console block and the output shown for each; the output may be empty."""
    found: list[tuple[str, str]] = []
    for line in console.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].strip(), ""))
        else:
            command, output = found[-1]
            found[-1] = (command, output + line)
    return found


def is_shown(shown: str, printed: str) -> bool:
    """Whether the output is as shown, where `...` stands for any text."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


@pytest.mark.parametrize("page", pages_with("console", "python", "sql"), ids=name)
def test_code_blocks_print_the_documented_output(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if NEEDS_KERNEL.search(page.read_text(encoding="utf-8")):
        request.getfixturevalue("kernel")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for kind, title, content in blocks(page):
        if kind in ("toml", "python") and title:
            (tmp_path / title).write_text(content, encoding="utf-8")
        elif kind == "python" and "build_kernel" not in content:
            run_command(shlex.join([sys.executable, "-c", content]), tmp_path)
        elif kind == "sql":
            for query in content.splitlines():
                ask = f"import duckdb; assert duckdb.sql({query!r}).fetchall()"
                run_command(shlex.join([sys.executable, "-c", ask]), tmp_path)
        elif kind == "console":
            for command, shown in steps(content):
                if shlex.split(command)[0] not in ("make", "git", "pip"):
                    run_command(command, tmp_path, shown)


def run_command(command: str, folder: Path, shown: str = "") -> None:
    """Runs a command. Its output must be as shown, and it may fail only with an error shown."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        check=False,
        shell=True,
        cwd=folder,
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


PIECES = [
    pytest.param(content, id=f"{name(page)}-{number}")
    for page in pages_with("toml")
    for number, (_, title, content) in enumerate(blocks(page, "toml"))
    if not title
]

# An experiment with the nodes and parameters that fragments name, and the places for a fragment.
WHOLE = """
duration = "60 s"

[let]
delay = "10 ms"
queue = "40 packets"
buffer = "1 MB"

[network.dumbbell]
pairs = 2
rate = "10 Mbit/s"
delay = "10 ms"

[[network.links]]
between = ["server", "left"]
rate = "10 Mbit/s"
delay = "10 ms"

[[network.links]]
between = ["client", "left"]
rate = "10 Mbit/s"
delay = "$delay"
queue = "$queue"

[[flows]]
from = "left1"
to = "right1"
stack = { wmem = "$buffer" }
"""
FILES = {
    "orbit": "1 10\n2 20\n",
    "-delay": "1 10\n2 20\n",
    "-light": "0 10 1 2\n100 10 1 2\n",
    "": "10\n20\n",
}
PLACES = [[], ["network", "dumbbell"], ["network", "links"]]


@pytest.mark.parametrize("piece", PIECES)
def test_toml_fragments_are_valid_in_some_experiment(
    piece: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in re.findall(r'"([\w-]+\.txt)"', piece):
        kind = next((word for word in FILES if word in file), "")
        Path(file).write_text(FILES[kind], encoding="utf-8")
    for alternative in alternatives(piece):
        refused = [refusal(tomllib.loads(alternative), place) for place in PLACES]
        assert "" in refused, (alternative, refused)


def alternatives(piece: str) -> list[str]:
    """A fragment, or its lines one by one if they are alternative spellings of one key."""
    keys = re.findall(r"^(\w+) = ", piece, re.MULTILINE)
    has_tables = re.search(r"^\[", piece, re.MULTILINE)
    return [piece] if has_tables or len(set(keys)) == len(keys) else piece.splitlines()


def refusal(piece: dict[str, Any], place: list[str]) -> str:
    """The error of an experiment with a fragment in this place; empty if it is valid."""
    whole = tomllib.loads(WHOLE)
    at = whole
    for key in place:
        at = at[key][0] if isinstance(at[key], list) else at[key]
    put(piece, at)
    Path("piece.json").write_text(json.dumps(whole), encoding="utf-8")
    said = []
    for backend in ("sim", "linux"):
        try:
            lab.load("piece.json").plans(backend)
        except lab.ConfigError as error:
            said.append(str(error))
        else:
            return ""
    return "; ".join(said)


def put(piece: dict[str, Any], whole: dict[str, Any]) -> None:
    """Merges a table into another; lists of tables are concatenated."""
    for key, value in piece.items():
        there = whole.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            put(value, there)
        elif isinstance(there, list) and isinstance(value, list):
            there += value
        elif isinstance(there, list) and isinstance(value, dict):
            # `[network.links.forward]` extends the last link.
            put(value, there[-1])
        else:
            whole[key] = value


COMMANDS = [
    pytest.param(line, id=f"{name(page)}-{line}")
    for page in [*pages_with("sh"), ROOT / "CONTRIBUTING.md"]
    for _, _, content in blocks(page, "sh")
    for line in content.splitlines()
]


@pytest.mark.parametrize("line", COMMANDS)
def test_long_commands_are_parsed(line: str) -> None:
    program, *words = shlex.split(line, comments=True)
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    assert program == "tcplab"
    parsed(words)
    for word in words:
        assert "/" not in word or word.startswith("~") or (ROOT / word).exists()


def test_python_blocks_that_need_a_kernel_call_existing_functions() -> None:
    page = ROOT / "docs" / "how-to" / "kernels.md"
    ((_, _, lines),) = blocks(page, "python")
    with mock.patch("tcplab.build_kernel", autospec=True) as build:
        build.return_value = mock.create_autospec(lab.Kernel, spec_set=True)
        exec(lines, {})
    build.assert_called_once()


def test_all_kinds_of_code_blocks_are_tested() -> None:
    kinds = {kind for page in PAGES for kind, _, _ in blocks(page)}
    # test_kernels.py compiles the C file; `text` blocks hold the form of a command or a formula.
    assert kinds <= {"console", "python", "sql", "toml", "sh", "c", "text"}
    fences = {page: page.read_text(encoding="utf-8").count("\n```") for page in PAGES}
    assert {
        page: number for page, number in fences.items() if number != 2 * len(blocks(page))
    } == {}


@pytest.mark.parametrize(
    "entry",
    [
        entry
        for page in gallery.PAGES
        for entry in gallery.entries(page.read_text(encoding="utf-8"))
    ],
    ids=lambda entry: entry.name,
)
def test_gallery_charts_contain_data(entry: gallery.Entry) -> None:
    chart = entry.chart().read_text(encoding="utf-8")
    # A chart without a mark of data is empty.
    assert re.search(
        r'class="mark-(line|rect|symbol|area|rule|arc|text|trail)[^"]* role-mark', chart
    )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_exist(page: Path) -> None:
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
