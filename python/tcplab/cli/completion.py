"""tcplab completion SHELL: prints the completion script of a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from tcplab.cli import _main
from tcplab.cli._output import say

PATHS = ("FILE", "DIR", "PATH", "RESULTS")
"""The metavars that stand for a file or folder."""

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the shell."""
    parser.description = (
        "Print the completion script of a shell. For bash: "
        "`tcplab completion bash > ~/.local/share/bash-completion/completions/tcplab`; for zsh, "
        "`_tcplab` in a folder of $fpath; for fish, ~/.config/fish/completions/tcplab.fish."
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of all subcommands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)


def run(args: argparse.Namespace) -> None:
    """Prints the completion script."""
    parser = _main.parser_of([*_main.COMMANDS])
    for action in _actions(parser):
        if action.metavar in PATHS:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    say(shtab.complete(parser, args.shell))
