"""Chooses the chart that suits the swept keys."""

from __future__ import annotations

import altair as alt
import polars as pl

from tcplab._experiment.quantities import numbers
from tcplab._results.results import Results
from tcplab.plot._single_run import checked, overview

MANY = 12
"""More variants than this are easier to compare in the order of their rank."""

LEAST = 3
"""The fewest values that make an axis."""


def answer(results: Results) -> alt.VConcatChart | alt.ConcatChart | alt.LayerChart:
    """Returns the chart that answers the question of the experiment, chosen by what was swept:

    - nothing, in a single run: `overview`;
    - the congestion controls of two flows: `shares`, the share of each against each other;
    - two numeric keys, with three values or more each: `heatmap`;
    - more than 12 variants without a numeric key: `ranking`;
    - otherwise, and for repetitions alone: `compare`, with bars, or lines along a numeric key.

    The metric is completion time if flows have an end, else goodput.
    """
    checked(results)
    runs = results.runs
    if runs["run"].n_unique() == 1:
        return overview(results)
    # Statistics take time to load, and a single run needs none.
    from tcplab.plot._comparison import compare, ranking  # noqa: PLC0415
    from tcplab.plot._two_metrics import heatmap, is_cc, shares  # noqa: PLC0415
    from tcplab.plot._variants import asked  # noqa: PLC0415

    varied = [name for name in results.swept if runs[name].n_unique() > 1]
    if len([name for name in varied if is_cc(name)]) == 2 and _meet(results):
        return shares(results)
    sizes = [name for name in varied if _is_axis(results, name)]
    try:
        if len(sizes) == len(varied) == 2:
            return heatmap(results)
        on = asked(results, None, None)
        if on.axis is None and len(on.panels("variant")) > MANY:
            return ranking(results)
        return compare(results)
    except ValueError:
        # No run has a number to compare.
        return overview(results)


def _is_axis(results: Results, name: str) -> bool:
    found = numbers(results.runs[name].to_list())
    return found is not None and found[0] != "boolean" and found[1].n_unique() >= LEAST


def _meet(results: Results) -> bool:
    """Whether flows with different congestion controls share a bottleneck."""
    flows = results.flows.drop_nulls(["bottleneck", "cc"])
    kinds = flows.group_by("run", "bottleneck").agg(pl.col("cc").n_unique())
    return bool((kinds["cc"] > 1).any())
