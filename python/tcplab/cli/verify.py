"""tcplab verify RESULTS: checks that stored results are unchanged and keep the laws."""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path

import tcplab
from tcplab._advice.folder import ADVICE, DESTINATIONS, is_asked, is_listed
from tcplab._core import printable
from tcplab.cli import _arguments
from tcplab.cli._output import say

FOUND = 1
"""The exit status if there is a fault. A run that cannot be repeated is not a fault."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the results and the checks."""
    parser.add_argument(
        "results",
        type=_arguments.results,
        nargs="+",
        metavar="RESULTS",
        help="a folder of results (DIR of tcplab run), of several such, or of one run; or advice, "
        "whose runs are all repeated",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="repeat every run and compare it bit for bit; runs of another version of tcplab, or "
        "with missing requirements, are listed and do not change the exit status",
    )
    _arguments.add_workers(parser)
    _arguments.add_allow_read(
        parser, "with --again, a path that programs may read, as they could before"
    )


def run(args: argparse.Namespace) -> int:
    """Prints a line for each fault, and the totals."""
    places, advice, several = [], [], []
    for given in args.results:
        named = isinstance(given, Path) and given.name in (ADVICE, DESTINATIONS)
        place = given.parent if named else given
        own = [place]
        if isinstance(place, Path) and is_listed(place):
            several.append(place)
            own = sorted(folder for folder in place.iterdir() if is_asked(folder))
        places += own
        advice += [one for one in own if isinstance(one, Path) and is_asked(one)]
    # Advice is only as good as its runs, so these are always run again.
    again = args.again or bool(advice)
    checked = tcplab.verify(places, again=again, workers=args.workers, allow_read=args.allow_read)
    wrong = 0
    if advice:
        from tcplab._advice import api, destinations  # noqa: PLC0415 (SciPy takes a while)

        found = {folder / ADVICE: api.repeated(folder) for folder in advice}
        found |= {folder / DESTINATIONS: destinations.repeated(folder) for folder in several}
        for file, differences in found.items():
            wrong += bool(differences)
            for difference in differences:
                say(printable(f"{file}: {difference}"))
    for (folder, run), findings in groupby(checked.findings, key=lambda it: (it.folder, it.run)):
        wrong += 1
        place = f"{folder}: " if run is None else f"{folder}: {run}: "
        said = (str(finding).removeprefix(place) for finding in findings)
        say(printable(place) + "; ".join(said))
    number = len(checked.runs)
    runs = "1 run" if number == 1 else f"{number} runs"
    totals = f"{runs} checked, {wrong} wrong"
    if checked.unrepeated:
        for finding in checked.unrepeated:
            say(printable(str(finding)))
        totals += f"; {len(checked.unrepeated)} not run again"
    say(totals)
    return FOUND if wrong else 0
