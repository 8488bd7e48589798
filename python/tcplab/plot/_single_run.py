"""Charts of one run over time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from tcplab._core import printable
from tcplab._experiment.labels import labels
from tcplab._experiment.quantities import numbers
from tcplab._results.results import Results
from tcplab._run.backends import first_plan
from tcplab._schema import Experiment
from tcplab._statistics.thinning import MOST_POINTS
from tcplab._store.run_groups import declared
from tcplab.plot import _network
from tcplab.plot._style import (
    COLOURS,
    LINK_COLOURS,
    WIDTH,
    Layer,
    dashes_of,
    data,
    said,
    scale_of,
    stacked,
    styled,
)
from tcplab.plot._time_series import MOST_FLOWS, Drawn, of_flows, over_time

HAS_DATAGRAMS = pl.col("delay_mean_ms").is_not_null()

MOST_LINKS = 4
MOST_INTERNALS = 8

FEW = 4
"""Up to this number of flows, each has a second line, such as its threshold."""

MOST_RATES = 200
"""The most parts of a run over which rates are averaged."""

BARS = 100
"""The number of parts of a run in which drops are counted."""

NO_SAMPLES = "see `record.samples`"
NO_LINKS = "nothing was recorded of the queues of links: see `record.links`"


def overview(results: Results, *, run: str | None = None) -> alt.VConcatChart:
    """Draws the windows of the flows above the queues of the busiest links, over time; between them
    the goodput of the flows, if there are intervals. Below, if there are such flows, the completion
    times of transfers, and the delay and loss of datagrams.
    """
    run = chosen(results, run)
    parts: list[Layer] = []
    notes = []
    if _has_rows(results, run, "samples"):
        windows = _cwnd(results, run)
        parts.append(windows.chart)
        notes.append(windows.note)
    elif _lines_of_flows(results, run)["cc"].ne("udp").any():
        parts.append(said(f"No flow has samples of a window: {NO_SAMPLES}."))
    if _has_rows(results, run, "intervals"):
        parts.append(_goodput(results, run).chart)
    is_recorded = _has_rows(results, run, "links")
    parts.append(_queue(results, run) if is_recorded else said(f"{NO_LINKS.capitalize()}."))
    if (flows := _flows_with(results, run, pl.col("transfers") > 0)).height > 0:
        parts.append(_transfers(results, run, flows))
    if (flows := _flows_with(results, run, HAS_DATAGRAMS)).height > 0:
        parts += _datagrams(flows)
    return styled(stacked(parts, titles_of(results, run, *notes)))


def cwnd(results: Results, *, run: str | None = None) -> alt.LayerChart:
    """Draws the congestion window of each flow over time, and for up to four flows the slow-start
    threshold, dashed.

    Raises:
        ValueError: No flow has samples of its window.
    """
    run = _with_samples(results, run)
    return _shown(results, run, _cwnd(results, run))


def rtt(results: Results, *, run: str | None = None) -> alt.LayerChart:
    """Draws the smoothed RTT of each flow over time, and for up to four flows the least RTT that
    the flow measured, dotted: the excess is queueing.

    Raises:
        ValueError: No flow has samples of its RTT.
    """
    run = _with_samples(results, run)
    points = _samples(results, run, "srtt_ms")
    if points.is_empty():
        raise ValueError("no flow of this run has measured an RTT")
    flows = sampled(results, run).filter(pl.col("flow").is_in(points["flow"].unique().to_list()))
    levels, note = None, ""
    if len(flows) <= FEW:
        least = results.scan("flows", run).select("flow", pl.col("rtt_min_ms").alias("value"))
        about = pl.lit("least RTT (ms)").alias("about")
        levels = least.drop_nulls().collect().with_columns(about)
        levels = levels.filter(pl.col("flow").is_in(flows["flow"].to_list()))
        note = "dotted: the least RTT that the flow measured" if len(levels) else ""
    drawn = of_flows(
        points,
        flows,
        y="srtt_ms",
        title="smoothed RTT (ms)",
        end_s=end_of(results, run),
        levels=levels,
    )
    return _shown(results, run, Drawn(drawn.chart, drawn.note or note))


def rate(results: Results, *, run: str | None = None) -> alt.LayerChart:
    """Draws the rate at which the data of each flow is acknowledged over time. For up to four flows
    with a common bottleneck, its rate is dotted.

    Rates are means over parts of the run, each of at least two samples, at most 200 in all.
    `goodput` shows exactly what applications received, if the experiment sets `every`.

    Raises:
        ValueError: No flow has samples.
    """
    run = _with_samples(results, run)
    end_s = end_of(results, run)
    points = rates(_samples(results, run, "acked_bytes"), end_s)
    flows = sampled(results, run)
    bottlenecks = (
        results.scan("flows", run)
        .filter(pl.col("bottleneck_share") > 0)
        .select(
            "flow", "bottleneck",
            (pl.col("goodput_mbit_s") / pl.col("bottleneck_share")).alias("value"),
        )
        .collect()
    )  # fmt: skip
    levels, note = None, ""
    if len(flows) <= FEW and bottlenecks["bottleneck"].n_unique() == 1:
        levels = bottlenecks.head(1).with_columns(pl.lit("bottleneck (Mbit/s)").alias("about"))
        levels = levels.filter(pl.col("flow").is_in(flows["flow"].to_list()))
        note = f"dotted: the rate of the bottleneck {bottlenecks['bottleneck'][0]}"
    drawn = of_flows(
        points,
        flows,
        y="rate_mbit_s",
        title="acknowledged (Mbit/s)",
        end_s=end_s,
        levels=levels,
    )
    return _shown(results, run, Drawn(drawn.chart, drawn.note or note))


def rates(acked: pl.DataFrame, end_s: float) -> pl.DataFrame:
    """The rate in each part of a run, placed at its middle, from the cumulative bytes acknowledged:
    `flow`, `time_s`, `acked_bytes`.
    """
    most = acked.group_by("flow").len()["len"].max()
    assert isinstance(most, int)
    number = min(max(most // 2, 1), MOST_RATES)
    width = end_s / number
    edges = pl.DataFrame({"edge": range(number + 1)}).with_columns(
        # Sample times are exact to the nanosecond.
        (pl.col("edge") * width + 1e-9).alias("time_s")
    )
    found = []
    for (flow,), own in acked.group_by("flow", maintain_order=True):
        reached = edges.join_asof(own.select("time_s", "acked_bytes"), on="time_s")
        bytes_ = pl.col("acked_bytes").fill_null(0).diff()
        found.append(
            reached.select(
                pl.lit(flow).alias("flow"),
                (pl.col("time_s") - 1e-9 - width / 2).alias("time_s"),
                (bytes_ * 8e-6 / width).alias("rate_mbit_s"),
            ).drop_nulls()
        )
    return pl.concat(found)


def network(experiment: Experiment) -> alt.LayerChart:
    """Draws the hosts, links and flows of the first variant of an experiment: the paths of packets
    and the links on them. Of many similar entries, a few are drawn.

    Raises:
        ConfigError: The experiment cannot be run on any backend.
    """
    plan: dict[str, Any] = json.loads(first_plan(experiment).to_json())
    return styled(_network.chart(plan, [*COLOURS]))


def goodput(results: Results, *, run: str | None = None) -> alt.LayerChart:
    """Draws the goodput of each flow over time: a point in the middle of each interval.

    Raises:
        ValueError: The experiment has no intervals.
    """
    run = chosen(results, run)
    if not _has_rows(results, run, "intervals"):
        raise ValueError('there are no intervals: say how long they are, like `every = "1 s"`')
    return _shown(results, run, _goodput(results, run))


def samples(results: Results, *columns: str, run: str | None = None) -> alt.VConcatChart:
    """Draws columns of the samples over time, one above the other: what a sender saw, and why it
    reacted, like `"cwnd_segments", "vegas_diff"`.

    Raises:
        ValueError: The samples have no such column, or the column is not numeric.
    """
    run = chosen(results, run)
    schema = results.scan("samples", run).collect_schema()
    known = [name for name, kind in schema.items() if kind.is_numeric() and name != "time_s"]
    if not columns:
        raise ValueError(f"name one column or more; there are {', '.join(known)}")
    for column in columns:
        if column not in known:
            raise ValueError(
                f"no column of numbers is called {column!r}; there are {', '.join(known)}"
            )
    return _of_columns(results, _with_samples(results, run), columns, height=220)


def internals(results: Results, *, run: str | None = None) -> alt.VConcatChart:
    """Draws the internal quantities of the congestion controls over time, below the window that
    follows from them: the columns that they add to `samples`, which `tcplab explain NAME`
    describes.

    Raises:
        ValueError: There are no samples, or no congestion control of the run has such columns.
    """
    run = _with_samples(results, run)
    kinds = results.scan("samples", run).collect_schema()
    own = [name for name in kinds if name not in declared("samples") and kinds[name].is_numeric()]
    there = results.scan("samples", run).select(pl.col(own).count()).collect() if own else None
    own = [name for name in own if there is not None and there[name][0]]
    if not own:
        used = _lines_of_flows(results, run)["cc"].unique(maintain_order=True)
        raise ValueError(f"the samples of {', '.join(used)} have no columns of their own")
    few = own[:MOST_INTERNALS]
    left_out = f"{len(few)} of {len(own)} columns" if len(few) < len(own) else ""
    return _of_columns(results, run, ["cwnd_segments", *few], height=110, note=left_out)


def transfers(results: Results, *, run: str | None = None) -> alt.Chart:
    """Draws the share of the transfers of each flow that completed within a time: the distribution
    of completion times. A line that ends below 100 % has transfers that did not complete.

    With a measuring window, only transfers that began in it count.

    Raises:
        ValueError: No flow has transfers.
    """
    run = chosen(results, run)
    flows = _flows_with(results, run, pl.col("transfers") > 0)
    if flows.is_empty():
        raise ValueError("no flow of this run has transfers, like web pages, requests or arrivals")
    chart = _transfers(results, run, flows)
    return styled(chart.properties(title=titles_of(results, run, _left_out(flows))))


def datagrams(results: Results, *, run: str | None = None) -> alt.VConcatChart:
    """Draws the datagrams of each UDP flow: one-way delays from the least to the 99th percentile,
    delay variation (the mean of RFC 3393, as `ipdv_ms`), and loss.

    Raises:
        ValueError: No timed datagram of any flow arrived.
    """
    run = chosen(results, run)
    flows = _flows_with(results, run, HAS_DATAGRAMS)
    if flows.is_empty():
        raise ValueError("no flow of this run sends datagrams whose delays are known")
    chart = stacked(_datagrams(flows), titles_of(results, run, _left_out(flows)))
    return styled(chart)


def queue(results: Results, *, run: str | None = None) -> alt.LayerChart:
    """Draws the most packets that waited for each of the busiest links since the previous sample,
    over time.

    Raises:
        ValueError: No links were recorded.
    """
    run = _with_links(results, run)
    return styled(_queue(results, run).properties(title=titles_of(results, run)))


def queue_delay(results: Results, *, run: str | None = None) -> alt.LayerChart:
    """Draws the time that packets wait for the busiest links, in milliseconds, over time.

    The line is the mean number of bytes waiting between two records, divided by the rate of the
    link; the area reaches to the most bytes waiting at once, and the dotted line is a full queue.
    For a link with a varying rate there is only the line, by Little's law, as in the metric
    `queue_delay_mean_ms`.

    Raises:
        ValueError: No links were recorded, or no packets were sent.
    """
    run = _with_links(results, run)
    shown = _busiest(results, run)
    plan = _plan(results, run)
    lanes = {lane["name"]: lane for lane in plan["lanes"]}
    drains = {link: _drains(lanes.get(link)) for link in shown}
    rate = pl.col("link").replace_strict(drains, return_dtype=pl.Float64)
    lasted, sent = _since("time_s"), _since("sent_bytes")
    by_little = pl.when(sent > 0).then(pl.col("queue_mean_bytes") * lasted / sent * 1000)
    by_rate = pl.col("queue_mean_bytes") * 8e-3 / rate
    rows = (
        results.scan("links", run)
        .filter(pl.col("link").is_in(shown))
        .select(
            pl.col("link").alias("label"), "time_s",
            pl.coalesce(by_rate, by_little).alias("queue_ms"),
            (pl.col("queue_max_bytes") * 8e-3 / rate).alias("high"),
        )
        .collect()
    )  # fmt: skip
    if rows["queue_ms"].count() == 0:
        raise ValueError("nothing was sent on the links of this run")
    bands = rows.select("label", "time_s", pl.lit(0.0).alias("low"), "high").drop_nulls()
    full: list[dict[str, Any]] = [
        {"label": link, "value": size * 8e-3 / drain, "about": "full (ms)"}
        for link, drain in drains.items()
        if drain is not None and (size := _limit(lanes[link])) is not None
    ]
    kinds = {"label": pl.String, "value": pl.Float64, "about": pl.String}
    # A queue that is never half full would be a line at the bottom.
    drawn_ms = [*rows["queue_ms"].drop_nulls(), *bands["high"]]
    greatest = max(map(float, drawn_ms))
    near = [one for one in full if one["value"] <= 3 * greatest]
    notes = ["line: mean between two records; area: the most that waited"] if len(bands) else []
    notes += ["dotted: when the queue is full"] if near else []
    far = [f"{one['label']} is full at {one['value']:.3g} ms" for one in full if one not in near]
    chart = over_time(
        rows.select("label", "time_s", "queue_ms"),
        y="queue_ms",
        labels=shown,
        title="queueing delay (ms)",
        end_s=end_of(results, run),
        palette=LINK_COLOURS,
        bands=bands,
        levels=pl.DataFrame(near, schema=kinds),
    )
    return _shown(results, run, Drawn(chart, "; ".join([*notes, *far])))


def drops(results: Results, *, run: str | None = None) -> alt.VConcatChart:
    """Draws how many packets the busiest links dropped, lost and marked over time, by reason, in
    hundredths of the run. Drops by hosts have a panel of their own.
    """
    run = chosen(results, run)
    end_s = end_of(results, run)
    counts = drops_and_marks(results, run)
    notes = []
    if not _has_rows(results, run, "links"):
        notes.append("marks are not recorded: see `record.links`")
    if counts.is_empty():
        panel = said("No packet was dropped, lost or marked in this run.")
        return styled(stacked([panel], titles_of(results, run, *notes)))
    totals = counts.group_by("link", maintain_order=True).agg(pl.col("packets").sum())
    places = totals.sort("packets", descending=True, maintain_order=True)["link"].to_list()
    if len(places) > MOST_LINKS:
        notes.append(f"the {MOST_LINKS} of {len(places)} places with most")
    kinds = counts["what"].unique(maintain_order=True).sort().to_list()
    width = end_s / BARS
    # Marks have a colour that no drop has.
    colours = {kind: COLOURS[(1, 0, 3, 4, 5, 6)[n % 6]] for n, kind in enumerate(kinds)}
    colours |= {"marked": COLOURS[2]} if "marked" in colours else {}
    scale = alt.Scale(domain=kinds, range=[*colours.values()])
    parts: list[Layer] = []
    for number, place in enumerate(places[:MOST_LINKS]):
        own = counts.filter(pl.col("link") == place).with_columns(
            (pl.col("part") * width).alias("start_s"), ((pl.col("part") + 1) * width).alias("end_s")
        )
        time = alt.Scale(domain=[0, end_s], nice=False)
        legend = alt.Legend(title=None, orient="top") if number == 0 else None
        bars = (
            alt.Chart(data(own.drop("link", "part")))
            .mark_bar(clip=True, binSpacing=0)
            .encode(
                x=alt.X(
                    "start_s:Q",
                    title="time (s)",
                    scale=time,
                    bin="binned",
                    axis=alt.Axis(tickCount=8, format=".6~g"),
                ),
                x2=alt.X2("end_s:Q"),
                y=alt.Y("packets:Q", title="packets", stack=True),
                color=alt.Color("what:N", scale=scale, legend=legend),
                tooltip=[alt.Tooltip("what:N"), alt.Tooltip("packets:Q"), alt.Tooltip("start_s:Q")],
            )
            .properties(
                width=WIDTH, height=110, title=alt.TitleParams(printable(place), fontSize=12)
            )
        )
        parts.append(bars.properties(name="bars"))
    return styled(stacked(parts, titles_of(results, run, *notes)))


def drops_and_marks(results: Results, run: str) -> pl.DataFrame:
    """The number of packets dropped or marked at each place in each part of the run: `link`,
    `what`, `part`, `packets`.
    """
    width = end_of(results, run) / BARS
    # The last part includes the end of the run.
    part = (pl.col("time_s") / width).floor().clip(0, BARS - 1).cast(pl.Int64).alias("part")
    what = pl.col("reason").str.to_lowercase().str.replace_all("_", " ").alias("what")
    place = pl.col("link").fill_null("hosts")
    dropped = results.scan("drops", run).select(place, what, part)
    counted = dropped.group_by("link", "what", "part", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("packets")
    )
    marked = results.scan("links", run).select(
        "link", pl.lit("marked").alias("what"), part,
        _since("marked_packets").cast(pl.Int64).alias("packets"),
    )  # fmt: skip
    marks = marked.group_by("link", "what", "part", maintain_order=True).agg(
        pl.col("packets").sum()
    )
    return pl.concat([counted, marks]).filter(pl.col("packets") > 0).collect()


def checked(results: Any) -> Results:
    """Raises an error unless the argument is `Results`."""
    if not isinstance(results, Results):
        what = type(results).__name__
        raise TypeError(f"results: those of tcplab.run are needed, not a {what}")
    return results


def chosen(results: Results, run: str | None) -> str:
    """The requested run, or the first."""
    checked(results)
    known = results.runs["run"].to_list()
    if run is not None and run not in known:
        raise ValueError(f"no run of these results has the id {run!r}")
    return run or known[0]


def _with_samples(results: Results, run: str | None) -> str:
    run = chosen(results, run)
    if not _has_rows(results, run, "samples"):
        raise ValueError(f"no flow of this run has samples of a window: {NO_SAMPLES}")
    return run


def _with_links(results: Results, run: str | None) -> str:
    run = chosen(results, run)
    if not _has_rows(results, run, "links"):
        raise ValueError(NO_LINKS)
    return run


def _shown(results: Results, run: str, drawn: Drawn) -> alt.LayerChart:
    """A panel alone, with its title."""
    chart: alt.LayerChart = drawn.chart.properties(title=titles_of(results, run, drawn.note))
    return styled(chart)


def titles_of(results: Results, run: str, *notes: str) -> alt.TitleParams:
    """The title: the experiment's name, and below it the run and what is left out."""
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
    subtitle += [note for note in notes if note]
    return alt.TitleParams(printable(about["experiment"]), subtitle=[*map(printable, subtitle)])


def end_of(results: Results, run: str) -> float:
    return float(results.runs.filter(pl.col("run") == run)["simulated_s"][0])


def _plan(results: Results, run: str) -> dict[str, Any]:
    """The plan of a run, as plain values."""
    place = results.runs["run"].to_list().index(run)
    plan: dict[str, Any] = json.loads(results.plans[place].to_json())
    return plan


def _cwnd(results: Results, run: str) -> Drawn:
    column = "cwnd_segments"
    points = _samples(results, run, column)
    flows = sampled(results, run)
    besides, note, most = None, "", None
    if len(flows) <= FEW:
        threshold = pl.col("ssthresh_segments").alias("value")
        rows = results.scan("samples", run).select("flow", "time_s", threshold)
        besides = rows.drop_nulls("value").collect()
        note = "dashed: the slow-start threshold" if len(besides) else ""
        greatest = points[column].max()
        # A threshold far above any window would flatten the windows.
        most = 2.0 * greatest if isinstance(greatest, int | float) and greatest > 0 else None
    drawn = of_flows(
        points,
        flows,
        y=column,
        title="cwnd (segments)",
        end_s=end_of(results, run),
        besides=besides,
        most=most,
    )
    return Drawn(drawn.chart, drawn.note or note)


def _of_columns(
    results: Results, run: str, columns: Sequence[str], *, height: int, note: str = ""
) -> alt.VConcatChart:
    """Columns of the samples, one above the other."""
    flows = sampled(results, run)
    drawn = [
        of_flows(
            _samples(results, run, column),
            flows,
            y=column,
            title=column.replace("_", " "),
            end_s=end_of(results, run),
            height=height,
        )
        for column in columns
    ]
    parts = [one.chart for one in drawn]
    return styled(stacked(parts, titles_of(results, run, drawn[0].note, note)))


def _samples(results: Results, run: str, column: str) -> pl.DataFrame:
    rows = results.scan("samples", run).select("flow", "time_s", column)
    return rows.drop_nulls(column).collect()


def _has_rows(results: Results, run: str, table: str) -> bool:
    return not results.scan(table, run).head(1).collect().is_empty()


def _goodput(results: Results, run: str) -> Drawn:
    """The chart of the goodput in intervals."""
    middle = ((pl.col("start_s") + pl.col("end_s")) / 2).alias("time_s")
    y = "goodput_mbit_s"
    label = pl.coalesce("cc", "transport").alias("cc")
    flows = results.scan("flows", run).select("flow", label, "class", "transport", "bytes")
    points = results.scan("intervals", run).select("flow", middle, y).collect()
    end_s = end_of(results, run)
    return of_flows(points, flows.collect(), y=y, title="goodput (Mbit/s)", end_s=end_s)


def _flows_with(results: Results, run: str, condition: pl.Expr) -> pl.DataFrame:
    """The flows that fulfil a condition, with their labels in charts."""
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
    # Many transfers are thinned to as many as can be told apart; the last one stays.
    step = (pl.len().over("label") / MOST_POINTS).ceil().cast(pl.Int64)
    points = points.filter((pl.len().over("label") - pl.col("place")) % step == 0)
    origin = points.select("label").unique(maintain_order=True)
    origin = origin.with_columns(share=pl.lit(0.0), completion_s=pl.lit(0.0))
    points = pl.concat([origin, points.select("label", "share", "completion_s")])
    labels = drawn["label"].to_list()
    lines = _distribution(points, labels)
    steps = lines.mark_line(strokeWidth=1.3, interpolate="step-after")
    chart: alt.Chart = steps.encode(
        x=alt.X("completion_s:Q", title="completed within (s)"),
        y=alt.Y("share:Q", title="transfers (%)", scale=alt.Scale(domain=[0, 100])),
        order=alt.Order("share:Q"),
    ).properties(width=WIDTH, height=180)
    return chart


def _datagrams(flows: pl.DataFrame) -> list[Layer]:
    """Delay, delay variation, and loss of these flows."""
    drawn = flows.head(MOST_FLOWS).with_columns(
        pl.col("label").map_elements(printable, return_dtype=pl.String),
        (100 * pl.col("lost_packets") / pl.col("sent_segments")).alias("lost_percent"),
    )
    flow = alt.Y("label:N", title=None, sort=drawn["label"].to_list())
    size = {"width": WIDTH, "height": alt.Step(18)}
    columns = ["label", "delay_min_ms", "delay_p99_ms", "ipdv_ms", "lost_percent"]
    base = alt.Chart(data(drawn.select(columns))).encode(y=flow)
    title = "one-way delay (ms), from the least to the 99th percentile"
    range_ = base.mark_rule(strokeWidth=1.3, color="#595959").encode(
        x=alt.X("delay_min_ms:Q", title=title), x2=alt.X2("delay_p99_ms:Q")
    )
    names = {"delay_p50_ms": "50 %", "delay_p95_ms": "95 %", "delay_p99_ms": "99 %"}
    percentiles = drawn.select("label", *names).rename(names)
    points = percentiles.unpivot(index="label", variable_name="share", value_name="delay_ms")
    marks = (
        alt.Chart(data(points))
        .mark_point(filled=True, size=60, opacity=1)
        .encode(
            y=flow,
            x=alt.X("delay_ms:Q"),
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
    """The subjects of samples with their congestion control: flows, or `NAME#1`, ... for flows with
    many connections.
    """
    flows = results.scan("flows", run).select(
        "flow", pl.coalesce("cc", "transport").alias("cc"), "class", "transport", "transfers"
    )
    names = results.scan("samples", run).select(pl.col("flow").unique(maintain_order=True))
    parts = names.select(
        pl.col("flow").alias("part"), pl.col("flow").str.replace(r"#\d+$", "").alias("flow")
    ).filter(pl.col("part") != pl.col("flow"))
    several = flows.filter(pl.col("transfers").is_not_null()).join(
        parts, on="flow", maintain_order="left_right"
    )
    lines = flows.join(several.select("flow", "part"), on="flow", how="left", maintain_order="left")
    return lines.select(
        pl.coalesce("part", "flow").alias("flow"), "cc", "class", "transport"
    ).collect()


def sampled(results: Results, run: str) -> pl.DataFrame:
    """The subjects that may have samples, with the bytes that were acknowledged."""
    sent = pl.col("acked_bytes").max().alias("bytes")
    acked = results.scan("samples", run).group_by("flow").agg(sent)
    flows = _lines_of_flows(results, run).filter(pl.col("cc") != "udp")
    joined = flows.join(acked.collect(), on="flow", how="left", maintain_order="left")
    return joined.with_columns(pl.col("bytes").fill_null(0))


def _busiest(results: Results, run: str) -> list[str]:
    """The links with at least half the utilisation of the busiest one."""
    links = results.scan("links", run).select("link", "utilisation")
    use = links.group_by("link", maintain_order=True).agg(pl.col("utilisation").mean()).collect()
    # A flow fills every link of a series of bottlenecks; access links are far less busy.
    busy = use.filter(pl.col("utilisation") >= pl.lit(use["utilisation"].max()) / 2)
    ordered = busy.sort("utilisation", descending=True, maintain_order=True)["link"]
    return ordered.head(MOST_LINKS).to_list()


def _queue(results: Results, run: str) -> alt.LayerChart:
    shown = _busiest(results, run)
    # A momentary sample would miss packets that came and went since the last one.
    y = "queue_max_packets"
    rows = results.scan("links", run).filter(pl.col("link").is_in(shown))
    return over_time(
        rows.select(pl.col("link").alias("label"), "time_s", y).collect(),
        y=y,
        labels=shown,
        title="longest queue (packets)",
        end_s=end_of(results, run),
        height=130,
        palette=LINK_COLOURS,
    )


def _since(column: str) -> pl.Expr:
    """The growth of a cumulative column of links since the previous row."""
    return pl.col(column).diff().over("link").fill_null(pl.col(column))


def _drains(lane: Any) -> float | None:
    """The rate in Mbit/s at which the queue of a lane drains, if it is constant."""
    if lane is None or lane["rate_changes"] is not None or lane["lan"] is not None:
        return None
    written = [lane["rate"], lane["queue"]["discipline"].get("rate")]
    found = [numbers([text]) for text in written if isinstance(text, str)]
    rates = [float(one[1][0]) for one in found if one is not None and one[0] == "mbit_s"]
    return min(rates) if rates else None


def _limit(lane: Any) -> float | None:
    """The capacity of the queue of a lane in bytes; a limit in packets counts packets of the
    largest size.
    """
    limit = lane["queue"]["limit"]
    if not isinstance(limit, dict):
        return None
    if (packets := limit.get("packets")) is not None:
        return float(packets) * float(lane["mtu"])
    found = limit.get("bytes")
    return float(found) if isinstance(found, int | float) else None


def _distribution(points: pl.DataFrame, names: Sequence[str]) -> alt.Chart:
    """A line for each label, distinguished by colour and, if there are many, by dashes."""
    shown = {name: printable(name) for name in names}
    legend = alt.Legend(title="flow (cc)", symbolType="stroke", symbolStrokeWidth=2, labelLimit=220)
    chart: alt.Chart = alt.Chart(data(points.with_columns(pl.col("label").replace(shown)))).encode(
        color=alt.Color("label:N", scale=scale_of([*shown.values()]), legend=legend),
        strokeDash=alt.StrokeDash("label:N", scale=dashes_of([*shown.values()]), legend=legend),
    )
    return chart
