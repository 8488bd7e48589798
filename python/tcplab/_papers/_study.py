"""The contents of a study's folder: `study.toml`, `claims.toml`, `published.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcplab._core import ConfigError
from tcplab._papers._reader import Table

FOLDER = Path(__file__).parent.parent / "papers"

KINDS = ("quantity", "order", "mechanism")

CERTAINTIES = ("stated", "recovered", "derived", "lost")

COMPARISONS = ("above", "below", "similar_to")

LIMITS = ("between", "at_least", "at_most")

FORMS = ("lines", "bars", "points")

RUNS = ("first", "all")

REPEAT = 30
"""The first number of repetitions of a study's experiments."""

Cell = Mapping[str, tuple[str, ...]]
"""A selection of runs: for each column of a swept parameter, the allowed values."""


@dataclass(frozen=True)
class Quantity:
    """A measurement of a run: an aggregate over rows of one of its tables, in SQL."""

    name: str
    words: str
    unit: str
    value: str
    table: str = "runs"
    where: str | None = None


@dataclass(frozen=True)
class Series:
    """Points of a run over time, or over another variable that is not swept."""

    name: str
    words: str
    unit: str
    x: str
    x_words: str
    y: str
    table: str
    where: str | None
    line: str | None
    """The SQL expression that separates the curves of one picture."""

    is_of_all: bool
    """Whether `y` is an aggregate over all runs at each `x`; else the points are those of the first
    repetition.
    """


@dataclass(frozen=True)
class Figure:
    """A figure of the study, redrawn in the form that its authors chose."""

    id: str
    title: str
    experiment: str
    shows: str
    """The name of a quantity or of a series."""

    form: str
    x: str | None
    line: str | None
    panels: tuple[str, ...]
    """The swept keys with a panel for each value."""

    cell: Cell
    is_log: bool
    is_log_y: bool
    has_zero: bool
    level: tuple[float, str] | None
    """A value that is drawn as a line, and its label."""


@dataclass(frozen=True)
class Experiment:
    """An experiment of the study: the file that runs it, or the reason why there is none."""

    id: str
    title: str
    place: str
    path: Path | None
    reason: str | None
    quantities: Mapping[str, Quantity]
    series: Mapping[str, Series] = field(default_factory=dict)
    lost: Cell = field(default_factory=dict)
    """Our choice for unpublished parameters, by the key that is swept over the possible range."""

    quick: Cell = field(default_factory=dict)
    """The swept values that a quick run keeps."""

    at_most: int = REPEAT
    """The most repetitions, used if fewer do not decide a claim."""

    linux: Cell | None = None
    """The swept values that the kernel runs too; `None` if it runs none."""

    linux_repeat: int = REPEAT
    linux_reason: str | None = None
    """Why the kernel runs none."""

    linux_own: Cell = field(default_factory=dict)
    """Further cells for a kernel with additional congestion controls."""


@dataclass(frozen=True)
class Side:
    """One side of a check: a quantity of an experiment in some of its cells."""

    experiment: str
    quantity: str
    cell: Cell
    lost: Cell = field(default_factory=dict)
    """Our choice for unpublished parameters, unless the cell sets them."""


@dataclass(frozen=True)
class Check:
    """A statement that decides a claim, about measurements of runs or about arithmetic alone."""

    side: Side | None
    arithmetic: str | None
    low: float | None = None
    high: float | None = None
    how: str = "between"
    other: Side | None = None
    by: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of the study, in our words, and the checks that decide it."""

    id: str
    kind: str
    place: str
    words: str
    checks: tuple[Check, ...]
    reason: str | None
    paper: str | None


@dataclass(frozen=True)
class Number:
    """A published number, and the measurement that corresponds to it."""

    id: str | None
    what: str
    value: float
    unit: str
    place: str
    certainty: str
    side: Side | None
    note: str | None
    row: tuple[str, ...] = ()
    column: str = ""


@dataclass(frozen=True)
class Study:
    """A published study."""

    name: str
    title: str
    authors: str
    year: int
    published: str
    digest: str
    question: str
    found: str
    then: str
    quick: int
    unknown: tuple[str, ...]
    folder: Path
    ours: str = ""
    """Our findings with the study's stack."""

    today: str = ""
    """Our findings with today's stack."""

    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    numbers: tuple[Number, ...] = ()
    figures: tuple[Figure, ...] = ()

    def keys(self) -> set[str]:
        """The swept keys that the study names anywhere."""
        sides = [number.side for number in self.numbers]
        for claim in self.claims:
            sides += [side for check in claim.checks for side in (check.side, check.other)]
        named = {key for side in sides if side is not None for key in (*side.cell, *side.lost)}
        for figure in self.figures:
            named |= {*figure.cell, *figure.panels, figure.x or "", figure.line or ""}
        return named | set(re.findall(r"([^\s={}]+)=", self.ours + self.today))


def names() -> list[str]:
    """The names of all studies."""
    return sorted(path.parent.name for path in FOLDER.glob("*/study.toml"))


def load(name: str) -> Study:
    """The study of this name.

    Raises:
        ConfigError: No study has this name, or its files are invalid.
    """
    if name not in names():
        raise ConfigError(f"{name!r} is no study; there are {', '.join(names())}")
    place = FOLDER / name
    about = Table.of_file(place / "study.toml")
    texts = {
        key: about.text(key)
        for key in ("title", "authors", "published", "digest", "question", "found", "then")
    }
    year, quick = about.whole("year"), about.whole("quick")
    unknown = about.texts("unknown")
    ours, today = about.maybe("ours") or "", about.maybe("today") or ""
    experiments = {
        key: _experiment(key, table, place) for key, table in about.tables("experiments")
    }
    figures = tuple(_figure(table, experiments) for table in about.entries("figures"))
    about.finish()
    claims = Table.of_file(place / "claims.toml")
    numbers = Table.of_file(place / "published.toml")
    study = Study(
        name=name,
        year=year,
        quick=quick,
        unknown=unknown,
        folder=place,
        ours=ours,
        today=today,
        experiments=experiments,
        figures=figures,
        claims=tuple(_claim(table, experiments) for table in claims.entries("claim")),
        numbers=tuple(_numbers(numbers, experiments)),
        **texts,
    )
    claims.finish()
    numbers.finish()
    seen: set[str] = set()
    for claim in study.claims:
        if claim.id in seen:
            raise ConfigError(f"{claims.where}: claim {claim.id} is there twice")
        seen.add(claim.id)
    return study


def _experiment(key: str, table: Table, place: Path) -> Experiment:
    title, where = table.text("title"), table.maybe("place") or ""
    file, reason = table.maybe("file"), table.maybe("reason")
    quantities = {}
    for name, own in table.tables("quantities"):
        quantities[name] = Quantity(
            name,
            own.text("words"),
            own.text("unit"),
            own.text("value"),
            own.maybe("from") or "runs",
            own.maybe("where"),
        )
        own.finish()
    series = {name: _series(name, own) for name, own in table.tables("series")}
    lost, quick = _cell(table.plain("lost")), _cell(table.plain("quick"))
    at_most = table.number("at_most")
    linux_reason = table.maybe("linux") if table.holds("linux", str) else None
    linux = _cell(table.plain("linux")) if table.has("linux") else None
    linux_repeat = table.number("linux_repeat")
    linux_own = _cell(table.plain("linux_own"))
    table.finish()
    if (file is None) == (reason is None):
        raise table.wrong("file", "a file runs it, or there is a reason why none does")
    path = None if file is None else place / file
    if path is not None and not path.is_file():
        raise table.wrong("file", f"{path} is not there")
    if linux_own.keys() - (linux or {}).keys():
        raise table.wrong("linux_own", "it adds values to keys of `linux`")
    if twice := sorted(quantities.keys() & series.keys()):
        raise table.wrong(f"series.{twice[0]}", "a quantity is called so")
    return Experiment(
        key,
        title,
        where,
        path,
        reason,
        quantities,
        series,
        lost,
        quick,
        REPEAT if at_most is None else int(at_most),
        linux,
        REPEAT if linux_repeat is None else int(linux_repeat),
        linux_reason,
        linux_own,
    )


def _series(name: str, table: Table) -> Series:
    found = Series(
        name,
        table.text("words"),
        table.text("unit"),
        table.text("x"),
        table.text("x_words"),
        table.text("y"),
        table.text("from"),
        table.maybe("where"),
        table.maybe("line"),
        table.choice("runs", RUNS) == "all",
    )
    table.finish()
    return found


def _figure(table: Table, experiments: Mapping[str, Experiment]) -> Figure:
    id_, title, experiment = table.text("id"), table.text("title"), table.text("experiment")
    shows, form = table.text("shows"), table.choice("kind", FORMS)
    x, line = table.maybe("x"), table.maybe("line")
    panels = table.texts("panel") if table.holds("panel", list) else (table.maybe("panel"),)
    level = table.table("level")
    found = experiments.get(experiment)
    if found is None:
        raise table.wrong("experiment", f"{experiment} is none of {', '.join(experiments)}")
    if found.path is None:
        raise table.wrong("experiment", f"{experiment} is not run")
    if shows not in found.quantities and shows not in found.series:
        there = ", ".join((*found.quantities, *found.series))
        raise table.wrong("shows", f"{shows} is none of {there}")
    if (x is None) != (shows in found.series):
        raise table.wrong("x", "a quantity is shown over a swept key, a series over its own axis")
    mark = None
    if level is not None:
        mark = (level.number("value") or 0.0, level.text("words"))
        level.finish()
    made = Figure(
        id_,
        title,
        experiment,
        shows,
        form,
        x,
        line,
        tuple(panel or "variant" for panel in panels),
        _cell(table.plain("cell")),
        table.truth("log"),
        table.truth("log_y"),
        table.truth("zero", default=True),
        mark,
    )
    table.finish()
    return made


def _claim(table: Table, experiments: Mapping[str, Experiment]) -> Claim:
    id_, kind = table.text("id"), table.choice("kind", KINDS)
    place, words = table.text("place"), table.text("words")
    reason, paper = table.maybe("reason"), table.maybe("paper")
    table.texts("varied")
    checks = tuple(_check(one, experiments) for one in table.entries("check"))
    table.finish()
    if (reason is None) == (not checks):
        raise table.wrong("check", "checks decide it, or there is a reason why it is not tested")
    return Claim(id_, kind, place, words, checks, reason, paper)


def _check(table: Table, experiments: Mapping[str, Experiment]) -> Check:
    arithmetic = table.maybe("arithmetic")
    side = None if arithmetic is not None else _side(table, experiments, None)
    given = [key for key in (*LIMITS, *COMPARISONS) if table.has(key)]
    if len(given) != 1 or (side is None and given[0] in COMPARISONS):
        raise table.wrong("check", f"one of {', '.join((*LIMITS, *COMPARISONS))} is needed")
    how = given[0]
    low = high = None
    by, other = 0.0, None
    if how == "between":
        limits = table.list_of(how)
        if len(limits) != 2 or not all(isinstance(one, int | float) for one in limits):
            raise table.wrong(how, "two numbers are needed")
        low, high = map(float, limits)
        if low > high:
            raise table.wrong(how, f"{limits[0]} is greater than {limits[1]}")
    elif how == "at_least":
        low = table.number(how)
    elif how == "at_most":
        high = table.number(how)
    else:
        inner = table.table(how)
        assert inner is not None
        other = _side(inner, experiments, side)
        own = inner.number("within" if how == "similar_to" else "by")
        mine = table.number("within" if how == "similar_to" else "by")
        by = own if own is not None else mine if mine is not None else 0.0
        if how == "similar_to" and by <= 0:
            raise table.wrong("within", "a share above 0 is needed")
        inner.finish()
    why = table.maybe("margin_says") or ""
    table.finish()
    return Check(side, arithmetic, low, high, how, other, by, why)


def _side(table: Table, experiments: Mapping[str, Experiment], of: Side | None) -> Side:
    experiment = table.maybe("experiment") or (of.experiment if of else None)
    quantity = table.maybe("quantity") or (of.quantity if of else None)
    if experiment is None or quantity is None:
        raise table.wrong("experiment", "an experiment and a quantity are needed")
    if experiment not in experiments:
        raise table.wrong("experiment", f"{experiment} is none of {', '.join(experiments)}")
    found = experiments[experiment]
    if found.path is not None and quantity not in found.quantities:
        raise table.wrong("quantity", f"{quantity} is none of {', '.join(found.quantities)}")
    return Side(experiment, quantity, _cell(table.plain("cell")), found.lost)


def _cell(plain: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {
        key: tuple(written(one) for one in (value if isinstance(value, list) else [value]))
        for key, value in plain.items()
    }


def written(value: Any) -> str:
    """A value as the column of a swept parameter has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(table: Table, experiments: Mapping[str, Experiment]) -> Iterator[Number]:
    for one in table.entries("number"):
        has_side = one.has("experiment")
        value = one.number("value")
        if value is None:
            raise one.wrong("value", "a number is needed")
        yield Number(
            id=one.maybe("id"),
            what=one.text("what"),
            value=value,
            unit=one.text("unit"),
            place=one.text("place"),
            certainty=one.choice("certainty", CERTAINTIES),
            side=_side(one, experiments, None) if has_side else None,
            note=one.maybe("note"),
        )
        one.finish()
    for one in table.entries("table"):
        yield from _rows(one, experiments)
        one.finish()


def _rows(table: Table, experiments: Mapping[str, Experiment]) -> Iterator[Number]:
    id_, place = table.text("id"), table.text("place")
    certainty = table.choice("certainty", CERTAINTIES)
    experiment, note = table.maybe("experiment"), table.maybe("note")
    key, columns = table.texts("key"), table.plain("columns")
    units, cell = table.plain("units"), _cell(table.plain("cell"))
    if experiment is not None and experiment not in experiments:
        raise table.wrong("experiment", f"{experiment} is none of {', '.join(experiments)}")
    for row in table.list_of("rows"):
        if not isinstance(row, list) or len(row) != len(key) + len(columns):
            raise table.wrong("rows", f"{len(key) + len(columns)} values are needed in {row}")
        values = [written(one) for one in row[: len(key)]]
        called = ", ".join(values)
        for (column, quantity), value in zip(columns.items(), row[len(key) :], strict=True):
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue  # A dash: the table prints no number there.
            side = None
            if experiment is not None and quantity:
                own = {name: (one,) for name, one in zip(key, values, strict=True)}
                found = experiments[experiment]
                side = Side(experiment, quantity, {**cell, **own}, found.lost)
                if found.path is not None and quantity not in found.quantities:
                    raise table.wrong("columns", f"{experiment} has no quantity {quantity}")
            unit = str(units.get(column, ""))
            yield Number(
                id_,
                f"{column}: {called}",
                float(value),
                unit,
                place,
                certainty,
                side,
                note,
                row=tuple(values),
                column=column,
            )
