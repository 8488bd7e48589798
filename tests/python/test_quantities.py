"""Swept values are also available as numbers, in the unit that the column names."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import tcplab as lab
from tcplab._experiment.quantities import numbers


@pytest.mark.parametrize(
    ("written", "kind", "values"),
    [
        (
            ["10 Mbit/s", "1.5 Gbit/s", "64kbit/s", "1e6 bit/s"],
            "mbit_s",
            [10.0, 1500.0, 0.064, 1.0],
        ),
        (["100M", "2k"], "mbit_s", [100.0, 0.002]),
        (
            ["5 ms", "1.5 s", "20 us", "20 µs", "1 ns", "2 min"],
            "ms",
            [5, 1500, 0.02, 0.02, 1e-6, 12e4],
        ),
        (["64 kB", "1 MiB", "1_500 B"], "bytes", [64_000, 1_048_576, 1500]),
        (["20 packets", "1 packet", None], "packets", [20, 1, None]),
        (["0.25 BDP", "1 bdp"], "bdp", [0.25, 1.0]),
        (["0.1 %", "0.02", "3%"], "share", [0.001, 0.02, 0.03]),
        (["1", "30"], "number", [1, 30]),
        (["0.5", "2"], "number", [0.5, 2.0]),
        (["true", "false"], "boolean", [True, False]),
    ],
)
def test_quantities_of_one_kind_are_numbers(
    written: list[str | None], kind: str, values: list[Any]
) -> None:
    found = numbers(written)
    assert found is not None
    assert found[0] == kind
    assert found[1].to_list() == values


@pytest.mark.parametrize(
    "written",
    [
        ["cubic", "reno"],
        ["20 packets", "1 BDP"],
        ["10 ms", "off"],
        ["10 Mbps"],
        ['{"kind": "tbf"}'],
        [".", "e5"],
        [None],
        ["true", "1"],
    ],
)
def test_other_values_are_text_alone(written: list[str | None]) -> None:
    assert numbers(written) is None


def test_runs_have_text_and_numbers() -> None:
    results = lab.run(
        lab.Experiment(
            duration="1 s",
            let={"delay": "5 ms"},
            network=lab.Network(
                chain=lab.Chain(rate="10 Mbit/s", delay="$delay", queue="20 packets")
            ),
            flows=[lab.Flow(from_="client", to="server")],
            sweep={
                "delay": ["5 ms", "0.02 s"],
                "flows[0].cc": ["cubic", "newreno"],
                "stack.sack": [True, False],
            },
        )
    )
    runs = results.runs
    assert runs["delay"].unique(maintain_order=True).to_list() == ["5 ms", "0.02 s"]
    assert runs["delay_ms"].unique(maintain_order=True).to_list() == [5.0, 20.0]
    assert runs.schema["stack.sack_boolean"] == pl.Boolean
    assert runs.schema["stack.sack"] == pl.String
    assert not [name for name in runs.columns if name.startswith("flows[0].cc_")]
