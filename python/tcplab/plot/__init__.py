"""Charts of results: a function for each question.

Each function takes results (`network` takes an experiment) and returns an Altair chart, to be shown
in a notebook, changed, or saved with `save`. `answer` chooses the chart that suits the swept keys.
A chart over time shows one run: the first, unless another is given by its id.

In HTML and in notebooks, charts have tooltips; the wheel zooms all panels at once, dragging moves
them, and a double click resets them. A click on a line or its label fades the others. Long series
are drawn by the least and the greatest of neighbouring points: no peak is lost.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tcplab.plot._answer import answer
from tcplab.plot._export import FORMATS, prepare_notebooks, save
from tcplab.plot._export import drawn as drawn
from tcplab.plot._export import numbered as numbered
from tcplab.plot._export import still as still
from tcplab.plot._export import trust as trust
from tcplab.plot._single_run import (
    cwnd,
    datagrams,
    drops,
    goodput,
    internals,
    network,
    overview,
    queue,
    queue_delay,
    rate,
    rtt,
    samples,
    transfers,
)

if TYPE_CHECKING:
    from tcplab.plot._comparison import compare, ranking
    from tcplab.plot._distributions import boxes, cdf
    from tcplab.plot._models import models
    from tcplab.plot._segments import segments
    from tcplab.plot._two_metrics import heatmap, shares, tradeoff

__all__ = [
    "FORMATS",
    "answer",
    "boxes",
    "cdf",
    "compare",
    "cwnd",
    "datagrams",
    "drops",
    "goodput",
    "heatmap",
    "internals",
    "models",
    "network",
    "overview",
    "queue",
    "queue_delay",
    "ranking",
    "rate",
    "rtt",
    "samples",
    "save",
    "segments",
    "sequence",
    "shares",
    "tradeoff",
    "transfers",
]

PLACES = {
    "boxes": "_distributions",
    "cdf": "_distributions",
    "compare": "_comparison",
    "heatmap": "_two_metrics",
    "models": "_models",
    "ranking": "_comparison",
    "segments": "_segments",
    "sequence": "_sequence",
    "shares": "_two_metrics",
    "tradeoff": "_two_metrics",
}
"""Modules that load when one of their charts is drawn, because statistics take time to load."""

prepare_notebooks()


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module 'tcplab.plot' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tcplab.plot.{PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
