"""tcplab try: describes a path and its flows by flags, and runs them at once."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from tcplab import _core
from tcplab._experiment import toml_writer
from tcplab._experiment.reading import loaded
from tcplab._store.atomic_write import put
from tcplab.cli import _arguments
from tcplab.cli import run as runs
from tcplab.cli._lasting import duration
from tcplab.cli._output import say

RTT = "40 ms"
"""Of a path, unless a flag says another."""

MADE = "# Made by: "
"""The first line of files written by `--save`."""

OUT = Path("results") / "try"


@dataclass(frozen=True)
class Flag:
    """A flag that sets a key of the experiment."""

    path: str
    metavar: str
    about: str


FLAGS = {
    "rate": Flag("network.dumbbell.rate", "RATE", "rate of the bottleneck: 100M (default: 10M)"),
    "rtt": Flag("rtt", "TIME", "round-trip time without queues: 40ms (the default)"),
    "queue": Flag(
        "network.dumbbell.queue",
        "QUEUE",
        "queue at the bottleneck: 250packets, 50ms, fq-codel (default: 1bdp)",
    ),
    "loss": Flag("network.dumbbell.loss", "SHARE", "random packet loss: 0.1%% (default: none)"),
    "jitter": Flag("network.dumbbell.jitter", "TIME", "random extra delay, up to this time"),
    "mtu": Flag("network.dumbbell.mtu", "BYTES", "size of the largest packet (default: 1500)"),
    "back-rate": Flag(
        "network.dumbbell.back.rate", "RATE", "rate in the direction of the ACKs, if different"
    ),
    "cc": Flag("flows.flow.cc", "CC", "the congestion control (default: cubic)"),
    "flows": Flag("flows.flow.count", "N", "number of flows of this kind (default: 1)"),
    "traffic": Flag(
        "flows.flow.traffic",
        "KIND",
        "bulk (the default), a size like 2MB, web, voice, video, transfers, or a table with a kind",
    ),
    "against": Flag(
        "flows.other.cc", "CC", "one more flow: a bulk transfer with this congestion control"
    ),
    "profile": Flag("stack.profile", "NAME", "profile of the transport (see tcplab list profiles)"),
    "ecn": Flag("stack.ecn", "BOOL", "whether flows use ECN: true or false"),
}

TRAFFIC: Mapping[str, Mapping[str, Any]] = {
    "web": {
        "kind": "web",
        "classes": [
            {"name": "page", "count": 1, "size": "30 kB"},
            {"name": "style", "count": 8, "size": "10 kB"},
            {"name": "script", "count": 20, "size": "30 kB"},
            {"name": "image", "count": 20, "size": "55 kB"},
        ],
        "order": "parallel",
    },
    "voice": {"kind": "udp", "interval": "20 ms", "payload": "160 B"},
    "video": {"kind": "udp", "rate": "2.5 Mbit/s", "payload": "1200 B"},
    "transfers": {
        "kind": "arrivals",
        "load": "50 %",
        "sizes": {"kind": "lognormal", "median": "10 kB", "sigma": 1.5, "max": "10 MB"},
    },
}
"""The traffic that a word stands for: a page of 49 objects and 1.8 MB, a call at 64 kbit/s (G.711
in packets of 20 ms), the picture of a video call, transfers that offer half of the link's rate.
"""


ALSO = f", and in place of a kind a size like 2MB, or {', '.join(TRAFFIC)}"
"""What a flag takes as traffic, beside the kinds of a file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds a flag for each key. Several values, separated by commas, make a sweep."""
    parser.description = (
        "Run a path and its flows from flags, without a file. Several values of a flag, separated "
        "by commas, make a sweep: --cc cubic,bbr. Results are kept in results/try."
    )
    add_path(parser)
    _arguments.add_changes(parser)
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write the experiment, as TOML, and run it"
    )
    _arguments.add_running(parser, out=f"{OUT}")
    runs.add_where(parser)
    runs.add_report(parser)
    _arguments.add_view(parser)


def add_path(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that describe a path and its flows."""
    path = parser.add_argument_group("the path and its flows")
    for name, flag in FLAGS.items():
        path.add_argument(
            f"--{name}",
            type=partial(_several, name),
            metavar=flag.metavar,
            help=flag.about,
            dest=f"flag {name}",
        )


def given(args: argparse.Namespace) -> dict[str, list[Any]]:
    """The values of the flags that are given."""
    values = {name: getattr(args, f"flag {name}") for name in FLAGS}
    return {name: found for name, found in values.items() if found}


def run(args: argparse.Namespace) -> None:
    """Builds an experiment from the flags, and runs it."""
    values = given(args)
    experiment = loaded(_experiment(values))
    experiment = _arguments.changed(experiment, args)
    # An experiment that cannot run must not be saved.
    try:
        experiment.plans(args.on, kernel=args.kernel)
    except _core.ConfigError as error:
        raise _core.ConfigError(of_flags(str(error), values)) from None
    if args.save is not None:
        _save(args.save, experiment.contained() or experiment.to_dict())
    runs.run_and_show(experiment, args, args.out or OUT)
    if args.save is not None and not args.quiet:
        say(f"file    {args.save}", file=sys.stderr)


def _experiment(
    values: Mapping[str, list[Any]], spans: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The experiment that flags describe, as plain values. For a search, whose flags have `spans`
    of values, the run is long enough for all of these.
    """
    # The access links have all of the delay; the bottleneck has none.
    flow: dict[str, Any] = {"name": "flow", "from": "left1", "to": "right1"}
    flows = [flow]
    if "against" in values:
        flows.append({"name": "other", "from": "left1", "to": "right1"})
        if TRAFFIC["web"] in values.get("traffic", []):
            # A page should meet a flow in steady state, not at its start, and each repetition at
            # another point of it.
            flow |= {"start": "2 s", "start_jitter": "1 s"}
    calls = (TRAFFIC["voice"], TRAFFIC["video"])
    if "flows" in values and any(value in calls for value in values.get("traffic", [])):
        # Calls that begin at the same instant would send all their packets in bursts.
        flow["start_jitter"] = "20 ms"
    dumbbell = {"rate": "10 Mbit/s", "delay": "0 ms", "rtts": [RTT], "queue": "1 BDP"}
    plain: dict[str, Any] = {
        "name": "try",
        "duration": duration(
            {**values, **(spans or {})},
            has_other="against" in values,
            is_searched=spans is not None,
        ),
        "network": {"dumbbell": dumbbell},
        "flows": flows,
    }
    sweep: dict[str, list[Any]] = {}
    for name, given in values.items():
        path = FLAGS[name].path
        if path == "rtt":
            dumbbell["rtts"] = [given[0]]
            if len(given) > 1:
                dumbbell["rtts"] = ["$rtt"]
                plain["let"] = {"rtt": given[0]}
        else:
            _put_at(plain, path.split("."), given[0])
        if len(given) > 1:
            sweep[path] = given
    return plain | ({"sweep": sweep} if sweep else {})


def experiment_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The experiment that flags would describe, from values as a file has them."""
    values = {
        name: [_value(name, given) if isinstance(given, str) else given]
        for name, given in flags.items()
    }
    return _experiment(values)


def with_ranges(
    values: Mapping[str, list[Any]], over: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The experiment that flags describe, and the keys that range over several values: each with a
    list of values, or with all values between two (`10ms..200ms`). `over` has further ranges, by
    flag or by key.
    """
    spans = {name: span_or_list(found, f"--{name}") for name, found in values.items()}
    for name, one in spans.items():
        if name in over and (isinstance(one, dict) or len(one) > 1):
            raise _core.ConfigError(f"--over {name}: --{name} gives a range too; give one of them")
    sizes = _sizes(spans.get("traffic"))
    if sizes is not None:
        over = {"flows.flow.traffic.size": sizes, **over}
        spans["traffic"] = [{"kind": "bulk", "size": sizes["from"]}]
    spans |= {name: one for name, one in over.items() if name in FLAGS}
    # What is drawn has no first value; that of the flag stands until then.
    first = {
        name: [one["from"]] if isinstance(one, dict) else one[:1]
        for name, one in spans.items()
        if not isinstance(one, dict) or "from" in one
    }
    several = {name: one if isinstance(one, list) else [one] for name, one in spans.items()}
    if sizes is not None:
        several["traffic"] = [{"size": end} for end in sizes.values()]
    plain = _experiment(first, several)
    ranges = {key: one for key, one in over.items() if key not in FLAGS}
    for name, one in spans.items():
        if isinstance(one, list) and len(one) == 1:
            continue
        path = FLAGS[name].path
        if path == "rtt":
            plain["network"]["dumbbell"]["rtts"] = ["$rtt"]
            plain["let"] = {"rtt": first[name][0] if name in first else RTT}
        ranges[path] = one
    return plain, ranges


def _sizes(traffic: Any) -> dict[str, Any] | None:
    """The range of sizes, `1MB..100MB`, if that is the traffic."""
    only = traffic[0] if isinstance(traffic, list) and len(traffic) == 1 else None
    size = only.get("size") if isinstance(only, Mapping) else None
    if not isinstance(size, str) or ".." not in size:
        return None
    found = span_or_list(size, "--traffic")
    return found if isinstance(found, dict) else None


def span_or_list(given: str | list[Any], place: str) -> dict[str, Any] | list[Any]:
    """A range, `10ms..200ms`, or a list of values, from text or from the values of a flag. A
    mistake is at `place`.
    """
    values = _several("values", given) if isinstance(given, str) else given
    only = values[0] if len(values) == 1 else None
    if isinstance(only, str) and ".." in only:
        low, _, high = only.partition("..")
        if not low.strip() or not high.strip():
            raise _core.ConfigError(f"{place}: {only}: a range has two ends, like 10ms..200ms")
        return {"from": _arguments.value_of(low), "to": _arguments.value_of(high)}
    return values


def of_flags(mistakes: str, values: Mapping[str, Any], before: str = "--") -> str:
    """The text of mistakes, with each key replaced by the flag that sets it, `before` its name."""
    return "\n".join(_of_flags(line, values, before) for line in mistakes.splitlines())


def _of_flags(line: str, values: Mapping[str, Any], before: str) -> str:
    for name, flag in FLAGS.items():
        if name not in values:
            continue
        key = flag.path.replace("flows.flow.", "flows[0].").replace("flows.other.", "flows[1].")
        key = "network.dumbbell.rtts[0]" if flag.path == "rtt" else key
        for place in (key, f"over: {flag.path}"):
            if line.startswith(place) and line[len(place) :][:1] in (":", ".", "[", " "):
                # The same key again says nothing more.
                rest = line.removeprefix(place).replace(f": {key}: ", ": ", 1)
                also = ALSO if rest.startswith(": no kind of traffic") else ""
                return f"{before}{name}{rest}{also}"
    return line


def _put_at(plain: dict[str, Any], keys: list[str], value: Any) -> None:
    """Sets the value of a key; a flow is found by its name."""
    target: Any = plain
    for key in keys[:-1]:
        if isinstance(target, list):
            target = next(flow for flow in target if flow["name"] == key)
        else:
            target = target.setdefault(key, {})
    target[keys[-1]] = value


def _value(name: str, text: str) -> Any:
    """The value that a text stands for."""
    if name == "traffic" and text in TRAFFIC:
        return dict(TRAFFIC[text])
    close = get_close_matches(text, TRAFFIC, 1, 0.75) if name == "traffic" else []
    if close:
        raise argparse.ArgumentTypeError(
            f'no traffic is called "{text}"; did you mean "{close[0]}"?'
        )
    value = _arguments.value_of(text)
    if name == "traffic" and isinstance(value, str) and value[:1].isdigit():
        return {"kind": "bulk", "size": value}
    return value


def _several(name: str, text: str) -> list[Any]:
    """The values of a flag. Commas within brackets and quotation marks do not separate values."""
    parts, depth, is_quoted = [""], 0, False
    for character in text:
        is_quoted ^= character == '"'
        if not is_quoted:
            depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0 and not is_quoted:
            parts.append("")
        else:
            parts[-1] += character
    parts = [part.strip() for part in parts]
    if not all(parts):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty value")
    return [_value(name, part) for part in parts]


def _save(path: Path, plain: Mapping[str, Any]) -> None:
    """Writes the experiment, with the command that made it."""
    if path.suffix != ".toml":
        raise _core.ConfigError(f"--save: {path}: experiments are saved as TOML, like mine.toml")
    if not path.parent.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {path.parent} is not a folder")
    if path.exists() and not (path.is_file() and path.read_bytes().startswith(MADE.encode())):
        raise FileExistsError(f"{path}: was not made by tcplab try; name another file")
    command = _core.printable(shlex.join(["tcplab", *sys.argv[1:]]))
    head = f"{MADE}{command}\n# Run it with `tcplab run {_core.printable(str(path))}`.\n\n"
    put((head + toml_writer.written(plain)).encode(), path)
