"""Shrinks an experiment that differs to the smallest one that still does."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from fuzz.draw import Plain, rounded

PLAIN_CC = "newreno"
FEWER = ("connections", "transfers", "requests", "packets", "users")
NEEDLESS = ("think", "server_time", "request", "order", "gaps")
ROUNDED = ("on", "off", "size", "sizes", "response", "think", "server_time", "payload", "rate")
"""Keys of traffic whose quantities may be reduced, left out, or rounded."""

NUMBER = re.compile(r"^([\d.]+) (.+)$")


def shrink(experiment: Plain, differs_at: Callable[[Plain], float | None], tries: int) -> Plain:
    """The smallest experiment found within this many tries.

    `differs_at` returns the time in seconds at which an experiment first differs, or None if it
    does not. After each success the search starts again with the largest simplification.
    """
    smallest = experiment
    when = differs_at(smallest)
    seen = {repr(smallest)}
    while when is not None:
        for candidate in simpler(smallest, when):
            if repr(candidate) in seen:
                continue
            if not tries:
                return smallest
            tries -= 1
            seen.add(repr(candidate))
            found = differs_at(candidate)
            if found is not None:
                smallest, when = candidate, found
                break
        else:
            break
    return smallest


def prune(experiment: Plain, fails: Callable[[Plain], bool], tries: int) -> Plain:
    """An experiment that still fails, without most of the parts that are irrelevant to the failure.

    Keys and items of lists are left out one by one, the outer ones first.
    """
    smallest, changed = experiment, True
    while changed:
        changed = False
        for path in _paths(smallest):
            candidate = copy.deepcopy(smallest)
            holder: Any = candidate
            for key in path[:-1]:
                holder = holder[key]
            del holder[path[-1]]
            if not tries:
                return smallest
            tries -= 1
            if fails(candidate):
                smallest, changed = candidate, True
                break
    return smallest


def _paths(value: Any) -> list[list[Any]]:
    """The paths to all parts: large parts, and those early in the file, come first."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    paths: list[list[Any]] = []
    for key, item in items:
        paths.append([key])
        if isinstance(item, dict | list):
            paths += [[key, *path] for path in _paths(item)]
    return sorted(paths, key=len)


def simpler(experiment: Plain, when: float) -> Iterator[Plain]:
    """Experiments that are simpler in one respect, those that save most first.

    `when` is the time of the first difference. Nothing needs to happen after it.
    """
    end = f"{math.ceil(when * 10 + 1) / 10:g} s"
    if float(end.removesuffix(" s")) < float(experiment["duration"].removesuffix(" s")):
        yield experiment | {"duration": end}
    yield from _fewer_flows(experiment)
    for name in experiment["stack"]:
        yield experiment | {"stack": _without(experiment["stack"], name)}
    yield from _plainer_flows(experiment)
    yield from _simpler_network(experiment)


def _fewer_flows(experiment: Plain) -> Iterator[Plain]:
    flows = experiment["flows"]
    if len(flows) > 3:
        yield experiment | {"flows": flows[: len(flows) // 2]}
        yield experiment | {"flows": flows[len(flows) // 2 :]}
    if len(flows) > 1:
        for place in range(len(flows)):
            yield experiment | {"flows": flows[:place] + flows[place + 1 :]}


def _plainer_flows(experiment: Plain) -> Iterator[Plain]:
    for place, flow in enumerate(experiment["flows"]):
        simpler = [_without(flow, "traffic")] if "traffic" in flow else []
        if flow["start"] != "0 s":
            simpler += [flow | {"start": "0 s"}, flow | {"start": _rounder(flow["start"])}]
        if flow.get("cc", PLAIN_CC) != PLAIN_CC:
            simpler.append(flow | {"cc": PLAIN_CC})
        periods = flow.get("traffic", {}).get("periods", [])
        if len(periods) > 1:
            for gone in range(len(periods)):
                fewer = periods[:gone] + periods[gone + 1 :]
                simpler.append(flow | {"traffic": flow["traffic"] | {"periods": fewer}})
        for traffic in _simpler_traffic(flow.get("traffic", {})):
            simpler.append(flow | {"traffic": traffic})
        for changed in simpler:
            flows = [*experiment["flows"]]
            flows[place] = changed
            yield experiment | {"flows": flows}


def _simpler_traffic(traffic: Plain) -> Iterator[Plain]:
    sizes = traffic.get("sizes")
    if isinstance(sizes, list) and len(sizes) > 1:
        yield traffic | {"sizes": sizes[: len(sizes) // 2]}
        for gone in range(len(sizes)):
            yield traffic | {"sizes": sizes[:gone] + sizes[gone + 1 :]}
    for name in FEWER:
        if traffic.get(name, 1) > 1:
            yield traffic | {name: traffic[name] // 2}
            yield traffic | {name: traffic[name] - 1}
    for name in NEEDLESS:
        if name in traffic:
            yield _without(traffic, name)
    for name in ROUNDED:
        if isinstance(traffic.get(name), str):
            yield traffic | {name: _rounder(traffic[name])}


def _simpler_network(experiment: Plain) -> Iterator[Plain]:
    for topology, settings in experiment["network"].items():
        if isinstance(settings, list):
            for place, link in enumerate(settings):
                for changed in _simpler_links(link):
                    links = [*settings[:place], changed, *settings[place + 1 :]]
                    yield experiment | {"network": {topology: links}}
            continue
        for changed in _simpler_links(settings):
            yield experiment | {"network": {topology: changed}}


def _simpler_links(settings: Plain) -> Iterator[Plain]:
    lost = settings.get("loss", {}).get("packets", [])
    parts = 2
    while parts <= len(lost) and parts <= 16:
        for part in range(parts):
            start, end = part * len(lost) // parts, (part + 1) * len(lost) // parts
            yield settings | {"loss": settings["loss"] | {"packets": lost[:start] + lost[end:]}}
        parts *= 2
    if settings.get("pairs", 1) > 1:
        yield settings | {"pairs": settings["pairs"] - 1}
    if settings.get("hops", 1) > 1:
        yield settings | {"hops": settings["hops"] - 1}
    for name in ("rate", "delay", "queue"):
        if isinstance(settings.get(name), str):
            yield settings | {name: _rounder(settings[name])}
    if "mtu" in settings:
        yield _without(settings, "mtu")
        yield settings | {"mtu": int(rounded(settings["mtu"], 2))}


def _without(settings: Plain, name: str) -> Plain:
    left = copy.copy(settings)
    del left[name]
    return left


def _rounder(text: str) -> str:
    """A quantity rounded to one significant digit, or to two if it has one already."""
    match = NUMBER.match(text)
    assert match, text
    return f"{rounded(float(match[1]), 1):g} {match[2]}"
