"""Reports agree with the results: planted truths are found, and every number comes from a table."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pypdf
import pytest
from altair import Chart
from conftest import EXAMPLES, Command
from test_output import IN_NAMES

import tcplab as lab
from tcplab._report._charts import LIGHT, data_of
from tcplab._report._comparison import question
from tcplab._report._content import Content, content
from tcplab._report._html import _kept, html
from tcplab._report._markdown import markdown
from tcplab._report._phrases import phrase, plain
from tcplab._report._sawtooth import cycles
from tcplab._report._single_runs import PANELS
from tcplab._results.versus import percent
from tcplab._store.checksums import checksum
from tcplab._store.failures import keep_failed
from tcplab._store.manifest import keep, listing
from tcplab.cli._arguments import REPORTS
from tcplab.cli._display import View, shown

CHAIN = {"rate": "20 Mbit/s", "delay": "20 ms", "queue": "1 BDP"}


def experiment(**changes: Any) -> lab.Experiment:
    """A download that begins at a random time, twelve times."""
    plain_ = {
        "name": "planted",
        "duration": "5 s",
        "repeat": 12,
        "network": {"chain": CHAIN},
        "flows": [{"name": "download", "from": "server", "to": "client", "start_jitter": "300 ms"}],
    }
    return lab.Experiment(**_renamed(plain_ | changes))


def _renamed(plain_: Mapping[str, Any]) -> dict[str, Any]:
    return {("from_" if key == "from" else key): value for key, value in plain_.items()}


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> lab.Results:
    """The example of the page about answers, stored."""
    folder = tmp_path_factory.mktemp("report") / "answers"
    return lab.run(EXAMPLES / "answers.toml", out=folder)


@pytest.fixture(scope="session")
def said(answers: lab.Results) -> Content:
    return content(answers)


def test_a_variant_that_is_better_by_20_percent_is_found() -> None:
    # A link that is 20 % faster carries 20 % more once it is full; slow start costs part of it.
    results = lab.run(
        experiment(
            let={"rate": "20 Mbit/s"},
            network={"chain": CHAIN | {"rate": "$rate"}},
            variants={"old": {}, "new": {"rate": "24 Mbit/s"}},
        )
    )
    found = content(results)
    row = results.versus("old", metrics=["goodput_mbit_s"]).row(0, named=True)
    assert row["relative_low"] > 0.17
    assert row["relative_high"] < 0.21
    low, high = (percent(row[f"relative_{end}"]).removesuffix(" %") for end in ("low", "high"))
    expected = f"new gives {percent(row['relative'])} [{low}, {high}] more goodput than old"
    assert plain(found.answer.headline).startswith(expected)
    assert "12 pairs of runs" in plain(found.answer.condition)
    assert found.trust.weight == "good"


def test_no_difference_is_an_answer() -> None:
    # An experiment without losses has no tail loss probe to send.
    results = lab.run(experiment(sweep={"stack.tlp": [True, False]}, duration="1 s"))
    found = content(results)
    expected = "tlp false and tlp true have the same goodput in each of 12 pairs of runs."
    assert plain(found.answer.headline) == expected
    assert "equal to the last digit" in plain(found.answer.more[0])


def test_an_unknown_verdict_states_the_runs_needed() -> None:
    example = lab.load(EXAMPLES / "answers.toml")
    results = lab.run(example.replace(repeat=4, sweep={"flows[0].cc": ["cubic", "newreno"]}))
    metrics = ["goodput_mbit_s", "retransmitted_share", "rtt_mean_ms", "queue_delay_p95_ms"]
    rows = results.versus("cubic", metrics=metrics).filter(flow="asked", metric="goodput_mbit_s")
    assert rows["verdict"].to_list() == ["unknown"]
    found = content(results)
    headline = plain(found.answer.headline)
    assert headline.startswith("It cannot be told whether newreno gives more or less goodput than")
    digits = int(re.findall(r"about ([\d,]+) more pairs", headline)[0].replace(",", ""))
    # Rounded to two digits.
    assert digits == pytest.approx(rows["more_runs"][0], rel=0.05)
    assert found.trust.weight == "care"
    assert [one.title for one in found.trust.remarks] == ["Few repetitions"]


def test_two_equal_runs_do_not_prove_equality() -> None:
    results = lab.run(
        experiment(
            repeat=2,
            duration="6 s",
            network={"chain": {"rate": "100 Mbit/s", "delay": "50 ms", "queue": "1 packets"}},
            flows=[
                lab.Flow(
                    name="download", from_="server", to="client", start_jitter="300 ms",
                    traffic=lab.BulkTraffic(size="40 MB"),
                )
            ],
            sweep={"flows[0].cc": ["cubic", "newreno"]},
        )
    )  # fmt: skip
    # A difference on its own, but possibly chance as one of several comparisons.
    rows = results.versus("cubic", metrics=["goodput_mbit_s", "rtt_mean_ms"])
    row = rows.row(0, named=True)
    assert row["verdict"] == "unknown"
    assert row["relative_low"] * row["relative_high"] > 0
    headline = plain(content(results).answer.headline)
    assert headline.startswith("It cannot be told whether newreno gives more or less goodput")
    assert re.search(r", but as one of \d comparisons that may be chance\.$", headline)


def test_a_better_variant_with_a_cost_states_the_cost() -> None:
    # A full queue of four BDP delays by four base RTTs.
    results = lab.run(
        experiment(
            flows=[
                lab.Flow(
                    name="download", from_="server", to="client", cc="newreno",
                    start_jitter="300 ms",
                ),
                lab.Flow(
                    name="call", from_="server", to="client",
                    traffic=lab.UdpTraffic(interval="20 ms", payload="160 B"),
                ),
            ],
            duration="15 s",
            sweep={"network.chain.queue": ["0.2 BDP", "4 BDP"]},
        )
    )  # fmt: skip
    found = content(results)
    headline = plain(found.answer.headline)
    assert headline.startswith("queue 4 BDP gives ")
    assert "more goodput than queue 0.2 BDP, at a mean RTT that is " in headline
    assert headline.endswith(" higher.")
    worse = [plain(one.said) for one in found.answer.costs if one.tone == "worse"]
    assert any(
        one.startswith("One-way delay (p99) of the flow call: from ") and "; higher by" in one
        for one in worse
    )
    assert any(
        plain(one).startswith("The flow call pays for it: its one-way delay (p99) goes from ")
        for one in found.answer.more
    )
    # Changes for the worse come first.
    tones = [one.tone for one in found.answer.costs]
    assert tones[: len(worse)] == ["worse"] * len(worse)


def test_unreliable_comparisons_carry_a_warning() -> None:
    results = lab.run(
        experiment(
            repeat=2,
            network={"chain": CHAIN | {"queue": "1 packets"}},
            flows=[
                lab.Flow(
                    name="download", from_="server", to="client",
                    traffic=lab.BulkTraffic(size="10 MB"),
                )
            ],
            sweep={"flows[0].cc": ["cubic", "newreno"]},
        )
    )  # fmt: skip
    trust = content(results).trust
    assert trust.weight == "bad"
    titles = {one.title for one in trust.remarks}
    unfinished = results.flows.filter(pl.col("outcome") == "unfinished").height
    assert unfinished > 0
    expected = {f"{unfinished} flows unfinished", "A queue of 1 packet"}
    assert titles == expected | {"All repetitions are equal"}
    assert trust.verdict.startswith("Not as it stands: ")
    # More runs would not help, so the answer does not ask for them. 10 MB take longest at the
    # least rate.
    said = content(results).answer
    for sentence in (said.headline, *(one.said for one in said.costs)):
        assert "more runs" not in plain(sentence)
        assert "more pairs" not in plain(sentence)
    slowest = results.flows.filter(outcome="unfinished")["goodput_mbit_s"].min()
    [remark] = [one.text for one in trust.remarks if one.title.endswith("unfinished")]
    needed = int(re.findall(r"needs about ([\d,]+) s", remark)[0].replace(",", ""))
    assert needed == pytest.approx(80 / slowest, rel=0.05)


def test_a_single_run_has_an_answer() -> None:
    results = lab.run(EXAMPLES / "first.toml")
    found = content(results)
    goodput = dict(results.flows.select("flow", "goodput_mbit_s").iter_rows())
    a, b = (f"{goodput[flow]:.2f} Mbit/s" for flow in ("a", "b"))
    expected = f"Goodput: a (cubic) {a} and b (newreno) {b}."
    assert plain(found.answer.headline) == expected
    assert plain(found.answer.condition).startswith("From a single run.")
    more = percent(goodput["a"] / goodput["b"] - 1)
    said_more = [plain(one) for one in found.answer.more]
    assert said_more == [f"a (cubic) gets {more} more than b (newreno)."]
    assert [one.title for one in found.trust.remarks] == ["One run of each"]


def test_several_cases_are_counted() -> None:
    results = lab.run(
        experiment(
            repeat=3, duration="20 s",
            sweep={"network.chain.queue": ["0.2 BDP", "0.4 BDP", "4 BDP"],
                   "flows[0].cc": ["newreno", "cubic"]},
        )
    )  # fmt: skip
    found = content(results)
    metrics = ["goodput_mbit_s", "retransmitted_share", "rtt_mean_ms", "queue_delay_p95_ms"]
    rows = results.versus("newreno", metrics=metrics).filter(metric="goodput_mbit_s")
    higher = rows.filter(verdict="higher")
    assert 0 < len(higher) < 3
    headline = plain(found.answer.headline)
    assert headline.startswith(f"cubic gives more goodput than newreno in {len(higher)} of 3 cases")
    assert percent(higher["relative"].max()) in headline  # type: ignore[arg-type]
    said_of = [plain(one.said) for one in found.answer.ranking]
    assert said_of == [
        f"queue = {row['network.chain.queue']}: {row['said']}" for row in rows.to_dicts()
    ]


@pytest.mark.parametrize("swept", ["network.dumbbell.queue", "flows.backup.cc"])
def test_the_answer_is_about_what_has_an_end(swept: str) -> None:
    values = {"network.dumbbell.queue": ["1 BDP", "10 BDP"], "flows.backup.cc": ["cubic", "vegas"]}
    experiment = lab.Experiment(
        duration="10 s",
        network=lab.Network(dumbbell=lab.Dumbbell(pairs=2, rate="5 Mbit/s", delay="20 ms")),
        flows=[
            lab.Flow(name="backup", from_="left1", to="right1"),
            lab.Flow(
                name="web",
                from_="left2",
                to="right2",
                traffic={"kind": "bulk", "size": "50 kB"},
                start="3 s",
            ),
        ],
        sweep={swept: values[swept]},
    )
    asked = question(
        lab.run(experiment, progress=False), versus=None, by=None, metrics=[], margin=0.05
    )
    assert asked.goal == "completion_s"
    assert "web" in asked.about(asked.subject)


def test_shares_are_those_of_the_baseline() -> None:
    # Four times the size takes more than twice the time, and nothing is shorter by more than 100 %.
    sized = lab.Flow(
        name="download",
        from_="server",
        to="client",
        start_jitter="300 ms",
        traffic=lab.BulkTraffic(size="$size"),
    )
    results = lab.run(
        experiment(
            repeat=2,
            duration="10 s",
            let={"size": "2 MB"},
            flows=[sized],
            variants={"small": {}, "large": {"size": "8 MB"}},
            sweep={"flows[0].cc": ["newreno", "cubic"]},
        )
    )
    rows = results.versus({"variant": "small"}, metrics=["completion_s"])
    assert (rows["relative"] > 1).all()
    headline = plain(content(results, versus={"variant": "small"}).answer.headline)
    expected = "large has a longer completion time than small in both cases, by "
    assert headline.startswith(expected)
    assert percent(rows["relative"].max()) in headline  # type: ignore[arg-type]


def test_a_small_difference_of_single_runs_is_not_reported() -> None:
    results = lab.run(experiment(repeat=1, duration="2 s", sweep={"stack.tlp": [True, False]}))
    headline = plain(content(results).answer.headline)
    expected = "In one run of each, the goodput of tlp false and tlp true differs by 0.00 %"
    assert headline.startswith(expected)


def test_numbers_of_the_answer_are_those_of_versus(answers: lab.Results, said: Content) -> None:
    # The page itself gives the command.
    command = dict(said.repeat.commands)["The comparisons"]
    metrics = command.rpartition("--metrics ")[2].split(",")
    rows = answers.versus({"flows[0].cc": "cubic"}, metrics=metrics, by="flow").to_dicts()
    bbr = {(row["flow"], row["metric"]): row for row in rows if row["flows[0].cc"] == "bbr"}
    goal = bbr["asked", "goodput_mbit_s"]
    assert f"bbr gives {percent(goal['relative'])} [" in plain(said.answer.headline)
    shown_costs = {plain(one.said) for one in said.answer.costs}
    for (flow, metric), row in bbr.items():
        if (flow == "asked") == (metric == "goodput_mbit_s"):
            continue
        is_there = any(row["said"] in one for one in shown_costs)
        # A metric of both flows, such as the delay of their queue, is reported once.
        assert is_there == (flow == "asked" or metric == "goodput_mbit_s")


def test_the_table_is_that_of_the_command(answers: lab.Results, said: Content) -> None:
    view = View(by="flow", format_="markdown", metrics=("queue_delay_p95_ms",))
    lines = shown(answers, view).splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    own = [[cell.text for cell in row] for row in said.table.rows]
    runs = [head.name for head in said.table.heads].index("runs")
    assert [row[:runs] + row[runs + 1 :] for row in own] == cells
    assert {row[runs] for row in own} == {"12"}
    summary = answers.summary(by="flow", metrics=["queue_delay_p95_ms"])
    assert said.csv == summary.write_csv()
    for place, name in enumerate(said.table.names):
        if name is not None and summary[name].dtype.is_numeric():
            assert [row[place].value for row in said.table.rows] == summary[name].to_list()


def test_the_best_of_each_group_is_marked(answers: lab.Results, said: Content) -> None:
    place = list(said.table.names).index("goodput_mbit_s")
    summary = answers.summary()
    for flow in ("asked", "other"):
        rows = [row for row in said.table.rows if row[1].text == flow]
        most = summary.filter(flow=flow)["goodput_mbit_s"].max()
        marked = [row[place].value for row in rows if row[place].is_best]
        # With the other flow, the baseline has most, and NewReno cannot be told from it.
        rows_ = answers.versus("cubic").filter(flow=flow, metric="goodput_mbit_s")
        told = dict(rows_.select("flows[0].cc", "verdict").iter_rows())
        assert told == {"asked": {"newreno": "unknown", "bbr": "higher"},
                        "other": {"newreno": "unknown", "bbr": "lower"}}[flow]  # fmt: skip
        assert marked == ([most] if flow == "asked" else [])


def test_charts_draw_the_numbers_of_the_summary(answers: lab.Results, said: Content) -> None:
    summary = answers.summary(metrics=["queue_delay_p95_ms"])
    for one in said.comparisons:
        factor = phrase(one.metric).factor
        drawn = [row for panel in one.panels for row in panel.spec["data"]["values"]]
        for panel in one.panels:
            Chart.from_dict(panel.spec)
        expected = summary.sort("flow", maintain_order=True)
        for key, end in (("value", ""), ("low", "_low"), ("high", "_high")):
            numbers = [value * factor for value in expected[f"{one.metric}{end}"]]
            assert [row[key] for row in drawn] == numbers
        assert [row["variant"] for row in drawn] == expected["flows[0].cc"].to_list()
        # The same data as a table, for readers who cannot see the chart.
        table = data_of(one)
        assert sorted(table[one.title]) == sorted(row["value"] for row in drawn)


def test_runs_are_thinned_without_losing_extremes(small: lab.Experiment) -> None:
    record = lab.Record(samples="ack", links="1 ms")
    results = lab.run(small.replace(duration="30 s", record=record, every="100 ms"))
    found = content(results).details
    assert len(found.runs) == 4
    for run in found.runs:
        assert list(run.panels) == ["goodput", "cwnd", "rtt", "queue"]
        for panel in PANELS:
            rows = results.scan(panel.table, run.run).collect()
            by = "link" if panel.table == "links" else "flow"
            for line in run.panels[panel.key]:
                own = rows.filter(pl.col(by) == line.name)[panel.column]
                assert len(line.values) == len(line.times) <= 1000
                assert max(line.values) == pytest.approx(own.max(), rel=1e-4)
                assert min(line.values) == pytest.approx(own.min(), rel=1e-4)


def test_the_bdp_is_worked_out(said: Content) -> None:
    # 10 Mbit/s for 24 ms are 240,000 bits, 30 kB, or 20 packets; 30 packets take 36 ms to leave.
    assert list(said.path.sums) == [
        "10 Mbit/s \u00d7 24 ms = 30.0 kB, the BDP: 20.0 packets of 1,500 B. The queue of "
        "left>right holds 30 packets: 1.50 BDP, and 36.0 ms when it is full."
    ]


def test_failed_and_missing_runs_are_counted(small: lab.Experiment, tmp_path: Path) -> None:
    lab.run(small, out=tmp_path)
    more = small.replace(repeat=4)
    plans = more.plans()
    keep(tmp_path, listing(more, plans))
    lost = [plan for plan in plans if plan.repetition > 1]
    keep_failed(tmp_path, plans, {lost[0].id: "the kernel stopped\nat once"})
    with pytest.warns(lab.TcplabWarning):
        results = lab.stored(tmp_path)
    found = content(results)
    remarks = {one.title: one for one in found.trust.remarks}
    assert remarks["1 run failed"].details == (f"{lost[0].id}: the kernel stopped",)
    assert remarks["3 runs are missing"].text.startswith("3 of 8 runs have not been run")
    assert found.trust.weight == "bad"
    place = [head.name for head in found.table.heads].index("runs")
    assert {row[place].text for row in found.table.rows} == {"2 of 4"}


def test_results_of_several_folders_are_compared(small: lab.Experiment) -> None:
    one = lab.run(small)
    other = lab.run(small.changed({"network.chain.rate": "20 Mbit/s"}))
    from tcplab._results.results import together  # noqa: PLC0415

    found = content(together({"slow": one, "fast": other}))
    headline = plain(found.answer.headline)
    assert headline.startswith("fast gives more goodput than slow in both cases")


def test_reports_are_the_same_each_time(answers: lab.Results, tmp_path: Path) -> None:
    folder = answers.folders[0]
    for end in REPORTS:
        written = []
        for number, seed in enumerate(("1", "2")):
            file = tmp_path / f"{number}{end}"
            done = subprocess.run(
                [sys.executable, "-m", "tcplab.cli", "report", str(folder), "-o", str(file)],
                env={"PYTHONHASHSEED": seed, "PATH": ""},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            written.append(file.read_bytes())
        assert written[0] == written[1]


def test_a_single_run_makes_a_small_file(tmp_path: Path) -> None:
    record = lab.Record(samples="ack", links="1 ms")
    example = lab.load(EXAMPLES / "first.toml").replace(record=record, every="100 ms")
    lab.report(lab.run(example), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


def test_a_thousand_runs_make_a_file_that_can_be_sent(tmp_path: Path) -> None:
    results = lab.run(
        experiment(
            repeat=10, duration="1 s", record={"samples": "ack", "links": "10 ms"},
            sweep={"network.chain.queue": [f"{n} packets" for n in range(10, 60, 2)],
                   "flows[0].cc": ["newreno", "cubic", "bbr", "vegas"]},
        )
    )  # fmt: skip
    assert len(results.runs) == 1000
    lab.report(results, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 4_000_000
    assert "24 of 1000 runs are in this file" in (tmp_path / "report.html").read_text()


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, text: str) -> None:
        """Parses the page."""
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps an element."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keeps text."""
        self.text += data


def active(page: Page) -> list[str]:
    """The elements that do more than show text."""
    return [tag for tag, _ in page.tags if tag in ("script", "style", "image", "a", "iframe")]


def test_names_are_escaped_in_html(small: lab.Experiment) -> None:
    usual = Page(html(content(lab.run(small.replace(sweep=None)))))
    for name, _ in IN_NAMES.values():
        # The name of a flow must not contain a slash, which separates it from a number.
        flow = lab.Flow(name=name.replace("/", "|"), from_="client", to="server", class_=name)
        results = lab.run(small.replace(name=name, flows=[flow], sweep=None))
        text = html(content(results))
        page = Page(text)
        assert active(page) == active(usual), name
        assert not [key for _, attrs in page.tags for key in attrs if key.startswith("on")]
        hidden = "\u2028\u2029\u202a\u202e\u2066\u2069\u200b\u200e\u200f\ufeff\u061c"
        assert not set(hidden) & set(text)


def test_names_are_escaped_in_markdown(small: lab.Experiment) -> None:
    name = "**a** | b <img src=x> [c](javascript:d) @everyone `d` # e"
    flow = lab.Flow(name=name, from_="client", to="server")
    text = markdown(content(lab.run(small.replace(flows=[flow], sweep=None))))
    before_code = text.partition("```")[0]
    assert "<img" not in before_code
    assert not re.search(r"(?<!\\)\]\(", before_code)
    assert not re.search(r"@\w", before_code)
    assert "\\*\\*a\\*\\* \\| b" in before_code


def test_a_pdf_takes_any_text(small: lab.Experiment, tmp_path: Path) -> None:
    flow = lab.Flow(name='#panic("x") *a* $b$ [c] \\d', from_="client", to="server")
    lab.report(lab.run(small.replace(flows=[flow])), tmp_path / "report.pdf")
    text = "".join(page.extract_text() for page in pypdf.PdfReader(tmp_path / "report.pdf").pages)
    assert '#panic("x") *a* $b$ [c] \\d' in text
    assert "Can it be trusted?" in text


def test_missing_records_are_reported(small: lab.Experiment) -> None:
    results = lab.run(small.replace(record={"samples": "off", "links": "off"}))
    found = content(results)
    assert [run.panels for run in found.details.runs] == [{}] * 4
    assert "Nothing over time was recorded" in html(found)


def test_the_page_loads_nothing_from_a_network(said: Content) -> None:
    page = Page(html(said))
    for _, attributes in page.tags:
        for key in ("src", "href", "action", "srcset"):
            value = attributes.get(key)
            assert value is None or value.startswith("#")
    policy = next(
        value["content"] or "" for tag, value in page.tags if value.get("http-equiv") is not None
    )
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("style-src")[0]


def test_charts_of_the_page_draw_the_report_content(said: Content) -> None:
    text = html(said)
    packed = re.findall(r'id="data">([^<]+)<', text)[0]
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert data["comparisons"] == {
        one.metric: [panel.spec for panel in one.panels] for one in said.comparisons
    }
    assert data["csv"]["summary.csv"] == said.csv
    assert [run["run"] for run in data["runs"]] == [run.run for run in said.details.runs]


def test_colours_can_be_seen_on_the_page() -> None:
    # WCAG 2.1 requires 3:1 between graphics and adjacent colours.
    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in LIGHT:
        assert 1.05 / (luminance(colour) + 0.05) >= 3, colour


def test_the_command_writes_reports(small: lab.Experiment, tcplab: Command, tmp_path: Path) -> None:
    lab.run(small, out=tmp_path / "small")
    done = tcplab("report", "small")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "report  small/report.html\n"
    assert (tmp_path / "small" / "report.html").read_text().startswith("<!doctype html>")
    done = tcplab("report", "small", "--format", "markdown")
    assert done.stdout.startswith("# small\n")
    done = tcplab("report", "small", "-o", "it.pdf", "--metrics", "rtt_mean_ms")
    assert (tmp_path / "it.pdf").read_bytes().startswith(b"%PDF"), done.stderr
    (tmp_path / "small.json").write_text(json.dumps(small.to_dict()))
    done = tcplab("run", "small.json", "--out", "again", "--report", "again.md", "--quiet")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.md").read_text().startswith("# small\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.gif"], "a report is written as .html, .md, .pdf"),
        (["-o", "x.md", "--format", "pdf"], "-o: x.md does not end with .pdf"),
        (["-o", "none/x.html"], "none is not a folder"),
        (["-o", "x.html", "--versus", "17"], "baseline: none of network.chain.queue has the value"),
        (["-o", "x.html", "--metrics", "speed"], "metrics: there is no 'speed'"),
    ],
)
def test_unwritable_reports_are_refused(
    words: list[str], message: str, small: lab.Experiment, tcplab: Command, tmp_path: Path
) -> None:
    lab.run(small, out=tmp_path / "small")
    before = sorted(tmp_path.iterdir())
    done = tcplab("report", "small", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before
    assert tcplab("report", "nowhere").returncode == 2


def test_the_paths_of_both_variants_are_described(tmp_path: Path) -> None:
    # 1 BDP of 20 and 24 Mbit/s over 40 ms: 100 and 120 kB, in packets of 1,500 bytes.
    file = tmp_path / "two.toml"
    file.write_text(
        'duration = "1 s"\nrepeat = 2\n[let]\nrate = "20 Mbit/s"\n'
        '[network.chain]\nrate = "$rate"\ndelay = "20 ms"\nqueue = "1 BDP"\n'
        '[[flows]]\nfrom = "server"\nto = "client"\nstart_jitter = "300 ms"\n'
        '[variants.old]\n[variants.new]\nrate = "24 Mbit/s"\n'
    )
    lab.report(lab.run(file), tmp_path / "report.md")
    first = "With old, a bottleneck of 20 Mbit/s, a base RTT of 40 ms and a queue of 67"
    other = "with new, a bottleneck of 24 Mbit/s and a queue of 80 packets"
    said = (tmp_path / "report.md").read_text()
    assert first in said
    assert other in said


def test_settings_without_effect_cause_a_warning(tmp_path: Path) -> None:
    # A long transfer without loss has no tail to probe.
    file = tmp_path / "tlp.toml"
    file.write_text(
        'duration = "1 s"\nrepeat = 10\n[network.chain]\nrate = "20 Mbit/s"\ndelay = "20 ms"\n'
        '[[flows]]\nfrom = "server"\nto = "client"\nstart_jitter = "300 ms"\n'
        '[sweep]\n"stack.tlp" = [true, false]\n'
    )
    lab.report(lab.run(file), tmp_path / "report.md")
    assert "With care: nothing differs" in (tmp_path / "report.md").read_text()


def test_a_run_shorter_than_one_cycle_of_the_window_says_so() -> None:
    # 20 Mbit/s x 40 ms is 66.7 packets of 1,500 bytes, and 4 BDP of queue 267 more. With a full
    # queue the RTT is 40 ms + 267 x 0.6 ms = 200 ms. NewReno halves 334 and regains 167 segments,
    # one in each round trip of 100 to 200 ms: 25 s.
    download = lab.Flow(
        name="download", from_="server", to="client", cc="newreno", start_jitter="300 ms"
    )
    shown = {"chain": CHAIN | {"queue": "4 BDP"}}
    plan = json.loads(experiment(flows=[download], network=shown).plans()[0].to_json())
    [(flow, seconds)] = cycles(plan)
    assert flow == "download"
    assert seconds == pytest.approx(25, rel=0.02)
    results = lab.run(experiment(flows=[download], network=shown, repeat=3))
    titles = {one.title for one in content(results).trust.remarks}
    assert titles == {"Less than one cycle of the window", "Few repetitions"}
    # With losses, or a size, it is not the queue that ends a cycle.
    for other in (
        experiment(flows=[download], network={"chain": CHAIN | {"loss": "1 %"}}),
        experiment(flows=[download.replace(traffic=lab.BulkTraffic(size="1 MB"))], network=shown),
    ):
        assert list(cycles(json.loads(other.plans()[0].to_json()))) == []


def test_libraries_that_another_user_could_have_written_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "libraries"
    path.write_text(f"{checksum(b'text')}\ntext")
    path.chmod(0o644)
    assert _kept(path) == "text"
    path.chmod(0o664)
    assert _kept(path) is None
    path.chmod(0o644)
    path.write_text(f"{checksum(b'text')}\ntexts")
    assert _kept(path) is None
    assert _kept(tmp_path / "missing") is None
