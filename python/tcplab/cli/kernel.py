"""tcplab kernel build|list|remove: the kernels that `run --on linux` boots."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import tcplab
from tcplab._text.cells import LEFT, Column
from tcplab._text.plain_tables import table
from tcplab.cli._output import say

ACTIONS = {
    "build": "build a kernel from Debian's source, or from your own",
    "list": "list the kernels that have been built",
    "remove": "remove a kernel",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the actions and their arguments."""
    actions = parser.add_subparsers(required=True, metavar="ACTION", dest="action")
    parsers = {
        action: actions.add_parser(action, help=text, description=f"{text[:1].upper()}{text[1:]}.")
        for action, text in ACTIONS.items()
    }
    build = parsers["build"]
    source = build.add_mutually_exclusive_group()
    source.add_argument(
        "--version",
        default=tcplab.DEFAULT_KERNEL,
        metavar="VERSION",
        help="build this version from Debian's source: 6.12 (the default) or 6.1",
    )
    source.add_argument(
        "--source",
        type=Path,
        metavar="PATH",
        help="build from this source tree or tarball, which is not modified",
    )
    build.add_argument(
        "--hz",
        type=int,
        default=1000,
        metavar="N",
        help="timer ticks per second, from 100 to 1000 (the default)",
    )
    build.add_argument(
        "--cc",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="compile in this C file with a congestion control; may be given several times",
    )
    build.add_argument(
        "--name",
        metavar="NAME",
        help="the name of the kernel (default: its version and non-default options)",
    )
    build.add_argument(
        "--jobs",
        type=_at_least_one,
        metavar="N",
        help="files compiled at once (default: one per processor)",
    )
    build.add_argument("--quiet", action="store_true", help="show no progress")
    parsers["remove"].add_argument("name", metavar="NAME", help="the kernel's name")


def run(args: argparse.Namespace) -> None:
    """Builds, lists or removes kernels."""
    match args.action:
        case "build":
            _build(args)
        case "list":
            _list()
        case _:
            tcplab.remove_kernel(args.name)


def _build(args: argparse.Namespace) -> None:
    before = {kernel.name: kernel.key for kernel in tcplab.kernels()}
    began = time.monotonic()
    kernel = tcplab.build_kernel(
        args.version,
        source=args.source,
        hz=args.hz,
        congestion_controls=args.cc,
        name=args.name,
        jobs=args.jobs,
        progress=False if args.quiet else None,
    )
    if before.get(kernel.name) == kernel.key:
        outcome = "is there already"
    elif kernel.key in before.values():
        outcome = "is a copy of one that was there already"
    else:
        outcome = f"was built in {time.monotonic() - began:.0f} s"
        if kernel.name in before:
            outcome += " and replaces another"
    say(f"kernel {kernel.name} (Linux {kernel.release}, {kernel.hz} Hz) {outcome}", file=sys.stderr)


def _list() -> None:
    kernels = tcplab.kernels()
    if not kernels:
        say("there are no kernels; `tcplab kernel build` builds one", file=sys.stderr)
        return
    heads = [
        Column("name", LEFT),
        Column("Linux", LEFT),
        Column("Hz"),
        Column("", LEFT),
        Column("source", LEFT),
        Column("congestion controls", LEFT),
    ]
    rows = [
        [
            kernel.name,
            kernel.release,
            str(kernel.hz),
            "outdated: build again" if kernel.is_outdated else "",
            kernel.source,
            " ".join(kernel.congestion_controls),
        ]
        for kernel in kernels
    ]
    if not any(kernel.is_outdated for kernel in kernels):
        heads, rows = [*heads[:3], *heads[4:]], [[*row[:3], *row[4:]] for row in rows]
    say(table(heads, rows))


def _at_least_one(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 1")
    return number
