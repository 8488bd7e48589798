"""Short labels for swept values: tables are distinguished by the keys that differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MOST = 40
"""The greatest length of a label, in characters."""


def labels(values: Sequence[str | None]) -> dict[str, str]:
    """A distinct label for each value, by the value as written in tables of results.

    A table with a `kind` or `name` is labelled by it and by whatever differs among tables of its
    kind: `fq-codel`, `tbf 10 Mbit/s`. Other tables are labelled by the keys that differ.
    """
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    read = {value: _read(value) for value in distinct}
    named = dict(zip(distinct, _named(list(read.values())), strict=True))
    short = {value: _cut(label) for value, label in named.items()}
    counts, seen = Counter(short.values()), Counter[str]()
    for value, label in short.items():
        if counts[label] > 1:
            seen[label] += 1
            short[value] = f"{label} ({seen[label]})"
    return short


def _read(value: str) -> Any:
    """The value as written: a table or a list if the text is one, else the text itself."""
    if not value.startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _named(values: Sequence[Any]) -> list[str]:
    """A name for each value that distinguishes it from the others."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for value in values:
        if isinstance(value, dict):
            groups.setdefault(_head(value), []).append(value)
        elif isinstance(value, str):
            # A bare word such as `cubic` is a table without settings.
            groups.setdefault(value, []).append({})
    return [
        _table(value, groups[_head(value)]) if isinstance(value, dict) else _plain(value)
        for value in values
    ]


def _head(table: Mapping[str, Any]) -> str:
    return str(table.get("kind") or table.get("name") or "")


def _table(table: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> str:
    """A table by its kind, and by those keys that differ among tables of its kind."""
    keys = dict.fromkeys(key for other in alike for key in other if key not in ("kind", "name"))
    differ = [key for key in keys if any(one.get(key) != alike[0].get(key) for one in alike)]
    differ.sort(key=lambda key: key != "rate")
    # The only table of its kind needs no more than the kind. Without a kind, all keys are its name.
    shown = differ if differ or _head(table) else list(keys)
    parts = []
    for key in shown:
        if key not in table:
            continue
        having = [other for other in alike if key in other]
        value = _named([other[key] for other in having])[having.index(table)]
        is_clear = len(shown) == 1 and _head(table) and _is_clear(table, key)
        parts.append(value if is_clear else f"{key} {value}")
    return " ".join(part for part in (_head(table), ", ".join(parts)) if part) or "{}"


def _is_clear(table: Mapping[str, Any], key: str) -> bool:
    """Whether a value is clear without its key: a text, and no rate other than `rate`."""
    value = table[key]
    return isinstance(value, str) and (key == "rate" or not value.endswith("bit/s"))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(label: str) -> str:
    """The label cut to the greatest length, at the end of a word."""
    if len(label) <= MOST:
        return label
    short, _, rest = label[: MOST - 3].rpartition(" ")
    return f"{(short or rest).rstrip(',')} ..."
