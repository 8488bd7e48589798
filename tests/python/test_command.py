"""The output of the command, for valid and invalid input."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from conftest import EXAMPLES, Command

import tcplab as lab
from tcplab.cli import _arguments, main

FIRST = EXAMPLES / "first.toml"

GOOD = """\
duration = "1 s"
[network.chain]
rate = "10 Mbit/s"
delay = "5 ms"
queue = "20 packets"
[[flows]]
from = "client"
to = "server"
cc = "cubic"
"""


def bad(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


MISTAKES = {
    "unknown key": (bad("delay", "dealy"), r'line 4: network\.chain\.dealy: .*"dealy".*"delay"'),
    "wrong unit": (bad("5 ms", "5 mm"), r"line 4: network\.chain\.delay: `mm` is not a unit"),
    "no unit": (bad('"5 ms"', "5"), r"line 4: network\.chain\.delay: 5 has no unit"),
    "negative rate": (bad("10 Mb", "-10 Mb"), r"line 3: network\.chain\.rate: .* is negative"),
    "unknown node": (bad('"server"', '"serfer"'), r'line 8: flows\[0\]\.to: .*"serfer".*"server"'),
    "zero queue": (bad("20 packets", "0 packets"), r"line 5: .*queue: must be more than zero"),
    "zero duration": (bad("1 s", "0 s"), r"line 1: duration: must be more than zero"),
    "unknown algorithm": (bad("cubic", "qubic"), r'line 9: flows\[0\]\.cc: .*"qubic".*"cubic"'),
    "sweep of nothing": (
        GOOD + '[sweep]\n"flows[1].cc" = ["cubic"]\n',
        r"line 11: .*there is nothing at `flows\[1\]\.cc`",
    ),
    "not TOML": ("duration = \n", r"line 1: this is not TOML"),
    "not TOML at all": ("<html>", r"line 1: this is not TOML"),
    "nothing": ("", r"duration: is missing"),
    "one station": (
        GOOD + '[network.lan.office]\nnodes = ["x"]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n',
        r"line 11: network\.lan\.office\.nodes: needs two nodes at least",
    ),
    "float": (bad("5 ms", "2.0999999999999996 s"), r"finer than a picosecond; write `2\.1 s`"),
    "parameter": (bad('"cubic"', '{ name = "cubic", beta = "x" }'), r'beta: "x" is not a number'),
    "unreachable": (
        GOOD + '[[network.links]]\nbetween = ["x", "y"]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n'
        '[[flows]]\nfrom = "x"\nto = "server"\n',
        r'no path leads from "x" to "server"',
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_bad_input_is_refused(
    mistake: str, tcplab: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, message = MISTAKES[mistake]
    (tmp_path / "bad.toml").write_text(text)
    done = tcplab("run", "bad.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert re.search(message, done.stderr), done.stderr
    for line in done.stderr.splitlines():
        assert line.startswith("error: bad.toml: "), line
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]
    assert main(["check", str(tmp_path / "bad.toml")]) == 2
    checked = capsys.readouterr()
    assert checked.out == ""
    assert checked.err == done.stderr.replace("bad.toml", str(tmp_path / "bad.toml"))


def test_all_mistakes_are_reported_together(tcplab: Command, tmp_path: Path) -> None:
    text = bad("5 ms", "5 mm").replace("20 packets", "0 packets")
    (tmp_path / "bad.toml").write_text(text)
    assert len(tcplab("check", "bad.toml").stderr.splitlines()) == 2


def test_files_that_cannot_be_read_are_refused(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    os.mkfifo(tmp_path / "pipe.toml")
    with (tmp_path / "large.toml").open("wb") as large:
        large.truncate(64_000_001)
    for file, message in {
        "pipe.toml": "error: pipe.toml: is not a file\n",
        "/dev/zero": "error: /dev/zero: is not a file\n",
        "large.toml": "error: large.toml: is larger than the limit of 64 MB\n",
        "missing.toml": "error: missing.toml: no such file or directory\n",
        "folder": "error: folder: is a directory\n",
        "binary.toml": "error: binary.toml: this is not a text file (UTF-8)\n",
    }.items():
        done = tcplab("run", file)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_an_unwritable_folder_is_refused_before_anything_runs(
    tcplab: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    done = tcplab("run", FIRST, "--out", "file/results")
    message = "error: the folder file/results cannot be written: not a directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
    done = tcplab("run", FIRST, "--chart", "missing/chart.svg")
    assert (done.returncode, done.stdout) == (2, "")
    assert "missing is not a folder" in done.stderr
    done = tcplab("run", FIRST, "--chart", "chart.gif")
    assert done.returncode == 2
    assert "a chart is saved as .svg, .png, .pdf, .html, .json" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_unwritable_charts_are_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(chart: Path) -> str:
        with pytest.raises(OSError, match="cannot be written") as raised:
            _arguments.ensure_writable(chart)
        return str(raised.value).replace(str(tmp_path), "DIR")

    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "there.svg").touch()
    assert said(tmp_path / "folder.svg") == (
        "the chart DIR/folder.svg cannot be written: it is a folder"
    )
    # Tests may run as root, to whom nothing is forbidden.
    for place, message in {
        "there.svg": "the chart DIR/there.svg cannot be written: permission denied",
        "": "the chart DIR/there.svg cannot be written: DIR: permission denied",
    }.items():
        forbidden = tmp_path / place
        monkeypatch.setattr("os.access", lambda path, mode, no=forbidden: path != no)
        assert said(tmp_path / "there.svg") == message


def test_refusals_name_the_backend_that_runs_the_experiment(
    tcplab: Command, tmp_path: Path
) -> None:
    command = '"cubic"\ntraffic = { kind = "command", server = "true", client = "true" }'
    (tmp_path / "program.toml").write_text(bad('"cubic"', command))
    refusal = (
        "program.toml: line 10: flows[0].traffic: the traffic `command` is not available on `sim`; "
        "there are bulk, on-off, udp, requests, web, arrivals; "
        "`linux` runs the experiment: "
        "tcplab run program.toml --on linux\n"
    )
    done = tcplab("run", "program.toml")
    assert (done.returncode, done.stderr) == (2, f"error: {refusal}")
    checked = tcplab("check", "program.toml")
    assert checked.returncode == 0
    assert checked.stdout.splitlines()[1:4] == ["runs on linux", "", refusal.strip()]
    assert tcplab("check", "program.toml", "--on", "sim").returncode == 2
    assert tcplab("check", "program.toml", "--on", "linux").returncode == 0
    # In this command, `--on` takes two backends.
    assert tcplab("compare", "program.toml").stderr == f"error: {refusal}"
    # For an experiment that neither backend can run, no other backend is suggested.
    (tmp_path / "both.toml").write_text(bad('"cubic"', command).replace("cubic", "compound"))
    done = tcplab("run", "both.toml")
    assert "`command` is not available on `sim`" in done.stderr
    assert "--on" not in done.stderr
    (tmp_path / "sim.toml").write_text(bad("cubic", "compound"))
    done = tcplab("run", "sim.toml", "--on", "linux")
    assert done.returncode == 2
    assert "`sim` runs the experiment: tcplab run sim.toml --on sim" in done.stderr
    (tmp_path / "good.toml").write_text(GOOD)
    done = tcplab("run", "good.toml", "--on", "linux", "--set", "flows.*.cc=compound")
    assert done.stderr.endswith("; `sim` runs the experiment: --on sim\n")


def test_other_backends_are_refused(tcplab: Command) -> None:
    done = tcplab("run", FIRST, "--on", "sym")
    assert done.returncode == 2
    assert done.stderr == 'error: no backend is called "sym"; did you mean "sim"?\n'


@pytest.mark.parametrize("workers", ["0", "-1", "many"])
def test_workers_are_at_least_one(workers: str, tcplab: Command) -> None:
    done = tcplab("run", FIRST, f"--workers={workers}")
    assert done.returncode == 2
    assert "is not a number of at least 1" in done.stderr


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tcplab.cli schema | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_not_errors(tmp_path: Path, closed: str) -> None:
    command = shlex.join([str(Path(sys.executable).parent / "tcplab"), "run", str(FIRST)])
    done = subprocess.run(
        f"{command} --out out {closed}",
        shell=True,
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    # A write meant for a stream has not gone into a file of results.
    assert not lab.verify(tmp_path / "out").findings


def test_run_prints_a_table_and_the_folder_of_results(
    tcplab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    done = tcplab("run", FIRST)
    assert done.returncode == 0
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    first, second = done.stdout.splitlines()[3:]
    assert first.split()[:2] == ["a", "cubic"]
    assert second.split()[:2] == ["b", "newreno"]
    shares = [float(line.split()[3]) for line in (first, second)]
    # The second flow begins 5 s later. Of 1500 bytes, 1448 are data: 96.53 %.
    carried = (shares[0] * 60 + shares[1] * 55) / 60
    assert 80 < carried < 96.6
    assert "1 run, 60 s simulated in" in done.stderr
    folder = tmp_path / "results" / "two-algorithms-one-bottleneck"
    assert (folder / "chart.svg").is_file()
    (group,) = (path for path in folder.iterdir() if path.is_dir())
    assert sorted(path.name for path in group.iterdir()) == [
        "drops.parquet",
        "files.sha256",
        "flows.parquet",
        "intervals.parquet",
        "links.parquet",
        "packets.parquet",
        "plans.parquet",
        "runs.parquet",
        "samples.parquet",
        "transfers.parquet",
    ]
    (plan,) = pl.read_parquet(group / "plans.parquet").to_dicts()
    assert json.loads(plan["plan"])["id"] == plan["run"]
    quiet = tcplab("run", FIRST, "--quiet")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


def test_run_prints_intervals_of_repeated_runs(
    tcplab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    done = tcplab("run", EXAMPLES / "sweep.toml", "--workers", 2)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert all(len(line) <= 100 for line in lines)
    assert len([line for line in lines if " ± " in line]) == 8
    assert lines[-1] == (
        "Means of 3 repetitions, with 95 % confidence intervals, if normally distributed."
    )


def test_many_flows_are_summarised(tcplab: Command, tmp_path: Path) -> None:
    (tmp_path / "many.toml").write_text(GOOD + "count = 100\n")
    done = tcplab("run", "many.toml")
    assert done.returncode == 0
    *table, blank, last = done.stdout.splitlines()
    assert (len(table), blank) == (4, "")
    assert "Jain's index" in table[0]
    # The SYNs of a hundred flows do not fit in a queue of 20 packets.
    assert re.fullmatch(r"Never connected: (flow1/\d+, ){7}flow1/\d+ and \d+ more\.", last)
    check = tcplab("check", "many.toml").stdout
    assert "... and 97 more like it" in check


def test_check_prints_the_planned_runs(tcplab: Command, tmp_path: Path) -> None:
    done = tcplab("check", FIRST)
    assert (done.returncode, done.stderr) == (0, "")
    said = re.sub(" +", " ", done.stdout)
    assert said.startswith("two algorithms, one bottleneck: 1 run, 60 s each\n")
    assert "\nruns on sim and linux\n" in said
    assert "hosts left1, right1, left2, right2\n" in said
    # 10 Mbit/s x 40 ms = 50 kB, and 33 packets of 1500 bytes.
    assert "left <> right 10 Mbit/s 19 ms 50 kB 33.3 33 packets, droptail none\n" in said
    assert "b left2 > left > right > right2 newreno bulk 5 s 40 ms left>right\n" in said
    assert re.search(r"^[0-9a-f]{16} 1$", said, re.MULTILINE)
    assert not list(tmp_path.iterdir())


def test_check_prints_all_impairments_of_links(
    tcplab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    link = 'rate = "2 Mbit/s"\ndelay = "10 ms"\nqueue = "9 packets"\n'
    (tmp_path / "varying.toml").write_text(
        f"""duration = "3 s"
[[network.links]]
between = ["a", "b"]
{link}reordering = {{ probability = "1 %", delay = "4 ms" }}
corruption = "2 %"
duplication = "3 %"
rate_changes = [["1 s", "1 Mbit/s"], ["2 s", "3 Mbit/s"]]
delay_changes = [["1 s", "1 ms"]]
outages = [["1 s", "100 ms"]]
[[network.links]]
between = ["b", "c"]
{link}rate_changes = {{ kind = "sine", amplitude = "1 Mbit/s", period = "1 s" }}
delay_changes = {{ kind = "handover", every = "1 s", least = "1 ms", most = "5 ms" }}
outages = {{ kind = "periodic", every = "1 s", lasts = "10 ms" }}
[[network.links]]
between = ["c", "d"]
{link}rate_changes = {{ trace = "trace.txt" }}
outages = {{ kind = "random", up = "1 s", down = "10 ms" }}
jitter = {{ kind = "normal", mean = "2 ms", deviation = "1 ms" }}
[[network.links]]
between = ["d", "e"]
{link}[[flows]]
from = "a"
to = "e"
"""
    )
    (tmp_path / "trace.txt").write_text("1\n3\n")
    said = [
        re.sub(" +", " ", line).strip()
        for line in tcplab("check", "varying.toml").stdout.splitlines()
    ]
    ends = [line.partition(" 9 packets, droptail ")[2] for line in said if " <> " in line]
    assert ends == [
        "none 2 rate changes, 1 delay change, 1 outage, 1 % reordered, 2 % corrupted, "
        "3 % duplicated",
        "none rate sine, delay handover, outages of 10 ms every 1 s",
        "none trace of 3 ms, random outages",
        "none",
    ]
    assert any("10 ms + normal jitter" in line for line in said)


def test_check_counts_the_runs_of_a_sweep(tcplab: Command) -> None:
    said = tcplab("check", EXAMPLES / "sweep.toml").stdout
    assert "8 variants x 3 repetitions = 24 runs" in said
    assert len(re.findall(r"^[0-9a-f]{16} ", said, re.MULTILINE)) == 24


def test_lists_and_the_schema_are_printed(tcplab: Command) -> None:
    assert "RFC 9438" in tcplab("list", "cc").stdout
    assert "goodput_mbit_s" in tcplab("list", "columns").stdout
    assert "linux-6.12" in tcplab("list", "profiles").stdout


def test_congestion_controls_are_explained_from_their_files(tcplab: Command) -> None:
    said = tcplab("explain", "cubic").stdout
    assert said.startswith("# cubic\n")
    assert "| `beta` | `0.7` | `beta_cubic`: share kept after congestion" in said
    assert "| `cubic/2008` | `beta = 0.8`" in said
    assert "| `cubic_w_max` | `W_max`: the plateau of the curve, in segments; 0" in said
    # The kernel's implementation describes this column in its own file.
    assert "| `cubic_cnt` | Only with the Linux flavour: acknowledged segments" in said
    done = tcplab("explain", "qubic")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'no congestion control is called "qubic"; did you mean "cubic"?' in done.stderr


def test_a_preset_equals_its_written_parameters(tmp_path: Path, tcplab: Command) -> None:
    text = (EXAMPLES / "first.toml").read_text(encoding="utf-8")
    file = tmp_path / "preset.toml"
    file.write_text(text.replace('cc = "cubic"', 'cc = "cubic/2008"'), encoding="utf-8")
    preset = lab.run(file)
    assert preset.flows["cc"].to_list() == ["cubic/2008", "newreno"]
    assert "cubic_w_max" in preset.samples.columns
    written = 'cc = { name = "cubic", beta = 0.8, hystart = false }'
    file.write_text(text.replace('cc = "cubic"', written), encoding="utf-8")
    assert lab.run(file).samples.drop("run").equals(preset.samples.drop("run"))
    file.write_text(text.replace('cc = "cubic"', 'cc = "cubic/2009"'), encoding="utf-8")
    done = tcplab("run", file)
    assert done.returncode == 2
    assert "flows[0].cc: cubic has no preset `2009`" in done.stderr


def test_profiles_are_explained_by_the_kernels_names(tcplab: Command) -> None:
    lines = tcplab("list", "profiles", "--explain", "linux-6.12").stdout.splitlines()
    (min_rto,) = [line for line in lines if line.startswith("min_rto ")]
    assert min_rto.split() == ["min_rto", '"200', 'ms"', "TCP_RTO_MIN"]
    old = tcplab("list", "profiles", "--explain", "linux-2.6.26").stdout
    assert re.search(r'^reduction +"halving" +tcp_cwnd_down;', old, re.MULTILINE)
    assert re.search(r"^fack +true +sysctl tcp_fack = 1;", old, re.MULTILINE)


def test_explain_of_unknown_names_is_refused(tcplab: Command) -> None:
    done = tcplab("list", "profiles", "--explain", "linux-6.13")
    assert done.returncode == 2
    assert 'did you mean "linux-6.12"?' in done.stderr
    assert tcplab("list", "cc", "--explain", "rfc").returncode == 2
    assert json.loads(tcplab("schema").stdout)["title"] == "tcplab experiment"
    assert re.fullmatch(r"tcplab \d+\.\d+\.\d+\n", tcplab("--version").stdout)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_examples_run_in_seconds(file: Path, tcplab: Command) -> None:
    done = tcplab("run", file, "--quiet")
    assert done.returncode == 0
    # One example asks for a larger buffer than it gets, which causes a warning.
    assert ("is cut to `rmem_max`" in done.stderr) == (file.stem == "sockets")
    assert len(done.stderr.splitlines()) == (file.stem == "sockets")


def test_the_example_of_a_congestion_control_runs() -> None:
    example = [sys.executable, str(EXAMPLES / "own_cc.py")]
    done = subprocess.run(example, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"ours \(gentle\): .*\nreno \(newreno\): .*\n", done.stdout)


def test_the_python_example_runs(tmp_path: Path) -> None:
    example = [sys.executable, str(EXAMPLES / "first.py")]
    environment = os.environ | {"POLARS_FMT_TABLE_FORMATTING": "ASCII_MARKDOWN"}
    done = subprocess.run(
        example, cwd=tmp_path, capture_output=True, text=True, env=environment, check=True
    )
    assert "newreno" in done.stdout
    assert (tmp_path / "first.svg").is_file()
