"""What the runs of a study's experiments measured: a row for each run, a column for each quantity.

Such tables are small. They are written beside the runs, and those in the folder of a study are of
the version that `made.json` names.
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
from tcplab._experiment.experiment import load
from tcplab._papers._study import Experiment, Series, Side, Study
from tcplab._results.results import Results
from tcplab._statistics.thinning import thin
from tcplab._store.atomic_write import put

COMMITTED = "measured"
"""The folder of a study that has what was measured with a version of tcplab."""

LINUX = "linux"
"""The folder in that of what the Linux backend measured."""

MADE = "made.json"

MOST_POINTS = 300
"""So many points of a curve are kept: a figure is not much wider."""

Tables = Mapping[str, pl.DataFrame]
"""By the id of an experiment, what was measured."""

Points = Mapping[tuple[str, str], pl.DataFrame]
"""By the id of an experiment and the name of a series, its points."""


@dataclass(frozen=True)
class Measured:
    """All that was measured of a study."""

    tables: Tables = field(default_factory=dict)
    series: Points = field(default_factory=dict)
    linux: Tables = field(default_factory=dict)
    """What the kernel measured, with today's stack."""


def table_of(results: Results, experiment: Experiment) -> pl.DataFrame:
    """What the runs of an experiment measured.

    Raises:
        ConfigError: A quantity is no expression over the table that it names.
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
    with their intervals.

    Raises:
        ConfigError: Its expressions do not fit the table that it names.
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
    """A parameter keeps its name, although tables of results have a column that is called so."""
    return {one: one.removeprefix("sweep.") for one in results.swept}


def fingerprint(experiment: Experiment) -> str:
    """What tells whether an experiment is still the one that was run, and measures the same."""
    assert experiment.path is not None
    content = json.dumps(load(experiment.path).to_dict(), sort_keys=True)
    measures = [experiment.quantities[name] for name in sorted(experiment.quantities)]
    series = [experiment.series[name] for name in sorted(experiment.series)]
    return hashlib.sha256(f"{content} {measures!r} {series!r}".encode()).hexdigest()[:16]


def write(place: Path, study: Study, experiment: Experiment, results: Results) -> None:
    """Puts what an experiment measured into a folder, and of what file and version it is.

    Keys that step with others (`zip`) and that nothing in the study names are left out.
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
    """By experiment, the version that made what is in a folder, of which file, and how long it
    took.
    """
    path = place / MADE
    try:
        found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.is_file() else {}
    except ValueError as error:
        raise _core.ConfigError(f"{path}: {error}") from None
    return found


def seconds_for(study: Study, experiment: Experiment, runs: int, *, is_linux: bool) -> float | None:
    """How long so many runs take together on one processor, by those that the study brings along;
    nothing if it brings none.
    """
    place = study.folder / COMMITTED
    made = _made_of(place / LINUX if is_linux else place).get(experiment.id, {})
    if not made.get("runs"):
        return None
    return float(made.get("cpu_s", 0.0)) / float(made["runs"]) * runs


def read(study: Study, place: Path) -> Measured:
    """What is in a folder of what the study's experiments measure, each as its file is now.

    What was measured with another file, or with other quantities, is left out.
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
    """The rows of a cell; none where one of the values that it lists was not run."""
    for key, allowed in cell.items():
        rows = rows.filter(pl.col(key).is_in(list(allowed)))
        if rows[key].n_unique() < len(set(allowed)):
            return rows.clear()
    return rows


def values(tables: Tables, side: Side, more: Mapping[str, str]) -> dict[int, float] | None:
    """By repetition, the mean of a quantity over the cells that are meant; nothing where the
    experiment was not run, or lacks such a cell.

    `more` narrows the cells: the variant, and values of lost parameters in place of our choice. A
    repetition in which a cell has no value is left out: the mean of the others would be of other
    cells.
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
