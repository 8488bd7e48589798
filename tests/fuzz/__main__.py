"""`make fuzz`: random experiments on both backends, compared ACK for ACK."""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

import tcplab as lab
from fuzz.compare import Flow, compare, summary
from fuzz.draw import KINDS, draw
from parity.traces import report


def one(seed: int, number: int) -> tuple[int, str, list[Flow], str]:
    """Compares the experiment of this number; an error is a text."""
    case = draw(seed, number)
    try:
        return number, case.kind, list(compare(case.experiment).flows), ""
    except (lab.ConfigError, lab.RunError, lab.KernelError) as error:
        return number, case.kind, [], str(error)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=110)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--kind", action="append", default=[])
    parser.add_argument("--flow")
    parser.add_argument("--lines", type=int, default=36)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--set", action="append", default=[])
    args = parser.parse_args()
    if args.case is not None:
        show(args)
        return
    kinds = list(KINDS)
    numbers = [n for n in range(args.count) if not args.kind or kinds[n % len(kinds)] in args.kind]
    by_kind: dict[str, list[Flow]] = {}
    with ThreadPoolExecutor(args.workers) as pool:
        jobs = [pool.submit(one, args.seed, number) for number in numbers]
        for job in as_completed(jobs):
            number, kind, flows, error = job.result()
            by_kind.setdefault(kind, []).extend(flows)
            bad = [flow for flow in flows if flow.difference]
            if error:
                print(f"{number:5} {kind:16} ERROR {error}", flush=True)
            elif bad:
                first = min(bad, key=lambda flow: flow.difference.time_s)
                worst = max(flow.apart for flow in flows)
                print(
                    f"{number:5} {kind:16} {len(bad)}/{len(flows)} {first.name} {first.cc} "
                    f"{first.difference} of {first.acks}; goodput {worst:.2%}",
                    flush=True,
                )
    for kind in kinds:
        if kind in by_kind:
            print(f"{kind:16} {summary(by_kind[kind])}")
    print(f"{'all':16} {summary([flow for flows in by_kind.values() for flow in flows])}")


def show(args: argparse.Namespace) -> None:
    case = draw(args.seed, args.case)
    overrides = {}
    for text in args.set:
        name, _, value = text.partition("=")
        try:
            overrides[name] = json.loads(value)
        except json.JSONDecodeError:
            overrides[name] = value
    shown = json.dumps(case.experiment)
    print(case.kind, shown if len(shown) < 1500 else shown[:1500])
    outcome = compare(case.experiment, overrides)
    for flow in outcome.flows:
        print(flow.name, flow.cc, flow.difference or "identical", f"goodput {flow.goodput}")
    first = outcome.first
    if first is None:
        return
    sim, linux = outcome.traces[args.flow or first.name]
    print(args.flow or first.name)
    print(report(sim, linux, before=args.lines // 3, after=args.lines - args.lines // 3))


if __name__ == "__main__":
    try:
        main()
    except (lab.ConfigError, lab.KernelError, lab.RunError) as error:
        sys.exit(f"error: {error}")
