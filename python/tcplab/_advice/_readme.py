"""The README files: which line applies which change, and which changes no line can apply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from tcplab._advice import sockops
from tcplab._advice._settings import Change, Destination, Way, route_settings


@dataclass(frozen=True)
class Target:
    """A destination, and how its changes are applied."""

    destination: Destination
    network: IPv4Network | IPv6Network
    words: str
    """The prefix as `ip` writes it."""
    changes: tuple[tuple[Change, Way], ...]


def of_side(
    title: str, side: str, ways: Sequence[tuple[Change, Way]], made: Mapping[str, str], name: str
) -> str:
    """`README.md` of a folder."""
    applied = [(change, how) for change, how in ways if how.is_applied]
    by_program = [(change, how) for change, how in ways if how.program]
    never = [(change, how) for change, how in ways if not how.is_applied and not how.program]
    text = f"# {_text(title)}: the {side}\n"
    if applied:
        text += "\n## What `apply.sh` changes\n\n" + _table(applied)
        text += _APPLYING.format(name=name)
        if any(how.routes or how.min_rto_us for _, how in applied):
            text += _ABOUT_ROUTES
        if any(how.pacing for _, how in applied):
            text += _ABOUT_QUEUES
            text += _ABOUT_ROUTERS if side == "router" else _ABOUT_HARDWARE
    if by_program:
        text += "\n## What programs set on their own sockets\n\n"
        for change, how in by_program:
            says = f" {how.says}" if not how.is_applied else ""
            text += f"- `{change.key}`, {_change(change)}:{says} In a program: {how.program}.\n"
        snippets = [file for file in ("nginx.conf", "haproxy.cfg") if file in made]
        if snippets:
            text += f"\n{' and '.join(f'`{file}`' for file in snippets)}: the same for these"
            text += " servers, as far as they have a directive.\n"
    if never:
        text += "\n## What cannot be set on a running Linux\n\n"
        text += "".join(f"- `{each.key}`, {_change(each)}: {how.says}\n" for each, how in never)
    if lasting := made.get("sysctl.d/90-tcplab.conf"):
        text += _LASTING
        if "net.core.default_qdisc" in lasting:
            text += "\n`net.core.default_qdisc` is for devices that come up from then on.\n"
    if applied:
        text += _NOT_LASTING
    return text


_APPLYING = """
```console
$ sh apply.sh --dry-run
# sh apply.sh
# sh undo.sh
```

With `--dry-run` either script prints the steps that it would take, takes none, and needs no root.

`apply.sh` saves the current values in `/var/lib/tcplab/{name}` (`STATE` names another folder)
before it changes anything, and undoes all changes if a step fails. `undo.sh` restores what was
saved. Connections that are open keep most of what they began with. Of several sets of files on one
machine, undo the last one first.
"""

_ABOUT_ROUTES = """
Settings of routes hold for all connections over the default route and its device (`DEV`), wherever
they go; `ROUTE=192.0.2.0/24 sh apply.sh` changes another route, which must exist. Routes that
router advertisements renew (IPv6) are left alone, because the kernel would bring them back; so are
routes that name nexthop objects. A DHCP client (`proto dhcp`) may write its route anew at a
renewal, which then has no settings.
"""

_ABOUT_QUEUES = """
The queue is that of the device of the default route; `DEV=eth1 sh apply.sh` names another one. A
queue with classes, or one that `tc` cannot show in full, is refused, because `undo.sh` could not
rebuild it.
"""

_ABOUT_HARDWARE = """
A device with several hardware queues (`mq`) gets one such queue for each of them, or a single one
with `ONE_QUEUE=yes`.
"""

_ABOUT_ROUTERS = """
A queue discipline matters where packets wait: on the device before the slowest
link, and only if that device has the rate of the link. Where a modem behind it is slower, shape
below the rate of the modem (`cake` with a `rate`, or `tbf`).
"""

_LASTING = """
## Over reboots

`sysctl.d/90-tcplab.conf` has what sysctl can hold:

```console
# cp sysctl.d/90-tcplab.conf /etc/sysctl.d/
# sysctl --system
```

`rm /etc/sysctl.d/90-tcplab.conf` undoes this from the next boot on. A line with a minus is skipped
by kernels that lack the sysctl. The first two of three numbers there are the kernel's own. If TuneD
runs, use a profile on top of the active one instead (newer versions of TuneD have
`/etc/tuned/profiles/tcplab`):

```console
# mkdir -p /etc/tuned/tcplab
# sed "s/^include=.*/include=$(cat /etc/tuned/active_profile)/" tuned/tcplab/tuned.conf \\
    >/etc/tuned/tcplab/tuned.conf
# tuned-adm profile tcplab
```
"""

_NOT_LASTING = """
Routes, queues of devices and parameters of modules do not last over a reboot: set them where the
network is configured, or run `apply.sh` at boot. In that case leave out `sysctl.d`: `apply.sh`
would save what that has set already, and `undo.sh` would restore it.
"""


def of_destinations(title: str, targets: Sequence[Target]) -> str:
    """`README.md` of settings by destination."""
    text = f"# {_text(title)}: by destination\n" + _TWO_WAYS
    for target in targets:
        text += f"\n## {_text(target.destination.name)}: {target.network}\n\n"
        text += (
            "| setting | in the experiment | now | `routes` | `sockops` |\n|---|---|---|---|---|\n"
        )
        for change, how in target.changes:
            routes = route_settings(how)
            words = (f"`{key} {value}`" if value else f"no `{key}`" for key, value in routes)
            by_route = ", ".join(words) or "no"
            text += f"| `{change.key}` | {_shown(change.before)} | {_shown(change.value)} |"
            text += f" {by_route} | {sockops.about(change)} |\n"
        neither = [
            f"- `{change.key}`: {how.says}\n"
            for change, how in target.changes
            if not route_settings(how) and not sockops.can(change)
        ]
        if neither:
            text += "\nNot by destination:\n\n" + "".join(neither)
    return text


_TWO_WAYS = """
Two mechanisms apply settings by the address of the peer. Use one of them.

`routes` has `apply.sh` and `undo.sh`, which set attributes of routes: of the route to the prefix if
there is one, else of a new route with the next hop of the current one. An attribute of a route
overrides the socket option, and lasts until a reboot. Longer prefixes in the routing table keep
their own routes. `DEV=eth1 sh apply.sh` changes routes of one device. With `--dry-run` either
script prints its steps and takes none.

`sockops` has a BPF program for all connections of a cgroup, with `load.sh` and `unload.sh`:

```console
# sh load.sh
# sh unload.sh
```

`sh load.sh /sys/fs/cgroup/system.slice` covers the programs of that cgroup only. The scripts need
clang, the kernel headers for user space (linux-libc-dev) and bpftool. Open connections keep their
settings. For a connection that the peer opens, the program runs when the handshake is over: the
window scale is already fixed then. `wmem` and `rmem` become buffers of that size, which do not
grow: the program requests half of it, because Linux doubles a request.
"""


def _table(ways: Sequence[tuple[Change, Way]]) -> str:
    text = "| setting | in the experiment | now | applied by |\n|---|---|---|---|\n"
    for change, how in ways:
        says = how.says.replace("|", "\\|")
        text += f"| `{change.key}` | {_shown(change.before)} | {_shown(change.value)} | {says} |\n"
    return text


def _change(change: Change) -> str:
    if change.before is None:
        return f"to {_shown(change.value)}"
    return f"from {_shown(change.before)} to {_shown(change.value)}"


def _shown(value: object) -> str:
    """A value as experiment files have it."""
    if value is None:
        return "not known"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return "`" + _text(text).replace("`", "'").replace("|", "\\|") + "`"


def _text(text: str) -> str:
    """Text on one line."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
