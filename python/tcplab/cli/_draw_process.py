"""Draws one chart in a process of its own: reads Vega-Lite, writes the image.

The JavaScript engine takes half a second to start. This process has it ready by the time the
command has something to draw.
"""

from __future__ import annotations

import re
import signal
import sys

import vl_convert

READY = {"data": {"values": [{}]}, "mark": "point"}

VERSION = re.compile(r'"\$schema": "[^"]*/v(\d+)\.(\d+)\.\d+\.json"')


def main(kind: str) -> None:
    """Draws the chart on standard input to standard output, in the format given by `kind`."""
    # Die quietly if the parent has gone.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    vl_convert.vegalite_to_svg(READY)
    spec = sys.stdin.buffer.read().decode()
    found = VERSION.search(spec)
    if found is None:
        return
    version = f"v{found[1]}_{found[2]}"
    match kind:
        case ".png":
            content = vl_convert.vegalite_to_png(spec, vl_version=version, scale=2)
        case ".pdf":
            content = vl_convert.vegalite_to_pdf(spec, vl_version=version)
        case _:
            content = vl_convert.vegalite_to_svg(spec, vl_version=version).encode()
    sys.stdout.buffer.write(content)


if __name__ == "__main__":
    main(sys.argv[1])
