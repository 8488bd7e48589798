"""Published studies: their files are complete, and verdicts match planted truths."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest
from conftest import Command

import tcplab as lab
from tcplab import statistics
from tcplab._core import ConfigError
from tcplab._papers import (
    _format,
    _measured,
    _page,
    _placeholders,
    _runs,
    _study,
    _validation,
    _verdicts,
)
from tcplab._papers._figures import chart

IDS = {
    "martic-2013": ("D0", range(2), 35, ("T1", "T2", "T2b", "T2c", "T3", "T4", "T5", "T6", "T7")),
    "grieco-2004": ("D1", range(1, 10), 34, ()),
    "braud-2016": ("D2", range(1, 7), 20, ("T1",)),
    "orosz-2007": ("D3", range(1, 2), 13, ("T1",)),
    "tso-2021": ("D4", range(1, 5), 13, ("T1", "T2", "T3", "T4")),
    "cubic-2008": ("D5", range(1, 9), 29, ("T1", "T3", "T4", "T5", "T6")),
    "bbr-2016": ("D6", range(1, 12), 27, ("T1", "T2", "T3")),
    "bbr-cubic-2019": ("D7", range(1, 7), 17, ("T1", "T2", "T3", "T4")),
}
"""For each study, the content of its digest: ids of experiments, claims and tables."""

STUDIES, STACKS = _study.FOLDER, _verdicts.STACKS

PARTS = {"D0-C35": ("a", "b", "c")}
"""Claims that are decided in parts."""

STUDY = '''
title = "A study"
authors = "A. Nyone"
year = 2026
published = "nowhere"
digest = "D9"
question = "Is one faster?"
found = "One is."
then = "a stack"
quick = 2
unknown = ["whether it rained"]
ours = """It is {D9-E1 goodput variant=then cc=newreno}, \\
{D9-E1 goodput variant=now cc=newreno / variant=then} with the other."""
today = "The claim {D9-C1}."
[experiments.D9-E1]
title = "one and two"
file = "both.toml"
lost = { wait = "100 ms" }
quick = { cc = ["newreno"] }
[experiments.D9-E1.quantities.goodput]
words = "goodput"
unit = "Mbit/s"
value = "sum(goodput_mbit_s)"
from = "flows"
[experiments.D9-E1.series.window]
words = "congestion window"
unit = "segments"
x = "time_s"
x_words = "time, s"
y = "cwnd_segments"
from = "samples"
line = "flow"
runs = "first"
[experiments.D9-E1.series.spread]
words = "goodput by second"
unit = "Mbit/s"
x = "round(start_s)"
x_words = "time, s"
y = "sum(goodput_mbit_s)"
from = "intervals"
runs = "all"
[experiments.D9-E2]
title = "outside"
reason = "the path is no more"
[[figures]]
id = "Fig. 1"
title = "goodput"
experiment = "D9-E1"
shows = "goodput"
kind = "bars"
x = "cc"
level = { value = 10, words = "the link" }
[[figures]]
id = "Fig. 2"
title = "window"
experiment = "D9-E1"
shows = "window"
kind = "lines"
'''

CLAIMS = """
[[claim]]
id = "D9-C1"
kind = "order"
place = "Fig. 1"
words = "One is faster than two."
[[claim.check]]
experiment = "D9-E1"
quantity = "goodput"
cell = { cc = "one" }
above = { cell = { cc = "two" } }
"""

PUBLISHED = """
[[number]]
what = "one's goodput"
value = 9.5
unit = "Mbit/s"
place = "Fig. 1"
certainty = "stated"
experiment = "D9-E1"
quantity = "goodput"
cell = { cc = "newreno" }
"""

BOTH = """
duration = "2 s"
repeat = 12
every = "1 s"
[network.chain]
rate = "10 Mbit/s"
delay = "5 ms"
[[flows]]
from = "server"
to = "client"
start_jitter = "$wait"
[sweep]
"cc" = ["newreno", "cubic"]
wait = ["100 ms", "10 ms"]
[let]
wait = "100 ms"
cc = "newreno"
profile = "ns2"
[stack]
cc = "$cc"
[variants.then]
stack = { profile = "$profile" }
[variants.now]
stack = { profile = "linux-6.12" }
"""


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "papers" / "nyone-2026"
    place.mkdir(parents=True)
    for name, text in {
        "study": STUDY,
        "claims": CLAIMS,
        "published": PUBLISHED,
        "both": BOTH,
    }.items():
        (place / f"{name}.toml").write_text(text)
    monkeypatch.setattr(_study, "FOLDER", place.parent)
    return place.parent


def claim(folder: Path, check: str, **more: str) -> _study.Study:
    """The study with one claim, decided by this check."""
    head = CLAIMS.split("[[claim.check]]", maxsplit=1)[0]
    keys = "".join(f"{key} = {value}\n" for key, value in more.items())
    (folder / "nyone-2026" / "claims.toml").write_text(f"{head}{keys}{check}")
    return _study.load("nyone-2026")


def of_check(rule: str) -> str:
    start = '[[claim.check]]\nexperiment = "D9-E1"\nquantity = "goodput"\n'
    return f'{start}cell = {{ cc = "one" }}\n{rule}\n'


def drawn(draw: random.Random, *, times: float, now: float | None = None) -> _measured.Tables:
    """30 runs of each side with a spread of 25 %, half of it common to a pair."""
    rows = []
    for stack, factor in (("then", times), ("now", times if now is None else now)):
        for repetition in range(30):
            common = draw.gauss(0, 0.18)
            for cc, mean in (("one", factor), ("two", 1.0)):
                value = mean * (1 + common + draw.gauss(0, 0.18))
                rows.append((stack, cc, "100 ms", repetition, value))
    names = ["variant", "cc", "wait", "repetition", "goodput"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    return {"D9-E1": table}


def decided(study: _study.Study, tables: _measured.Tables) -> _verdicts.Decided:
    (found,) = _page.decided(study, _measured.Measured(tables))
    return found


@pytest.mark.parametrize(("times", "right"), [(1.2, "holds"), (0.8, "reversed")])
def test_true_differences_of_20_percent_are_found(studies: Path, times: float, right: str) -> None:
    study, draw = claim(studies, of_check('above = { cell = { cc = "two" } }')), random.Random(1)
    told = [decided(study, drawn(draw, times=times)).verdict for _ in range(200)]
    assert told.count(right) >= 0.9 * len(told)
    # No claim is decided wrongly.
    assert set(told) <= {right, "cannot be told"}


def test_false_differences_are_rare(studies: Path) -> None:
    study, draw = claim(studies, of_check('above = { cell = { cc = "two" } }')), random.Random(2)
    told = [decided(study, drawn(draw, times=1.0)).then for _ in range(400)]
    # 5 % of 400 is 20, with a standard deviation of sqrt(400 * 0.05 * 0.95) = 4.4.
    assert told.count("cannot be told") >= 400 - 20 - 3 * 4.4


def test_changes_between_then_and_now_are_reported(studies: Path) -> None:
    study, draw = claim(studies, of_check('above = { cell = { cc = "two" } }')), random.Random(3)
    found = decided(study, drawn(draw, times=1.4, now=0.7))
    assert (found.then, found.now, found.verdict) == ("holds", "reversed", "holds no longer")


def test_equal_pairs_are_not_above(studies: Path) -> None:
    (rows,) = drawn(random.Random(11), times=1.0).values()
    one = rows.filter(pl.col("cc") == "one")
    same = pl.concat([one, one.with_columns(pl.lit("two").alias("cc"))])
    study = claim(studies, of_check('above = { cell = { cc = "two" } }'))
    assert decided(study, {"D9-E1": same}).verdict == "does not hold"


def test_margins_of_checks_are_applied(studies: Path) -> None:
    draw = random.Random(4)
    tables = drawn(draw, times=1.3)
    for rule, told in (
        ('above = { cell = { cc = "two" }, by = 0.1 }', "holds"),
        ('above = { cell = { cc = "two" }, by = 0.8 }', "does not hold"),
        ('below = { cell = { cc = "two" } }', "reversed"),
        ('similar_to = { cell = { cc = "two" }, within = 0.8 }', "holds"),
        ('similar_to = { cell = { cc = "two" }, within = 0.05 }', "does not hold"),
        ("between = [1.0, 1.6]", "holds"),
        ("at_least = 2", "does not hold"),
        ("at_most = 1", "does not hold"),
        ("at_most = 1.31", "cannot be told"),
    ):
        assert decided(claim(studies, of_check(rule)), tables).verdict == told, rule


def test_all_checks_must_hold(studies: Path) -> None:
    tables = drawn(random.Random(5), times=1.5)
    good, bad = of_check("at_least = 1"), of_check("at_least = 3")
    assert decided(claim(studies, good + good), tables).verdict == "holds"
    assert decided(claim(studies, good + bad), tables).verdict == "does not hold"


def test_arithmetic_of_a_paper_is_checked(studies: Path) -> None:
    check = '[[claim.check]]\narithmetic = "83333 * 1460 / 1000"\nbetween = [121665, 121667]\n'
    assert decided(claim(studies, check), {}).verdict == "holds"
    check = '[[claim.check]]\narithmetic = "power(83333 / 1.2, 2)"\nat_most = 5e6\n'
    assert decided(claim(studies, check), {}).verdict == "does not hold"


def test_factors_that_a_verdict_depends_on_are_reported(studies: Path) -> None:
    draw = random.Random(6)
    parts = []
    for wait, times in (("100 ms", 1.4), ("10 ms", 0.7), ("20 ms", 1.4)):
        (rows,) = drawn(draw, times=times).values()
        parts.append(rows.with_columns(pl.lit(wait).alias("wait")))
    study = claim(studies, of_check('above = { cell = { cc = "two" } }'))
    found = decided(study, {"D9-E1": pl.concat(parts)})
    assert found.verdict == "holds"
    assert found.depends == (("wait 10 ms", "reversed"),)


def test_a_cell_that_was_run_in_part_decides_nothing(studies: Path) -> None:
    check = of_check('above = { cell = { cc = ["two", "three"] } }')
    assert decided(claim(studies, check), drawn(random.Random(7), times=1.4)).verdict == "not run"


def test_sequential_looks_share_the_error_probability(studies: Path) -> None:
    """With up to 120 repetitions there are looks at 30, 60 and 120: each has a third of 5 %."""
    path = studies / "nyone-2026" / "study.toml"
    path.write_text(path.read_text().replace("quick = {", "at_most = 120\nquick = {"))
    tables = drawn(random.Random(9), times=1.03)
    study = claim(studies, of_check('above = { cell = { cc = "two" } }'))
    ours, theirs = (
        tables["D9-E1"].filter((pl.col("cc") == cc) & (pl.col("variant") == "then"))["goodput"]
        for cc in ("one", "two")
    )
    level = 1 - 0.05 / 3
    expected = statistics.difference(ours.to_list(), theirs.to_list(), level=level)
    (finding,) = decided(study, tables).findings["then"]
    assert expected.low is not None
    assert finding.low == pytest.approx(expected.low / theirs.mean())  # type: ignore[operator]


def test_parameters_missing_in_todays_stack_are_not_swept(studies: Path) -> None:
    # Today's stack has no such parameter, so its runs are not swept over it.
    study = claim(studies, of_check('above = { cell = { cc = "two" } }'))
    tables = drawn(random.Random(1), times=2)
    of_kernel = {"D9-E1": tables["D9-E1"].filter(variant="now").drop("wait")}
    assert decided(study, of_kernel).now == "holds"


def test_linux_verdicts_are_shown_beside_sim_verdicts(studies: Path) -> None:
    study = claim(studies, of_check('above = { cell = { cc = "two" } }'))
    draw = random.Random(10)
    here, there = drawn(draw, times=1.4), drawn(draw, times=0.7)
    (found,) = _page.decided(study, _measured.Measured(here, linux=there))
    assert found.of == {"then": "holds", "now": "holds", "now, on Linux": "reversed"}
    assert found.verdict == "holds"
    page = _page.overview({study.name: (study, [found, found])})
    (said,) = [block for block in page if isinstance(block, str) and "kernel" in block]
    assert "2 of these claims too" in said
    assert ": 0 have the verdict" in said
    assert f"{found.claim.id} (holds on `sim`, reversed on `linux`)" in said


def test_the_number_of_runs_needed_is_estimated(studies: Path) -> None:
    """Halving the interval takes four times as many runs."""
    study, draw = claim(studies, of_check('above = { cell = { cc = "two" } }')), random.Random(8)
    found = decided(study, drawn(draw, times=1.03))
    (finding,) = found.findings["then"]
    assert finding.low is not None
    assert finding.high is not None
    assert finding.estimate is not None
    width = max(finding.high - finding.estimate, finding.estimate - finding.low)
    assert found.verdict == "cannot be told"
    assert found.needed == pytest.approx(30 * (width / abs(finding.estimate)) ** 2, abs=1)


@pytest.mark.parametrize("name", IDS)
def test_a_study_is_whole(name: str) -> None:
    digest, experiments, claims, tables = IDS[name]
    study = _study.load(name)
    assert study.digest == digest
    # Ids of our own experiments begin with F.
    published = {id_ for id_ in study.experiments if not id_.startswith(f"{digest}-F")}
    assert published == {f"{digest}-E{number}" for number in experiments}
    wanted = [f"{digest}-C{number + 1}" for number in range(claims)]
    assert [one.id for one in study.claims] == [
        f"{id_}{part}" for id_ in wanted for part in PARTS.get(id_, ("",))
    ]
    assert {f"{digest}-{table}" for table in tables} <= {one.id for one in study.numbers}
    # Each claim has a check, and an experiment that is not run has a reason.
    for one in study.claims:
        assert one.checks or one.reason
    nothing = _measured.Measured()
    _page.blocks(study, nothing, _page.decided(study, nothing))
    _validation.check(study)
    assert study.ours, "what we find"
    assert study.today, "what happens today"


FOUND = {"cubic-2008": 0.7}
"""Studies with a power below 90 % at 30 runs: ratios of two flows that spread from 0 to 1."""

Pairs = list[tuple[float, float]]
"""The values of both sides of a comparison, by run."""


def pairs_of(name: str) -> list[Pairs]:
    """The comparisons of a study, as measured by its runs, where they are random."""
    study = _study.load(name)
    tables = _measured.read(study, study.folder / _measured.COMMITTED).tables
    found = []
    for check in (check for one in study.claims for check in one.checks):
        if check.side is None or check.other is None:
            continue
        ours = _measured.values(tables, check.side, {"variant": "then"})
        theirs = _measured.values(tables, check.other, {"variant": "then"})
        assert ours is not None
        assert theirs is not None
        found.append([(ours[one], theirs[one]) for one in ours if one in theirs])
    return [one for one in found if len(set(one)) > 1 and fmean(two for _, two in one) != 0]


def planted(pairs: Pairs, times: float, draw: random.Random) -> _measured.Tables:
    """As many runs with the same spread, where one side has `times` the other's mean."""
    ours, theirs = (fmean(side) for side in zip(*pairs, strict=True))
    rows = []
    for repetition, (one, two) in enumerate(draw.choices(pairs, k=len(pairs))):
        rows.append(("one", repetition, one - ours + times * theirs))
        rows.append(("two", repetition, two))
    table = pl.DataFrame(rows, schema=["cc", "repetition", "goodput"], orient="row")
    both = pl.concat(table.with_columns(pl.lit(stack).alias("variant")) for stack in STACKS)
    return {"D9-E1": both.with_columns(pl.lit("100 ms").alias("wait"))}


@pytest.mark.parametrize("name", IDS)
def test_planted_effects_are_found_at_the_spread_of_each_study(name: str, studies: Path) -> None:
    with pytest.MonkeyPatch.context() as original:
        original.setattr(_study, "FOLDER", STUDIES)
        of_study = pairs_of(name)
    study = claim(studies, of_check('above = { cell = { cc = "two" } }'))
    draw = random.Random(1)
    for times, right in ((1.2, "holds"), (0.8, "reversed"), (1.0, "cannot be told")):
        told = [
            decided(study, planted(pairs, times, draw)).then
            for pairs in of_study
            for _ in range(10)
        ]
        n = len(told)
        if times == 1.0:
            # 5 % of n, with a standard deviation of sqrt(n * 0.05 * 0.95).
            assert n - told.count(right) <= 0.05 * n + 3 * (n * 0.05 * 0.95) ** 0.5
        else:
            assert told.count(right) >= FOUND.get(name, 0.9) * n
            # A 95 % interval is on the wrong side of a true difference in at most 2.5 % of cases.
            assert n - told.count(right) - told.count("cannot be told") <= 0.025 * n


@pytest.mark.parametrize("name", IDS)
def test_the_files_of_a_study_have_both_stacks_and_30_runs(name: str) -> None:
    for experiment in _study.load(name).experiments.values():
        if experiment.path is None:
            continue
        read = lab.load(experiment.path)
        assert {"then", "now"} <= set(read.variants or {}), experiment.path
        assert read.repeat == 30 or not isinstance(read.repeat, int), experiment.path
        assert read.plans()


@pytest.mark.parametrize("name", IDS)
def test_measured_files_belong_to_existing_experiments(name: str) -> None:
    study = _study.load(name)
    place = study.folder / _measured.COMMITTED
    read = _measured.read(study, place)
    run = {one.id for one in study.experiments.values() if one.path is not None}
    assert set(read.tables) == run
    files = {*run, *(f"{id_}.{series}" for id_, series in read.series)}
    assert {path.name.removesuffix(".csv") for path in place.glob("*.csv")} == files
    on_linux = {one.id for one in study.experiments.values() if one.linux is not None}
    assert set(read.linux) == on_linux
    # Each check finds its columns and cells.
    of = _page.decided(study, read)
    for one in of:
        assert "not run" not in (one.then, one.now), one.claim.id
    by_id = {one.claim.id: one for one in of}
    for text in (study.ours, study.today):
        assert _placeholders.NOT_MEASURED not in _placeholders.filled(text, study, read, by_id)


@pytest.mark.parametrize(
    ("mean", "below", "above", "shown"),
    [
        (9.43, 0.12, 0.12, "9.43 ± 0.12"),
        # A symmetrical interval is shown only if both sides are about equal.
        (82.8, 1.3, 0.3, "82.8 +0.3 \u22121.3"),
        # At most five digits, and never an interval of zero.
        (49.0306, 0.0004, 0.0004, "49.031 ± 0.001"),
        (12345.6, 4.4, 4.4, "12,346 ± 4"),
        # The ends of an interval that says nothing about the value.
        (5.925, 6.325, 167_930.0, "5.9 (\u22120.40 to 170,000)"),
    ],
)
def test_means_have_the_digits_that_their_intervals_leave(
    mean: float, below: float, above: float, shown: str
) -> None:
    assert _format.measured(mean, mean - below, mean + above) == shown


def test_every_study_has_expected_counts() -> None:
    assert set(_study.names()) == set(IDS)


@pytest.mark.parametrize("name", IDS)
def test_committed_measurements_are_reproduced(name: str, tmp_path: Path) -> None:
    from tcplab.cli._main import main  # noqa: PLC0415

    assert main(["paper", "run", name, "--quick", "--out", str(tmp_path)]) == 0
    study = _study.load(name)
    brought = _measured.read(study, study.folder / _measured.COMMITTED).tables
    again = _measured.read(study, next(tmp_path.rglob("made.json")).parent).tables
    assert set(again) == set(brought)
    for id_, rows in again.items():
        by = [one for one in rows.columns if one not in study.experiments[id_].quantities]
        few = brought[id_].join(rows, on=by, how="semi")
        assert rows.sort(by).equals(few.sort(by)), id_


def test_a_study_is_run_and_reported(
    studies: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tcplab.cli._main import main  # noqa: PLC0415

    claim(
        studies,
        '[[claim.check]]\nexperiment = "D9-E1"\nquantity = "goodput"\n'
        'cell = { cc = "newreno" }\nbetween = [0, 10]\n',
    )
    out = tmp_path / "out"
    assert main(["paper", "run", "nyone-2026", "--out", str(out), "--workers", "1"]) == 0
    told = capsys.readouterr()
    assert "D9-C1  holds  holds  holds" in told.out
    # 2 stacks, 2 algorithms, 2 waits, 30 repetitions.
    assert "D9-E1  one and two: 240 runs" in told.err
    page = tmp_path / "page.html"
    assert main(["paper", "report", "nyone-2026", "--out", str(out), "-o", str(page)]) == 0
    text = page.read_text()
    assert "Of 1 claims: holds 1." in text
    assert "<td>Mbit/s</td><td>9.5 / 9." in text
    assert text.count("<svg") == 2
    notes = tmp_path / "page.md"
    assert main(["paper", "report", "all", "--out", str(out), "-o", str(notes)]) == 0
    assert "![Fig. 2: window](page/fig--2.svg)" in notes.read_text()
    assert "<svg" in (tmp_path / "page" / "fig--2.svg").read_text()
    study = _study.load("nyone-2026")
    measured = _measured.read(study, out / "nyone-2026")
    of = _page.decided(study, measured)
    (said,) = [one for one in _page.blocks(study, measured, of) if "It is 9." in str(one)]
    rows = measured.tables["D9-E1"].filter(pl.col("wait") == "100 ms")
    by_variant = (
        rows.filter(pl.col("cc") == "newreno").group_by("variant").agg(pl.col("goodput").mean())
    )
    means = dict(by_variant.iter_rows())
    share = f"{100 * (means['now'] / means['then'] - 1):+.1f} % ("
    found = re.search(r"It is ([\d.]+) ± ([\d.]+) Mbit/s", str(said))
    assert found is not None
    then = rows.filter(pl.col("cc") == "newreno", pl.col("variant") == "then")["goodput"].to_list()
    half = statistics.interval(then).half_width
    # At most five digits of nine and a fraction.
    assert float(found[1]) == pytest.approx(means["then"], abs=0.0005)
    assert float(found[2]) == pytest.approx(half, abs=0.0005)
    assert share.replace("-", "\u2212") in str(said)
    check_figure(study, measured, rows.filter(pl.col("variant") == "then"))
    # The points of a trace belong to one run; means over runs have intervals.
    assert measured.series["D9-E1", "window"].columns == [
        "variant", "cc", "wait", "line", "x", "y"
    ]  # fmt: skip
    by_second = measured.series["D9-E1", "spread"].filter(
        pl.col("variant") == "then", pl.col("cc") == "newreno", pl.col("wait") == "100 ms"
    )
    assert by_second["x"].to_list() == [0.0, 1.0]
    # Two seconds of goodput over two seconds minus the wait: the mean goodput of flows.
    assert by_second["y"].mean() == pytest.approx(means["then"], rel=0.06)
    assert (by_second["low"] < by_second["y"]).all()
    # Measurements of another file do not count.
    file = studies / "nyone-2026" / "both.toml"
    file.write_text(file.read_text().replace("10 Mbit/s", "20 Mbit/s"))
    capsys.readouterr()
    assert main(["paper", "report", "nyone-2026", "--out", str(out)]) == 0
    assert "Of 1 claims: not run 1." in capsys.readouterr().out


def check_figure(study: _study.Study, measured: _measured.Measured, rows: pl.DataFrame) -> None:
    """Checks that the drawing has the values of the table, and the published ones."""
    drawn = chart(study, study.figures[0], measured).to_dict()
    assert [part["title"] for part in drawn["concat"]] == ["then", "now"]
    values = [
        value
        for part in drawn["concat"][0]["layer"]
        for value in drawn["datasets"][part["data"]["name"]]
    ]
    bars = {one["x"]: one["y"] for one in values if "low" in one}
    for cc, height in bars.items():
        assert height == pytest.approx(rows.filter(pl.col("cc") == cc)["goodput"].mean())
    assert set(bars) == {"newreno", "cubic"}
    assert {"x": "newreno", "line": "", "y": 9.5} in values
    assert {"y": 10.0, "words": "the link"} in values


def test_a_part_of_a_study_is_run_quickly(studies: Path, tmp_path: Path) -> None:
    study = _study.load("nyone-2026")
    way = _runs.Way(tmp_path, is_quick=True, workers=1)
    _runs.run_study(study, ["D9-E1"], way)
    rows = _measured.read(study, way.place(study)).tables["D9-E1"]
    assert set(rows["cc"]) == {"newreno"}
    assert set(rows["repetition"]) == {0, 1}
    made = json.loads((way.place(study) / "made.json").read_text())
    assert made["D9-E1"]["runs"] == len(rows) == 2 * 2 * 2


def test_repetitions_are_added_where_a_claim_is_open(
    studies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = studies / "nyone-2026" / "study.toml"
    path.write_text(path.read_text().replace("quick = {", "at_most = 45\nquick = {"))
    study = claim(studies, of_check('above = { cell = { cc = "two" } }'))
    still_open = _verdicts.Decided(
        study.claims[0], "", {"then": "holds", "now": _verdicts.OPEN}, {}
    )
    monkeypatch.setattr(_runs, "decide", lambda *_: still_open)
    way = _runs.Way(tmp_path, workers=1)
    _runs.run_study(study, ["D9-E1"], way)
    assert max(_measured.read(study, way.place(study)).tables["D9-E1"]["repetition"]) == 44


@pytest.mark.usefixtures("kernel")
def test_kernel_specific_sweeps_run_on_that_kernel_only(
    studies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = studies / "nyone-2026" / "study.toml"
    own = 'linux = { cc = ["newreno"], wait = ["10 ms"] }\nlinux_own = { cc = ["cubic"] }\n'
    path.write_text(path.read_text().replace("quick = {", f"{own}quick = {{"))
    study = _study.load("nyone-2026")
    swept: dict[str | None, set[object]] = {}

    def noted(asked: Any, **how: Any) -> None:
        swept[how["kernel"]] = {dict(one.swept)["cc"] for one in asked.plans()}

    monkeypatch.setattr(_runs, "run", noted)
    monkeypatch.setattr(_runs._measured, "write", lambda *_: None)
    for kernel in (None, lab.DEFAULT_KERNEL):
        way = _runs.Way(tmp_path, backend="linux", kernel=kernel)
        _runs.run_study(study, ["D9-E1"], way)
    assert swept == {None: {"newreno"}, lab.DEFAULT_KERNEL: {"newreno", "cubic"}}
    assert way.place(study).name == f"nyone-2026-linux-{lab.DEFAULT_KERNEL}"
    path.write_text(path.read_text().replace("linux_own = { cc", "linux_own = { rtt"))
    with pytest.raises(ConfigError, match=r"linux_own: it adds values to keys of `linux`"):
        _study.load("nyone-2026")


def test_zipped_values_are_selected_together(studies: Path) -> None:
    path = studies / "nyone-2026" / "both.toml"
    text = path.read_text().replace('wait = ["100 ms", "10 ms"]\n', "")
    path.write_text(f'{text}\n[[zip]]\nwait = ["100 ms", "10 ms"]\nduration = ["2 s", "3 s"]\n')
    read = lab.load(path)
    few = _runs.narrowed(read, {"wait": ("10 ms",), "variant": ("now",)}, 1, path)
    wanted = {("wait", "10 ms"), ("variant", "now")}
    ids = [one.id for one in read.plans() if wanted <= set(one.swept) and one.repetition == 0]
    assert [one.id for one in few.plans()] == ids
    assert len(ids) == 2
    # A parameter that only an excluded variant used is removed.
    assert "profile" not in (_runs.narrowed(read, {"variant": ("now",)}, 1, path).let or {})
    with pytest.raises(ConfigError, match=r"wait is not swept over 7 ms"):
        _runs.narrowed(read, {"wait": ("7 ms",)}, 1, path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{D9-E7 goodput}", "no such claim, or experiment"),
        ("{D9-E1 speed}", "no such claim, or experiment"),
        ("{D9-E1 goodput cc}", "cc is no key with a value"),
        ("{nothing}", "an experiment, a quantity and keys"),
    ],
)
def test_placeholders_without_a_number_are_refused(studies: Path, text: str, said: str) -> None:
    study = _study.load("nyone-2026")
    with pytest.raises(ConfigError, match=said):
        _placeholders.filled(text, study, _measured.Measured(), {})


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("study", ('shows = "window"', 'shows = "windows"'), "windows is none of goodput, window"),
        ("study", ('kind = "bars"', 'kind = "pie"'), "'pie' is none of lines, bars, points"),
        ("study", ('x = "cc"\n', ""), "x: a quantity is shown over a swept key"),
        ("study", ("quick = 2", "quick = 2\nfast = 3"), "fast: there is no such key here"),
        ("study", ('file = "both.toml"', 'file = "no.toml"'), "no.toml is not there"),
        ("study", ("year = 2026", 'year = "2026"'), "year: a whole number is needed"),
        ("claims", ('kind = "order"', 'kind = "guess"'), "'guess' is none of quantity, order"),
        ("claims", ("D9-E1", "D9-E7"), "D9-E7 is none of D9-E1, D9-E2"),
        ("claims", ('quantity = "goodput"', 'quantity = "x"'), "x is none of goodput"),
        ("claims", ("above = ", "over = "), "one of between, at_least"),
        ("published", ("value = 9.5", "value = true"), "value: a number is needed"),
    ],
)
def test_invalid_studies_are_refused(
    studies: Path, file: str, change: tuple[str, str], said: str
) -> None:
    path = studies / "nyone-2026" / f"{file}.toml"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change))
    with pytest.raises(ConfigError) as refused:
        _study.load("nyone-2026")
    assert said in str(refused.value)
    assert f"{file}.toml" in str(refused.value)


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("study", ('lost = { wait = "100 ms" }', 'lost = { start = "0 s" }'), "start is not swept"),
        ("study", ('x = "cc"', 'x = "c"'), "Fig. 1: c is not swept; there are cc, variant, wait"),
        ("study", ("{D9-C1}", "{D9-C9}"), "no claim is called so"),
        ("study", ("{D9-C1}", "{D9-C1"), "has no end"),
        (
            "study",
            ("variant=then cc=newreno}", "variant=then cc=reno}"),
            "over reno, but over cubic",
        ),
        ("claims", ('cell = { cc = "one" }', 'cell = { c = "one" }'), "D9-C1: c is not swept"),
        ("claims", ('cell = { cc = "one" }', 'cell = { cc = "one" }'), "cc is not swept over one"),
        (
            "published",
            ('cc = "newreno"', 'cc = "reno"'),
            "one's goodput: cc is not swept over reno",
        ),
        (
            "both",
            ('[variants.now]\nstack = { profile = "linux-6.12" }', ""),
            "variants.now is miss",
        ),
    ],
)
def test_inconsistent_studies_are_refused_before_running(
    studies: Path, file: str, change: tuple[str, str], said: str
) -> None:
    claims = studies / "nyone-2026" / "claims.toml"
    if file != "claims":
        claims.write_text(claims.read_text().replace('"one"', '"newreno"').replace("two", "cubic"))
    path = studies / "nyone-2026" / f"{file}.toml"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change))
    with pytest.raises(ConfigError) as refused:
        _validation.check(_study.load("nyone-2026"))
    assert said in str(refused.value)


@pytest.mark.parametrize("arithmetic", ["1 / 0", "2 +"])
def test_arithmetic_without_a_number_is_refused(studies: Path, arithmetic: str) -> None:
    check = f'[[claim.check]]\narithmetic = "{arithmetic}"\nat_least = 1\n'
    with pytest.raises(ConfigError, match=r"nyone-2026: D9-C1: arithmetic"):
        _validation.check(claim(studies, check))


def test_an_unknown_study_is_refused(tcplab: Command) -> None:
    refused = tcplab("paper", "report", "nobody-1999")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'nobody-1999' is no study; there are " in refused.stderr
