"""The frame of the `tcplab` command, and its exit status.

Data goes to standard output, everything else to standard error. The exit status is 0 if all went
well, 1 if `verify` finds something wrong, 2 if what was asked for cannot be done, 70 if a run
breaks a law that no run may break (a mistake in tcplab), 130 after Ctrl-C, 143 after SIGTERM, 129
after SIGHUP.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tcplab import ConfigError, InternalError, KernelError, RunError, TcplabWarning, __version__
from tcplab.cli import _signals, check, compare, draw, explain, kernel, listing, run, schema, verify
from tcplab.cli._say import Parser, say

COMMANDS = [run, compare, check, draw, verify, listing, explain, kernel, schema]

REFUSED = 2

INTERNAL = 70
"""What `sysexits.h` calls an internal software error."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; gives the exit status."""
    parser = Parser(prog="tcplab", description="A laboratory for transport performance.")
    parser.add_argument("--version", action="version", version=f"tcplab {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        subparser = subparsers.add_parser(
            command.NAME, help=command.HELP, description=f"{command.HELP.capitalize()}."
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    args = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where a character cannot be shown, the rest still can.
        sys.stdout.reconfigure(errors="replace")
    status = 0
    try:
        with _signals.obeyed(), _shown_warnings():
            status = args.run(args) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # Who read the output has seen enough. The interpreter must not try to write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ConfigError as error:
        return _refuse(str(error))
    except (KernelError, RunError) as error:
        # Several lines are what a compiler or a kernel says.
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
    """Our own warnings as lines like those of mistakes, each once."""
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
    """What the system said, in the form of our own messages: the place first, in lower case."""
    if error.strerror is None:
        return str(error)
    place = f"{error.filename}: " if error.filename is not None else ""
    return place + error.strerror[:1].lower() + error.strerror[1:]
