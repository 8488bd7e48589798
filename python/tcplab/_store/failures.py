"""Keeps a list of failed runs beside the results of the runs that succeeded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tcplab import _core
from tcplab._store.atomic_write import put
from tcplab._store.lock import locked
from tcplab._warnings import warn

FAILED = "failed.json"


def keep_failed(folder: Path, plans: Sequence[_core.Plan], failed: Mapping[str, str]) -> None:
    """Records which of these runs failed, and why. Earlier records of other runs are kept."""
    path = folder / FAILED
    if not failed and not path.exists():
        return
    try:
        with locked(folder):
            known = failures(folder)
            for plan in plans:
                known.pop(plan.id, None)
            known |= failed
            if not known:
                path.unlink(missing_ok=True)
                return
            runs = [{"run": run, "reason": reason} for run, reason in known.items()]
            put((json.dumps({"failed": runs}, indent=1) + "\n").encode(), path)
    except OSError as error:
        warn(f"{path}: failed runs cannot be listed: {(error.strerror or 'unknown').lower()}")


def failures(folder: Path) -> dict[str, str]:
    """The reason for each failed run, by its id."""
    try:
        read = json.loads((folder / FAILED).read_text(encoding="utf-8"))
        return {str(one["run"]): str(one["reason"]) for one in read["failed"]}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
