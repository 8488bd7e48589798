"""`python -m tcplab.cli` is the command too."""

import sys

from tcplab.cli import main

if __name__ == "__main__":
    sys.exit(main())
