"""Renders Vega-Lite as images, without Altair, which takes long to import."""

from __future__ import annotations

import re
from typing import Any

import vl_convert

VERSION = re.compile(r".*/v(\d+)\.(\d+)\.\d+\.json")


def image(spec: dict[str, Any], kind: str) -> bytes:
    """A chart as `.svg`, `.png` or `.pdf`. Its `$schema` names the version of Vega-Lite."""
    # The engine would round the numbers of a JSON text.
    found = VERSION.fullmatch(spec["$schema"])
    assert found is not None
    version = f"v{found[1]}_{found[2]}"
    match kind:
        case ".png":
            return vl_convert.vegalite_to_png(spec, vl_version=version, scale=2)
        case ".pdf":
            return vl_convert.vegalite_to_pdf(spec, vl_version=version)
        case _:
            return vl_convert.vegalite_to_svg(spec, vl_version=version).encode()
