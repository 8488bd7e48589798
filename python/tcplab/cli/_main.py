"""The entry point of the `tcplab` command, and its exit status.

Data goes to stdout, everything else to stderr. The exit status is 0 on success, 1 if `verify` finds
a fault, 2 if the request cannot be carried out, 70 if a run breaks a law that every run must
keep (a bug in tcplab), 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import warnings
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tcplab._core import ConfigError, InternalError, KernelError, RunError, __version__
from tcplab._warnings import TcplabWarning
from tcplab.cli import _signals
from tcplab.cli._output import Parser, say

COMMANDS = {
    "try": ("trying", "run a path and its flows from flags, without a file"),
    "run": ("run", "run an experiment file: print a table, save all tables and a chart"),
    "show": ("show", "print stored results again"),
    "report": (
        "report",
        "write one page with the answer, its certainty and its cost, charts and tables",
    ),
    "serve": ("serve", "show stored results in a browser on this computer, also while runs go on"),
    "query": ("query", "query the tables of stored results in SQL"),
    "compare": (
        "compare",
        "run an experiment file on several backends: print both numbers and the difference",
    ),
    "advise": (
        "advise",
        "find the best settings for a path and its traffic, how certain they are, and at whose "
        "cost",
    ),
    "capture": (
        "capture",
        "analyse a packet capture: its contents, its faults, and its connections",
    ),
    "paper": ("paper", "repeat published studies, and check which of their claims hold"),
    "new": ("new", "write an experiment file to start from"),
    "check": ("check", "check an experiment file and print what would run"),
    "draw": ("draw", "draw the network of an experiment file: hosts, links and the paths of flows"),
    "verify": (
        "verify",
        "check stored results: against their digest, against the laws, and by running them again",
    ),
    "list": (
        "listing",
        "list the congestion controls, the profiles, the columns of result tables, or metrics",
    ),
    "explain": (
        "explain",
        "explain a congestion control, its parameters and its presets",
    ),
    "kernel": ("kernel", "build, list or remove the kernels that `run --on linux` boots"),
    "schema": ("schema", "print the JSON Schema of experiment files, or of results"),
    "completion": ("completion", "print the completion script of a shell"),
}
"""The module and the help text of each subcommand, by name. A module is loaded when it is used."""

REFUSED = 2

INTERNAL = 70
"""EX_SOFTWARE of `sysexits.h`: an internal software error."""


def parser_of(named: Container[str], known: Iterable[str] = COMMANDS) -> Parser:
    """The parser of a command line with these subcommands, with the arguments of the named ones."""
    parser = Parser(prog="tcplab", description="A laboratory for transport performance.")
    parser.add_argument("--version", action="version", version=f"tcplab {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in known:
        module, about = COMMANDS[name]
        subparser = subparsers.add_parser(
            name, help=about, description=f"{about[:1].upper()}{about[1:]}."
        )
        if name in named:
            command = importlib.import_module(f"tcplab.cli.{module}")
            command.add_arguments(subparser)
            subparser.set_defaults(run=command.run)
    return parser


def parsed(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the arguments and loads the module of the subcommand."""
    words = sys.argv[1:] if argv is None else argv
    # No option before the subcommand takes a value.
    named = [word for word in words if not word.startswith("-")][:1]
    # A parser of one subcommand is made sooner. All are listed by an option in front, `--help`, and
    # beside a word that is none of them.
    known = named if words[:1] == named and COMMANDS.keys() & named else COMMANDS
    return parser_of(named, known).parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status."""
    return obeyed(parsed(argv))


def obeyed(args: argparse.Namespace) -> int:
    """Carries out the parsed arguments. Returns the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A character that cannot be encoded must not prevent the rest from being printed.
        sys.stdout.reconfigure(errors="replace")
    status = 0
    try:
        with _signals.obeyed(), _shown_warnings():
            status = args.run(args) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has closed the pipe. The interpreter must not flush into it at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ConfigError as error:
        return _refuse(str(error))
    except (KernelError, RunError) as error:
        # Messages of a compiler or a kernel have several lines.
        say(f"error: {error}", file=sys.stderr)
        return REFUSED
    except InternalError as error:
        say(f"internal error: {error}", file=sys.stderr)
        return INTERNAL
    except OSError as error:
        return _refuse(_reason(error))
    except KeyboardInterrupt as interrupt:
        # After SIGHUP there may be no terminal to write to.
        with suppress(OSError):
            say(str(interrupt) or "interrupted", file=sys.stderr)
        return _signals.exit_status()
    return status


@contextmanager
def _shown_warnings() -> Iterator[None]:
    """Prints tcplab's own warnings in the form of error messages, each once."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, TcplabWarning):
            plainly(message, category, *place, **more)
        elif str(message) not in shown:
            shown.add(str(message))
            say(f"warning: {message}", file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", TcplabWarning)
        plainly, warnings.showwarning = warnings.showwarning, show
        yield


def _refuse(message: str) -> int:
    for line in message.split("\n"):
        say(f"error: {line}", file=sys.stderr)
    return REFUSED


def _reason(error: OSError) -> str:
    """The message of a system error in the form of tcplab's own: place first, in lower case."""
    if error.strerror is None:
        return str(error)
    place = f"{error.filename}: " if error.filename is not None else ""
    return place + error.strerror[:1].lower() + error.strerror[1:]
