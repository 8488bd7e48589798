"""Reads experiments from files, streams and plain values, and gives back their text."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from tcplab import _core
from tcplab._experiment.runnable import Source, source_of
from tcplab._experiment.toml_writer import written
from tcplab._experiment.values import from_plain, to_plain
from tcplab._schema import Experiment

MOST_BYTES = 64_000_000
"""The largest experiment file. A million flows listed one by one take half of this."""

STREAM = "<stdin>"
"""The name that messages give an experiment read from a stream."""


def load(path: str | PathLike[str]) -> Experiment:
    """Reads an experiment from a TOML file, or from a JSON file if its name ends with `.json`.

    Only `Experiment.plans` checks that the experiment can be run, and names the line of each
    mistake.

    Raises:
        ConfigError: The file is neither TOML nor JSON, or has unknown keys.
        OSError: The file cannot be read.
    """
    try:
        text = _content(Path(path)).decode("utf-8")
    except UnicodeDecodeError:
        raise _core.ConfigError(f"{path}: this is not a text file (UTF-8)") from None
    # A file name that is not valid text is shown with replacement characters.
    name = str(path).encode(errors="replace").decode()
    return _of_text(text, name, is_json=name.endswith(".json"))


def load_from(stream: BinaryIO) -> Experiment:
    """Reads an experiment from a stream: JSON if it begins with a brace, else TOML.

    Raises:
        ConfigError: The content is neither TOML nor JSON, or has unknown keys.
    """
    content = stream.read(MOST_BYTES + 1)
    try:
        text = _small(content, STREAM).decode("utf-8")
    except UnicodeDecodeError:
        raise _core.ConfigError(f"{STREAM}: this is not text (UTF-8)") from None
    return _of_text(text, STREAM, is_json=text.lstrip().startswith("{"))


def as_written(experiment: Experiment) -> tuple[str, str]:
    """The text of an experiment, and the ending for a file with it. The text of its own file is
    used unless the experiment was changed since or names other files, whose content the text then
    includes.
    """
    plain = experiment.to_dict()
    source = source_of(experiment, plain)
    if contained := experiment.contained():
        return written(contained), ".toml"
    if source is not None and not source.changes:
        return source.text, ".json" if source.is_json else ".toml"
    return written(plain), ".toml"


def _of_text(text: str, name: str, *, is_json: bool) -> Experiment:
    source = Source(name, text.removeprefix("\N{BYTE ORDER MARK}"), is_json)
    document = source.document()
    # The duration may be missing here, if it is swept.
    experiment = from_plain(Experiment, {"duration": None} | json.loads(document.to_json()))
    if not isinstance(experiment, Experiment):
        document.plans("sim")
        raise _core.ConfigError(f"{name}: has unknown keys")
    source = replace(source, read=experiment.to_dict(), parsed=document)
    object.__setattr__(experiment, "_source", source)
    return experiment


def _content(path: Path) -> bytes:
    """The content of a file, or of a pipe given by a shell or another program (`<(command)`,
    `/dev/stdin`).
    """
    is_handed_over = str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/"))
    if not (is_handed_over or path.is_dir() or stat.S_ISREG(path.stat().st_mode)):
        raise _core.ConfigError(f"{path}: is not a file")
    with path.open("rb") as file:
        return _small(file.read(MOST_BYTES + 1), path)


def _small(content: bytes, name: object) -> bytes:
    if len(content) > MOST_BYTES:
        most = f"{MOST_BYTES / 1e6:.0f} MB"
        raise _core.ConfigError(f"{name}: is larger than the limit of {most}")
    return content


def loaded(experiment: Experiment | Mapping[str, Any] | str | PathLike[str]) -> Experiment:
    """The experiment, whether given as itself, as a dict or by the path of its file.

    Raises:
        ConfigError: The file or the dict is not an experiment.
        OSError: The file cannot be read.
        TypeError: The argument is of another type.
    """
    if isinstance(experiment, (str, PathLike)):
        return load(experiment)
    if isinstance(experiment, Mapping):
        return _of_plain(experiment)
    if isinstance(experiment, Experiment):
        return experiment
    kind = type(experiment).__name__
    raise TypeError(f"an experiment, a dict or the path of a file is needed, not a {kind}")


def _of_plain(given: Mapping[str, Any]) -> Experiment:
    plain = to_plain(given, "")
    experiment = from_plain(Experiment, {"duration": None} | plain)
    if not isinstance(experiment, Experiment):
        # This call raises an error that names the keys, if keys are the mistake.
        _core.Document.from_json(json.dumps(plain)).plans("sim")
        raise _core.ConfigError("the dict has unknown keys")
    return experiment
