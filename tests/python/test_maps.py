"""The maps of the project are true: its folders, the graph of its crates, files, modules."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


def test_folders_of_the_map_exist() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \|", CONTRIBUTING, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(named) > 30
    for name in named:
        places = [ROOT / name, ROOT / "python" / "tcplab" / name]
        assert any(place.exists() for place in places), name
    crates = {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")}
    assert crates == {name.removeprefix("crates/") for name in named if name.startswith("crates/")}


def dependencies() -> dict[str, set[str]]:
    """What each crate depends on, without its tests."""
    found = {}
    for path in ROOT.glob("crates/*/Cargo.toml"):
        table = tomllib.loads(path.read_text())["dependencies"]
        own = (name.removeprefix("tcplab-") for name in table if name.startswith("tcplab-"))
        found[path.parent.name] = set(own)
    return found


def test_the_graph_of_crates_is_that_of_their_manifests() -> None:
    (sentence,) = re.findall(r"^Dependencies point one way: .*?\. ", CONTRIBUTING, re.M | re.S)
    stated: dict[str, set[str]] = defaultdict(set)
    for part in re.findall(r"`([^`]+)`", sentence):
        sides = [re.split(r",\s*", side.strip()) for side in part.split("<-")]
        for below, above in pairwise(sides):
            for crate in above:
                stated[crate].update(below)
    real = dependencies()

    def reached(crate: str) -> set[str]:
        return stated[crate].union(*(reached(below) for below in stated[crate]))

    for crate, below in real.items():
        assert stated[crate] <= below, crate
        assert below <= reached(crate), crate


def test_files_named_in_pages_and_comments_exist() -> None:
    files = set(tracked())
    pattern = re.compile(r"\b(?:crates|python|scripts|tests|benches)/[\w./-]+\.(?:rs|py|c|h|sh)\b")
    # The recipes of this page add these.
    added = set(re.findall(r'title="([^"]+)"', CONTRIBUTING))
    for page in tracked("*.md", "*.rs", "python/*.py", "scripts/*.py"):
        for name in pattern.findall((ROOT / page).read_text()):
            if "NAME" not in name and name not in added:
                assert any(file.endswith(name) for file in files), f"{page}: {name}"


TCP = ROOT / "crates" / "tcp" / "src"


def test_the_map_of_tcp_names_its_modules() -> None:
    page = (TCP / "lib.rs").read_text()
    rows = re.findall(r"^//! \|.*\|$", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z_]+(?:::[a-z_]+)*)`", row)}
    paths = {name for name in named if "::" in name or (TCP / f"{name}.rs").exists()}
    assert {"loss", "congestion", "departure", "sender::on_ack"} <= paths
    for name in paths:
        assert (TCP / f"{name.replace('::', '/')}.rs").exists(), name


def test_items_of_the_map_of_tcp_are_in_the_files_that_it_names() -> None:
    """A file may be followed by items in it: `receiver` (`receive`, `select_window`)."""
    page = (TCP / "lib.rs").read_text()
    rows = re.findall(r"^//! \|.*\|$", page, re.MULTILINE)
    items = [
        (file, name)
        for row in rows
        for file, names in re.findall(r"`([a-z_:]+)` \(((?:`\w+`(?:, )?)+)\)", row)
        for name in re.findall(r"`(\w+)`", names)
    ]
    assert ("sender::output", "may_send_small") in items
    assert {"Nagle", "needs_window_probe", "select_window"} <= {name for _, name in items}
    for file, name in items:
        text = (TCP / f"{file.replace('::', '/')}.rs").read_text()
        assert re.search(rf"\b(?:fn|enum|struct) {name}\b", text), f"{file}: {name}"


def test_owners_of_tcp_do_not_know_who_calls_them() -> None:
    """What is lost, how much may be sent and what leaves when: only the sender crosses them."""
    owners = {"loss", "congestion", "departure"}
    barred = {name: {"endpoint", "sender"} | owners - {name} for name in owners}
    for owner, strangers in {**barred, "sender": {"endpoint"}}.items():
        files = [TCP / f"{owner}.rs", *(TCP / owner).rglob("*.rs")]
        assert len(files) > 1, owner
        for path in files:
            imported = set(re.findall(r"\bcrate::(?:\{[^}]*\b)?(\w+)", path.read_text()))
            assert not imported & strangers, path


def test_fields_of_the_owners_of_tcp_are_private() -> None:
    for owner, kind in (
        ("loss", "Loss"),
        ("congestion", "CongestionWindow"),
        ("departure", "Departure"),
    ):
        (body,) = re.findall(
            rf"struct {kind} \{{\n(.*?)^\}}", (TCP / f"{owner}.rs").read_text(), re.M | re.S
        )
        assert "pub" not in re.findall(r"^    (\w+)", body, re.M), owner


def test_maps_of_rust_modules_name_modules() -> None:
    maps = 0
    for page in tracked("crates/**/lib.rs", "crates/**/mod.rs"):
        text = (ROOT / page).read_text()
        modules = set(re.findall(r"^(?:pub(?:\(\w+\))? )?mod (\w+);", text, re.MULTILINE))
        head = re.search(
            r"^//! \| (?:file|module|folder)s? \| job \|\n//! \|---\|---\|\n", text, re.M
        )
        if head is None:
            continue
        maps += 1
        rows = re.match(r"(?://! \|.*\n)+", text[head.end() :])
        assert rows is not None
        cells = re.findall(r"^//! \|([^|]*)\|", rows[0], re.MULTILINE)
        named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
        assert set(named) <= modules, page
        tests = {name for name in modules if name.endswith(("tests", "mutated"))}
        # The list of algorithms names these.
        algorithms = set(re.findall(r"^    (\w+)::ALGORITHM,", text, re.MULTILINE))
        assert modules - set(named) <= tests | algorithms, page
    assert maps >= 4


LATE = {
    ("tcplab._advice.advice", "tcplab._advice.words"),
    ("tcplab._capture.characteristics", "tcplab._capture.modelled"),
    ("tcplab._results.compare", "tcplab._results.notebook"),
    ("tcplab._results.results", "tcplab._results.notebook"),
    ("tcplab.capture", "tcplab._report._capture"),
}
"""Methods that show or convert an object: they import what does it when they are called."""


def imported(path: Path, modules: set[str]) -> set[str]:
    """What a file imports of the package, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & modules or {node.module}
    return found & modules


def test_python_modules_have_no_circular_imports() -> None:
    root = ROOT / "python"
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in root.glob("tcplab/**/*.py")
    }
    # What the package offers is imported from everywhere, and loads when it is used.
    graph = {
        name: imported(path, set(files)) - {name, "tcplab"}
        for name, path in files.items()
        if name != "tcplab"
    }
    for name, other in LATE:
        assert other in graph[name]
        graph[name].remove(other)
    while leaves := [name for name, others in graph.items() if not others & graph.keys()]:
        for name in leaves:
            del graph[name]
    assert not graph, sorted(graph)
