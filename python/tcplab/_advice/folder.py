"""The files of advice in a folder that may hold files of others."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tcplab._core import ConfigError
from tcplab._store.atomic_write import put
from tcplab._store.lock import locked
from tcplab._warnings import TcplabWarning

ADVICE = "advice.json"
"""The file that other programs read; its presence says that a folder has advice."""

QUESTION = "question.toml"

DESTINATIONS = "destinations.json"
"""Like `ADVICE`, for several destinations."""

HEAD = "# What `tcplab advise` was asked.\n"
"""The first line of a question."""

LISTED = "destinations.toml"
"""The file of destinations, as it was given."""

ANSWERS = {QUESTION: ADVICE, LISTED: DESTINATIONS}
"""The file with the answer, by that of the question."""

BEFORE = "before"
"""The folder of the answer before, which keeps its `undo.sh` and what else it had."""

APPLY = "apply"
"""The folder of the scripts."""


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Makes a folder, in which no other process may give advice meanwhile.

    Raises:
        ConfigError: Another one does.
        OSError: The folder cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder, patient=False))
        except BlockingIOError:
            raise ConfigError(
                f"{folder}: another tcplab advise is at work in it; name another folder, or wait"
            ) from None
        yield


def ask(text: str, file: Path, *, replaces: bool) -> bool:
    """Writes what is asked. The same question goes on where it was stopped. If the folder belongs
    to another question, the answer to that is set aside with a warning, or this one refused.
    Returns whether an answer was set aside.

    Raises:
        ConfigError: The folder belongs to another question, which must stay.
        OSError: The folder cannot be written.
    """
    folder = file.parent
    held = [name for name in (QUESTION, LISTED) if (folder / name).exists()]
    is_other = bool(held) and (held != [file.name] or file.read_bytes() != text.encode())
    if is_other:
        if not replaces:
            raise ConfigError(
                f"{folder}: belongs to another question, {_asked_by(folder, held[0])}; name "
                "another folder, or remove this one"
            )
        said = "has another question, without an answer, which is replaced; its runs stay"
        if any((folder / answer).exists() for answer in ANSWERS.values()):
            said = (
                "has the answer to another question, which is replaced; it moves to "
                f"`{BEFORE}`, and its runs stay"
            )
        warnings.warn(f"{folder}: {said}", TcplabWarning, stacklevel=2)
        _set_aside(folder)
    folder.mkdir(parents=True, exist_ok=True)
    put(text.encode(), file)
    return is_other


def _set_aside(folder: Path) -> None:
    """Moves a question and its answer to the folder `before`; its runs stay. A question without an
    answer is removed, and the answer before stays.
    """
    before, files = folder / BEFORE, _files(folder)
    if any((folder / answer).exists() for answer in ANSWERS.values()):
        for file in _files(before):
            (before / file).unlink()
        _move(files, folder, before)
    else:
        for file in files:
            (folder / file).unlink()


def restore(folder: Path) -> None:
    """Moves the answer before back, since there is none to the question that replaced it."""
    before = folder / BEFORE
    if files := _files(before):
        for file in _files(folder):
            (folder / file).unlink()
        _move(files, before, folder)


def _files(folder: Path) -> list[str]:
    """The files of the questions in a folder, of their answers and of the scripts of these."""
    named = [
        file
        for question, answer in ANSWERS.items()
        for file in (
            question,
            *(f"{APPLY}/{script}" for script in scripts_of(folder, answer)),
            *(str(Path(answer).with_suffix(ending)) for ending in (".json", ".md", ".html")),
        )
    ]
    return [file for file in named if (folder / file).is_file()]


def _move(files: Iterable[str], source: Path, target: Path) -> None:
    """Moves files, and removes the folders that these leave empty."""
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        (source / file).replace(target / file)
        _remove_empty((source / file).parent, source)


def _remove_empty(folder: Path, top: Path) -> None:
    """Removes a folder and those above it up to `top`, as far as they are empty."""
    with suppress(OSError):
        while folder != top.parent:
            folder.rmdir()
            folder = folder.parent


def _asked_by(folder: Path, name: str) -> str:
    """What a folder was asked: the command, if there is an answer."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        command = json.loads((folder / ANSWERS[name]).read_text(encoding="utf-8"))["command"]
        if isinstance(command, str):
            return f"that of `{command}`"
    return f"that of {name} in it"


def keep_scripts(folder: Path, scripts: Mapping[str, str], previous: list[str]) -> None:
    """Writes the scripts, by their path below `apply`. Scripts of an earlier answer (`previous`)
    are removed, since they no longer hold; other files stay.
    """
    for name in previous:
        path = folder / APPLY / name
        with suppress(OSError):
            path.unlink()
            _remove_empty(path.parent, folder / APPLY)
    for name, text in scripts.items():
        path = folder / APPLY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        put(text.encode(), path)
        if path.suffix == ".sh":
            path.chmod(0o755)


def scripts_of(folder: Path, file: str) -> list[str]:
    """The scripts that an earlier answer, in this file of the folder, has left."""
    try:
        named = json.loads((folder / file).read_text(encoding="utf-8"))["scripts"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in named if _is_below(name)] if isinstance(named, list) else []


def is_asked(folder: Path) -> bool:
    """Whether a folder has a question of `tcplab advise`, answered or not."""
    if folder.name == BEFORE:
        return False
    try:
        return (folder / QUESTION).read_text(encoding="utf-8").startswith(HEAD)
    except (OSError, UnicodeDecodeError):
        return (folder / ADVICE).exists()


def is_listed(folder: Path) -> bool:
    """Whether a folder has advice for several destinations, finished or not."""
    if (folder / DESTINATIONS).exists():
        return True
    return (folder / LISTED).is_file() and any(map(is_asked, folder.iterdir()))


def _is_below(name: Any) -> bool:
    """Whether a path stays below the folder that it is relative to."""
    if not isinstance(name, str):
        return False
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts
