"""Lets `python -m tcplab.cli` run the command."""

import sys

from tcplab_command import main

if __name__ == "__main__":
    sys.exit(main())
