"""Captures whose truth is known, and how often `tcplab capture`, tshark and tcptrace are right.

    python examples/captures/corpus.py --count 200

Each experiment has a path, losses and a congestion control drawn by chance. A program sends over it
on the Linux kernel, in parts with pauses, to one that may read slowly; it writes down what the
kernel says of its socket at each millisecond, and the kernel's counters at the end. The packets are
captured beside the sender, beside the receiver, and at both places. Experiment and captures depend
on the seed alone.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import tcplab as lab

HERE = Path(__file__).parent.resolve()

PLACES = {
    "at the sender": ["sender>a", "a>sender"],
    "at the receiver": ["b>receiver", "receiver>b"],
    "at both": ["sender>a", "a>sender", "b>receiver", "receiver>b"],
}
"""Where packets are captured."""

REASONS = (
    "handshake",
    "close",
    "timeout",
    "recovery",
    "peer_window",
    "application",
    "window",
)
"""What a sender waits for; where several hold, the first counts."""

RECOVERY, LOSS = 3, 4
"""`TCP_CA_Recovery` and `TCP_CA_Loss`: retransmissions that ACKs asked for, and the timer's."""

SENDS = 1
"""`TCP_ESTABLISHED`: the sender has not closed."""


@dataclass(frozen=True)
class Drawn:
    """An experiment by chance."""

    rate: float
    delay: float
    queue: float
    loss: Any
    back_loss: float
    reordering: float
    cc: str
    sack: bool
    parts: list[list[float]]
    read: tuple[int, float]
    seed: int

    @classmethod
    def by(cls, rng: random.Random) -> Drawn:
        """The next one."""
        loss = rng.choice(
            [
                None,
                lab.IndependentLoss(probability=round(10 ** rng.uniform(-3, -1.3), 5)),
                lab.GilbertLoss(to_bad=0.003, to_good=round(rng.uniform(0.1, 0.5), 2)),
            ]
        )
        slow = rng.random() < 0.25
        return cls(
            rate=round(10 ** rng.uniform(0.5, 2), 2),
            delay=round(10 ** rng.uniform(0.3, 2), 2),
            queue=round(rng.uniform(0.3, 2), 2),
            loss=loss,
            back_loss=rng.choice([0, 0, 0, 0.02]),
            reordering=rng.choice([0, 0, 0, 0.01]),
            cc=rng.choice(["cubic", "cubic", "newreno", "bbr", "vegas", "westwood+"]),
            sack=rng.random() < 0.9,
            parts=[
                [round(10 ** rng.uniform(4, 6.2)), rng.choice([0, round(rng.uniform(0.05, 1), 2)])]
                for _ in range(rng.randint(1, 4))
            ],
            read=(8192, 0.01) if slow else (1 << 18, 0),
            seed=rng.randrange(1 << 30),
        )

    def experiment(self, captures: Sequence[str]) -> lab.Experiment:
        """What is run."""
        near = {"rate": "10 Gbit/s", "delay": "10 us"}
        reordering = lab.Reordering(probability=self.reordering, delay=f"{self.delay / 4} ms")
        forward = lab.LinkSettings(
            loss=self.loss, reordering=reordering if self.reordering else None
        )
        path = lab.Link(
            between=("a", "b"),
            rate=f"{self.rate} Mbit/s",
            delay=f"{self.delay} ms",
            queue=f"{self.queue} BDP",
            forward=forward,
            back=lab.LinkSettings(loss=self.back_loss) if self.back_loss else None,
        )
        size, pause = self.read
        traffic = lab.CommandTraffic(
            server=f"{_program('sender')} 5001 '{json.dumps(self.parts)}'",
            client=f"{_program('receiver')} {{server}} 5001 {size} {pause}",
        )
        return lab.Experiment(
            duration="300 s",
            seed=self.seed,
            stack=lab.Stack(sack=self.sack),
            network=lab.Network(
                links=[
                    lab.Link(between=("sender", "a"), **near),
                    path,
                    lab.Link(between=("b", "receiver"), **near),
                ]
            ),
            flows=[
                lab.Flow(name="data", from_="sender", to="receiver", cc=self.cc, traffic=traffic)
            ],
            record=lab.Record(samples="off", links="off", captures=list(captures)),
        )


@cache
def _program(name: str) -> str:
    """The command of a program beside this file, with its text, as its folder may be closed to
    those who run it.
    """
    text = base64.b64encode((HERE / f"{name}.py").read_bytes()).decode()
    return f"python3 -c \"import base64; exec(base64.b64decode('{text}'))\""


@dataclass
class Right:
    """How often something was right."""

    right: int = 0
    of: int = 0

    def add(self, right: int, of: int) -> None:
        """Counts more."""
        self.right += right
        self.of += of

    def words(self) -> str:
        """The share, and of how many."""
        return f"{100 * self.right / self.of:.2f} % of {self.of:,}" if self.of else "-"


@dataclass
class Score:
    """What was found of all experiments."""

    rights: dict[tuple[str, str], Right] = field(default_factory=lambda: defaultdict(Right))
    """By question and place."""
    points: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """By reason to wait and place, by how many points of a hundred it was missed."""


def truth_of_time(told: dict[str, Any], flow: dict[str, Any], size: int) -> dict[str, float]:
    """The time of a sender of so many bytes by what the kernel says it waited for, in percent.

    The handshake is over before a program has the connection; how long it took is in the capture at
    the sender.
    """
    rows = [dict(zip(told["columns"], row, strict=True)) for row in told["rows"]]
    reasons = [_reason(row, after, size) for row, after in itertools.pairwise(rows)]
    # The timer has waited since the last progress.
    for at, (row, before) in enumerate(zip(rows[1:-1], rows, strict=False), start=1):
        if row["congestion_state"] == LOSS and before["congestion_state"] != LOSS:
            back = at - 1
            while back >= 0 and rows[back]["acked"] == before["acked"]:
                reasons[back] = "timeout"
                back -= 1
    spent = dict.fromkeys(REASONS, 0.0)
    for reason, row, after in zip(reasons, rows, rows[1:], strict=False):
        spent[reason] += after["time_s"] - row["time_s"]
    spent["handshake"] += (flow["handshake_ms"] or 0) / 1000
    spent["close"] += max(flow["duration_s"] - sum(spent.values()), 0)
    total = sum(spent.values())
    return {reason: 100 * seconds / total for reason, seconds in spent.items()}


def _reason(row: dict[str, Any], after: dict[str, Any], size: int) -> str:
    """What the sender waits for between two looks at its socket."""
    if row["state"] != SENDS and row["acked"] >= size:
        # A FIN may be in flight.
        return "close"
    if row["congestion_state"] == LOSS:
        return "timeout"
    if row["congestion_state"] == RECOVERY:
        return "recovery"
    if row["unacked"] == 0 and row["notsent"] == 0:
        return "application"
    if after["rwnd_limited_us"] > row["rwnd_limited_us"]:
        return "peer_window"
    return "application" if row["notsent"] == 0 else "window"


def look(number: int, drawn: Drawn, score: Score, folder: Path, *, is_verbose: bool) -> bool:
    """Runs an experiment, reads its captures, counts what is right; False if it does not end."""
    accepted_s = 0.0
    for place, captures in PLACES.items():
        experiment = drawn.experiment(captures)
        results = lab.run(experiment, backend="linux")
        files = results.files(results.plans[0].id)
        capture = folder / "capture.pcapng"
        capture.write_bytes(files["capture.pcapng"])
        if not files["data-server.txt"]:
            # Losses kept the sender from ending before the experiment did.
            return False
        told = json.loads(files["data-server.txt"])
        flow = lab.capture.flows(capture).row(0, named=True)
        wrong = _count(place, flow, told["counters"], score)
        begin_s = lab.capture.info(capture).totals["start_s"][0]
        if place == "at the sender":
            accepted_s = begin_s + (flow["handshake_ms"] or 0) / 1000
        # Elsewhere the same handshake begins earlier, and its last ACK is seen earlier.
        flow["handshake_ms"] = 1000 * (accepted_s - begin_s)
        truth = truth_of_time(told, flow, round(sum(part[0] for part in drawn.parts)))
        for reason, percent in truth.items():
            missed = flow[f"time_{reason}_percent"] - percent
            score.points[reason, place].append(abs(missed))
            if abs(missed) > 5:
                wrong.append(f"time in {reason} {missed:+.1f} points of {percent:.1f}")
        _others(place, capture, flow, told["counters"], score)
        if wrong and is_verbose:
            print(f"{number} {place}: {'; '.join(wrong)}: {drawn}", file=sys.stderr)
    return True


def _count(place: str, flow: dict[str, Any], kernel: dict[str, int], score: Score) -> list[str]:
    """Counts of packets beside the kernel's; what differs, in words."""
    handshakes = kernel["TCPSynRetrans"]
    causes = {
        "fast": kernel["TCPFastRetrans"],
        "timeout": kernel["TCPTimeouts"] - handshakes,
        "after_timeout": kernel["TCPSlowStartRetrans"],
        "probe": kernel["TCPLossProbes"],
    }
    resent = kernel["RetransSegs"] - handshakes
    mine = flow["server_retransmitted_segments"]
    score.rights["retransmissions", place].add(resent - min(abs(mine - resent), resent), resent)
    wrong = [] if mine == resent else [f"{mine} retransmissions of {resent}"]
    known = {cause: number for cause, number in causes.items() if cause != "probe"}
    missed = sum(
        abs(flow[f"server_retransmitted_{cause}"] - number) for cause, number in known.items()
    )
    total = sum(known.values())
    score.rights["causes", place].add(total - min(missed // 2 + missed % 2, total), total)
    if missed:
        ours = {cause: flow[f"server_retransmitted_{cause}"] for cause in known}
        wrong.append(f"causes {ours} of {known}")
    return wrong


def _others(
    place: str, capture: Path, flow: dict[str, Any], kernel: dict[str, int], score: Score
) -> None:
    """What tshark and tcptrace say of the same file."""
    resent = kernel["RetransSegs"] - kernel["TCPSynRetrans"]
    if shutil.which("tshark"):
        kinds = ["retransmission", "fast_retransmission", "spurious_retransmission"]
        again = _flagged(capture, kinds)
        for question, found in [
            ("tshark: retransmissions", again),
            ("tshark: the same with out of order", again + _flagged(capture, ["out_of_order"])),
        ]:
            score.rights[question, place].add(resent - min(abs(found - resent), resent), resent)
        counted = _printed("tshark", "-r", str(capture), "-q", "-z", "conv,tcp")
        row = re.search(r"<->\s+\S+\s+(\d+) \d+ \w+\s+(\d+) \d+ \w+", counted)
        both = {int(row[1]), int(row[2])} if row else set()
        same = both == {flow["client_packets"], flow["server_packets"]}
        score.rights["tshark: the same packets", place].add(same, 1)
    if shutil.which("tcptrace") and shutil.which("editcap"):
        # It knows neither pcapng with two interfaces nor this kind of link.
        plain = capture.with_suffix(".pcap")
        _printed("editcap", "-F", "pcap", "-T", "rawip", str(capture), str(plain))
        text = _printed("tcptrace", "-l", "-n", str(plain))
        sent = re.search(r"rexmt data pkts:\s+(\d+)\s+rexmt data pkts:\s+(\d+)", text)
        packets = re.search(r"total packets:\s+(\d+)\s+total packets:\s+(\d+)", text)
        if sent and packets:
            found = int(sent[2])
            score.rights["tcptrace: retransmissions", place].add(
                resent - min(abs(found - resent), resent), resent
            )
            both = {int(packets[1]), int(packets[2])}
            same = both == {flow["client_packets"], flow["server_packets"]}
            score.rights["tcptrace: the same packets", place].add(same, 1)


def _flagged(capture: Path, kinds: Sequence[str]) -> int:
    """How many of the sender's packets with data tshark has for one of these."""
    flags = " || ".join(f"tcp.analysis.{kind}" for kind in kinds)
    shown = f"({flags}) && tcp.srcport == 5001 && tcp.len > 0"
    return len(_printed("tshark", "-r", str(capture), "-Y", shown).splitlines())


def _printed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def table(score: Score) -> str:
    """Both parts, in Markdown."""
    lines = [f"| | {' | '.join(PLACES)} |", "|---|" + "---:|" * len(PLACES)]
    for question in dict.fromkeys(question for question, _ in score.rights):
        cells = [score.rights[question, place].words() for place in PLACES]
        lines.append(f"| {question} | {' | '.join(cells)} |")
    lines += ["", f"| time in | {' | '.join(PLACES)} |", "|---|" + "---:|" * len(PLACES)]
    for reason in REASONS:
        cells = [f"{fmean(score.points[reason, place]):.2f}" for place in PLACES]
        lines.append(f"| {reason.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--verbose", action="store_true", help="say what is wrong where")
    args = parser.parse_args()
    warnings.simplefilter("ignore", lab.TcplabWarning)
    rng = random.Random(args.seed)
    score = Score()
    ended = 0
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        for number in range(args.count):
            ended += look(number, Drawn.by(rng), score, Path(folder), is_verbose=args.verbose)
    print(f"{ended} experiments that ended, seed {args.seed}\n\n{table(score)}")


if __name__ == "__main__":
    main()
