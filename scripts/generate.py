"""Writes all generated files; with `--check`, writes nothing and names those out of date."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from generate_experiment import experiment_module
from generate_manual import command_line_page, python_page
from generate_reference import algorithms_page, experiment_page, profiles_page, tables_page

import tcplab

ROOT = Path(__file__).parent.parent
# The examples whose results are on record: no randomness, some, and a sweep.
ON_RECORD = ["first", "loss", "on_off"]


def digests() -> str:
    """The digests of examples, which the Rust tests compare in other builds."""
    runs = {name: tcplab.run(ROOT / "examples" / f"{name}.toml").digests for name in ON_RECORD}
    return json.dumps(runs, indent=2) + "\n"


FILES: dict[str, Callable[[], str]] = {
    "python/tcplab/experiment.py": experiment_module,
    "docs/reference/experiment.md": experiment_page,
    "docs/reference/tables.md": tables_page,
    "docs/reference/python.md": python_page,
    "docs/reference/command-line.md": command_line_page,
    "docs/reference/congestion-controls.md": algorithms_page,
    "docs/reference/profiles.md": profiles_page,
    "tests/digests.json": digests,
}


def main() -> int:
    """Writes or checks every file."""
    is_check = sys.argv[1:] == ["--check"]
    outdated = 0
    for name, generate in FILES.items():
        path, text = ROOT / name, generate()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        outdated += 1
        if is_check:
            print(f"{name} is out of date; `make fmt` writes it anew", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if is_check and outdated else 0


if __name__ == "__main__":
    sys.exit(main())
