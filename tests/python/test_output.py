"""Texts of an experiment reach terminals and charts as plain text, whatever they contain.

Every attack goes through the command line, and its output is read as bytes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from conftest import Command

from tcplab._store.checksums import checksum, listed, write_list
from tcplab.cli import main

# Characters allowed in a name, each with its displayed form.
IN_NAMES = {
    "script": ("</script><script>alert(1)</script>", None),
    "comment": ("<!--<script>", None),
    "reference": ("&#x3c;/script&gt;", None),
    "svg": ('</text><image href="http://evil.test/x.png"/><text>', None),
    "style": ("<style>@import url(http://evil.test/x.css)</style>", None),
    "markup": ("[red]x[/red] [link=http://evil.test]y[/link]", None),
    "expression": ("${alert(1)} {{7*7}} `x` datum.x", None),
    "line separator": ("a\u2028b\u2029c", "a\\u{2028}b\\u{2029}c"),
    "embedding": ("a\u202ab\u202ec\u202cd", "a\\u{202a}b\\u{202e}c\\u{202c}d"),
    "isolate": ("a\u2066b\u2067c\u2068d\u2069e", "a\\u{2066}b\\u{2067}c\\u{2068}d\\u{2069}e"),
    "zero width": ("a\u200bb\u200cc\u200dd\u2060e\ufefff", "a\\u{200b}b\\u{200c}c"),
    "marks": ("a\u200eb\u200fc\u061cd", "a\\u{200e}b\\u{200f}c\\u{61c}d"),
    "tags": ("a\U000e0041b", "a\\u{e0041}b"),
}

# Characters refused in names; messages and file names escape them.
CONTROLS = {
    "colour": ("\x1b[31mred", "\\u{1b}[31mred"),
    "title": ("\x1b]0;owned\x07", "\\u{1b}]0;owned\\u{7}"),
    "link": ("\x1b]8;;http://evil.test\x1b\\x", "\\u{1b}]8;;http://evil.test\\u{1b}\\"),
    "C1": ("\x9b31m\x9d0;x\x9c", "\\u{9b}31m\\u{9d}0;x\\u{9c}"),
    "carriage return": ("a\rb", "a\\rb"),
    "backspace": ("a\x08b\x7f", "a\\u{8}b\\u{7f}"),
    "line": ("a\nwarning: b", "a\\nwarning: b"),
}

HIDDEN = [chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0))] + list(
    "\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2066\u2067\u2068\u2069\ufeff\U000e0041"
)

TEXTS = {**IN_NAMES, **CONTROLS}


@pytest.fixture
def tcplab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in this process, because there are many calls."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        out, err = io.StringIO(newline=""), io.StringIO(newline="")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main([str(word) for word in words])
            except SystemExit as end:
                status = int(end.code or 0)
        return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())

    return run


def experiment(text: str, **changes: object) -> str:
    """An experiment as JSON with the text in every place that takes a text."""
    # The name of a flow must not contain `/`.
    flow_name = text.replace("/", "|")
    flow = {"from": "client", "to": "server", "name": flow_name}
    whole = {
        "name": text,
        "duration": "300 ms",
        "network": {"chain": {"rate": "10 Mbit/s", "delay": "5 ms", "queue": "20 packets"}},
        "flows": [flow],
        "sweep": {"flows[0].name": [flow_name, f"{flow_name}2"]},
    }
    return json.dumps({**whole, **changes})


def is_clean(*outputs: bytes | str) -> None:
    """Checks that nothing acts on a terminal."""
    for output in outputs:
        text = output.decode() if isinstance(output, bytes) else output
        assert not [ascii(c) for c in HIDDEN if c in text], text


@pytest.mark.parametrize("attack", IN_NAMES)
@pytest.mark.parametrize("kind", ["html", "svg", "json"])
def test_names_are_text_in_tables_and_charts(
    attack: str, kind: str, tcplab: Command, tmp_path: Path
) -> None:
    text, shown = IN_NAMES[attack]
    (tmp_path / "x.json").write_text(experiment(text))
    chart = tmp_path / f"chart.{kind}"
    done = tcplab("run", "x.json", "--chart", chart)
    assert done.returncode == 0, done.stderr
    is_clean(done.stdout, done.stderr)
    # A wide cell is wrapped.
    cell = "".join((shown or text).replace("/", "|").split())
    assert cell[:10] in "".join(done.stdout.split())
    written = chart.read_text(encoding="utf-8")
    if kind == "html":
        before, _, after = written.rpartition("<script")
        script, end, rest = after.partition("</script>")
        # The script of the page ends where its template ends it.
        assert "vegaEmbed" in script
        assert (end, rest.split()) == ("</script>", ["</body>", "</html>"])
        assert "evil.test" not in before
        assert "<!--" not in script[script.index('"config"') :]
        assert not [c for c in "\u2028\u202e\u200b\u2066" if c in script]
    elif kind == "svg":
        tree = ElementTree.fromstring(written)
        tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
        # Each line of a subtitle is a `tspan`.
        texts = {"text", "tspan"}
        assert tags <= texts | {"svg", "g", "path", "rect", "line", "defs", "clipPath", "style"}
        names = {name for element in tree.iter() for name in element.attrib}
        assert not [name for name in names if "href" in name or name.startswith("on")]
        titles = ["".join(element.itertext()) for element in tree.iter() if "text" in element.tag]
        assert any((shown or text)[:10] in title for title in titles), titles
        is_clean(written)
    else:
        is_clean(written)
        title = json.loads(written)["title"]
        # The name of the experiment is below the compared metric.
        lines = [title["text"], *title["subtitle"]]
        assert any(line.startswith((shown or text)[:10]) for line in lines)


@pytest.mark.parametrize("attack", IN_NAMES)
@pytest.mark.parametrize(
    "command", [["check"], ["run", "--quiet"], ["compare", "--on", "sim,sim2"]]
)
def test_names_are_text_for_every_command(
    attack: str, command: list[str], tcplab: Command, tmp_path: Path
) -> None:
    text, _ = IN_NAMES[attack]
    (tmp_path / "x.json").write_text(experiment(text))
    name, *options = command
    done = tcplab(name, "x.json", *options)
    is_clean(done.stdout, done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("attack", TEXTS)
def test_messages_quote_what_was_written(attack: str, tcplab: Command, tmp_path: Path) -> None:
    text, shown = TEXTS[attack]
    expected = shown or json.loads(json.dumps(text))
    network = {"chain": {"rate": text, "delay": "5 ms"}}
    wrong = {
        "a key": experiment("x", **{text: 1}),
        "a rate": experiment("x", network=network),
        "a host": experiment("x", flows=[{"from": text, "to": "server"}]),
        "an algorithm": experiment("x", flows=[{"from": "client", "to": "server", "cc": text}]),
        "a swept path": experiment("x", sweep={text: [1]}),
    }
    for what, written in wrong.items():
        (tmp_path / "x.json").write_text(written)
        for command in (["check"], ["run"], ["compare"]):
            done = tcplab(*command, "x.json")
            assert done.returncode == 2, (what, done.stdout)
            is_clean(done.stdout, done.stderr)
            lines = done.stderr.splitlines()
            assert all(line.startswith("error: x.json: ") for line in lines), (what, lines)
        if what != "a rate":
            said = (expected[:6], "cannot be printed", "has a line break")
            assert any(text in done.stderr for text in said), done.stderr


@pytest.mark.parametrize("attack", CONTROLS)
def test_control_characters_in_names_are_refused(
    attack: str, tcplab: Command, tmp_path: Path
) -> None:
    text, _ = CONTROLS[attack]
    (tmp_path / "x.json").write_text(experiment(text))
    done = tcplab("run", "x.json")
    assert done.returncode == 2
    said = ("has characters that cannot be printed", "has a line break")
    assert any(text in done.stderr for text in said)
    is_clean(done.stdout, done.stderr)


@pytest.mark.parametrize("attack", TEXTS)
def test_broken_toml_is_quoted(attack: str, tcplab: Command, tmp_path: Path) -> None:
    text, _ = TEXTS[attack]
    for written in (text, f'"{text}" = 1', f'duration = "{text}"', f"[[flows]]\nx = {text}"):
        (tmp_path / "x.toml").write_text(written)
        done = tcplab("check", "x.toml")
        assert done.returncode == 2, written
        is_clean(done.stdout, done.stderr)
        assert all(line.startswith("error: x.toml: ") for line in done.stderr.splitlines())


@pytest.mark.parametrize("attack", TEXTS)
def test_arguments_and_files_are_quoted(attack: str, tcplab: Command, tmp_path: Path) -> None:
    text, _ = TEXTS[attack]
    place = text.replace("/", "|")
    (tmp_path / f"{place}.json").write_text(experiment("x", sweep={}))
    good = tcplab("run", f"{place}.json", "--out", f"{place}-out")
    assert good.returncode == 0, good.stderr
    is_clean(good.stdout, good.stderr)
    (tmp_path / f"{place}.bad.json").write_text("{")
    for words in (
        ["run", f"{place}.bad.json"],
        ["check", f"{place}.none.json"],
        ["run", f"{place}.json", "--on", text],
        ["run", f"{place}.json", "--chart", text],
        ["run", f"{place}.json", "--chart", f"{place}/x.svg"],
        ["run", f"{place}.json", "--workers", text],
        ["run", f"{place}.json", "--kernel", text, "--on", "linux"],
        ["compare", f"{place}.json", "--on", text],
        ["explain", text],
        ["list", text],
        ["list", "profiles", "--explain", text],
        ["verify", place],
        ["kernel", "remove", text],
        ["kernel", "build", "--version", text],
        ["kernel", "build", "--source", f"{place}/none"],
        [text],
        ["check", f"{place}.json", text],
        [f"--{text}"],
    ):
        done = tcplab(*words)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        is_clean(done.stdout, done.stderr)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("attack", TEXTS)
def test_stored_results_are_quoted(attack: str, tcplab: Command, tmp_path: Path) -> None:
    text, _ = TEXTS[attack]
    place = text.replace("/", "|")
    (tmp_path / "x.json").write_text(experiment("x", sweep={}))
    assert tcplab("run", "x.json", "--out", place, "--quiet").returncode == 0
    (group,) = [folder for folder in (tmp_path / place).iterdir() if folder.is_dir()]
    plans = group / "plans.parquet"
    table = pl.read_parquet(plans.read_bytes())
    stored = json.loads(table["plan"][0]) | {"experiment": text, "id": text}
    table.with_columns(plan=pl.lit(json.dumps(stored))).write_parquet(plans)
    write_list(group, {name: checksum((group / name).read_bytes()) for name in listed(group)})
    done = tcplab("verify", place)
    assert done.returncode == 1
    is_clean(done.stdout, done.stderr)
    assert done.stdout.splitlines()[-1] == "1 run checked, 1 wrong"
    assert len(done.stdout.splitlines()) == 2
    again = tcplab("run", "x.json", "--out", place)
    is_clean(again.stdout, again.stderr)


def test_undecodable_file_names_are_shown(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\x1b[31m.json")).write_text("{")
    command = [sys.executable.encode(), b"-m", b"tcplab.cli", b"check", b"\xff\x1b[31m.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2
    is_clean(done.stdout, done.stderr)
    assert b"Traceback" not in done.stderr


def test_progress_reads_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    from tcplab._run.progress import Stages  # noqa: PLC0415

    stages = Stages(show=True)
    stages._began -= 60
    with stages:
        stages.tick("[red]x[/red][link=http://evil.test]y[/link]\x1b]0;t\x07", 1, 2, "files")
    shown = capsys.readouterr().err
    assert "[red]x[/red]" in shown
    assert "\x1b]0;" not in shown
    assert "\x1b]8;" not in shown
