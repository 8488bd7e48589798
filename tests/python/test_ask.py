"""Quick questions: values on the command line, experiments from flags, results shown again."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import jsonschema
import polars as pl
import pytest
from conftest import EXAMPLES, Command

import tcplab as lab
from tcplab import _warnings
from tcplab._experiment import toml_writer
from tcplab._results import json_output
from tcplab.cli import trying

FIRST = EXAMPLES / "first.toml"

TWO = """\
name = "two"
duration = "2 s"

[let]
size = "20 packets"

[network.chain]
rate = "10M"
delay = "5ms"
queue = "$size"

[[flows]]
name = "web"
from = "client"
to = "server"

[[flows]]
from = "client"
to = "server"
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two short flows in a file."""
    file = tmp_path / "two.toml"
    file.write_text(TWO)
    return file


def ids(experiment: lab.Experiment) -> list[str]:
    return [plan.id for plan in experiment.plans()]


def flows(done: subprocess.CompletedProcess[str]) -> pl.DataFrame:
    """The flows of results printed as JSON."""
    assert done.returncode == 0, done.stderr
    return pl.DataFrame(json.loads(done.stdout)["flows"], infer_schema_length=None)


def test_values_are_set_by_path(two: Path, tcplab: Command) -> None:
    words = ["run", two, "--format", "json", "--no-chart", "--quiet"]
    named = flows(tcplab(*words, "--set", "flows.web.cc=bbr"))
    assert named["cc"].to_list() == ["bbr", "cubic"]
    every = flows(tcplab(*words, "--set", "flows.*.cc=bbr", "--set", "size=50ms", "--seed", 7))
    assert every["cc"].to_list() == ["bbr", "bbr"]
    longer = lab.load(two).changed({"duration": "3s", "flows[1].cc": "vegas"})
    shown = flows(tcplab(*words, "--duration", "3s", "--set", "flows[1].cc=vegas"))
    assert shown["run"].unique().to_list() == ids(longer)
    # Of several values for a key, the last counts.
    last = flows(tcplab(*words, "--set", "flows.*.cc=bbr", "--set", "flows[0].cc=vegas"))
    assert last["cc"].to_list() == ["vegas", "bbr"]


def test_changed_experiments_equal_those_written_directly(two: Path) -> None:
    changed = lab.load(two).changed({"flows.*.cc": "newreno", "size": "30 packets"})
    text = TWO.replace('"20 packets"', '"30 packets"').replace(
        "[[flows]]", '[[flows]]\ncc="newreno"'
    )
    two.write_text(text)
    assert ids(changed) == ids(lab.load(two))
    # An experiment that comes from no file, with a table as value.
    plain = lab.Experiment(**tomllib.loads(TWO))
    queue = {"kind": "codel", "limit": "100 packets"}
    assert '"kind":"codel"' in plain.changed({"network.chain.queue": queue}).plans()[0].to_json()


def test_a_value_replaces_a_sweep(two: Path) -> None:
    two.write_text(
        TWO + '[sweep]\n"flows.*.cc" = ["bbr", "cubic"]\nsize = ["9 packets", "50 ms"]\n'
    )
    swept = lab.load(two)
    assert len(swept.plans()) == 4
    one = swept.changed({"flows.*.cc": "vegas"})
    assert [dict(plan.swept) for plan in one.plans()] == [{"size": "9 packets"}, {"size": "50 ms"}]
    with pytest.raises(lab.ConfigError, match=r"`sweep\.\"flows\.\*\.cc\"` sets it in all runs"):
        swept.changed({"flows.web.cc": "vegas"})
    again = swept.changed({'sweep."flows.*.cc"': ["bbr"]})
    assert len(again.plans()) == 2


MISTAKES = {
    "flows.wep.cc=bbr": 'two.toml: flows.wep.cc: no flow is called "wep"; did you mean "web"?',
    "flows.*.cc=bbq": "two.toml: flows[0].cc: no congestion control is called",
    "flows[3].cc=bbr": "there is nothing at `flows[3].cc`: `flows` has 2 entries",
    "duration=5": "two.toml: duration: 5 has no unit",
    "network.chain.rate=10 Mbps": "two.toml: network.chain.rate: `Mbps` is not a unit of rate",
    "netwrok.chain.rate=1M": 'did you mean "network"?',
    "a b=1": '"a b" is not a path',
    "duration=\udcff": "is not text (UTF-8)",
    "nothing": "nothing: write it like flows[0].cc=bbr",
}


@pytest.mark.parametrize("change", MISTAKES)
def test_invalid_set_values_are_refused(change: str, two: Path, tcplab: Command) -> None:
    done = tcplab("run", two.name, "--set", change)
    assert (done.returncode, done.stdout) == (2, "")
    assert MISTAKES[change] in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in two.parent.iterdir()] == ["two.toml"]


def test_mistakes_in_the_file_keep_their_line_with_set(two: Path, tcplab: Command) -> None:
    two.write_text(TWO.replace('delay = "5ms"', 'delay = "5mm"'))
    done = tcplab("check", two.name, "--set", "network.chain.rate=1mm")
    assert done.stderr.splitlines() == [
        "error: two.toml: network.chain.rate: `mm` is not a unit of rate; the units are bit/s, "
        "kbit/s, Mbit/s, Gbit/s, Tbit/s, k, M, G, T",
        "error: two.toml: line 9: network.chain.delay: `mm` is not a unit of time; the units are "
        "ps, ns, us, ms, s, µs, min, h",
    ]


@pytest.mark.parametrize("is_json", [False, True])
def test_standard_input_is_an_experiment(is_json: bool, two: Path, tmp_path: Path) -> None:
    text = json.dumps(lab.load(two).to_dict()) if is_json else TWO

    def run(text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tcplab.cli", "run", "-", "--format", "json", "--no-chart"]
        return subprocess.run(
            command, cwd=tmp_path, input=text, capture_output=True, text=True, check=False
        )

    assert flows(run(text))["run"].unique().to_list() == ids(lab.load(two))
    assert (tmp_path / "results" / "two").is_dir()
    done = run(text.replace("5ms", "5mm"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: <stdin>: " + ("" if is_json else "line 9: "))


def test_json_has_the_numbers_of_the_frames_and_its_schema(
    small: lab.Experiment, tcplab: Command, tmp_path: Path
) -> None:
    (tmp_path / "small.json").write_text(json.dumps(small.to_dict()))
    done = tcplab("run", "small.json", "--format", "json", "--by", "class", "--no-chart")
    printed = json.loads(done.stdout)
    schema = json.loads(tcplab("schema", "--results").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(printed, schema)
    results = lab.run(small)
    assert printed["by"] == "class"
    for name, frame in {
        "runs": results.runs.drop("wall_s"),
        "flows": results.flows,
        "summary": results.summary(by="class"),
    }.items():
        rows = [
            {key: value for key, value in row.items() if key != "wall_s"} for row in printed[name]
        ]
        assert rows == frame.to_dicts()
    # The documented columns are those that exist.
    described = json_output.schema()["properties"]
    for name, frame in {"runs": results.runs, "flows": results.flows}.items():
        known = described[name]["items"]["properties"]
        numbers = {"network.chain.queue_packets"}
        assert set(known) == set(frame.columns) - set(results.swept) - numbers
    known = described["summary"]["items"]["properties"]
    assert set(results.summary().columns) - set(results.swept) <= set(known)


@pytest.mark.parametrize("by", ["flow", "cc"])
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_comparisons_and_metrics_in_json_have_the_schema(
    small: lab.Experiment, by: str, statistic: str
) -> None:
    results = lab.run(small.changed({"repeat": 12, "duration": "500 ms"}))
    summary = results.summary(by=by, statistic=statistic, metrics=["power"])
    versus = results.versus("10 packets", by=by)
    printed = json.loads(
        json_output.document(results, summary, by=by, statistic=statistic, versus=versus)
    )
    schema = json_output.schema()
    jsonschema.validate(printed, schema)
    assert printed["versus"] == versus.to_dicts()
    for name, frame in {"summary": summary, "versus": versus}.items():
        known = schema["properties"][name]["items"]["properties"]
        assert set(frame.columns) - set(results.swept) <= set(known)
    # Each key that is described says what it means.
    for table in ("runs", "flows", "summary", "versus"):
        for about in schema["properties"][table]["items"]["properties"].values():
            assert about["description"]


def test_results_are_printed_as_csv_and_markdown(two: Path, tcplab: Command) -> None:
    words = ["run", two, "--no-chart", "--quiet", "--format"]
    frame = pl.read_csv(tcplab(*words, "csv").stdout.encode())
    assert frame.columns == lab.run(two).summary().columns
    assert frame["goodput_mbit_s"].to_list() == lab.run(two).summary()["goodput_mbit_s"].to_list()
    head, rule, *rows = tcplab(*words, "markdown").stdout.splitlines()
    assert head.startswith("| flow | cc | goodput (Mbit/s) | share (%) |")
    assert rule.startswith("| --- | --- | --: |")
    assert [row.split(" | ")[0] for row in rows] == ["| web", "| flow2"]
    row = tcplab(*words, "table", "--by", "cc").stdout.splitlines()[3]
    assert row.split()[:2] == ["cubic", "2"]


def test_flows_that_never_connect_are_named(tcplab: Command, two: Path) -> None:
    two.write_text(TWO.replace('queue = "$size"', 'queue = "$size"\nloss = 1.0'))
    done = tcplab("run", two, "--no-chart", "--quiet")
    assert done.stdout.splitlines()[-1] == "Never connected: web, flow2."


def test_warnings_name_the_variants_that_they_are_about(tcplab: Command, two: Path) -> None:
    two.write_text(TWO + '[sweep]\nsize = ["0.1bdp", "1bdp"]\n')
    done = tcplab("run", two, "--no-chart", "--quiet")
    assert "(where size = 0.1bdp)" in done.stderr
    both = '[sweep]\nsize = ["0.1bdp", "1bdp"]\n"flows.*.cc" = ["cubic", "bbr"]\n'
    two.write_text(TWO + both)
    done = tcplab("run", two, "--no-chart", "--quiet")
    assert "(where size = 0.1bdp)" in done.stderr


def test_variants_are_named_by_what_they_have_in_common() -> None:
    variants = [(("a", a), ("b", b)) for a in "12" for b in "123"]
    assert _warnings._where(variants[:3], variants) == "where a = 1"
    assert _warnings._where(variants[1:2], variants) == "where a = 1, b = 2"
    scattered = [variants[0], variants[4]]
    first = "first where a = 1, b = 1"
    assert _warnings._where(scattered, variants) == f"in 2 of 6 variants, {first}"


def test_show_prints_the_output_of_run_again(
    small: lab.Experiment, tcplab: Command, tmp_path: Path
) -> None:
    (tmp_path / "small.json").write_text(json.dumps(small.to_dict()))
    first = tcplab("run", "small.json", "--out", "out", "--no-chart", "--quiet")
    for folder in (tmp_path / "out").rglob("*"):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    (tmp_path / "out").chmod(0o555)
    before = sorted((tmp_path / "out").rglob("*"))
    again = tcplab("show", "out")
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "")
    assert sorted((tmp_path / "out").rglob("*")) == before
    stored = lab.stored(tmp_path / "out")
    assert stored.digests == lab.run(small).digests
    assert [plan.id for plan in stored.plans] == ids(small)
    [group] = (tmp_path / "out").glob("group-*")
    assert lab.stored(group).runs["run"].to_list() == ids(small)
    done = tcplab("show", "out", "--chart", "again.pdf")
    assert done.returncode == 0
    assert (tmp_path / "again.pdf").read_bytes().startswith(b"%PDF")
    (tmp_path / "out").chmod(0o755)
    # Without the list of runs, all stored runs are shown.
    (tmp_path / "out" / "runs.json").unlink()
    assert tcplab("show", "out").stdout == first.stdout


def test_missing_runs_of_an_interrupted_sweep_are_reported(
    small: lab.Experiment, tmp_path: Path
) -> None:
    lab.run(small.replace(sweep={"network.chain.queue": ["10 packets"]}), out=tmp_path)
    # The list of an experiment with more runs, killed before any of those was stored.
    listed = (tmp_path / "runs.json").read_text()
    others = [
        json.dumps({**run, "run": f"{place:016x}"})
        for place, run in enumerate(json.loads(listed)["runs"])
    ]
    (tmp_path / "runs.json").write_text(listed.replace("\n]}", f",\n{', '.join(others)}\n]}}"))
    with pytest.warns(
        lab.TcplabWarning, match="2 of 4 runs are there; the command that began them"
    ):
        assert len(lab.stored(tmp_path).plans) == 2


def test_a_run_is_shown_as_the_experiment_calls_it(small: lab.Experiment, tmp_path: Path) -> None:
    lab.run(small, out=tmp_path)
    other = small.replace(name="other", sweep={"network.chain.queue": ["20 packets"]}, repeat=1)
    lab.run(other, out=tmp_path)
    stored = lab.stored(tmp_path)
    assert stored.runs["experiment"].to_list() == ["other"]
    assert stored.runs["network.chain.queue"].to_list() == ["20 packets"]


def test_show_of_missing_results_is_refused(
    small: lab.Experiment, tcplab: Command, tmp_path: Path
) -> None:
    lab.run(small, out=tmp_path / "all" / "out")
    [damaged] = (tmp_path / "all" / "out").glob("group-*/flows.parquet")
    for folder, said in {
        "missing": "missing: there is no such folder; expected results of tcplab run",
        "all": "all: has no results of a run; there are some in out",
    }.items():
        done = tcplab("show", folder)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {said}\n")
    damaged.write_bytes(b"")
    done = tcplab("show", "all/out")
    assert done.returncode == 2
    assert (
        "flows.parquet is damaged, or belongs to another group of runs; run the experiment again"
        in done.stderr
    )
    (tmp_path / "all" / "out" / "runs.json").write_text("[1]")
    said = "runs.json: is not the list of runs that tcplab run writes"
    assert said in tcplab("show", "all/out").stderr


def test_results_hold_the_experiment_as_it_was_written(two: Path, tmp_path: Path) -> None:
    lab.run(two, out=tmp_path / "out")
    assert (tmp_path / "out" / "experiment.toml").read_text() == TWO
    changed = lab.load(two).changed({"flows.*.cc": "bbr"})
    lab.run(changed, out=tmp_path / "out")
    again = lab.load(tmp_path / "out" / "experiment.toml")
    assert again.to_dict() == changed.to_dict()
    (tmp_path / "two.json").write_text(json.dumps(changed.to_dict()))
    lab.run(tmp_path / "two.json", out=tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_file()} == {
        "experiment.json",
        "runs.json",
    }


def test_run_does_not_overwrite_foreign_files(two: Path, tmp_path: Path) -> None:
    own = tmp_path / "out" / "experiment.toml"
    own.parent.mkdir()
    own.write_text(TWO)
    # The file itself is in the folder of its results, and is run with other values.
    lab.run(lab.load(own).changed({"flows.*.cc": "bbr"}), out=own.parent)
    assert own.read_text() == TWO
    assert lab.stored(own.parent).flows["cc"].to_list() == ["bbr", "bbr"]
    (own.parent / "runs.json").write_text("[]")
    lab.run(two, out=own.parent)
    assert (own.parent / "runs.json").read_text() == "[]"
    # A file that was changed since it was written belongs to the user.
    lab.run(two, out=tmp_path / "again")
    (tmp_path / "again" / "experiment.toml").write_text("# notes\n")
    lab.run(lab.load(two).changed({"seed": 2}), out=tmp_path / "again")
    assert (tmp_path / "again" / "experiment.toml").read_text() == "# notes\n"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_experiments_are_written_as_toml_and_read_back(file: Path, tmp_path: Path) -> None:
    plain = lab.load(file).to_dict()
    text = toml_writer.written(plain)
    assert tomllib.loads(text) == plain
    # The order of the swept keys is that of the runs.
    read = tomllib.loads(text)
    for key in ("sweep", "variants"):
        assert list(read.get(key, {})) == list(plain.get(key, {}))


def test_odd_texts_are_written_as_toml() -> None:
    plain = {
        "name": 'a "b" \\ \x7f \u20ac',
        "let": {"x.y": [1, 2.5, True, [], {}], "empty": {}},
        "hosts": {"left*": {"stack": {"cc": "bbr"}}},
        "variants": {"default": {}, "a b": {"x": {"kind": "codel"}}},
    }
    assert tomllib.loads(toml_writer.written(plain)) == plain


def test_try_runs_a_path_from_flags(tcplab: Command, tmp_path: Path) -> None:
    words = ["--rate", "20M", "--rtt", "40ms", "--queue", "1bdp", "--loss", "0.1%"]
    words += ["--cc", "cubic,bbr", "--traffic", "web", "--quiet", "--format", "json"]
    done = tcplab("try", *words, "--save", "mine.toml")
    read = json.loads(done.stdout)
    assert [run["flows.flow.cc"] for run in read["runs"]] == ["cubic", "bbr"]
    # All 49 objects of the page.
    assert [flow["completed_transfers"] for flow in read["flows"]] == [49, 49]
    assert (tmp_path / "results" / "try" / "chart.svg").is_file()
    saved = (tmp_path / "mine.toml").read_text()
    assert saved.startswith("# Made by: tcplab try --rate 20M ")
    assert 'rate = "20M"' in saved
    assert max(map(len, saved.splitlines()[3:])) <= 100
    assert ids(lab.load(tmp_path / "mine.toml")) == [run["run"] for run in read["runs"]]
    # Files written by the command are replaced; files written by hand are not.
    assert tcplab("try", "--quiet", "--no-chart", "--save", "mine.toml").returncode == 0
    (tmp_path / "mine.toml").write_text("# by hand\n")
    done = tcplab("try", "--save", "mine.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: mine.toml: was not made by tcplab try; name another file\n"


@pytest.mark.parametrize(
    ("flag", "value"),
    [("cc", "nosuch"), ("against", "cubic,nosuch"), ("rtt", "5x"), ("loss", "200%")],
)
def test_try_names_the_flag_of_a_mistake(flag: str, value: str, tcplab: Command) -> None:
    refused = tcplab("try", f"--{flag}", value)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: --{flag}: ")


def test_try_makes_a_sweep_of_several_values(tcplab: Command) -> None:
    words = ["try", "--rtt", "10ms,40ms", "--queue", '{ kind = "codel", limit = "90 packets" },fq']
    words += ["--traffic", "2MB", "--against", "newreno", "--flows", "2", "--duration", "2s"]
    done = tcplab(*words, "--set", "flows.other.start=1s", "--no-chart", "--format", "json")
    read = json.loads(done.stdout)
    assert [run["rtt"] for run in read["runs"]] == ["10ms", "10ms", "40ms", "40ms"]
    assert read["runs"][1]["network.dumbbell.queue"] == "fq"
    assert {flow["flow"] for flow in read["flows"]} == {"flow/1", "flow/2", "other"}
    # With serialisation on three links each way, the RTT slightly exceeds that of the path.
    rtts = (
        pl.DataFrame(read["flows"])
        .group_by("run", maintain_order=True)
        .agg(pl.col("rtt_min_ms").min())
    )
    assert [round(rtt, -1) for rtt in rtts["rtt_min_ms"]] == [10, 10, 40, 40]


def test_a_page_load_starts_while_the_competing_flow_runs(tcplab: Command) -> None:
    words = ["try", "--rate", "5M", "--traffic", "web", "--against", "cubic", "--repeat", "3"]
    done = tcplab(*words, "--no-chart", "--format", "json")
    flows = [one for one in json.loads(done.stdout)["flows"] if one["flow"] == "flow"]
    starts = [one["start_s"] for one in flows]
    assert all(2 <= start <= 3 for start in starts)
    assert len(set(starts)) == 3


TRIED = {
    ("--rate", "10Mbps"): "--rate: `Mbps` is not a unit of rate",
    ("--cc", "cubic,,bbr"): "'cubic,,bbr' has an empty value",
    ("--cc", "qubic"): 'no congestion control is called "qubic"; did you mean "cubic"?',
    ("--queue", "64k"): "`k` is not a unit of queue size",
    ("--loss", "2"): "2 is outside the range from 0 to 1",
    ("--traffic", "pigeons"): 'no kind of traffic is called "pigeons"',
    ("--traffic", "vioce"): 'no traffic is called "vioce"; did you mean "voice"?',
    ("--save", "no/such.toml"): "no is not a folder",
    ("--save", "mine.json"): "experiments are saved as TOML",
    ("--rates", "1M"): "unrecognized arguments",
    ("--cc", "b\udcff"): "is not text (UTF-8)",
}


@pytest.mark.parametrize("words", TRIED, ids=" ".join)
def test_invalid_arguments_of_try_are_refused(
    words: tuple[str, ...], tcplab: Command, tmp_path: Path
) -> None:
    extra = () if words[0] == "--save" else ("--save", "mine.toml")
    done = tcplab("try", *words, *extra)
    assert (done.returncode, done.stdout) == (2, "")
    assert TRIED[words] in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("traffic", trying.TRAFFIC)
def test_every_traffic_word_of_try_runs(traffic: str, tcplab: Command) -> None:
    done = tcplab("try", "--traffic", traffic, "--duration", "3s", "--no-chart", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_files_written_by_new_are_valid(tcplab: Command, tmp_path: Path) -> None:
    listed = tcplab("new").stdout.splitlines()[2:]
    names = [line.split()[0] for line in listed if not line.startswith(" ")]
    assert {"dumbbell", "web", "wifi", "lan", "papers/dctcp"} <= set(names)
    for name in names:
        file = tmp_path / f"a-{name.replace('/', '-')}.toml"
        assert tcplab("new", name, file).returncode == 0
        assert "examples/" not in re.sub(r"docs/\S+", "", file.read_text())
        assert lab.load(file).plans()
    done = tcplab("new", "dumbbell")
    assert done.stdout == "wrote dumbbell.toml; run it with: tcplab run dumbbell.toml\n"
    assert "tcplab run dumbbell.toml" in (tmp_path / "dumbbell.toml").read_text()
    done = tcplab("new", "dumbbell")
    assert done.returncode == 2
    assert "dumbbell.toml: exists already" in done.stderr
    assert 'no template is called "x"' in tcplab("new", "x").stderr
    assert "no is not a folder" in tcplab("new", "lan", "no/lan.toml").stderr


@pytest.mark.parametrize("kind", ["svg", "png", "pdf", "html", "json"])
def test_charts_are_of_any_kind_or_none(kind: str, two: Path, tcplab: Command) -> None:
    done = tcplab("run", two, "--chart", f"x.{kind}", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    content = (two.parent / f"x.{kind}").read_bytes()
    assert content[:4] == {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}.get(kind, content[:4])
    assert not (two.parent / "results" / "two" / "chart.svg").exists()
    if kind == "svg":
        # The image is the same from a separate process and from this one.
        assert lab.plot.drawn(lab.plot.overview(lab.run(two)), ".svg") == content
    tcplab("run", two, "--no-chart", "--out", "none")
    assert not list((two.parent / "none").glob("*.svg"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_flags(shell: str, tcplab: Command) -> None:
    script = tcplab("completion", shell).stdout
    for word in ("compare", "no-chart", "against", "markdown"):
        assert word in script


def test_bash_completes(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "c").write_text(tcplab("completion", "bash").stdout)
    asked = (
        "source ./c; COMP_WORDS=(tcplab run --no); COMP_CWORD=2; _shtab_tcplab; "
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "--no-chart\n"


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish: sudo apt-get install fish")
def test_fish_completes(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "tcplab.fish").write_text(tcplab("completion", "fish").stdout)

    def completed(typed: str) -> list[str]:
        command = ["fish", "--no-config", "-c", f"source tcplab.fish; complete -C '{typed}'"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        # A description follows each word.
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    assert completed("tcplab ru") == ["run"]
    assert completed("tcplab run --no-ch") == ["--no-chart"]
    assert completed("tcplab run --format ") == ["table", "json", "csv", "markdown"]
    assert completed("tcplab run tcplab.f") == ["tcplab.fish"]


# Ctrl-X writes what stands on the line down; a file says that a line can be typed.
ZSH = """
PS1= RPS1= PROMPT_EOL_MARK=
fpath=($PWD $fpath)
autoload -Uz compinit && compinit -u -D
say() { print -r -- $BUFFER > unfinished && mv unfinished line }
zle -N say
bindkey '^X' say
zle-line-init() { : > ready }
zle -N zle-line-init
"""


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh: sudo apt-get install zsh")
def test_zsh_completes(tcplab: Command, tmp_path: Path) -> None:
    """zsh completes in its line editor alone: the test types into a terminal."""
    (tmp_path / "_tcplab").write_text(tcplab("completion", "zsh").stdout)
    (tmp_path / ".zshrc").write_text(ZSH)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "ZDOTDIR": str(tmp_path), "TERM": "xterm"}
    shell = subprocess.Popen(
        ["zsh", "--no-global-rcs", "-i"],
        cwd=tmp_path,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)

    def wait_for(file: Path) -> None:
        end = time.monotonic() + 20
        while not file.exists():
            assert time.monotonic() < end, f"there is no {file.name}"
            # The terminal takes no more than its buffer holds.
            if select.select([ours], [], [], 0.02)[0]:
                os.read(ours, 65536)

    def completed(typed: str) -> str:
        (tmp_path / "line").unlink(missing_ok=True)
        os.write(ours, f"\x15{typed}\t\x18".encode())
        wait_for(tmp_path / "line")
        return (tmp_path / "line").read_text().rstrip()

    try:
        wait_for(tmp_path / "ready")
        assert completed("tcplab comple") == "tcplab completion"
        assert completed("tcplab run --no-ch") == "tcplab run --no-chart"
        assert completed("tcplab run --format mark") == "tcplab run --format markdown"
        assert completed("tcplab run _tcp") == "tcplab run _tcplab"
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


def test_progress_is_a_line_now_and_then_without_a_terminal(
    two: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcplab._run.progress.PAUSE_S", 0.0)
    lab.run(lab.load(two).changed({"duration": "200s"}))
    lines = capfd.readouterr().err.splitlines()
    assert lines
    assert all(re.fullmatch(r"\d+ s, 0 of 1 runs, \d+ of 200 s simulated", line) for line in lines)
    lab.run(lab.load(two), progress=False)
    assert capfd.readouterr().err == ""


def test_help_imports_no_heavy_modules() -> None:
    program = (
        "import sys; from tcplab.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print(*{'polars', 'altair', 'rich', 'dataclasses'} & sys.modules.keys(), 'end')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert done.stdout.splitlines()[-1] == "end"
