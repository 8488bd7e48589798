"""Settings for each connection by where it goes: as routes, and as a program at its socket (BPF
sockops), with the scripts that put them in and take them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from tcplab._advice.applied import KERNEL_NAMES
from tcplab._advice.levers import Candidate
from tcplab._core import ConfigError
from tcplab._quantities import numbers

Prefix = IPv4Network | IPv6Network
Settings = Sequence[tuple[Prefix, Candidate]]


def files(several: Settings, *, title: str) -> dict[str, str]:
    """By path, the text of each file. Prefixes without settings stay as they are."""
    title = re.sub(r"[^\x20-\x7e]|\*/", "?", title)
    told = [(prefix, one) for prefix, one in several if one.settings]
    if not told:
        return {}
    return {
        "routes/apply.sh": _routes(told, title),
        "routes/undo.sh": UNDO_ROUTES,
        "sockops/tcplab_sockops.c": program(told, title),
        "sockops/load.sh": LOAD.replace("WMEM", str(_most_sndbuf(told))),
        "sockops/unload.sh": UNLOAD,
    }


def _kernel_name(value: Any) -> str:
    name = str(value.get("name") if isinstance(value, Mapping) else value).split("/")[0]
    name = KERNEL_NAMES.get(name, name)
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,14}", name):
        raise ConfigError(f"cc: {name!r} is no name of a congestion control of Linux")
    return name


def _quantity(value: Any, kind: str) -> float:
    found = numbers([str(value)])
    if found is None or found[0] != kind:
        raise ConfigError(f"{value!r} is no quantity of this kind")
    return float(found[1][0])


# Routes.

ROUTES = r"""#!/bin/sh
# TITLE
# Saves the routes to these prefixes, then gives them settings. undo.sh restores them.
set -eu
STATE=${STATE:-/var/lib/tcplab/routes}
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
say() { echo "apply.sh: $*" >&2; }
[ "$(id -u)" = 0 ] || { say "only root can do this"; exit 1; }
[ ! -e "$STATE" ] || { say "$STATE is there: it is applied already; undo.sh first"; exit 1; }
mkdir -p "$(dirname "$STATE")"
mkdir "$STATE"
trap 'say "a step failed: all is restored"; STATE="$STATE" sh "$here/undo.sh"' EXIT

# An algorithm that is a module is loaded by its name: a route to one that is not there is refused.
algorithm() {
    modprobe -q "tcp_$1" 2>/dev/null || true
    case " $(sysctl -n net.ipv4.tcp_available_congestion_control) " in
    *" $1 "*) ;;
    *) say "this kernel has no $1"; exit 1 ;;
    esac
}

# A route of its own for a prefix, by the way that its packets take now.
route() {
    family=$1 prefix=$2 attributes=$3 names=$4
    was=$(ip "$family" route show exact "$prefix" | sed 's/ linkdown//' | head -n 1)
    if [ -n "$was" ]; then
        echo "replace $family $was" >>"$STATE/routes"
        words=$was
        for name in $names; do
            words=$(echo "$words" | sed "s/ $name \(lock \)*[^ ]*//")
        done
    else
        way=$(ip "$family" route get "${prefix%/*}" | head -n 1)
        via=$(echo "$way" | sed -n 's/.* via \([^ ]*\).*/via \1/p')
        dev=$(echo "$way" | sed -n 's/.* dev \([^ ]*\).*/dev \1/p')
        words="$prefix $via $dev"
        echo "delete $family $words" >>"$STATE/routes"
    fi
    # shellcheck disable=SC2086
    ip "$family" route replace $words $attributes
}

"""

UNDO_ROUTES = r"""#!/bin/sh
# Restores the routes that apply.sh has saved.
set -eu
STATE=${STATE:-/var/lib/tcplab/routes}
say() { echo "undo.sh: $*" >&2; }
[ "$(id -u)" = 0 ] || { say "only root can do this"; exit 1; }
[ -d "$STATE" ] || { say "there is no $STATE: nothing is applied"; exit 1; }
if [ -s "$STATE/routes" ]; then
    while read -r what family words; do
        # The words of the route, as `ip` showed them.
        # shellcheck disable=SC2086
        case $what in
        replace) ip "$family" route replace $words ;;
        delete) ip "$family" route del $words 2>/dev/null || true ;;
        esac
    done <"$STATE/routes"
fi
rm -r "$STATE"
say "restored"
"""


def _routes(told: Settings, title: str) -> str:
    lines = []
    algorithms = []
    for prefix, one in told:
        attributes = []
        for setting in one.settings:
            if setting.key == "cc":
                name = _kernel_name(setting.value)
                algorithms.append(f"algorithm {name}\n")
                attributes.append(f"congctl {name}")
            elif setting.key == "initial_window":
                attributes.append(f"initcwnd {int(setting.value)}")
            elif setting.key == "min_rto":
                attributes.append(f"rto_min {_quantity(setting.value, 'ms'):g}ms")
            else:
                lines.append(f"# {prefix}: no route sets {setting.key}; the program does.\n")
        if attributes:
            family = f"-{prefix.version}"
            names = " ".join(one.split()[0] for one in attributes)
            lines.append(f'route {family} {prefix} "{" ".join(attributes)}" "{names}"\n')
    head = ROUTES.replace("TITLE", title)
    end = 'trap - EXIT\nsay "applied; undo.sh restores what was there"\n'
    return head + "".join([*dict.fromkeys(algorithms), *lines, end])


# The program at the socket.

PROGRAM = """/* TITLE
 *
 * Sets congestion control, send buffer, initial window and least timeout of each connection by the
 * address of its peer, when it begins: the longest prefix counts. load.sh attaches it to a cgroup.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#define SECTION(name) __attribute__((section(name), used))

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK(word) __builtin_bswap32(word)
#else
#define NETWORK(word) (word)
#endif

#define FAMILY_IPV4 2

static long (*set_option)(void *context, int level, int option, void *value, int length) =
    (void *)BPF_FUNC_setsockopt;

#define LEVEL_SOCKET 1
#define LEVEL_TCP 6
#define SEND_BUFFER 7
#define CONGESTION 13

static inline void set_int(struct bpf_sock_ops *connection, int level, int option, int value)
{
    set_option(connection, level, option, &value, sizeof(value));
}

/* The peer's address in the order of the host. Each word is read once, where it stands: the kernel
 * refuses computed places.
 */
struct peer {
    __u32 is_ipv4;
    __u32 word[4]; /* of IPv4 the first */
};

#define WORD(field) NETWORK(*(volatile __u32 *)&connection->field)

static inline struct peer peer_of(struct bpf_sock_ops *connection)
{
    struct peer peer = {};
    __u32 family = *(volatile __u32 *)&connection->family;
    __u32 one = WORD(remote_ip6[0]), two = WORD(remote_ip6[1]);
    __u32 three = WORD(remote_ip6[2]), four = WORD(remote_ip6[3]);

    if (family == FAMILY_IPV4) {
        peer.is_ipv4 = 1;
        peer.word[0] = WORD(remote_ip4);
    } else if (one == 0 && two == 0 && three == 0xffff) {
        /* An IPv4 peer of an IPv6 socket: ::ffff:a.b.c.d. */
        peer.is_ipv4 = 1;
        peer.word[0] = four;
    } else {
        peer.word[0] = one;
        peer.word[1] = two;
        peer.word[2] = three;
        peer.word[3] = four;
    }
    return peer;
}

SECTION("sockops")
int tcplab_sockops(struct bpf_sock_ops *connection)
{
    __u32 op = connection->op;

    switch (op) {
    case BPF_SOCK_OPS_TCP_CONNECT_CB:
    case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
    case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
        break;
    default:
        return 1;
    }
    /* The initial window counts once data may leave. */
    int is_open = op != BPF_SOCK_OPS_TCP_CONNECT_CB;
    struct peer peer = peer_of(connection);

CASES    return 1;
}

char licence[] SECTION("license") = "Dual MIT/GPL";
"""


def program(told: Settings, title: str) -> str:
    """The program in C."""
    ordered = sorted(told, key=lambda one: -one[0].prefixlen)
    cases = "".join(_case(prefix, one) for prefix, one in ordered)
    return PROGRAM.replace("TITLE", title).replace("CASES", cases)


def _case(prefix: Prefix, candidate: Candidate) -> str:
    lines = [f"    /* {prefix}: {_plain(candidate.name)} */\n    if ({_is_in(prefix)}) {{\n"]
    for setting in candidate.settings:
        if setting.key == "cc":
            name = _kernel_name(setting.value)
            lines.append(
                f'        char name[] = "{name}";\n'
                "        set_option(connection, LEVEL_TCP, CONGESTION, name, sizeof(name));\n"
            )
        elif setting.key == "initial_window":
            lines.append(
                "        if (is_open)\n            set_int(connection, LEVEL_TCP, TCP_BPF_IW, "
                f"{int(setting.value)});\n"
            )
        elif setting.key == "min_rto":
            micros = round(1000 * _quantity(setting.value, "ms"))
            lines.append(f"        set_int(connection, LEVEL_TCP, TCP_BPF_RTO_MIN, {micros});\n")
        elif setting.key == "so_sndbuf" and setting.value != "off":
            size = round(_quantity(setting.value, "bytes"))
            lines.append(f"        set_int(connection, LEVEL_SOCKET, SEND_BUFFER, {size});\n")
    return "".join([*lines, "        return 1;\n    }\n"])


def _plain(text: str) -> str:
    return re.sub(r"[^\x20-\x7e]|\*/", "?", text)


def _is_in(prefix: Prefix) -> str:
    words = 1 if isinstance(prefix, IPv4Network) else 4
    parts = ["peer.is_ipv4" if words == 1 else "!peer.is_ipv4"]
    for number in range(words):
        shift = 32 * (words - 1 - number)
        mask = (int(prefix.netmask) >> shift) & 0xFFFFFFFF
        address = (int(prefix.network_address) >> shift) & 0xFFFFFFFF
        if mask:
            parts.append(f"(peer.word[{number}] & {mask:#010x}) == {address:#010x}")
    return " &&\n        ".join(parts)


def _most_sndbuf(told: Settings) -> int:
    """The largest send buffer that the program asks for, which the host must allow."""
    sizes = [
        round(_quantity(setting.value, "bytes"))
        for _, one in told
        for setting in one.settings
        if setting.key == "so_sndbuf" and setting.value != "off"
    ]
    return max(sizes, default=0)


LOAD = r"""#!/bin/sh
# Compiles the program, loads it and attaches it to a cgroup: connections of its processes that
# begin from then on have the settings. unload.sh takes it out. CGROUP names another than the root.
set -eu
STATE=${STATE:-/var/lib/tcplab/sockops}
PIN=${PIN:-/sys/fs/bpf/tcplab_sockops}
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
say() { echo "load.sh: $*" >&2; }
[ "$(id -u)" = 0 ] || { say "only root can do this"; exit 1; }
[ ! -e "$STATE" ] || { say "$STATE is there: it is loaded already; unload.sh first"; exit 1; }
for tool in clang bpftool; do
    command -v $tool >/dev/null || { say "$tool is missing"; exit 1; }
done
CGROUP=${CGROUP:-$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)}
[ -n "$CGROUP" ] || { say "there is no cgroup2; name one by CGROUP"; exit 1; }
object=$(mktemp)
trap 'rm -f "$object"' EXIT
# Where Debian has the headers of the machine.
clang -O2 -Wall -target bpf -I"/usr/include/$(uname -m)-linux-gnu" \
    -c "$here/tcplab_sockops.c" -o "$object"
mkdir -p "$(dirname "$STATE")"
mkdir "$STATE"
undo() {
    rm -f "$object"
    say "a step failed: all is restored"
    STATE="$STATE" PIN="$PIN" sh "$here/unload.sh"
}
trap undo EXIT
echo "$CGROUP" >"$STATE/cgroup"
# What a program of the kernel asks for is what the host allows at most.
if [ WMEM -gt "$(sysctl -n net.core.wmem_max)" ]; then
    sysctl -n net.core.wmem_max >"$STATE/wmem_max"
    sysctl -qw net.core.wmem_max=WMEM
fi
bpftool prog load "$object" "$PIN"
rm -f "$object"
bpftool cgroup attach "$CGROUP" sock_ops pinned "$PIN" multi
trap - EXIT
say "loaded; unload.sh takes it out"
"""

UNLOAD = r"""#!/bin/sh
# Detaches and unloads the program that load.sh has loaded. Connections keep what they have.
set -eu
STATE=${STATE:-/var/lib/tcplab/sockops}
PIN=${PIN:-/sys/fs/bpf/tcplab_sockops}
say() { echo "unload.sh: $*" >&2; }
[ "$(id -u)" = 0 ] || { say "only root can do this"; exit 1; }
[ -d "$STATE" ] || { say "there is no $STATE: nothing is loaded"; exit 1; }
if [ -e "$PIN" ]; then
    bpftool cgroup detach "$(cat "$STATE/cgroup")" sock_ops pinned "$PIN" 2>/dev/null || true
    rm -f "$PIN"
fi
if [ -s "$STATE/wmem_max" ]; then
    sysctl -qw net.core.wmem_max="$(cat "$STATE/wmem_max")"
fi
rm -r "$STATE"
say "restored"
"""
