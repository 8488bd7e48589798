"""Charts of results.

Each function takes results, and `network` an experiment, and returns an Altair chart, to be shown
in a notebook, changed, or saved with `save`. A chart over time shows one run: the first, unless
another one is given by its id.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import altair as alt
import polars as pl

from tcplab import _drawing
from tcplab._backends import first_plan
from tcplab._compare import Comparison
from tcplab._core import printable
from tcplab._labels import labels
from tcplab._put import put
from tcplab._results import Results
from tcplab._series import MOST_POINTS, thin
from tcplab.experiment import Experiment

__all__ = [
    "FORMATS",
    "compare",
    "cwnd",
    "datagrams",
    "goodput",
    "network",
    "overview",
    "queue",
    "samples",
    "save",
    "transfers",
]

FORMATS = (".svg", ".png", ".pdf", ".html", ".json")
"""What charts are saved as."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of Okabe and Ito (2008), told apart by colour-blind people too; without yellow, which is too
pale on white.
"""

LINK_COLOURS = ("#595959", "#E69F00", "#56B4E9", "#009E73")
"""The first link is grey: no flow has its colour."""

DASHES = ([1, 0], [6, 3], [2, 2])
"""When the colours are used up, lines are dashed."""

ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&'\u2028\u2029"}

HAS_DATAGRAMS = pl.col("delay_mean_ms").is_not_null()

MOST_FLOWS = 10
MOST_LINKS = 4
WIDTH = 640


def overview(results: Results, *, run: str | None = None) -> alt.VConcatChart:
    """The windows of the flows, above the queues of the busiest links, over time; between them the
    goodput of the flows, where there are intervals. Below, where there are such flows, how long
    transfers took, and what became of datagrams.
    """
    run = _chosen(results, run)
    parts: list[alt.Chart | alt.LayerChart] = []
    note = ""
    if _has_rows(results, run, "samples"):
        windows, note = _cwnd(results, run)
        parts.append(windows)
    if _has_rows(results, run, "intervals"):
        parts.append(_goodput(results, run)[0])
    parts.append(_queue(results, run))
    if (flows := _flows_with(results, run, pl.col("transfers") > 0)).height > 0:
        parts.append(_transfers(results, run, flows))
    if (flows := _flows_with(results, run, HAS_DATAGRAMS)).height > 0:
        parts += _datagrams(flows)
    chart = alt.vconcat(*parts, title=_title(results, run, note))
    apart: alt.VConcatChart = chart.resolve_scale(
        color="independent", strokeDash="independent", shape="independent"
    )
    return _styled(apart)


def cwnd(results: Results, *, run: str | None = None) -> alt.Chart:
    """The congestion window of each flow over time.

    Raises:
        ValueError: No flow has samples of its window.
    """
    run = _chosen(results, run)
    if not _has_rows(results, run, "samples"):
        raise ValueError("no flow of this run has samples of a window: see `record.samples`")
    chart, note = _cwnd(results, run)
    return _styled(chart.properties(title=_title(results, run, note)))


def network(experiment: Experiment) -> alt.LayerChart:
    """The hosts, links and flows of an experiment, of its first variant: which way packets go, and
    what they meet there. Of many that are alike a few are drawn.

    Raises:
        ConfigError: The experiment cannot be run on any backend.
    """
    plan: dict[str, Any] = json.loads(first_plan(experiment).to_json())
    return _styled(_drawing.chart(plan, [*COLOURS]))


def goodput(results: Results, *, run: str | None = None) -> alt.Chart:
    """The goodput of each flow over time: a point in the middle of each interval.

    Raises:
        ValueError: The experiment has no intervals.
    """
    run = _chosen(results, run)
    if not _has_rows(results, run, "intervals"):
        raise ValueError('there are no intervals: say how long they are, like `every = "1 s"`')
    chart, note = _goodput(results, run)
    return _styled(chart.properties(title=_title(results, run, note)))


def samples(results: Results, *columns: str, run: str | None = None) -> alt.VConcatChart:
    """Any columns of the samples over time, one above the other: what a sender saw, and why it did
    what it did, like `"cwnd_segments", "vegas_diff"`.

    Raises:
        ValueError: The samples have no such column, or it is not one of numbers.
    """
    run = _chosen(results, run)
    schema = results.scan("samples", run).collect_schema()
    known = [name for name, kind in schema.items() if kind.is_numeric() and name != "time_s"]
    if not columns:
        raise ValueError(f"name one column or more; there are {', '.join(known)}")
    for column in columns:
        if column not in known:
            raise ValueError(
                f"no column of numbers is called {column!r}; there are {', '.join(known)}"
            )
    drawn = [_of_flows(results, run, column, column.replace("_", " ")) for column in columns]
    note = drawn[0][1]
    chart = alt.vconcat(*(chart for chart, _ in drawn), title=_title(results, run, note))
    return _styled(chart)


def transfers(results: Results, *, run: str | None = None) -> alt.Chart:
    """The share of the transfers of each flow that completed within a time: the distribution of
    completion times. A line that ends below 100 % has transfers that did not complete.

    Of a measuring window, the transfers that began in it.

    Raises:
        ValueError: No flow has transfers.
    """
    run = _chosen(results, run)
    flows = _flows_with(results, run, pl.col("transfers") > 0)
    if flows.is_empty():
        raise ValueError("no flow of this run has transfers, like web pages, requests or arrivals")
    chart = _transfers(results, run, flows)
    return _styled(chart.properties(title=_title(results, run, _left_out(flows))))


def datagrams(results: Results, *, run: str | None = None) -> alt.VConcatChart:
    """What became of the datagrams of each flow of UDP: one-way delays from the least to the 99th
    percentile, delay variation (the mean of RFC 3393, as `ipdv_ms`), and loss.

    Raises:
        ValueError: No datagram of a flow arrived and was timed.
    """
    run = _chosen(results, run)
    flows = _flows_with(results, run, HAS_DATAGRAMS)
    if flows.is_empty():
        raise ValueError("no flow of this run sends datagrams whose delays are known")
    chart = alt.vconcat(*_datagrams(flows), title=_title(results, run, _left_out(flows)))
    apart: alt.VConcatChart = chart.resolve_scale(color="independent", shape="independent")
    return _styled(apart)


def queue(results: Results, *, run: str | None = None) -> alt.Chart:
    """The most packets that waited for the busiest links since the sample before, over time."""
    run = _chosen(results, run)
    return _styled(_queue(results, run).properties(title=_title(results, run, "")))


def compare(comparison: Comparison) -> alt.Chart:
    """The congestion window of each flow over time, on every backend: of the first run."""
    most = MOST_FLOWS // len(comparison.backends)
    parts, labels, note = [], [], ""
    for backend, results in comparison.results.items():
        run = _chosen(results, None)
        flows = _sampled(results, run)
        drawn = _greatest(flows, most).with_columns(
            pl.format("{} ({}), {}", "flow", "cc", pl.lit(backend)).alias("label")
        )
        samples = results.scan("samples", run).select("flow", "time_s", "cwnd_segments")
        parts.append(samples.join(drawn.lazy(), on="flow", maintain_order="left").collect())
        labels += drawn["label"].to_list()
        note = _note(flows, most)
    points = pl.concat(parts)
    lines = _lines(
        points, y="cwnd_segments", by="label", labels=labels, legend="flow (cc), backend"
    )
    results = next(iter(comparison.results.values()))
    run, title = _chosen(results, None), "cwnd (segments)"
    chart = _over_time(lines, results, run, y="cwnd_segments", title=title, height=280)
    return _styled(chart.properties(title=_title(results, run, note)))


def save(chart: alt.TopLevelMixin, path: str | PathLike[str]) -> None:
    """Saves a chart as what its name ends with: `.svg`, `.png`, `.pdf`, `.html` or `.json`.

    HTML needs no network to be opened: all scripts are inside.
    """
    if not isinstance(chart, alt.TopLevelMixin):
        raise TypeError(f"chart: a chart of tcplab.plot is needed, not a {type(chart).__name__}")
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"{path}: a chart is saved as {', '.join(FORMATS)}")
    put(drawn(chart, kind), path)


def drawn(chart: alt.TopLevelMixin, kind: str) -> bytes:
    """The content of a chart's file, of one of the `FORMATS`."""
    if kind in (".png", ".pdf"):
        image = io.BytesIO()
        if kind == ".png":
            chart.save(image, format="png", scale_factor=2)
        else:
            chart.save(image, format="pdf")
        return image.getvalue()
    text = io.StringIO()
    if kind == ".html":
        chart.save(text, format="html", inline=True, json_kwds={"cls": _Embedded})
    elif kind == ".svg":
        chart.save(text, format="svg")
    else:
        chart.save(text, format="json")
    return text.getvalue().encode()


class _Embedded(json.JSONEncoder):
    """JSON for the script of a page: no text in it can end the script or begin a comment."""

    def encode(self, o: Any) -> str:
        """Spells out whatever a reader of HTML looks for. In JSON it is in texts alone."""
        return super().encode(o).translate(ESCAPED)


def _chosen(results: Results, run: str | None) -> str:
    if not isinstance(results, Results):
        what = type(results).__name__
        raise TypeError(f"results: those of tcplab.run are needed, not a {what}")
    known = results.runs["run"].to_list()
    if run is not None and run not in known:
        raise ValueError(f"no run of these results has the id {run!r}")
    return run or known[0]


def _title(results: Results, run: str, note: str) -> alt.TitleParams:
    """The experiment's name; below, which run it is and what is left out."""
    about = results.runs.filter(pl.col("run") == run).row(0, named=True)
    said = [
        f"{name} = {labels(results.runs[name].to_list())[about[name]]}"
        for name in results.swept
        if about[name] is not None
    ]
    subtitle = []
    if len(results.plans) > 1:
        number = results.runs["run"].to_list().index(run) + 1
        seed = f"seed {about['seed']}"
        subtitle.append(", ".join([f"run {number} of {len(results.plans)}", *said, seed]))
    subtitle += [note] if note else []
    return alt.TitleParams(printable(about["experiment"]), subtitle=[*map(printable, subtitle)])


def _cwnd(results: Results, run: str) -> tuple[alt.Chart, str]:
    return _of_flows(results, run, "cwnd_segments", "cwnd (segments)")


def _of_flows(results: Results, run: str, column: str, title: str) -> tuple[alt.Chart, str]:
    """The chart of a column of the samples, and what it leaves out."""
    flows = _sampled(results, run)
    drawn = _greatest(flows, MOST_FLOWS).with_columns(
        pl.format("{} ({})", "flow", "cc").alias("label"),
    )
    samples = results.scan("samples", run).select("flow", "time_s", column).drop_nulls(column)
    points = samples.join(drawn.lazy(), on="flow", maintain_order="left").collect()
    note = _note(flows, MOST_FLOWS)
    labels = drawn["label"].to_list()
    lines = _lines(points, y=column, by="label", labels=labels, legend="flow (cc)")
    return _over_time(lines, results, run, y=column, title=title, height=220), note


def _has_rows(results: Results, run: str, table: str) -> bool:
    return not results.scan(table, run).head(1).collect().is_empty()


def _goodput(results: Results, run: str) -> tuple[alt.Chart, str]:
    """The chart of the goodput in intervals, and what it leaves out."""
    middle = ((pl.col("start_s") + pl.col("end_s")) / 2).alias("time_s")
    y, title = "goodput_mbit_s", "goodput (Mbit/s)"
    label = pl.coalesce("cc", "transport").alias("cc")
    flows = results.scan("flows", run).select("flow", label, "bytes").collect()
    drawn = _greatest(flows, MOST_FLOWS).with_columns(
        pl.format("{} ({})", "flow", "cc").alias("label")
    )
    intervals = results.scan("intervals", run).select("flow", middle, y)
    points = intervals.join(drawn.lazy(), on="flow", maintain_order="left").collect()
    note = _note(flows, MOST_FLOWS)
    labels = drawn["label"].to_list()
    lines = _lines(points, y=y, by="label", labels=labels, legend="flow (cc)")
    return _over_time(lines, results, run, y=y, title=title, height=220), note


def _flows_with(results: Results, run: str, condition: pl.Expr) -> pl.DataFrame:
    """The flows for which this holds, with their labels in charts."""
    label = pl.format("{} ({})", "flow", pl.coalesce("cc", "transport")).alias("label")
    return results.scan("flows", run).filter(condition).with_columns(label).collect()


def _left_out(flows: pl.DataFrame) -> str:
    return f"the first {MOST_FLOWS} of {len(flows)} flows" if len(flows) > MOST_FLOWS else ""


def _transfers(results: Results, run: str, flows: pl.DataFrame) -> alt.Chart:
    """The distribution of completion times of these flows' transfers."""
    drawn = flows.head(MOST_FLOWS)
    about = results.runs.filter(pl.col("run") == run).row(0, named=True)
    start, from_s, to_s = pl.col("start_s"), about["measured_from_s"], about["measured_to_s"]
    is_measured = (start >= from_s) & ((start < to_s) | pl.lit(to_s == about["simulated_s"]))
    times = (
        results.scan("transfers", run)
        .filter(is_measured)
        .select("flow", "completion_s")
        .join(drawn.lazy().select("flow", "label"), on="flow", maintain_order="left_right")
        .sort("label", "completion_s", nulls_last=True, maintain_order=True)
        .collect()
    )
    place, number = pl.int_range(1, pl.len() + 1).over("label"), pl.len().over("label")
    points = times.with_columns((100 * place / number).alias("share"), place.alias("place"))
    points = points.drop_nulls("completion_s")
    # Of many transfers, as many as one can tell apart: the last ones among them.
    step = (pl.len().over("label") / MOST_POINTS).ceil().cast(pl.Int64)
    points = points.filter((pl.len().over("label") - pl.col("place")) % step == 0)
    origin = points.select("label").unique(maintain_order=True)
    origin = origin.with_columns(share=pl.lit(0.0), completion_s=pl.lit(0.0))
    points = pl.concat([origin, points.select("label", "share", "completion_s")])
    labels = drawn["label"].to_list()
    lines = _coloured(points, by="label", labels=labels, legend="flow (cc)", palette=COLOURS)
    steps = lines.mark_line(strokeWidth=1.3, interpolate="step-after")
    chart: alt.Chart = steps.encode(
        x=alt.X("completion_s:Q", title="completed within (s)"),
        y=alt.Y("share:Q", title="transfers (%)", scale=alt.Scale(domain=[0, 100])),
        order="share:Q",
    ).properties(width=WIDTH, height=180)
    return chart


def _datagrams(flows: pl.DataFrame) -> list[alt.Chart | alt.LayerChart]:
    """Delays, their variation, and losses of these flows."""
    drawn = flows.head(MOST_FLOWS).with_columns(
        pl.col("label").map_elements(printable, return_dtype=pl.String),
        (100 * pl.col("lost_packets") / pl.col("sent_segments")).alias("lost_percent"),
    )
    flow = alt.Y("label:N", title=None, sort=drawn["label"].to_list())
    size = {"width": WIDTH, "height": alt.Step(18)}
    columns = ["label", "delay_min_ms", "delay_p99_ms", "ipdv_ms", "lost_percent"]
    base = alt.Chart(alt.InlineData(values=drawn.select(columns).to_dicts())).encode(y=flow)
    title = "one-way delay (ms), from the least to the 99th percentile"
    range_ = base.mark_rule(strokeWidth=1.3, color="#595959").encode(
        x=alt.X("delay_min_ms:Q", title=title), x2="delay_p99_ms:Q"
    )
    names = {"delay_p50_ms": "50 %", "delay_p95_ms": "95 %", "delay_p99_ms": "99 %"}
    percentiles = drawn.select("label", *names).rename(names)
    points = percentiles.unpivot(index="label", variable_name="share", value_name="delay_ms")
    marks = (
        alt.Chart(alt.InlineData(values=points.to_dicts()))
        .mark_point(filled=True, size=60, opacity=1)
        .encode(
            y=flow,
            x="delay_ms:Q",
            color=alt.Color(
                "share:N",
                scale=alt.Scale(domain=[*names.values()], range=COLOURS[: len(names)]),
                legend=alt.Legend(title="datagrams"),
            ),
            shape=alt.Shape("share:N", scale=alt.Scale(domain=[*names.values()])),
        )
    )
    bars = base.mark_bar(color=COLOURS[0], size=9)
    varied = bars.encode(x=alt.X("ipdv_ms:Q", title="delay variation, mean (ms)"))
    lost = bars.encode(x=alt.X("lost_percent:Q", title="lost (%)"))
    return [
        alt.layer(range_, marks).properties(**size),
        varied.properties(**size),
        lost.properties(**size),
    ]


def _lines_of_flows(results: Results, run: str) -> pl.DataFrame:
    """What samples are of, and its congestion control: flows, or `NAME#1`, ... of those with many
    connections."""
    flows = results.scan("flows", run).select(
        "flow", pl.coalesce("cc", "transport").alias("cc"), "transfers"
    )
    names = results.scan("samples", run).select(pl.col("flow").unique(maintain_order=True))
    parts = names.select(
        pl.col("flow").alias("part"), pl.col("flow").str.replace(r"#\d+$", "").alias("flow")
    ).filter(pl.col("part") != pl.col("flow"))
    several = flows.filter(pl.col("transfers").is_not_null()).join(
        parts, on="flow", maintain_order="left_right"
    )
    lines = flows.join(several.select("flow", "part"), on="flow", how="left", maintain_order="left")
    return lines.select(pl.coalesce("part", "flow").alias("flow"), "cc").collect()


def _sampled(results: Results, run: str) -> pl.DataFrame:
    """Those of them that may have samples, with the bytes that were acknowledged."""
    sent = pl.col("acked_bytes").max().alias("bytes")
    acked = results.scan("samples", run).group_by("flow").agg(sent)
    flows = _lines_of_flows(results, run).filter(pl.col("cc") != "udp")
    joined = flows.join(acked.collect(), on="flow", how="left", maintain_order="left")
    return joined.with_columns(pl.col("bytes").fill_null(0))


def _greatest(flows: pl.DataFrame, most: int) -> pl.DataFrame:
    """So many that sent most, in their order; of many small ones, those say least."""
    placed = flows.with_row_index("place")
    greatest = placed.sort("bytes", descending=True, maintain_order=True).head(most)
    return greatest.sort("place").drop("place", "bytes")


def _note(flows: pl.DataFrame, most: int) -> str:
    return f"the {most} of {len(flows)} flows that sent most" if len(flows) > most else ""


def _queue(results: Results, run: str) -> alt.Chart:
    links = results.scan("links", run).select("link", "time_s", "queue_max_packets", "utilisation")
    use = links.group_by("link", maintain_order=True).agg(pl.col("utilisation").mean()).collect()
    busiest = use["utilisation"].max()
    # A flow fills every link of a row of bottlenecks; access links are far less busy.
    busy = use.filter(pl.col("utilisation") >= pl.lit(busiest) / 2)
    labels = busy.sort("utilisation", descending=True, maintain_order=True)["link"]
    shown = labels.head(MOST_LINKS).to_list()
    points = links.filter(pl.col("link").is_in(shown)).collect()
    # A sample of the moment would miss what came and went since the last one.
    y, palette = "queue_max_packets", LINK_COLOURS
    lines = _lines(points, y=y, by="link", labels=shown, legend="queue at", palette=palette)
    # Vega puts the zero of an axis without anything else in its middle.
    most = 1 if points[y].max() == 0 else None
    return _over_time(
        lines, results, run, y=y, title="longest queue (packets)", height=130, most=most
    )


def _lines(
    points: pl.DataFrame,
    *,
    y: str,
    by: str,
    labels: Sequence[str],
    legend: str,
    palette: Sequence[str] = COLOURS,
) -> alt.Chart:
    """A line over time for each label."""
    thinned = thin(points.select(by, "time_s", y), by=by, y=y)
    return _coloured(thinned, by=by, labels=labels, legend=legend, palette=palette)


def _coloured(
    points: pl.DataFrame, *, by: str, labels: Sequence[str], legend: str, palette: Sequence[str]
) -> alt.Chart:
    """A line for each label, told apart by colour and, if there are many, by dashes."""
    shown = {label: printable(label) for label in labels}
    points = points.with_columns(pl.col(by).replace(shown))
    colours = [palette[number % len(palette)] for number in range(len(labels))]
    dashes = [DASHES[number // len(palette) % len(DASHES)] for number in range(len(labels))]
    about = alt.Legend(title=legend, symbolType="stroke", symbolStrokeWidth=2, labelLimit=220)
    sort = list(shown.values())
    chart = alt.Chart(alt.InlineData(values=points.to_dicts())).mark_line(strokeWidth=1.3)
    lines: alt.Chart = chart.encode(
        color=alt.Color(f"{by}:N", scale=alt.Scale(domain=sort, range=colours), legend=about),
        strokeDash=alt.StrokeDash(
            f"{by}:N", scale=alt.Scale(domain=sort, range=dashes), legend=about
        ),
    )
    return lines


def _over_time(
    lines: alt.Chart,
    results: Results,
    run: str,
    *,
    y: str,
    title: str,
    height: int,
    most: int | None = None,
) -> alt.Chart:
    simulated_s = results.runs.filter(pl.col("run") == run)["simulated_s"][0]
    time = alt.Scale(domain=[0, simulated_s], nice=False)
    amount = alt.Scale() if most is None else alt.Scale(domain=[0, most])
    chart: alt.Chart = lines.encode(
        x=alt.X("time_s:Q", title="time (s)", scale=time),
        y=alt.Y(f"{y}:Q", title=title, scale=amount),
    ).properties(width=WIDTH, height=height)
    return chart


Styled = TypeVar("Styled", alt.Chart, alt.LayerChart, alt.VConcatChart)


def _styled(chart: Styled) -> Styled:
    """The look of all charts."""
    styled: Styled = chart.configure(
        title=alt.TitleConfig(anchor="start", fontSize=15, subtitleFontSize=12, offset=12),
        axis=alt.AxisConfig(gridOpacity=0.5, labelFontSize=11, titleFontSize=12),
        legend=alt.LegendConfig(labelFontSize=11, titleFontSize=12),
        view=alt.ViewConfig(stroke=None),
    )
    return styled
