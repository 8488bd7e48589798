"""Settings without effect, or with an unlikely one, are reported once, with place and remedy."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from conftest import EXAMPLES, Command

import tcplab as lab

TWO_LINKS = """\
duration = "1 s"
flows = [{ from = "a", to = "b" }]
[[network.links]]
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "10 ms"
queue = "20 packets"
[[network.links]]
between = ["b", "a"]
rate = "1 Mbit/s"
delay = "10 ms"
queue = "20 packets"
"""

SHORT_QUEUE = """\
duration = "1 s"
flows = [{ from = "client", to = "server" }]
network.chain = { rate = "10 Mbit/s", delay = "0 ms", queue = "1 BDP" }
"""

SMALL_BUFFERS = """\
duration = "1 s"
network.chain = { rate = "10 Mbit/s", delay = "10 ms" }
[[flows]]
from = "client"
to = "server"
stack.wmem = "1000 B"
[hosts.server]
stack.rmem = "1459 B"
[[flows]]
from = "server"
to = "client"
"""

BUCKETS = """\
duration = "1 s"
every = "2 s"
flows = [{ from = "client", to = "server" }]
[network.chain]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "tbf", rate = "5 Mbit/s", limit = "50 ms", burst = "1499 B" }
back.queue = { kind = "tbf", rate = "20 Mbit/s", limit = "50 ms", burst = "3 kB" }
"""

LATE = """\
duration = "10 s"
flows = [{ from = "a", to = "b" }]
[[network.links]]
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "10 ms"
outages = [["9 s", "5 s"], ["20 s", "1 s"], ["30 s", "1 s"]]
back.rate_changes = [["10 s", "5 Mbit/s"]]
forward.delay_changes = { kind = "handover", least = "1 ms", most = "2 ms" }
"""

LOSSES = """\
duration = "1 s"
flows = [{ from = "client", to = "server" }]
[network.chain]
hops = 1
rate = "10 Mbit/s"
delay = "10 ms"
loss = { kind = "listed", packets = [3, 7, 3] }
back.loss = { kind = "gilbert", to_bad = 0.1, to_good = 0 }
"""

SHAPERS = """\
duration = "1 s"
flows = [{ from = "client", to = "server" }]
[network.chain]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "cake", rate = "10 Mbit/s" }
back.queue = { kind = "cake", framing = "atm" }
"""

TIGHT = """\
duration = "1 s"
flows = [{ from = "a", to = "c" }]
[[network.links]]
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "100 B"
back.queue = "1 ms"
[[network.links]]
between = ["b", "c"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "cake", limit = "1 kB" }
back.queue = "1.2 ms"
"""

ALL_LOST = """\
duration = "1 s"
flows = [{ from = "client", to = "server" }]
[network.chain]
rate = "10 Mbit/s"
delay = "10 ms"
loss = "100 %"
back.loss = { kind = "independent", probability = 1, on = "data" }
"""

ASKED = """\
duration = "1 s"
network.chain = { rate = "10 Mbit/s", delay = "10 ms" }
[[flows]]
from = "client"
to = "server"
stack = { so_sndbuf = "64 kB", wmem_max = "64 kB" }
[hosts.server]
stack.so_rcvbuf = "64 kB"
stack.rmem_max = "32 kB"
"""

CHANGING_LOAD = """\
duration = "1 s"
[network.chain]
rate = "10 Mbit/s"
delay = "10 ms"
rate_changes = [["500 ms", "5 Mbit/s"]]
[[flows]]
from = "client"
to = "server"
traffic = { kind = "arrivals", load = 0.5, sizes = "20 kB" }
"""

NAMED = {
    "shapers that hold nothing back": (
        SHAPERS,
        [
            "line 6: network.chain.queue.rate: is 10 Mbit/s, and the rate of the link 10 Mbit/s: "
            "nothing is held back",
            "line 7: network.chain.back.queue.framing: holds nothing back without a `rate`: "
            "packets leave at the rate of the link, whatever they count; give a `rate` that is a "
            "little less than the link's",
        ],
    ),
    # 10 Mbit/s x 1 ms are 1250 bytes; a full packet takes 1.2 ms.
    "queues without room for a packet": (
        TIGHT,
        [
            "line 7: network.links[0].queue: has a limit of 100 B: larger packets are dropped, and "
            "there may be packets of 1.5 kB; to let all pass, give 1.5 kB or more",
            'line 8: network.links[0].back.queue: "1 ms" of b>a comes to less than a full packet, '
            "1.5 kB, and counts as one: bursts of a few packets are dropped; to avoid that, give "
            'the size in packets, like "20 packets"',
            "line 13: network.links[1].queue: has a limit of 1 kB: larger packets are dropped, and "
            "there may be packets of 1.5 kB; to let all pass, give 1.5 kB or more",
        ],
    ),
    "links that lose everything": (
        ALL_LOST,
        [
            "line 6: network.chain.loss: is 100 %: all packets are lost",
            "line 7: network.chain.back.loss: is 100 %: all packets with data are lost",
        ],
    ),
    "buffers that are cut": (
        ASKED,
        [
            "line 8: hosts.server.stack.so_rcvbuf: is 64 kB, and is cut to `rmem_max`, which is "
            "32 kB; raise that too",
        ],
    ),
    "a load of a rate that changes": (
        CHANGING_LOAD,
        [
            "line 9: flows[0].traffic.load: is a share of 10 Mbit/s, the `rate` of client>server: "
            "as many transfers begin when its rate changes; to choose their number "
            "yourself, give `per_second`",
        ],
    ),
    # A full packet has 1500 bytes.
    "token buckets, and an interval": (
        BUCKETS,
        [
            "line 7: network.chain.queue.burst: is 1.499 kB: larger packets are dropped, and there "
            "may be packets of 1.5 kB; to let all pass, give 1.5 kB or more",
            "line 8: network.chain.back.queue.rate: is 20 Mbit/s, and the rate of the link "
            "10 Mbit/s: nothing is held back",
            "line 2: every: is 2 s, and the measured part lasts 1 s: there is one interval",
        ],
    ),
    "changes that come late": (
        LATE,
        [
            "line 9: network.links[0].forward.delay_changes.every: is 15 s, and the experiment "
            "lasts 10 s: the delay that is drawn at the start stays",
            "line 7: network.links[0].outages[1]: is at 20 s, and the experiment ends at 10 s: it "
            "and 1 after it never come",
            "line 8: network.links[0].back.rate_changes[0]: is at 10 s, and the experiment ends at "
            "10 s: it never comes",
        ],
    ),
    "losses": (
        LOSSES,
        [
            "line 7: network.chain.loss.packets[2]: packet 3 is listed already",
            "line 8: network.chain.back.loss.to_good: is 0: once the bad state has come, it never "
            "ends",
        ],
    ),
    "two links": (
        TWO_LINKS,
        [
            'line 8: network.links[1]: is never used: packets between "b" and "a" take the link of '
            "network.links[0]; to use both, lead this link through a node of its own and choose "
            "that node with [[network.routes]]"
        ],
    ),
    # 10 Mbit/s over no time is zero; a queue holds at least one packet.
    "a queue of one packet": (
        SHORT_QUEUE,
        [
            'line 3: network.chain.queue: "1 BDP" of client>server comes to 1 packet, because its '
            "BDP is 0 kB: bursts of a few packets are dropped; to avoid that, give the size in "
            'packets, like "20 packets"'
        ],
    ),
    # An MTU of 1500 less 40 bytes of headers.
    "small buffers": (
        SMALL_BUFFERS,
        [
            "line 6: flows[0].stack.wmem: 1 kB is less than a segment, which has up to 1.46 kB: "
            "Linux still keeps one packet, other stacks send smaller segments; to avoid "
            "that, give 1.46 kB or more",
            "line 8: hosts.server.stack.rmem: 1.459 kB is less than a segment, which has up to "
            "1.46 kB: no full segment ever fits into the window; to avoid that, give 1.46 kB or "
            "more",
        ],
    ),
}


@pytest.mark.parametrize("what", NAMED)
def test_likely_mistakes_warn(what: str, tcplab: Command, tmp_path: Path) -> None:
    text, said = NAMED[what]
    (tmp_path / "odd.toml").write_text(text + "[sweep]\nseed = [1, 2, 3]\n")
    lines = [f"warning: odd.toml: {line}" for line in said]
    for command in (["check"], ["run", "--quiet"]):
        done = tcplab(*command, "odd.toml")
        assert done.returncode == 0
        assert done.stderr.splitlines() == lines
    with pytest.warns(lab.TcplabWarning) as warned:
        results = lab.run(tmp_path / "odd.toml")
    assert [str(one.message) for one in warned] == [f"{tmp_path}/odd.toml: {line}" for line in said]
    assert warned[0].filename == __file__
    assert results.plans[0].warnings == [f"{tmp_path}/odd.toml: {line}" for line in said]


CUT = (
    "line 22: flows[1].stack.so_rcvbuf: is 8 MB, and is cut to `rmem_max`, which is 212.992 kB; "
    "raise that too"
)


def test_no_example_is_warned_of() -> None:
    for file in sorted(EXAMPLES.glob("*.toml")):
        for plan in lab.load(file).plans("linux" if "linux" in file.stem else "sim"):
            # `large` in that example asks for more than it gets, on purpose.
            expected = [f"{file}: {CUT}"] if file.stem == "sockets" else []
            assert plan.warnings == expected, file


def test_a_sweep_names_the_line_of_the_value(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(
        SHORT_QUEUE.replace("0 ms", "10 ms")
        + '[sweep]\n"network.chain.delay" = [\n"10 ms",\n"1 ms",\n]\n'
    )
    plans = lab.load(tmp_path / "odd.toml").plans()
    # 10 Mbit/s x 20 ms are 25,000 bytes, 17 packets; x 2 ms 2,500 bytes, 2 packets.
    assert plans[0].warnings == []
    (warning,) = plans[1].warnings
    assert '"1 BDP" of client>server comes to 2 packets' in warning


def test_unused_links_cause_no_warning() -> None:
    network = lab.Network(
        links=[
            lab.Link(between=["a", "b"], rate="10 Mbit/s", delay="10 ms"),
            lab.Link(between=["b", "c"], rate="1 kbit/s", delay="0 ms"),
        ]
    )
    flows = [lab.Flow(from_="a", to="b")]
    experiment = lab.Experiment(duration="1 s", network=network, flows=flows)
    with warnings.catch_warnings(action="error"):
        lab.run(experiment)


def test_a_kernel_for_a_backend_without_one_is_refused(tcplab: Command, tmp_path: Path) -> None:
    done = tcplab("run", EXAMPLES / "first.toml", "--kernel", "6.12")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: kernel: the backend sim boots no kernel; choose the backend linux for it, on the "
        "command line with `--on linux`\n"
    )
    assert not list(tmp_path.iterdir())
