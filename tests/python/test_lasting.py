"""Runs described by flags are long enough for what happens in them."""

from __future__ import annotations

from typing import Any

import pytest

from tcplab.cli._lasting import duration
from tcplab.cli.trying import TRAFFIC, with_ranges


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, "10 s"),
        # 50 round trips.
        ({"rtt": ["500 ms"]}, "50 s"),
        ({"rtt": [{"from": "10 ms", "to": "500 ms"}]}, "50 s"),
        # 800 Mbit at 200 Mbit/s take 4 s: three times that, and 50 round trips of 160 ms.
        ({"traffic": [{"size": "100 MB"}], "rate": ["200M"], "rtt": ["160 ms"]}, "20 s"),
        # The largest size, at the lowest rate: 3 * 80 s + 2 s.
        ({"traffic": [{"size": "1 MB"}, {"size": "100 MB"}], "rate": ["10M", "1G"]}, "500 s"),
        # Mathis: 691 segments at 1.22 / sqrt(0.01) = 12.2 in 100 ms take 5.6 s, the link 0.8 s.
        ({"traffic": [{"size": "1 MB"}], "rtt": ["100 ms"], "loss": ["1 %"]}, "50 s"),
        # A page of 1.8 MB at 64 kbit/s takes 226 s.
        ({"traffic": [TRAFFIC["web"]], "rate": ["64k"]}, "1000 s"),
        # Half of all values lie below the median, and nearly all below e^(2.33 * 0.5) of it.
        ({"rtt": [{"kind": "lognormal", "median": "100 ms", "sigma": 0.5}]}, "20 s"),
        # Mistakes are reported by the readers of the flags.
        ({"rtt": ["soon"], "traffic": [{"size": "big"}], "rate": ["0"]}, "10 s"),
    ],
)
def test_the_default_duration_is_long_enough(flags: dict[str, Any], expected: str) -> None:
    assert duration(flags, has_other=False) == expected


def test_a_run_with_a_flow_that_never_ends_is_no_longer_than_it_must_be() -> None:
    flags = {"traffic": [{"size": "1 GB"}]}
    assert duration(flags, has_other=True) == "1000 s"
    assert duration(flags, has_other=False) == "5000 s"


def test_a_search_over_a_fast_and_short_path_has_shorter_runs() -> None:
    # 100 Gbit in 10 s, and 2,000 round trips of 0.1 ms in 0.2 s; of 10 ms, in 20 s.
    fast = {"rate": ["10G"], "rtt": ["0.1 ms"]}
    assert duration(fast, has_other=False, is_searched=True) == "1 s"
    assert duration(fast, has_other=False) == "10 s"
    assert duration(fast | {"rtt": ["10 ms"]}, has_other=False, is_searched=True) == "10 s"
    assert duration(fast | {"rate": ["1G"]}, has_other=False, is_searched=True) == "10 s"


def test_sizes_of_transfers_may_be_a_range() -> None:
    """`--traffic 1MB..100MB --rate 10M`: the run is long enough for the largest."""
    given = {"traffic": [{"kind": "bulk", "size": "1MB..100MB"}], "rate": ["10M"]}
    plain, ranges = with_ranges(given, {})
    assert ranges == {"flows.flow.traffic.size": {"from": "1MB", "to": "100MB"}}
    assert plain["flows"][0]["traffic"] == {"kind": "bulk", "size": "1MB"}
    # 800 Mbit at 10 Mbit/s take 80 s: three times that, and 2 s.
    assert plain["duration"] == "500 s"
