"""Renders charts to files and for notebooks, without a network."""

from __future__ import annotations

import html
import io
import json
import re
from os import PathLike
from pathlib import Path
from typing import Any

import altair as alt

from tcplab._store.atomic_write import put
from tcplab._vega import image

FORMATS = (".svg", ".png", ".pdf", ".html", ".json")
"""The file formats of charts."""

CLIP = re.compile(rb'(id="|url\(#)(clip\d+)("|\))')

ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&'\u2028\u2029"}


def save(chart: alt.TopLevelMixin, path: str | PathLike[str]) -> None:
    """Saves a chart in the format given by the ending of the name: `.svg`, `.png`, `.pdf`, `.html`
    or `.json`.

    HTML files contain all scripts and open without a network.
    """
    if not isinstance(chart, alt.TopLevelMixin):
        raise TypeError(f"chart: a chart of tcplab.plot is needed, not a {type(chart).__name__}")
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"{path}: a chart is saved as {', '.join(FORMATS)}")
    put(drawn(chart, kind), path)


def drawn(chart: alt.TopLevelMixin, kind: str) -> bytes:
    """The content of a chart's file, in one of the `FORMATS`."""
    if kind in (".svg", ".png", ".pdf"):
        content = image(still(chart), kind)
        return numbered(content) if kind == ".svg" else content
    text = io.StringIO()
    if kind == ".html":
        chart.save(text, format="html", inline=True, json_kwds={"cls": _Embedded})
    else:
        chart.save(text, format="json")
    return text.getvalue().encode()


def numbered(svg: bytes) -> bytes:
    """An SVG whose clipping paths are numbered from 0: the engine counts through all charts of a
    process, and equal charts must give equal files.
    """
    names: dict[bytes, bytes] = {}

    def name(found: re.Match[bytes]) -> bytes:
        return found[1] + names.setdefault(found[2], b"clip%d" % len(names)) + found[3]

    return CLIP.sub(name, svg)


def still(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The specification of a chart as an image, without its interactive parts."""
    spec: dict[str, Any] = chart.to_dict(validate=False)

    def without(part: dict[str, Any]) -> dict[str, Any]:
        for key in ("layer", "vconcat", "concat"):
            if key in part:
                part[key] = [without(one) for one in part[key] if not _is_for_pointer(one)]
        return part

    spec = without(spec)
    if "params" in spec:
        spec["params"] = [one for one in spec["params"] if not one["name"].startswith("over_")]
    return spec


def _is_for_pointer(layer: dict[str, Any]) -> bool:
    return str(layer.get("name", "")).startswith("values_")


class _Embedded(json.JSONEncoder):
    """JSON for the script of a page: no text in it can end the script or begin a comment."""

    def encode(self, o: Any) -> str:
        """Escapes characters that are significant in HTML. In JSON, these occur within strings
        only.
        """
        return super().encode(o).translate(ESCAPED)


def in_notebook(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
    """The form of a chart in a notebook: a page of its own with all scripts included, because
    Altair's default renderer loads scripts from another machine.
    """
    chart = alt.Chart.from_dict(spec)
    page = drawn(chart, ".html").decode()
    # The frame gets the height of its content once that is drawn.
    fit = "this.style.height = this.contentDocument.documentElement.scrollHeight + 8 + 'px'"
    later = f"const fit = () => {{ {fit} }}; fit(); setTimeout(fit.bind(this), 500)"
    frame = (
        f'<iframe srcdoc="{html.escape(page)}" onload="{html.escape(later)}" '
        'style="width: 100%; min-height: 420px; border: 0; background: white"></iframe>'
    )
    return {"text/html": frame}


def trust() -> None:
    """Makes Altair skip the check of each part against its schema, which takes longer than making
    it. For a process whose charts are all tcplab's own.
    """
    alt.utils.schemapi.disable_debug_mode()


def prepare_notebooks() -> None:
    """Lets notebooks show charts without a network, unless another renderer was chosen."""
    alt.renderers.register("tcplab", in_notebook)
    if alt.renderers.active == "default":
        alt.renderers.enable("tcplab")
