"""The page about a store: its progress, the answer so far, and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources
from urllib.parse import urlencode

from tcplab import _core
from tcplab._experiment.labels import labels
from tcplab._report._html import answer_part, sheet, table_of, warnings_part
from tcplab._results.summary_table import short_names
from tcplab._serve._state import State
from tcplab._store.plans import Called
from tcplab._text.cells import LEFT, Column

PAGE = 100
"""The number of runs on a page."""


def overview(state: State, find: str, page: int) -> str:
    """The page. `find` holds the words that select runs."""
    done = f"{_finished(state)} of {_number(len(state.planned))}" if state.planned else "0"
    title = f"{done} · {state.place}"
    return f"""<!doctype html>
<html lang="en" data-number="{state.number}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)} · tcplab</title>
<style>{sheet()}{_file("serve.css")}</style>
</head>
<body>
<a class="skip" href="#said">Skip to the answer</a>
<header>
<p class="over">tcplab serve</p>
<h1>{escape(state.place)}</h1>
</header>
<p id="gone" role="alert" hidden>The server does not answer: the page shows what it said last.</p>
<main>
<section id="progress" class="first" aria-live="polite">{_progress(state)}</section>
<section id="said">{_said(state)}</section>
<section>
<h2>Runs</h2>
<form class="find" method="get">
<label><span>Words that a run has, like <code>cc=bbr</code> or <code>failed</code></span>
<input name="find" value="{escape(find)}" maxlength="200" autocomplete="off"></label>
<button>Find</button>
</form>
<div id="runs">{_runs(state, find, page)}</div>
</section>
</main>
<footer><p>tcplab {escape(_core.__version__)}. Only this computer sees the page, and only at this
address.</p></footer>
<script>{script()}</script>
</body>
</html>
"""


@cache
def script() -> str:
    """The script of the page."""
    return _file("serve.js")


def _file(name: str) -> str:
    return resources.files("tcplab._serve").joinpath("page", name).read_text(encoding="utf-8")


def _number(value: int) -> str:
    return f"{value:,}"


def _finished(state: State) -> str:
    return _number(sum(run.run in state.finished for run in state.planned))


def _progress(state: State) -> str:
    parts = []
    if state.planned:
        number = len(state.planned)
        finished = sum(run.run in state.finished for run in state.planned)
        failed = sum(
            run.run in state.failed and run.run not in state.finished for run in state.planned
        )
        said = [f"<strong>{finished:,} of {number:,}</strong> runs are finished"]
        if failed:
            said.append(f"{failed:,} failed")
        if state.is_running:
            said.append(_left(state.left_s))
        elif finished + failed < number:
            said.append("nothing is running: the command that began them runs the others")
        parts.append(f"<p>{'; '.join(said)}.</p>")
        parts.append(
            '<div class="bar" aria-hidden="true">'
            f'<span style="width:{finished / number:.2%}"></span>'
            f'<span class="failed" style="width:{failed / number:.2%}"></span></div>'
        )
        reasons: dict[str, list[str]] = {}
        for run in state.planned:
            if run.run in state.failed and run.run not in state.finished:
                reasons.setdefault(state.failed[run.run].splitlines()[0], []).append(run.run)
        parts += [
            f'<div class="remark bad"><h3>{len(runs):,} failed</h3><p>{escape(why)}</p></div>'
            for why, runs in list(reasons.items())[:5]
        ]
    elif state.is_running:
        parts.append("<p>A process has begun to write here; no run is finished.</p>")
    if state.trouble:
        parts.append(f'<div class="remark care"><p>{escape(_sentence(state.trouble))}</p></div>')
    return "".join(parts)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _left(seconds: float | None) -> str:
    if seconds is None:
        return "others are running"
    if seconds < 90:
        return f"about {max(1, round(seconds))} s left"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"


def _said(state: State) -> str:
    if isinstance(state.said, str):
        return f"<h2>The answer</h2><p>{escape(_sentence(state.said))}</p>" if state.said else ""
    is_whole = all(run.run in state.finished or run.run in state.failed for run in state.planned)
    so_far = "" if is_whole else '<p class="note">So far: more runs may change it.</p>'
    return (
        f"{answer_part(state.said)}{so_far}"
        '<p><a href="report" data-key="report">The report, with charts, tables and the way to '
        "repeat it</a></p>"
        f"<details id=warnings><summary>Warnings</summary>{warnings_part(state.said)}</details>"
    )


def _runs(state: State, find: str, page: int) -> str:
    names = list(dict.fromkeys(path for run in state.planned for path, _ in run.swept))
    short = short_names(names)
    shown = {name: labels([dict(run.swept).get(name) for run in state.planned]) for name in names}
    goodput = state.goodput
    words = find.lower().split()
    found = [
        run
        for run in state.planned
        if all(any(_is(word, one) for one in _words(run, short, state)) for word in words)
    ]
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(page, 1), pages)
    rows = found[(page - 1) * PAGE : page * PAGE]
    if not state.planned:
        return "<p>There are none yet.</p>"
    if not found:
        return f"<p>None of {len(state.planned):,} runs has these words.</p>"
    several = len({run.experiment for run in state.planned}) > 1
    heads = [
        *([Column("experiment", LEFT)] if several else []),
        *(Column(short[name], LEFT) for name in names),
        Column("repetition"),
        Column("state", LEFT),
        Column("goodput of all flows", unit="Mbit/s"),
    ]
    lines = []
    for run in rows:
        swept = dict(run.swept)
        cells = [
            *([run.experiment] if several else []),
            *(shown[name].get(swept.get(name, ""), "") for name in names),
            str(run.repetition),
            _state_of(run, state),
            f"{goodput[run.run]:.3g}" if run.run in goodput else "",
        ]
        link = (
            f'<a href="run/{run.run}" data-key="{run.run}">{run.run}</a>'
            if run.run in state.finished
            else run.run
        )
        lines.append((link, cells))
    ways = "".join(
        f'<a href="?{escape(urlencode({"find": find, "page": to}))}" data-key="{name}">{name}</a>'
        for name, to in (("Before", page - 1), ("Next", page + 1))
        if 1 <= to <= pages
    )
    counted = (
        f"Runs {(page - 1) * PAGE + 1:,} to {(page - 1) * PAGE + len(rows):,} of {len(found):,}"
    )
    return (
        f"{table_of('run', heads, lines, 'Runs')}"
        f'<p class="note">{counted}.</p><p class="pages">{ways}</p>'
    )


def _state_of(run: Called, state: State) -> str:
    if run.run in state.finished:
        return "finished"
    if run.run in state.failed:
        return "failed"
    return "waiting"


def _words(run: Called, short: dict[str, str], state: State) -> Sequence[str]:
    named = [f"{short[path]}={value}" for path, value in run.swept]
    words = [*named, run.run, _state_of(run, state), f"repetition={run.repetition}", run.experiment]
    return ["".join(word.lower().split()) for word in words]


def _is(word: str, one: str) -> bool:
    """Whether a search word matches. A word with a value must match to the end: `repetition=1` does
    not match 10.
    """
    return one.endswith(word) if "=" in word else word in one
