"""A BPF program that sets options of connections by the address of their peer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network

from tcplab._advice import _values
from tcplab._advice._scripts import filled, shell
from tcplab._advice._settings import OFF, Change, algorithm, milliseconds
from tcplab._core import ConfigError

Network = IPv4Network | IPv6Network

MOST = 256
"""The most destinations of a program: the range of jumps in BPF is 16 bits."""

UNLIMITED = 2**32 - 2
"""The pacing rate, in bytes a second, that enables pacing without a limit; 2^32 - 1 disables it."""


@dataclass(frozen=True)
class Option:
    """How the program applies a change. Empty fields do not apply."""

    begins: str = ""
    """The statement for the begin of a connection."""
    established: str = ""
    """The statement for an established connection."""
    offers: str = ""
    """The statement for the choice of the initial receive window."""
    says: str = ""
    """The name of the option."""
    needs: tuple[str, ...] = field(default=())
    """Lines of `load.sh`."""


def files(
    destinations: Sequence[tuple[Network, str, Sequence[Change]]], *, title: str, name: str
) -> dict[str, str]:
    """`sockops.c`, `load.sh` and `unload.sh`; nothing if no change is a socket option.

    Raises:
        ConfigError: There are more destinations than a program holds.
    """
    bodies: dict[str, int] = {}
    cases: dict[Network, tuple[int, str]] = {}
    needs: list[str] = []
    # A prefix without options still excludes its addresses from a shorter prefix.
    for network, said, changes in destinations:
        options = [option for change in changes if (option := _option(change)) is not None]
        needs += [line for option in options for line in option.needs]
        number = bodies.setdefault(_body(options), len(bodies) + 1)
        cases[network] = number, _comment(said)
    if not any(bodies):
        return {}
    if len(cases) > MOST:
        raise ConfigError(f"{len(cases)} destinations: a BPF program holds {MOST} at most")
    texts = {
        "@TITLE@": _comment(title),
        "@STATE@": f"/var/lib/tcplab/{name}-sockops",
        "@NAME@": f"tcplab_{name.replace('-', '_')}",
        "@COMMON@": shell("common.sh").split("\n# edited ", 1)[0].rstrip(),
        "@NEEDS@": "\n".join(dict.fromkeys(needs)) or ":",
        "@FUNCTIONS@": _functions(cases, any("cc(ops" in body for body in bodies)),
        "@CASES@": "\n".join(
            f"    case {number}:\n{body}        break;" for body, number in bodies.items()
        ),
    }
    return {it: filled(shell(it), texts) for it in ("load.sh", "sockops.c", "unload.sh")}


def can(change: Change) -> bool:
    """Whether the program can apply a change."""
    return _option(change) is not None


def about(change: Change) -> str:
    """The option that applies a change, for a table."""
    option = _option(change)
    return f"`{option.says}`" if option is not None else "no"


def _option(change: Change) -> Option | None:
    make = _OPTIONS.get(change.key)
    return None if make is None or change.value == OFF else make(change)


def _cc(change: Change) -> Option | None:
    name, _ = algorithm(change)
    needs = (f"need_algorithm {name}",)
    made = Option(f'cc(ops, "{name}");', says=f"TCP_CONGESTION {name}", needs=needs)
    return made if name else None


def _initial_window(change: Change) -> Option:
    value = _values.whole(change.place, change.value, 1, 65535)
    return Option(established=_set("SOL_TCP", "TCP_BPF_IW", value), says=f"TCP_BPF_IW {value}")


def _initial_receive_window(change: Change) -> Option:
    value = _values.whole(change.place, change.value, 1, 65535)
    return Option(offers=f"ops->reply = {value};", says=f"BPF_SOCK_OPS_RWND_INIT {value}")


def _time(option: str) -> Callable[[Change], Option | None]:
    """A time of at most 200 ms, the default of both options: Linux refuses longer ones."""

    def make(change: Change) -> Option | None:
        micros = _values.micros(change.place, change.value)
        return _tcp(option, micros) if micros <= 200_000 else None

    return make


def _buffer(letter: str, *, doubled: bool) -> Callable[[Change], Option]:
    """A socket buffer. Linux doubles the requested size, for the overhead of packets."""
    option = {"w": "SO_SNDBUF", "r": "SO_RCVBUF"}[letter]

    def make(change: Change) -> Option:
        size = _values.size(change.place, change.value)
        size = max(1, size // 2) if doubled else size
        needs = (f"need_most net.core.{letter}mem_max {size}",)
        return Option(_set("SOL_SOCKET", option, size), says=f"{option} {size}", needs=needs)

    return make


def _max_pacing_rate(change: Change) -> Option:
    rate = min(_values.bits_per_second(change.place, change.value) // 8, UNLIMITED)
    return _pace(rate)


def _pacing(change: Change) -> Option | None:
    return _pace(UNLIMITED) if _values.truth(change.place, change.value) else None


def _pace(rate: int) -> Option:
    option = "SO_MAX_PACING_RATE"
    return Option(_set("SOL_SOCKET", option, rate), says=f"{option} {rate}")


def _size(option: str) -> Callable[[Change], Option]:
    return lambda change: _tcp(option, _values.size(change.place, change.value))


def _user_timeout(change: Change) -> Option:
    micros = _values.micros(change.place, change.value)
    return _tcp("TCP_USER_TIMEOUT", milliseconds(micros))


def _nagle(change: Change) -> Option:
    return _tcp("TCP_NODELAY", int(not _values.truth(change.place, change.value)))


_OPTIONS: dict[str, Callable[[Change], Option | None]] = {
    "cc": _cc,
    "initial_window": _initial_window,
    "initial_receive_window": _initial_receive_window,
    "min_rto": _time("TCP_BPF_RTO_MIN"),
    "delayed_ack": _time("TCP_BPF_DELACK_MAX"),
    "so_sndbuf": _buffer("w", doubled=False),
    "so_rcvbuf": _buffer("r", doubled=False),
    "wmem": _buffer("w", doubled=True),
    "rmem": _buffer("r", doubled=True),
    "max_pacing_rate": _max_pacing_rate,
    "pacing": _pacing,
    "notsent_lowat": _size("TCP_NOTSENT_LOWAT"),
    "window_clamp": _size("TCP_WINDOW_CLAMP"),
    "user_timeout": _user_timeout,
    "nagle": _nagle,
}


def _tcp(option: str, value: int) -> Option:
    return Option(_set("SOL_TCP", option, value), says=f"{option} {value}")


def _set(level: str, option: str, value: int) -> str:
    return f"set(ops, {level}, {option}, {value}u);"


def _body(options: Sequence[Option]) -> str:
    """The statements of a destination."""
    text = ""
    for moment in ("begins", "established", "offers"):
        statements = [line for option in options if (line := getattr(option, moment))]
        if statements:
            lines = "".join(f"            {line}\n" for line in statements)
            text += f"        if ({moment}) {{\n{lines}        }}\n"
    return text


def _functions(cases: dict[Network, tuple[int, str]], names: bool) -> str:
    """C functions that find the destination of a connection: the longest prefix first."""
    ordered = sorted(cases, key=lambda it: (-it.prefixlen, it.network_address.packed))
    ipv4 = [network for network in ordered if isinstance(network, IPv4Network)]
    ipv6 = [network for network in ordered if isinstance(network, IPv6Network)]
    text = ""
    if names:
        text += _NAMES + "\n"
    parts: list[tuple[str, str, Sequence[Network], int]] = [
        ("ipv4", "__u32 a", ipv4, 1),
        ("ipv6", "__u32 a, __u32 b, __u32 c, __u32 d", ipv6, 4),
    ]
    for function, arguments, networks, words in parts:
        if networks:
            text += f"INLINE int {function}({arguments})\n{{\n"
            for network in networks:
                number, said = cases[network]
                text += f"    // {network}: {said}\n"
                text += f"    if ({_matches(network, words)})\n        return {number};\n"
            text += "    return 0;\n}\n\n"
    return text + _DESTINATION.format(
        ipv4=_IPV4 if ipv4 else "",
        mapped=_MAPPED if ipv4 else "",
        ipv6=_IPV6 if ipv6 else "",
    )


_NAMES = """\
// Sets the congestion control. The name is padded with zeros.
#define cc(ops, name)                                                    \\
    do {                                                                 \\
        char text[16] = name;                                            \\
        set_option(ops, SOL_TCP, TCP_CONGESTION, text, sizeof(text));    \\
    } while (0)
"""

_DESTINATION = """\
// The number of the destination, or 0.
INLINE int destination(struct bpf_sock_ops *ops)
{{
{ipv4}    if (ops->family == IPV6) {{
        __u32 a = ops->remote_ip6[0], b = ops->remote_ip6[1];
        __u32 c = ops->remote_ip6[2], d = ops->remote_ip6[3];
{mapped}{ipv6}    }}
    return 0;
}}"""

_IPV4 = """\
    if (ops->family == IPV4)
        return ipv4(ops->remote_ip4);
"""

_MAPPED = """\
        // IPv4 by a socket of IPv6.
        if (a == 0 && b == 0 && c == NET(0xffff))
            return ipv4(d);
"""

_IPV6 = """\
        return ipv6(a, b, c, d);
"""


def _matches(network: Network, words: int) -> str:
    """The condition that an address is one of a prefix, word by word."""
    address, mask = int(network.network_address), int(network.netmask)
    conditions = []
    for place, name in enumerate("abcd"[:words]):
        shift = 32 * (words - 1 - place)
        bits, covered = (number >> shift & 0xFFFF_FFFF for number in (address, mask))
        if covered == 0xFFFF_FFFF:
            conditions.append(f"{name} == NET({bits:#010x})")
        elif covered:
            conditions.append(f"(({name} & NET({covered:#010x})) == NET({bits:#010x}))")
    return " && ".join(conditions)


def _comment(text: str) -> str:
    """Text for a comment of one line. A trailing backslash would join the next line."""
    return "".join(each if each.isprintable() else " " for each in text).replace("\\", "/").strip()
