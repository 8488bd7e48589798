"""tcplab check FILE: shows what an experiment file would run, without running it."""

from __future__ import annotations

import argparse
import json
from typing import Any

import tcplab
from tcplab._core import Plan, printable
from tcplab._experiment.labels import labels
from tcplab._run.backends import BACKENDS
from tcplab._run.sandbox import commands_of
from tcplab._text.cells import LEFT, Column
from tcplab._text.plain_tables import folded, table
from tcplab._warnings import warn_of
from tcplab.cli import _arguments, _network
from tcplab.cli._output import say

MOST_RUNS = 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the experiment."""
    _arguments.add_experiment(parser)
    parser.add_argument(
        "--on",
        metavar="BACKEND",
        help="the backend: sim or linux (default: every backend that can run it)",
    )


def run(args: argparse.Namespace) -> None:
    """Prints hosts, links, flows and runs, and the backends that can run them."""
    experiment = _arguments.experiment(args)
    runs_on: dict[str, list[Plan]] = {}
    refusals: list[tcplab.ConfigError | tcplab.KernelError] = []
    for backend in BACKENDS:
        try:
            runs_on[backend] = experiment.plans(backend)
        except (tcplab.ConfigError, tcplab.KernelError) as error:
            refusals.append(error)
    if args.on is not None:
        plans = runs_on.get(args.on) or experiment.plans(args.on)
    elif runs_on:
        plans = next(iter(runs_on.values()))
    else:
        raise refusals[0]
    warn_of(plans)
    first: dict[str, Any] = json.loads(plans[0].to_json())
    repetitions = sum(plan.swept == plans[0].swept for plan in plans)
    variants = len(plans) // repetitions
    name = printable(first["experiment"])
    most = "" if plans[0].until is None else "up to "
    say(f"{name}: {most}{_number(variants, repetitions)}, {first['duration']} each")
    say(f"runs on {' and '.join(runs_on)}")
    for refusal in refusals:
        say(f"\n{refusal}")
    if variants > 1:
        say("\nHosts, links and flows of the first variant:")
    say(f"\n{_network.hosts(first)}\n\n{_network.links(first)}\n\n{_network.flows(first)}\n")
    if commands := commands_of(plans):
        shown, left_out = folded([[command] for command in commands], MOST_RUNS)
        say("programs that would run:")
        say("\n".join(f"  {printable(command)}" for (command,) in shown))
        say(f"  ... and {left_out} more\n" if left_out else "")
    paths = [path for path, _ in plans[0].swept]
    heads = [Column("run", LEFT), Column("seed"), *(Column(path, LEFT) for path in paths)]
    short = {path: labels([dict(plan.swept)[path] for plan in plans]) for path in paths}
    rows = [
        [plan.id, str(plan.seed), *(short[path][value] for path, value in plan.swept)]
        for plan in plans
    ]
    shown, left_out = folded(rows, MOST_RUNS)
    say(table(heads, shown))
    if left_out:
        say(f"... and {left_out} more runs")


def _number(variants: int, repetitions: int) -> str:
    runs = variants * repetitions
    total = "1 run" if runs == 1 else f"{runs} runs"
    if variants > 1 and repetitions > 1:
        return f"{variants} variants x {repetitions} repetitions = {total}"
    return total
