"""How the command prints: the one place that writes to standard output and standard error."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn, TextIO

from tcplab._core import printable


def say(text: str = "", *, file: TextIO | None = None, flush: bool = False) -> None:
    """Prints lines of text. Whatever in them would act on a terminal is spelled out.

    Where a line break would mislead, because a name holds it, the name goes through `printable`
    before it gets into the text, as the cells of tables do.
    """
    out = sys.stdout if file is None else file
    out.write("\n".join(printable(line.expandtabs()) for line in text.split("\n")) + "\n")
    if flush:
        out.flush()


class Parser(argparse.ArgumentParser):
    """A parser of arguments whose messages quote them as `say` would."""

    def error(self, message: str) -> NoReturn:
        """Says what is wrong with the arguments, and ends the process."""
        super().error(printable(message))
