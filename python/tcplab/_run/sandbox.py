"""Decides which files programs of an experiment may read, and announces it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tcplab import _core
from tcplab._experiment.reading import STREAM
from tcplab._warnings import warn

if TYPE_CHECKING:
    from tcplab._schema import Experiment

SYSTEM = "the machine's programs and libraries"

OWN = tuple(map(Path, ("/dev", "/proc", "/sys")))
"""Folders that programs have their own instances of, with everything below."""

OWN_AND_WRITTEN = tuple(map(Path, ("/tmp", "/run")))
"""Folders that programs have their own instances of, but below which files of the machine can be
shown.
"""

MOST_FILES = 20_000

MOST_COMMANDS = 6
"""The number of command lines shown before a run; `tcplab check` shows all."""


@dataclass(frozen=True)
class Access:
    """The files that programs may read besides the machine's programs and libraries."""

    reads: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    """Folders within these that programs see as empty."""
    left_out: Path | None = None
    """The folder of the experiment's file, if it holds too much to be readable by default."""

    def state(self) -> bytes:
        """The current state of the readable files: other files, or other dates, are another state.

        A run of programs can be reused only if they would read the same. The machine's own programs
        are not included. Empty, which equals no other state, if there are too many files.
        """
        seen = hashlib.sha256()
        for number, line in enumerate(self._files()):
            if number == MOST_FILES:
                return b""
            seen.update(line.encode("utf-8", "surrogateescape"))
        said = {
            "reads": [str(path) for path in self.reads],
            "hidden": [str(path) for path in self.hidden],
            "files": seen.hexdigest(),
        }
        return (json.dumps(said, indent=2) + "\n").encode()

    def _files(self) -> Iterator[str]:
        for top in self.reads:
            yield _dated(top)
            for folder, folders, files in os.walk(top):
                folders[:] = sorted(n for n in folders if Path(folder, n) not in self.hidden)
                yield from (_dated(Path(folder, name)) for name in sorted(files))

    def __str__(self) -> str:
        text = " and ".join([SYSTEM, *map(str, self.reads)])
        if self.left_out is not None:
            text += (
                f", not {self.left_out}, where the experiment lies: other files lie there too "
                "(--allow-read FOLDER)"
            )
        return text


def access_for(
    experiment: Experiment,
    allow_read: Sequence[str | PathLike[str]],
    out: str | PathLike[str] | None,
) -> Access:
    """The files that programs of an experiment may read: the folder of the experiment's file, and
    the paths in `allow_read`.

    Raises:
        ConfigError: A path cannot be made readable.
    """
    allowed = tuple(named(path) for path in allow_read)
    source = experiment.__dict__.get("_source")
    # An experiment from a stream has no folder.
    if source is None or source.name == STREAM:
        return Access(allowed)
    folder = Path(source.name).parent.resolve()
    if not _is_shown(folder):
        return Access(allowed, left_out=folder)
    # Results beside the experiment may belong to other experiments.
    hidden = [folder / "results", *([] if out is None else [Path(out).resolve()])]
    inside = tuple(path for path in hidden if folder in path.parents)
    return Access((folder, *allowed), inside)


def _dated(path: Path) -> str:
    """A file with its size and date, or the kind of entry that is not a file."""
    try:
        found = path.lstat()
    except OSError:
        return f"{path}\0-\n"
    # The dates of sockets and pipes carry no information.
    date = found.st_mtime_ns if stat.S_ISREG(found.st_mode) else 0
    return f"{path}\0{found.st_mode:o} {found.st_size if date else 0} {date}\n"


def announce(plans: Sequence[_core.Plan], access: Access, *, show: bool) -> None:
    """Announces the programs about to run and what they may read; warns of missing isolation."""
    commands = commands_of(plans)
    if not commands:
        return
    if show:
        more = len(commands) - MOST_COMMANDS
        lines = [_core.printable(line) for line in commands[:MOST_COMMANDS]]
        lines += [f"... and {more} more"] if more > 0 else []
        text = "\n".join(["programs of this experiment:", *(f"  {line}" for line in lines)])
        sys.stderr.write(f"{text}\nthey may read {_core.printable(str(access))}\n")
        sys.stderr.flush()
    if missing := _core.missing_walls():
        warn(
            f"this machine has no {' and no '.join(missing)}: only the guest's kernel is between "
            "the experiment's programs and your files (see the page Security of the documentation)"
        )


def commands_of(plans: Sequence[_core.Plan]) -> list[str]:
    """The command lines of all plans, each once."""
    said = (f"{side} on {host}: {line}" for plan in plans for _, host, side, line in plan.commands)
    return list(dict.fromkeys(said))


def named(path: str | PathLike[str]) -> Path:
    """A file or folder named by the user, as a path that the guest can show."""
    found = Path(path).resolve()
    said = f"{os.fspath(path)!r} cannot be read by programs"
    if not found.exists():
        raise _core.ConfigError(f"{said}: there is no such file or folder")
    if found == Path("/"):
        raise _core.ConfigError(f"{said}: it is the whole machine; name the folders they need")
    if found in OWN_AND_WRITTEN or _is_own(found):
        raise _core.ConfigError(f"{said}: they have a {found} of their own")
    if not str(found).isprintable():
        raise _core.ConfigError(f"{said}: its name has characters that cannot be printed")
    return found


def _is_own(path: Path) -> bool:
    return any(own == path or own in path.parents for own in OWN)


def _is_shown(folder: Path) -> bool:
    """Whether a folder seems to belong to the experiment alone."""
    private = [Path.home().resolve(), Path(tempfile.gettempdir()).resolve(), *OWN_AND_WRITTEN]
    holds_others = any(folder == other or folder in other.parents for other in private)
    return not holds_others and not _is_own(folder) and str(folder).isprintable()
