"""Writes experiments as TOML, in the form that one would write by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

WIDTH = 100
"""The width of a line. A longer list has a line for each item."""

BARE = re.compile(r"[A-Za-z0-9_-]+")

GROUPS = {("network",), ("network", "lan"), ("hosts",), ("variants",)}
"""The paths of tables whose subtables have a heading each."""


def written(plain: Mapping[str, Any]) -> str:
    """An experiment, given as plain values, as TOML: each table under its heading."""
    parts = list(_parts((), plain))
    return "\n".join(parts)


def _parts(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    """The text of a table and of the subtables with headings of their own."""
    lines = {key: value for key, value in table.items() if _is_line(path, value)}
    groups = {key: value for key, value in table.items() if key not in lines}
    if lines or (path and not groups):
        yield _lines(f"[{_path(path)}]" if path else "", lines)
    for key, value in groups.items():
        inner = (*path, key)
        if isinstance(value, Mapping):
            yield from _parts(inner, value)
        else:
            for item in value:
                yield from _entry(inner, item)


def _entry(path: tuple[str, ...], entry: Mapping[str, Any]) -> Iterator[str]:
    """An entry of a list of tables. Values too long for a line get a heading."""
    long = {key: value for key, value in entry.items() if _is_long(value)}
    yield _lines(f"[[{_path(path)}]]", {k: value for k, value in entry.items() if k not in long})
    for key, value in long.items():
        yield _lines(f"[{_path((*path, key))}]", value)


def _lines(heading: str, values: Mapping[str, Any]) -> str:
    lines = [f"{_key(key)} = {_value(value)}" for key, value in values.items()]
    return "\n".join([heading, *lines] if heading else lines) + "\n"


def _path(path: tuple[str, ...]) -> str:
    return ".".join(map(_key, path))


def _is_line(path: tuple[str, ...], value: Any) -> bool:
    """Whether a value follows its key on one line, rather than a heading."""
    has_heading = not path or path in GROUPS
    if isinstance(value, Mapping):
        return not has_heading or "kind" in value
    is_list = isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)
    return not (has_heading and is_list)


def _is_long(value: Any) -> bool:
    """Whether a table in an entry of a list is too long for a line."""
    return isinstance(value, Mapping) and len(_value(value)) > WIDTH - 20


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        items = [_value(item) for item in value]
        line = f"[{', '.join(items)}]"
        broken = "".join(f"    {item},\n" for item in items)
        return line if len(line) < WIDTH * 3 // 4 or len(items) < 2 else f"[\n{broken}]"
    return repr(value)


def _text(text: str) -> str:
    # JSON strings are TOML strings, except for this character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
