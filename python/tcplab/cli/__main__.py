"""Lets `python -m tcplab.cli` run the command."""

import sys

from tcplab.cli import main

if __name__ == "__main__":
    sys.exit(main())
