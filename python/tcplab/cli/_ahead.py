"""Loads modules in a thread, while experiments run."""

from __future__ import annotations

import threading
from contextlib import suppress
from importlib import import_module


def load(*modules: str) -> None:
    """Begins to load modules."""
    threading.Thread(target=_load, args=modules).start()


def _load(*modules: str) -> None:
    # An import that fails here fails again where it is needed, unless the command ends meanwhile.
    with suppress(Exception):
        for module in modules:
            import_module(module)
