"""The parity grid: each path with each traffic and each congestion control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tcplab as lab

PROFILE = "linux-6.12"
BOTH = ("newreno", "cubic")
"""Algorithms with all kinds of traffic. `newreno` is the kernel's `reno`."""

OTHERS = (
    *("bic", "vegas", "westwood+", "htcp", "highspeed", "hybla", "scalable", "illinois"),
    *("veno", "yeah", "lp", "dctcp", "bbr", "cdg", "nv"),
)
"""Algorithms with flows that do not end. `westwood+` is the kernel's `westwood`."""

TIGHT = (*BOTH, "bic", "scalable", "vegas", "westwood+")
"""Algorithms with tighter bounds than the others."""

LOSS_SEED = 20
"""The least seed with which the 21 packets of 30 kB lose one in their middle third: the 12th."""

MOST_PACKETS = 34_000
"""More packets than 10 Mbit/s carry in 40 s: 33,333 packets of 1500 bytes."""


def listed(seed: int = LOSS_SEED) -> list[int]:
    """One lost packet in a hundred: packet n, from 1, if the n-th state of this generator is a hit.

    The generator is the example for `rand` in the C standard. Its hits are irregular, so that they
    do not resonate with the period of a window, and they are the same on every machine.
    """
    lost, state = [], seed
    for number in range(1, MOST_PACKETS + 1):
        state = (state * 1_103_515_245 + 12_345) % 2**31
        if state // 2**16 % 100 == 0:
            lost.append(number)
    return lost


@dataclass(frozen=True)
class Path:
    """A dumbbell. `rtt_ms` excludes queueing; access links take 4 ms of it."""

    rate: str
    rtt_ms: int
    queue: str
    has_listed_loss: bool = False

    @property
    def name(self) -> str:
        """The name in the report."""
        last = "listed loss" if self.has_listed_loss else self.queue
        return f"{self.rate} {self.rtt_ms} ms {last}"

    def network(self, pairs: int) -> lab.Network:
        """The dumbbell."""
        return lab.Network(
            dumbbell=lab.Dumbbell(
                pairs=pairs,
                rate=self.rate,
                delay=f"{self.rtt_ms // 2 - 2} ms",
                queue=self.queue,
                loss=lab.ListedLoss(packets=listed()) if self.has_listed_loss else None,
            )
        )


PATHS = (
    Path("1 Mbit/s", 50, "10 packets"),
    Path("10 Mbit/s", 40, "1 BDP"),
    Path("10 Mbit/s", 40, "0.25 BDP"),
    Path("100 Mbit/s", 20, "1 BDP"),
    Path("50 Mbit/s", 100, "0.5 BDP"),
    Path("10 Mbit/s", 40, "1 BDP", has_listed_loss=True),
)


@dataclass(frozen=True)
class Traffic:
    """The flows of a cell: sizes and start times."""

    name: str
    size: str | None
    starts_s: tuple[float, ...]
    """The start time of each flow."""
    duration_s: int
    shares_hosts: bool = False
    """Whether all flows are between the same two hosts; else each flow has its own pair."""

    @property
    def is_short(self) -> bool:
        """Whether the flows end."""
        return self.size is not None

    @property
    def pairs(self) -> int:
        """The number of pairs of hosts."""
        return 1 if self.shares_hosts else len(self.starts_s)

    def flows(self) -> list[lab.Flow]:
        """The flows, named flow1, flow2, ..."""
        return [
            lab.Flow(
                from_=f"left{1 if self.shares_hosts else number}",
                to=f"right{1 if self.shares_hosts else number}",
                start=f"{start_s:g} s",
                traffic=lab.BulkTraffic(size=self.size),
            )
            for number, start_s in enumerate(self.starts_s, 1)
        ]


ONE_FLOW = Traffic("one flow", None, (0,), 30)
TWO_FLOWS = Traffic("two flows", None, (0, 5), 40)
SHORT = Traffic("30 kB", "30 kB", (0,), 10)
TRANSFERS = "20 x 100 kB"


def traffic_of(path: Path) -> tuple[Traffic, ...]:
    """The kinds of traffic of a path. 100 kB take 0.83 s at 1 Mbit/s, plus the time to repair
    losses.
    """
    spacing_s = 2 if path.rate == "1 Mbit/s" else 1
    starts_s = tuple(float(spacing_s * number) for number in range(20))
    transfers = Traffic(TRANSFERS, "100 kB", starts_s, 20 * spacing_s + 10, shares_hosts=True)
    return (ONE_FLOW, TWO_FLOWS, SHORT, transfers)


@dataclass(frozen=True)
class Cell:
    """A path with traffic and a congestion control."""

    cc: str
    path: Path
    traffic: Traffic

    @property
    def name(self) -> str:
        """The name in the report."""
        return f"{self.cc} / {self.path.name} / {self.traffic.name}"

    @property
    def is_exact(self) -> bool:
        """Whether the windows should be equal at every ACK."""
        return self.traffic.is_short or self.path.has_listed_loss

    def is_called(self, part: str) -> bool:
        """Whether the name contains this text. An algorithm must match as a whole."""
        cc = part.split(" / ", maxsplit=1)[0]
        return part in self.name and (self.cc == cc or cc not in (*BOTH, *OTHERS))


CELLS = tuple(
    Cell(cc, path, traffic)
    for path in PATHS
    for traffic in traffic_of(path)
    for cc in (BOTH if traffic.is_short else (*BOTH, *OTHERS))
)


def cells(*parts: str) -> list[Cell]:
    """The cells whose names contain all of these parts."""
    return [cell for cell in CELLS if all(cell.is_called(part) for part in parts)]


def experiment(some: Sequence[Cell], settings: dict[str, Any]) -> lab.Experiment:
    """Cells that differ only in their congestion control, as one experiment that sweeps it."""
    path, traffic = some[0].path, some[0].traffic
    return lab.Experiment(
        name=f"{path.name}, {traffic.name}",
        duration=f"{traffic.duration_s} s",
        network=path.network(traffic.pairs),
        flows=traffic.flows(),
        stack=lab.Stack(**settings),
        record=lab.Record(samples="ack", links="off"),
        sweep={"stack.cc": [cell.cc for cell in some]},
    )
