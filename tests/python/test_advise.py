"""Advice: a planted optimum is found, a setting without effect is not recommended, and every number
can be reproduced.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab as lab
from tcplab._advice import api, limits, phrases, search, sensitivity, words
from tcplab._advice.advice import NOTHING, UNDECIDED, UNFINISHED, Log, concluded
from tcplab._advice.api import advice_in
from tcplab._advice.distributions import Distribution
from tcplab._advice.evidence import found, preferred
from tcplab._advice.folder import ask
from tcplab._advice.goals import GOALS
from tcplab._advice.levers import Candidate, Setting
from tcplab._advice.limit_checks import BROKEN, EXCEEDED, KEPT, UNTOLD, kept
from tcplab._advice.question import question
from tcplab._advice.race import Race, _chunks, _half, _tuned
from tcplab._advice.ranges import points
from tcplab._advice.stages import Laboratory, table
from tcplab._experiment.reading import loaded
from tcplab._store.lock import locked
from tcplab.cli._main import main

Plain = dict[str, Any]


def lossy(**more: Any) -> Plain:
    """A CUBIC bulk transfer over 10 Mbit/s and 40 ms, with one packet in fifty lost."""
    dumbbell = {"rate": "10 Mbit/s", "delay": "0 ms", "rtts": ["40 ms"], "loss": 0.02}
    flow = {"name": "flow", "from": "left1", "to": "right1"}
    return {"duration": "5 s", "network": {"dumbbell": dumbbell}, "flows": [flow], **more}


def asked(plain: Plain, out: Path, **more: Any) -> lab.Advice:
    """Advice with an ample time budget."""
    return lab.advise(plain, out=out, backend="sim", budget_s=600, progress=False, **more)


CHANGE = {"cc": ["cubic", "bbr", "newreno"], "initial_window": [10, 20]}


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, lab.Advice]:
    """Advice on the lossy transfer, over few values."""
    out = tmp_path_factory.mktemp("advice")
    return out, asked(lossy(), out, change=CHANGE)


def test_a_planted_optimum_is_found(advised: tuple[Path, lab.Advice]) -> None:
    # Mathis et al. 1997: with 2 % loss, AIMD has about 1.22 / sqrt(0.02) = 9 segments per round
    # trip of 40 ms, 2.5 Mbit/s. BBR fills the link except for the lost share.
    _, advice = advised
    assert advice.verdict == "change"
    assert "bbr" in [one.value for one in advice.candidate.settings]
    gain = advice.gain()
    assert gain is not None
    assert gain.low is not None
    assert gain.low > 1
    assert gain.advised is not None
    assert gain.advised > 8


def test_advice_includes_harm_and_waiting_times(advised: tuple[Path, lab.Advice]) -> None:
    _, advice = advised
    assert advice.harm is not None
    assert advice.harm["low"] <= advice.harm["harm"] <= advice.harm["high"]
    assert {"today", advice.candidate.name} == {one["candidate"] for one in advice.waits}
    for one in advice.waits:
        assert sum(one[cause] for cause in lab.capture.WAITS) == pytest.approx(100, abs=0.1)


def test_without_loss_the_sensitivity_map_keeps_todays_setting(
    advised: tuple[Path, lab.Advice],
) -> None:
    # Without losses, CUBIC fills a link with a buffer of one BDP.
    _, advice = advised
    best = {
        (one[sensitivity.RTT], one[sensitivity.LOSS]): one["best"]
        for one in sensitivity.best(advice.cells, GOALS["goodput"])
    }
    assert best[40, 0.0] == "today"
    assert "bbr" in best[40, 0.02]


def test_all_output_files_agree(advised: tuple[Path, lab.Advice]) -> None:
    out, advice = advised
    plain = json.loads((out / "advice.json").read_text())
    assert plain.pop("command") is None
    assert "sender/undo.sh" in plain.pop("scripts")
    assert {"first", "evidence"} <= set(plain.pop("folders"))
    assert plain == json.loads(json.dumps(advice.plain()))
    page = (out / "advice.html").read_text()
    for sentence in plain["says"][:2]:
        assert sentence.split(":")[0] in page
    assert "https://" not in page
    assert (out / "apply" / "sender" / "undo.sh").exists()


def test_advice_is_reproducible_to_the_bit(
    advised: tuple[Path, lab.Advice], tmp_path: Path
) -> None:

    out, _ = advised
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    assert main(["verify", str(copy)]) == 0
    text = (copy / "advice.json").read_text()
    (copy / "advice.json").write_text(text.replace('"verdict": "change"', '"verdict": "nothing"'))
    assert main(["verify", str(copy / "advice.json")]) == 1


def test_settings_without_effect_are_not_recommended(tmp_path: Path) -> None:
    # One segment more at the start of 5 s matters far less than 2 %.
    advice = asked(lossy(), tmp_path, change={"initial_window": [9, 11]})
    assert advice.verdict == NOTHING
    assert not advice.candidate.settings
    assert not (tmp_path / "apply").exists()
    assert words.answer(advice)[0].startswith("Change nothing: nothing is distinguishably better")


def test_an_interrupted_search_resumes(
    advised: tuple[Path, lab.Advice], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Laboratory.run

    def stopped(self: Laboratory, stage: str, *rest: Any, **more: Any) -> Any:
        if stage == "evidence":
            raise KeyboardInterrupt
        return run(self, stage, *rest, **more)

    monkeypatch.setattr(Laboratory, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        asked(lossy(), tmp_path, change=CHANGE)
    kept = json.loads((tmp_path / "advice.json").read_text())
    assert kept["verdict"] == UNFINISHED
    assert "nothing to vouch for" in kept["says"][0]
    monkeypatch.setattr(Laboratory, "run", run)
    assert asked(lossy(), tmp_path, change=CHANGE).plain() == advised[1].plain()


def test_advice_over_a_range_names_the_worst_path(tmp_path: Path) -> None:
    plain = lossy(advise={"over": {"network.dumbbell.loss": [0.005, 0.01, 0.02, 0.04]}})
    advice = asked(plain, tmp_path, change={"cc": ["newreno", "bbr"]})
    assert [one.value for one in advice.candidate.settings] == ["bbr"]
    gain = advice.gain()
    assert gain is not None
    assert gain.worst == pytest.approx(min(one["gain"] for one in advice.paths))
    assert gain.worst_point == "loss 0.005"
    assert not advice.cells


def test_advice_is_confirmed_on_linux(kernel: lab.Kernel, tmp_path: Path) -> None:
    advice = lab.advise(
        lossy(), out=tmp_path, backend="linux", budget_s=600, change={"cc": ["bbr"]}, progress=False
    )
    told = advice.gain(backend="linux")
    assert advice.verdict == "change"
    assert told is not None
    assert told.is_better
    assert told.n >= 10
    assert advice.log.backend == f"Linux {kernel.name}"


REFUSED = [
    (["--goal", "page-time"], "goals: page-time: needs flows of the kind web"),
    (["--goal", "speed"], "goals: there is no 'speed'"),
    (["--may", "server"], "may: 'server' is none of sender"),
    (["--change", "cc=qubic"], 'no congestion control is called "qubic"'),
    (["--change", "cc=cubic"], "nothing may be changed"),
    (["--change", "colour=red"], "there is no setting 'colour'"),
    (["--keep", "colour"], "there is no setting 'colour'"),
    (["--for", "nobody"], "flows: there is no 'nobody'; there are flow"),
    (["--rtt", "100ms..10ms"], "--rtt: 100ms is not less than 10ms"),
    (["--over", "rtt=1ms..1%"], "are not two quantities of one kind"),
    (["--over", "network.dumbbell.rate=10M..20M", "--over", "flows.flow.colour=1..2"], "colour"),
    (["--over", "rtt={kind='lognormal',median='40ms'}"], "advise.over.rtt.sigma: is missing"),
    (["--over", "rtt={kind='gauss',mean='40ms'}"], 'no distribution of values is called "gauss"'),
    (["--over", "rtt={kind='pareto',shape=2,least='9ms',max='1s'}"], 'there is no key "max" here'),
    (["--over", "rtt={kind='normal',mean='40ms',deviation='1%'}"], "two quantities of one kind"),
    (["--over", "rtt={kind='normal',mean='0ms',deviation='1ms'}"], "0ms is not more than zero"),
    (
        ["--over", "rtt={kind='uniform',least='9ms',most='8ms'}"],
        "--over rtt: the least value, 9ms, is not less than the most, 8ms",
    ),
    (
        ["--over", "rtt={kind='normal',mean='1s',deviation='1ms',most='9ms'}"],
        "--over rtt: hardly any of the distribution lies between 0 and 9ms",
    ),
    (["--over", "rtt={file='none.txt'}"], 'over.rtt.file: the file "none.txt" cannot be read'),
    (["--over", "loss={kind='uniform',least=0.5,most=1.5}"], "--over loss = 1."),
    (["--limit", "latency"], "'latency' is not a goal, <= or >=, and a value"),
    (["--limit", "speed >= 3 Mbit/s"], "limits: there is no 'speed'; there are goodput"),
    (["--limit", "page-time <= 3 s"], "limits: page-time: needs flows of the kind web"),
    (["--limit", "latency <= 3 %"], "the value of latency is one like '3 ms'"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_invalid_questions_are_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["advise", "--rate", "10M", *words, "--out", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("is_for_several", [False, True])
def test_a_folder_belongs_to_one_question(
    is_for_several: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = tmp_path / "paths.toml"
    paths.write_text('[[destinations]]\nprefix = "192.0.2.0/24"\nrate = "1 Mbit/s"\nrtt = "9 ms"\n')
    other = ["--destinations", str(paths)] if is_for_several else ["--rate", "2M"]
    question = ["--rate", "1M", "--change", "tlp=false", "--budget", "10min"]
    own = ["advise", *question, "--on", "sim", "--quiet", "--out"]
    out = tmp_path / "out"
    assert main([*own, str(out)]) == 0
    answer = capsys.readouterr().out
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert main(["advise", *other, "--on", "sim", "--quiet", "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert f"{out}: belongs to another question, that of `tcplab" in said.err
    assert "name another folder, or remove this one" in said.err
    assert not said.out
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    # The same question goes on, here to the same answer.
    assert main([*own, str(out)]) == 0
    assert capsys.readouterr().out == answer


def test_a_twin_that_does_not_fit_gets_no_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The rate changes during the capture, which no twin reproduces.
    rate = {"rate": "10 Mbit/s", "delay": "20 ms", "rate_changes": [["1 s", "2 Mbit/s"]]}
    experiment = {
        "duration": "10 s",
        "record": {"captures": ["a>b", "b>a"]},
        "network": {
            "links": [
                {"between": ["a", "b"], "rate": "1 Gbit/s", "delay": "10 us"},
                {"between": ["b", "c"], **rate},
            ]
        },
        "flows": [{"from": "a", "to": "c", "traffic": {"kind": "bulk", "size": "2 MB"}}],
    }
    results = lab.run(experiment)
    file = tmp_path / "capture.pcapng"
    file.write_bytes(results.files(results.plans[0].id)["capture.pcapng"])
    assert main(["advise", str(file), "--out", str(tmp_path / "out")]) == 2
    assert "its twin does not behave like the capture" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_paths_of_a_range_follow_the_halton_sequence() -> None:
    # 1, 2 and 3 in base 2, mirrored: 1/2, 1/4, 3/4; in base 3: 1/3, 2/3, 1/9.
    over = {"rtt": {"from": "20 ms", "to": "60 ms"}, "loss": {"from": "1 %", "to": "10 %"}}
    drawn = points(over, 3)
    assert [one["rtt"] for one in drawn] == ["40 ms", "30 ms", "50 ms"]
    # A range over a factor of ten is divided logarithmically.
    shares = [one["loss"] for one in drawn]
    assert shares == pytest.approx([0.01 * 10**part for part in (1 / 3, 2 / 3, 1 / 9)], rel=1e-3)
    assert points({"a": [1, 2], "b": [3, 4]}) == [
        {"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4},
    ]  # fmt: skip


def test_halving_the_paths_keeps_them_evenly_spread() -> None:
    over: Plain = {"rtt": {"from": "20 ms", "to": "60 ms"}}
    half = _half(_half(points(over), over), over)
    assert [one["rtt"] for one in half] == ["40 ms", "30 ms", "50 ms", "25 ms"]
    over = {"a": [1, 2, 3, 4], "b": [5, 6]}
    assert _half(points(over), over) == [{"a": a, "b": 5} for a in over["a"]]


def rows(today: list[float], other: list[float], goal: str, path: str = "") -> pl.DataFrame:
    """Runs of two settings over one path."""
    number = len(today)
    return pl.DataFrame(
        {
            "candidate": ["today"] * number + ["other"] * number,
            "point": [path] * (2 * number),
            "seed": [*range(number)] * 2,
            goal: [*today, *other],
        }
    )


def test_a_gain_is_the_ratio_of_means() -> None:
    today, other = [4.0, 6.0] * 6, [9.0, 11.0] * 6
    (gain,) = found(rows(today, other, "goodput"), [GOALS["goodput"]], "sim")
    assert gain.gain == pytest.approx(10 / 5 - 1)
    assert gain.low is not None
    assert gain.high is not None
    assert gain.low < 1 < gain.high
    # Less is better for times: half the time is twice as fast, and reported as half less.
    (gain,) = found(rows(other, today, "completion"), [GOALS["completion"]], "sim")
    assert gain.gain == pytest.approx(1)
    assert "mean completion time is 5 in place of 10 s: 50 % less" in phrases.change(
        GOALS["completion"], gain
    )


def test_the_mean_gain_over_paths_is_geometric() -> None:
    both = pl.concat(
        [
            rows([1.0] * 3, [2.0] * 3, "goodput", "slow"),
            rows([8.0] * 3, [4.0] * 3, "goodput", "fast"),
        ]
    )
    (gain,) = found(both, [GOALS["goodput"]], "sim")
    # Twice as much on one path and half as much on the other: no gain, by the geometric mean.
    assert gain.gain == pytest.approx(0)
    assert gain.worst == pytest.approx(-0.5)
    assert gain.worst_point == "fast"
    assert gain.advised == pytest.approx(math.sqrt(8))


def of(*settings: tuple[str, Any]) -> Candidate:
    """A candidate with these settings at the sender."""
    return Candidate(tuple(Setting(key, value, "sender", None) for key, value in settings))


def runs(several: dict[str, dict[str, list[float]]]) -> pl.DataFrame:
    """Runs over one path: by candidate, the numbers by goal, each of as many seeds."""
    parts = []
    for name, numbers in several.items():
        seeds = range(len(next(iter(numbers.values()))))
        parts.append(pl.DataFrame({"candidate": name, "point": "", "seed": seeds, **numbers}))
    return pl.concat(parts)


def test_the_cheaper_candidate_is_advised_if_equally_good() -> None:
    goals = [GOALS["goodput"]]

    def chosen(one: Candidate, other: Candidate, share: float) -> Candidate:
        """Where the other one has so much more goodput, in every run."""
        base = [8.0, 10.0, 12.0] * 4
        told = {
            one.name: {"goodput": base},
            other.name: {"goodput": [share * it for it in base]},
        }
        best, why = preferred([one, other], runs(told), goals)
        assert (why is None) == (best == other)
        return best

    one, both = of(("cc", "bbr")), of(("cc", "bbr"), ("initial_window", 40))
    assert chosen(one, both, 1.015) == one
    assert chosen(one, both, 1.025) == both
    # Of buffers of other sizes, half of that counts.
    small, large = of(("wmem", "1 MB")), of(("wmem", "16 MB"))
    assert chosen(small, large, 1.0075) == small
    assert chosen(small, large, 1.015) == large


def test_a_smaller_buffer_than_the_path_holds_is_found(tmp_path: Path) -> None:
    # 20 Mbit/s and 100 ms hold 250 kB; a buffer of 64 kB leaves most of the link unused. The
    # sender paces, because so small a buffer limits only a paced sender (see the page of limits).
    plain = lossy()
    plain["network"]["dumbbell"] |= {"rate": "20 Mbit/s", "rtts": ["100 ms"], "loss": 0}
    plain["flows"][0]["stack"] = {"wmem": "64 kB", "pacing": True}
    advice = asked(plain, tmp_path, change={"wmem": ["256 kB", "1 MB", "4 MB", "16 MB"]})
    (setting,) = advice.candidate.settings
    assert setting.key == "wmem"
    assert setting.value in ("1 MB", "4 MB")
    # Nothing is random there: two seeds that are equal say as much as twelve.
    gain = advice.gain()
    assert gain is not None
    assert (gain.n, gain.low, gain.high) == (2, gain.gain, gain.gain)


def test_without_results_the_verdict_is_no_change(tmp_path: Path) -> None:
    empty = concluded(question(loaded(lossy())), tmp_path, Log(rounds=[(3, 2)]))
    assert empty.verdict == NOTHING
    assert not empty.gains


def told(out: Path, *words: str) -> list[str]:
    """The output of the command."""
    assert main(["advise", *words, "--on", "sim", "--quiet", "--out", str(out)]) == 0
    return list(json.loads((out / "advice.json").read_text())["says"])


def test_unfinished_transfers_are_reported(tmp_path: Path) -> None:
    # 4 MB take 16 s at 2 Mbit/s: no transfer ends within 3 s, whatever the algorithm.
    path = ["--rate", "2M", "--duration", "3s", "--traffic", "4MB", "--change", "cc=bbr"]
    (first, *_) = told(tmp_path, *path)
    assert first.startswith("Nothing can be told: no transfer ended within the run")
    # With 2 % loss, NewReno has about 2.5 Mbit/s and needs 13 s for 4 MB, BBR half of that.
    path = ["--rate", "10M", "--loss", "2%", "--duration", "8s", "--traffic", "4MB"]
    said = told(tmp_path / "some", *path, "--cc", "newreno", "--change", "cc=bbr")
    expected = r"(\d+) of \1 with today's setting, 0 of \1 with the change"
    assert re.search(expected, " ".join(said))


def test_completion_times_of_microseconds_are_compared(tmp_path: Path) -> None:
    # 20 kB are 14 segments: a window of 40 sends them at once, a window of 4 takes two more round
    # trips.
    path = ["--rate", "10G", "--rtt", "50us", "--traffic", "20kB", "--duration", "1s"]
    (first, *_) = told(tmp_path, *path, "--set", "stack.initial_window=4", "--change",
                       "initial_window=40")  # fmt: skip
    assert first.startswith("Set initial_window to 40 at the sender")


def test_paths_of_several_round_trips_have_a_map(tmp_path: Path) -> None:
    plain = lossy()
    plain["network"]["dumbbell"] |= {"rtts": ["20 ms", "80 ms"], "queue": "64 kB"}
    plain["flows"].append({"name": "other", "from": "left2", "to": "right2"})
    advice = asked(plain, tmp_path, change={"cc": ["bbr"]})
    assert {one[sensitivity.LOSS] for one in advice.cells} == {0.0, 1e-4, 1e-3, 0.01, 0.02}


def test_candidates_that_deliver_nothing_are_not_best(tmp_path: Path) -> None:
    plain = lossy(duration="2 s")
    plain["network"]["dumbbell"]["loss"] = 0.35
    advice = asked(plain, tmp_path, goals=["latency"], change={"cc": ["bbr", "newreno"]})
    assert json.loads((tmp_path / "advice.json").read_text())["verdict"] == advice.verdict


def test_deterministic_experiments_get_random_start_times(tmp_path: Path) -> None:
    plain = lossy()
    del plain["network"]["dumbbell"]["loss"]
    plain["flows"] += [{"name": "other", "from": "left1", "to": "right1", "cc": "newreno"}]
    advice = asked(plain, tmp_path, goals=["fairness"], change={"cc": ["newreno", "vegas"]})
    told = [one for one in advice.gains if one.goal == "fairness"]
    assert any(one.low != one.high for one in told)
    assert 'start_jitter = "100 ms"' in (tmp_path / "question.toml").read_text()


def test_map_cells_without_significance_are_unknown() -> None:
    def cell(gain: float, low: float, high: float) -> Plain:
        of = {"candidate": "bbr", "gain": gain, "low": low, "high": high}
        return {sensitivity.RTT: 40.0, sensitivity.LOSS: 0.0, sensitivity.BREAKS: False, **of}

    def best(one: Plain) -> str:
        return str(sensitivity.best([one], GOALS["goodput"])[0]["best"])

    assert best(cell(0.5, 0.4, 0.6)) == "bbr"
    assert best(cell(0.0, -0.01, 0.01)) == "today"
    assert best(cell(0.1, -0.1, 0.3)) == sensitivity.UNTOLD
    assert best(cell(0.01, 0.005, 0.03)) == sensitivity.UNTOLD


def test_gains_over_few_paths_agree_with_their_means() -> None:
    slow = rows([1.0, 3.0] * 6, [4.0, 4.0] * 6, "goodput", "slow")
    fast = rows([8.0, 8.0] * 6, [7.0, 9.0] * 6, "goodput", "fast")
    (gain,) = found(pl.concat([slow, fast]), [GOALS["goodput"]], "sim")
    # The means are 2 and 4, 8 and 8; the geometric means over paths 4 and sqrt(32).
    assert gain.of == "seeds"
    assert gain.today == pytest.approx(4)
    assert gain.advised == pytest.approx(math.sqrt(32))
    assert gain.gain == pytest.approx(math.sqrt(2) - 1)
    assert gain.low is not None
    assert gain.high is not None
    assert gain.low < gain.gain < gain.high
    assert gain.sure == gain.low
    (stricter,) = found(pl.concat([slow, fast]), [GOALS["goodput"]], "sim", tests=3)
    assert stricter.low == gain.low
    assert stricter.sure is not None
    assert stricter.sure < gain.low


def test_a_changed_page_or_script_is_found(
    advised: tuple[Path, lab.Advice], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(advised[0], copy)
    script = copy / "apply" / "sender" / "apply.sh"
    script.write_text(script.read_text() + "reboot\n")
    assert main(["verify", str(copy)]) == 1
    assert "apply/sender/apply.sh is not what the results say" in capsys.readouterr().out


def test_scripts_of_earlier_advice_are_removed_and_other_files_stay(
    advised: tuple[Path, lab.Advice], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(advised[0], copy)
    (copy / "apply" / "mine.txt").write_text("not of advice")
    other_question = question(loaded(lossy()), change={"initial_window": [9, 11]})
    with pytest.warns(lab.TcplabWarning, match="answer to another question, which is replaced"):
        advice_in(other_question, copy, backend="sim", budget_s=600, progress=False, replaces=True)
    assert [path.name for path in copy.glob("apply/**/*") if path.is_file()] == ["mine.txt"]
    assert (copy / "before" / "apply" / "sender" / "undo.sh").exists()
    assert (copy / "before" / "advice.json").exists()
    other = tmp_path / "other"
    (other / "apply").mkdir(parents=True)
    (other / "apply" / "undo.sh").write_text("of another program")
    asked(lossy(), other, change={"initial_window": [9, 11]})
    assert (other / "apply" / "undo.sh").read_text() == "of another program"


def written(*lines: str) -> str:
    """The file of a transfer whose question has these lines."""
    return "\n".join(
        [
            'duration = "5 s"',
            "[network.dumbbell]",
            'rate = "10 Mbit/s"',
            'delay = "20 ms"',
            "[[flows]]",
            'from = "left1"',
            'to = "right1"',
            "[advise]",
            *lines,
        ]
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'over = { "network.dumbbell.loss" = { kind = "pareto", least = 0.01 } }',
            'advise.over."network.dumbbell.loss".shape: is missing',
        ),
        (
            'over = { "network.dumbbell.loss" = { form = "pareto" } }',
            'advise.over."network.dumbbell.loss": expected a list of values',
        ),
        (
            'over = { "network.dumbbell.loss" = { kind = "normal", mean = true, deviation = 1 } }',
            'loss".mean: true is not a quantity, like "40 ms" or 0.01',
        ),
        ('limits = ["retransmissions < 3 %"]', "is not a goal, <= or >=, and a value"),
        ('limits = ["retransmission <= 3 %"]', 'did you mean "retransmissions"?'),
        (
            'over = { "network.dumbbell.delay" = ["9 ms", "x"] }',
            'line {line}: advise.over."network.dumbbell.delay"[1] = x: `x` does not begin',
        ),
        (
            'over = { rtt = { from = "9 ms", to = "1 ms" } }',
            "line {line}: advise.over.rtt: 9 ms is",
        ),
        (
            'over = { "network.dumbbell.delay" = { file = "r.txt" } }',
            "r.txt: line 3: -2 ms: `-2 ms` is negative",
        ),
        ('goals = ["page-time"]', "line {line}: advise.goals: page-time: needs flows"),
        (
            'change = { cc = ["cubic", "x"] }',
            "advise.change.cc: flows[0].cc: no congestion control",
        ),
    ],
)
def test_mistakes_of_a_file_have_their_place(
    line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "asked.toml"
    text = written(line)
    file.write_text(text)
    (tmp_path / "r.txt").write_text("5 ms\n\n-2 ms\n")
    assert main(["advise", str(file), "--out", str(tmp_path / "out")]) == 2
    number = text[: text.index(line)].count("\n") + 1
    assert said.replace("{line}", str(number)) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "share", "value"),
    [
        # The quantile functions, by hand. A standard deviation above the mean is at 84.1345 %.
        ({"kind": "uniform", "least": "10 ms", "most": "30 ms"}, 0.25, "15 ms"),
        ({"kind": "normal", "mean": "40 ms", "deviation": "10 ms"}, 0.8413447, "50 ms"),
        ({"kind": "lognormal", "median": "40 ms", "sigma": 0.5}, 0.5, "40 ms"),
        ({"kind": "lognormal", "median": "40 ms", "sigma": 0.5}, 0.8413447, "65.95 ms"),
        ({"kind": "pareto", "shape": 2, "least": "10 ms"}, 0.75, "20 ms"),
        ({"kind": "exponential", "mean": "20 ms"}, 1 - 1 / math.e, "20 ms"),
        # Half of it is above 20 ms and cut off: half of the rest is below 10 / (1 - 1/4).
        ({"kind": "pareto", "shape": 1, "least": "10 ms", "most": "20 ms"}, 0.5, "13.33 ms"),
        # Nothing is below zero: half of the half that is left lies below 0.6745 deviations.
        ({"kind": "normal", "mean": "1e-9 ms", "deviation": "10 ms"}, 0.5, "6.745 ms"),
        ({"kind": "uniform", "least": 1, "most": 9}, 0.4, 4),
        ({"kind": "uniform", "least": "1 %", "most": "3 %"}, 0.5, 0.02),
    ],
)
def test_a_distribution_has_its_quantiles(given: Plain, share: float, value: Any) -> None:
    assert Distribution("rtt", given).at(share) == value


def test_draws_are_seeded_and_lie_as_the_distribution_says() -> None:
    over = {"rtt": {"kind": "lognormal", "median": "40 ms", "sigma": 0.5}}
    drawn = [float(str(one["rtt"]).removesuffix(" ms")) for one in points(over, 512, seed=3)]
    below = sum(value < 40 for value in drawn)
    assert abs(below - 256) <= 2
    logs = [math.log(value) for value in drawn]
    mean = sum(logs) / 512
    assert mean == pytest.approx(math.log(40), abs=0.01)
    assert math.sqrt(sum((one - mean) ** 2 for one in logs) / 512) == pytest.approx(0.5, rel=0.02)
    assert points(over, seed=3) == points(over, seed=3)
    assert not {one["rtt"] for one in points(over, seed=3)} & {
        one["rtt"] for one in points(over, seed=4)
    }
    values = {"rtt": {"kind": "empirical", "values": ["10 ms", "20 ms"]}}
    assert {one["rtt"] for one in points(values)} == {"10 ms", "20 ms"}


def test_advice_over_a_file_of_values_is_repeated_without_it(tmp_path: Path) -> None:
    file, out = tmp_path / "asked.toml", tmp_path / "out"
    over = 'over = { "network.dumbbell.loss" = { file = "losses.txt" } }'
    file.write_text(written('change = { cc = ["bbr"] }', over))
    (tmp_path / "losses.txt").write_text("1 %\n\n0.02\n4 %\n")
    assert main(["advise", str(file), "--on", "sim", "--quiet", "--out", str(out)]) == 0
    (tmp_path / "losses.txt").unlink()
    plain = json.loads((out / "advice.json").read_text())
    # CUBIC has less than half of the link at any of these losses, BBR most of it.
    assert plain["advised"][0]["value"] == "bbr"
    assert {one["point"] for one in plain["paths"]} == {"loss 1 %", "loss 0.02", "loss 4 %"}
    assert "drawn from 3 values" in (out / "advice.md").read_text()
    assert main(["verify", str(out)]) == 0


def test_candidates_that_break_a_limit_are_not_advised(advised: tuple[Path, lab.Advice]) -> None:
    # The same results, asked with a limit between today's RTT and that of the advised setting,
    # which has a queue.
    out, advice = advised
    again = advice.gain("latency")
    assert again is not None
    assert again.today is not None
    assert again.advised is not None

    def with_limit(limit: str) -> tuple[lab.Advice, str]:
        asked = question(loaded(lossy()), change=CHANGE, limits_=[limit])
        found = concluded(asked, out, advice.log)
        return found, " ".join(words.sentences(found))

    middle = f"latency <= {(again.today + again.advised) / 2:.3f} ms"
    found, said = with_limit(middle)
    assert advice.candidate.name != found.candidate.name
    assert f"Limit `{middle}`: " in said
    assert "today keeps it, with mean latency" in said
    assert "Better and not advised, since it breaks that limit: " in said
    assert f"{advice.candidate.name}, +" in said
    # The limit is in the middle between the two means.
    assert f"{(again.advised - again.today) / 2:.3g} ms beyond it" in said
    # The queue of one BDP holds 40 ms, and so the RTT stays below 85 ms, whatever is sent.
    found, said = with_limit("latency <= 85 ms")
    assert found.candidate == advice.candidate
    assert "Limit `latency <= 85 ms`: the change keeps it, with mean latency" in said
    # One packet of 50 is lost, and so every setting breaks this one.
    found, said = with_limit("retransmissions <= 1 %")
    assert found.verdict == NOTHING
    assert said.startswith("Today's setting breaks the limit `retransmissions <= 1 %`, with share ")
    assert "and nothing that was examined surely keeps all limits" in said


def test_a_candidate_that_meets_a_limit_todays_setting_breaks_is_advised(tmp_path: Path) -> None:
    # BBR fills the link, as a lost packet in fifty does not slow it, and has a queue. NewReno has
    # a quarter of the window that a queue needs.
    plain = lossy()
    plain["flows"][0]["cc"] = "bbr"
    first = asked(plain, tmp_path / "first", change={"cc": ["newreno"]})
    assert first.verdict == NOTHING
    latency = next(one for one in first.gains if one.goal == "latency")
    assert latency.today is not None
    assert latency.advised is not None
    limit = f"latency <= {(latency.today + latency.advised) / 2:.2f} ms"
    found = asked(plain, tmp_path / "second", change={"cc": ["newreno"]}, limits=[limit])
    assert [one.value for one in found.candidate.settings] == ["newreno"]
    said = words.answer(found)[0]
    assert f"which keeps the limit `{limit}` that today's setting breaks" in said
    # What it costs is told with it.
    assert "Goodput is " in said
    assert "less (" in said


def test_better_candidates_excluded_by_a_limit_are_named(tmp_path: Path) -> None:
    # BBR has the whole link, and a queue that it probes for; the others lose too much to have one.
    several = {"cc": ["bbr", "newreno", "vegas", "westwood+", "htcp"]}
    found = asked(lossy(), tmp_path, change=several, limits=["latency <= 49 ms"])
    assert "bbr" not in found.candidate.name
    assert "Better and not advised, since it breaks that limit: bbr" in " ".join(
        words.sentences(found)
    )


ONE, OTHER = of(("cc", "bbr")), of(("cc", "htcp"), ("tlp", False))


@pytest.mark.parametrize(
    ("other", "chosen", "by"),
    [
        # Over one with 10 of goodput, 2 % sent again and 40 ms: more goodput than counts.
        ((10.5, 12.0, 60.0), OTHER, ""),
        ((9.5, 0.0, 20.0), ONE, ""),
        # No more than counts: what is sent again decides, then latency, then settings.
        ((10.15, 12.0, 20.0), ONE, "retransmissions"),
        ((9.85, 0.0, 60.0), OTHER, "retransmissions"),
        ((10.15, 2.05, 60.0), ONE, "latency"),
        ((9.85, 2.05, 36.0), OTHER, "latency"),
        ((10.15, 2.05, 40.4), ONE, "settings"),
    ],
)
def test_equal_gains_are_decided_by_the_lower_cost(
    other: tuple[float, float, float], chosen: Candidate, by: str
) -> None:
    names = ("goodput", "retransmissions", "latency")

    def numbers(means: tuple[float, float, float]) -> dict[str, list[float]]:
        shares = [0.9, 1.0, 1.1] * 4
        return {
            name: [mean * share for share in shares]
            for name, mean in zip(names, means, strict=True)
        }

    told = runs({ONE.name: numbers((10.0, 2.0, 40.0)), OTHER.name: numbers(other)})
    best, why = preferred([ONE, OTHER], told, [GOALS[name] for name in names])
    assert best == chosen
    assert ("" if why is None else why.by) == by


def test_statistically_equal_gains_are_decided_by_cost() -> None:
    # Means of 10.5 and 10, and differences between -4 and 5: Student's interval includes zero.
    one, other = of(("cc", "bbr")), of(("cc", "illinois"))
    goals = [GOALS["goodput"], GOALS["retransmissions"]]
    told = {
        "bbr": {"goodput": [15.0, 6.0] * 6, "retransmissions": [12.0, 12.1] * 6},
        "illinois": {"goodput": [10.0, 10.0] * 6, "retransmissions": [1.0, 1.1] * 6},
    }
    best, why = preferred([one, other], runs(told), goals)
    assert best == other
    assert why is not None
    assert (why.over, why.by) == ("bbr", "retransmissions")
    assert why.ahead.gain == pytest.approx(0.05)
    assert why.ahead.low is not None
    assert why.ahead.low < 0
    assert why.saved is not None
    assert why.saved.gain == pytest.approx(11)
    assert not why.lost


def test_what_the_setting_passed_over_does_better_is_said() -> None:
    one, other = of(("cc", "bbr")), of(("cc", "illinois"))
    goals = [GOALS["goodput"], GOALS["retransmissions"], GOALS["latency"]]
    told = {
        "bbr": {"goodput": [10.0] * 6, "retransmissions": [12.0] * 6, "latency": [20.0] * 6},
        "illinois": {"goodput": [10.0] * 6, "retransmissions": [1.0] * 6, "latency": [40.0] * 6},
    }
    best, why = preferred([one, other], runs(told), goals)
    assert best == other
    assert why is not None
    # From 40 to 20 ms.
    assert [(gain.goal, gain.gain) for gain in why.lost] == [("latency", pytest.approx(1.0))]


def test_the_number_of_seeds_agrees_in_all_texts(
    advised: tuple[Path, lab.Advice],
) -> None:
    # Stopped, or short of time: the stages had fewer seeds than they were to have.
    out, advice = advised
    log = Log.of({**advice.log.plain(), "seeds": {"evidence": 40, "beside": 40}})
    found = concluded(question(loaded(lossy()), change=CHANGE), out, log)
    gain = found.gain()
    assert gain is not None
    assert f"on sim, in {gain.seeds} runs, by seeds" in words.answer(found)[0]
    notes = words.left_out(found)
    assert f"the evidence has {gain.seeds} in place of 40 seeds" in notes[0]
    assert f"the harm to others has {found.plain()['harm']['seeds']} in place of 40" in notes[1]
    own = [one for one in found.plain()["gains"] if one["candidate"] == found.candidate.name]
    assert {one["seeds"] for one in own} == {gain.seeds}


def test_settings_harmful_alone_are_reported_separately(advised: tuple[Path, lab.Advice]) -> None:
    _, advice = advised
    base = next(one for one in advice.gains if one.goal == "goodput")

    def told(gain: float, low: float, high: float) -> str:
        one = replace(base, candidate="min_rto 50 ms", gain=gain, low=low, high=high)
        log = replace(advice.log, singles={"min_rto": of(("min_rto", "50 ms"))})
        return " ".join(words.alone(replace(advice, gains=[one], log=log)))

    assert told(-0.4, -0.52, -0.1).startswith("What alone makes it worse (goodput;")
    assert told(0.0, -0.01, 0.01).startswith("What alone makes a difference of less than 2 % (")
    assert told(-0.4, -0.52, 0.01).startswith("What alone brings less than 2 %, and may make it ")
    assert "min_rto 50 ms (-52 to -10 %)" in told(-0.4, -0.52, -0.1)
    assert not told(0.4, 0.3, 0.5)


def test_a_gain_is_reported_with_its_cost_in_other_goals(tmp_path: Path) -> None:
    # A buffer of 4 BDP that BBR leaves empty and CUBIC fills: RTTs of 200 ms in place of about 50.
    plain = lossy(duration="20 s")
    plain["network"]["dumbbell"] |= {"loss": 0, "queue": "4 bdp", "rtts": ["40 ms"]}
    plain["flows"][0]["stack"] = {"wmem": "16 kB", "pacing": True}
    found = asked(plain, tmp_path, change={"wmem": ["4 MB"]})
    said = words.answer(found)[0]
    assert said.startswith("Set wmem to 4 MB at the sender: goodput is ")
    assert ", at a price: mean latency is " in said
    assert "mean latency" not in " ".join(words.cost(found))


def test_limit_verdicts_follow_the_confidence_interval_of_the_mean() -> None:
    (limit,) = limits.read(["latency <= 50 ms"], loaded_flows())
    below, around, above = [48.0, 49.0] * 6, [49.0, 51.0] * 6, [51.0, 52.0] * 6
    # A mean of 51 with a standard deviation of 6.3: 12 values tell it within 4 (Student).
    beyond = [45.0, 57.0] * 6
    verdicts = ((below, KEPT), (around, UNTOLD), (beyond, EXCEEDED), (above, BROKEN))
    for values, verdict in verdicts:
        today, other = kept(rows([40.0, 41.0] * 6, values, "latency"), [limit], "sim")
        assert today.verdict == KEPT
        assert other.verdict == verdict
        assert other.mean == pytest.approx(sum(values) / 12)
    # Of several paths, the worst counts.
    both = pl.concat([rows(below, below, "latency", "a"), rows(below, above, "latency", "b")])
    _, other = kept(both, [limit], "sim")
    assert (other.verdict, other.point) == (BROKEN, "b")


def loaded_flows() -> list[Any]:
    """The flows of the plan of a transfer."""
    return list(json.loads(loaded(lossy()).plans("sim")[0].to_json())["flows"])


class Clock:
    """A machine on which every run takes a second."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.runs: set[str] = set()
        self.began = 0
        run = Laboratory.run

        def counted(laboratory: Laboratory, *rest: Any, **more: Any) -> Any:
            results = run(laboratory, *rest, **more)
            self.runs |= set(results.runs["run"])
            return results

        patch.setattr(Laboratory, "run", counted)
        patch.setattr(Laboratory, "left_s", lambda it: it.budget_s - len(self.runs))
        patch.setattr(Laboratory, "each_s", 1.0)


FAST = {
    "cc": ["bbr", "vegas", {"name": "cubic", "beta": 0.85}],
    "initial_window": [4, 20, 40],
    "tlp": [False],
    "pacing": [True],
    "wmem": ["64 kB", "1 MB"],
}


@pytest.mark.parametrize("budget", [50, 120])
def test_all_stages_stay_within_the_time_budget(
    budget: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    advice = lab.advise(
        lossy(duration="1 s"), out=tmp_path, backend="sim", budget_s=budget, change=FAST,
        progress=False,
    )  # fmt: skip
    assert len(clock.runs) <= 1.05 * budget
    said = " ".join(words.left_out(advice))
    assert "to keep to the budget" in said or "within the budget" in said
    # The harm to others comes before the single settings.
    if advice.candidate.settings and "examination of each setting" not in said:
        assert "beside" in advice.log.stages


def test_with_enough_budget_nothing_is_left_out(
    advised: tuple[Path, lab.Advice],
) -> None:
    assert not words.left_out(advised[1])


def test_parameters_of_the_algorithm_that_does_best_are_tried(tmp_path: Path) -> None:
    plain = lossy(duration="4 s", advise={"keep": ["qdisc"]})
    plain["flows"][0]["cc"] = "cubic"
    found = question(loaded(plain))
    several = [one.name for one in _tuned(found, [], {"today": 0.0})]
    assert several == ["cubic (beta 0.85)", "cubic (c 1.6)", "cubic (fast_convergence off)",
                       "cubic (tcp_friendly off)"]  # fmt: skip
    bbr = Candidate(tuple(one for one in found.settings["cc"] if one.value == "htcp"))
    better = _tuned(found, [bbr], {"today": 0.0, "htcp": -0.1})
    assert [one.settings[0].value["name"] for one in better] == ["htcp", "htcp"]
    # Of what is named, nothing else is tried.
    assert not _tuned(question(loaded(plain), change={"cc": ["bbr"]}), [], {"today": 0.0})


def test_ecn_is_tried_where_the_bottleneck_marks() -> None:
    plain = lossy()
    assert "ecn" not in question(loaded(plain)).settings
    plain["network"]["dumbbell"]["queue"] = {"kind": "fq-codel"}
    assert [one.value for one in question(loaded(plain)).settings["ecn"]] == [True]
    assert "ecn" not in question(loaded(plain), may=["receiver"]).settings


@pytest.mark.parametrize("limit", ["latency <= -5 ms", "fairness >= 2", "retransmissions <= 300 %"])
def test_limits_with_impossible_numbers_are_refused(limit: str) -> None:
    with pytest.raises(lab.ConfigError, match=re.escape(limit)):
        limits.read([limit], loaded_flows())


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("latency <= 39 ms", "the round trip without queues is 40 ms"),
        ("goodput >= 10.5 Mbit/s", "the rate of the bottleneck is 10 Mbit/s"),
    ],
)
def test_limits_that_cannot_be_met_are_refused(limit: str, why: str) -> None:
    with pytest.raises(lab.ConfigError, match=f"{re.escape(limit)}.*{why}"):
        question(loaded(lossy()), limits_=[limit])


def test_limits_that_exclude_each_other_are_refused() -> None:
    exclusive = ["latency <= 50 ms", "latency >= 60 ms"]
    with pytest.raises(lab.ConfigError, match="'latency <= 50 ms' and 'latency >= 60 ms' exclude"):
        question(loaded(lossy()), limits_=exclusive)


def test_what_may_not_change_is_not_to_be_changed() -> None:
    with pytest.raises(lab.ConfigError, match="change: cc: is changed at the sender, and `may` al"):
        question(loaded(lossy()), may=["receiver"], change={"cc": ["bbr"]})
    asked = question(loaded(lossy()), change={"rmem": ["1 MB"]})
    assert asked.asked["may"] == ["receiver"]


def test_questions_with_other_seeds_have_no_run_in_common() -> None:
    # 400 seeds at most, and 64 paths whose seeds are 10,000 apart.
    begin = [question(loaded(lossy(seed=seed)), change=CHANGE).seed for seed in (0, 1, 2, 3)]
    assert begin[1] == 1
    assert min(abs(one - other) for one in begin for other in begin if one != other) >= 1_000_000
    assert len(set(begin)) == 4
    assert max(begin) < 2**53


def test_an_answer_that_is_missing_is_found(
    advised: tuple[Path, lab.Advice], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(advised[0], out)
    (out / "advice.json").unlink()
    assert main(["verify", str(out)]) == 1
    assert "advice.json is missing" in capsys.readouterr().out


def test_a_question_that_fails_leaves_the_folder_as_it_was(
    advised: tuple[Path, lab.Advice], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(advised[0], out)
    plain = lossy()
    plain["network"]["dumbbell"]["loss"] = 1.0
    with (
        pytest.warns(lab.TcplabWarning, match="answer to another question, which is replaced"),
        pytest.raises(lab.ConfigError, match="nothing arrives"),
    ):
        advice_in(question(loaded(plain), change=CHANGE), out, backend="sim", budget_s=600,
                  progress=False, replaces=True)  # fmt: skip
    # The folder is as it was.
    assert not api.repeated(out)
    assert (out / "apply" / "sender" / "undo.sh").exists()
    assert not (out / "before").exists()


def test_a_question_without_an_answer_leaves_the_answer_before(
    advised: tuple[Path, lab.Advice], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(advised[0], out)
    (out / "before").mkdir()
    (out / "before" / "mine.txt").write_text("not of advice")
    # The second question was killed before it had an answer.
    for number, said in ((1, "it moves to `before`"), (2, "without an answer"), (3, "without")):
        with pytest.warns(lab.TcplabWarning, match=said):
            ask(f"# question {number}\n", out / "question.toml", replaces=True)
    assert (out / "before" / "apply" / "sender" / "undo.sh").exists()
    assert (out / "before" / "mine.txt").exists()
    assert (out / "question.toml").read_text() == "# question 3\n"


def test_limits_are_accepted_if_a_later_link_rate_meets_them() -> None:
    plain = lossy()
    plain["network"]["dumbbell"]["rate_changes"] = [["1 s", "20 Mbit/s"]]
    assert question(loaded(plain), limits_=["goodput >= 12 Mbit/s"]).limits


def test_the_sensitivity_map_excludes_candidates_that_break_a_limit() -> None:
    cell = {sensitivity.RTT: 40.0, sensitivity.LOSS: 0.01, "low": 0.1, "high": 0.3}
    best = cell | {"candidate": "bbr", "gain": 0.2, sensitivity.BREAKS: True}
    next_ = cell | {"candidate": "hybla", "gain": 0.15, sensitivity.BREAKS: False}
    (found,) = sensitivity.best([best, next_], GOALS["goodput"])
    assert found["best"] == "hybla"


def test_a_path_without_a_round_trip_has_no_map() -> None:
    plain = lossy()
    plain["network"]["dumbbell"] |= {"rtts": ["0 ms"]}
    assert sensitivity.grid(question(loaded(plain))) == []


def test_a_single_setting_is_advised_where_no_finalist_is_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search took to a setting that makes no difference, and found BBR on its way."""
    race = search.race

    def unlucky(laboratory: Laboratory) -> Race:
        found = race(laboratory)
        found.finalists = [Candidate((found.singles["initial_window"].settings[0],))]
        assert found.singles["cc"] in found.promising
        return found

    monkeypatch.setattr(search, "race", unlucky)
    advice = asked(lossy(), tmp_path, change={"cc": ["bbr", "newreno"], "initial_window": [9, 11]})
    assert advice.candidate.name == "bbr"
    # What it costs others and why it gains is known as for every advice.
    assert advice.harm is not None
    assert words.why(advice)
    # The interval is that of all that might have been advised.
    own, again = advice.gain(), {one.name for one in advice.log.finalists}
    assert own is not None
    assert len(again) == 2
    rows = table(lab.stored(tmp_path / "evidence"), advice.question)
    (same,) = (
        one
        for one in found(rows, advice.question.goals[:1], "sim", tests=2)
        if one.candidate == "bbr"
    )
    assert own.sure == same.sure


def test_a_budget_too_short_for_a_search_is_reported(tmp_path: Path) -> None:
    advice = lab.advise(
        lossy(), out=tmp_path, backend="sim", budget_s=1e-3, progress=False, change=CHANGE
    )
    assert advice.verdict == UNFINISHED
    assert words.answer(advice)[0].startswith("Nothing can be told within the budget")
    # The time differs from run to run; the page holds what was measured.
    assert not api.repeated(tmp_path)


def test_an_incomplete_search_is_not_reported_as_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    race = search.race

    def short(laboratory: Laboratory) -> Race:
        found = race(laboratory)
        found.left_out = [f"setting {number}" for number in range(5)]
        return found

    monkeypatch.setattr(search, "race", short)
    advice = asked(lossy(), tmp_path, change={"initial_window": [9, 11]})
    assert advice.verdict == UNDECIDED
    (said, *_) = words.answer(advice)
    assert said.startswith("Nothing can be told yet: ")
    assert "of the 2 of 7 settings that there was time for" in said


def test_a_run_that_delivers_nothing_is_refused(tmp_path: Path) -> None:
    plain = lossy(duration="5 s")
    plain["network"]["dumbbell"]["rtts"] = ["4 s"]
    with pytest.raises(lab.ConfigError, match="run of 5 s delivers nothing over a round trip of 4"):
        asked(plain, tmp_path / "out", change=CHANGE)
    assert not (tmp_path / "out").exists()


def test_concurrent_advice_in_one_folder_is_refused(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(lab.ConfigError, match="another tcplab advise is at work in it"),
    ):
        asked(lossy(), tmp_path, change=CHANGE)


def test_changed_stages_are_found_when_repeating(
    advised: tuple[Path, lab.Advice], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(advised[0], out)
    assert not api.repeated(out)
    file = out / "evidence" / "experiment.toml"
    file.write_text(file.read_text() + "\n# changed\n")
    shutil.rmtree(out / "race-2")
    assert api.repeated(out) == ["race-2 has no results any more"]
    (found,) = lab.verify(out).findings
    assert (found.folder, found.where) == (out / "evidence", "runs.json")


def test_the_evidence_is_on_paths_that_the_search_did_not_see() -> None:
    over = {"network.dumbbell.loss": {"from": "0.1 %", "to": "1 %"}}
    asked = question(loaded(lossy(advise={"over": over})), change=CHANGE)
    searched, fresh = asked.points(), asked.fresh()
    assert len(searched) == len(fresh) == 16
    assert not [one for one in fresh if one in searched]
    # Halton's 17th point in base 2: 10001 mirrored, 17/32, of a range spread by its logarithm.
    assert fresh[0]["network.dumbbell.loss"] == pytest.approx(0.001 * 10 ** (17 / 32), rel=1e-3)
    # All values of a list are meant.
    few = question(loaded(lossy(advise={"over": {"network.dumbbell.loss": [0.01]}})), change=CHANGE)
    assert few.points() == few.fresh()


def test_where_nothing_is_random_no_interval_is_shown(tmp_path: Path) -> None:
    plain = lossy()
    plain["network"]["dumbbell"] |= {"rate": "20 Mbit/s", "rtts": ["100 ms"], "loss": 0}
    plain["flows"][0]["stack"] = {"wmem": "64 kB", "pacing": True}
    advice = asked(plain, tmp_path, change={"wmem": ["1 MB"]})
    (said, *_) = words.answer(advice)
    assert said.endswith("in one run of each, as nothing is random and 2 seeds are all equal.")
    assert re.match(
        r"Set wmem .*: goodput is [\d.]+ in place of [\d.]+ Mbit/s: [\d.]+ % more[,.]", said
    )
    assert "seeds that the search did not use" not in said


def test_limiting_buffers_are_searched_first_and_long_lists_last() -> None:
    several = {
        "cc": ["bbr", "htcp", "illinois", "hybla", "veno", "vegas", "yeah"],
        "initial_window": [4, 20],
        "wmem": ["1 MB", "4 MB"],
    }
    candidates = [
        Candidate((Setting(key, value, "sender", None),))
        for key, values in several.items()
        for value in values
    ]
    chunks = [[one.settings[0].value for one in it] for it in _chunks(candidates, {"wmem"})]
    assert chunks == [several["wmem"], several["cc"][:5], several["initial_window"],
                      several["cc"][5:]]  # fmt: skip


@pytest.mark.parametrize(
    ("wmem", "is_short"),
    # 10 Mbit/s for 40 ms are 50 kB, and the queue holds as much: half of a buffer is for data.
    [("150 kB", True), ("250 kB", False)],
)
def test_a_buffer_is_short_that_holds_less_than_the_path(
    wmem: str, is_short: bool, tmp_path: Path
) -> None:
    plain = lossy(duration="1 s")
    plain["network"]["dumbbell"]["queue"] = "50 kB"
    plain["flows"][0]["stack"] = {"wmem": wmem}
    about = question(loaded(plain), change={"wmem": ["1 MB"]})
    laboratory = Laboratory(about, tmp_path, 60.0)
    laboratory.time(about.points(), 1)
    assert laboratory.short_buffers == ({"wmem"} if is_short else set())


def test_gains_in_tables_and_sentences_use_the_same_percentages() -> None:
    # Half the time is 50 % less, not 100 % better.
    time, rate = GOALS["completion"], GOALS["goodput"]
    assert phrases.gain(time, 1.0) == "+50 %"
    assert phrases.more(time, 1.0) == "50 % less"
    assert phrases.gain(time, -0.5) == "-100 %"
    assert phrases.gain(rate, 1.0) == "+100 %"


def test_each_path_has_its_own_seed(tmp_path: Path) -> None:
    """With the same seeds on all paths, sixteen of them would be no more than one."""
    over = {"network.dumbbell.loss": {"from": "1 %", "to": "2 %"}}
    about = question(loaded(lossy(duration="1 s", advise={"over": over})), change=CHANGE)
    results = Laboratory(about, tmp_path, 60.0).run(
        "evidence", [Candidate()], about.fresh(), range(1001, 1003)
    )
    seeds = results.runs["seed"].to_list()
    assert len(set(seeds)) == len(seeds) == 32
    # Settings are compared on the same path with the same seed.
    rows = table(results, about)
    assert rows["point"].n_unique() == 16
    assert "seed" not in rows["point"][0]


def test_intervals_over_paths_use_logarithms() -> None:
    """Student's of 16 logarithms: the mean of 0.1 to 1.6 is 0.85, the deviation 0.476, and
    2.131 * 0.476 / 4 = 0.254.
    """
    several = [
        rows([1.0], [math.exp(0.1 * place)], "goodput", str(place)) for place in range(1, 17)
    ]
    (gain,) = (
        one
        for one in found(pl.concat(several), [GOALS["goodput"]], "sim")
        if one.candidate != "today"
    )
    assert gain.low == pytest.approx(math.expm1(0.85 - 0.254), rel=1e-2)
    assert gain.high == pytest.approx(math.expm1(0.85 + 0.254), rel=1e-2)


def test_harm_is_measured_while_transfers_last(tmp_path: Path) -> None:
    plain = lossy(duration="60 s")
    plain["flows"][0]["traffic"] = {"kind": "bulk", "size": "500 kB"}
    advice = asked(plain, tmp_path, change={"cc": ["bbr"]})
    assert advice.harm is not None
    assert advice.harm["lasts"]
    gain = advice.gain()
    assert gain is not None
    assert gain.today is not None
    runs = lab.stored(tmp_path / "beside").runs
    # Today's transfers are the slower ones.
    assert runs["measured_to_s"].unique().to_list() == pytest.approx([gain.today], abs=2e-3)
    assert "while the transfers last" in " ".join(words.cost(advice))


def test_a_path_that_lets_nothing_through_is_refused(tmp_path: Path) -> None:
    plain = lossy()
    plain["network"]["dumbbell"]["loss"] = 1.0
    with pytest.raises(lab.ConfigError, match="nothing arrives over this path"):
        asked(plain, tmp_path, change=CHANGE)


def test_missing_and_changed_files_are_found_when_repeating(
    advised: tuple[Path, lab.Advice], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(advised[0], out)
    (out / "advice.html").unlink()
    (out / "apply" / "sender" / "before.sh").write_text("reboot\n")
    assert api.repeated(out) == [
        "advice.html is missing",
        "apply/sender/before.sh is none of the files that this advice has",
    ]
