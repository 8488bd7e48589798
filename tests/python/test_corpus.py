"""Classification of some captures in `examples/captures`, compared with the kernel's statistics."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path
from statistics import fmean

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "examples" / "captures"))

import corpus


@pytest.mark.usefixtures("kernel")
def test_retransmissions_and_times_are_those_of_the_kernel(tmp_path: Path) -> None:
    if not Path("/usr/bin/python3").exists():
        pytest.skip("there is no /usr/bin/python3; on Debian: sudo apt-get install python3")
    rng, score = random.Random(77), corpus.Score()
    for number in range(6):
        corpus.look(number, corpus.Drawn.by(rng), score, tmp_path, is_verbose=False)
    for place, least in [("at both", 0.99), ("at the sender", 0.97)]:
        for question in ("retransmissions", "causes"):
            found = score.rights[question, place]
            assert found.of > 0
            assert found.right >= least * found.of, (question, place, found.words())
    for reason in corpus.REASONS:
        for place, most in [("at the sender", 3), ("at both", 3), ("at the receiver", 6)]:
            assert fmean(score.points[reason, place]) <= most, (reason, place)
    if shutil.which("tshark"):
        for place in corpus.PLACES:
            same = score.rights["tshark: the same packets", place]
            assert (same.right, same.of) == (6, 6), place


def test_waiting_time_counts_for_the_first_matching_cause() -> None:
    columns = ["time_s", "state", "congestion_state", "unacked", "notsent", "acked"]
    columns.append("rwnd_limited_us")
    sends, closes = 1, 4
    rows = [
        # Ten segments in flight and more to send; nothing arrives for 0.3 s and the timer expires.
        [1.0, sends, 0, 10, 5000, 0, 0],
        [1.1, sends, 0, 10, 5000, 1000, 0],
        [1.4, sends, corpus.LOSS, 10, 5000, 1000, 0],
        [1.5, sends, corpus.RECOVERY, 10, 5000, 9000, 0],
        # All data is sent; then there is no data; then the receiver's window is closed.
        [1.6, sends, 0, 10, 0, 9000, 0],
        [1.8, sends, 0, 0, 0, 15000, 0],
        [1.9, sends, 0, 10, 5000, 15000, 0],
        [2.0, closes, 0, 0, 0, 30000, 100_000],
        [2.1, closes, 0, 0, 0, 30000, 100_000],
    ]
    flow = {"handshake_ms": 100.0, "duration_s": 1.2}
    spent = corpus.truth_of_time({"columns": columns, "rows": rows}, flow, 30_000)
    seconds = {reason: round(12 * percent) for reason, percent in spent.items()}
    expected = {"handshake": 100, "window": 100, "timeout": 400, "recovery": 100}
    expected |= {"application": 300, "peer_window": 100, "close": 100}
    assert seconds == expected
