"""Compares the predictions of models with the goodput of flows."""

from __future__ import annotations

import altair as alt
import polars as pl

from tcplab._core import printable
from tcplab._results.results import Results
from tcplab.models import MODELS, beside
from tcplab.plot._single_run import checked
from tcplab.plot._style import INK, SHAPES, data, layered, scale_of, styled, titled
from tcplab.plot._variants import about_runs

SIZE = 420
MOST_DRAWN = 3000


def models(results: Results, *names: str, ack_every: int = 1) -> alt.LayerChart:
    """Draws the goodput of each TCP flow against the predictions of models for its losses and its
    round-trip time. On the diagonal, a model is exact; above it, the flow had more.

    Args:
        results: The results.
        names: The models, of `tcplab.models.MODELS`; by default all of them.
        ack_every: As for `tcplab.models.beside`.

    Raises:
        ValueError: The model does not exist, or no flow had a loss, which all models need.
    """
    results = checked(results)
    chosen = names or MODELS
    for name in chosen:
        if name not in MODELS:
            raise ValueError(f"{name}: no model has this name; there are {', '.join(MODELS)}")
    rows = beside(results, ack_every=ack_every)
    if rows.is_empty():
        raise ValueError("no flow lost anything: models predict a rate from losses")
    step = max(1, len(rows) // MOST_DRAWN)
    points = (
        rows.gather_every(step)
        .unpivot(chosen, index=["cc", "flow", "goodput_mbit_s", "loss", "rtt_mean_ms"])
        .rename({"variable": "model", "value": "predicted"})
        .with_columns(pl.col("cc", "flow").map_elements(printable, return_dtype=pl.String))
    )
    ends = [*points["predicted"].to_list(), *points["goodput_mbit_s"].to_list()]
    low, high = min(ends), max(ends)
    scale = alt.Scale(type="log", domain=[low, high], nice=True)
    x = alt.X("predicted:Q", title="predicted, Mbit/s", scale=scale)
    y = alt.Y("goodput_mbit_s:Q", title="goodput, Mbit/s", scale=scale)
    algorithms = sorted(set(points["cc"]))
    shapes = alt.Scale(domain=[*chosen], range=[*SHAPES[: len(chosen)]])
    line = alt.Chart(data([{"predicted": end, "goodput_mbit_s": end} for end in (low, high)]))
    layers: list[alt.Chart | alt.LayerChart] = [
        line.mark_line(color=INK, strokeDash=[4, 3]).encode(x=x, y=y),
        alt.Chart(data(points))
        .mark_point(opacity=0.7, size=40)
        .encode(
            x=x,
            y=y,
            color=alt.Color("cc:N", title="flows", scale=scale_of(algorithms)),
            shape=alt.Shape("model:N", title="model", scale=shapes),
            tooltip=[
                "cc:N",
                "flow:N",
                "model:N",
                alt.Tooltip("predicted:Q", title="predicted, Mbit/s", format=".4~g"),
                alt.Tooltip("goodput_mbit_s:Q", title="goodput, Mbit/s", format=".4~g"),
                alt.Tooltip("loss:Q", title="share lost", format=".3~g"),
                alt.Tooltip("rtt_mean_ms:Q", title="mean RTT, ms", format=".4~g"),
            ],
        )
        .properties(name="plane"),
    ]
    some = f"{len(rows) // step:,} of {len(rows):,} flows" if step > 1 else ""
    title = titled("what models predict of goodput", [about_runs(results), some])
    return styled(layered(layers, width=SIZE, height=SIZE, title=title))
