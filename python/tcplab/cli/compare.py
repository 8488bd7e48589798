"""tcplab compare FILE: compares one experiment on several backends, number by number."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import polars as pl

import tcplab
from tcplab._experiment.labels import labels
from tcplab._text import plain_tables
from tcplab._text.cells import LEFT, Column, decimals, number
from tcplab.cli import _arguments, _chart
from tcplab.cli._output import say

MEASURES = {
    "goodput_mbit_s": "goodput (Mbit/s)",
    "completion_s": "completed in (s)",
    "cwnd_mean_segments": "cwnd mean (segments)",
    "rtt_mean_ms": "RTT mean (ms)",
    "retransmitted_segments": "resent (segments)",
    "loss_episodes": "loss episodes",
    "timeouts": "timeouts",
    "completion_mean_s": "transfer completed in (s)",
    "completion_p50_s": "50 % in (s)",
    "completion_p95_s": "95 % in (s)",
    "completion_p99_s": "99 % in (s)",
    "lost_packets": "lost (datagrams)",
    "reordered_packets": "reordered (datagrams)",
    "delay_mean_ms": "delay mean (ms)",
    "delay_p99_ms": "delay 99 % (ms)",
    "ipdv_ms": "variation (ms)",
}

MOST_ROWS = 140


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the experiment and the backends."""
    _arguments.add_common(parser)
    parser.add_argument(
        "--on",
        type=_backends,
        default=("sim", "linux"),
        metavar="BACKENDS",
        help="the backends, the reference last (default: sim,linux)",
    )


def run(args: argparse.Namespace) -> None:
    """Runs the experiment on each backend."""
    experiment = _arguments.experiment(args)
    name = _arguments.safe(experiment.name or _arguments.stem(args.file))
    out = args.out or Path("results") / f"{name}-compared"
    chart = _arguments.chart_of(args, out, "compare.svg")
    began = time.monotonic()
    with _arguments.client(args) as client:
        comparison = tcplab.compare(
            experiment,
            backends=args.on,
            out=out,
            workers=args.workers,
            memory=args.memory,
            kernel=args.kernel,
            progress=False if args.quiet else None,
            client=client,
        )
    elapsed_s = time.monotonic() - began
    say(table(comparison), flush=True)
    if chart is not None:
        _chart.save(lambda: tcplab.plot.compare(comparison), chart)
    if not args.quiet:
        runs = sum(len(results.plans) for results in comparison.results.values())
        drawn = f"\nchart   {chart}" if chart else ""
        say(f"\n{runs} runs in {elapsed_s:.2f} s\ntables  {out}{drawn}", file=sys.stderr)


def table(comparison: tcplab.Comparison) -> str:
    """A row for each measure of each flow: the mean over repetitions."""
    *others, reference = comparison.backends
    numbers = comparison.differences().group_by(
        [*comparison.swept, "flow", "measure"], maintain_order=True
    )
    means = numbers.agg(pl.col(comparison.backends).mean()).filter(
        pl.any_horizontal(pl.col(comparison.backends).is_not_null())
    )
    # The measures of a flow are adjacent; measures that are zero everywhere are left out.
    flows = [*comparison.swept, "flow"]
    all_means = len(means)
    means = means.filter(pl.any_horizontal(pl.col(comparison.backends) != 0))
    zeros = all_means - len(means)
    order = means.select(flows).unique(maintain_order=True).with_row_index("place")
    rows = means.join(order, on=flows, nulls_equal=True, maintain_order="left").sort(
        "place", maintain_order=True
    )
    rows = rows.with_columns(
        pl.col(path).replace(labels(rows[path].to_list())) for path in comparison.swept
    )
    heads = [Column(name, LEFT) for name in [*flows, "measure"]]
    heads += [Column(name) for name in comparison.backends]
    heads += [Column("difference", unit="%")] * len(others)
    cells = []
    for row in rows.head(MOST_ROWS).iter_rows(named=True):
        texts = [row[name] or "" for name in flows]
        texts.append(MEASURES[row["measure"]])
        texts += [_number(row[name]) for name in comparison.backends]
        texts += [_difference(row[name], row[reference]) for name in others]
        cells.append(texts)
    text = plain_tables.table(heads, cells)
    if zeros:
        what = "1 measure that is" if zeros == 1 else f"{zeros} measures that are"
        text += f"\nNot shown: {what} 0 everywhere; `Comparison.differences()` has all"
    if len(rows) > MOST_ROWS:
        text += f"\n... and {len(rows) - MOST_ROWS} more rows; `Comparison.differences()` has them"
    return text


def _number(value: float | None) -> str:
    return "-" if value is None else number(value, decimals(value, 4))


def _difference(value: float | None, reference: float | None) -> str:
    if value is None or reference is None:
        return "-"
    if value == reference:
        return "0"
    return "-" if reference == 0 else number((value - reference) / reference * 100, 2, sign="+")


def _backends(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise argparse.ArgumentTypeError(f"{text}: expected two backends, like sim,linux")
    return names
