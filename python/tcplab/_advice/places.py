"""Where the values of a question stand, as messages name it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tcplab._advice import levers
from tcplab._core import ConfigError, printable
from tcplab._experiment.runnable import Runnable, source_of

TABLES = ("over", "change")
"""Keys of [advise] that have keys of the experiment below them."""

PART = re.compile(r"[\w.\[\]-]*")
"""What follows a key of `TABLES` in the name of a value."""


def quoted(name: str) -> str:
    """A part of a path, as TOML has it."""
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isalnum() else json.dumps(name)


def of_key(at: str, experiment: Runnable) -> str:
    """A key of an experiment, after its file and its line if it came from a file."""
    source = source_of(experiment, experiment.to_dict())
    if source is None:
        return at
    line = source.document().line(at)
    return f"{printable(source.name)}: {f'line {line}: ' if line else ''}{at}"


@contextmanager
def named(experiment: Runnable, replaced: Mapping[str, Any]) -> Iterator[None]:
    """Mistakes in what the experiment's table [advise] says begin with its file and its line.
    `replaced` are the keys that a command line or a program gives, which are on no line.
    """
    try:
        yield
    except ConfigError as error:
        own = experiment.to_dict().get("advise") or {}
        lines = [_named(line, experiment, own, replaced) for line in str(error).split("\n")]
        raise ConfigError("\n".join(lines)) from None


def _named(
    line: str, experiment: Runnable, own: Mapping[str, Any], replaced: Mapping[str, Any]
) -> str:
    key, colon, rest = line.partition(": ")
    if not colon or key not in own:
        return line
    if key in TABLES:
        there = [one for one in own[key] if one not in (replaced.get(key) or {})]
        for one in sorted(there, key=len, reverse=True):
            if rest.startswith(one):
                part = PART.match(rest, len(one))
                end = part.end() if part is not None else len(one)
                place = f"advise.{key}.{quoted(one)}{rest[len(one) : end]}"
                return of_key(place, experiment) + rest[end:]
    return line if replaced.get(key) else f"{of_key(f'advise.{key}', experiment)}: {rest}"


def of_value(key: str, value: Any, read: Any, file: Path | None) -> str:
    """The name of a value that a range gives: with its place in a list, or in the `file` of which
    the values are. `read` is the range, with the values of a file in the place of its name.
    """
    word = levers.word(value)
    if isinstance(read, list) and value in read:
        return f"{key}[{read.index(value)}] = {word}"
    listed = read.get("values") if isinstance(read, Mapping) else None
    if not isinstance(listed, list) or value not in listed:
        return f"{key} = {word}"
    place = listed.index(value)
    if file is None:
        return f"{key}.values[{place}] = {word}"
    return f"{key}.file: {file}: line {_lines(file)[place]}: {word}"


def files_of(experiment: Runnable, over: Mapping[str, Any]) -> dict[str, Path]:
    """The files of values that ranges name, by key; `over` has those that replace the
    experiment's own.
    """
    plain = experiment.to_dict()
    source = source_of(experiment, plain)
    folder = Path(source.name).parent if source is not None else Path()
    own = (plain.get("advise") or {}).get("over") or {}
    ranges = [(folder, own), (Path(), over)]
    return {
        key: within / given["file"]
        for within, table in ranges
        for key, given in table.items()
        if isinstance(given, Mapping) and isinstance(given.get("file"), str)
    }


def _lines(file: Path) -> Sequence[int]:
    """The numbers of the lines with content."""
    text = file.read_text(encoding="utf-8")
    return [number for number, line in enumerate(text.splitlines(), 1) if line.strip()]
