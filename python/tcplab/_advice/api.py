"""Advice as Python and the command line ask for it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from tcplab import _core
from tcplab._advice import applied, page, phrases
from tcplab._advice.advice import Advice, read
from tcplab._advice.folder import (
    ADVICE,
    APPLY,
    HEAD,
    QUESTION,
    alone_in,
    ask,
    keep_scripts,
    restore,
    scripts_of,
)
from tcplab._advice.goals import measured
from tcplab._advice.levers import Candidate, Setting
from tcplab._advice.question import Question, question, room
from tcplab._advice.search import ALSO, BUDGET_S, advised
from tcplab._advice.stages import Laboratory
from tcplab._experiment import toml_writer
from tcplab._experiment.quantities import numbers
from tcplab._experiment.reading import load, loaded
from tcplab._experiment.runnable import Runnable
from tcplab._run.run import run
from tcplab._schema import Experiment
from tcplab._store.atomic_write import put
from tcplab._store.manifest import RUNS
from tcplab._text import markup

CAPTURES = (".pcap", ".pcapng", ".cap", ".gz", ".zst")
"""How the names of captures end."""


def advise(
    experiment: Experiment | Mapping[str, Any] | str | PathLike[str],
    *,
    goals: Sequence[str] = (),
    flows: Sequence[str] = (),
    may: Sequence[str] = (),
    keep: Sequence[str] = (),
    change: Mapping[str, Sequence[Any]] | None = None,
    over: Mapping[str, Any] | None = None,
    limits: Sequence[str] = (),
    budget_s: float = BUDGET_S,
    backend: str | None = None,
    out: str | PathLike[str] | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Advice:
    """Which settings are best for the path and the traffic of an experiment, by how much, how sure
    that is, and at whose cost. What is given here counts more than the experiment's table
    `[advise]`.

    Args:
        experiment: The experiment with today's settings, also as a plain dict, or the path of its
            file or of a capture, whose twin is made then.
        goals: What is to be best, and what is reported beside it.
        flows: The names of the flows whose settings may change; by default all.
        may: Where settings may change: `sender`, `receiver`, `router`, or `all`.
        keep: Settings that stay as they are.
        change: Values to try by setting, in place of the usual ones.
        over: The paths that it is to hold for: by key a list, `{"from": ..., "to": ...}`, a
            distribution like `{"kind": "lognormal", "median": "40 ms", "sigma": 0.5}`, or
            `{"file": ...}` with a value on each line.
        limits: What the advised settings must keep: `["retransmissions <= 3 %"]`.
        budget_s: How long it may take, in seconds. What does not fit is left out, and said.
        backend: `linux` if the kernel has to confirm it, `sim` if it need not; by default it does
            where one is built.
        out: A folder for the results of all runs and the page. The same call with the same folder
            goes on where one was stopped; a folder that belongs to another question is refused.
        workers: How many runs go on at once.
        progress: Whether progress is shown.

    Raises:
        ConfigError: The experiment cannot be run, a goal cannot be measured, nothing may be
            changed, the twin of a capture does not behave like it, or the folder belongs to
            another question.
        KernelError: The kernel has to confirm it, and cannot be had.
        OSError: The folder cannot be written.
        KeyboardInterrupt: Ctrl-C. What was found until then is in the folder.
    """
    given, notes = subject(experiment)
    asked = question(
        given,
        goal=goals,
        flows=flows,
        may=may,
        keep=keep,
        change=change,
        over=over,
        limits_=limits,
    )
    with ExitStack() as stack:
        folder = Path(out) if out is not None else Path(stack.enter_context(_temporary()))
        found, is_stopped = advice_in(
            asked,
            folder,
            budget_s=budget_s,
            backend=backend,
            workers=workers,
            progress=progress,
            notes=notes,
        )
    if is_stopped:
        raise KeyboardInterrupt
    return found


def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="tcplab-advice-")


def subject(
    given: Experiment | Mapping[str, Any] | str | PathLike[str],
) -> tuple[Runnable, list[str]]:
    """The experiment that advice is asked for, of a capture its twin; and what to know of it.

    Raises:
        ConfigError: The twin does not behave like the capture.
    """
    if not (isinstance(given, (str, PathLike)) and Path(given).suffix.lower() in CAPTURES):
        return loaded(given), []
    from tcplab import capture  # noqa: PLC0415 (few need it)

    twin = capture.twin(Path(given))
    if not twin.fits:
        raise _core.ConfigError(
            f"{given}: its twin does not behave like the capture, so no advice would hold: "
            f"{'; '.join(twin.misfits)}. `tcplab capture twin` shows both side by side"
        )
    return twin.experiment, [f"Of the capture's twin: {note}." for note in twin.notes]


def advice_in(
    asked: Question,
    folder: Path,
    *,
    budget_s: float = BUDGET_S,
    backend: str | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    also: Sequence[str] = ALSO,
    command: str | None = None,
    notes: Sequence[str] = (),
    say: Callable[[str], object] = lambda _: None,
    replaces: bool = False,
) -> tuple[Advice, bool]:
    """Advice, written to a folder; and whether it was stopped before its end. `notes` are what is
    to be known of the experiment. If it `replaces`, the folder may belong to another question.
    """
    if backend == "linux":
        # An experiment that no kernel can run is refused at once.
        asked.experiment(
            [Candidate()], asked.points()[:1], range(asked.seed, asked.seed + 1)
        ).plans("linux")
    is_new = not folder.exists()
    asked = varied(asked)
    laboratory = Laboratory(asked, folder, budget_s, workers, progress)
    text = toml_writer.written(asked.plain | {"advise": asked.asked})
    with alone_in(folder):
        is_other = ask(f"{HEAD}\n{text}", folder / QUESTION, replaces=replaces)
        say(f"path     {phrases.path(asked)}")
        try:
            found, is_stopped = advised(
                laboratory, backend=backend, also=also, notes=notes, say=say
            )
        except _core.ConfigError:
            if is_new:
                shutil.rmtree(folder, ignore_errors=True)
            elif is_other:
                restore(folder)
            raise
        _write(found, folder, command, laboratory.stages)
    return found, is_stopped


JITTER = "100 ms"
"""Starts of flows are drawn within it, where nothing else is random."""


def varied(asked: Question) -> Question:
    """The same question; where several flows meet and nothing is random, their starts are drawn.
    One course of events, repeated, is no sample of the courses that are possible.
    """
    if len(asked.plan["flows"]) < 2:
        return asked
    seeds = range(asked.seed, asked.seed + 2)
    experiment = asked.experiment([Candidate()], asked.points()[:1], seeds)
    results = run(experiment, progress=False)  # type: ignore[arg-type]
    rows = measured(results, asked.flows, asked.goals)
    if rows.select(goal.name for goal in asked.goals).n_unique() > 1:
        return asked
    flows = [{"start_jitter": JITTER} | flow for flow in asked.plain["flows"]]
    return replace(asked, plain=asked.plain | {"flows": flows})


def _write(advice: Advice, folder: Path, command: str | None, stages: Sequence[str]) -> None:
    """The page, the same for programs, and the files that put the advice in."""
    files = files_of(advice)
    keep_scripts(folder, files, scripts_of(folder, ADVICE))
    for name, content in _pages(advice, files, command).items():
        put(content, folder / name)
    folders = [stage for stage in stages if (folder / stage).exists()]
    plain = advice.plain() | {"command": command, "scripts": list(files), "folders": folders}
    text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)
    put(f"{text}\n".encode(), folder / ADVICE)


def _pages(advice: Advice, files: Mapping[str, str], command: str | None) -> dict[str, bytes]:
    """The page, as HTML and as Markdown."""
    blocks = page.blocks(advice, files, command)
    return {
        "advice.html": markup.html(blocks).encode(),
        "advice.md": markup.markdown(blocks).encode(),
    }


def files_of(advice: Advice) -> dict[str, str]:
    """The files that put advice in and take it out, by name."""
    candidate = advice.candidate
    if not candidate.settings:
        return {}
    changes = [
        applied.Change(one.key, _of_host(one, advice), one.today, one.side)
        for one in candidate.settings
    ]
    try:
        return applied.files(changes, title=candidate.name)
    except _core.ConfigError as error:
        # The setting works on a simulated host, and a live host has no switch for it.
        return {"README.md": f"# {candidate.name}\n\nThere are no files for this: {error}\n"}


def _of_host(setting: Setting, advice: Advice) -> Any:
    """A value as a host takes it: a queue by packets or bytes, where an experiment may say how long
    it holds at the link's rate.
    """
    value = setting.value
    if setting.key != "queue":
        return value
    given = value.get("limit") if isinstance(value, Mapping) else value
    found = numbers([str(given)]) if given is not None else None
    if found is None or found[0] in ("packets", "bytes"):
        return value
    asked = advice.question
    first = range(asked.seed, asked.seed + 1)
    plan = asked.experiment([advice.candidate], asked.points()[:1], first).plans("sim")[0]
    lane = json.loads(plan.to_json())["lanes"][asked.mine()[0]["bottleneck"]]
    limit = room(lane["queue"])
    return {**value, "limit": limit} if isinstance(value, Mapping) else limit


def repeated(folder: Path) -> list[str]:
    """The differences between stored advice and the conclusions from its stored results.

    Raises:
        ConfigError: There is no advice in the folder, or its files are damaged.
    """
    if not (folder / ADVICE).exists():
        return [f"{ADVICE} is missing"]
    try:
        plain = json.loads((folder / ADVICE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _core.ConfigError(f"{folder / ADVICE}: {error}") from None
    try:
        asked = question(load(folder / QUESTION))
        advice = read(folder, asked)
        now = json.loads(json.dumps(advice.plain()))
        files = files_of(advice)
        written = {f"{APPLY}/{name}": text.encode() for name, text in files.items()}
        written |= _pages(advice, files, plain.get("command"))
        there = {
            f"{path.relative_to(folder)}" for path in (folder / APPLY).rglob("*") if path.is_file()
        }
        missing = [name for name in written if not (folder / name).is_file()]
        foreign = sorted(there - written.keys())
        other = [
            name
            for name, text in written.items()
            if name not in missing and (folder / name).read_bytes() != text
        ]
    except KeyError:
        return [f"{QUESTION} is not the question that the results belong to"]
    except (OSError, ValueError, TypeError) as error:
        raise _core.ConfigError(f"{folder}: {error}") from None
    return [
        *(
            f"{stage} has no results any more"
            for stage in plain.get("folders") or ()
            if not (folder / stage / RUNS).exists()
        ),
        *(
            f"{key} is {_short(plain.get(key))}, and the results say {_short(now.get(key))}"
            for key in now
            if plain.get(key) != now[key]
        ),
        *(f"{name} is missing" for name in missing),
        *(f"{name} is not what the results say" for name in other),
        *(f"{name} is none of the files that this advice has" for name in foreign),
    ]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."
