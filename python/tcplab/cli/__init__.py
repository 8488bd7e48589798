"""The `tcplab` command: `_main` is its frame, each module without an underscore a subcommand."""

from tcplab.cli._main import main, obeyed, parsed

__all__ = ["main", "obeyed", "parsed"]
