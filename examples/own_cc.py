"""A congestion control of your own: AIMD that is gentler than NewReno and grows a little faster.

Run it: python examples/own_cc.py
"""

from __future__ import annotations

import tcplab as lab
from tcplab.cc import Ack, Congestion, Control, FlowState, Init


@lab.cc.register("gentle")
class Gentle:
    """`step` segments more each round trip, and `kept` of the window after a loss."""

    def __init__(self, init: Init, step: float = 2.0, kept: float = 0.75) -> None:
        """A flow begins; `step` and `kept` can be given in the experiment."""
        self.step, self.kept = step, kept
        self.cwnd, self.ssthresh = float(init.initial_window), float("inf")

    def on_ack(self, flow: FlowState, ack: Ack) -> None:
        """Slow start up to the threshold, then additive increase."""
        if flow.is_recovering or not flow.cwnd_limited:
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += ack.credit
        else:
            self.cwnd += self.step * ack.credit / self.cwnd

    def on_congestion(self, flow: FlowState, event: Congestion) -> None:
        """Multiplicative decrease; after a timeout, from one segment on."""
        if not event.again:
            self.ssthresh = max(self.kept * self.cwnd, 2)
        self.cwnd = 1 if event.cause == "timeout" else self.ssthresh

    def control(self) -> Control:
        """The window and the threshold."""
        known = None if self.ssthresh == float("inf") else self.ssthresh
        return Control(self.cwnd, ssthresh=known)

    def probe(self) -> dict[str, float]:
        """A column of the samples: `gentle_exact_cwnd`."""
        return {"exact_cwnd": self.cwnd}


experiment = lab.Experiment(
    name="one of ours and NewReno",
    duration="30 s",
    network=lab.Network(
        dumbbell=lab.Dumbbell(pairs=2, rate="10 Mbit/s", delay="19 ms", queue="1 BDP")
    ),
    flows=[
        lab.Flow(name="ours", from_="left1", to="right1", cc="gentle"),
        lab.Flow(name="reno", from_="left2", to="right2", cc="newreno", start="1 s"),
    ],
)

if __name__ == "__main__":
    flows = lab.run(experiment).flows
    for flow, cc, goodput in flows.select("flow", "cc", "goodput_mbit_s").iter_rows():
        print(f"{flow} ({cc}): {goodput:.2f} Mbit/s")
