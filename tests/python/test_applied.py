"""Files that apply settings to a running Linux: their content, and the state of the kernel
afterwards.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tcplab as lab
from tcplab import _core
from tcplab._advice._disciplines import ImpossibleError, discipline
from tcplab._advice.applied import Change, Destination, destination_files, files

PLACE = Path("/usr/sbin:/usr/bin:/sbin:/bin")


def change(key: str, value: Any, side: str = "sender") -> Change:
    return Change(key, value, None, side)


def put(made: Mapping[str, str], folder: Path) -> Path:
    for path, text in made.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def missing(*tools: str) -> str | None:
    """The reason why these tests cannot run on this machine, or `None`."""
    if os.geteuid() != 0:
        return "namespaces need root"
    for tool in ("unshare", "nsenter", "ip", "tc", "ss", "sysctl", *tools):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    tried = "ip link add v0 type veth peer name v1 && ls /proc/sys/net/ipv4/tcp_notsent_lowat"
    words = ["unshare", "-nm", "sh", "-c", tried]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        return "this machine has no network namespaces, or no veth"
    return None


@pytest.fixture(scope="module")
def _namespaces() -> None:
    if reason := missing():
        pytest.skip(reason)


Run = Callable[..., str]

# A host with a device, two default routes with their own settings, and one IPv6 route. `state`
# prints everything that the scripts may change, without counters.
HOST = r"""
set -u
ip link set lo up
ip link add v0 type veth peer name v1
ip addr add 198.51.100.1/24 dev v0
ip addr add 2001:db8:f::1/64 dev v0 nodad
ip link set v0 addrgenmode none
ip link set v1 addrgenmode none
ip link set v0 up
ip link set v1 up
ip route add default via 198.51.100.2 metric 100 mtu 1400 rto_min 5ms proto static initcwnd 4
ip route add default via 198.51.100.3 metric 200 proto dhcp src 198.51.100.1
ip -6 route add default via 2001:db8:f::2 dev v0 metric 1024
state() {
    sysctl -a 2>/dev/null | grep '^net.ipv4.tcp'
    ip -details -4 route show table all
    # These routes come when the link is up, at a time of their own.
    ip -details -6 route show table all | grep -v 'ff00::\|anycast'
    tc qdisc show
}
"""


@pytest.fixture
def host(_namespaces: None, tmp_path: Path) -> Run:
    """Runs lines of shell in a host of their own, in the folder of the test."""

    def run(lines: str, *, inside: str = "-nm", **variables: str) -> str:
        environment = os.environ | {"STATE": str(tmp_path / "state"), "LC_ALL": "C"} | variables
        done = subprocess.run(
            ["unshare", inside, "sh", "-c", HOST + lines],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


ALL = (
    change("cc", "reno"),
    change("initial_window", 20),
    change("initial_receive_window", 30),
    change("wmem", "16 MB"),
    change("rmem", "1.5 MiB"),
    change("notsent_lowat", "128 kB"),
    change("restart_after_idle", False),
    change("min_rto", "50 ms"),
    change("rack", False),
    change("tlp", False),
    change("frto", False),
    change("ecn", True),
    change("sack", False),
    change("dsack", False),
    change("timestamps", False),
    change("window_scaling", False),
    change("fast_open", True),
    change("delayed_ack", "off"),
    change("mtu_probing", "always"),
    change("dup_thresh", 5),
    change("qdisc", "500 packets"),
)

# Values in the units of the kernel's ip-sysctl.rst; 1.5 MiB are 1.5 x 1024 x 1024 B.
EXPECTED = {
    "tcp_congestion_control": "reno",
    "tcp_notsent_lowat": "128000",
    "tcp_slow_start_after_idle": "0",
    "tcp_early_retrans": "0",
    "tcp_frto": "0",
    "tcp_ecn": "1",
    "tcp_sack": "0",
    "tcp_dsack": "0",
    "tcp_timestamps": "0",
    "tcp_window_scaling": "0",
    "tcp_fastopen": "3",
    "tcp_mtu_probing": "2",
    "tcp_reordering": "5",
}


def test_settings_arrive_in_the_kernel_and_leave_it_again(host: Run, tmp_path: Path) -> None:
    put(files(ALL, title="all of it"), tmp_path)
    names = [*EXPECTED, "tcp_wmem", "tcp_rmem", "tcp_recovery"]
    shown = host(f"""
        state >before
        for name in {" ".join(names)}; do sysctl -n net.ipv4.$name; done >old
        sh sender/apply.sh >said || exit 1
        for name in {" ".join(names)}; do sysctl -n net.ipv4.$name; done >new
        sysctl -n net.ipv4.tcp_rto_min_us 2>/dev/null || echo route >rto
        ip -4 route show default; ip -6 route show default
        tc qdisc show dev v0
        sh sender/undo.sh >>said || exit 1
        state >after
        cmp before after
        test ! -e "$STATE"
    """)
    old, new = ((tmp_path / name).read_text().splitlines() for name in ("old", "new"))
    assert dict(zip(EXPECTED, new, strict=False)) == EXPECTED
    # The first two numbers stay, the third is new; the lowest bit of `tcp_recovery` is cleared.
    for place, most in ((-3, 16_000_000), (-2, 1_572_864)):
        assert new[place].split() == [*old[place].split()[:2], str(most)]
    assert int(new[-1]) == int(old[-1]) & ~1
    first, second, sixth, queue = shown.splitlines()[-4:]
    for route in (first, second, sixth):
        assert " initcwnd 20 " in route
        assert " initrwnd 30 " in route
        assert " quickack 1 " in route
    # The attributes of the existing route stay.
    assert first.startswith("default via 198.51.100.2 dev v0 proto static metric 100 mtu 1400 ")
    assert " src 198.51.100.1 metric 200 " in second
    if shown.splitlines()[0] == "50000":
        assert "rto_min lock 5ms" in first
    else:
        assert all("rto_min lock 50ms" in route for route in (first, second, sixth))
    # pfifo(8): a limit in packets.
    assert re.fullmatch(r"qdisc pfifo \S+ root .*limit 500p\s*", queue)


DESTINATIONS = [
    Destination("203.0.113.0/24", "new", (change("cc", "reno"), change("initial_window", 20))),
    Destination("198.51.100.0/24", "link", (change("initial_window", 6),)),
]


@pytest.mark.parametrize(
    ("given", "file", "number"),
    [
        # The kernel's defaults (tcp_cubic.c) are those of RFC 9438: beta is 0.7, C is 0.4.
        ({"beta": 0.7}, "beta", 717),
        ({"c": 0.4}, "bic_scale", 41),
        ({"tcp_friendly": False}, "tcp_friendliness", 0),
        ({"beta": 717}, "beta", 717),
    ],
)
def test_parameters_of_cubic_are_in_the_units_of_the_kernel(
    given: dict[str, Any], file: str, number: int
) -> None:
    made = files([change("cc", {"name": "cubic", **given})], title="cubic")
    line = f"set_file /sys/module/tcp_cubic/parameters/{file} {number}"
    assert line in made["sender/apply.sh"]


@pytest.mark.parametrize(
    ("folder", "made"),
    [
        ("sender", files(ALL, title="dry")),
        ("routes", destination_files(DESTINATIONS, title="dry")),
    ],
)
def test_a_dry_run_prints_steps_without_applying_them(
    host: Run, tmp_path: Path, folder: str, made: Mapping[str, str]
) -> None:
    put(made, tmp_path)
    host(f"""
        state >before
        sh {folder}/apply.sh --dry-run >dry || exit 1
        state | cmp before - && test ! -e "$STATE" || exit 2
        sh {folder}/apply.sh >said || exit 3
        state >applied && cp "$STATE/before" saved
        cmp before applied && exit 4
        sh {folder}/apply.sh --dry-run 2>errors && exit 5
        sh {folder}/undo.sh --dry-run >undry || exit 6
        state | cmp applied - && cmp saved "$STATE/before" || exit 7
        sh {folder}/undo.sh >unsaid || exit 8
        state | cmp before -
        sh {folder}/undo.sh --what 2>>errors && exit 9
        exit 0
    """)

    def steps(name: str) -> list[str]:
        return (tmp_path / name).read_text().splitlines()

    # The last line says how it ended; all others are the steps that were taken then.
    assert steps("dry")[:-1] == steps("said")[:-1]
    assert len(steps("dry")) > 2
    assert steps("undry")[:-1] == steps("unsaid")[:-1]
    assert steps("dry")[-1] == steps("undry")[-1] == "dry run: nothing was changed"
    already, argument = (tmp_path / "errors").read_text().splitlines()
    assert "already applied: run undo.sh first" in already
    assert "takes no argument but --dry-run" in argument


def test_a_dry_run_shows_all_steps_also_where_a_requirement_is_missing(
    host: Run, tmp_path: Path
) -> None:
    made = files([change("cc", "nowhere"), change("initial_window", 20)], title="dry")
    put(made, tmp_path)
    host("""
        sh sender/undo.sh --dry-run >undry || exit 1
        sh sender/apply.sh --dry-run >dry 2>errors && exit 2
        test ! -e "$STATE" || exit 3
        sh sender/apply.sh >said 2>&1 && exit 4
        ip -o route show exact default >routes
        exit 0
    """)
    first, *values, last = (tmp_path / "undry").read_text().splitlines()
    assert "apply.sh was not run" in first
    # The routes as they are, which undo.sh would restore.
    shown = (tmp_path / "routes").read_text().replace(" lock ", " ").splitlines()
    routes = {line.strip() for line in shown}
    change_back = "ip -4 route change "
    changed = {one.removeprefix(change_back) for one in values if one.startswith(change_back)}
    assert changed
    assert changed <= routes
    assert last == "dry run: nothing was changed"
    steps = (tmp_path / "dry").read_text()
    assert "missing: this kernel has no congestion control nowhere" in steps
    assert "initcwnd 20" in steps
    assert "it stops at what is missing" in (tmp_path / "errors").read_text()
    assert "no congestion control nowhere" in (tmp_path / "said").read_text()


@pytest.mark.parametrize(
    "prepared",
    [
        "tc qdisc replace dev v0 root handle 8001: pfifo limit 77",
        "tc qdisc replace dev v0 root handle 8002: bfifo limit 65550",
        "tc qdisc replace dev v0 root handle 7c9a: pfifo limit 77",
        # A device with two hardware queues.
        "ip link add w0 numtxqueues 2 type veth peer name w1 && ip link set w0 up && "
        "ip route add default dev w0 metric 7 && tc qdisc replace dev w0 root handle 1: mq; DEV=w0",
    ],
)
def test_a_queue_that_was_set_by_hand_comes_back(host: Run, tmp_path: Path, prepared: str) -> None:
    put(files([change("qdisc", {"kind": "drophead", "limit": "5 packets"})], title="q"), tmp_path)
    shown = host(f"""
        {prepared}
        export DEV=${{DEV:-v0}}
        state >before
        sh sender/apply.sh >said || exit 1
        tc qdisc show dev $DEV
        sh sender/undo.sh >>said || exit 1
        state | cmp before - && test ! -e "$STATE"
    """)
    queues = [line for line in shown.splitlines() if " mq " not in line]
    assert len(queues) == (2 if "mq" in prepared else 1)
    assert all(line.startswith("qdisc pfifo_head_drop ") for line in queues)
    assert all(line.rstrip().endswith("limit 5p") for line in queues)


# A wrapper that makes a tool fail when its arguments match PATTERN for the N-th time.
BROKEN = """#!/bin/sh
case " $* " in
*PATTERN*)
    echo >>"$COUNT"
    if [ "$(wc -l <"$COUNT")" = "$N" ]; then
        echo "broken on purpose" >&2
        exit 2
    fi
    ;;
esac
exec TOOL "$@"
"""


@pytest.mark.parametrize(
    ("tool", "pattern", "number"),
    [
        ("sysctl", " -w ", 1),
        ("sysctl", " -w ", 9),
        ("ip", " route change ", 1),
        ("ip", " route change ", 3),
        ("tc", " replace ", 1),
    ],
)
def test_a_step_that_fails_takes_everything_back(
    host: Run, tmp_path: Path, tool: str, pattern: str, number: int
) -> None:
    put(files(ALL, title="all of it"), tmp_path)
    where = shutil.which(tool)
    assert where is not None
    quoted = f'"{pattern}"'
    text = BROKEN.replace("PATTERN", quoted).replace("TOOL", where).replace("$N", str(number))
    broken = tmp_path / "broken" / tool
    broken.parent.mkdir()
    broken.write_text(text)
    broken.chmod(0o755)
    host(
        """
        state >before
        PATH=$PWD/broken:$PATH sh sender/apply.sh >said 2>errors && exit 1
        state >after
        cmp before after
        test ! -e "$STATE"
        """,
        COUNT=str(tmp_path / "count"),
    )
    errors = (tmp_path / "errors").read_text()
    assert "broken on purpose" in errors
    assert "all saved values are restored" in errors


def test_a_value_that_the_kernel_refuses_takes_everything_back(host: Run, tmp_path: Path) -> None:
    made = files([change("sack", False), change("ecn", True)], title="refused")
    # A value that no kernel accepts.
    script = made["sender/apply.sh"].replace(
        "set_sysctl net.ipv4.tcp_ecn 1", "set_sysctl net.ipv4.tcp_ecn 99"
    )
    put(made | {"sender/apply.sh": script}, tmp_path)
    host("""
        state >before
        sh sender/apply.sh >said 2>errors && exit 1
        state | cmp before - && test ! -e "$STATE"
    """)


def test_kernels_without_a_sysctl_for_the_timeout_have_it_in_routes(
    host: Run, tmp_path: Path
) -> None:
    made = files([change("min_rto", "50 ms")], title="timeout")
    script = made["sender/apply.sh"].replace("tcp_rto_min_us", "tcp_no_such_thing")
    put(made | {"sender/apply.sh": script}, tmp_path)
    shown = host("""
        state >before
        sh sender/apply.sh >said || exit 1
        ip -4 route show default; ip -6 route show default
        sh sender/undo.sh >>said || exit 1
        state | cmp before - && test ! -e "$STATE"
    """)
    assert shown.count(" rto_min lock 50ms ") == len(shown.splitlines()) == 3


def test_apply_and_undo_refuse_a_wrong_order(host: Run, tmp_path: Path) -> None:
    put(files([change("sack", False)], title="turns"), tmp_path)
    host("""
        state >before
        sh sender/undo.sh 2>errors && exit 1
        grep -q 'nothing to undo' errors || exit 2
        sh sender/apply.sh >said || exit 3
        state >during
        sh sender/apply.sh 2>errors && exit 4
        grep -q 'already applied' errors || exit 5
        state | cmp during - || exit 6
        # After a reboot what was saved is of no use.
        sed -i 's/^boot .*/boot another/' "$STATE/before"
        sh sender/undo.sh | grep -q 'has restarted' || exit 7
        test ! -e "$STATE" || exit 8
    """)


@pytest.mark.parametrize(
    ("changes", "prepared", "said"),
    [
        ([change("cc", "nosuchcc")], "", "no congestion control nosuchcc"),
        (
            [change("initial_window", 20)],
            "ip route flush default; ip -6 route flush default",
            "DEV=",
        ),
        ([change("initial_window", 20)], "export DEV=v7", "no device v7"),
        (
            [change("initial_window", 20)],
            "export ROUTE=203.0.113.0/24",
            "no route to 203.0.113.0/24",
        ),
        ([change("hystart", False)], "mount -t tmpfs none /sys", "parameters"),
        (
            [change("qdisc", "5 packets")],
            "ip link add w0 numtxqueues 2 type veth peer name w1; ip link set w0 up; "
            "tc qdisc add dev w0 root handle 1: mq; tc qdisc add dev w0 parent 1:1 pfifo limit 9; "
            "export DEV=w0",
            "could not rebuild",
        ),
    ],
)
def test_a_failed_apply_changes_nothing(
    host: Run, tmp_path: Path, changes: list[Change], prepared: str, said: str
) -> None:
    put(files(changes, title="impossible"), tmp_path)
    host(f"""
        {prepared}
        state >before
        sh sender/apply.sh >said 2>&1 && exit 1
        state | cmp before - && test ! -e "$STATE"
    """)
    assert said in (tmp_path / "said").read_text()


def test_routes_that_router_advertisements_renew_are_left_alone(host: Run, tmp_path: Path) -> None:
    put(files([change("initial_window", 20)], title="ra"), tmp_path)
    shown = host("""
        ip -6 route change default via 2001:db8:f::2 dev v0 metric 1024 proto ra expires 1000
        sh sender/apply.sh 2>&1 || exit 1
        ip -6 route show default
        sh sender/undo.sh >said || exit 1
    """)
    assert "skipped, because router advertisements renew it" in shown
    assert "initcwnd" not in shown.splitlines()[-1]


# Routes with several next hops (for IPv6, `ip -o` puts a backslash right behind a word), with a
# type of service, a locked MTU, an unreachable next hop, and a blackhole.
WINDING = """
ip link add w0 type veth peer name w1
ip link set w0 up
ip link set w1 up
ip addr add 192.0.2.1/24 dev w0
ip addr add 2001:db8:e::1/64 dev w0 nodad
ip route flush default
ip -6 route flush default
ip route add default proto static metric 50 initcwnd 3 \\
    nexthop via 198.51.100.2 dev v0 weight 1 nexthop via 192.0.2.2 dev w0 weight 2
ip route add default via 203.0.113.66 dev v0 onlink metric 60
ip -6 route add default metric 77 nexthop via 2001:db8:f::2 dev v0 nexthop via 2001:db8:e::2 dev w0
ip route add 203.0.113.0/24 via 192.0.2.7 mtu lock 1300 tos 0x10
ip route add 203.0.113.0/24 via 192.0.2.8 advmss 1200 features ecn quickack 1
ip -6 route add unreachable 2001:db8:1::/48
ip link set v1 down
"""


@pytest.mark.parametrize("where", ["sender", "routes"])
def test_routes_of_all_kinds_come_back(host: Run, tmp_path: Path, where: str) -> None:
    changes = (change("initial_window", 20), change("window_clamp", "100 kB"))
    put(files(changes, title="winding"), tmp_path)
    prefixes = ("203.0.113.0/24", "203.0.112.0/20", "2001:db8:1:1::/64")
    targets = [Destination(prefix, prefix, changes) for prefix in prefixes]
    put(destination_files(targets, title="winding"), tmp_path)
    shown = host(f"""
        {WINDING}
        while ip link show v0 | grep -q LOWER_UP; do sleep 0.02; done
        state >before
        sh {where}/apply.sh >said || exit 1
        ip -o route show; ip -6 -o route show
        sh {where}/undo.sh >>said || exit 1
        state | cmp before - && test ! -e "$STATE"
    """)
    changed = [line for line in shown.splitlines() if " initcwnd 20 " in f"{line} "]
    assert all(" window 100000 " in line for line in changed)
    wanted = {
        "sender": ["default", "default", "default"],
        "routes": ["2001:db8:1:1::/64", "203.0.112.0/20", "203.0.113.0/24", "203.0.113.0/24"],
    }
    assert sorted(line.split()[0] for line in changed) == wanted[where]


# A server in the host, and a client in another host behind the device; prints `ss` of the server.
CONNECTION = """
unshare -n sleep 60 &
peer=$!
i=0
while [ "$(readlink /proc/$peer/ns/net)" = "$(readlink /proc/self/ns/net)" ] && [ $i -lt 100 ]; do
    sleep 0.02
    i=$((i + 1))
done
ip link set v1 netns $peer
nsenter -n -t $peer sh -c 'ip link set lo up; ip addr add 198.51.100.9/24 dev v1; ip addr add
    203.0.113.9/32 dev v1; ip link set v1 up'
ip addr add 198.51.100.2/24 dev v0
cat >server.py <<'EOF'
import socket, subprocess, sys
server = socket.create_server(("198.51.100.1", 5000))
print("ready", flush=True)
connection, _ = server.accept()
print(subprocess.run(["ss", "-Htinm", "sport", "=", "5000"], capture_output=True, text=True).stdout)
EOF
python3 server.py >shown &
server=$!
while ! grep -q ready shown; do sleep 0.02; done
nsenter -n -t $peer python3 -c "
import socket, time
connection = socket.create_connection(('198.51.100.1', 5000), timeout=5)
connection.recv(1)"
wait $server
kill $peer
"""


def test_a_connection_has_the_settings(host: Run, tmp_path: Path) -> None:
    changes = [
        change("cc", "reno"),
        change("initial_window", 23),
        change("wmem", "50 kB"),
        change("sack", False),
        change("timestamps", False),
    ]
    put(files(changes, title="one"), tmp_path)
    host(
        """
        export ROUTE=198.51.100.0/24 DEV=v0
        state >before
        sh sender/apply.sh >said || exit 1
        """
        + CONNECTION
        + """
        ip addr del 198.51.100.2/24 dev v0
        sh sender/undo.sh >>said || exit 1
    """
    )
    shown = (tmp_path / "shown").read_text()
    assert re.search(r"\breno\b", shown)
    assert re.search(r"\bcwnd:23\b", shown)
    # `ss` lists the options of a connection.
    assert " sack " not in f" {shown} "
    assert " ts " not in f" {shown} "
    # The send buffer never exceeds the third number of tcp_wmem.
    (buffer,) = re.findall(r"\btb(\d+)", shown)[-1:]
    assert int(buffer) <= 50_000


def test_destinations_get_routes_and_lose_them(host: Run, tmp_path: Path) -> None:
    destinations = [
        Destination("203.0.113.0/25", "inner", (change("initial_window", 33),)),
        Destination("203.0.113.0/24", "outer", (change("cc", "reno"), change("min_rto", "40 ms"))),
        Destination("203.0.113.7", "one", (change("initial_receive_window", 9),)),
        Destination("2001:db8:1::/48", "six", (change("ecn", True), change("initial_window", 5))),
        Destination("198.51.100.0/24", "link", (change("initial_window", 6),)),
    ]
    put(destination_files(destinations, title="by address"), tmp_path)
    shown = host("""
        state >before
        sh routes/apply.sh >said || exit 1
        for to in 203.0.113.1 203.0.113.200 203.0.113.7 198.51.100.77; do ip route get $to; done |
            grep -v cache | sed 's/uid.*//'
        ip -4 route show root 203.0.113.0/24; ip route show 198.51.100.0/24
        ip -6 route show 2001:db8:1::/48
        sh routes/undo.sh >>said || exit 1
        state | cmp before - && test ! -e "$STATE"
    """)
    lines = shown.splitlines()
    # All routes follow the default route.
    assert all(" via 198.51.100.2 dev v0 " in line for line in lines[:3])
    routes = {line.split()[0]: line for line in lines[4:]}
    assert " congctl reno" in routes["203.0.113.0/24"]
    assert " rto_min lock 40ms " in routes["203.0.113.0/24"]
    assert " initcwnd 33" in routes["203.0.113.0/25"]
    # A narrow route inherits nothing from a wide one, nor from the route that both derive from.
    assert "congctl" not in routes["203.0.113.0/25"]
    assert "rto_min" not in routes["203.0.113.0/25"]
    assert " initrwnd 9" in routes["203.0.113.7"]
    assert "initcwnd" not in routes["203.0.113.7"]
    assert " features ecn" in routes["2001:db8:1::/48"]
    assert " initcwnd 5" in routes["2001:db8:1::/48"]
    assert routes["198.51.100.0/24"].startswith("198.51.100.0/24 dev v0 proto kernel scope link ")
    assert " initcwnd 6" in routes["198.51.100.0/24"]


def test_modules_are_unloaded_after_the_routes_that_use_them() -> None:
    changes = (change("cc", "vegas"),)
    targets = [Destination(f"203.0.113.{last}", str(last), changes) for last in (1, 2)]
    script = destination_files(targets, title="modules")["routes/apply.sh"]
    # Saved values are restored from the first to the last one.
    saved = re.findall(r"^    keep_(?:algorithm|destination) \S+", script, re.MULTILINE)
    assert [line.split()[1] for line in saved] == ["203.0.113.2", "203.0.113.1", "vegas"]


CLIENT = """
import socket, subprocess
kept = []
for family, address in ((4, "203.0.113.1"), (4, "203.0.113.200"), (6, "2001:db8:1::1"),
                        (6, "::ffff:203.0.113.1"), (4, "127.0.0.1")):
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    client = socket.socket(kind)
    client.connect((address, server.getsockname()[1]))
    kept += [server, client, server.accept()]
    port = str(client.getsockname()[1])
    # Both ends.
    words = ["ss", "-Htinm", "state", "established", "( sport = %s or dport = %s )" % (port, port)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    print(address, " ".join(shown.split()))
"""


def test_the_bpf_program_sets_each_connection_by_its_peer(host: Run, tmp_path: Path) -> None:
    if reason := missing("clang", "bpftool"):
        pytest.skip(reason)
    destinations = [
        Destination(
            "203.0.113.0/24",
            "wide",
            (
                change("cc", "reno"),
                change("initial_window", 17),
                change("wmem", "90 kB"),
                change("so_rcvbuf", "30 kB"),
                change("max_pacing_rate", "80 Mbit/s"),
            ),
        ),
        Destination(
            "203.0.113.128/25", "narrow", (change("cc", "cubic"), change("initial_window", 7))
        ),
        Destination(
            "2001:db8:1::/48",
            "six",
            (
                change("cc", "reno"),
                change("initial_window", 5),
                change("initial_receive_window", 20),
                change("min_rto", "30 ms"),
            ),
        ),
    ]
    put(destination_files(destinations, title="by address"), tmp_path)
    (tmp_path / "client.py").write_text(CLIENT)
    shown = host("""
        mkdir cgroup && mount -t cgroup2 none cgroup || { echo no cgroup2; exit 0; }
        ip link set lo mtu 1500
        for address in 203.0.113.1/32 203.0.113.200/32; do ip addr add $address dev lo; done
        ip addr add 2001:db8:1::1/128 dev lo nodad
        sysctl -n net.ipv4.tcp_congestion_control
        mount | grep /sys/fs/bpf >mounts
        bpftool prog show >programs || { echo no BPF; exit 0; }
        mkdir cgroup/tcplab.$$
        group=$PWD/cgroup/tcplab.$$
        sh sockops/load.sh --dry-run $group >dry || exit 8
        test ! -e "$STATE" && bpftool prog show | cmp programs - || exit 9
        sh sockops/load.sh $group >said 2>&1 || { cat said; rmdir $group; exit 1; }
        sh sockops/load.sh $group >/dev/null 2>&1 && exit 2
        sh sockops/unload.sh --dry-run >undry || exit 10
        bpftool cgroup show $group | grep -q sock_ops || exit 11
        sh -c 'echo $$ >$0/cgroup.procs; exec python3 client.py' $group
        python3 client.py | sed 's/^/outside /'
        sh sockops/unload.sh >>said || exit 3
        sh -c 'echo $$ >$0/cgroup.procs; exec python3 client.py' $group | sed 's/^/after /'
        bpftool cgroup show $group
        rmdir $group
        bpftool prog show | cmp programs - || exit 4
        mount | grep /sys/fs/bpf | cmp mounts - || exit 5
        test ! -e "$STATE" || exit 6
        test ! -e /sys/fs/bpf/tcplab_by_address || exit 7
    """)
    if shown.startswith("no "):
        pytest.skip(f"this machine has {shown.strip()}")
    for name, last in (("dry", "bpftool cgroup attach "), ("undry", "rm /sys/fs/bpf/tcplab_")):
        *steps, end = (tmp_path / name).read_text().splitlines()
        assert end == "dry run: nothing was changed"
        assert any(step.startswith(last) for step in steps), steps
    default, *lines = shown.splitlines()
    inside = {line.split()[0]: line for line in lines[:5]}
    # Addresses and ports of both ends, then the output of `ss` for each: options appear twice.
    for address in ("203.0.113.1", "::ffff:203.0.113.1"):
        line = inside[address]
        assert len(re.findall(r" reno ", line)) == 2
        assert len(re.findall(r" cwnd:17 ", line)) == 2
        # The program asked for 45 kB, half of 90 kB; Linux doubles the value (socket(7)).
        assert line.count(",tb90000,") == 2
        assert line.count(",rb60000,") == 2
        assert line.count("/80000000bps") == 2
    assert len(re.findall(r" cubic ", inside["203.0.113.200"])) == 2
    assert len(re.findall(r" cwnd:7 ", inside["203.0.113.200"])) == 2
    six = inside["2001:db8:1::1"]
    assert len(re.findall(r" reno ", six)) == 2
    assert len(re.findall(r" cwnd:5 ", six)) == 2
    # 20 segments of at most 1500 - 40 - 20 B, rounded up to the window's unit of 2^10 B.
    windows = [int(window) for window in re.findall(r"snd_wnd:(\d+)", six)]
    assert all(window < 20 * 1440 + 1024 for window in windows)
    assert len(windows) == 2
    # The default RTO is at least 200 ms.
    assert min(int(rto) for rto in re.findall(r" rto:(\d+)", six)) < 200
    # RFC 6928: ten segments by default.
    assert len(re.findall(rf" {default} .*? cwnd:10 ", inside["127.0.0.1"])) == 2
    assert min(int(rto) for rto in re.findall(r" rto:(\d+)", inside["127.0.0.1"])) >= 200
    # Other programs, and all programs afterwards, have the kernel's settings.
    others = [line for line in lines[5:] if line.startswith(("outside ", "after "))]
    assert len(others) == 10
    assert all(re.search(rf" {default} .* cwnd:10 ", line) for line in others)
    assert len(lines) == 15


@pytest.mark.parametrize("version", [4, 6])
def test_the_bpf_program_has_room_for_its_stated_destinations(
    host: Run, tmp_path: Path, version: int
) -> None:
    if reason := missing("clang", "bpftool"):
        pytest.skip(reason)

    def prefix(number: int) -> str:
        return f"10.0.{number}.0/24" if version == 4 else f"2001:db8:{number:x}::/48"

    def one(number: int) -> Destination:
        changes = (change("cc", "reno"), change("initial_window", number + 1))
        return Destination(prefix(number), f"number {number}", changes)

    many = [one(number) for number in range(256)]
    put(destination_files(many, title="many"), tmp_path)
    shown = host("""
        mkdir cgroup && mount -t cgroup2 none cgroup || { echo no cgroup2; exit 0; }
        mkdir cgroup/tcplab.$$
        sh sockops/load.sh $PWD/cgroup/tcplab.$$ >said 2>&1 && sh sockops/unload.sh >>said 2>&1
        result=$?
        rmdir cgroup/tcplab.$$
        exit $result
    """)
    if shown.startswith("no "):
        pytest.skip(f"this machine has {shown.strip()}")
    more = [*many, Destination("192.0.2.0/24", "more", (change("cc", "cubic"),))]
    with pytest.raises(lab.ConfigError, match="257 destinations"):
        destination_files(more, title="too many")


# The output of `tc` for each queue of an experiment: tc-fq_codel(8) and the like.
QUEUES: list[tuple[Any, str]] = [
    (
        {
            "kind": "fq-codel",
            "limit": "1000 packets",
            "flows": 512,
            "quantum": 300,
            "target": "7 ms",
            "interval": "110 ms",
            "ecn": False,
        },
        "fq_codel limit 1000p flows 512 quantum 300 target 7ms interval 110ms",
    ),
    ("fq-codel", "fq_codel limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms ecn"),
    (
        {
            "kind": "cake",
            "rate": "9 Mbit/s",
            "rtt": "50 ms",
            "overhead": 38,
            "mpu": 84,
            "framing": "ptm",
            "isolation": "dual-dsthost",
            "tins": "diffserv4",
            "ack_filter": "on",
            "ingress": True,
            "wash": True,
            "limit": "4 MiB",
        },
        "cake bandwidth 9Mbit diffserv4 dual-dsthost wash ingress ack-filter rtt 50ms ptm "
        "overhead 38 mpu 84 memlimit 4Mb",
    ),
    (
        {"kind": "cake", "rtt": "satellite"},
        "cake bandwidth unlimited diffserv3 triple-isolate rtt 1s",
    ),
    (
        {
            "kind": "codel",
            "limit": "200 packets",
            "target": "2500 us",
            "interval": "50 ms",
            "ecn": True,
        },
        "codel limit 200p target 2.5ms interval 50ms ecn",
    ),
    (
        {
            "kind": "pie",
            "limit": "300 packets",
            "target": "10 ms",
            "update": "20 ms",
            "alpha": 3,
            "beta": 21,
            "bytemode": True,
            "ecn": True,
        },
        "pie limit 300p target 10ms tupdate 20ms alpha 3 beta 21 ecn bytemode",
    ),
    (
        {"kind": "fq-pie", "flows": 256, "ecn_prob": 30},
        "fq_pie limit 10240p flows 256 target 15ms tupdate 15ms alpha 2 beta 20 quantum 1514b "
        "ecn_prob 30",
    ),
    (
        {"kind": "fq", "limit": "500 packets", "flow_limit": 50, "quantum": 3000},
        "fq limit 500p flow_limit 50p quantum 3000b initial_quantum 15140b",
    ),
    # The weight 0.002 is nearly 2^-9, 0.25 is 2^-2.
    (
        {
            "kind": "red",
            "limit": "400 kB",
            "min": "30 kB",
            "max": "90 kB",
            "ecn": True,
            "adaptive": True,
            "probability": "2 %",
        },
        "red limit 400000b min 30000b max 90000b ecn adaptive ewma 9 probability 0.02",
    ),
    (
        {
            "kind": "red",
            "limit": "200 packets",
            "min": "20 packets",
            "max": "60 packets",
            "weight": 0.25,
        },
        "red limit 300000b min 30000b max 90000b ewma 2 probability 0.1",
    ),
    (
        {"kind": "sfq", "limit": "100 packets", "depth": 50, "flows": 64, "quantum": 1600},
        "sfq limit 100p quantum 1600b depth 50 flows 64",
    ),
    # 50 ms at 10 Mbit/s are 62500 B: the burst of 32000 B, and another 24.4 ms.
    (
        {"kind": "tbf", "rate": "10 Mbit/s", "burst": "32 kB", "limit": "50 ms"},
        "tbf rate 10Mbit burst 32000b lat 24.4ms",
    ),
    (
        {
            "kind": "tbf",
            "rate": "10 Mbit/s",
            "burst": "32 kB",
            "limit": "64 kB",
            "peakrate": "50 Mbit/s",
            "mtu": "1600 B",
        },
        "tbf rate 10Mbit burst 32000b peakrate 50Mbit mtu 1600b",
    ),
    ("250 packets", "pfifo limit 250p"),
    ("64 kB", "bfifo limit 64000b"),
    ({"kind": "drophead", "limit": "30 packets"}, "pfifo_head_drop limit 30p"),
]

# Process 1 of tcplab's kernel, whose disk is this machine's, read-only.
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t tmpfs tmpfs /mnt
export STATE=/mnt/state
cd FOLDER
{
    ip link set lo up
    ip link add v0 type veth peer name v1
    ip link set v0 up
    ip link set v1 up
    ip addr add 198.51.100.1/24 dev v0
    ip route add default via 198.51.100.2
    state() {
        sysctl -a 2>/dev/null | grep -E '^net.(ipv4.tcp|core.[rw]mem_max)'
        ip -details route show
        tc qdisc show
    }
    LINES
} 2>&1 | sed 's/^/: /'
echo o >/proc/sysrq-trigger
halt -f >/dev/null 2>&1
"""


@pytest.fixture
def guest(kernel: lab.Kernel, tmp_path: Path) -> Run:
    """Runs lines of shell in the kernel of the backend `linux`, which has all queues."""
    if reason := missing():
        pytest.skip(reason)

    def run(lines: str) -> str:
        init = tmp_path / "init.sh"
        init.write_text(INIT.replace("FOLDER", shlex.quote(str(tmp_path))).replace("LINES", lines))
        init.chmod(0o755)
        words = ["mem=64M", "root=none", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"]
        words += ["con=null", "con0=null,fd:1", "ssl=null", "quiet"]
        environment = {"PATH": str(PLACE), "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
        done = subprocess.run(
            [str(kernel.folder / "linux"), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
            check=False,
        )
        lines_ = done.stdout.replace("\r", "").splitlines()
        return "\n".join(line[2:] for line in lines_ if line.startswith(": "))

    return run


def test_every_queue_setting_is_accepted_by_tc_unchanged(guest: Run) -> None:
    lines = []
    for number, (value, _) in enumerate(QUEUES):
        made = discipline("queue", value)
        lines.append(f"echo queue {number}; tc qdisc replace dev v0 root {made.kind} {made.words}")
        lines.append("tc -details qdisc show dev v0; tc qdisc del dev v0 root")
    shown = guest("\n".join(lines)).split("queue ")[1:]
    assert len(shown) == len(QUEUES)
    for (value, expected), text in zip(QUEUES, shown, strict=True):
        (line,) = [line for line in text.splitlines() if line.startswith("qdisc ")]
        # `tc` appends the cell size to some sizes.
        words = [word.split("/")[0] for word in line.split()]
        kind, *settings = expected.split()
        assert words[1] == kind, value
        assert set(settings) <= set(words), (value, line)
        pairs = [(a, b) for a, b in pairwise(settings) if b[0].isdigit()]
        shown_pairs = set(pairwise(words))
        assert set(pairs) <= shown_pairs, (value, line)
        for flag in ("ecn", "bytemode", "adaptive"):
            assert (flag in words) == (flag in settings), (value, line)


def test_pacing_is_applied_and_undone_as_qdisc_fq(guest: Run, tmp_path: Path) -> None:
    changes = [
        change("cc", "vegas"),
        change("pacing", True),
        change("max_pacing_rate", "20 Mbit/s"),
        change("min_rto", "50 ms"),
        change("initial_window", 12),
        change("rmem_max", "9 MB"),
    ]
    put(files(changes, title="paced"), tmp_path)
    shown = guest("""
        tc qdisc replace dev v0 root handle 8001: fq limit 400 maxrate 5mbit
        state >/mnt/before
        sh sender/apply.sh >/mnt/said || cat /mnt/said
        tc qdisc show dev v0
        sysctl -n net.ipv4.tcp_rto_min_us net.ipv4.tcp_congestion_control net.core.rmem_max
        sh sender/undo.sh >/mnt/said || cat /mnt/said
        state | diff /mnt/before - && echo same
    """)
    queue, *rest = shown.splitlines()
    assert queue.startswith("qdisc fq ")
    # tc-fq(8): 10000 packets by default, also where `fq` was set before.
    assert " limit 10000p " in queue
    assert " maxrate 20Mbit " in queue
    assert rest == ["50000", "vegas", "9000000", "same"]


BEFORE = (
    "handle 8010: fq limit 400 maxrate 5mbit",
    "handle 8020: fq_codel limit 400 target 7ms",
    "handle 8030: sfq perturb 10",
    "handle 8040: cake bandwidth 9mbit",
    "handle 8050: pie limit 50 ecn",
    "handle 8060: codel limit 50",
)


def test_a_queue_with_settings_comes_back_as_tc_shows_it(guest: Run, tmp_path: Path) -> None:
    put(files([change("queue", {"kind": "fq"}, "router")], title="fair"), tmp_path)
    lines = """
        tc qdisc show dev v0 >/mnt/before
        sh router/apply.sh >/mnt/said || cat /mnt/said
        tc qdisc show dev v0
        sh router/undo.sh >/mnt/said || cat /mnt/said
        tc qdisc show dev v0 | diff /mnt/before - && echo same
    """
    # A default queue that is older than today's default.
    older = """
        tc qdisc del dev v0 root
        ip link set v0 txqueuelen 1000
        sysctl -qw net.core.default_qdisc=sfq
        tc qdisc add dev v0 root fq
        tc qdisc del dev v0 root
        ip route replace default via 198.51.100.2
        sysctl -qw net.core.default_qdisc=fq_codel
    """
    each = [f"tc qdisc replace dev v0 root {before}\n{lines}" for before in BEFORE]
    shown = guest("\n".join([*each, older, lines, "cat /mnt/before"])).splitlines()
    pairs = list(zip(shown[::2], shown[1::2], strict=False))
    assert len(pairs) == len(BEFORE) + 1
    for during, after in pairs:
        assert during.startswith("qdisc fq 7c9a: root ")
        assert after == "same"
    assert re.match(r"qdisc (sfq|noqueue) 0: root ", shown[-1])


def test_parameters_of_a_congestion_control_come_and_go(guest: Run, tmp_path: Path) -> None:
    changes = [change("cc", {"name": "cubic", "beta": 819}), change("hystart", False)]
    put(files(changes, title="parameters"), tmp_path)
    shown = guest("""
        mount -t sysfs sysfs /sys
        cd /sys/module/tcp_cubic/parameters
        echo $(cat beta hystart)
        sh "$OLDPWD/sender/apply.sh" >/mnt/said || cat /mnt/said
        echo $(cat beta hystart)
        sh "$OLDPWD/sender/undo.sh" >/mnt/said || cat /mnt/said
        echo $(cat beta hystart)
    """)
    # tcp_cubic.c: 717 / 1024 and HyStart by default.
    assert shown.splitlines() == ["717 1", "819 0", "717 1"]


def test_titles_are_quoted_in_scripts(host: Run, tmp_path: Path) -> None:
    title = 'it\'s "$(touch run)" `touch run`\ntouch run #\\\n*/ @STATE@ \\'
    made = files([change("sack", False)], title=title)
    made |= destination_files(
        [Destination("192.0.2.0/24", title, (change("cc", "reno"),))], title=title
    )
    put(made, tmp_path)
    for path, text in made.items():
        if path.endswith(".sh"):
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)
            if shutil.which("shellcheck"):
                subprocess.run(["shellcheck", "-"], input=text, text=True, check=True)
    if shutil.which("clang"):
        words = ["clang", "-fsyntax-only", "-Wall", "-Werror", "-target", "bpf"]
        machine = os.uname().machine
        words += [f"-I/usr/include/{machine}-linux-gnu", str(tmp_path / "sockops/sockops.c")]
        subprocess.run(words, check=True)
    host("sh sender/apply.sh >said && sh sender/undo.sh >>said && test ! -e run")


@pytest.mark.parametrize(
    "value",
    ["bbr; reboot", "$(reboot)", "a b", "", "-x", "a'b", {"name": "cubic", "beta; x": 1}, 7, ["a"]],
)
def test_invalid_names_of_congestion_controls_are_refused(value: Any) -> None:
    with pytest.raises(lab.ConfigError, match=r"sender\.cc"):
        files([change("cc", value)], title="names")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([change("wmem", "16 MBs")], "sender.wmem: '16 MBs' is not an amount of data"),
        ([change("wmem", 16)], "sender.wmem: 16 is not an amount of data"),
        ([change("wmem", "16 GB")], "out of range for Linux"),
        ([change("initial_window", "20")], "a whole number from 1 to 65535"),
        ([change("initial_window", True)], "a whole number from 1 to 65535"),
        ([change("sack", 1)], "true or false"),
        ([change("sac", True)], "there is no such setting; known are"),
        ([change("sack", True, "host")], "a side is one of sender, receiver, router"),
        ([change("sack", True, "router")], "a router has a queue, and no sack"),
        ([change("queue", "5 packets")], "the queue of a sender is `qdisc`"),
        ([change("qdisc", "5 packets", "router")], "the queue of a router is `queue`"),
        ([change("sack", True), change("sack", False)], "is given twice"),
        ([change("delayed_ack", "off"), change("ack_every", 2)], "contradicts another change"),
        ([change("qdisc", "1 BDP")], "write it in packets or bytes"),
        ([change("queue", {"kind": "fq-codel", "limit": "9 kB"}, "router")], "in packets, not"),
        ([change("queue", {"kind": "fqcodel"}, "router")], "router.queue.kind: 'fqcodel' is not"),
        ([change("queue", {"kind": "codel", "tarjet": 1}, "router")], "codel has no such key"),
        ([change("queue", {"kind": "tbf"}, "router")], "tbf needs the key limit"),
        ([change("cc", {"name": "cubic", "betta": 1})], "tcp_cubic has no such parameter"),
        ([change("cc", {"name": "cubic", "beta": 1.5})], "a whole number"),
        (
            [change("keepalive", {"idle": "2 h", "often": 1})],
            "keepalive has idle, interval, probes",
        ),
    ],
)
def test_mistakes_have_their_place(changes: list[Change], said: str) -> None:
    with pytest.raises(lab.ConfigError, match=re.escape(said)):
        files(changes, title="mistakes")


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("192.0.2.1/24", "is not a prefix"),
        ("0.0.0.0/0", "every address"),
        ("x; y", "is not a prefix"),
    ],
)
def test_mistakes_in_prefixes_have_their_place(prefix: str, said: str) -> None:
    destination = Destination(prefix, "there", (change("cc", "reno"),))
    with pytest.raises(lab.ConfigError, match=f"destination 'there'.*{said}"):
        destination_files([destination], title="prefixes")
    twice = Destination("192.0.2.0/24", "a", (change("cc", "reno"),))
    with pytest.raises(lab.ConfigError, match="is already that of 'a'"):
        destination_files([twice, twice], title="twice")


def examples() -> dict[str, Any]:
    """A non-default value of each key of a stack."""
    told = {
        "profile": "rfc", "flavour": "linux", "cc": "reno", "recovery": "reno", "abc": 2,
        "delayed_ack": "40 ms", "ack_every": 1, "quick_ack": 16, "ecn": "accurate",
        "initial_window": 4, "min_rto": "50 ms", "max_rto": "20 s", "initial_rto": "3 s",
        "rmem": "1 MB", "wmem": "1 MB", "so_rcvbuf": "1 MB", "so_sndbuf": "1 MB",
        "rmem_max": "1 MB", "wmem_max": "1 MB", "window_clamp": "1 MB",
        "initial_receive_window": 20, "notsent_lowat": "16 kB", "app_win": 2,
        "mem": {"low": "1 MB", "pressure": "2 MB", "high": "3 MB"}, "max_pacing_rate": "1 Mbit/s",
        "reduction": "halving", "cut_base": "cwnd", "dup_thresh": 4, "syn_retries": 3,
        "syn_linear_timeouts": 2, "syn_ack_retries": 3, "retries": 8, "user_timeout": "30 s",
        "keepalive": {"idle": "60 s"}, "path_mtu": "known", "mtu_probing": "always",
        "time_wait": "1 s", "mss": 1000,
    }  # fmt: skip
    keys = json.loads(_core.schema())["$defs"]["Stack"]["properties"]
    assert set(told) <= set(keys)
    return {key: told.get(key, True) for key in keys}


@pytest.mark.parametrize("side", ["sender", "receiver"])
@pytest.mark.parametrize(("key", "value"), examples().items())
def test_every_setting_has_a_script_line_or_a_stated_reason(
    key: str, value: Any, side: str
) -> None:
    made = files([change(key, value, side)], title="each")
    readme = made[f"{side}/README.md"]
    assert f"`{key}`" in readme
    # Scripts exist exactly where the page mentions them.
    assert (f"{side}/apply.sh" in made) == ("## What `apply.sh` changes" in readme)
    assert readme.count("\n## ") >= 1
    target = Destination("192.0.2.0/24", "there", (change(key, value, side),))
    by_address = destination_files([target], title="each")
    assert f"| `{key}` |" in by_address["README.md"]
    assert made == files([change(key, value, side)], title="each")


@pytest.mark.parametrize("name", ["copa", "bbr3", "cubic/2008", "westwood"])
def test_congestion_controls_missing_in_linux_are_reported_not_applied(name: str) -> None:
    made = files([change("cc", name)], title="missing")
    assert list(made) == ["sender/README.md"]
    assert f"Linux has no congestion control `{name}`" in made["sender/README.md"]


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "red", "min": "9 kB", "max": "30 kB", "limit": "90 kB", "gentle": True},
        {"kind": "red", "min": "9 kB", "max": "9 kB", "limit": "90 kB", "weight": 1},
        "dualpi2",
        {"kind": "policer", "rate": "1 Mbit/s", "burst": "9 kB"},
    ],
)
def test_queues_that_tc_cannot_express_are_reported(value: Any) -> None:
    with pytest.raises(ImpossibleError):
        discipline("queue", value)
    made = files([change("queue", value, "router")], title="missing")
    assert list(made) == ["router/README.md"]
    assert "## What cannot be set on a running Linux" in made["router/README.md"]


def test_only_sysctl_settings_persist_over_a_reboot() -> None:
    changes = [
        change("cc", "newreno"),
        change("wmem", "3 kB"),
        change("min_rto", "50 ms"),
        change("pacing", True),
        change("initial_window", 20),
        change("so_rcvbuf", "64 kB"),
    ]
    made = files(changes, title="lasting")
    # tcp(7): three numbers in ascending order; a minus lets systemd-sysctl continue if the kernel
    # lacks the file (sysctl.d(5)).
    lines = made["sender/sysctl.d/90-tcplab.conf"].splitlines()[1:]
    assert lines == [
        "net.ipv4.tcp_congestion_control = reno",
        "net.ipv4.tcp_wmem = 3000 3000 3000",
        "-net.ipv4.tcp_rto_min_us = 50000",
        "net.core.default_qdisc = fq",
    ]
    tuned = made["sender/tuned/tcplab/tuned.conf"]
    assert "\n[sysctl]\nnet.ipv4.tcp_congestion_control=reno\n" in tuned
    assert re.search(r"^include=", tuned, re.MULTILINE)


def test_bbr_paces_without_a_queue() -> None:
    made = files([change("cc", "bbr"), change("pacing", True)], title="bbr")
    assert "set_queue" not in made["sender/apply.sh"].split("# ---- Settings ----")[1]
    assert "BBR paces by itself" in made["sender/README.md"]


def test_nginx_and_haproxy_files_use_documented_directives() -> None:
    changes = [
        change("cc", "bbr"),
        change("so_rcvbuf", "64 kB"),
        change("so_sndbuf", "1 MiB"),
        change("fast_open", True),
        change("nagle", False),
        change("notsent_lowat", "16 kB"),
        change("user_timeout", "30 s"),
        change("keepalive", {"idle": "60 s", "interval": "10 s", "probes": 3}),
    ]
    made = files(changes, title="servers")
    # ngx_http_core_module: fastopen=number, rcvbuf=size, sndbuf=size, so_keepalive=idle:intvl:cnt.
    nginx = made["sender/nginx.conf"]
    words = " ssl rcvbuf=64000 sndbuf=1048576 fastopen=256 so_keepalive=60s:10s:3;"
    assert f"    listen 443{words}\n" in nginx
    assert "    tcp_nodelay on;\n" in nginx
    # The configuration manual of HAProxy 3.3: sections 3.2, 4.2 and 5.1.
    haproxy = made["sender/haproxy.cfg"]
    for line in ("tune.rcvbuf.client 64000", "tune.sndbuf.client 1048576"):
        assert re.search(rf"^global\n(    .*\n)*    {re.escape(line)}$", haproxy, re.MULTILINE)
    assert "    tune.notsent-lowat.client 16000  #" in haproxy
    assert "    option clitcpka" in haproxy
    assert "    bind :443 cc bbr tfo tcp-ut 30000\n" in haproxy
