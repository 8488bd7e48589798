"""The user's registered classes, and the versions that distinguish them."""

from __future__ import annotations

from typing import Any

from tcplab import _core
from tcplab._cc.fingerprint import UnstableError, fingerprint

registered: dict[str, tuple[Any, str]] = {}
"""All registered classes by name, each with its version."""

_versions: dict[str, tuple[Any, str]] = {}
"""The classes whose version is a fingerprint of their code, each with that version."""


def register(name: str, cls: Any, version: str | None) -> None:
    """Registers a class under a name.

    Raises:
        ConfigError: The name is not available, or no version can be computed.
    """
    found = _version(name, cls) if version is None else version
    _register(name, cls, found)
    if version is None:
        _versions[name] = cls, found
    else:
        _versions.pop(name, None)


def refresh(experiment: str) -> None:
    """Recomputes the versions of the classes that the text of an experiment names: globals that
    they use may have changed since registration.

    Raises:
        ConfigError: A class no longer has a version.
    """
    for name, (cls, version) in _versions.items():
        if f'"{name}"' not in experiment:
            continue
        now = _version(name, cls)
        if now != version:
            _register(name, cls, now)
            _versions[name] = cls, now


def _register(name: str, cls: Any, version: str) -> None:
    _core.register(name, cls, version)
    registered[name] = cls, version


def _version(name: str, cls: Any) -> str:
    try:
        return fingerprint(cls)[:12]
    except UnstableError as error:
        raise _core.ConfigError(
            f"{name}: {error} cannot be part of the version that tells its stored results from "
            "those of other classes; make it in `__init__`, or give `register` a `version`"
        ) from None
