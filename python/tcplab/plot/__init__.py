"""Charts of results: a function for each question.

Each function takes results, and `network` an experiment, and returns an Altair chart, to be shown
in a notebook, changed, or saved with `save`. `answer` chooses what suits what was swept. A chart
over time shows one run: the first, unless another one is given by its id.

In HTML and in notebooks charts have tooltips; the wheel zooms, all panels at once, dragging moves,
and a double press brings everything back. A press on a line or its label leaves the others pale.
Long series are drawn by the least and the greatest of neighbouring points: no peak is lost.
"""

from __future__ import annotations

from tcplab.plot._answer import answer
from tcplab.plot._compared import compare, ranking
from tcplab.plot._distributions import boxes, cdf
from tcplab.plot._planes import heatmap, shares, tradeoff
from tcplab.plot._runs import (
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
from tcplab.plot._saved import FORMATS, prepare_notebooks, save
from tcplab.plot._saved import drawn as drawn
from tcplab.plot._saved import numbered as numbered
from tcplab.plot._saved import still as still
from tcplab.plot._sequence import sequence

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
    "network",
    "overview",
    "queue",
    "queue_delay",
    "ranking",
    "rate",
    "rtt",
    "samples",
    "save",
    "sequence",
    "shares",
    "tradeoff",
    "transfers",
]

prepare_notebooks()
