"""Runs random experiments on both backends and compares the flows ACK for ACK.

Each experiment is drawn from the seed and its number; the kinds alternate. Differences are printed
as they are found, and a table by kind at the end. `--case` repeats one experiment and shows both
traces around the first difference; with `--shrink` it first searches for the smallest experiment
that still differs.

With `--queues`, the queue, drops and marks of each queue discipline are compared as well. With
`--links`, links lose, delay, reorder and change. With `--sockets`, programs set buffer sizes, and
flows of one host have different options. With `--hosts`, the sending host has a queue of its own;
with `--offload`, the receiving host has GRO. With `--applications`, the traffic is web pages,
arrivals, requests, UDP and writes, and each transfer is compared instead.

With `--cc`, all flows have one congestion control. A congestion control that the default kernel
lacks needs `--kernel`, with a kernel built with it.

With `--sim`, experiments of the whole schema run on `sim` alone, each twice: no run may panic,
break a law, hang, or have another digest the second time.

With `--reader`, mutated texts of experiments are parsed, and nothing is run: no text may cause a
panic, a hang, or more than 4 GB of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import tcplab as lab
from fuzz import alone, queues, transfers, whole
from fuzz.compare import Flow, Outcome, compare
from fuzz.draw import APPLICATIONS, KINDS, Kinds, Plain, draw, with_cc
from fuzz.hosts import HOSTS
from fuzz.links import LINKS
from fuzz.offload import OFFLOAD
from fuzz.page import (
    table,
    table_of_queues,
    table_of_transfers,
    write,
    write_links,
    write_queues,
    write_transfers,
)
from fuzz.queues import QUEUES
from fuzz.shrink import prune, shrink
from fuzz.sockets import SOCKETS
from parity.traces import report

MOST_MEMORY = 4 << 30
"""Bytes of address space for the reader, and for Cargo before it."""

ERRORS = (lab.ConfigError, lab.RunError, lab.KernelError)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument(
        "--count", type=int, default=120, help="how many experiments, those of other kinds included"
    )
    parser.add_argument("--seed", type=int, default=1)
    groups = (KINDS, APPLICATIONS, LINKS, SOCKETS, HOSTS, OFFLOAD, QUEUES)
    parser.add_argument(
        "--kind", action="append", choices=sorted({kind for kinds in groups for kind in kinds})
    )
    parser.add_argument("--workers", type=int, default=2, help="how many at a time")
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    parser.add_argument("--case", type=int, help="only the experiment of this number, in detail")
    parser.add_argument("--shrink", action="store_true", help="with --case: make it smaller first")
    parser.add_argument("--tries", type=int, default=200, help="of --shrink")
    parser.add_argument("--flow", help="with --case: show this flow, not the first that differs")
    parser.add_argument("--lines", type=int, default=36, help="of each trace")
    parser.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", help="of sim's stack only"
    )
    parser.add_argument("--cc", help="of all flows, where ACKs are compared")
    parser.add_argument("--kernel", help="compare with this kernel, not with the default one")
    parser.add_argument("--applications", action="store_true", help="the kinds with transfers")
    parser.add_argument("--links", action="store_true", help="the kinds with links that change")
    parser.add_argument("--sockets", action="store_true", help="the kinds with options of sockets")
    parser.add_argument("--queues", action="store_true", help="each queue discipline, by its queue")
    parser.add_argument("--hosts", action="store_true", help="the kinds with queues of hosts")
    parser.add_argument("--offload", action="store_true", help="the kinds with receive offload")
    parser.add_argument("--sim", action="store_true", help="only `sim`, with the whole schema")
    parser.add_argument("--reader", action="store_true", help="only the reader of experiments")
    args = parser.parse_args()
    if (args.cc or args.kernel) and (
        args.applications or args.queues or args.sim or args.reader or args.write
    ):
        parser.error("--cc and --kernel are for experiments whose ACKs are compared")
    if args.reader:
        sys.exit(only_the_reader(args))
    if args.sim:
        sys.exit(only_sim(args))
    if args.queues and args.case is None:
        survey_queues(args)
    elif args.applications:
        survey_transfers(args) if args.case is None else detail_of_transfers(args)
    elif args.case is None:
        survey(args)
    else:
        detail(args)


def only_the_reader(args: argparse.Namespace) -> int:
    """Runs the test of the reader with this many texts. Returns the exit status."""
    build = ["cargo", "test", "--quiet", "--package", "tcplab-model", "--test", "model"]
    subprocess.run([*build, "--no-run"], check=True)
    environment = {"TCPLAB_FUZZ": str(args.count), "TCPLAB_FUZZ_SEED": str(args.seed)}
    return subprocess.run(
        ["prlimit", f"--as={MOST_MEMORY}", *build, "mutated", "--", "--nocapture"],
        env={**os.environ, **environment},
        check=False,
    ).returncode


def survey(args: argparse.Namespace) -> None:
    """Compares many experiments and prints the table."""
    drawn = _drawn(args)
    kinds = list(drawn)
    wanted = args.kind or kinds
    numbers = [number for number in range(args.count) if kinds[number % len(kinds)] in wanted]
    outcomes: dict[int, tuple[str, Sequence[Flow]]] = {}
    with ThreadPoolExecutor(args.workers) as pool:
        jobs = {pool.submit(_compared, args, number, drawn): number for number in numbers}
        for job in as_completed(jobs):
            number, outcome = jobs[job], job.result()
            kind = kinds[number % len(kinds)]
            if isinstance(outcome, str):
                print(f"{number:5} {kind:16} error: {outcome}", flush=True)
                continue
            outcomes[number] = kind, outcome.flows
            for flow in outcome.flows:
                if flow.parts:
                    print(f"{number:5} {kind:16} {flow.name}: {flow.parts}", flush=True)
            if outcome.first:
                differing = sum(flow.difference is not None for flow in outcome.flows)
                worst = max(flow.apart for flow in outcome.flows)
                print(
                    f"{number:5} {kind:16} {differing} of {len(outcome.flows)} flows, "
                    f"goodput up to {worst:.2%}; first {outcome.first.name} {outcome.first.cc}: "
                    f"{outcome.first.difference} of {outcome.first.acks}",
                    flush=True,
                )
    by_kind: dict[str, list[Flow]] = {}
    for kind, flows in (outcomes[number] for number in sorted(outcomes)):
        by_kind.setdefault(kind, []).extend(flows)
    print(table(by_kind))
    if args.write and args.links:
        write_links(by_kind, args.seed, args.count)
    elif args.write and not (args.sockets or args.hosts or args.offload):
        write(outcomes, args.seed)


def _drawn(args: argparse.Namespace) -> Kinds:
    if args.links:
        return LINKS
    if args.hosts:
        return HOSTS
    if args.queues:
        return QUEUES
    if args.offload:
        return OFFLOAD
    return SOCKETS if args.sockets else KINDS


def survey_queues(args: argparse.Namespace) -> None:
    """Compares the queues of many experiments and prints the table."""
    kinds = list(QUEUES)
    wanted = args.kind or kinds
    numbers = [number for number in range(args.count) if kinds[number % len(kinds)] in wanted]

    def compared(number: int) -> queues.Queue | str:
        try:
            return queues.compare(draw(args.seed, number, QUEUES).experiment)
        except ERRORS as error:
            return str(error)

    by_kind: dict[str, list[queues.Queue]] = {kind: [] for kind in wanted}
    with ThreadPoolExecutor(args.workers) as pool:
        for number, outcome in zip(numbers, pool.map(compared, numbers), strict=True):
            kind = kinds[number % len(kinds)]
            if isinstance(outcome, str):
                print(f"{number:5} {kind:20} error: {outcome}", flush=True)
                continue
            by_kind[kind].append(outcome)
            if outcome.identical < outcome.flows:
                differing = outcome.flows - outcome.identical
                print(
                    f"{number:5} {kind:20} {differing} of {outcome.flows} flows, "
                    f"sim {outcome.sim}, linux {outcome.linux}",
                    flush=True,
                )
    print(table_of_queues(by_kind))
    if args.write:
        write_queues(by_kind, args.seed, args.count)


def survey_transfers(args: argparse.Namespace) -> None:
    """Compares the transfers of many experiments and prints the table."""
    kinds = list(APPLICATIONS)
    wanted = args.kind or kinds
    numbers = [number for number in range(args.count) if kinds[number % len(kinds)] in wanted]
    outcomes: dict[int, tuple[str, transfers.Transfers]] = {}

    def compared(number: int) -> transfers.Transfers | str:
        try:
            return transfers.compare(draw(args.seed, number, APPLICATIONS).experiment)
        except ERRORS as error:
            return str(error)

    with ThreadPoolExecutor(args.workers) as pool:
        jobs = {pool.submit(compared, number): number for number in numbers}
        for job in as_completed(jobs):
            number, outcome = jobs[job], job.result()
            kind = kinds[number % len(kinds)]
            if isinstance(outcome, str):
                print(f"{number:5} {kind:10} error: {outcome}", flush=True)
                continue
            outcomes[number] = kind, outcome
            for part in outcome.parts:
                print(f"{number:5} {kind:10} {part}", flush=True)
            if outcome.first:
                differing = sum(bool(row.differs) for row in outcome.rows)
                print(
                    f"{number:5} {kind:10} {differing} of {len(outcome.rows)} rows, "
                    f"means up to {outcome.apart:.2%}; first {outcome.first}",
                    flush=True,
                )
    by_kind: dict[str, list[transfers.Transfers]] = {}
    for _, (kind, outcome) in sorted(outcomes.items()):
        by_kind.setdefault(kind, []).append(outcome)
    print(table_of_transfers(by_kind))
    if args.write:
        write_transfers(outcomes, args.seed)


def detail_of_transfers(args: argparse.Namespace) -> None:
    """Shows one experiment, shrunk if requested, and all rows that differ."""
    experiment = draw(args.seed, args.case, APPLICATIONS).experiment
    overrides = dict(map(_option, args.set))
    if args.shrink:

        def differs_at(candidate: Plain) -> float | None:
            try:
                first = transfers.compare(candidate, overrides).first
            except ERRORS:
                return None
            if first is None:
                return None
            print(f"still differs: {first}", flush=True)
            return first.at_s

        experiment = shrink(experiment, differs_at, args.tries)
    print(json.dumps(experiment, indent=2))
    outcome = transfers.compare(experiment, overrides)
    for row in outcome.rows:
        if row.differs:
            print(row)
    print(f"{sum(not row.differs for row in outcome.rows)} of {len(outcome.rows)} are identical")


def only_sim(args: argparse.Namespace) -> int:
    """Runs experiments on `sim` alone. Returns the exit status."""
    if args.case is None:
        found = alone.survey(args.seed, range(args.count), args.workers)
        print(found)
        for says, count in found.refusals.most_common(args.lines):
            print(f"{count:6} refused: {says}")
        return 1 if found.finds else 0
    experiment = whole.draw(args.seed, args.case)
    kind, says = alone.check(experiment)
    if args.shrink and kind == alone.FOUND:
        experiment = prune(experiment, lambda it: alone.check(it)[0] == alone.FOUND, args.tries)
        kind, says = alone.check(experiment)
    print(json.dumps(experiment, indent=2))
    print(f"{kind}: {says}" if says else kind)
    return 1 if kind == alone.FOUND else 0


def _compared(args: argparse.Namespace, number: int, kinds: Kinds) -> Outcome | str:
    try:
        experiment = with_cc(draw(args.seed, number, kinds).experiment, args.cc)
        return compare(experiment, kernel=args.kernel)
    except ERRORS as error:
        return str(error)


def detail(args: argparse.Namespace) -> None:
    """Shows one experiment, shrunk if requested, and where it differs."""
    experiment = with_cc(draw(args.seed, args.case, _drawn(args)).experiment, args.cc)
    overrides = dict(map(_option, args.set))
    if args.shrink:

        def differs_at(candidate: Plain) -> float | None:
            try:
                first = compare(candidate, overrides, args.kernel).first
            except ERRORS:
                return None
            if first is None or first.difference is None:
                return None
            print(f"still differs at {first.difference.time_s:.3f} s: {first.name}", flush=True)
            return first.difference.time_s

        experiment = shrink(experiment, differs_at, args.tries)
    print(json.dumps(experiment, indent=2))
    outcome = compare(experiment, overrides, args.kernel)
    for flow in outcome.flows:
        says = flow.difference or flow.parts or "identical"
        print(f"{flow.name}, {flow.cc}: {says}, goodput {flow.goodput}")
    shown = args.flow or (outcome.first and outcome.first.name)
    if shown:
        sim, linux = outcome.traces[shown]
        print(f"{shown}, around the first difference:")
        print(report(sim, linux, before=args.lines // 3, after=args.lines - args.lines // 3))


def _option(text: str) -> tuple[str, object]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


if __name__ == "__main__":
    try:
        main()
    except ERRORS as error:
        sys.exit(f"error: {error}")
