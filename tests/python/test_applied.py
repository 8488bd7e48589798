"""Files that put settings into a host: what they change is what they say, and the undo is exact.

They run in a network namespace of their own, where the machine allows one.
"""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tcplab._advice import applied, destinations, routes
from tcplab._advice.applied import Change
from tcplab._advice.evidence import Gain
from tcplab._advice.levers import Candidate, Setting
from tcplab.cli._main import main

LINK = """
ip link set lo up
ip link add v0 type veth peer name v1
ip addr add 10.0.0.1/24 dev v0
ip link set v0 up
ip link set v1 up
ip route add default via 10.0.0.2 dev v0 metric 100 mtu 1400
state() {
    # Without what all namespaces share, which others may change meanwhile.
    sysctl -a 2>/dev/null | grep "net.ipv4.tcp" | grep -v "available\\|allowed\\|tcp_mem" || true
    sysctl net.core.wmem_max 2>/dev/null || true
    ip -details route show table all
    ip -6 -details route show table all | grep -v "kernel\\|fe80" || true
    tc qdisc show
}
"""
"""A host with a default route."""


def namespace(script: str, *, needs: tuple[str, ...] = ("ip", "tc", "sysctl")) -> str:
    """What a script prints in a network namespace of its own."""
    if any(shutil.which(one) is None for one in ("unshare", *needs)):
        pytest.skip(f"needs {', '.join(needs)}")
    if subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no network namespaces")
    done = subprocess.run(
        ["unshare", "-n", "-m", "sh", "-euc", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """Files in a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def has(algorithm: str) -> bool:
    """Whether this kernel has a congestion control."""
    there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    return there.exists() and algorithm in there.read_text().split()


SENDER = [
    Change("initial_window", 40, 10, "sender"),
    Change("wmem", "16 MB", "4 MB", "sender"),
    Change("restart_after_idle", False, True, "sender"),
    Change("min_rto", "50 ms", "200 ms", "sender"),
    Change("notsent_lowat", "128 kB", "off", "sender"),
    Change("cc", "newreno", "cubic", "sender"),
]


def test_what_is_applied_is_there_and_the_undo_is_exact(tmp_path: Path) -> None:
    folder = written(tmp_path, applied.files(SENDER, title="a test"))
    printed = namespace(
        f"""{LINK}
        export STATE={folder}/state
        state >{folder}/before
        sh {folder}/sender/apply.sh
        ip route show default
        sysctl net.ipv4.tcp_wmem net.ipv4.tcp_slow_start_after_idle
        sysctl net.ipv4.tcp_notsent_lowat net.ipv4.tcp_congestion_control
        ! sh {folder}/sender/apply.sh
        sh {folder}/sender/undo.sh
        state >{folder}/after
        diff {folder}/before {folder}/after
        ! sh {folder}/sender/undo.sh
        """
    )
    (route,) = re.findall("default via .*", printed)
    # What the route had stays.
    for words in ("via 10.0.0.2", "metric 100", "mtu 1400", "initcwnd 40", "rto_min lock 50ms"):
        assert words in route
    assert re.search(r"tcp_wmem = \d+\s+\d+\s+16000000\n", printed)
    assert "tcp_slow_start_after_idle = 0\n" in printed
    assert "tcp_notsent_lowat = 128000\n" in printed
    assert "tcp_congestion_control = reno\n" in printed
    assert not (folder / "state").exists()


def test_where_a_step_fails_those_before_it_are_undone(tmp_path: Path) -> None:
    # The sysctls come first; then there is no queue of this name.
    files = applied.files([*SENDER, Change("qdisc", "fq", None, "sender")], title="a test")
    script = files["sender/apply.sh"].replace("root fq\n", "root nothing\n")
    folder = written(tmp_path, {**files, "sender/apply.sh": script})
    printed = namespace(
        f"""{LINK}
        export STATE={folder}/state
        state >{folder}/before
        ! sh {folder}/sender/apply.sh 2>&1
        state >{folder}/after
        diff {folder}/before {folder}/after
        """
    )
    assert "a step failed: all is restored" in printed


def test_a_queue_that_somebody_set_stays(tmp_path: Path) -> None:
    folder = written(tmp_path, applied.files([Change("qdisc", "fq", None, "sender")], title="t"))
    printed = namespace(
        f"""{LINK}
        export STATE={folder}/state
        tc qdisc add dev v0 root handle 7: pfifo limit 5
        ! sh {folder}/sender/apply.sh 2>&1
        tc qdisc show dev v0
        """
    )
    assert "its undo could not be exact" in printed
    assert "qdisc pfifo 7: root" in printed


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("fq-codel", "fq_codel"),
        ({"kind": "fq-codel", "target": "3 ms", "ecn": False}, "fq_codel target 3ms noecn"),
        ({"kind": "cake", "rate": "9 Mbit/s"}, "cake bandwidth 9mbit"),
        ("33 packets", "pfifo limit 33"),
        ("64 kB", "bfifo limit 64000"),
        # 10 ms of 20 Mbit/s are 25,000 bytes.
        ("10 ms", "bfifo limit 25000"),
    ],
)
def test_queues_are_said_in_the_words_of_tc(value: Any, words: str) -> None:
    assert applied.queue(value, 20.0) == words
    change = [Change("queue", value, None, "router")]
    script = applied.files(change, title="t", rate_mbit_s=20.0)["router/apply.sh"]
    assert f'tc qdisc replace dev "$DEV" root {words}\n' in script


def test_what_no_host_can_change_is_said() -> None:
    changes = [
        Change("cut_base", "flight", "cwnd", "sender"),
        Change("max_pacing_rate", "20 Mbit/s", "off", "sender"),
        Change("queue", {"kind": "dualpi2"}, "33 packets", "router"),
    ]
    files = applied.files(changes, title="t")
    assert "cut_base: flight (before: cwnd) | nothing on a live host" in files["sender/README.md"]
    assert "SO_MAX_PACING_RATE" in files["sender/README.md"]
    assert "dualpi2: there is no line of tc" in files["router/README.md"]


def test_names_are_no_commands() -> None:
    files = applied.files([Change("cc", "x; reboot", "cubic", "sender")], title="$(reboot)\n`x`")
    assert "reboot" not in files["sender/apply.sh"].replace("# $(reboot)", "")
    assert "is no name of a congestion control" in files["sender/README.md"]


def of(*settings: tuple[str, Any]) -> Candidate:
    """Settings of a sender."""
    return Candidate(tuple(Setting(key, value, "sender", None) for key, value in settings))


TWO = [
    (ipaddress.ip_network("10.1.0.0/24"), of(("cc", "bbr"), ("initial_window", 40))),
    (
        ipaddress.ip_network("10.2.0.0/24"),
        of(("cc", "newreno"), ("min_rto", "50 ms"), ("so_sndbuf", "128 kB")),
    ),
    (ipaddress.ip_network("fd00:1::/64"), of(("cc", "newreno"))),
]

ADDRESSES = """
for address in 10.1.0.1 10.2.0.1 10.3.0.1; do ip addr add $address/24 dev lo; done
ip -6 addr add fd00:1::1/64 dev lo
"""

CONNECT = textwrap.dedent(
    """
    import socket, subprocess
    kept = []
    for address in ("10.1.0.1", "10.2.0.1", "10.3.0.1", "fd00:1::1", "::ffff:10.2.0.1"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        server = socket.create_server(
            ("::" if family == socket.AF_INET6 else address, 0), family=family,
            dualstack_ipv6=family == socket.AF_INET6)
        client = socket.socket(family)
        client.connect((address, server.getsockname()[1]))
        kept += [server, client, server.accept()[0]]
        algorithm = client.getsockopt(socket.IPPROTO_TCP, 13, 16).split(bytes(1))[0].decode()
        size = client.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        shown = subprocess.run(["ss", "-tinH", "dport", "=", str(server.getsockname()[1])],
                               capture_output=True, text=True).stdout
        words = [word for word in shown.split() if word.startswith(("cwnd:", "rto:"))]
        print(address, algorithm, size, *words)
    """
)


def test_routes_give_each_prefix_its_settings(tmp_path: Path) -> None:
    if not has("bbr"):
        pytest.skip("this kernel has no BBR")
    folder = written(tmp_path, routes.files(TWO, title="two"))
    printed = namespace(
        f"""{LINK}{ADDRESSES}
        export STATE={folder}/state
        state >{folder}/before
        sh {folder}/routes/apply.sh
        ip route show
        ip -6 route show
        sh {folder}/routes/undo.sh
        state >{folder}/after
        diff {folder}/before {folder}/after
        """
    )
    assert re.search(r"10\.1\.0\.0/24 dev lo .*initcwnd 40.*congctl bbr", printed)
    assert re.search(r"10\.2\.0\.0/24 dev lo .*rto_min lock 50ms.*congctl reno", printed)
    assert re.search(r"fd00:1::/64 dev lo .*congctl reno", printed)


def test_a_route_that_was_not_there_is_gone_again(tmp_path: Path) -> None:
    several = [(ipaddress.ip_network("192.0.2.0/24"), of(("initial_window", 20)))]
    folder = written(tmp_path, routes.files(several, title="one"))
    printed = namespace(
        f"""{LINK}
        export STATE={folder}/state
        state >{folder}/before
        sh {folder}/routes/apply.sh
        ip route show
        sh {folder}/routes/undo.sh
        state >{folder}/after
        diff {folder}/before {folder}/after
        """
    )
    assert re.search(r"192\.0\.2\.0/24 via 10\.0\.0\.2 dev v0 .*initcwnd 20", printed)


def test_the_program_gives_each_connection_its_settings(tmp_path: Path) -> None:
    folder = written(tmp_path, routes.files(TWO, title="two"))
    compiler = shutil.which("clang")
    if compiler is None or shutil.which("bpftool") is None:
        pytest.skip("clang or bpftool is missing; `scripts/needs bpf` installs them")
    include = (
        f"/usr/include/{subprocess.check_output(['uname', '-m'], text=True).strip()}-linux-gnu"
    )
    subprocess.run(
        [compiler, "-O2", "-Wall", "-Werror", "-target", "bpf", f"-I{include}", "-c",
         folder / "sockops" / "tcplab_sockops.c", "-o", tmp_path / "o"],
        check=True,
    )  # fmt: skip
    if not has("bbr"):
        pytest.skip("this kernel has no BBR")
    (folder / "connect.py").write_text(CONNECT)
    printed = namespace(
        f"""{LINK}{ADDRESSES}
        mount -t bpf bpf /sys/fs/bpf 2>/dev/null || true
        mkdir {folder}/cgroup
        mount -t cgroup2 none {folder}/cgroup 2>/dev/null || {{ echo no cgroup2; exit 0; }}
        export CGROUP={folder}/cgroup/tcplab-test-$$ STATE={folder}/state
        mkdir $CGROUP
        trap 'echo $$ >{folder}/cgroup/cgroup.procs; rmdir $CGROUP' EXIT
        echo $$ >$CGROUP/cgroup.procs
        export PIN=/sys/fs/bpf/tcplab_test_$$
        python3 {folder}/connect.py
        state >{folder}/before
        echo loaded
        sh {folder}/sockops/load.sh 2>&1
        python3 {folder}/connect.py
        sh {folder}/sockops/unload.sh
        echo unloaded
        state >{folder}/after
        diff {folder}/before {folder}/after
        bpftool cgroup show $CGROUP
        test ! -e $PIN
        python3 {folder}/connect.py
        """,
        needs=("ip", "tc", "sysctl", "ss", "python3"),
    )
    if "no cgroup2" in printed or "Operation not permitted" in printed:
        pytest.skip("this machine allows no programs of the kernel")
    before, rest = printed.split("loaded\n", 1)
    inside, after = rest.split("unloaded\n")
    with_it = {line.split()[0]: line for line in inside.splitlines() if " cwnd:" in line}
    assert " bbr " in with_it["10.1.0.1"]
    assert "cwnd:40" in with_it["10.1.0.1"]
    # The kernel doubles what a program asks for (socket(7)).
    assert " reno 256000 " in with_it["10.2.0.1"]
    assert " reno 256000 " in with_it["::ffff:10.2.0.1"]
    assert " reno " in with_it["fd00:1::1"]
    # Another prefix has what it had, and so has everything once it is unloaded.
    plain = {line.split()[0]: line.split()[1:3] for line in before.splitlines() if " cwnd:" in line}
    assert with_it["10.3.0.1"].split()[1:3] == plain["10.3.0.1"]
    again = {line.split()[0]: line.split()[1:3] for line in after.splitlines() if " cwnd:" in line}
    assert again == plain


def gained(candidate: str, gain: float) -> Gain:
    """A gain for sure."""
    return Gain(candidate, "goodput", "sim", gain, gain, gain, 12, "runs", 1.0, 1 + gain, gain, "")


def test_destinations_share_a_setting_where_nothing_is_lost_by_it() -> None:
    # The second loses half a percent by the setting of the first, the third ten; the fourth is to
    # stay as it is.
    matrix = [
        [gained("a", 1.0), gained("b", 0.5), gained("c", 0.5), None],
        [gained("a", 0.99), gained("b", 1.0), gained("c", 0.2), None],
        [gained("a", 0.8), gained("b", 0.8), gained("c", 1.0), None],
        [gained("a", 0.0), gained("b", 0.0), gained("c", 0.0), None],
    ]
    assert destinations.grouped(matrix, [0, 1, 2, 3]) == [0, 0, 2, 3]


PATHS = """
[[destinations]]
name = "office"
prefix = "192.0.2.0/24"
rate = "10 Mbit/s"
rtt = "20 ms"

[[destinations]]
name = "branch"
prefix = "198.51.100.0/24"
rate = "10 Mbit/s"
rtt = "60 ms"
loss = "2 %"
"""


def test_each_destination_gets_its_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "paths.toml").write_text(PATHS)
    out = tmp_path / "out"
    words = ["--on", "sim", "--quiet", "--budget", "10min", "--out", str(out)]
    assert main(["advise", "--destinations", str(tmp_path / "paths.toml"), *words]) == 0
    office, branch = capsys.readouterr().out.splitlines()[2:]
    # CUBIC fills a link without losses and with a buffer of one BDP.
    assert " today " in office
    assert "198.51.100.0/24" in branch
    assert "route -4 198.51.100.0/24" in (out / "apply" / "routes" / "apply.sh").read_text()
    assert "192.0.2.0" not in (out / "apply" / "routes" / "apply.sh").read_text()
    assert (out / "2-branch" / "advice.html").exists()
    assert main(["verify", str(out / "1-office")]) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no [[destinations]]"),
        ("x = 1", "x: expected [[destinations]] alone"),
        ("[[destinations]]\nrate = '1M'", "destinations[0].prefix: is missing"),
        ("[[destinations]]\nprefix = '10.0.0.1/24'\nrate = '1M'\nrtt = '3ms'", "host bits set"),
        ("[[destinations]]\nprefix = '10.0.0.0/24'\nrate = '1M'\nrtt = '3'", "has no unit"),
        (PATHS.replace("office", "branch"), "branch is there twice"),
        (PATHS + "colour = 1", "destinations[1].colour: expected one of"),
        (PATHS + "connections = 0", "destinations[1].connections: expected a whole number"),
        (PATHS + "goal = 'page-time'", "branch: goals: page-time: needs flows of the kind web"),
    ],
)
def test_what_is_no_list_of_destinations_is_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "paths.toml", tmp_path / "out"
    file.write_text(text)
    assert main(["advise", "--destinations", str(file), "--out", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()
