"""Short labels distinguish swept values."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import tcplab as lab
from tcplab._experiment.labels import MOST, labels
from tcplab.cli import _display, compare

TBF = {"kind": "tbf", "limit": "50 ms", "burst": "32 kB"}


@pytest.mark.parametrize(
    ("values", "short"),
    [
        (["20 packets", "1 BDP"], ["20 packets", "1 BDP"]),
        (
            ["20 packets", {"kind": "fq-codel"}, TBF | {"rate": "10 Mbit/s"}, {"kind": "codel"}],
            ["20 packets", "fq-codel", "tbf", "codel"],
        ),
        (
            [TBF | {"rate": "10 Mbit/s"}, TBF | {"rate": "5 Mbit/s"}],
            ["tbf 10 Mbit/s", "tbf 5 Mbit/s"],
        ),
        (
            [TBF | {"rate": "2 Mbit/s"}, TBF | {"rate": "2 Mbit/s", "peakrate": "2.5 Mbit/s"}],
            ["tbf", "tbf peakrate 2.5 Mbit/s"],
        ),
        (
            [
                TBF | {"peakrate": "2 Mbit/s", "rate": "1 Mbit/s"},
                TBF | {"peakrate": "3 Mbit/s", "rate": "2 Mbit/s"},
            ],
            [
                "tbf rate 1 Mbit/s, peakrate 2 Mbit/s",
                "tbf rate 2 Mbit/s, peakrate 3 Mbit/s",
            ],
        ),
        (
            [{"kind": "codel", "ecn": True}, {"kind": "codel", "ecn": False, "target": "9 ms"}],
            ["codel ecn true", "codel ecn false, target 9 ms"],
        ),
        (
            ["codel", {"kind": "codel", "target": "9 ms"}, {"kind": "codel", "limit": "9 kB"}],
            ["codel", "codel target 9 ms", "codel limit 9 kB"],
        ),
        (
            [
                {
                    "rate": "1 Mbit/s",
                    "delay": "1 ms",
                    "queue": {"kind": "fq", "limit": "9 packets"},
                },
                {"rate": "2 Mbit/s", "delay": "1 ms", "queue": "9 packets"},
            ],
            ["rate 1 Mbit/s, queue fq", "rate 2 Mbit/s, queue 9 packets"],
        ),
        ([{"loss": 0.1}], ["loss 0.1"]),
        ([[], {}], ["[]", "{}"]),
    ],
)
def test_variants_are_labelled_by_what_differs(values: list[Any], short: list[str]) -> None:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    assert list(labels([*texts, None]).values()) == short


def test_long_values_are_cut_between_words_and_numbered() -> None:
    steps = [[[f"{time} s", "5 Mbit/s"] for time in range(1, last)] for last in (9, 10)]
    short = list(labels([json.dumps(value) for value in steps]).values())
    assert short[0].endswith(" ... (1)")
    assert short[1].endswith(" ... (2)")
    assert all(len(label) <= MOST + 4 for label in short)


def test_tables_have_labels_and_results_have_values(
    small: lab.Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = ["10 packets", lab.CodelQueue(limit="100 packets")]
    swept = lab.Experiment(
        name="queues",
        duration="1 s",
        network=small.network,
        flows=small.flows,
        sweep={"network.chain.queue": queues},
    )
    results = lab.run(swept)
    assert set(results.runs["network.chain.queue"]) == {
        "10 packets",
        '{"kind":"codel","limit":"100 packets"}',
    }
    monkeypatch.setenv("COLUMNS", "100")
    rows = _display.table(results).splitlines()[3:5]
    assert [row[:10].strip() for row in rows] == ["10 packets", "codel"]


def test_hidden_columns_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    call = lab.UdpTraffic(rate="100 kbit/s")
    results = lab.run(
        lab.Experiment(
            duration="1 s",
            network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms")),
            flows=[
                lab.Flow(from_="client", to="server"),
                lab.Flow(name="call", from_="client", to="server", traffic=call),
            ],
        )
    )
    monkeypatch.setenv("COLUMNS", "80")
    narrow = _display.table(results)
    assert all(len(line) <= 80 for line in narrow.splitlines())
    assert "No room for share (%), resent (segments), RTT min (ms): " in narrow
    assert "delay 99 %" in narrow.splitlines()[0]
    # A pipe, as in tests, has room for everything.
    monkeypatch.delenv("COLUMNS")
    wide = _display.table(results)
    assert "RTT min" in wide.splitlines()[0]
    assert "No room" not in wide


def test_measures_left_out_by_compare_are_reported(small: lab.Experiment) -> None:
    results = lab.run(small)
    table = compare.table(lab.Comparison({"sim": results, "other": results}))
    # Neither queue is full long enough for a timer to expire.
    assert "timeouts" not in table.partition("Not shown: ")[0]
    assert re.search(
        r"^Not shown: \d+ measures that are 0 everywhere; `Com.*$", table, re.MULTILINE
    )
