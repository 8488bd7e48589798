"""How a running Linux applies each setting: by sysctl, by route, by queue, or in programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tcplab import _core
from tcplab._advice import _values
from tcplab._core import ConfigError

OFF = "off"


@dataclass(frozen=True)
class Change:
    """A setting with a new value."""

    key: str
    """A key of the experiment's `[stack]`, "qdisc" (the host's queue) or "queue" (the router's)."""
    value: Any
    """The new value, as experiment files write it: "bbr", 20, "16 MB", `{"kind": "fq-codel"}`."""
    before: Any
    """Today's value; nothing if it is not known."""
    side: str
    """The host that changes: "sender", "receiver" or "router"."""

    @property
    def place(self) -> str:
        """The name of the change in messages."""
        return f"{self.side}.{self.key}"


@dataclass(frozen=True)
class Destination:
    """Settings for all connections to some addresses."""

    prefix: str
    """The addresses: "192.0.2.0/24", "2001:db8::/32"."""
    name: str
    """What the files call it."""
    changes: tuple[Change, ...]
    """What is set for these connections."""


@dataclass(frozen=True)
class Sysctl:
    """A sysctl and its new value."""

    name: str
    value: str
    """The new value; of `part`, the part."""
    part: str = "whole"
    """The part that changes: "whole", "last" (the third of three numbers) or "bit" (the lowest)."""
    lasting: str = ""
    """The value in `sysctl.d`, where that has to be the whole value."""
    is_new: bool = False
    """Older kernels lack the sysctl: the line in `sysctl.d` has a minus, so that they skip it."""

    @property
    def line(self) -> str:
        """The line in `sysctl.d`."""
        return f"{'-' if self.is_new else ''}{self.name} = {self.lasting or self.value}"


@dataclass(frozen=True)
class Way:
    """How Linux applies a setting. Empty fields do not apply."""

    says: str
    """Text for the README: the line that applies the setting, or why no line can."""
    sysctls: tuple[Sysctl, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    """Attributes of routes with their values; an empty value removes the attribute."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Parameters of kernel modules: by file, the value."""
    algorithm: str = ""
    """The congestion control that the kernel must have."""
    pacing: tuple[str, ...] = ()
    """Settings of the queue `fq`, which paces; `("",)` for `fq` without settings."""
    min_rto_us: int = 0
    """The minimum RTO, for which the script chooses between the sysctl and the route."""
    program: str = ""
    """How a program applies the setting to its own sockets."""
    nginx: str = ""
    """A parameter of `listen`, or a whole directive with its semicolon."""
    haproxy: tuple[str, str] = ("", "")
    """The section ("global", "defaults" or "bind") and the line."""

    @property
    def is_applied(self) -> bool:
        """Whether the scripts apply the setting."""
        return bool(
            self.sysctls or self.routes or self.parameters or self.pacing or self.min_rto_us
        )


def way(change: Change) -> Way:
    """How Linux applies a change.

    Raises:
        ConfigError: The key is unknown, or the value is not one of an experiment file.
    """
    make = _WAYS.get(change.key)
    if make is None:
        known = ", ".join(sorted([*_WAYS, "qdisc", "queue"]))
        raise ConfigError(f"{change.place}: there is no such setting; known are {known}")
    return make(change)


def algorithm(change: Change) -> tuple[str, Mapping[str, Any]]:
    """The kernel's name of a congestion control, empty if Linux lacks it, and the parameters."""
    place, value = change.place, change.value
    given = {"name": value} if isinstance(value, str) else dict(_values.table(place, value))
    name = given.pop("name", None)
    if not isinstance(name, str) or not all(map(_values.WORD.fullmatch, name.split("/"))):
        raise _values.wrong(f"{place}.name", name, "the name of a congestion control")
    linux = _NAMES.get(name, name)
    unknown = {each.name for each in _core.algorithms()} - set(_PARAMETERS) - set(_NAMES)
    if name in unknown or "/" in name:
        return "", given
    if len(linux) > 15:
        raise _values.wrong(f"{place}.name", name, "a name of at most 15 letters, as in the kernel")
    return linux, given


def route_settings(how: Way) -> tuple[tuple[str, str], ...]:
    """The attributes of a route to one destination that apply a change."""
    made = list(how.routes)
    if how.algorithm:
        made.append(("congctl", how.algorithm))
    if how.min_rto_us:
        made.append(("rto_min", f"{milliseconds(how.min_rto_us)}ms"))
    if Sysctl("net.ipv4.tcp_ecn", "1") in how.sysctls:
        made.append(("features", "ecn"))
    return tuple(made)


_NAMES = {"newreno": "reno", "westwood+": "westwood"}
"""Congestion controls that have another name in Linux."""

# `westwood` of tcplab is the algorithm of 2002, which Linux lacks.
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "bbr": (),
    "bic": (
        "beta",
        "fast_convergence",
        "initial_ssthresh",
        "low_window",
        "max_increment",
        "smooth_part",
    ),
    "cdg": (
        "backoff_beta",
        "backoff_factor",
        "hystart_detect",
        "use_ineff",
        "use_shadow",
        "use_tolerance",
        "window",
    ),
    "cubic": (
        "beta",
        "bic_scale",
        "fast_convergence",
        "hystart",
        "hystart_ack_delta_us",
        "hystart_detect",
        "hystart_low_window",
        "initial_ssthresh",
        "tcp_friendliness",
    ),
    "dctcp": ("dctcp_alpha_on_init", "dctcp_shift_g"),
    "highspeed": (),
    "htcp": ("use_bandwidth_switch", "use_rtt_scaling"),
    "hybla": ("rtt0",),
    "illinois": ("theta", "win_thresh"),
    "lp": (),
    "nv": ("nv_min_cwnd", "nv_pad", "nv_reset_period"),
    "reno": (),
    "scalable": (),
    "vegas": ("alpha", "beta", "gamma"),
    "veno": (),
    "yeah": (),
}
"""Parameters of the kernel's congestion controls, in `/sys/module/tcp_NAME/parameters`."""


def _cc(change: Change) -> Way:
    name, parameters = algorithm(change)
    if not name:
        return Way(f"Linux has no congestion control {_shown(change.value)}.")
    files = []
    for given, written in parameters.items():
        place = f"{change.place}.{given}"
        _values.word(place, given)
        key, value = _in_kernel(name, given, written)
        if name in _PARAMETERS and key not in _PARAMETERS[name]:
            known = ", ".join(_PARAMETERS[name]) or "none"
            raise ConfigError(f"{place}: tcp_{name} has no such parameter; it has {known}")
        asked = int(value) if isinstance(value, bool) else value
        number = _values.whole(place, asked, 0, _values.MOST)
        files.append((f"/sys/module/tcp_{name}/parameters/{key}", str(number)))
    says = f"`net.ipv4.tcp_congestion_control = {name}`, for connections that begin from now on."
    says += " In a container it has to be one of `net.ipv4.tcp_allowed_congestion_control`."
    if files:
        says += f" Its parameters are files in `/sys/module/tcp_{name}/parameters`."
        says += " They hold for all connections with it, and until a reboot."
    return Way(
        says,
        sysctls=(Sysctl("net.ipv4.tcp_congestion_control", name),),
        parameters=tuple(files),
        algorithm=name,
        program=f'`setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "{name}", {len(name)})`',
        haproxy=("bind", f"cc {name}"),
    )


def _in_kernel(name: str, key: str, value: Any) -> tuple[str, Any]:
    """A parameter as the kernel has it: CUBIC's `beta` and `c` are reals in the standard, and parts
    of 1024 in the kernel.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "cubic" and is_number and key == "beta" and value <= 1:
        return key, round(1024 * value)
    if name == "cubic" and is_number and key == "c":
        # Ten of 1024 for each segment per second cubed.
        return "bic_scale", round(102.4 * value)
    if name == "cubic" and key == "tcp_friendly":
        return "tcp_friendliness", value
    return key, value


def _hystart(change: Change) -> Way:
    value = str(int(_values.truth(change.place, change.value)))
    return Way(
        "`/sys/module/tcp_cubic/parameters/hystart`, for CUBIC alone and until a reboot.",
        parameters=(("/sys/module/tcp_cubic/parameters/hystart", value),),
    )


def _sysctl(name: str, yes: str = "1", no: str = "0", more: str = "") -> Callable[[Change], Way]:
    """A boolean sysctl."""

    def make(change: Change) -> Way:
        value = yes if _values.truth(change.place, change.value) else no
        return _by_sysctl(Sysctl(name, value), more)

    return make


def _number(name: str, least: int, most: int, more: str = "") -> Callable[[Change], Way]:
    """A numeric sysctl."""

    def make(change: Change) -> Way:
        value = _values.whole(change.place, change.value, least, most)
        return _by_sysctl(Sysctl(name, str(value)), more)

    return make


def _by_sysctl(sysctl: Sysctl, more: str = "") -> Way:
    return Way(f"`{sysctl.name} = {sysctl.value}`.{more and ' ' + more}", sysctls=(sysctl,))


def _buffer(name: str, first: int, option: str) -> Callable[[Change], Way]:
    """The maximum of an autotuned buffer: the third number of `tcp_rmem` or `tcp_wmem`."""

    def make(change: Change) -> Way:
        most = _values.size(change.place, change.value)
        lasting = f"{min(4096, most)} {min(first, most)} {most}"
        says = f"The third number of `{name}` = {most} bytes; the first two stay. A program that"
        says += f" sets `{option}` has a buffer of that size instead, which does not grow."
        return Way(says, sysctls=(Sysctl(name, str(most), "last", lasting),))

    return make


def _core_buffer(name: str, option: str) -> Callable[[Change], Way]:
    def make(change: Change) -> Way:
        most = _values.size(change.place, change.value)
        return _by_sysctl(Sysctl(name, str(most)), f"It limits what `{option}` can ask for.")

    return make


def _own_buffer(option: str, nginx: str, haproxy: str) -> Callable[[Change], Way]:
    """A buffer size that a program requests."""

    def make(change: Change) -> Way:
        if change.value == OFF:
            says = f"Leave `{option}` out: the buffer then grows with the connection."
            return Way(says, program=f"no `{option}`")
        value = _values.size(change.place, change.value)
        most = f"net.core.{'r' if option == 'SO_RCVBUF' else 'w'}mem_max"
        return Way(
            f"No switch for the whole system. Linux allows at most `{most}`, and doubles it.",
            program=f"`setsockopt(fd, SOL_SOCKET, {option}, &(int){{{value}}}, sizeof(int))`,"
            " before `connect` or `listen`",
            nginx=f"{nginx}={value}",
            haproxy=("global", f"{haproxy} {value}"),
        )

    return make


def _window_clamp(change: Change) -> Way:
    if change.value == OFF:
        return _by_route("window", "", "")
    value = _values.size(change.place, change.value)
    more = f"A program sets it by `TCP_WINDOW_CLAMP`, {value}."
    return _by_route("window", str(value), more)


def _notsent_lowat(change: Change) -> Way:
    # The kernel's default is the largest number of 32 bits.
    none = 2**32 - 1
    value = none if change.value == OFF else _values.size(change.place, change.value, none)
    made = _by_sysctl(Sysctl("net.ipv4.tcp_notsent_lowat", str(value)))
    if change.value == OFF:
        return made
    return replace(
        made,
        program=f"`setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){{{value}}}, sizeof(int))`",
        haproxy=("global", f"tune.notsent-lowat.client {value}"),
    )


def _by_route(name: str, value: str, more: str) -> Way:
    done = f"`ip route change ROUTE {name} {value}`" if value else f"The route without `{name}`"
    return Way(f"{done}.{more and ' ' + more}", routes=((name, value),))


_NO_SYSCTL = "Linux has no sysctl for it."


def _initial_window(change: Change) -> Way:
    value = _values.whole(change.place, change.value, 1, 65535)
    return _by_route("initcwnd", str(value), _NO_SYSCTL)


def _initial_receive_window(change: Change) -> Way:
    if change.value == OFF:
        return _by_route("initrwnd", "", "")
    value = _values.whole(change.place, change.value, 1, 65535)
    return _by_route("initrwnd", str(value), _NO_SYSCTL)


def _min_rto(change: Change) -> Way:
    value = _values.micros(change.place, change.value, 2000)
    says = f"`net.ipv4.tcp_rto_min_us = {value}` where the kernel has it (Linux since 6.11), and"
    says += f" `ip route change ROUTE rto_min {milliseconds(value)}ms` where not. A `rto_min` that"
    says += " a route has already counts more than the sysctl."
    return Way(says, min_rto_us=value)


def milliseconds(micros: int) -> int:
    """Whole milliseconds, at least one: the unit of times in routes."""
    return max(1, micros // 1000)


def _max_rto(change: Change) -> Way:
    # Linux takes 1 s to 120 s (`tcp_rto_max_max`).
    value = _values.micros(change.place, change.value) // 1000
    if not 1000 <= value <= 120_000:
        return Way("Linux allows a maximum RTO from 1 s to 120 s.")
    name = "net.ipv4.tcp_rto_max_ms"
    return Way(
        f"`{name} = {value}` (Linux since 6.15).",
        sysctls=(Sysctl(name, str(value), is_new=True),),
    )


def _ecn(change: Change) -> Way:
    if change.value == "accurate":
        name = "net.ipv4.tcp_ecn"
        says = f"`{name} = 3`: request accurate ECN. A kernel without AccECN refuses the value, and"
        says += " `apply.sh` then undoes all changes."
        return Way(says, sysctls=(Sysctl(name, "3"),))
    return _sysctl(
        "net.ipv4.tcp_ecn",
        more="1 requests and accepts ECN, 0 does neither; the default is 2, accept only.",
    )(change)


def _delayed_ack(change: Change) -> Way:
    if change.value == OFF:
        return _by_route(
            "quickack", "1", "A program can set `TCP_QUICKACK`, but the kernel resets it."
        )
    if _values.micros(change.place, change.value) == 200_000:
        return _by_route("quickack", "", "Linux delays ACKs by 40 to 200 ms.")
    return Way(
        "Linux delays ACKs by 40 to 200 ms; a route can only disable the delay (`quickack`).",
        program="`TCP_DELACK_MAX_US`, for at most 200 ms (Linux since 6.15)",
    )


def _ack_every(change: Change) -> Way:
    value = _values.whole(change.place, change.value, 1, _values.MOST)
    if value == 1:
        return _by_route("quickack", "1", "")
    if value == 2:
        return _by_route("quickack", "", "Linux acknowledges every second full segment.")
    return Way("Linux acknowledges each segment or every second one; nothing else can be set.")


def _pacing(change: Change) -> Way:
    if not _values.truth(change.place, change.value):
        return Way(
            "Linux paces if the queue is `fq`, if the congestion control is BBR, or if a program"
            " sets `SO_MAX_PACING_RATE`. No switch disables all three: choose another `qdisc` and"
            " another `cc`, and remove `SO_MAX_PACING_RATE` from programs."
        )
    return Way(
        "The queue `fq`, which paces all TCP connections of the device. BBR paces without `fq`.",
        pacing=("",),
        program="`setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &(unsigned){~0U - 1}, 4)`",
    )


def _max_pacing_rate(change: Change) -> Way:
    if change.value == OFF:
        says = "The queue `fq` without `maxrate`; programs leave `SO_MAX_PACING_RATE` out."
        return Way(says, program="no `SO_MAX_PACING_RATE`")
    rate = _values.bits_per_second(change.place, change.value)
    return Way(
        f"The queue `fq` with `maxrate {rate}bit`, for each flow of the device, headers included.",
        pacing=(f"maxrate {rate}bit",),
        program=f"`setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &(unsigned){{{rate // 8}}}, 4)`,"
        " in bytes a second",
    )


def _rack(change: Change) -> Way:
    value = str(int(_values.truth(change.place, change.value)))
    name = "net.ipv4.tcp_recovery"
    says = f"The lowest bit of `{name}` = {value}. Linux 6.17 and later always uses RACK."
    return Way(says, sysctls=(Sysctl(name, value, "bit"),))


def _mtu_probing(change: Change) -> Way:
    choices = {"off": "0", "on-black-hole": "1", "always": "2"}
    value = _values.choice(change.place, change.value, choices)
    return _by_sysctl(Sysctl("net.ipv4.tcp_mtu_probing", value))


def _fast_open(change: Change) -> Way:
    on = _values.truth(change.place, change.value)
    value = "3" if on else "0"
    made = _by_sysctl(Sysctl("net.ipv4.tcp_fastopen", value))
    if not on:
        return made
    return replace(
        made,
        says=f"{made.says} Programs must also enable Fast Open on their sockets.",
        program="`TCP_FASTOPEN` with the length of the queue before `listen`,"
        " `TCP_FASTOPEN_CONNECT` before `connect`",
        nginx="fastopen=256",
        haproxy=("bind", "tfo"),
    )


def _nagle(change: Change) -> Way:
    on = _values.truth(change.place, change.value)
    return Way(
        "No switch for the whole system.",
        program=f"`setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){{{int(not on)}}}, sizeof(int))`",
        nginx=f"tcp_nodelay {'off' if on else 'on'};",
    )


def _user_timeout(change: Change) -> Way:
    if change.value == OFF:
        return Way("Programs leave `TCP_USER_TIMEOUT` out.", program="no `TCP_USER_TIMEOUT`")
    value = milliseconds(_values.micros(change.place, change.value))
    option = "TCP_USER_TIMEOUT"
    return Way(
        "No switch for the whole system.",
        program=f"`setsockopt(fd, IPPROTO_TCP, {option}, &(int){{{value}}}, sizeof(int))`",
        haproxy=("bind", f"tcp-ut {value}"),
    )


def _keepalive(change: Change) -> Way:
    if change.value == OFF:
        return Way("Programs leave `SO_KEEPALIVE` out.", program="no `SO_KEEPALIVE`")
    given = {"idle": "7200 s", "interval": "75 s", "probes": 9}
    for key, value in _values.table(change.place, change.value).items():
        if key not in given:
            raise ConfigError(f"{change.place}.{key}: keepalive has {', '.join(given)}")
        given[key] = value
    place = change.place
    times = [_values.micros(f"{place}.{key}", given[key], 32767) for key in ("idle", "interval")]
    idle, interval = (max(1, micros // 1_000_000) for micros in times)
    probes = _values.whole(f"{place}.probes", given["probes"], 1, 127)
    sysctls = (
        Sysctl("net.ipv4.tcp_keepalive_time", str(idle)),
        Sysctl("net.ipv4.tcp_keepalive_intvl", str(interval)),
        Sysctl("net.ipv4.tcp_keepalive_probes", str(probes)),
    )
    lines = ", ".join(f"`{each.name} = {each.value}`" for each in sysctls)
    return Way(
        f"{lines}, for sockets with `SO_KEEPALIVE`, which programs have to set.",
        sysctls=sysctls,
        program="`setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int))`",
        nginx=f"so_keepalive={idle}s:{interval}s:{probes}",
        haproxy=("defaults", "option clitcpka"),
    )


def _mss(change: Change) -> Way:
    # Linux takes 88 B and more (`TCP_MIN_MSS`).
    value = _values.whole(change.place, change.value, 88, 65495)
    program = f"`setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &(int){{{value}}}, sizeof(int))`"
    haproxy = ("bind", f"mss {value}")
    if change.side == "receiver":
        made = _by_route("advmss", str(value), "It limits the segments that arrive here.")
        return replace(made, program=program, haproxy=haproxy)
    return Way(
        "No switch for the segments that a host sends: a route with `advmss` limits those that it"
        " receives, so that the other end can set it.",
        program=program,
        haproxy=haproxy,
    )


def _never(says: str) -> Callable[[Change], Way]:
    return lambda _change: Way(says)


_NO_SWITCH = "The kernel has no switch for this behaviour."

_WAYS: dict[str, Callable[[Change], Way]] = {
    "cc": _cc,
    "hystart": _hystart,
    "initial_window": _initial_window,
    "initial_receive_window": _initial_receive_window,
    "rmem": _buffer("net.ipv4.tcp_rmem", 131_072, "SO_RCVBUF"),
    "wmem": _buffer("net.ipv4.tcp_wmem", 16_384, "SO_SNDBUF"),
    "rmem_max": _core_buffer("net.core.rmem_max", "SO_RCVBUF"),
    "wmem_max": _core_buffer("net.core.wmem_max", "SO_SNDBUF"),
    "so_rcvbuf": _own_buffer("SO_RCVBUF", "rcvbuf", "tune.rcvbuf.client"),
    "so_sndbuf": _own_buffer("SO_SNDBUF", "sndbuf", "tune.sndbuf.client"),
    "window_clamp": _window_clamp,
    "notsent_lowat": _notsent_lowat,
    "app_win": _number("net.ipv4.tcp_app_win", 0, 31),
    "restart_after_idle": _sysctl("net.ipv4.tcp_slow_start_after_idle"),
    "min_rto": _min_rto,
    "max_rto": _max_rto,
    "rack": _rack,
    "tlp": _sysctl("net.ipv4.tcp_early_retrans", "3"),
    "frto": _sysctl("net.ipv4.tcp_frto", "2"),
    "ecn": _ecn,
    "pacing": _pacing,
    "max_pacing_rate": _max_pacing_rate,
    "sack": _sysctl("net.ipv4.tcp_sack"),
    "dsack": _sysctl("net.ipv4.tcp_dsack"),
    "timestamps": _sysctl("net.ipv4.tcp_timestamps"),
    "window_scaling": _sysctl("net.ipv4.tcp_window_scaling"),
    "fast_open": _fast_open,
    "delayed_ack": _delayed_ack,
    "ack_every": _ack_every,
    "mtu_probing": _mtu_probing,
    "dup_thresh": _number("net.ipv4.tcp_reordering", 1, 127),
    "syn_retries": _number("net.ipv4.tcp_syn_retries", 1, 127),
    "syn_linear_timeouts": _number(
        "net.ipv4.tcp_syn_linear_timeouts", 0, 127, "Linux since 6.5 has it."
    ),
    "syn_ack_retries": _number("net.ipv4.tcp_synack_retries", 0, 255),
    "retries": _number("net.ipv4.tcp_retries2", 0, 255),
    "user_timeout": _user_timeout,
    "keepalive": _keepalive,
    "nagle": _nagle,
    "mss": _mss,
    "quick_ack": _never(
        "Linux acknowledges about the first 16 segments at once, and has no switch for that number;"
        ' `delayed_ack = "off"` acknowledges all of them at once.'
    ),
    "initial_rto": _never("The initial RTO of Linux is 1 s; there is no switch."),
    "tso": _never(
        "A property of the device, not of TCP: `ethtool -K DEV tso on` or `off`. These files leave"
        " it alone."
    ),
    "mem": _never(
        "`net.ipv4.tcp_mem` holds it, in pages, for all programs and containers of the machine."
        " These files leave it alone: a value that is too small stops all connections."
    ),
    "path_mtu": _never(
        "Routes can hold an MTU (`mtu lock`), but only for a destination whose MTU is known."
    ),
    "fack": _never("Linux removed FACK in 4.15; `net.ipv4.tcp_fack` has no effect."),
    "time_wait": _never("60 s, compiled into Linux (`TCP_TIMEWAIT_LEN`)."),
    **{
        key: _never(_NO_SWITCH)
        for key in (
            "profile",
            "flavour",
            "recovery",
            "abc",
            "limited_transmit",
            "reduction",
            "undo",
            "cut_base",
        )
    },
}


def _shown(value: object) -> str:
    """The name of a congestion control, for a sentence."""
    name = value.get("name") if isinstance(value, Mapping) else value
    return f"`{name}`"
