"""Short names for swept values: tables are told apart by the keys that differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MOST = 40
"""No label has more characters."""


def labels(values: Sequence[str | None]) -> dict[str, str]:
    """A label for each value, as it stands in tables of results; one for each.

    A table with a `kind` or `name` is called by it, with what differs from others of its kind:
    `fq-codel`, `tbf 10 Mbit/s`. Of others, the keys that differ are named.
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
    """What was written: a table or a list, if it is one, else the text itself."""
    if not value.startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _named(values: Sequence[Any]) -> list[str]:
    """Each value by what tells it from the others."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for value in values:
        if isinstance(value, dict):
            groups.setdefault(_head(value), []).append(value)
        elif isinstance(value, str):
            # A word alone, `cubic`, is a table without settings.
            groups.setdefault(value, []).append({})
    return [
        _table(value, groups[_head(value)]) if isinstance(value, dict) else _plain(value)
        for value in values
    ]


def _head(table: Mapping[str, Any]) -> str:
    return str(table.get("kind") or table.get("name") or "")


def _table(table: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> str:
    """A table by its kind, and by those of its keys that differ among its like."""
    keys = dict.fromkeys(key for other in alike for key in other if key not in ("kind", "name"))
    differ = [key for key in keys if any(one.get(key) != alike[0].get(key) for one in alike)]
    differ.sort(key=lambda key: key != "rate")
    # Alone, what nothing is like needs no more than its kind; without one, all of it is its name.
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
    """Whether a value needs no name: a text, and no other rate than `rate`."""
    value = table[key]
    return isinstance(value, str) and (key == "rate" or not value.endswith("bit/s"))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(label: str) -> str:
    """Not longer than a label may be, and not cut within a word."""
    if len(label) <= MOST:
        return label
    short, _, rest = label[: MOST - 3].rpartition(" ")
    return f"{(short or rest).rstrip(',')} ..."
