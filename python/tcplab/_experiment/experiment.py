"""What can be done with an experiment: work out its runs, read it from a file."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tcplab import _core
from tcplab._cc import registry
from tcplab._experiment.toml_writer import written
from tcplab._experiment.values import Value, from_plain, to_plain

if TYPE_CHECKING:
    from tcplab._schema import Experiment

MOST_BYTES = 64_000_000
"""Of an experiment's file: a million flows, one by one, have half of that."""


STREAM = "<stdin>"
"""The name in messages of an experiment that comes from no file."""


@dataclass(frozen=True)
class Source:
    """The file that an experiment was read from."""

    name: str
    text: str
    is_json: bool
    read: dict[str, Any] | None = None
    """What was read from it: an experiment that changed since is no longer the file's."""
    changes: tuple[tuple[str, str], ...] = ()
    """Values that were given since, as JSON, each with the path of its key."""

    def document(self) -> _core.Document:
        """The file as the Rust side knows it: with the line of every value."""
        read = _core.Document.from_json if self.is_json else _core.Document.from_toml
        document = read(self.text, self.name)
        for path, value in self.changes:
            document = document.changed(path, value)
        return document


class Runnable(Value):
    """An experiment as far as it is not generated."""

    def plans(self, backend: str = "sim", *, kernel: str | None = None) -> list[_core.Plan]:
        """All runs that the experiment asks for: each variant with each of its repetitions.

        With `kernel`, the backend `linux` uses that one, whatever the experiment says.

        Raises:
            ConfigError: The experiment cannot be run. It names every mistake with its place.
        """
        plain = self.to_dict()
        text = json.dumps(plain)
        registry.refresh(text)
        return self._document(plain, text).plans(backend, kernel)

    def changed(self, changes: Mapping[str, Any]) -> Experiment:
        """The same experiment with other values, each by the path of its key, as in a sweep:
        `{"flows[0].cc": "bbr"}`.

        In a path, `flows.download` is the flow of this name and `flows.*` each of them; a parameter
        stands for itself. A key that is swept gets the value in all runs instead.

        Raises:
            ConfigError: A path leads nowhere, or something else gives the key its values.
        """
        from tcplab._schema import Experiment  # noqa: PLC0415 (made of this module's classes)

        plain = self.to_dict()
        source: Source | None = self.__dict__.get("_source")
        source = source if source is not None and source.read == plain else None
        document = self._document(plain, json.dumps(plain))
        given = []
        for path, value in changes.items():
            text = json.dumps(to_plain(value, path))
            document = document.changed(path, text)
            given.append((path, text))
        read = json.loads(document.to_json())
        experiment = from_plain(Experiment, {"duration": None} | read)
        if not isinstance(experiment, Experiment):
            # The error of this call names the key.
            document.plans("sim")
            raise _core.ConfigError(f"{', '.join(changes)}: no experiment has such a key")
        if source is not None:
            now = (*source.changes, *given)
            source = replace(source, changes=now, read=experiment.to_dict())
            object.__setattr__(experiment, "_source", source)
        return experiment

    def contained(self) -> dict[str, Any] | None:
        """The experiment as plain values, with the content of files that it names in their place;
        nothing if it names none.
        """
        plain = self.to_dict()
        contained = self._document(plain, json.dumps(plain)).contained()
        return None if contained is None else json.loads(contained)

    def _document(self, plain: dict[str, Any], text: str) -> _core.Document:
        """The file it came from, so that mistakes have lines; else what it is made of."""
        source: Source | None = self.__dict__.get("_source")
        if source is not None and source.read == plain:
            return source.document()
        return _core.Document.from_json(text)


def load(path: str | PathLike[str]) -> Experiment:
    """Reads an experiment from a TOML file, or from a JSON file if its name ends so.

    Whether it can be run, `Experiment.plans` says, with the line of each mistake.

    Raises:
        ConfigError: The file is neither, or has keys that no experiment has.
        OSError: The file cannot be read.
    """
    try:
        text = _content(Path(path)).decode("utf-8")
    except UnicodeDecodeError:
        raise _core.ConfigError(f"{path}: this is not a text file (UTF-8)") from None
    # Names that are not text are shown as far as they are.
    name = str(path).encode(errors="replace").decode()
    return _of_text(text, name, is_json=name.endswith(".json"))


def load_from(stream: BinaryIO) -> Experiment:
    """Reads an experiment from a stream: JSON if it begins with a brace, else TOML.

    Raises:
        ConfigError: It is neither, or has keys that no experiment has.
    """
    content = stream.read(MOST_BYTES + 1)
    try:
        text = _small(content, STREAM).decode("utf-8")
    except UnicodeDecodeError:
        raise _core.ConfigError(f"{STREAM}: this is not text (UTF-8)") from None
    return _of_text(text, STREAM, is_json=text.lstrip().startswith("{"))


def as_written(experiment: Experiment) -> tuple[str, str]:
    """The text of an experiment, and the ending of a file with it: that of its own file, unless it
    was changed since, or names files: their content then stands in the text.
    """
    source: Source | None = experiment.__dict__.get("_source")
    plain = experiment.to_dict()
    if contained := experiment.contained():
        return written(contained), ".toml"
    if source is not None and source.read == plain and not source.changes:
        return source.text, ".json" if source.is_json else ".toml"
    return written(plain), ".toml"


def _of_text(text: str, name: str, *, is_json: bool) -> Experiment:
    from tcplab._schema import Experiment  # noqa: PLC0415 (it is made of this module's classes)

    source = Source(name, text.removeprefix("\N{BYTE ORDER MARK}"), is_json)
    document = source.document()
    # The duration may be missing here, if it is swept.
    experiment = from_plain(Experiment, {"duration": None} | json.loads(document.to_json()))
    if not isinstance(experiment, Experiment):
        document.plans("sim")
        raise _core.ConfigError(f"{name}: has keys that no experiment has")
    source = replace(source, read=experiment.to_dict())
    object.__setattr__(experiment, "_source", source)
    return experiment


def _content(path: Path) -> bytes:
    """A file, or what a shell or another program hands over (`<(command)`, `/dev/stdin`)."""
    is_handed_over = str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/"))
    if not (is_handed_over or path.is_dir() or stat.S_ISREG(path.stat().st_mode)):
        raise _core.ConfigError(f"{path}: is not a file")
    with path.open("rb") as file:
        return _small(file.read(MOST_BYTES + 1), path)


def _small(content: bytes, name: object) -> bytes:
    if len(content) > MOST_BYTES:
        most = f"{MOST_BYTES / 1e6:.0f} MB"
        raise _core.ConfigError(f"{name}: is larger than {most}, the most that is read")
    return content


def loaded(experiment: Experiment | Mapping[str, Any] | str | PathLike[str]) -> Experiment:
    """The experiment itself, wherever it is.

    Raises:
        ConfigError: A file or a dict is none.
        OSError: The file cannot be read.
        TypeError: It is something else.
    """
    if isinstance(experiment, (str, PathLike)):
        return load(experiment)
    if isinstance(experiment, Mapping):
        return _of_plain(experiment)
    if isinstance(experiment, Runnable):
        return experiment
    kind = type(experiment).__name__
    raise TypeError(f"an experiment, a dict or the path of a file is needed, not a {kind}")


def _of_plain(given: Mapping[str, Any]) -> Experiment:
    from tcplab._schema import Experiment  # noqa: PLC0415 (it is made of this module's classes)

    plain = to_plain(given, "")
    experiment = from_plain(Experiment, {"duration": None} | plain)
    if not isinstance(experiment, Experiment):
        # This names the keys, if they are what is wrong.
        _core.Document.from_json(json.dumps(plain)).plans("sim")
        raise _core.ConfigError("the dict has keys that no experiment has")
    return experiment
