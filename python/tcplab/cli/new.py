"""tcplab new NAME: writes an experiment file to start from."""

from __future__ import annotations

import argparse
from importlib.resources import files
from pathlib import Path

from tcplab._core import ConfigError
from tcplab._store.atomic_write import put
from tcplab._text.cells import LEFT, Column
from tcplab._text.plain_tables import table
from tcplab.cli._output import say

TEMPLATES = files("tcplab") / "templates"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the template and its destination."""
    parser.description = (
        "Write a commented experiment file to start from. Without a name, list the templates."
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a template, like dumbbell or papers/dctcp"
    )
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="the file to write (default: NAME.toml here)",
    )


def run(args: argparse.Namespace) -> None:
    """Writes the file, or lists the templates."""
    known = _known()
    if args.name is None:
        rows = [[name, _about(text)] for name, text in known.items()]
        say(table([Column("name", LEFT), Column("", LEFT)], rows))
        return
    if args.name not in known:
        raise ConfigError(f'no template is called "{args.name}"; there are {", ".join(known)}')
    path: Path = args.file or Path(f"{args.name.rpartition('/')[2]}.toml")
    if path.exists():
        raise FileExistsError(
            f"{path}: exists already; name another file: tcplab new {args.name} FILE"
        )
    if path.suffix != ".toml":
        raise ConfigError(f"{path}: templates are TOML files, like mine.toml")
    if not path.parent.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {path.parent} is not a folder")
    put(known[args.name].replace("FILE.toml", path.name).encode(), path)
    say(f"wrote {path}; run it with: tcplab run {path}")


def _known() -> dict[str, str]:
    """The text of each template, by name."""
    texts = {}
    for folder, before in ((TEMPLATES, ""), (TEMPLATES / "papers", "papers/")):
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(".toml"):
                texts[before + file.name.removesuffix(".toml")] = file.read_text(encoding="utf-8")
    return texts


def _about(text: str) -> str:
    """The first sentence of the opening comment."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        lines.append(line.removeprefix("# "))
    comment = " ".join(lines)
    end = next(
        (i + 1 for i, c in enumerate(comment) if c in ".?" and comment[i + 1 : i + 2] in (" ", "")),
        None,
    )
    return comment[:end].rstrip(".")
