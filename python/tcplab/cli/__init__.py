"""The `tcplab` command: entry point in `_main`, a subcommand in each module without underscore."""

from tcplab.cli._main import main, obeyed, parsed

__all__ = ["main", "obeyed", "parsed"]
