"""What the folder of a study says: `study.toml`, `claims.toml`, `published.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcplab._core import ConfigError

FOLDER = Path(__file__).parent.parent / "papers"

KINDS = ("quantity", "order", "mechanism")

CERTAINTIES = ("stated", "recovered", "derived", "lost")

COMPARISONS = ("above", "below", "similar_to")

LIMITS = ("between", "at_least", "at_most")

Cell = Mapping[str, tuple[str, ...]]
"""Which runs: by the column of a swept parameter, the values that it may have."""


@dataclass(frozen=True)
class Quantity:
    """A number of a run: an aggregate over rows of one of its tables, in SQL."""

    name: str
    words: str
    unit: str
    value: str
    table: str = "runs"
    where: str | None = None


@dataclass(frozen=True)
class Experiment:
    """One of the study's experiments: the file that runs it, or why none does."""

    id: str
    title: str
    place: str
    path: Path | None
    reason: str | None
    quantities: Mapping[str, Quantity]


@dataclass(frozen=True)
class Side:
    """What is looked at: a quantity of an experiment in some of its cells."""

    experiment: str
    quantity: str
    cell: Cell


@dataclass(frozen=True)
class Check:
    """A statement that decides a claim. Its number is of runs, or follows from arithmetic alone."""

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
    """A claim of the study, in our words, and what decides it."""

    id: str
    kind: str
    place: str
    words: str
    checks: tuple[Check, ...]
    reason: str | None
    paper: str | None
    varied: tuple[str, ...]


@dataclass(frozen=True)
class Number:
    """A published number, and where we measure the same."""

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
    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    numbers: tuple[Number, ...] = ()


def names() -> list[str]:
    """The studies that are there."""
    return sorted(path.parent.name for path in FOLDER.glob("*/study.toml"))


def load(name: str) -> Study:
    """A study by its name.

    Raises:
        ConfigError: There is none of this name, or its files say what no study can.
    """
    if name not in names():
        raise ConfigError(f"{name!r} is no study; there are {', '.join(names())}")
    place = FOLDER / name
    about = _Table.of_file(place / "study.toml")
    texts = {
        key: about.text(key)
        for key in ("title", "authors", "published", "digest", "question", "found", "then")
    }
    year, quick = about.whole("year"), about.whole("quick")
    unknown = about.texts("unknown")
    experiments = {
        key: _experiment(key, table, place) for key, table in about.tables("experiments")
    }
    about.finish()
    claims = _Table.of_file(place / "claims.toml")
    numbers = _Table.of_file(place / "published.toml")
    study = Study(
        name=name,
        year=year,
        quick=quick,
        unknown=unknown,
        folder=place,
        experiments=experiments,
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


class _Table:
    """A table of a file. Who reads it takes each key; `finish` refuses those that nobody took."""

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        self.where = where
        self._left = dict(content)

    @classmethod
    def of_file(cls, path: Path) -> _Table:
        try:
            return cls(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
        except FileNotFoundError:
            raise ConfigError(f"{path}: there is no such file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {error}") from None

    def wrong(self, key: str, what: str) -> ConfigError:
        return ConfigError(f"{self.where}: {key}: {what}")

    def take(self, key: str, kinds: tuple[type, ...], what: str, *, needed: bool) -> Any:
        value = self._left.pop(key, None)
        if value is None and not needed:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.wrong(key, f"{what} is needed")
        return value

    def text(self, key: str) -> str:
        return str(self.take(key, (str,), "a text", needed=True))

    def maybe(self, key: str) -> str | None:
        value: str | None = self.take(key, (str,), "a text", needed=False)
        return value

    def choice(self, key: str, of: tuple[str, ...]) -> str:
        value = self.text(key)
        if value not in of:
            raise self.wrong(key, f"{value!r} is none of {', '.join(of)}")
        return value

    def whole(self, key: str) -> int:
        return int(self.take(key, (int,), "a whole number", needed=True))

    def number(self, key: str) -> float | None:
        value = self.take(key, (int, float), "a number", needed=False)
        return None if value is None else float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.take(key, (list,), "a list of texts", needed=False) or []
        if not all(isinstance(one, str) for one in value):
            raise self.wrong(key, "a list of texts is needed")
        return tuple(value)

    def list_of(self, key: str) -> list[Any]:
        return list(self.take(key, (list,), "a list", needed=True))

    def plain(self, key: str) -> dict[str, Any]:
        return dict(self.take(key, (dict,), "a table", needed=False) or {})

    def table(self, key: str) -> _Table | None:
        value = self.take(key, (dict,), "a table", needed=False)
        return None if value is None else _Table(value, f"{self.where}: {key}")

    def tables(self, key: str) -> Iterator[tuple[str, _Table]]:
        for name, content in self.plain(key).items():
            if not isinstance(content, dict):
                raise self.wrong(f"{key}.{name}", "a table is needed")
            yield name, _Table(content, f"{self.where}: {key}.{name}")

    def entries(self, key: str) -> Iterator[_Table]:
        found = self.take(key, (list,), "a list of tables", needed=False) or []
        for number, content in enumerate(found):
            if not isinstance(content, dict):
                raise self.wrong(key, "a list of tables is needed")
            own = content.get("id", number)
            yield _Table(content, f"{self.where}: {key} {own}")

    def finish(self) -> None:
        for key in self._left:
            raise self.wrong(key, "there is no such key here")


def _experiment(key: str, table: _Table, place: Path) -> Experiment:
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
    table.finish()
    if (file is None) == (reason is None):
        raise table.wrong("file", "a file runs it, or there is a reason why none does")
    path = None if file is None else place / file
    if path is not None and not path.is_file():
        raise table.wrong("file", f"{path} is not there")
    return Experiment(key, title, where, path, reason, quantities)


def _claim(table: _Table, experiments: Mapping[str, Experiment]) -> Claim:
    id_, kind = table.text("id"), table.choice("kind", KINDS)
    place, words = table.text("place"), table.text("words")
    reason, paper, varied = table.maybe("reason"), table.maybe("paper"), table.texts("varied")
    checks = tuple(_check(one, experiments) for one in table.entries("check"))
    table.finish()
    if (reason is None) == (not checks):
        raise table.wrong("check", "checks decide it, or there is a reason why it is not tested")
    return Claim(id_, kind, place, words, checks, reason, paper, varied)


def _check(table: _Table, experiments: Mapping[str, Experiment]) -> Check:
    arithmetic = table.maybe("arithmetic")
    side = None if arithmetic is not None else _side(table, experiments, None)
    given = [key for key in (*LIMITS, *COMPARISONS) if key in table._left]
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


def _side(table: _Table, experiments: Mapping[str, Experiment], of: Side | None) -> Side:
    experiment = table.maybe("experiment") or (of.experiment if of else None)
    quantity = table.maybe("quantity") or (of.quantity if of else None)
    if experiment is None or quantity is None:
        raise table.wrong("experiment", "an experiment and a quantity are needed")
    if experiment not in experiments:
        raise table.wrong("experiment", f"{experiment} is none of {', '.join(experiments)}")
    found = experiments[experiment]
    if found.path is not None and quantity not in found.quantities:
        raise table.wrong("quantity", f"{quantity} is none of {', '.join(found.quantities)}")
    return Side(experiment, quantity, _cell(table.plain("cell")))


def _cell(plain: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {
        key: tuple(_written(one) for one in (value if isinstance(value, list) else [value]))
        for key, value in plain.items()
    }


def _written(value: Any) -> str:
    """A value as the column of a swept parameter has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(table: _Table, experiments: Mapping[str, Experiment]) -> Iterator[Number]:
    for one in table.entries("number"):
        has_side = "experiment" in one._left
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


def _rows(table: _Table, experiments: Mapping[str, Experiment]) -> Iterator[Number]:
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
        values = [_written(one) for one in row[: len(key)]]
        called = ", ".join(values)
        for (column, quantity), value in zip(columns.items(), row[len(key) :], strict=True):
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue  # A dash: nothing is printed there.
            side = None
            if experiment is not None and quantity:
                own = {name: (one,) for name, one in zip(key, values, strict=True)}
                side = Side(experiment, quantity, {**cell, **own})
                found = experiments[experiment]
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
