"""What every experiment can do, however it was made: work out its runs, take other values."""

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
    """What was read from it: an experiment that changed since is no longer the file's."""
    changes: tuple[tuple[str, str], ...] = ()
    """Values that were given since, as JSON, each with the path of its key."""
    parsed: _core.Document | None = field(default=None, compare=False, repr=False)
    """The file as `document` returned it when the experiment was read: no file is parsed twice."""

    def document(self) -> _core.Document:
        """The file as the Rust side knows it: with the line of every value."""
        if self.parsed is not None:
            return self.parsed
        read = _core.Document.from_json if self.is_json else _core.Document.from_toml
        document = read(self.text, self.name)
        for path, value in self.changes:
            document = document.changed(path, value)
        return document

    def __getstate__(self) -> dict[str, Any]:
        # A pickled document would need a form of its own; the text is enough to parse it again.
        return {**self.__dict__, "parsed": None}


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

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """The same experiment with other values, each by the path of its key, as in a sweep:
        `{"flows[0].cc": "bbr"}`.

        In a path, `flows.download` is the flow of this name and `flows.*` each of them; a parameter
        stands for itself. A key that is swept gets the value in all runs instead.

        Raises:
            ConfigError: A path leads nowhere, or something else gives the key its values.
        """
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
        experiment = from_plain(type(self), {"duration": None} | read)
        if not isinstance(experiment, type(self)):
            # The error of this call names the key.
            document.plans("sim")
            raise _core.ConfigError(f"{', '.join(changes)}: no experiment has such a key")
        if source is not None:
            now = (*source.changes, *given)
            source = replace(source, changes=now, read=experiment.to_dict(), parsed=document)
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
