"""The parity suite: part of its grid, and tests of its measures.

`make parity` runs the whole grid.
"""

from __future__ import annotations

import polars as pl
import pytest

import tcplab as lab
from parity.grid import CELLS, MOST_PACKETS, Cell, cells, listed
from parity.measures import FIRST, METRICS, Bound, Row, rows
from parity.page import KEPT, page
from parity.runs import compared, together
from parity.traces import Trace, aligned, first_difference, report

FAST = [
    *cells("10 Mbit/s 40 ms listed loss / 30 kB"),
    *cells("10 Mbit/s 40 ms listed loss / 20 x 100 kB"),
    *cells("10 Mbit/s 40 ms 1 BDP / 30 kB"),
    *cells("10 Mbit/s 40 ms 1 BDP / 20 x 100 kB"),
    *cells("10 Mbit/s 40 ms 0.25 BDP / 30 kB"),
    *cells("10 Mbit/s 40 ms 0.25 BDP / 20 x 100 kB"),
]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("some", list(together(FAST)), ids=lambda some: some[0].name)
def test_sim_matches_linux_in_the_parity_grid(some: list[Cell]) -> None:
    comparison = compared(some, {})
    missed = [row for cell in some for row in rows(cell, comparison) if row.holds is False]
    assert missed == []


@pytest.mark.usefixtures("kernel")
def test_comparing_linux_with_itself_shows_no_difference() -> None:
    (cell, _) = cells("10 Mbit/s 40 ms listed loss / 30 kB")
    linux = compared([cell], {"profile": "rfc"}).results["linux"]
    found = rows(cell, lab.Comparison({"sim": linux, "linux": linux}))
    assert [row.metric for row in found] == [metric.name for metric in METRICS] + [FIRST]
    assert {row.difference for row in found} == {0, None}
    assert not [row for row in found if row.holds is False]
    # One packet is lost and retransmitted.
    assert [row.linux for row in found if row.metric == "retransmissions"] == [1]


def test_the_grid_is_complete() -> None:
    # Six paths: two algorithms with four kinds of traffic, fifteen more with two kinds.
    assert len({cell.name for cell in CELLS}) == 6 * (2 * 4 + 15 * 2)
    groups = [[cell.cc for cell in some] for some in together(CELLS)]
    assert all(group[:2] == ["newreno", "cubic"] for group in groups)


def test_algorithm_names_match_as_whole_words_first() -> None:
    assert {cell.cc for cell in cells("bic")} == {"bic"}
    assert {cell.cc for cell in cells("bic / 10 Mbit/s")} == {"bic"}
    assert {cell.cc for cell in cells("ubic")} == {"cubic"}


def test_one_packet_in_a_hundred_is_lost() -> None:
    # A binomial distribution of 34,000 and 1 %: 340, with a deviation of 18.3.
    assert abs(len(listed()) - MOST_PACKETS / 100) < 2 * 18.3
    # 30 kB are 20.7 segments of 1448 bytes.
    assert [number for number in listed() if number <= 21] == [12]


def ack(acked: int, cwnd: int, number: int = 0) -> dict[str, float | None]:
    """A row of a trace."""
    state = {"cwnd": cwnd, "ssthresh": None, "in flight": 1, "acked": acked, "dropped": 0}
    return {**state, "number": number, "time_ms": 1.0 * number, "srtt_ms": 40.0}


def trace_of(*acks: tuple[int, int]) -> Trace:
    """A trace from acknowledged bytes and windows."""
    rows = [ack(acked, cwnd, number) for number, (acked, cwnd) in enumerate(acks, 1)]
    return Trace(pl.DataFrame(rows, schema_overrides={"ssthresh": pl.Int64}))


def test_windows_differ_at_the_first_ack_where_one_is_another_or_missing() -> None:
    three = trace_of((1, 10), (2, 11), (3, 12))
    assert first_difference(three, three) is None
    assert first_difference(three, trace_of((1, 10), (2, 12), (3, 12))) == 2
    assert first_difference(three, trace_of((1, 10), (2, 11))) == 3


def test_acks_are_paired_by_what_they_acknowledge() -> None:
    # One side acknowledges every segment, the other every second one; then a duplicate.
    sim = [ack(1, 10), ack(2, 11), ack(2, 11), ack(3, 12)]
    linux = [ack(2, 11), ack(3, 12), ack(4, 13)]
    pairs = [
        (ours and ours["acked"], theirs and theirs["acked"]) for ours, theirs in aligned(sim, linux)
    ]
    assert pairs == [(1, None), (2, 2), (2, None), (3, 3), (None, 4)]


def test_traces_are_shown_around_the_first_difference() -> None:
    sim = trace_of(*((number, 10 + number) for number in range(1, 100)))
    linux = trace_of(*((number, 10 + min(number, 60)) for number in range(1, 100)))
    shown = report(sim, linux, before=2, after=3).splitlines()
    assert "first other cwnd: ACK 61, at 61.000 ms: sim 71, linux 70" in shown
    (first,) = [number for number, line in enumerate(shown) if line.startswith(">")]
    assert shown[first].split()[1:4] == ["61", "61", "61"]
    assert len(shown) - first == 1 + 3
    assert "same state" in report(sim, sim)


def test_counts_may_differ_by_one_or_by_a_share() -> None:
    episodes = Bound(0.05, number=1)
    assert episodes.holds(4, 3)
    assert not episodes.holds(5, 3)
    assert episodes.holds(95, 100)
    assert not episodes.holds(94, 100)
    assert not Bound(0.01).holds(None, 1)


def test_the_page_marks_what_misses_and_keeps_what_was_written_by_hand() -> None:
    row = Row("cubic", "10 Mbit/s 40 ms 1 BDP", "one flow", "goodput", 8, 10, -0.2, "1 %", False)
    text = page([row], "this and that", f"as it was\n{KEPT}\nThe clock.\n")
    assert "| 10 Mbit/s 40 ms 1 BDP | cubic | **-20.00 %** |" in text
    assert "Of 1 bounds 0 hold." in text
    assert text.endswith(f"{KEPT}\nThe clock.\n")
    assert "as it was" not in text
