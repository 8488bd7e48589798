"""Renders Vega-Lite as images, without Altair, which takes long to import."""

from __future__ import annotations

import re

import vl_convert

VERSION = re.compile(r'"\$schema": "[^"]*/v(\d+)\.(\d+)\.\d+\.json"')


def image(spec: str, kind: str) -> bytes:
    """A chart as `.svg`, `.png` or `.pdf`.

    Raises:
        ValueError: The specification has no version, or is no chart.
    """
    found = VERSION.search(spec)
    if found is None:
        raise ValueError("the specification has no `$schema` with a version")
    version = f"v{found[1]}_{found[2]}"
    match kind:
        case ".png":
            return vl_convert.vegalite_to_png(spec, vl_version=version, scale=2)
        case ".pdf":
            return vl_convert.vegalite_to_pdf(spec, vl_version=version)
        case _:
            return vl_convert.vegalite_to_svg(spec, vl_version=version).encode()
