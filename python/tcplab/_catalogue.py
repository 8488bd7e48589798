"""Lists of everything tcplab knows: algorithms, profiles, columns, the schema."""

from __future__ import annotations

import difflib
import json
from typing import Any

import polars as pl

from tcplab import _core
from tcplab._core import ConfigError


def algorithms() -> pl.DataFrame:
    """Returns the congestion controls of `sim`: name, year, kind, summary, reference, presets and
    parameters.

    Parameters are JSON text, by name, with their defaults. Presets are named sets of parameters:
    `cc = "cubic/2008"`. `explain` says more.
    """
    rows = [
        {
            "name": algorithm.name,
            "year": algorithm.year,
            "kind": algorithm.kind,
            "summary": algorithm.summary,
            "reference": algorithm.reference,
            "presets": [preset[0] for preset in algorithm.presets],
            "parameters": json.dumps(
                {name: json.loads(default) for name, default, _ in algorithm.parameters}
            ),
        }
        for algorithm in _core.algorithms()
    ]
    return pl.DataFrame(rows, schema_overrides={"presets": pl.List(pl.String)})


def explain(name: str) -> str:
    """Returns a page of Markdown about a congestion control: what it does, its presets and
    parameters.

    Raises:
        ConfigError: No congestion control has this name.
    """
    known = {algorithm.name: algorithm for algorithm in _core.algorithms()}
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(known)}"
        raise ConfigError(f'no congestion control is called "{name}"; {hint}')
    algorithm = known[name]
    parts = [
        f"# {name}\n",
        f"{algorithm.summary}. Since {algorithm.year}; goes by {algorithm.kind}; "
        f"{algorithm.reference}.\n",
        f"{algorithm.explanation}\n",
    ]
    if algorithm.parameters:
        parts += ["## Parameters\n", "| parameter | default | meaning |", "|---|---|---|"]
        parts += [
            f"| `{parameter}` | `{default}` | {meaning} |"
            for parameter, default, meaning in algorithm.parameters
        ]
        parts.append("")
    if algorithm.probes:
        parts += [
            "## Columns of `samples`\n",
            "| column | meaning |",
            "|---|---|",
            *(f"| `{name}_{probe}` | {meaning} |" for probe, meaning in algorithm.probes),
            "",
        ]
    if algorithm.presets:
        parts += ["## Presets\n", "| preset | parameters | whose they are |", "|---|---|---|"]
        parts += [
            f"| `{name}/{preset}` | {_said(values)} | {summary} ({source}) |"
            for preset, summary, source, values in algorithm.presets
        ]
        parts.append("")
    return "\n".join(parts).rstrip()


def _said(values: str) -> str:
    read: dict[str, Any] = json.loads(values)
    return ", ".join(f"`{name} = {json.dumps(value)}`" for name, value in read.items())


def profiles() -> pl.DataFrame:
    """Returns the profiles: name and summary."""
    return pl.DataFrame(_core.profiles(), schema=["name", "summary"], orient="row")


def profile(name: str) -> pl.DataFrame:
    """Returns the settings of a profile: each option with its value, as written in an experiment,
    and its source.

    Raises:
        ConfigError: No profile has this name.
    """
    return pl.DataFrame(_core.profile(name), schema=["option", "value", "source"], orient="row")


def columns() -> pl.DataFrame:
    """Returns the columns of the result tables, and their meaning."""
    return pl.DataFrame(_core.columns(), schema=["table", "column", "meaning"], orient="row")


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of an experiment. Editors check and complete experiment files with
    it.
    """
    read: dict[str, Any] = json.loads(_core.schema())
    return read
