"""Results at an address that fsspec knows, such as `s3://bucket/sweep`.

Such a place has neither locks nor renaming. A copy of it in the user's cache has both: results are
read, checked and written there, as in any folder, and each group is sent when complete, its list of
checksums last. A group without its list does not count: it is still on its way, or its sender was
killed. The copy is synchronised whenever results are asked for, so that it may be deleted at any
time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeGuard

from tcplab import _core
from tcplab._store import cache
from tcplab._store.atomic_write import put
from tcplab._store.checksums import LIST, checksum
from tcplab._store.lock import locked

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

FOLDER = "stores"
"""The folder of the copies within the cache."""

KNOWN = ".known.json"
"""The file in a copy that records the state in which both sides last agreed."""


def is_address(place: object) -> TypeGuard[str]:
    """Whether results are at an address rather than in a folder."""
    return isinstance(place, str) and "://" in place


class Remote:
    """The place that an address names, and its copy on this computer."""

    def __init__(self, address: str) -> None:
        """Raises:
        ConfigError: The kind of place is unknown, or needs a package that is not installed.
        """
        try:
            import fsspec  # noqa: PLC0415 (an extra)
        except ModuleNotFoundError:
            raise _core.ConfigError(
                f"{address}: results at an address need fsspec: pip install 'tcplab[cluster]'"
            ) from None
        try:
            found: tuple[AbstractFileSystem, str] = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise _core.ConfigError(f"{address}: {' '.join(str(error).split())}") from None
        self.address = address
        self._files, top = found
        self._top = top.rstrip("/")

    @cached_property
    def folder(self) -> Path:
        """The folder of the copy."""
        place = _core.cache()
        if place is None:
            raise _core.ConfigError(
                f"{self.address}: there is no folder for its copy: set TCPLAB_CACHE or HOME"
            )
        folder = place / FOLDER / hashlib.sha256(self.address.encode()).hexdigest()[:32]
        cache.make(folder)
        return folder

    @property
    def _known(self) -> dict[str, str]:
        """The state in which the place and the copy last agreed: by name, the checksum of a file or
        of the list of a group.
        """
        with suppress(OSError, ValueError):
            known: dict[str, str] = json.loads((self.folder / KNOWN).read_bytes())
            return known
        return {}

    @_known.setter
    def _known(self, known: Mapping[str, str]) -> None:
        put(json.dumps(known).encode(), self.folder / KNOWN)

    def fetch(self) -> None:
        """Makes the copy, whose lock the caller holds, agree with the place. Whatever was never
        sent stays.

        Raises:
            OSError: The place cannot be read.
        """
        with self._speaking():
            # The cached listing may be out of date.
            self._files.invalidate_cache()
            there = self._listed()
            content = self._files.cat(list(there)) if there else {}
            sums = {there[path]: checksum(data) for path, data in content.items()}
            known = self._known
            for name in _names(self.folder):
                if name not in sums and name in known:
                    _remove(self.folder / name)
            for path, name in there.items():
                if _state(self.folder / name) != sums[name]:
                    self._get(path, name, content[path])
        self._known = sums

    def _listed(self) -> dict[str, str]:
        """The names of all groups and files, by the path of the file whose checksum identifies
        each.
        """
        found: dict[str, str] = {}
        if not self._files.exists(self._top):
            return found
        for path in sorted(self._files.find(self._top)):
            name = PurePosixPath(path).relative_to(PurePosixPath(self._top))
            if len(name.parts) == 1 and not name.name.startswith("."):
                found[path] = name.name
            elif len(name.parts) == 2 and name.name == LIST:
                found[path] = name.parts[0]
        return found

    def _get(self, path: str, name: str, content: bytes) -> None:
        """Copies a group or a file from the place."""
        target = self.folder / name
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".fetched-") as place:
            new = Path(place) / name
            if PurePosixPath(path).name != LIST:
                new.write_bytes(content)
            else:
                group = f"{self._top}/{name}"
                for file in self._files.find(group):
                    own = new / PurePosixPath(file).relative_to(PurePosixPath(group))
                    own.parent.mkdir(parents=True, exist_ok=True)
                    self._files.get_file(file, str(own))
            _remove(target)
            new.rename(target)

    def send(self) -> None:
        """Makes the place agree with the copy, whose lock the caller holds. Whatever others have
        put there since stays.

        Raises:
            OSError: The place cannot be written.
        """
        now = {name: state for name in _names(self.folder) if (state := _state(self.folder / name))}
        known = self._known
        with self._speaking():
            for name, state in now.items():
                if known.get(name) != state:
                    self._put(name)
                    known[name] = state
                    self._known = known
            for name in known.keys() - now.keys():
                self._take_away(name)
        self._known = now

    def _put(self, name: str) -> None:
        source, target = self.folder / name, f"{self._top}/{name}"
        if source.is_file():
            self._files.makedirs(self._top, exist_ok=True)
            self._put_whole(source, target)
            return
        self._take_away(name)
        files = [path for path in source.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: path.name == LIST):
            own = f"{target}/{path.relative_to(source).as_posix()}"
            self._files.makedirs(str(PurePosixPath(own).parent), exist_ok=True)
            if path.name == LIST:
                self._put_whole(path, own)
            else:
                self._files.put_file(str(path), own)

    def _put_whole(self, source: Path, target: str) -> None:
        """Writes a file so that nobody sees part of it: not every kind of place guarantees that."""
        path = PurePosixPath(target)
        unfinished = str(path.with_name(f".{path.name}.{uuid.uuid4().hex}"))
        self._files.put_file(str(source), unfinished)
        self._files.mv(unfinished, target)

    def _take_away(self, name: str) -> None:
        """Removes a group, its list first: a group without its list does not count."""
        path = f"{self._top}/{name}"
        for gone in (f"{path}/{LIST}", path):
            if self._files.exists(gone):
                self._files.rm(gone, recursive=gone == path)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Adds the address to errors."""
        try:
            yield
        except Exception as error:
            # Each kind of place raises its own exceptions.
            text = (isinstance(error, OSError) and error.strerror) or str(error)
            reason = " ".join(text.split()) or type(error).__name__
            raise OSError(0, f"cannot be used: {reason}", self.address) from error

    def __repr__(self) -> str:
        """The address."""
        return f"Remote({self.address!r})"


def _names(folder: Path) -> list[str]:
    """The entries of a folder of results, except unfinished ones."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def _state(path: Path) -> str | None:
    """The checksum of a file, or of the list of a group."""
    with suppress(OSError):
        return checksum((path / LIST if path.is_dir() else path).read_bytes())
    return None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def below(place: str | PathLike[str], name: str) -> Path | str:
    """A folder within a folder of results, or an address below the address of results."""
    return f"{str(place).rstrip('/')}/{name}" if is_address(place) else Path(place) / name


def at(place: str | PathLike[str]) -> Path:
    """The folder of results, which for an address is its updated copy.

    Raises:
        ConfigError: The address names no place.
        OSError: The place cannot be read.
    """
    if not is_address(place):
        return Path(place)
    remote = Remote(place)
    with locked(remote.folder):
        remote.fetch()
    return remote.folder
