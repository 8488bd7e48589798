"""Draws one chart in a process of its own: reads Vega-Lite, writes the image.

The JavaScript engine takes half a second to start. This process has it ready by the time the
command has something to draw.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress

import vl_convert

from tcplab._vega import image

READY = {"data": {"values": [{}]}, "mark": "point"}


def main(kind: str) -> None:
    """Draws the chart on standard input to standard output, in the format given by `kind`."""
    # Die quietly if the parent has gone.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    vl_convert.vegalite_to_svg(READY)
    # Without a whole chart, the command has been killed or has nothing to draw.
    with suppress(ValueError):
        sys.stdout.buffer.write(image(json.loads(sys.stdin.buffer.read()), kind))


if __name__ == "__main__":
    main(sys.argv[1])
