"""What the runs of a study's experiments measured: a row for each run, a column for each quantity.

Such tables are small. They are written beside the runs, and those in the folder of a study are of
the version that `made.json` names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from tcplab import _core
from tcplab._papers._study import Experiment, Side, Study
from tcplab._put import put
from tcplab._results import Results

COMMITTED = "measured"
"""The folder of a study that has what was measured with a version of tcplab."""

MADE = "made.json"

Tables = Mapping[str, pl.DataFrame]
"""By the id of an experiment, what was measured."""


def table_of(results: Results, experiment: Experiment) -> pl.DataFrame:
    """What the runs of an experiment measured.

    Raises:
        ConfigError: A quantity is no expression over the table that it names.
    """
    rows = results.runs.select(*results.swept, "repetition", "run")
    for name, quantity in experiment.quantities.items():
        where = f" where {quantity.where}" if quantity.where else ""
        sql = f"select run, ({quantity.value}) as value from {quantity.table}{where} group by run"
        try:
            found = results.query(sql)
        except _core.ConfigError as error:
            raise _core.ConfigError(f"{experiment.id}: quantity {name}: {error}") from None
        own = found.select("run", pl.col("value").cast(pl.Float64).alias(name))
        rows = rows.join(own, on="run", how="left", maintain_order="left")
    # A parameter keeps its name, although tables of results have a column that is called so.
    called = {one: one.removeprefix("sweep.") for one in results.swept}
    return rows.drop("run").rename(called)


def fingerprint(experiment: Experiment, path: Path) -> str:
    """What tells whether an experiment is still the one that was run, and measures the same."""
    quantities = repr([experiment.quantities[name] for name in sorted(experiment.quantities)])
    return hashlib.sha256(path.read_bytes() + quantities.encode()).hexdigest()[:16]


def write(place: Path, experiment: Experiment, rows: pl.DataFrame) -> None:
    """Puts what an experiment measured into a folder, and of what file and version it is."""
    place.mkdir(parents=True, exist_ok=True)
    put(rows.write_csv(float_precision=6).encode(), place / f"{experiment.id}.csv")
    made = made_of(place)
    assert experiment.path is not None
    made[experiment.id] = {
        "version": _core.__version__,
        "file": fingerprint(experiment, experiment.path),
    }
    put((json.dumps(made, indent=2, sort_keys=True) + "\n").encode(), place / MADE)


def made_of(place: Path) -> dict[str, dict[str, str]]:
    """By experiment, the version that made what is in a folder, and of which file it is."""
    path = place / MADE
    try:
        found: dict[str, dict[str, str]] = json.loads(path.read_text()) if path.is_file() else {}
    except ValueError as error:
        raise _core.ConfigError(f"{path}: {error}") from None
    return found


def read(study: Study, place: Path) -> dict[str, pl.DataFrame]:
    """What is in a folder of what the study's experiments measure, each as its file is now.

    What was measured with another file, or with other quantities, is left out.
    """
    made = made_of(place)
    found = {}
    for experiment in study.experiments.values():
        path = place / f"{experiment.id}.csv"
        if experiment.path is None or not path.is_file():
            continue
        if made.get(experiment.id, {}).get("file") != fingerprint(experiment, experiment.path):
            continue
        rows = pl.read_csv(path, infer_schema=False)
        quantities = list(experiment.quantities)
        found[experiment.id] = rows.with_columns(
            pl.col("repetition").cast(pl.Int64), pl.col(quantities).cast(pl.Float64)
        )
    return found


def values(tables: Tables, side: Side, more: Mapping[str, str]) -> dict[int, float] | None:
    """By repetition, the mean of a quantity over the cells that are meant; nothing where the
    experiment was not run, or has no such cell.

    `more` narrows the cells: the variant, and the values of what is varied. A repetition in which a
    cell has no value is left out: the mean of the others would be of other cells.
    """
    rows = tables.get(side.experiment)
    if rows is None or side.quantity not in rows.columns:
        return None
    cell = {**{key: (value,) for key, value in more.items()}, **side.cell}
    for key, allowed in cell.items():
        if key not in rows.columns:
            if key in side.cell:
                raise _core.ConfigError(
                    f"{side.experiment}: {key} is no column of it; there are "
                    + ", ".join(column for column in rows.columns)
                )
            continue
        rows = rows.filter(pl.col(key).is_in(allowed))
    if rows.is_empty():
        return None
    means = (
        rows.group_by("repetition", maintain_order=True)
        .agg(
            pl.col(side.quantity).mean().alias("value"),
            pl.col(side.quantity).is_null().any().alias("lacks"),
        )
        .filter(~pl.col("lacks"))
        .sort("repetition")
    )
    return dict(means.select("repetition", "value").iter_rows())
