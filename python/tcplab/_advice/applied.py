"""Files that put settings into a live Linux host, and take them out again.

What is there is saved before anything is changed, and `undo.sh` restores exactly that. Nothing here
runs them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcplab._core import ConfigError
from tcplab._quantities import numbers


@dataclass(frozen=True)
class Change:
    """A setting with another value than today's."""

    key: str
    """The key of the stack, `qdisc` of the host, or `queue` of the router."""
    value: Any
    before: Any
    side: str
    """`sender`, `receiver` or `router`."""


@dataclass
class Steps:
    """What is done on a host, by the means that do it."""

    sysctls: dict[str, str] = field(default_factory=dict)
    """By name, the value."""
    buffers: dict[str, int] = field(default_factory=dict)
    """By name of a sysctl with three values, the last of them."""
    route: dict[str, str] = field(default_factory=dict)
    """By attribute of a route, the value."""
    qdisc: str = ""
    """What `tc qdisc replace dev DEV root` is told."""
    files: dict[str, str] = field(default_factory=dict)
    """By path, the value of a parameter of a module."""
    modules: list[str] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    """What is changed, and by what line; also what no line here can change."""
    nginx: list[str] = field(default_factory=list)
    haproxy: list[str] = field(default_factory=list)


KERNEL_NAMES = {"newreno": "reno", "westwood+": "westwood"}
"""What the kernel calls congestion controls that have another name here."""

NAME = re.compile(r"[a-z][a-z0-9_-]*")

ON_OFF = {
    "restart_after_idle": "net.ipv4.tcp_slow_start_after_idle",
    "sack": "net.ipv4.tcp_sack",
    "dsack": "net.ipv4.tcp_dsack",
    "timestamps": "net.ipv4.tcp_timestamps",
    "window_scaling": "net.ipv4.tcp_window_scaling",
    "rack": "net.ipv4.tcp_recovery",
}

WHEN_ON = {
    "tlp": ("net.ipv4.tcp_early_retrans", "3"),
    "frto": ("net.ipv4.tcp_frto", "2"),
    "ecn": ("net.ipv4.tcp_ecn", "1"),
    "fast_open": ("net.ipv4.tcp_fastopen", "3"),
}
"""Sysctls that are 0 for off, and this for on."""

COUNTS = {
    "syn_retries": "net.ipv4.tcp_syn_retries",
    "syn_ack_retries": "net.ipv4.tcp_synack_retries",
    "retries": "net.ipv4.tcp_retries2",
    "dup_thresh": "net.ipv4.tcp_reordering",
}

BUFFERS = {"wmem": "net.ipv4.tcp_wmem", "rmem": "net.ipv4.tcp_rmem"}

MOST = {"wmem_max": "net.core.wmem_max", "rmem_max": "net.core.rmem_max"}

PROBING = {"off": "0", "on-black-hole": "1", "always": "2"}


def files(
    changes: Sequence[Change], *, title: str, rate_mbit_s: float | None = None
) -> dict[str, str]:
    """By path, the text of each file: a folder for each side that has changes. A queue that is
    given by time holds that long at the rate.
    """
    found: dict[str, str] = {}
    for side in dict.fromkeys(one.side for one in changes):
        steps = Steps()
        for one in changes:
            if one.side != side:
                continue
            try:
                _step(one, steps, rate_mbit_s)
            except (ConfigError, KeyError, TypeError, ValueError) as error:
                # It was found on a simulated host, and no line here puts it into a live one.
                steps.told.append((_said(one), f"nothing here: {error}"))
        found |= {f"{side}/{name}": text for name, text in _of_host(side, steps, title).items()}
    return found


def _step(change: Change, steps: Steps, rate_mbit_s: float | None) -> None:
    """Adds what makes a change."""
    key, value, said = change.key, change.value, _said(change)
    if key == "cc":
        steps.told.append((said, _congestion_control(value, steps)))
    elif key in ON_OFF:
        steps.sysctls[ON_OFF[key]] = "1" if value else "0"
        steps.told.append((said, f"sysctl {ON_OFF[key]}"))
    elif key in WHEN_ON and isinstance(value, bool):
        name, on = WHEN_ON[key]
        steps.sysctls[name] = on if value else "0"
        steps.told.append((said, f"sysctl {name}"))
        if key == "fast_open" and value:
            steps.nginx.append("listen 443 ssl fastopen=256;  # in a server block")
    elif key in COUNTS:
        steps.sysctls[COUNTS[key]] = str(int(value))
        steps.told.append((said, f"sysctl {COUNTS[key]}"))
    elif key in BUFFERS:
        steps.buffers[BUFFERS[key]] = _bytes(key, value)
        steps.told.append((said, f"sysctl {BUFFERS[key]}, the last of its three values"))
    elif key in MOST:
        steps.sysctls[MOST[key]] = str(_bytes(key, value))
        steps.told.append((said, f"sysctl {MOST[key]}"))
    elif key in OTHERS:
        OTHERS[key](said, value, steps)
    elif key == "queue":
        steps.qdisc = queue(value, rate_mbit_s)
        steps.told.append(
            (said, f"`tc qdisc replace dev $DEV root {steps.qdisc}`: it takes effect where this "
             "device is the bottleneck")
        )  # fmt: skip
    else:
        steps.told.append((said, "nothing on a live host: no switch of Linux sets it"))


def _said(change: Change) -> str:
    before = f" (before: {_word(change.before)})" if change.before is not None else ""
    return f"{change.key}: {_word(change.value)}{before}"


def _congestion_control(value: Any, steps: Steps) -> str:
    given: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {"name": str(value)}
    name = str(given.pop("name", "")).split("/")[0]
    name = KERNEL_NAMES.get(name, name)
    if not NAME.fullmatch(name):
        raise ConfigError(f"cc: {name!r} is no name of a congestion control of Linux")
    steps.sysctls["net.ipv4.tcp_congestion_control"] = name
    steps.modules.append(f"tcp_{name}")
    parameters: dict[str, Any] = given.pop("params", None) or given
    if parameters:
        return (
            "sysctl net.ipv4.tcp_congestion_control; its parameters "
            f"({', '.join(f'{key} = {_word(one)}' for key, one in parameters.items())}) are those "
            f"of the module, in /sys/module/tcp_{name}/parameters, where it has them"
        )
    return "sysctl net.ipv4.tcp_congestion_control: connections that begin from then on"


def _initial_window(said: str, value: Any, steps: Steps) -> None:
    steps.route["initcwnd"] = str(int(value))
    steps.told.append((said, "`ip route ... initcwnd`, on the route"))


def _initial_receive_window(said: str, value: Any, steps: Steps) -> None:
    if value == "off":
        steps.told.append((said, "the route without `initrwnd`, as it is by default"))
        return
    steps.route["initrwnd"] = str(int(value))
    steps.told.append((said, "`ip route ... initrwnd`, on the route"))


def _min_rto(said: str, value: Any, steps: Steps) -> None:
    steps.route["rto_min"] = f"{_quantity('min_rto', value, 'ms'):g}ms"
    steps.told.append((said, "`ip route ... rto_min`, on the route"))


def _delayed_ack(said: str, value: Any, steps: Steps) -> None:
    if value != "off":
        steps.told.append((said, "nothing on a live host: the delay of ACKs is built in"))
        return
    steps.route["quickack"] = "1"
    steps.told.append((said, "`ip route ... quickack 1`, on the route"))


def _notsent_lowat(said: str, value: Any, steps: Steps) -> None:
    size = 2**32 - 1 if value == "off" else _bytes("notsent_lowat", value)
    steps.sysctls["net.ipv4.tcp_notsent_lowat"] = str(size)
    steps.told.append((said, "sysctl net.ipv4.tcp_notsent_lowat"))


def _mtu_probing(said: str, value: Any, steps: Steps) -> None:
    steps.sysctls["net.ipv4.tcp_mtu_probing"] = PROBING[str(value)]
    steps.told.append((said, "sysctl net.ipv4.tcp_mtu_probing"))


def _hystart(said: str, value: Any, steps: Steps) -> None:
    steps.files["/sys/module/tcp_cubic/parameters/hystart"] = "1" if value else "0"
    steps.told.append((said, "/sys/module/tcp_cubic/parameters/hystart, of CUBIC alone"))


def _pacing(said: str, value: Any, steps: Steps) -> None:
    if not value:
        steps.told.append((said, "a device without `fq`, and programs without SO_MAX_PACING_RATE"))
        return
    steps.qdisc = steps.qdisc or "fq"
    steps.told.append(
        (said, "`tc qdisc replace dev $DEV root fq`, which paces all connections; a program paces "
         "one connection by SO_MAX_PACING_RATE; BBR paces without either")
    )  # fmt: skip


def _qdisc(said: str, value: Any, steps: Steps) -> None:
    steps.qdisc = queue(value, None)
    steps.told.append((said, f"`tc qdisc replace dev $DEV root {steps.qdisc}`"))


def _so_rcvbuf(said: str, value: Any, steps: Steps) -> None:
    size = _bytes("so_rcvbuf", value)
    steps.nginx.append(f"listen 443 ssl rcvbuf={size};  # in a server block")
    steps.haproxy += [f"tune.rcvbuf.client {size}", f"tune.rcvbuf.server {size}"]
    steps.told.append((said, "programs, by setsockopt(SO_RCVBUF)"))


def _so_sndbuf(said: str, value: Any, steps: Steps) -> None:
    size = _bytes("so_sndbuf", value)
    steps.nginx.append(f"listen 443 ssl sndbuf={size};  # in a server block")
    steps.haproxy += [f"tune.sndbuf.client {size}", f"tune.sndbuf.server {size}"]
    steps.told.append((said, "programs, by setsockopt(SO_SNDBUF)"))


def _by_program(option: str) -> Callable[[str, Any, Steps], None]:
    def told(said: str, value: Any, steps: Steps) -> None:
        steps.told.append((said, f"programs, by setsockopt({option}); no switch of the host"))

    return told


OTHERS: Mapping[str, Callable[[str, Any, Steps], None]] = {
    "initial_window": _initial_window,
    "initial_receive_window": _initial_receive_window,
    "min_rto": _min_rto,
    "delayed_ack": _delayed_ack,
    "notsent_lowat": _notsent_lowat,
    "mtu_probing": _mtu_probing,
    "hystart": _hystart,
    "pacing": _pacing,
    "qdisc": _qdisc,
    "so_rcvbuf": _so_rcvbuf,
    "so_sndbuf": _so_sndbuf,
    "max_pacing_rate": _by_program("SO_MAX_PACING_RATE"),
    "window_clamp": _by_program("TCP_WINDOW_CLAMP"),
    "nagle": _by_program("TCP_NODELAY"),
    "user_timeout": _by_program("TCP_USER_TIMEOUT"),
    "keepalive": _by_program("SO_KEEPALIVE"),
}

KINDS = {"fq-codel": "fq_codel", "fq-pie": "fq_pie"}

TC_WORDS = {
    "memory_limit": "memory_limit", "rtt": "rtt", "rate": "bandwidth", "initial_quantum":
    "initial_quantum", "flow_limit": "flow_limit", "update": "tupdate",
}  # fmt: skip
"""Parameters that `tc` calls something else."""


def queue(value: Any, rate_mbit_s: float | None) -> str:
    """A queue discipline in the words of `tc`.

    Raises:
        ConfigError: `tc` has no such queue, or its size in bytes is not known.
    """
    given = dict(value) if isinstance(value, Mapping) else {"kind": str(value)}
    kind = str(given.pop("kind", "droptail"))
    if not isinstance(value, Mapping) and numbers([kind]) is not None:
        given, kind = {"limit": kind}, "droptail"
    if kind == "droptail":
        return _droptail(given.get("limit", "1000 packets"), rate_mbit_s)
    if kind not in ("fq-codel", "codel", "pie", "fq-pie", "fq", "cake", "sfq"):
        raise ConfigError(f"queue: {kind}: there is no line of tc for it here")
    words = [KINDS.get(kind, kind)]
    for key, one in given.items():
        if isinstance(one, bool):
            words += [key] if one else [f"no{key}"]
        elif kind == "cake" and key in ("isolation", "tins"):
            words.append(str(one))
        else:
            words += [TC_WORDS.get(key, key), _tc(key, one)]
    return " ".join(words)


def _droptail(limit: Any, rate_mbit_s: float | None) -> str:
    found = numbers([str(limit)])
    kind, number = (found[0], float(found[1][0])) if found is not None else ("", 0.0)
    if kind == "packets":
        return f"pfifo limit {int(number)}"
    if kind == "ms" and rate_mbit_s is not None:
        kind, number = "bytes", number * rate_mbit_s * 125
    if kind != "bytes":
        raise ConfigError(f"queue: {limit}: tc needs a number of packets or bytes")
    return f"bfifo limit {int(number)}"


def _tc(key: str, value: Any) -> str:
    found = numbers([str(value)])
    if found is None:
        if not re.fullmatch(r"[\w.-]+", str(value)):
            raise ConfigError(f"queue: {key}: {value!r} is nothing that tc takes")
        return str(value)
    kind, number = found[0], float(found[1][0])
    units = {"ms": "ms", "mbit_s": "mbit", "bytes": "", "packets": "", "number": ""}
    return f"{number:g}{units[kind]}" if kind in ("ms", "mbit_s") else f"{number:.0f}"


def _bytes(key: str, value: Any) -> int:
    return int(_quantity(key, value, "bytes"))


def _quantity(key: str, value: Any, kind: str) -> float:
    found = numbers([str(value)])
    if found is None or found[0] not in (kind, "number"):
        raise ConfigError(f"{key}: {value!r} is no quantity of this kind")
    return float(found[1][0])


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return " ".join(f"{key}={_word(one)}" for key, one in value.items() if one != {})
    return str(value)


def _of_host(side: str, steps: Steps, title: str) -> dict[str, str]:
    """The files for one host."""
    found = {
        "apply.sh": _apply(side, steps, title),
        "undo.sh": UNDO.replace("SIDE", side),
        "README.md": _readme(side, steps, title),
    }
    lasting = dict(steps.sysctls)
    for name, size in steps.buffers.items():
        least = {"net.ipv4.tcp_wmem": "4096 16384", "net.ipv4.tcp_rmem": "4096 131072"}[name]
        low, usual = map(int, least.split())
        lasting[name] = f"{min(low, size)} {min(usual, size)} {size}"
    if steps.qdisc in ("fq", "fq_codel"):
        lasting["net.core.default_qdisc"] = steps.qdisc
    if lasting:
        lines = "".join(f"{name} = {value}\n" for name, value in lasting.items())
        found["sysctl.d/90-tcplab.conf"] = f"# {title}\n# Copy it to /etc/sysctl.d.\n{lines}"
        found["tuned/tcplab/tuned.conf"] = (
            f"# {title}\n# Copy the folder to /etc/tuned, put the profile that is active now "
            "(tuned-adm\n# active) after include=, then: tuned-adm profile tcplab\n"
            f"[main]\nsummary={title}\ninclude=throughput-performance\n\n[sysctl]\n{lines}"
        )
    if steps.nginx:
        found["nginx.conf"] = f"# {title}\n" + "".join(f"{line}\n" for line in steps.nginx)
    if steps.haproxy:
        lines = "".join(f"    {line}\n" for line in steps.haproxy)
        found["haproxy.cfg"] = f"# {title}\nglobal\n{lines}"
    return found


def _readme(side: str, steps: Steps, title: str) -> str:
    rows = "\n".join(f"| {said} | {how} |" for said, how in steps.told)
    return f"""# {title}: at the {side}

| change | by |
|---|---|
{rows}

`sudo sh apply.sh` saves what is there, then changes it until the next boot. `sudo sh undo.sh`
restores what was saved. Changes of a route are of the default route; `PREFIX=192.0.2.0/24` names
another. `DEV=eth0` names the device; by default it is the one of that route.

Copy `sysctl.d/90-tcplab.conf`, where there is one, to `/etc/sysctl.d` if it is to last; routes and
queue disciplines last by the means of your distribution (`networkd`, NetworkManager, `ifupdown`).
"""


HEAD = """#!/bin/sh
# {title}
# At the {side}: saves what is there, then changes it. undo.sh restores it.
set -eu
STATE=${{STATE:-/var/lib/tcplab/{side}}}
PREFIX=${{PREFIX:-default}}
DEV=${{DEV:-}}
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)

say() {{ echo "apply.sh: $*" >&2; }}
[ "$(id -u)" = 0 ] || {{ say "only root can do this"; exit 1; }}
[ ! -e "$STATE" ] || {{ say "$STATE is there: it is applied already; undo.sh first"; exit 1; }}
"""

ROUTES = r"""
# The routes whose attributes change, of both families, one line each.
routes() {
    ip "$1" route show "$PREFIX" ${DEV:+dev "$DEV"} 2>/dev/null | sed 's/ linkdown//; s/ *$//'
}
# What `ip route show DEST dev DEV` leaves out is given again.
with_dev() { case "$1" in *" dev "*) echo "$1" ;; *) echo "$1 dev $DEV" ;; esac; }
for family in -4 -6; do
    found=$(routes $family)
    case "$found" in
    *nexthop*) say "the route to $PREFIX has several next hops; name another by PREFIX"; exit 1 ;;
    esac
    eval "route${family#-}=\$(printf '%s\n' \"\$found\" | head -n 1)"
done
[ -n "$route4$route6" ] || { say "there is no route to $PREFIX; name one by PREFIX"; exit 1; }
"""

DEVICE = r"""
if [ -z "$DEV" ]; then
    DEV=$(ip -4 route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p' | head -n 1)
fi
[ -n "$DEV" ] || { say "there is no default route; name the device by DEV"; exit 1; }
# The kernel's own queue discipline has the handle 0:, and comes back when another is deleted.
case "$(tc qdisc show dev "$DEV" root | head -n 1)" in
"" | *" 0: root"*) ;;
*) say "$DEV has a queue discipline that somebody set; its undo could not be exact"; exit 1 ;;
esac
"""

UNDO = r"""#!/bin/sh
# Restores what apply.sh has saved at the SIDE.
set -eu
STATE=${STATE:-/var/lib/tcplab/SIDE}
say() { echo "undo.sh: $*" >&2; }
[ "$(id -u)" = 0 ] || { say "only root can do this"; exit 1; }
[ -d "$STATE" ] || { say "there is no $STATE: nothing is applied"; exit 1; }
if [ -s "$STATE/qdisc" ]; then
    tc qdisc del dev "$(cat "$STATE/qdisc")" root 2>/dev/null || true
fi
for family in -4 -6; do
    if [ -s "$STATE/route$family" ]; then
        # The words of the route, as `ip` showed them.
        # shellcheck disable=SC2046
        ip $family route replace $(cat "$STATE/route$family")
    fi
done
if [ -s "$STATE/sysctls" ]; then
    while IFS='=' read -r name value; do sysctl -qw "$name=$value"; done <"$STATE/sysctls"
fi
if [ -s "$STATE/parameters" ]; then
    while IFS='=' read -r path value; do printf '%s\n' "$value" >"$path"; done <"$STATE/parameters"
fi
rm -r "$STATE"
say "restored"
"""


def _apply(side: str, steps: Steps, title: str) -> str:
    """The script that saves and changes."""
    title = re.sub(r"[^\x20-\x7e]", "?", title)
    return "".join(
        [HEAD.format(title=title, side=side), *_checks(steps), *_saved(steps), *_changed(steps)]
    )


def _checks(steps: Steps) -> list[str]:
    """What must be there before anything is changed."""
    parts = []
    for module in steps.modules:
        name = module.removeprefix("tcp_")
        parts.append(
            f"\n# An algorithm that is a module is loaded by its name.\n"
            f"modprobe -q {module} 2>/dev/null || true\n"
            f'case " $(sysctl -n net.ipv4.tcp_available_congestion_control) " in\n'
            f'*" {name} "*) ;;\n'
            f'*) say "this kernel has no {name}"; exit 1 ;;\nesac\n'
        )
    if names := [*steps.sysctls, *steps.buffers]:
        parts.append(
            f"for name in {' '.join(names)}; do\n"
            '    sysctl -n "$name" >/dev/null 2>&1 || { say "this kernel has no $name"; exit 1; }\n'
            "done\n"
        )
    parts += [
        f'[ -w {path} ] || {{ say "{path} cannot be written"; exit 1; }}\n' for path in steps.files
    ]
    return [*parts, *([ROUTES] if steps.route else []), *([DEVICE] if steps.qdisc else [])]


def _saved(steps: Steps) -> list[str]:
    """What is there before it is changed."""
    parts = ['\n# What is there now.\nmkdir -p "$(dirname "$STATE")"\nmkdir "$STATE"\n']
    if names := [*steps.sysctls, *steps.buffers]:
        parts.append(
            f"for name in {' '.join(names)}; do\n"
            '    echo "$name=$(sysctl -n "$name")" >>"$STATE/sysctls"\n'
            "done\n"
        )
    parts += [f'echo "{path}=$(cat {path})" >>"$STATE/parameters"\n' for path in steps.files]
    if steps.route:
        parts.append(
            "for family in -4 -6; do\n"
            '    eval "route=\\$route${family#-}"\n'
            '    [ -z "$route" ] || with_dev "$route" >"$STATE/route$family"\n'
            "done\n"
        )
    return [*parts, *(['echo "$DEV" >"$STATE/qdisc"\n'] if steps.qdisc else [])]


def _changed(steps: Steps) -> list[str]:
    """The changes."""
    parts = [
        "\n# If a step fails, those before it are undone.\n"
        'trap \'say "a step failed: all is restored"; '
        'STATE="$STATE" sh "$here/undo.sh"\' EXIT\n',
    ]
    parts += [f"sysctl -qw {name}={shlex.quote(it)}\n" for name, it in steps.sysctls.items()]
    parts += [
        f"# shellcheck disable=SC2046\nset -- $(sysctl -n {name})\n"
        f'least=$1 usual=$2\n[ "$least" -le {size} ] || least={size}\n'
        f'[ "$usual" -le {size} ] || usual={size}\n'
        f'sysctl -qw {name}="$least $usual {size}"\n'
        for name, size in steps.buffers.items()
    ]
    parts += [f"echo {shlex.quote(value)} >{path}\n" for path, value in steps.files.items()]
    if steps.route:
        attributes = " ".join(f"{name} {value}" for name, value in steps.route.items())
        without = "; ".join(rf"s/ {name} \(lock \)*[^ ]*//" for name in steps.route)
        parts.append(
            "for family in -4 -6; do\n"
            '    [ -s "$STATE/route$family" ] || continue\n'
            f"    words=$(sed '{without}' \"$STATE/route$family\")\n"
            f"    # shellcheck disable=SC2086\n    ip $family route replace $words {attributes}\n"
            "done\n"
        )
    if steps.qdisc:
        parts.append(f'tc qdisc replace dev "$DEV" root {steps.qdisc}\n')
    return [*parts, 'trap - EXIT\nsay "applied; undo.sh restores what was there"\n']
