"""The recipe of CONTRIBUTING for a new congestion control, followed with its own toy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r'^```rust title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TABLE = "pub const ALGORITHMS: &[Algorithm] = &["


def test_one_file_and_two_lines_make_a_congestion_control(tmp_path: Path) -> None:
    recipe = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (name, toy), (table, lines) = BLOCK.findall(recipe)
    declaration, entry = lines.splitlines()
    for part in ("Cargo.toml", "Cargo.lock", "clippy.toml"):
        shutil.copy(ROOT / part, tmp_path)
    for part in ("crates", "benches"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / name).write_text(toy, encoding="utf-8")
    library = tmp_path / table
    code = library.read_text(encoding="utf-8")
    assert TABLE in code
    # The order of the table is tested too, so the entry goes where the alphabet says.
    head, rest = code.split(TABLE)
    entries, tail = rest.split("];", 1)
    known = [one.strip() for one in entries.split(",") if one.strip()]
    sorted_by_name = sorted([*known, entry.strip().rstrip(",")], key=lambda one: one.split("::"))
    head = head.replace("\npub mod ", f"\n{declaration}\npub mod ", 1)
    code = f"{head}{TABLE}{', '.join(sorted_by_name)}];{tail}"
    library.write_text(code, encoding="utf-8")
    # A folder of its own, kept: the crates that it needs are compiled once.
    target = ROOT / "target/recipe"
    done = subprocess.run(
        ["cargo", "test", "--quiet", "--package", "tcplab-cc"],
        cwd=tmp_path,
        env=os.environ | {"CARGO_TARGET_DIR": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test result: ok" in done.stdout
