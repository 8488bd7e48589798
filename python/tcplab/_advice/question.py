"""The question: an experiment, the settings that may change in it, and the goals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tcplab._advice import goals, levers, limits, places, ranges
from tcplab._advice.goals import Goal
from tcplab._advice.levers import Candidate, Setting
from tcplab._advice.limits import Limit
from tcplab._core import ConfigError
from tcplab._experiment.reading import loaded
from tcplab._experiment.runnable import Runnable

QUIET = {"samples": "off", "links": "off"}

DEFAULT_SIDES = ("sender",)

RECEIVERS = ("rmem", "delayed_ack", "initial_receive_window")
"""Settings of a stack that count where data is received."""

ALONG = {
    "cc": ("cc",),
    "so_sndbuf": ("stack.so_sndbuf", "stack.wmem_max"),
    "so_rcvbuf": ("stack.so_rcvbuf", "stack.rmem_max"),
}
"""Keys with a spelling of their own, and those that have to follow: what a program asks for is what
the host allows at most.
"""

FLOW = re.compile(r"^flows(\[\d+\]|\.[^.]+)\.")

SETTING = re.compile(r"(flows(\[\d+\]|\.[^.]+)\.)?(stack\.\w+|cc)(\.\w+)?")
"""The path of a setting of a transport."""

SEEDS_OF_PATH = 10_000
"""The seeds of each path begin so far after those of the path before."""

APART = 1_000_000
"""The seeds of a question begin so far after those of a question whose seed is one less."""


QUESTIONS = 2**32
"""So many questions have seeds of their own."""


def seed_of(given: int) -> int:
    """Where the seeds of a question begin, by the seed of its experiment."""
    return 1 + (given - 1) % QUESTIONS * APART


VARIOUS = "various"
"""The stand-in for today's value where flows have different ones."""


@dataclass(frozen=True)
class Question:
    """An experiment, what may change, and what is to be best."""

    plain: dict[str, Any]
    """The experiment with today's settings, without what makes several runs of it."""
    plan: dict[str, Any]
    """Its first run, with nothing left open."""
    flows: tuple[str, ...]
    """The flows that the advice is for, by their name in tables."""
    places: tuple[int, ...]
    """The entries of the file that they come from."""
    goals: tuple[Goal, ...]
    """The first is to be best; the others are reported."""
    settings: Mapping[str, Sequence[Setting]]
    """By key, what is tried beside today's value."""
    over: Mapping[str, Any]
    """The ranges of paths and loads, by key."""
    asked: dict[str, Any]
    """The table [advise], whole."""
    limits: tuple[Limit, ...] = ()
    """What advised settings must keep."""

    @property
    def goal(self) -> Goal:
        """The goal that decides."""
        return self.goals[0]

    @property
    def seed(self) -> int:
        """Where seeds begin. Neighbouring seeds of an experiment begin far apart: no two questions
        have a run in common, so their answers are independent.
        """
        return seed_of(int(self.plan["seed"]))

    def points(self) -> list[dict[str, Any]]:
        """The paths of the search."""
        return ranges.points(self.over, seed=self.seed)

    def fresh(self) -> list[dict[str, Any]]:
        """The paths of the evidence: where they are drawn from ranges, others than the search saw.
        Lists have the same paths for both.
        """
        return ranges.points(self.over, seed=self.seed, first=1 + ranges.POINTS)

    def mine(self) -> list[dict[str, Any]]:
        """The flows of the plan that the advice is for."""
        return [flow for flow in self.plan["flows"] if flow["name"] in self.flows]

    def bottleneck(self) -> dict[str, Any]:
        """The slowest link on the way of the first of them."""
        number = self.mine()[0].get("bottleneck")
        return dict(self.plan["lanes"][number if number is not None else 0])

    def paths(self, setting: Setting) -> list[str]:
        """The keys of the experiment that a setting gives a value."""
        if setting.key == "queue":
            return [f"{self.bottleneck()['place']}.queue"]
        if setting.key == "qdisc":
            nodes = self.plan["nodes"]
            senders = dict.fromkeys(nodes[flow["from"]] for flow in self.mine())
            return [f"hosts.{places.quoted(name)}.qdisc" for name in senders]
        keys = ALONG.get(setting.key, (f"stack.{setting.key}",))
        return [f"flows[{place}].{key}" for place in self.places for key in keys]

    def variant(self, candidate: Candidate) -> dict[str, Any]:
        """The keys that a candidate changes, with their values."""
        return {path: one.value for one in candidate.settings for path in self.paths(one)}

    def _with_tables_for_cc(self) -> list[dict[str, Any]]:
        """The flows with their congestion control as a table, since a variant gives a table its
        values one by one.
        """
        flows = [dict(flow) for flow in self.plain["flows"]]
        for flow in self.mine():
            own = flows[int(flow["place"].split("[")[1].split("]")[0])]
            stack = flow["transport"].get("stack")
            if stack is not None and not isinstance(own.get("cc"), Mapping):
                own["cc"] = {"name": own.get("cc") or stack["cc"]["name"]}
        return flows

    def experiment(
        self,
        candidates: Sequence[Candidate],
        points: Sequence[Mapping[str, Any]],
        seeds: range,
        changes: Mapping[str, Any] | None = None,
    ) -> Runnable:
        """All candidates over all points, each with all seeds."""
        plain = self.plain | {"seed": seeds.start, "repeat": len(seeds), "record": QUIET}
        plain["variants"] = {one.name: self.variant(one) for one in candidates}
        if any(
            it.key == "cc" and isinstance(it.value, Mapping)
            for one in candidates
            for it in one.settings
        ):
            plain["flows"] = self._with_tables_for_cc()
        if points and points[0]:
            values = {key: [point[key] for point in points] for key in points[0]}
            # Paths are a sample only if losses on one say nothing of those on the next.
            own = [seeds.start + SEEDS_OF_PATH * place for place in range(len(points))]
            plain["zip"] = [{"seed": own, **values}]
        return loaded(plain | dict(changes or {}))


def question(
    experiment: Runnable,
    *,
    goal: Sequence[str] = (),
    flows: Sequence[str] = (),
    may: Sequence[str] = (),
    keep: Sequence[str] = (),
    change: Mapping[str, Sequence[Any]] | None = None,
    over: Mapping[str, Any] | None = None,
    limits_: Sequence[str] = (),
) -> Question:
    """The question that an experiment asks; what is given counts more than its table [advise].

    Raises:
        ConfigError: The experiment cannot be run, or the question has no answer.
    """
    given = {"goals": goal, "flows": flows, "may": may, "keep": keep, "limits": limits_}
    replaced = {**given, "change": change, "over": over}
    with places.named(experiment, replaced):
        return _question(experiment, given, change, over or {})


def _question(
    experiment: Runnable,
    given: Mapping[str, Sequence[str]],
    change: Mapping[str, Sequence[Any]] | None,
    over: Mapping[str, Any],
) -> Question:
    seed = seed_of(experiment.plans("sim")[0].seed)
    contained = experiment.contained()
    plain = dict(contained if contained is not None else experiment.to_dict())
    asked = dict(plain.pop("advise", None) or {})
    asked |= {key: list(values) for key, values in given.items() if values}
    if change:
        asked["change"] = {key: list(values) for key, values in change.items()}
    asked["over"] = _ranges(plain, {**asked.get("over", {}), **over})
    plain.pop("repeat", None)
    if over:
        asked["over"] = _read_ranges(plain, asked["over"])
    points = ranges.points(asked["over"], seed=seed)
    files = places.files_of(experiment, over)
    blamed = partial(_blamed, plain=plain, over=asked["over"], files=files)
    with blamed(points[0]):
        first = _at(points[0], plain)
        plan = json.loads(first.plans("sim")[0].to_json())
    names, entries = _flows(plan, asked.get("flows") or [])
    mine = [flow for flow in plan["flows"] if flow["name"] in names]
    sides = asked.get("may") or levers.sides_of(asked.get("change") or ()) or list(DEFAULT_SIDES)
    if "all" in sides:
        sides = list(levers.SIDES)
    for side in sides:
        if side not in levers.SIDES:
            raise ConfigError(f"may: {side!r} is none of {', '.join(levers.SIDES)}, all")
    bounds = limits.read(asked.get("limits") or [], mine)
    if not asked["over"]:
        limits.check(bounds, mine, plan["lanes"])
    found = goals.chosen(asked.get("goals") or [], mine, [one.goal.name for one in bounds])
    draft = Question(
        plain, plan, tuple(names), tuple(entries), tuple(found), {}, asked["over"], asked,
        tuple(bounds),
    )  # fmt: skip
    if asked["over"]:
        _check_points(draft, blamed)
    if len(plan["flows"]) < 2 and any(one.name == "fairness" for one in found):
        raise ConfigError(
            "goals: fairness: needs two flows or more, and there is one; --against adds another"
        )
    settings = levers.tried(
        _today(draft),
        sides,
        asked.get("keep") or [],
        asked.get("change"),
        is_marked=_is_marked(draft),
    )
    settings = _possible(draft, settings, first)
    asked |= {"goals": [one.name for one in found], "flows": list(asked.get("flows") or []),
              "may": sides}  # fmt: skip
    return replace(draft, settings=settings)


def _at(point: Mapping[str, Any], plain: Mapping[str, Any]) -> Runnable:
    """The experiment at a point of the ranges."""
    return loaded({**plain, "zip": [{key: [value] for key, value in point.items()}]}
                  if point else plain)  # fmt: skip


@contextmanager
def _blamed(
    point: Mapping[str, Any],
    *,
    plain: Mapping[str, Any],
    over: Mapping[str, Any],
    files: Mapping[str, Path],
) -> Iterator[None]:
    """Mistakes name the value of the point that has them: the one without which there is none.
    Where no single one is to blame, they name all.
    """
    try:
        yield
    except ConfigError as error:
        if not point:
            raise
        alone = [key for key in point if _is_right_without(key, point, plain)]
        keys = alone[:1] or [*point]
        at = ", ".join(places.of_value(key, point[key], over[key], files.get(key)) for key in keys)
        lines = [line.replace("zip[0].", "") for line in str(error).split("\n")]
        said = dict.fromkeys(line.removeprefix(f"{keys[0]}: ") for line in lines)
        raise ConfigError("\n".join(f"over: {at}: {line}" for line in said)) from None


def _is_right_without(key: str, point: Mapping[str, Any], plain: Mapping[str, Any]) -> bool:
    rest = {other: value for other, value in point.items() if other != key}
    try:
        _at(rest, plain).plans("sim")
    except ConfigError:
        return False
    return True


def _check_points(
    asked: Question, blamed: Callable[[Mapping[str, Any]], AbstractContextManager[None]]
) -> None:
    """Whatever a range or a distribution gives must make an experiment, and every value of a list
    or a file.
    """
    points = [*asked.points(), *asked.fresh()]
    for key, given in asked.over.items():
        listed = given.get("values", []) if isinstance(given, Mapping) else given
        points += [points[0] | {key: value} for value in listed]
    seeds = range(asked.seed, asked.seed + 1)
    points = list({json.dumps(one): one for one in points}.values())
    try:
        asked.experiment([Candidate()], points, seeds).plans("sim")
    except ConfigError:
        for point in points:
            with blamed(point):
                asked.experiment([Candidate()], [point], seeds).plans("sim")
        raise


def _read_ranges(plain: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Ranges that a command line or a program gives, checked like those of a file, with the values
    of files in the place of their names.
    """
    given = loaded({**plain, "advise": {"over": dict(over)}})
    given.plans("sim")
    contained = given.contained()
    return dict(contained["advise"]["over"]) if contained is not None else dict(over)


def _ranges(plain: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """All ranges: what the experiment sweeps is one too."""
    for key in ("variants", "zip"):
        if plain.pop(key, None):
            raise ConfigError(
                f"{key}: advice is for one experiment; say what may change by [advise.change], and "
                "over which paths by [advise.over] or [sweep]"
            )
    swept = plain.pop("sweep", None) or {}
    # Alternatives are no paths: of settings that are swept, the first is today's.
    today = {path: values[0] for path, values in swept.items() if SETTING.fullmatch(path)}
    if today:
        changed = loaded(plain).changed(today)
        plain.clear()
        plain |= changed.to_dict()
    return {**{path: swept[path] for path in swept if path not in today}, **over}


def _flows(plan: Mapping[str, Any], asked: Sequence[str]) -> tuple[list[str], list[int]]:
    """The names of flows, and the entries of the file that have them."""
    names, places = [], []
    left = set(asked)
    for flow in plan["flows"]:
        entry = flow["name"].split("/")[0]
        if asked and not {entry, flow["name"], flow["class"]} & set(asked):
            continue
        left -= {entry, flow["name"], flow["class"]}
        names.append(flow["name"])
        places.append(int(flow["place"].split("[")[1].split("]")[0]))
    if left:
        there = dict.fromkeys(flow["name"].split("/")[0] for flow in plan["flows"])
        raise ConfigError(f"flows: there is no {sorted(left)[0]!r}; there are {', '.join(there)}")
    return names, list(dict.fromkeys(places))


def _today(asked: Question) -> dict[str, Any]:
    """By setting, today's value; where flows differ, `VARIOUS`."""
    flows = [flow for flow in asked.mine() if "stack" in flow["transport"]]
    found: dict[str, Any] = {}
    if flows:
        nodes, hosts = asked.plan["nodes"], asked.plain.get("hosts") or {}
        stacks = []
        for flow in flows:
            stack = dict(flow["transport"]["stack"])
            for key in RECEIVERS:
                stack[key] = flow["transport"]["peer_stack"][key]
            stack["qdisc"] = (hosts.get(nodes[flow["from"]]) or {}).get("qdisc")
            stacks.append(stack)
        for key, value in stacks[0].items():
            found[key] = value if all(one[key] == value for one in stacks) else VARIOUS
    place = asked.bottleneck()["place"]
    if place.startswith("network."):
        found["queue"] = _queue(asked.bottleneck()["queue"])
    return found


def _is_marked(asked: Question) -> bool:
    """Whether the bottleneck marks packets in place of dropping them."""
    discipline = asked.bottleneck()["queue"]["discipline"]
    return bool(discipline.get("ecn")) or discipline["kind"] in ("cake", "dualpi2")


def _queue(queue: Mapping[str, Any]) -> str:
    """A queue of a plan, in a word."""
    kind = str(queue["discipline"]["kind"])
    return room(queue) if kind == "droptail" else kind


def room(queue: Mapping[str, Any]) -> str:
    """How much a queue of a plan holds, as an experiment says it."""
    ((unit, number), *_) = queue["limit"].items()
    return f"{number} {'packets' if unit == 'packets' else 'B'}"


def _possible(
    asked: Question, settings: Mapping[str, list[Setting]], first: Runnable
) -> dict[str, list[Setting]]:
    """The settings that this experiment can have."""
    found: dict[str, list[Setting]] = {}
    why = ""
    # Whatever flows are called: what the range gives some of them is no choice.
    given = {FLOW.sub("", path) for path in asked.over}
    is_asked = bool(asked.asked.get("change"))
    for key, several in settings.items():
        if given & {FLOW.sub("", path) for path in asked.paths(several[0])}:
            why = f"{key}: is given by the range of paths"
            continue
        for one in several:
            # One by one: what one profile or algorithm has not, another value may.
            try:
                first.changed(asked.variant(Candidate((one,)))).plans("sim")
            except ConfigError as error:
                if is_asked:
                    raise ConfigError(f"change: {key}: {error}") from None
                why = str(error).splitlines()[0]
                continue
            found.setdefault(key, []).append(one)
    if not found:
        raise ConfigError(f"nothing may be changed: {why}")
    return found
