"""A hash of everything a class does: the same in every process, different if any part of it
changes.

Source text would not be enough: a REPL keeps none, and two classes made by one factory share
theirs. The hash covers the code of all methods and everything that decides what this code does:
default values, closures, class attributes, base classes, and the globals that the code names,
followed through functions, classes, modules and objects of the user's own. A module counts by the
current values of the attributes that code reads; where these cannot be determined, by all of its
attributes. Libraries count by name and version.

Files are not looked at: an edited file is not the code that was loaded.

Nothing specific to a process is hashed: no addresses, no order of sets, no file names, no line
numbers.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import importlib
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

NOT_BEHAVIOUR = frozenset(
    [
        "__abstractmethods__",
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__dataclass_fields__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__orig_bases__",
        "__parameters__",
        "__qualname__",
        "__static_attributes__",
        "__weakref__",
        "_abc_impl",
    ]
)
"""Attributes of classes that do not affect behaviour, or that follow from other attributes."""

PLAIN = (bool, bytes, complex, float, int, str, range, types.EllipsisType, types.NoneType)
"""Types whose `repr` determines the value."""

NOT_CONTENTS = frozenset(
    [
        "__annotations__",
        "__builtins__",
        "__cached__",
        "__conditional_annotations__",
        "__doc__",
        "__file__",
        "__loader__",
        "__name__",
        "__package__",
        "__path__",
        "__spec__",
    ]
)
"""Attributes of modules that only say where the module was loaded from."""

LOADS = frozenset(["LOAD_FROM_DICT_OR_GLOBALS", "LOAD_GLOBAL", "LOAD_NAME"])
"""Bytecode instructions that look a name up in the globals."""

ATTRIBUTES = frozenset(["LOAD_ATTR", "LOAD_METHOD"])
"""Bytecode instructions that look an attribute up."""

INSTALLED = frozenset(["dist-packages", "site-packages"])
"""The names of folders that hold libraries, wherever they are."""

LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))


class UnstableError(Exception):
    """A value differs in every process. The message names it and the way it is reached."""


def fingerprint(thing: Any) -> str:
    """The hash, in hexadecimal digits.

    Raises:
        UnstableError: Part of the thing has no representation that is equal in every process.
    """
    hashed = _Hash()
    # Bytecode has another meaning in another version of Python.
    hashed.words("python", sys.implementation.cache_tag or sys.version)
    try:
        hashed.value(thing, ())
    except RecursionError:
        raise UnstableError("too deeply nested") from None
    return hashed.sum.hexdigest()


class _Hash:
    """A walk through values. `way` says how a value is reached: `on_ack`, `the global "x"`."""

    def __init__(self) -> None:
        self.sum = hashlib.sha256()
        self._seen: dict[int, tuple[int, Any]] = {}

    def words(self, *words: str) -> None:
        for word in words:
            encoded = word.encode(errors="surrogatepass")
            self.sum.update(b"%d:%b" % (len(encoded), encoded))

    def value(self, value: Any, way: tuple[str, ...]) -> None:
        """Adds any value."""
        kind = type(value)
        if kind in PLAIN:
            self.words(kind.__name__, repr(value))
        elif kind is tuple:
            self._sequence("tuple", value, way)
        elif kind in (set, frozenset):
            self._set(kind.__name__, value, way)
        elif isinstance(value, types.CodeType):
            self._code(value, way)
        elif isinstance(value, types.ModuleType) and _is_library(value.__name__, value):
            self.words("module", *_module(value.__name__))
        elif id(value) in self._seen:
            self.words("seen", str(self._seen[id(value)][0]))
        else:
            # Keeping the value alive prevents a new object from getting its address.
            self._seen[id(value)] = (len(self._seen), value)
            self._large(value, way)

    def _large(self, value: Any, way: tuple[str, ...]) -> None:
        """Adds a value that may contain itself."""
        if type(value) is list:
            self._sequence("list", value, way)
        elif type(value) is dict:
            self._sequence("dict", [part for pair in value.items() for part in pair], way)
        elif isinstance(value, (type, types.FunctionType)) and _is_of_library(value):
            self.words("library", *_module(value.__module__), value.__qualname__)
        elif isinstance(value, types.ModuleType):
            self.words("contents", value.__name__)
            contents = {
                name: vars(value)[name] for name in sorted(vars(value).keys() - NOT_CONTENTS)
            }
            self._named(contents, way, f"{value.__name__}.{{}}")
        elif isinstance(value, type):
            self._class(value, way)
        elif isinstance(value, types.FunctionType):
            self._function(value, way)
        elif isinstance(value, types.BuiltinFunctionType):
            self._builtin(value, way)
        elif isinstance(value, DESCRIPTORS):
            self.words("descriptor", value.__name__)
        elif (inner := _wrapped(value)) is not None:
            self._sequence(type(value).__name__, inner, way)
        else:
            self._object(value, way)

    def _sequence(self, what: str, values: Iterable[Any], way: tuple[str, ...]) -> None:
        values = list(values)
        self.words(what, str(len(values)))
        for value in values:
            self.value(value, way)

    def _set(self, what: str, values: Iterable[Any], way: tuple[str, ...]) -> None:
        """Adds a set. The iteration order of a set differs between processes."""
        sums = []
        for value in values:
            alone = _Hash()
            alone.value(value, way)
            sums.append(alone.sum.hexdigest())
        self.words(what, *sorted(sums))

    def _named(self, values: Mapping[str, Any], way: tuple[str, ...], named: str = "{}") -> None:
        for name, value in values.items():
            self.words(name)
            self.value(value, (*way, named.format(name)))

    def _code(self, code: types.CodeType, way: tuple[str, ...]) -> None:
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.words("code", *map(str, counts))
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            self.words(str(len(names)), *names)
        self.value(code.co_code, way)
        self.value(code.co_exceptiontable, way)
        self.value(code.co_consts, way)

    def _function(self, function: types.FunctionType, way: tuple[str, ...]) -> None:
        self.words("function")
        way = way or (function.__name__,)
        code = function.__code__
        self._code(code, way)
        self.value(function.__defaults__, (*way, "a default value"))
        self.value(function.__kwdefaults__, (*way, "a default value"))
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        self._named({name: _content(cell) for name, cell in cells}, way, 'the outer variable "{}"')
        if not _is_of_library(function, local=True):
            known = function.__globals__
            found = [
                _reached(known[name], name, attributes)
                for name, *attributes in _globals(code)
                if name in known
            ]
            self._named(dict(found), way, 'the global "{}"')
            self._named(dict(_imported(code, known)), way, 'the imported "{}"')
        self._named(vars(function), way)

    def _class(self, cls: type, way: tuple[str, ...]) -> None:
        self.words("class", cls.__name__)
        self._sequence("bases", [type(cls), *cls.__bases__], way)
        members = {name: vars(cls)[name] for name in sorted(vars(cls).keys() - NOT_BEHAVIOUR)}
        self._named(members, way, f"{cls.__name__}.{{}}")

    def _builtin(self, function: types.BuiltinFunctionType, way: tuple[str, ...]) -> None:
        owner = function.__self__
        self.words("builtin", function.__qualname__)
        if owner is None or isinstance(owner, types.ModuleType):
            self.words(*_module(function.__module__ or "builtins"))
        else:
            self.value(owner, way)

    def _object(self, value: Any, way: tuple[str, ...]) -> None:
        """Adds an object by the state that pickling would keep."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts = reduce(value) if reduce else value.__reduce_ex__(2)
        except Exception:
            kind = type(value)
            name = kind.__qualname__
            name = name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"
            raise UnstableError(f"{': '.join(way)}: an object of {name}") from None
        if isinstance(parts, str):
            self.words("name", type(value).__module__, parts)
            self.value(type(value), way)
            if not _is_of_library(type(value)):
                self.value(getattr(value, "__dict__", None), way)
            return
        make, arguments, *state = parts
        # Pickling gives the items of lists and dicts as iterators.
        state = [list(part) if isinstance(part, Iterator) else part for part in state]
        self._sequence("object", [make, arguments, *state], way)


DESCRIPTORS = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)


def _wrapped(value: Any) -> list[Any] | None:
    """The function inside a wrapper, without what the wrapper remembers of calls."""
    match value:
        case staticmethod() | classmethod():
            return [value.__func__]
        case property():
            return [value.fget, value.fset, value.fdel]
        case types.MethodType():
            return [value.__func__, value.__self__]
        case functools.cached_property():
            return [value.func]
    return [value.__wrapped__] if hasattr(value, "__wrapped__") else None


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _globals(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    """The names that code looks up in the globals, in order, including those in nested code.

    Each name is followed by the chain of attributes looked up from it: `a.b.c`.
    """
    chain: tuple[str, ...] = ()
    for instruction in _instructions(code):
        if chain and instruction.opname in ATTRIBUTES:
            chain += (instruction.argval,)
            continue
        if chain:
            yield chain
        chain = (instruction.argval,) if instruction.opname in LOADS else ()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals(constant)


def _reached(value: Any, name: str, attributes: Iterable[str]) -> tuple[str, Any]:
    """The value that code reads through a global, and its name. For a module of the user's own,
    that is one attribute.
    """
    for attribute in attributes:
        if not isinstance(value, types.ModuleType) or _is_library(value.__name__, value):
            break
        if attribute not in vars(value):
            # The attribute is created at run time, or does not exist.
            break
        value = vars(value)[attribute]
        name = f"{name}.{attribute}"
    return name, value


def _imported(code: types.CodeType, known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The user's own modules that code imports when it runs, or the names it takes from them."""
    instructions = _instructions(code)
    for place, instruction in enumerate(instructions):
        if instruction.opname != "IMPORT_NAME":
            continue
        level, names = (before.argval for before in instructions[place - 2 : place])
        name = instruction.argval
        try:
            if level:
                name = importlib.util.resolve_name("." * level + name, known.get("__package__"))
            if name.partition(".")[0] in sys.stdlib_module_names:
                continue
            # The code would import the module itself.
            module = importlib.import_module(name)
        except Exception:
            # The import fails here as it would in the code.
            continue
        if _is_library(name, module):
            yield name, module
        elif names:
            yield from (_reached(module, name, [one]) for one in names)
        else:
            yield name, module
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _imported(constant, known)


def _instructions(code: types.CodeType) -> list[dis.Instruction]:
    return [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]


def _is_of_library(thing: Any, *, local: bool = False) -> bool:
    """Whether a thing came with Python or was installed, and has a name in its module. With
    `local`, things without such a name count too.
    """
    name = getattr(thing, "__module__", None) or "builtins"
    if "<locals>" in thing.__qualname__ and not local:
        # A library created it inside a function for its user.
        return False
    return _is_library(name, sys.modules.get(name))


def _is_library(name: str, module: types.ModuleType | None) -> bool:
    """Whether a module came with Python or was installed."""
    top = name.partition(".")[0]
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == "tcplab":
        return True
    # Packages of several distributions have no file.
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    file = next(filter(None, places), "")
    return file.startswith(LIBRARIES) or not INSTALLED.isdisjoint(Path(file).parts)


def _module(name: str) -> tuple[str, str]:
    """A module by its name and version; without a version, by its source."""
    top = name.partition(".")[0]
    module = sys.modules.get(top)
    version = getattr(module, "__version__", None)
    file = getattr(sys.modules.get(name), "__file__", None)
    if isinstance(version, str):
        return name, version
    if top in sys.stdlib_module_names or file is None:
        return name, ""
    source = Path(file)
    files = sorted(source.parent.rglob("*.py")) if source.name == "__init__.py" else [source]
    try:
        contents = [one.read_bytes() for one in files]
    except OSError:
        return name, ""
    return name, hashlib.sha256(b"\0".join(contents)).hexdigest()
