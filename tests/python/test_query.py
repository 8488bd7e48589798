"""`query` gives the same numbers as the other interfaces, and reads nothing else."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest
from conftest import Command

import tcplab as lab

BY_QUEUE = """
    select "network.chain.queue" as queue, flow, goodput_mbit_s, retransmitted_segments
    from flows join runs using (run) order by queue, seed
"""


@pytest.fixture
def results(small: lab.Experiment, tmp_path: Path) -> lab.Results:
    return lab.run(small, out=tmp_path / "out")


def test_a_query_gives_the_numbers_of_the_tables(
    results: lab.Results, small: lab.Experiment, tcplab: Command
) -> None:
    asked = results.query(BY_QUEUE)
    expected = results.joined("flows").sort("network.chain.queue", "seed")
    for column in ("flow", "goodput_mbit_s", "retransmitted_segments"):
        assert asked[column].to_list() == expected[column].to_list()
    assert asked["queue"].to_list() == ["10 packets"] * 2 + ["20 packets"] * 2
    # Results in memory give the same rows.
    assert lab.run(small).query(BY_QUEUE).equals(asked)
    printed = json.loads(tcplab("query", "out", BY_QUEUE, "--format", "json").stdout)
    assert pl.DataFrame(printed, schema=asked.schema).equals(asked)
    lines = tcplab("query", "out", BY_QUEUE, "--format", "csv").stdout.splitlines()
    rows = list(csv.DictReader(lines))
    assert [float(row["goodput_mbit_s"]) for row in rows] == asked["goodput_mbit_s"].to_list()
    shown = json.loads(tcplab("show", "out", "--format", "json").stdout)
    assert sorted(row["goodput_mbit_s"] for row in shown["flows"]) == sorted(
        asked["goodput_mbit_s"].to_list()
    )


def test_every_table_can_be_queried(results: lab.Results) -> None:
    for table in lab._store.run_groups.TABLES:
        rows = results.query(f"select count(*) as rows from {table}")["rows"].item()
        assert rows == len(results.scan(table).collect())
    digests = results.query("select run, digest from plans")
    assert dict(digests.iter_rows()) == results.digests


def test_queries_exclude_rows_of_other_experiments(
    results: lab.Results, small: lab.Experiment, tmp_path: Path
) -> None:
    flows = [lab.Flow(from_="client", to="server", cc="bbr")]
    other = lab.run(small.replace(flows=flows), out=tmp_path / "out")
    assert len(other.query("select * from flows")) == len(results.query("from flows")) == 4
    probes = other.query("select * from samples limit 1").columns
    assert any(name.startswith("bbr_") for name in probes)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select * frm flows", "Parser Error: syntax error at or near"),
        ("select nothing from flows", "Binder Error: Referenced column"),
        ("select * from nowhere", "Catalog Error: Table with name nowhere does not exist"),
        ("drop view flows", "a query is one statement that begins with `select`"),
        ("select 1; select 2", "a query is one statement that begins with `select`"),
        ("", "a query is one statement that begins with `select`"),
        ("select * from read_csv('/etc/passwd')", "Permission Error: Cannot access file"),
        ("copy flows to '/tmp/flows.csv'", "a query is one statement that begins with `select`"),
        ("set threads = 3", "a query is one statement that begins with `select`"),
    ],
)
def test_invalid_queries_are_refused_in_one_line(
    sql: str, said: str, results: lab.Results, tcplab: Command
) -> None:
    with pytest.raises(lab.ConfigError) as raised:
        results.query(sql)
    assert said in str(raised.value)
    if sql in ("drop view flows", "select * frm flows"):
        done = tcplab("query", "out", sql)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1


def test_query_results_are_printed_as_text_tables(results: lab.Results, tcplab: Command) -> None:
    del results
    sql = "select flow, 1.23456789 as number, null as nothing, 3 as three from flows limit 1"
    assert tcplab("query", "out", sql).stdout.splitlines() == [
        "flow    number  nothing  three",
        "-----  -------  -------  -----",
        "flow1  1.23457        -      3",
    ]
    marked = tcplab("query", "out", sql, "--format", "markdown").stdout.splitlines()
    assert marked[0] == "| flow | number | nothing | three |"
    many = tcplab("query", "out", "select * from range(100)").stdout.splitlines()
    assert many[-1].startswith("... and 40 more rows")
