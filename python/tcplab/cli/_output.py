"""Prints for the command: the only place that writes to stdout and stderr."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any, NoReturn, TextIO

from tcplab._core import printable

FORMATS = ("table", "json", "csv", "markdown")
"""The formats of tables."""


def say(text: str = "", *, file: TextIO | None = None, flush: bool = False) -> None:
    """Prints lines of text. Characters that would act on a terminal are escaped.

    A name whose line breaks would mislead must go through `printable` before it is put into the
    text, as the cells of tables do.
    """
    out = sys.stdout if file is None else file
    # A long table is one text, which rarely needs a look at each line.
    if not (text.isascii() and text.replace("\n", " ").isprintable()):
        text = "\n".join(printable(line.expandtabs()) for line in text.split("\n"))
    out.write(text + "\n")
    if flush:
        out.flush()


class Parser(argparse.ArgumentParser):
    """An argument parser whose messages escape arguments as `say` does, and that takes no
    beginning of an option for the option: `--rat` is a mistake, not `--rate`. What begins like a
    negative number is a value: `--rate -10M` is refused by the reader of rates.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.allow_abbrev = False
        # As Python 3.14 has it; before, a unit made an option of a number.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        """Reports an invalid argument, and exits. The usage has up to fifteen lines, which would
        hide the mistake; `--help` shows it.
        """
        self.exit(2, f"{self.prog}: error: {printable(message)}\nTry: {self.prog} --help\n")
