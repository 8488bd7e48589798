"""tcplab serve RESULTS: shows stored results in a browser, also while runs go on."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from contextlib import suppress

from tcplab.cli import _arguments
from tcplab.cli._output import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the results and the port."""
    parser.add_argument(
        "results",
        type=_arguments.results,
        metavar="RESULTS",
        help="a folder or address of results (DIR of tcplab run), which need not exist yet",
    )
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        metavar="NUMBER",
        help="the port on loopback (default: any free port)",
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")


def run(args: argparse.Namespace) -> None:
    """Serves a browser until Ctrl-C."""
    # Charts take time to load.
    from tcplab._serve._http import Server  # noqa: PLC0415
    from tcplab._serve._state import Watching  # noqa: PLC0415

    # Ctrl-C is the normal way to stop.
    with (
        suppress(KeyboardInterrupt),
        Watching(args.results) as watching,
        Server(watching, args.port) as server,
    ):
        say(
            "Ctrl-C stops the server. Anyone with this address can see the results:",
            file=sys.stderr,
        )
        say(server.address, flush=True)
        if args.open:
            webbrowser.open(server.address)
        server.serve_forever(poll_interval=0.1)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: a port is a number up to 65535")
    return int(text)
