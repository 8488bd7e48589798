"""The recipes of CONTRIBUTING, followed with their own examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r'^```(rust|diff) title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TABLE = "pub const ALGORITHMS: &[Algorithm] = &["

QUEUE = """
duration = "1 s"
network.links = [
    { between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms", queue = { kind = "patient" } },
]
flows = [{ from = "a", to = "b", traffic = "beacon" }]
"""

CHECKS = f"""//! What the recipes make.
use tcplab_model::{{Backend, Profile, from_toml, support}};

const TOYS: &str = r#"{QUEUE}"#;

#[test]
fn toys_are_resolved_and_refused_where_they_are_missing() {{
    let backend = Backend {{
        name: "linux",
        profile: Profile::Rfc,
        version: &|_| "1".into(),
        unsupported: &|plan| support::unsupported(plan, "linux"),
    }};
    let plan = from_toml(TOYS).unwrap().plans(&backend).unwrap().remove(0);
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["lanes"][0]["queue"]["discipline"]["patience"], "50 ms");
    assert_eq!(json["flows"][0]["traffic"]["every"], "1 s");
    assert_eq!(json["flows"][0]["transport"]["kind"], "udp");
    let refusals: Vec<_> =
        support::unsupported(&plan, "sim").iter().map(|it| it.problem.to_string()).collect();
    for kind in ["queue discipline `patient`", "traffic `beacon`"] {{
        let said = format!("the {{kind}} is not available on `sim`");
        assert!(refusals.iter().any(|refusal| refusal.starts_with(&said)), "{{refusals:?}}");
    }}
}}
"""


def section(title: str) -> list[tuple[str, str, str]]:
    """The blocks of a recipe: language, file and content."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (part,) = re.findall(rf"^## {title}\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    return BLOCK.findall(part)


def copy_to(folder: Path) -> None:
    """Copies the sources, to be changed."""
    for part in ("Cargo.toml", "Cargo.lock", "clippy.toml"):
        shutil.copy(ROOT / part, folder)
    for part in ("crates", "benches"):
        shutil.copytree(ROOT / part, folder / part)


def cargo(folder: Path, *words: str) -> str:
    """Runs Cargo in the copy, and returns its output."""
    done = subprocess.run(
        ["cargo", *words],
        cwd=folder,
        # A separate, persistent folder: dependencies are compiled once.
        # What is built here runs once: optimising it further takes longer.
        env=os.environ
        | {"CARGO_TARGET_DIR": str(ROOT / "target/recipe"), "CARGO_PROFILE_TEST_OPT_LEVEL": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def change(file: Path, diff: str) -> None:
    """Applies the changes of a diff, each of which must match exactly one place."""
    code = file.read_text(encoding="utf-8")
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if not line.startswith("+"))
        after = "".join(line[1:] for line in lines if not line.startswith("-"))
        assert code.count(before) == 1, f"{file}:\n{hunk}"
        code = code.replace(before, after)
    file.write_text(code, encoding="utf-8")


def test_one_file_and_two_lines_make_a_congestion_control(tmp_path: Path) -> None:
    (_, name, toy), (_, table, lines) = section("Adding a congestion control")
    declaration, entry = lines.splitlines()
    copy_to(tmp_path)
    (tmp_path / name).write_text(toy, encoding="utf-8")
    library = tmp_path / table
    code = library.read_text(encoding="utf-8")
    assert TABLE in code
    # The order of the table is tested too, so the entry goes to its alphabetical place.
    head, rest = code.split(TABLE)
    entries, tail = rest.split("];", 1)
    known = [one.strip() for one in entries.split(",") if one.strip()]
    sorted_by_name = sorted([*known, entry.strip().rstrip(",")], key=lambda one: one.split("::"))
    head = head.replace("\npub mod ", f"\n{declaration}\npub mod ", 1)
    code = f"{head}{TABLE}{', '.join(sorted_by_name)}];{tail}"
    library.write_text(code, encoding="utf-8")
    assert "test result: ok" in cargo(tmp_path, "test", "--quiet", "--package", "tcplab-cc")


def test_one_file_and_a_few_lines_make_a_queue_discipline_and_an_application(
    tmp_path: Path,
) -> None:
    copy_to(tmp_path)
    recipes = section("Adding a queue discipline") + section("Adding an application")
    assert len(recipes) == 8
    for language, name, content in recipes:
        if language == "diff":
            change(tmp_path / name, content)
        else:
            (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "crates/model/tests/toys.rs").write_text(CHECKS, encoding="utf-8")
    # Every kind is in the table of support, and the examples behave as described.
    assert "test result: ok" in cargo(
        tmp_path, "test", "--quiet", "--package", "tcplab-model", "--lib", "--test", "toys"
    )
    cargo(tmp_path, "check", "--quiet", "--package", "tcplab-linux", "--package", "tcplab-sim")
