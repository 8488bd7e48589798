"""Settings for each connection by where it goes: one for each destination, and as few different
ones as nothing is lost by.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tcplab import _core
from tcplab._advice import applied, phrases
from tcplab._advice.advice import BESIDE, UNDECIDED, UNFINISHED, Advice, harm_in, read
from tcplab._advice.api import advice_in
from tcplab._advice.evidence import FRESH, NEAR, SEEDS, Gain, found
from tcplab._advice.folder import (
    APPLY,
    DESTINATIONS,
    LISTED,
    QUESTION,
    ask,
    keep_scripts,
    scripts_of,
)
from tcplab._advice.levers import Candidate, cost
from tcplab._advice.question import Question, question
from tcplab._advice.search import run_beside
from tcplab._advice.stages import Laboratory, table
from tcplab._experiment.reading import load
from tcplab._experiment.runnable import Runnable
from tcplab._store.atomic_write import put
from tcplab._text import markup
from tcplab._text.blocks import Block, Heading, Items, Rows

Address = ipaddress.IPv4Network | ipaddress.IPv6Network

KEYS = ("name", "prefix", "rate", "rtt", "loss", "queue", "connections", "traffic", "goal")

NEEDED = ("prefix", "rate", "rtt")

TRIED: Mapping[str, Sequence[Any]] = {
    "cc": ("cubic", "newreno", "bbr", "htcp", "illinois", "westwood+", "hybla", "veno"),
    "initial_window": (4, 10, 20, 40, 80),
    "min_rto": ("50 ms", "100 ms", "200 ms"),
    "so_sndbuf": ("off", "64 kB", "256 kB", "1 MB", "4 MB", "16 MB"),
}
"""Settings that a route or a BPF program can give to single connections."""


@dataclass(frozen=True)
class Destination:
    """Where connections go."""

    name: str
    prefix: Address
    flags: dict[str, Any]
    """The path and its traffic, as the flags of `tcplab try` have them."""
    goal: tuple[str, ...]
    place: Callable[[str], str] = field(compare=False, repr=False)
    """Where the file has a key of it, after the file's name and the line."""


@dataclass(frozen=True)
class Chosen:
    """The settings of a destination's connections."""

    destination: Destination
    own: Advice
    """The advice for this destination alone."""
    candidate: Candidate
    """The settings, shared by all destinations of its group."""
    gain: Gain | None
    """Of that, over today's setting."""
    harm: dict[str, Any] | None
    """The goodput that a CUBIC flow beside it loses."""

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.destination.name,
            "prefix": str(self.destination.prefix),
            "goal": self.own.question.goal.name,
            "setting": self.candidate.name,
            "verdict": self.own.verdict,
            "advised": [{"key": one.key, "value": one.value} for one in self.candidate.settings],
            "gain": None if self.gain is None else self.gain.plain(),
            "alone": self.own.candidate.name,
            "harm": self.harm,
        }


def destinations(path: Path) -> list[Destination]:
    """The destinations of a file.

    Raises:
        ConfigError: It has none, or what it says of one is wrong.
        OSError: It cannot be read.
    """
    try:
        document = _core.Document.from_toml(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError:
        raise _core.ConfigError(f"{path}: this is not a text file (UTF-8)") from None
    read = json.loads(document.to_json())
    listed = read.pop("destinations", None)
    if read:
        raise _core.ConfigError(f"{path}: {next(iter(read))}: expected [[destinations]] alone")
    if not isinstance(listed, list) or not listed:
        raise _core.ConfigError(f"{path}: has no [[destinations]]")
    places = [partial(_place, path, document, number) for number in range(len(listed))]
    several = [_destination(place, one) for place, one in zip(places, listed, strict=True)]
    seen: dict[Any, str] = {}
    for one in several:
        for mark in (one.name, one.prefix):
            if mark in seen:
                raise _core.ConfigError(f"{path}: {mark} is there twice")
            seen[mark] = one.name
    return several


def _place(path: Path, document: _core.Document, number: int, key: str) -> str:
    at = f"destinations[{number}]{f'.{key}' if key else ''}"
    line = document.line(at)
    return _core.printable(f"{path}: {f'line {line}: ' if line else ''}{at}")


def _destination(place: Callable[[str], str], given: Any) -> Destination:
    if not isinstance(given, Mapping):
        raise _core.ConfigError(f"{place('')}: expected a table")
    for key in given:
        if key not in KEYS:
            raise _core.ConfigError(f"{place(key)}: expected one of {', '.join(KEYS)}")
    for key in NEEDED:
        if key not in given:
            raise _core.ConfigError(f"{place(key)}: is missing")
    try:
        prefix = ipaddress.ip_network(str(given["prefix"]))
    except ValueError as error:
        raise _core.ConfigError(f"{place('prefix')}: {error}") from None
    flags = {key: given[key] for key in ("rate", "rtt", "loss", "queue", "traffic") if key in given}
    if "connections" in given:
        count = given["connections"]
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise _core.ConfigError(f"{place('connections')}: expected a whole number, 1 or more")
        flags["flows"] = count
    name = str(given.get("name", prefix))
    goal = (str(given["goal"]),) if "goal" in given else ()
    return Destination(name, prefix, flags, goal, place)


def chosen(
    text: str,
    several: Sequence[Destination],
    experiment: Callable[[Mapping[str, Any]], Runnable],
    of_flags: Callable[[str, Mapping[str, Any], str], str],
    folder: Path,
    *,
    budget_s: float,
    backend: str | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    say: Callable[[str], object] = lambda _: None,
    replaces: bool = False,
) -> list[Chosen]:
    """A setting for each destination: first the best of each alone, then as few as nothing is lost
    by. `text` is the file that lists them; `experiment` makes that of flags, and `of_flags` lets
    mistakes name these.

    Raises:
        ConfigError: A destination has no such path, or a goal that it cannot measure, or the folder
            belongs to another question, which must stay.
        KeyboardInterrupt: Ctrl-C. The same call goes on from there.
    """
    # All are checked before anything runs.
    asked = [_question(one, experiment, of_flags) for one in several]
    ask(text, folder / LISTED, replaces=replaces)
    own = []
    for number, (one, about) in enumerate(zip(several, asked, strict=True)):
        say(f"{one.name}, {number + 1} of {len(several)}")
        advice, is_stopped = advice_in(
            about,
            folder / place_of(number, one),
            budget_s=SHARE * budget_s / len(several),
            backend=backend,
            workers=workers,
            progress=progress,
            also=(BESIDE,),
            replaces=replaces,
        )
        if is_stopped:
            raise KeyboardInterrupt
        own.append(advice)
    number = len({advice.candidate for advice in own})
    say(f"common   which of {number} settings do for several")
    return shared(several, own, folder, workers, progress)


def shared(
    several: Sequence[Destination],
    own: Sequence[Advice],
    folder: Path,
    workers: int | None = None,
    progress: bool | None = None,
) -> list[Chosen]:
    """For each destination the setting that it shares with others, from the advice for each alone.
    Runs that are stored are not run again.
    """
    candidates = list(dict.fromkeys(advice.candidate for advice in own))
    matrix = []
    for number, (one, advice) in enumerate(zip(several, own, strict=True)):
        within = folder / place_of(number, one)
        matrix.append(_gains(advice, candidates, within, workers, progress))
    common = grouped(
        matrix,
        [candidates.index(advice.candidate) for advice in own],
        [cost(one) for one in candidates],
    )
    result = []
    for number, (one, advice, place) in enumerate(zip(several, own, common, strict=True)):
        candidate, loss = candidates[place], advice.harm
        if candidate != advice.candidate:
            about = replace(advice.question, goals=advice.question.goals[:1])
            laboratory = Laboratory(about, folder / place_of(number, one), 0.0, workers, progress)
            loss = harm_in(run_beside(laboratory, candidate, "beside-common"), about, candidate)
        result.append(Chosen(one, advice, candidate, matrix[number][place], loss))
    return result


SHARE = 0.8
"""The share of the budget for each destination alone."""


def place_of(number: int, one: Destination) -> str:
    """The name of a destination's folder."""
    word = re.sub(r"[^A-Za-z0-9.-]+", "-", one.name).strip("-.") or "destination"
    return f"{number + 1}-{word[:40]}"


def _question(
    one: Destination,
    experiment: Callable[[Mapping[str, Any]], Runnable],
    of_flags: Callable[[str, Mapping[str, Any], str], str],
) -> Question:
    try:
        return question(experiment(one.flags), goal=one.goal, flows=("flow",), change=TRIED)
    except argparse.ArgumentTypeError as error:
        raise _core.ConfigError(f"{one.place('traffic')}: {error}") from None
    except _core.ConfigError as error:
        lines = of_flags(str(error), one.flags, MARK).split("\n")
        raise _core.ConfigError("\n".join(_placed(line, one) for line in lines)) from None


MARK = "\0"
"""Before the name of a flag in a mistake."""

SAID = {"flows": "connections", "goals": "goal"}
"""Keys of a destination, by what mistakes call them."""


def _placed(line: str, one: Destination) -> str:
    """A mistake, with the place of the key that has it."""
    name, colon, rest = line.removeprefix(MARK).partition(":")
    key = SAID.get(name, name)
    if colon and key in KEYS and (line.startswith(MARK) or name in SAID):
        return f"{one.place(key)}:{rest}"
    return f"{one.place('')}: {line}"


def _gains(
    advice: Advice,
    candidates: Sequence[Candidate],
    folder: Path,
    workers: int | None,
    progress: bool | None,
) -> list[Gain | None]:
    """The gain of each candidate at a destination, with seeds that nothing has seen."""
    asked = replace(advice.question, goals=advice.question.goals[:1])
    first = asked.seed + 4 * FRESH
    several = [Candidate(), *(one for one in candidates if one.settings)]
    if len(several) == 1:
        return [None] * len(candidates)
    results = Laboratory(asked, folder, 0.0, workers, progress).run(
        "common", several, asked.fresh(), range(first, first + SEEDS)
    )
    told = {one.candidate: one for one in found(table(results, asked), asked.goals, "sim")}
    return [told.get(one.name) for one in candidates]


def grouped(
    matrix: Sequence[Sequence[Gain | None]], own: Sequence[int], costs: Sequence[tuple[int, int]]
) -> list[int]:
    """For each destination the number of its candidate: of the fewest with which each destination
    has what its own would bring, but for a percent, and which ask for no more. Where nothing is to
    change, nothing does.
    """

    def does(row: int, place: int) -> bool:
        told, mine = matrix[row][place], matrix[row][own[row]]
        if place == own[row] or told is None or mine is None:
            return place == own[row]
        # No more is asked for than the destination needs.
        is_less = costs[place] <= costs[own[row]]
        return is_less and (1 + told.gain) * (1 + NEAR) >= 1 + mine.gain

    result = list(own)
    left = {row for row in range(len(own)) if matrix[row][own[row]] is not None}
    while left:
        covered = {
            place: [row for row in sorted(left) if does(row, place)]
            for place in dict.fromkeys(own[row] for row in sorted(left))
        }
        place = max(covered, key=lambda one: len(covered[one]))
        for row in covered[place]:
            result[row] = place
        left -= set(covered[place])
    return result


HEADS = ("destination", "prefix", "setting", "goal", "gain", "others lose")


OPEN = {UNFINISHED: "not finished", UNDECIDED: "cannot be told yet"}
"""By verdict, what the table has in place of a setting."""


def rows(several: Sequence[Chosen]) -> list[list[str]]:
    """A row for each destination."""
    found = []
    for one in several:
        goal, harm, told = one.own.question.goal, one.harm, one.gain
        name = one.candidate.name
        if not one.candidate.settings:
            name = OPEN.get(one.own.verdict, name)
        row = [one.destination.name, str(one.destination.prefix), name, goal.name]
        if told is None or told.low is None:
            row.append("-")
        else:
            row.append(f"{phrases.gain(goal, told.gain)} ({phrases.span_of(goal, told)})")
        if harm is None or harm["low"] is None:
            row.append("-")
        else:
            limits = (phrases.number(100 * harm[end]) for end in ("low", "high"))
            row.append(f"{phrases.share(harm['harm'])} ({' to '.join(limits)})")
        found.append(row)
    return found


def write(several: Sequence[Chosen], folder: Path, command: str) -> dict[str, str]:
    """The page about all, the same for programs, and the files that put it in: these it gives."""
    files = files_of(several)
    keep_scripts(folder, files, scripts_of(folder, DESTINATIONS))
    for name, content in _pages(several, files, command).items():
        put(content, folder / name)
    text = json.dumps(plain(several, files, command), indent=1, ensure_ascii=False)
    put(f"{text}\n".encode(), folder / DESTINATIONS)
    return files


def plain(several: Sequence[Chosen], files: Mapping[str, str], command: str) -> dict[str, Any]:
    """All as JSON has it."""
    return {
        "command": command,
        "destinations": [one.plain() for one in several],
        "head": HEADS,
        "table": rows(several),
        "scripts": list(files),
    }


def files_of(several: Sequence[Chosen]) -> dict[str, str]:
    """The files that put it in, by name."""
    changed = [
        applied.Destination(
            str(one.destination.prefix),
            one.destination.name,
            tuple(
                applied.Change(it.key, it.value, it.today, it.side) for it in one.candidate.settings
            ),
        )
        for one in several
        if one.candidate.settings
    ]
    return applied.destination_files(changed, title="tcplab") if changed else {}


def _pages(several: Sequence[Chosen], files: Mapping[str, str], command: str) -> dict[str, bytes]:
    page = _blocks(several, files, command)
    return {
        "destinations.html": markup.html(page).encode(),
        "destinations.md": markup.markdown(page).encode(),
    }


def repeated(folder: Path) -> list[str]:
    """The differences between stored advice for destinations and the conclusions from its stored
    results.

    Raises:
        ConfigError: The files of the folder are damaged.
    """
    if not (folder / DESTINATIONS).exists():
        return [f"{DESTINATIONS} is missing"]
    try:
        stored = json.loads((folder / DESTINATIONS).read_text(encoding="utf-8"))
        several = destinations(folder / LISTED)
        within = [folder / place_of(number, one) for number, one in enumerate(several)]
        found = shared(
            several, [read(one, question(load(one / QUESTION))) for one in within], folder
        )
        files = files_of(found)
        now = json.loads(json.dumps(plain(found, files, stored["command"])))
        written = {f"{APPLY}/{name}": text.encode() for name, text in files.items()}
        written |= _pages(found, files, stored["command"])
        other = [name for name, text in written.items() if (folder / name).read_bytes() != text]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _core.ConfigError(f"{folder}: {error}") from None
    other += [DESTINATIONS] if now != stored else []
    return [f"{name} is not what the results say" for name in other]


def _short_of_time(several: Sequence[Chosen]) -> str:
    short = [one.destination.name for one in several if one.own.has_left_out()]
    return (
        f"Not all settings were tried for want of time: {', '.join(short)}. A larger budget tries "
        "them."
    )


def _blocks(several: Sequence[Chosen], files: Mapping[str, str], command: str) -> list[Block]:
    pages = [f"`{place_of(k, one.destination)}/advice.html`" for k, one in enumerate(several)]
    number = len({one.candidate for one in several})
    settings = "1 setting" if number == 1 else f"{number} settings"
    return [
        Heading(f"Advice for {len(several)} destinations: {settings}", 1),
        *([_short_of_time(several)] if any(one.own.has_left_out() for one in several) else []),
        "Each destination has the setting that is best for it, or one of another that is no more "
        f"than {100 * NEAR:g} % behind, so that there are few. Gains are over today's setting, of "
        f"{SEEDS} runs with seeds that no search has used. What others lose is the goodput of a "
        "flow of CUBIC beside it.",
        Rows(
            [*HEADS, "page"], [[*row, page] for row, page in zip(rows(several), pages, strict=True)]
        ),
        Heading("Put it in, and take it out"),
        "`apply/routes` sets congestion control, initial window and least timeout on the route to "
        "each prefix. `apply/sockops` is a program of the kernel that sets these and the send "
        "buffer for each connection. `apply/README.md` says what each of them does. What they "
        "change is saved before, and `undo.sh` and `unload.sh` restore exactly that.",
        Items([f"`apply/{name}`" for name in files] or ["nothing is to be changed"]),
        Heading("Repeat it"),
        f"Made by `{command}` with tcplab {_core.__version__}. `tcplab verify` with this folder "
        "runs all of it again, compares it bit for bit, and draws the conclusions once more.",
    ]
