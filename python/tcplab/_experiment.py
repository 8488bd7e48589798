"""What can be done with an experiment: work out its runs, read it from a file."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab import _core, _own
from tcplab._values import Value, from_plain, to_plain

if TYPE_CHECKING:
    from tcplab.experiment import Experiment

MOST_BYTES = 64_000_000
"""Of an experiment's file: a million flows, one by one, have half of that."""


@dataclass(frozen=True)
class Source:
    """The file that an experiment was read from."""

    name: str
    text: str
    read: dict[str, Any] | None = None
    """What was read from it: an experiment that changed since is no longer the file's."""

    def document(self) -> _core.Document:
        """The file as the Rust side knows it: with the line of every value."""
        if self.name.endswith(".json"):
            return _core.Document.from_json(self.text, self.name)
        return _core.Document.from_toml(self.text, self.name)


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
        _own.refresh(text)
        return self._document(plain, text).plans(backend, kernel)

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
    from tcplab.experiment import Experiment  # noqa: PLC0415 (it is made of this module's classes)

    try:
        text = _content(Path(path)).decode("utf-8")
    except UnicodeDecodeError:
        raise _core.ConfigError(f"{path}: this is not a text file (UTF-8)") from None
    # Names that are not text are shown as far as they are.
    name = str(path).encode(errors="replace").decode()
    source = Source(name, text.removeprefix("\N{BYTE ORDER MARK}"))
    document = source.document()
    # The duration may be missing here, if it is swept.
    experiment = from_plain(Experiment, {"duration": None} | json.loads(document.to_json()))
    if not isinstance(experiment, Experiment):
        document.plans("sim")
        raise _core.ConfigError(f"{path}: has keys that no experiment has")
    source = replace(source, read=experiment.to_dict())
    object.__setattr__(experiment, "_source", source)
    return experiment


def _content(path: Path) -> bytes:
    """A file, or what a shell or another program hands over (`<(command)`, `/dev/stdin`)."""
    is_handed_over = str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/"))
    if not (is_handed_over or path.is_dir() or stat.S_ISREG(path.stat().st_mode)):
        raise _core.ConfigError(f"{path}: is not a file")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        most = f"{MOST_BYTES / 1e6:.0f} MB"
        raise _core.ConfigError(f"{path}: is larger than {most}, the most that is read")
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
    from tcplab.experiment import Experiment  # noqa: PLC0415 (it is made of this module's classes)

    plain = to_plain(given, "")
    experiment = from_plain(Experiment, {"duration": None} | plain)
    if not isinstance(experiment, Experiment):
        # This names the keys, if they are what is wrong.
        _core.Document.from_json(json.dumps(plain)).plans("sim")
        raise _core.ConfigError("the dict has keys that no experiment has")
    return experiment
