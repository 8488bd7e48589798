"""The methods that every experiment has: work out its runs, change its values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from tcplab import _core
from tcplab._cc import registry
from tcplab._experiment.values import Value, from_plain, to_plain


@dataclass(frozen=True)
class Source:
    """The file that an experiment was read from."""

    name: str
    text: str
    is_json: bool
    read: dict[str, Any] | None = None
    """The values as read from the file. An experiment that differs from them no longer has line
    numbers.
    """
    changes: tuple[tuple[str, str], ...] = ()
    """Values set after reading, as JSON, each with the path of its key."""
    parsed: _core.Document | None = field(default=None, compare=False, repr=False)
    """The document made when the experiment was read, so that no file is parsed twice."""

    def document(self) -> _core.Document:
        """The file as a Rust document, which knows the line of every value."""
        if self.parsed is not None:
            return self.parsed
        read = _core.Document.from_json if self.is_json else _core.Document.from_toml
        document = read(self.text, self.name)
        for path, value in self.changes:
            document = document.changed(path, value)
        return document

    def __getstate__(self) -> dict[str, Any]:
        # A document cannot be pickled; it is parsed again from the text.
        return {**self.__dict__, "parsed": None}


class Runnable(Value):
    """The methods of an experiment that are not generated."""

    def plans(self, backend: str = "sim", *, kernel: str | None = None) -> list[_core.Plan]:
        """Returns all runs that the experiment asks for: each variant with each of its repetitions.

        A `kernel` given here takes precedence over the experiment's own on the backend `linux`.

        Raises:
            ConfigError: The experiment cannot be run. The error names every mistake with its place.
        """
        plain = self.to_dict()
        text = json.dumps(plain)
        registry.refresh(text)
        return self._document(plain, text).plans(backend, kernel)

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Returns the same experiment with other values, each given by the path of its key as in a
        sweep: `{"flows[0].cc": "bbr"}`.

        In a path, `flows.download` is the flow of this name, `flows.*` is every flow, and a
        parameter is its own path. A key that is swept gets the value in all runs instead.

        Raises:
            ConfigError: A path leads nowhere, or its key gets its values from another place.
        """
        plain = self.to_dict()
        source = source_of(self, plain)
        document = self._document(plain, json.dumps(plain))
        given = []
        for path, value in changes.items():
            text = json.dumps(to_plain(value, path))
            document = document.changed(path, text)
            given.append((path, text))
        read = json.loads(document.to_json())
        experiment = from_plain(type(self), {"duration": None} | read)
        if not isinstance(experiment, type(self)):
            # `plans` fails with an error that names the key.
            document.plans("sim")
            raise _core.ConfigError(f"{', '.join(changes)}: an experiment has no such key")
        if source is not None:
            now = (*source.changes, *given)
            source = replace(source, changes=now, read=experiment.to_dict(), parsed=document)
            object.__setattr__(experiment, "_source", source)
        return experiment

    def contained(self) -> dict[str, Any] | None:
        """The experiment as plain values, with the files that it names replaced by their content;
        `None` if it names no file.
        """
        plain = self.to_dict()
        contained = self._document(plain, json.dumps(plain)).contained()
        return None if contained is None else json.loads(contained)

    def _document(self, plain: dict[str, Any], text: str) -> _core.Document:
        """The file that the experiment came from, so that mistakes have line numbers; without a
        file, a document of the plain values.
        """
        source = source_of(self, plain)
        return source.document() if source is not None else _core.Document.from_json(text)


def source_of(experiment: Runnable, plain: dict[str, Any]) -> Source | None:
    """The file that an experiment came from, unless its values (`plain`) were changed since."""
    source: Source | None = experiment.__dict__.get("_source")
    return source if source is not None and source.read == plain else None
