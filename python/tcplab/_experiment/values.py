"""Converts the parts of an experiment to plain values and back."""

from __future__ import annotations

import dataclasses
import inspect
import math
import operator
import re
import types
import typing
from collections.abc import Iterable, Mapping
from decimal import Decimal, localcontext
from functools import partial
from os import PathLike, fspath
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from tcplab._core import ConfigError

DEEPEST = 32
"""The deepest nesting of an experiment. A value nested deeper contains itself."""


Kind = TypeVar("Kind")


@typing.dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
def part(kind: type[Kind]) -> type[Kind]:
    """Makes a class a part of an experiment: the names declared in it are its keys."""
    return dataclasses.dataclass(kw_only=True, init=False, repr=False, eq=False)(kind)


class _Signature:
    """The arguments of a part, for `help` and notebooks."""

    def __get__(self, _part: object, kind: type[Value]) -> inspect.Signature:
        parameter = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
        parameters = []
        for field in fields_of(kind):
            given = {} if field.default is dataclasses.MISSING else {"default": field.default}
            parameters.append(parameter(field.name, annotation=field.type, **given))
        return inspect.Signature(parameters)


@part
class Value:
    """A part of an experiment. Parts are immutable: `replace` returns a changed copy.

    Methods that `dataclass` would compile for each class are written once here: there are 75
    classes, and every command loads them. Compiled, they took six times as long to load.
    """

    KIND: ClassVar[str | None] = None

    __signature__ = _Signature()

    def __init__(self, **keys: Any) -> None:
        values = {field.name: field.default for field in fields_of(self)}
        if unknown := keys.keys() - values.keys():
            there = f"there is no {min(unknown)!r}; there are {', '.join(values)}"
            raise TypeError(f"{type(self).__name__}: {there}")
        values |= keys
        if missing := [name for name, value in values.items() if value is dataclasses.MISSING]:
            raise TypeError(f"{type(self).__name__}: {missing[0]!r} is missing")
        vars(self).update(values)

    if not typing.TYPE_CHECKING:
        # Type checkers know that parts are frozen. They would take these for leave to set any name.

        def __setattr__(self, name: str, _value: object) -> NoReturn:
            raise dataclasses.FrozenInstanceError(f"cannot assign to {name!r}: use `replace`")

        def __delattr__(self, name: str) -> NoReturn:
            raise dataclasses.FrozenInstanceError(f"cannot delete {name!r}")

    def to_dict(self) -> dict[str, Any]:
        """Returns this part as plain dicts, lists, texts and numbers, with the keys set."""
        plain = to_plain(self, "")
        assert isinstance(plain, dict)
        return plain

    def __repr__(self) -> str:
        """The keys that are set, as a constructor call."""
        given = ((field.name, getattr(self, field.name)) for field in fields_of(self))
        inside = ", ".join(f"{name}={value!r}" for name, value in given if value is not None)
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        """Whether the other value is of the same class, with equal keys."""
        if other.__class__ is not self.__class__:
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        """A hash of all keys."""
        return hash(_values(self))

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with other values for these keys."""
        return dataclasses.replace(self, **changes)


def _values(of: Any) -> tuple[Any, ...]:
    """The values of all keys."""
    return tuple(getattr(of, field.name) for field in fields_of(of))


def key_of(field: str) -> str:
    """The key of an experiment file that belongs to a field: `from` for `from_`."""
    return field.removesuffix("_")


def to_plain(value: Any, place: str, depth: int = 0) -> Any:
    """A value in the types of JSON.

    The Rust side decides whether the value makes sense in its place; only values that JSON cannot
    represent are refused here.
    """
    if depth > DEEPEST:
        raise ConfigError(f"{place[:60]}...: is nested too deeply")
    if isinstance(value, str):
        return rounded(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise ConfigError(f"{place}: {value} is not a number to calculate with")
    if isinstance(value, Value):
        fields = {key_of(field.name): getattr(value, field.name) for field in fields_of(value)}
        kind = {} if value.KIND is None else {"kind": value.KIND}
        return to_plain(kind | fields, place, depth)
    if isinstance(value, Mapping):
        return _table(value, place, depth)
    if isinstance(value, PathLike):
        return fspath(value)
    for conversion in (operator.index, float):
        # Numbers of other libraries, such as numpy.
        if not isinstance(value, Iterable) and hasattr(value, f"__{conversion.__name__}__"):
            return to_plain(conversion(value), place, depth)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, set, frozenset)):
        items = enumerate(value)
        return [to_plain(item, f"{place}[{number}]", depth + 1) for number, item in items]
    raise ConfigError(f"{place}: {value!r} is not text, a number, a list or a table")


QUANTITY = re.compile(r"\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?)\s*([^\d\s.].*?)\s*", re.IGNORECASE)

FINEST = {
    "ps": 0, "ns": 3, "us": 6, "µs": 6, "ms": 9, "s": 12,
    "bit/s": 0, "kbit/s": 3, "Mbit/s": 6, "Gbit/s": 9, "Tbit/s": 12,
    "k": 3, "M": 6, "G": 9, "T": 12,
    "B": 0, "kB": 3, "MB": 6, "GB": 9, "TB": 12,
}  # fmt: skip
"""The number of decimals allowed in each unit: down to a picosecond, a bit/s, a byte."""

FLOAT_DIGITS = 15
"""Numbers with more digits come from floats: `f"{0.7 * 3} s"` is 2.0999999999999996 s."""


def rounded(text: str) -> str:
    """Rounds a quantity that was formatted from a float to the finest step, in plain decimals.

    Other text is returned unchanged.
    """
    found = QUANTITY.fullmatch(text)
    if found is None or found[2] not in FINEST:
        return text
    number = Decimal(found[1])
    digits = len(number.as_tuple().digits)
    if "e" not in found[1].lower() and digits <= FLOAT_DIGITS:
        return text
    if not -30 < number.adjusted() < 30:
        return text
    step = Decimal(1).scaleb(-FINEST[found[2]])
    with localcontext(prec=80):
        if digits > FLOAT_DIGITS and number % step != 0:
            number = number.quantize(step)
    return f"{number:f} {found[2]}"


def _table(table: Mapping[Any, Any], place: str, depth: int) -> dict[str, Any]:
    plain = {}
    for key, value in table.items():
        inner = f"{place}.{key}" if place else f"{key}"
        if not isinstance(key, str):
            raise ConfigError(f"{inner}: the key {key!r} is not text")
        converted = to_plain(value, inner, depth + 1)
        if converted is not None:
            plain[key] = converted
    return plain


def fields_of(value: type[Value] | Value) -> list[dataclasses.Field[Any]]:
    """The fields of a part of an experiment."""
    return list(dataclasses.fields(value))


def from_plain(kind: Any, plain: Any) -> Any:
    """Converts a plain value to the class that belongs in its place; a value that fits no class is
    returned as it is.

    `kind` is the type of that place, such as `Dumbbell | Mapping[str, Any] | None`.
    """
    if isinstance(plain, dict):
        for option in _options(kind):
            if isinstance(option, type) and issubclass(option, Value) and _fits(option, plain):
                types_of = _types(option)
                keys = {key_of(name): name for name in types_of}
                values = {keys[key]: value for key, value in plain.items() if key != "kind"}
                return option(**{k: from_plain(types_of[k], v) for k, v in values.items()})
            if typing.get_origin(option) in (dict, Mapping) and option != Mapping[str, Any]:
                inner = typing.get_args(option)[1]
                return {key: from_plain(inner, value) for key, value in plain.items()}
    if isinstance(plain, list):
        inner = next((typing.get_args(o)[0] for o in _options(kind) if typing.get_args(o)), Any)
        return tuple(from_plain(inner, item) for item in plain)
    return plain


def _fits(option: type[Value], plain: dict[str, Any]) -> bool:
    """Whether the class has all of these keys and requires no others."""
    if plain.get("kind") != option.KIND:
        return False
    known = {key_of(field.name): field for field in fields_of(option)}
    needed = {key for key, field in known.items() if field.default is dataclasses.MISSING}
    return needed <= plain.keys() and plain.keys() - {"kind"} <= known.keys()


def _types(option: type[Value]) -> dict[str, Any]:
    """The types of the fields of a class."""
    hints = typing.get_type_hints(option)
    return {field.name: hints[field.name] for field in fields_of(option)}


def _options(kind: Any) -> tuple[Any, ...]:
    """The members of a union; for any other type, the type alone."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return typing.get_args(kind)
    return (kind,)
