"""Measurements of a study's experiments: a row for each run, a column for each quantity.

These tables are small. They are written beside the runs. The tables in the folder of a study were
made by the version that `made.json` names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tcplab import _core, statistics
from tcplab._experiment.reading import load
from tcplab._papers._study import Experiment, Series, Side, Study
from tcplab._results.results import Results
from tcplab._statistics.thinning import thin
from tcplab._store.atomic_write import put

COMMITTED = "measured"
"""The folder of a study with measurements that ship with tcplab."""

LINUX = "linux"
"""The subfolder for measurements on the backend `linux`."""

MADE = "made.json"

MOST_POINTS = 300
"""The number of points kept of a curve, about the width of a figure."""

Tables = Mapping[str, pl.DataFrame]
"""The measurements by experiment id."""

Points = Mapping[tuple[str, str], pl.DataFrame]
"""The points by experiment id and name of the series."""


@dataclass(frozen=True)
class Measured:
    """All measurements of a study."""

    tables: Tables = field(default_factory=dict)
    series: Points = field(default_factory=dict)
    linux: Tables = field(default_factory=dict)
    """The kernel's measurements, with today's stack."""


def table_of(results: Results, experiment: Experiment) -> pl.DataFrame:
    """The measurements of an experiment's runs.

    Raises:
        ConfigError: A quantity is not an expression over its table.
    """
    rows = results.runs.select(*results.swept, "repetition", "run")
    if taken := sorted({*_called(results).values(), "repetition"} & experiment.quantities.keys()):
        raise _core.ConfigError(f"{experiment.id}: quantity {taken[0]}: a swept key is called so")
    for name, quantity in experiment.quantities.items():
        where = f" where {quantity.where}" if quantity.where else ""
        sql = f"select run, ({quantity.value}) as value from {quantity.table}{where} group by run"
        found = _query(results, sql, f"{experiment.id}: quantity {name}")
        own = found.select("run", pl.col("value").cast(pl.Float64).alias(name))
        rows = rows.join(own, on="run", how="left", maintain_order="left")
    return rows.drop("run").rename(_called(results))


def points_of(results: Results, experiment: Experiment, series: Series) -> pl.DataFrame:
    """The points of a series: of the first repetition of each cell, thinned, or the means over all
    repetitions with their intervals.

    Raises:
        ConfigError: The expressions of the series do not fit its table.
    """
    line = f"({series.line})" if series.line else "''"
    conditions = [series.where] if series.where else []
    if not series.is_of_all:
        conditions.append("run in (select run from runs where repetition = 0)")
    where = f" where {' and '.join(f'({one})' for one in conditions)}" if conditions else ""
    group = " group by run, line, x" if series.is_of_all else ""
    sql = (
        f"select run, {line} as line, cast(({series.x}) as double) as x, "
        f"cast(({series.y}) as double) as y from {series.table}{where}{group} order by run, line, x"
    )
    found = _query(results, sql, f"{experiment.id}: series {series.name}").drop_nulls("y")
    cells = results.runs.select("run", *results.swept)
    rows = cells.join(found, on="run", maintain_order="left_right").rename(_called(results))
    by = [_called(results)[one] for one in results.swept] + ["line"]
    if series.is_of_all:
        return _means(rows, [*by, "x"])
    rows = rows.with_columns(pl.concat_str(["run", "line"], separator="/").alias("curve"))
    return thin(rows, by="curve", y="y", most=MOST_POINTS).select(*by, "x", "y")


def _means(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    groups = rows.group_by(by, maintain_order=True).agg("y")
    found = [statistics.interval(values) for values in groups["y"].to_list()]
    return groups.with_columns(
        pl.Series("y", [one.estimate for one in found], dtype=pl.Float64),
        pl.Series("low", [one.low for one in found], dtype=pl.Float64),
        pl.Series("high", [one.high for one in found], dtype=pl.Float64),
    )


def _query(results: Results, sql: str, about: str) -> pl.DataFrame:
    try:
        return results.query(sql)
    except _core.ConfigError as error:
        raise _core.ConfigError(f"{about}: {error}") from None


def _called(results: Results) -> dict[str, str]:
    """The names of swept columns. A parameter keeps its name even where tables of results have a
    column of that name.
    """
    return {one: one.removeprefix("sweep.") for one in results.swept}


def fingerprint(experiment: Experiment) -> str:
    """A hash that changes when the experiment changes, or when it measures other quantities."""
    assert experiment.path is not None
    content = json.dumps(load(experiment.path).to_dict(), sort_keys=True)
    measures = [experiment.quantities[name] for name in sorted(experiment.quantities)]
    series = [experiment.series[name] for name in sorted(experiment.series)]
    return hashlib.sha256(f"{content} {measures!r} {series!r}".encode()).hexdigest()[:16]


def write(place: Path, study: Study, experiment: Experiment, results: Results) -> None:
    """Writes the measurements of an experiment to a folder, with the file and the version behind
    them.

    Keys that change in step with others (`zip`) and that the study never names are left out.
    """
    place.mkdir(parents=True, exist_ok=True)
    assert experiment.path is not None
    stepping = {key for table in load(experiment.path).to_dict().get("zip", []) for key in table}
    left_out = stepping - study.keys()
    rows = table_of(results, experiment).drop(left_out, strict=False)
    _put(rows, place / f"{experiment.id}.csv")
    for series in experiment.series.values():
        points = points_of(results, experiment, series).drop(left_out, strict=False)
        _put(points, place / f"{experiment.id}.{series.name}.csv")
    made = _made_of(place)
    made[experiment.id] = {
        "version": _core.__version__,
        "file": fingerprint(experiment),
        "runs": len(results),
        "cpu_s": round(float(results.runs["wall_s"].sum())),
    }
    put((json.dumps(made, indent=2, sort_keys=True) + "\n").encode(), place / MADE)


def _put(rows: pl.DataFrame, path: Path) -> None:
    numbers = [name for name, kind in rows.schema.items() if kind.is_float()]
    short = rows.with_columns(pl.col(numbers).round_sig_figs(7))
    put(short.write_csv().encode(), path)


def _made_of(place: Path) -> dict[str, dict[str, Any]]:
    """For each experiment with measurements in a folder: the version that made them, the file
    behind them, and the time they took.
    """
    path = place / MADE
    try:
        found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.is_file() else {}
    except ValueError as error:
        raise _core.ConfigError(f"{path}: {error}") from None
    return found


def seconds_for(study: Study, experiment: Experiment, runs: int, *, is_linux: bool) -> float | None:
    """The time that a number of runs takes on one processor, estimated from the measurements that
    ship with the study; `None` if there are none.
    """
    place = study.folder / COMMITTED
    made = _made_of(place / LINUX if is_linux else place).get(experiment.id, {})
    if not made.get("runs"):
        return None
    return float(made.get("cpu_s", 0.0)) / float(made["runs"]) * runs


def read(study: Study, place: Path) -> Measured:
    """The measurements in a folder, for the experiments of the study whose files are unchanged.

    Measurements of another file or of other quantities are left out.
    """
    tables, series = {}, {}
    for experiment in _current(study, place):
        path = place / f"{experiment.id}.csv"
        rows = pl.read_csv(path, infer_schema=False)
        quantities = list(experiment.quantities)
        tables[experiment.id] = rows.with_columns(
            pl.col("repetition").cast(pl.Int64), pl.col(quantities).cast(pl.Float64)
        )
        for name in experiment.series:
            points = pl.read_csv(place / f"{experiment.id}.{name}.csv", infer_schema=False)
            numbers = [one for one in ("x", "y", "low", "high") if one in points.columns]
            series[experiment.id, name] = points.with_columns(
                pl.col(numbers).cast(pl.Float64), pl.col("line").fill_null("")
            )
    inner = place / LINUX
    return Measured(tables, series, read(study, inner).tables if inner.is_dir() else {})


def _current(study: Study, place: Path) -> list[Experiment]:
    made = _made_of(place)
    return [
        experiment
        for experiment in study.experiments.values()
        if experiment.path is not None
        and (place / f"{experiment.id}.csv").is_file()
        and made.get(experiment.id, {}).get("file") == fingerprint(experiment)
    ]


def cell_of(rows: pl.DataFrame, cell: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """The rows of a cell; empty if one of the values that it lists was not run."""
    rows = rows.filter(*(pl.col(key).is_in(list(allowed)) for key, allowed in cell.items()))
    several = [(key, len(set(allowed))) for key, allowed in cell.items() if len(allowed) > 1]
    is_whole = all(rows[key].n_unique() == number for key, number in several)
    return rows if is_whole else rows.clear()


def values(tables: Tables, side: Side, more: Mapping[str, str]) -> dict[int, float] | None:
    """For each repetition, the mean of a quantity over the selected cells; `None` if the experiment
    was not run, or lacks such a cell.

    `more` narrows the cells: the variant, and values of unpublished parameters in place of our
    choice. A repetition in which a cell has no value is left out: the mean of the rest would
    describe other cells.
    """
    rows = tables.get(side.experiment)
    if rows is None or side.quantity not in rows.columns:
        return None
    for key in side.cell:
        if key not in rows.columns:
            raise _core.ConfigError(
                f"{side.experiment}: {key} is no column of it; there are "
                + ", ".join(column for column in rows.columns)
            )
    told = {**side.lost, **{key: (one,) for key, one in more.items()}}
    cell = {**{key: told[key] for key in told if key in rows.columns}, **side.cell}
    rows = cell_of(rows, cell)
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
