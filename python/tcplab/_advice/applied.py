"""Files that put transport settings into a running Linux, and take them out again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from shlex import quote
from typing import TypeVar

from tcplab._advice import _readme, _servers, sockops
from tcplab._advice._disciplines import Discipline, ImpossibleError, discipline
from tcplab._advice._scripts import filled, shell
from tcplab._advice._settings import (
    Change,
    Destination,
    Sysctl,
    Way,
    algorithm,
    milliseconds,
    route_settings,
    way,
)
from tcplab._core import ConfigError

__all__ = ["Change", "Destination", "destination_files", "files"]

_Value = TypeVar("_Value")

SIDES = ("sender", "receiver", "router")


def files(changes: Sequence[Change], *, title: str) -> dict[str, str]:
    """The files that apply changes to a running Linux, by path.

    Each side with changes has a folder: `apply.sh` and `undo.sh`, `sysctl.d/90-tcplab.conf` and
    `tuned/tcplab/tuned.conf` for what lasts over reboots, snippets for nginx and HAProxy where
    these have a directive, and `README.md`, which says for each change which line applies it, or
    why no line can.

    Args:
        changes: The changes; each key at most once for a side.
        title: A few words for headings. They also name the folder of the saved values.

    Raises:
        ConfigError: A change is not a setting of an experiment, or two changes contradict each
            other.
    """
    for change in changes:
        if change.side not in SIDES:
            raise ConfigError(f"{change.place}: a side is one of {', '.join(SIDES)}")
    made: dict[str, str] = {}
    for side in SIDES:
        own = [change for change in changes if change.side == side]
        if own:
            for path, text in _side(side, own, _line(title)).items():
                made[f"{side}/{path}"] = text
    return made


def destination_files(destinations: Sequence[Destination], *, title: str) -> dict[str, str]:
    """The files that apply settings by the destination of a connection, by path.

    A host uses one of two mechanisms: `routes` has scripts that set attributes of routes, `sockops`
    a BPF program that sets the options of each connection. `README.md` says which of them applies
    which change.

    Args:
        destinations: Prefixes with their settings; the longest matching prefix counts.
        title: A few words for headings. They also name the folders of the saved values.

    Raises:
        ConfigError: A prefix is invalid or given twice, or a change is not a setting of an
            experiment.
    """
    title = _line(title)
    networks: dict[IPv4Network | IPv6Network, Destination] = {}
    for destination in destinations:
        place = f"destination {destination.name!r}"
        try:
            network = ip_network(destination.prefix)
        except ValueError as error:
            raise ConfigError(f"{place}: {destination.prefix!r} is not a prefix: {error}") from None
        if network.prefixlen == 0:
            raise ConfigError(
                f"{place}: {network} covers every address; change the whole host instead"
            )
        if network in networks:
            raise ConfigError(f"{place}: {network} is already that of {networks[network].name!r}")
        networks[network] = destination
        _once(destination.changes)
        for change in destination.changes:
            if change.side == "router" or change.key in ("qdisc", "queue"):
                raise ConfigError(f"{place}: {change.key} is not a setting of a connection")
    # Short prefixes first, in the order in which routes are added.
    ordered = sorted(networks, key=lambda it: (it.version, it.prefixlen, it.network_address))
    targets = []
    for network in ordered:
        full = network.prefixlen == network.max_prefixlen
        address = str(network.network_address)
        targets.append(
            _readme.Target(
                networks[network],
                network,
                address if full else str(network),
                tuple((change, way(change)) for change in networks[network].changes),
            )
        )
    made = {"README.md": _readme.of_destinations(title, targets)}
    routes = _routes(targets, title)
    if routes is not None:
        made |= {f"routes/{path}": text for path, text in routes.items()}
    programs = sockops.files(
        [
            (target.network, target.destination.name, target.destination.changes)
            for target in targets
        ],
        title=title,
        name=_slug(title),
    )
    return dict(
        sorted((made | {f"sockops/{path}": text for path, text in programs.items()}).items())
    )


@dataclass
class _Steps:
    """The steps of `apply.sh`: checks, saved values and changes. `undo.sh` goes backwards."""

    check: list[str] = field(default_factory=list)
    save: list[str] = field(default_factory=list)
    change: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    tools: set[str] = field(default_factory=lambda: {"sysctl"})

    def add(self, check: str, save: str, change: str) -> None:
        """Appends a step."""
        self.check.append(check)
        self.save.insert(0, save)
        self.change.append(change)

    def add_algorithms(self, names: Sequence[str]) -> None:
        """Congestion controls that the kernel has to have."""
        for name in dict.fromkeys(filter(None, names)):
            self.add(f"need_algorithm {name}", f"keep_algorithm {name}", f"load_algorithm {name}")

    def text(self) -> str:
        """The functions of the script."""
        parts = ["\n".join(self.before)] if self.before else []
        for name, lines in (("check", self.check), ("save", self.save), ("change", self.change)):
            body = "\n".join(f"    {line}" for line in dict.fromkeys(lines) if line)
            parts.append(f"{name}() {{\n{body}\n}}")
        return "\n\n".join(parts)


@dataclass
class _Merged:
    """The changes of one side, merged."""

    sysctls: dict[str, Sysctl] = field(default_factory=dict)
    routes: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    algorithms: list[str] = field(default_factory=list)
    min_rto_us: int = 0

    def add(self, change: Change, how: Way) -> None:
        """Merges one more change, and refuses a contradiction."""
        for sysctl in how.sysctls:
            self._put(change, self.sysctls, sysctl.name, sysctl)
        for name, value in how.routes:
            self._put(change, self.routes, name, value)
        for path, value in how.parameters:
            self._put(change, self.parameters, path, value)
        self.algorithms += [how.algorithm] if how.algorithm else []
        self.min_rto_us = how.min_rto_us or self.min_rto_us

    @staticmethod
    def _put(change: Change, known: dict[str, _Value], name: str, value: _Value) -> None:
        if known.setdefault(name, value) != value:
            raise ConfigError(f"{change.place}: contradicts another change, which sets {name} too")


def _side(side: str, changes: Sequence[Change], title: str) -> dict[str, str]:
    """The files of one side, without its folder."""
    _once(changes)
    merged = _Merged()
    rows, queue = _queue(side, changes)
    for change in changes:
        if change.key in ("qdisc", "queue"):
            continue
        if side == "router":
            raise ConfigError(f"{change.place}: a router has a queue, and no {change.key}")
        how = rows[change.key] = rows.get(change.key) or way(change)
        merged.add(change, how)
    steps = _steps(merged, queue)
    name = f"{_slug(title)}-{side}"
    made: dict[str, str] = {}
    if steps.change:
        variables = []
        if steps.tools & {"ip", "tc"}:
            steps.tools.add("ip")
            variables.append(("DEV", "device (default: that of the default route)", ""))
        if "need_routes" in " ".join(steps.check):
            variables.append(
                ("ROUTE", "route with the settings of routes (default: default)", "default")
            )
        if queue is not None:
            one = "yes" if side == "router" else "no"
            about = f"yes: one queue, also if the device has several (default: {one})"
            variables.append(("ONE_QUEUE", about, one))
        made |= _scripts(f"{title}: the {side}", name, steps, variables)
    lasting = _lasting(side, merged, queue)
    if lasting:
        heading = f"# {title}: the {side}\n"
        made["sysctl.d/90-tcplab.conf"] = heading + "".join(f"{line}\n" for line in lasting)
        made["tuned/tcplab/tuned.conf"] = _tuned(f"{title}: the {side}", lasting)
    ways = [(change, rows[change.key]) for change in changes]
    if side != "router":
        made |= _servers.files(f"{title}: the {side}", ways)
    made["README.md"] = _readme.of_side(title, side, ways, made, name)
    return dict(sorted(made.items()))


def _steps(merged: _Merged, queue: Discipline | None) -> _Steps:
    """The steps of a side, in their order."""
    steps = _Steps()
    # The files of parameters appear with their module.
    modules = [path.split("/")[3].removeprefix("tcp_") for path in merged.parameters]
    steps.add_algorithms(merged.algorithms + modules)
    for sysctl in merged.sysctls.values():
        setter = {"whole": "set_sysctl", "last": "set_last", "bit": "set_bit"}[sysctl.part]
        line = f"{setter} {sysctl.name} {quote(sysctl.value)}"
        steps.add(f"need_sysctl {sysctl.name}", f"keep_sysctl {sysctl.name}", line)
    for path, value in merged.parameters.items():
        # Without the module there is nothing to save: the value goes with the module.
        steps.add("", f"[ ! -e {path} ] || keep_file {path}", f"set_file {path} {value}")
    _add_routes(merged, steps)
    if queue is not None:
        steps.tools.add("tc")
        words = f"{queue.kind} {queue.words}".strip()
        steps.add("need_device", "keep_queue", f"set_queue {words}")
    return steps


def _lasting(side: str, merged: _Merged, queue: Discipline | None) -> list[str]:
    """The lines in `sysctl.d`."""
    lines = [sysctl.line for sysctl in merged.sysctls.values()]
    if merged.min_rto_us:
        lines.append(f"-net.ipv4.tcp_rto_min_us = {merged.min_rto_us}")
    if queue is not None and queue.is_default and side != "router":
        lines.append(f"net.core.default_qdisc = {queue.kind}")
    return lines


def _queue(side: str, changes: Sequence[Change]) -> tuple[dict[str, Way], Discipline | None]:
    """Merges the changes of queue and pacing: how each key is applied, and the device's queue."""
    key = "queue" if side == "router" else "qdisc"
    ways: dict[str, Way] = {}
    queue: Discipline | None = None
    asked = next((change for change in changes if change.key in ("qdisc", "queue")), None)
    if asked is not None:
        if asked.key != key:
            raise ConfigError(f"{asked.place}: the queue of a {side} is `{key}`")
        try:
            queue = discipline(asked.place, asked.value)
        except ImpossibleError as error:
            return {key: Way(str(error))} | _unpaced(changes, "the queue cannot be set up"), None
    cc = next((algorithm(change)[0] for change in changes if change.key == "cc"), "")
    for change in changes:
        how = way(change) if change.key in ("pacing", "max_pacing_rate") else Way("")
        if not how.pacing:
            continue
        words = " ".join(filter(None, how.pacing))
        if queue is not None and queue.kind != "fq":
            says = f"The queue of the device is {queue.kind}, which does not pace."
            ways[change.key] = Way(says, program=how.program)
        elif not words and cc == "bbr" and queue is None:
            ways[change.key] = Way("BBR paces by itself, whatever the queue is.")
        elif queue is None:
            queue = Discipline("fq", words, is_default=not words)
        elif words:
            queue = Discipline("fq", f"{queue.words} {words}".strip(), queue.notes)
    if asked is not None and queue is not None:
        line = f"`tc qdisc replace dev DEV root {queue.kind} {queue.words}`."
        ways[key] = Way(" ".join((line, *queue.notes)), pacing=("",))
    return ways, queue


def _unpaced(changes: Sequence[Change], why: str) -> dict[str, Way]:
    """Changes of pacing that only programs can apply."""
    made = {}
    for change in changes:
        if change.key in ("pacing", "max_pacing_rate") and (how := way(change)).pacing:
            made[change.key] = Way(f"Not by the device: {why}.", program=how.program)
    return made


def _add_routes(merged: _Merged, steps: _Steps) -> None:
    """Adds the attributes of routes, in one step, and the minimum RTO: a sysctl or an attribute."""
    if not merged.routes and not merged.min_rto_us:
        return
    steps.tools.add("ip")
    keys, added = _route_words(merged.routes)
    steps.before += [f"route_keys={quote(keys)}", f"route_added={quote(added)}"]
    if merged.min_rto_us:
        name = "net.ipv4.tcp_rto_min_us"
        has = f"[ ! -e /proc/sys/{name.replace('.', '/')} ]"
        steps.before += [
            "# Kernels before 6.11 have no sysctl for the minimum RTO.",
            f"if {has}; then",
            '    route_keys="$route_keys rto_min"',
            f'    route_added="$route_added rto_min {milliseconds(merged.min_rto_us)}ms"',
            "fi",
        ]
        steps.add(
            "", f"{has} || keep_sysctl {name}", f"{has} || set_sysctl {name} {merged.min_rto_us}"
        )
    steps.add(
        '[ -z "$route_keys" ] || { need_device; need_routes "$ROUTE"; }',
        '[ -z "$route_keys" ] || keep_routes "$ROUTE" "$route_keys"',
        '[ -z "$route_keys" ] || set_routes "$ROUTE" "$route_keys" "$route_added"',
    )


def _route_words(routes: Mapping[str, str]) -> tuple[str, str]:
    """The attributes that are removed from a route, and those that are added."""
    return " ".join(routes), " ".join(f"{key} {value}" for key, value in routes.items() if value)


def _routes(targets: Sequence[_readme.Target], title: str) -> dict[str, str] | None:
    """The scripts that change routes; none if no change is an attribute of a route."""
    steps = _Steps(tools={"ip", "sysctl"})
    # Modules are loaded before all routes, and unloaded after them.
    steps.add_algorithms([how.algorithm for target in targets for _, how in target.changes])
    for target in targets:
        merged = _Merged()
        for change, how in target.changes:
            merged.add(change, Way("", routes=route_settings(how)))
        if merged.routes:
            keys, added = _route_words(merged.routes)
            rest = f"{target.words} {quote(keys)} {quote(added)}"
            check = f"need_destination {target.words}"
            steps.add(check, f"keep_destination {rest}", f"set_destination {rest}")
    if not any("destination" in line for line in steps.change):
        return None
    about = "device whose routes are changed (default: any)"
    name = f"{_slug(title)}-routes"
    return _scripts(f"{title}: routes", name, steps, [("DEV", about, "")], "destinations.sh")


def _scripts(
    title: str,
    name: str,
    steps: _Steps,
    variables: Sequence[tuple[str, str, str]],
    more: str = "",
) -> dict[str, str]:
    """`apply.sh` and `undo.sh`."""
    texts = {
        "@TITLE@": title,
        "@STATE@": f"/var/lib/tcplab/{name}",
        "@COMMON@": shell("common.sh").rstrip(),
        "@VARIABLES@": "\n".join(
            ["#", *(f"# {each:<9} {about}" for each, about, _ in variables)]
        ).rstrip(),
        "@DEFAULTS@": "\n".join(
            f"{each}=${{{each}:-{value}}}" for each, value in _defaults(variables)
        ),
        "@STEPS@": "\n\n".join(filter(None, (more and shell(more).rstrip(), steps.text()))),
        "@TOOLS@": " ".join(sorted(steps.tools)),
    }
    made = {}
    for script in ("apply.sh", "undo.sh"):
        made[script] = filled(shell(script), texts)
    return made


def _defaults(variables: Sequence[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """All variables with their defaults. The functions of the scripts always read `DEV`."""
    return list(({"DEV": ""} | {name: default for name, _, default in variables}).items())


def _tuned(title: str, lines: Sequence[str]) -> str:
    """A TuneD profile. `README.md` has the command that replaces its `include`."""
    settings = "".join("{}={}\n".format(*line.removeprefix("-").split(" = ", 1)) for line in lines)
    return f"[main]\nsummary={title}\ninclude=balanced\n\n[sysctl]\n{settings}"


def _once(changes: Sequence[Change]) -> None:
    """Refuses a key that is given twice."""
    seen = set()
    for change in changes:
        if change.key in seen:
            raise ConfigError(f"{change.place}: is given twice")
        seen.add(change.key)


def _line(title: str) -> str:
    """A title on one line, of printable characters."""
    shown = "".join(each if each.isprintable() else " " for each in title)
    return " ".join(shown.replace("@", " at ").split()) or "tcplab"


def _slug(title: str) -> str:
    """A title as the name of a file."""
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))[:40].strip("-") or "tcplab"
