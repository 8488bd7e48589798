"""`make parity`: runs the grid on both backends, reports the differences, and writes the page."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tcplab as lab
from parity import spread
from parity.grid import CELLS, PROFILE, Cell, cells
from parity.measures import Row, rows, traces
from parity.page import cell_text, page
from parity.runs import Settings, compared, together
from parity.traces import first_difference, report

ROOT = Path(__file__).parent.parent.parent
KERNEL_RUNS = ROOT / "target/parity"
"""The cache of kernel runs, so that a second `make parity` does not run the kernel again."""
NUMBERS = ROOT / "target/parity.json"
PAGE = ROOT / "docs/explanation/parity.md"


def measured(chosen: Sequence[Cell], overrides: Settings) -> Iterator[Row]:
    """All rows of all cells, printed as they are computed."""
    for some in together(chosen):
        comparison = compared(some, overrides, KERNEL_RUNS)
        for cell in some:
            found = rows(cell, comparison)
            said = ", ".join(f"{row.metric} {cell_text(row)}" for row in found)
            print(f"{cell.name}: {said}", flush=True)
            yield from found


def show_first_difference(cell: Cell, overrides: Settings, wanted: str | None, lines: int) -> None:
    """Both traces of a flow, around the first ACK after which their states differ."""
    comparison = compared([cell], overrides, KERNEL_RUNS)
    found = []
    for flow, sim, linux in traces(cell, comparison):
        place = first_difference(sim, linux)
        if wanted in (flow, None):
            found.append(
                (float("inf") if place is None else linux.time_of(place), flow, sim, linux)
            )
    if not found:
        sys.exit(f"--flow: no flow of {cell.name} is called {wanted}")
    _, flow, sim, linux = min(found, key=lambda one: one[0])
    print(f"{cell.name}: {flow}")
    print(report(sim, linux, before=lines // 3, after=lines - lines // 3))


def about(overrides: Settings) -> str:
    """The versions and the options that were compared."""
    (kernel,) = [known for known in lab.kernels() if known.name == lab.DEFAULT_KERNEL]
    changed = ", ".join(f"{option} = {json.dumps(value)}" for option, value in overrides.items())
    sim = f"`sim` with the profile `{PROFILE}`{f' but {changed}' if changed else ''}"
    return f"{sim}, and `linux` with Linux {kernel.release}"


def setting(text: str) -> tuple[str, Any]:
    """An option of the stack and its value."""
    option, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: expected an option and a value, like rack=false")
    try:
        return option.strip(), json.loads(value)
    except json.JSONDecodeError:
        return option.strip(), value.strip()


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="make parity", description=__doc__)
    parser.add_argument(
        "--cell",
        action="append",
        default=[],
        metavar="PART",
        help="only the cells whose names contain this; several times: all of them",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the cells")
    parser.add_argument(
        "--first-difference",
        metavar="CELL",
        help="print both traces around the first ACK that leaves the two in different states",
    )
    parser.add_argument("--flow", help="of this flow; else of the one that differs first")
    parser.add_argument(
        "--lines", type=int, default=36, metavar="N", help="so many ACKs of them (default: 36)"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="run the cells with N seeds, and say how far the means are apart",
    )
    parser.add_argument(
        "--set",
        action="append",
        type=setting,
        default=[],
        metavar="OPTION=VALUE",
        help="another option of the simulator's stack, like rack=false",
    )
    return parser.parse_args(words)


def main() -> None:
    """Runs the selected cells. The page and the JSON file always cover all cells."""
    args = arguments()
    chosen = cells(*args.cell)
    overrides = dict(args.set)
    if args.first_difference is not None:
        chosen = cells(*args.cell, args.first_difference)
    if args.list or not chosen or (args.first_difference is not None and len(chosen) > 1):
        said = chosen or CELLS
        print("\n".join(cell.name for cell in said))
        if args.list:
            return
        sys.exit("error: no cell has such a name" if not chosen else "error: name one of these")
    if args.first_difference is not None:
        show_first_difference(chosen[0], overrides, args.flow, args.lines)
        return
    if args.seeds is not None:
        print("| cell | flow | measure | sim, and deviation | linux | difference of the means |")
        print("|---|---|---|---|---|---|")
        for cell in chosen:
            for line in spread.report(cell, args.seeds):
                print(line, flush=True)
        return
    began = time.monotonic()
    found = list(measured(chosen, overrides))
    bounded = [row for row in found if row.holds is not None]
    held = sum(bool(row.holds) for row in bounded)
    print(f"{held} of {len(bounded)} bounds hold; {time.monotonic() - began:.0f} s")
    if len(chosen) == len(CELLS):
        NUMBERS.parent.mkdir(exist_ok=True)
        NUMBERS.write_text(json.dumps([row.to_dict() for row in found], indent=1) + "\n")
        before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        PAGE.write_text(page(found, about(overrides), before), encoding="utf-8")
        print(f"numbers  {NUMBERS.relative_to(ROOT)}\npage     {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    try:
        main()
    except (lab.ConfigError, lab.KernelError, lab.RunError) as error:
        sys.exit(f"error: {error}")
