"""What came out: the tables of all runs of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tcplab import _core
from tcplab._experiment.quantities import numbers
from tcplab._results.flow_summary import COLUMNS, MEASURED, PerRun, per_run, summary, with_times
from tcplab._results.metrics import METRICS, Tables, completions, measured, stalls
from tcplab._store.plans import Called, StoredPlans, called
from tcplab._store.run_groups import TABLES, Group, OnDisk, declared, rows_of
from tcplab._store.store import located


class Results:
    """The tables of all runs, in the order in which the experiment asks for them.

    Tables of runs that are on disk are read when they are asked for, not before: with many runs,
    `scan` a table and take what is needed from it, rather than `samples` or `links` as a whole.

    `len(results)` is the number of runs. `results[0]`, `results[2:5]` and `results["..."]`, by the
    run's id, are results of those runs alone, and `for one in results` goes over them. In a
    notebook results show their table and a chart.
    """

    def __init__(
        self,
        plans: Sequence[_core.Plan],
        tables: Mapping[str, Group],
        *,
        computed: frozenset[str],
    ) -> None:
        """`tables` are, by run, where its rows are; `computed` are the runs that were not there."""
        self.plans: Sequence[_core.Plan] = plans
        self.computed = computed
        self._called = plans.called if isinstance(plans, StoredPlans) else called(plans)
        self._tables: Mapping[str, Group] = {one.run: tables[one.run] for one in self._called}

    @cached_property
    def swept(self) -> list[str]:
        """The columns of `runs` that hold swept values, and the variant's name."""
        return list(dict.fromkeys(name for one in self._values for name in one))

    @cached_property
    def _values(self) -> list[dict[str, str]]:
        """What was swept, and the variant, of each run by the name of its column."""
        return [_swept(one.swept) for one in self._called]

    @cached_property
    def runs(self) -> pl.DataFrame:
        """A row for each run. Swept values stand in columns named by their path or parameter, as
        they were written, and the variant's name in `variant`.

        Where all values of a column are quantities of one kind, another has them as numbers in one
        unit, which its name ends with: `_mbit_s` for rates, `_ms` for times, `_bytes`, `_packets`,
        `_bdp`, `_share` for percentages, `_number` for plain numbers, `_boolean` for true and
        false. `"10 ms"` of `delay` is 10.0 in `delay_ms`.
        """
        own = self._read("runs", None).select(declared("runs"))
        rows = _named(own, self._called, self._values, self.swept)
        for name in self.swept:
            found = numbers(rows[name].to_list())
            if found is not None and (column := f"{name}_{found[0]}") not in rows.columns:
                rows = rows.with_columns(found[1].alias(column))
        return rows

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row for each flow of each run."""
        return self._read("flows", None).collect()

    @property
    def transfers(self) -> pl.DataFrame:
        """A row for each object of a flow whose traffic consists of many."""
        return self.scan("transfers").collect()

    @property
    def intervals(self) -> pl.DataFrame:
        """A row for each flow and interval, where the experiment says `every`."""
        return self.scan("intervals").collect()

    @property
    def samples(self) -> pl.DataFrame:
        """The state of each flow over time."""
        return self.scan("samples").collect()

    @property
    def drops(self) -> pl.DataFrame:
        """Every packet that was dropped or lost, with the reason."""
        return self.scan("drops").collect()

    @property
    def packets(self) -> pl.DataFrame:
        """Packets at the points where `record.packets` asks for them."""
        return self.scan("packets").collect()

    def files(self, run: str) -> dict[str, bytes]:
        """Further files that a run left, by name: captured packets, the output of programs."""
        self._tables = located(self._tables)
        return self._tables[run].files(run)

    def folder(self, run: str) -> Path | None:
        """The folder with further files of a run, if it is on disk and there are any."""
        self._tables = located(self._tables)
        group = self._tables[run]
        folder = group.folder / run if isinstance(group, OnDisk) else None
        return folder if folder is not None and folder.is_dir() else None

    @property
    def folders(self) -> list[Path]:
        """The folders in which the results are stored: what `out` of `run` names, as a rule one."""
        self._tables = located(self._tables)
        groups = self._tables.values()
        return list(dict.fromkeys(one.folder.parent for one in groups if isinstance(one, OnDisk)))

    @property
    def links(self) -> pl.DataFrame:
        """The state of each direction of each link over time."""
        return self.scan("links").collect()

    @property
    def digests(self) -> dict[str, str]:
        """A hash over all tables of each run, by its id: equal results have equal ones."""
        return {run: tables.ran[run].digest for run, tables in self._tables.items()}

    def scan(self, table: str, run: str | None = None) -> pl.LazyFrame:
        """A table of all runs, or of one, as a lazy frame: only what is asked of it is read."""
        if table not in TABLES:
            raise ValueError(f"no table is called {table!r}; there are {', '.join(TABLES)}")
        if table == "runs":
            lazy = self.runs.lazy()
            return lazy if run is None else lazy.filter(pl.col("run") == run)
        if table == "flows" and run is None:
            return self.flows.lazy()
        return self._read(table, run)

    def _read(self, table: str, run: str | None) -> pl.LazyFrame:
        self._tables = located(self._tables)
        chosen = self._tables if run is None else {run: self._tables[run]}
        return rows_of(chosen, table)

    def joined(self, table: str) -> pl.DataFrame:
        """A table with what was swept, the seed and the repetition of the run beside each row."""
        return self._joined_flows if table == "flows" else self._joined(table)

    @cached_property
    def _joined_flows(self) -> pl.DataFrame:
        return self._joined("flows")

    def _joined(self, table: str) -> pl.DataFrame:
        about = self.runs.select("run", "seed", "repetition", *self.swept)
        return about.lazy().join(self.scan(table), on="run", maintain_order="left_right").collect()

    def query(self, sql: str) -> pl.DataFrame:
        """The rows that a query in SQL asks for, as DuckDB has it: `select cc, avg(goodput_mbit_s)
        from flows group by cc`.

        Every table is there by its name, and `plans`; `runs` has the columns that it has here. A
        query reads nothing else of the machine, and changes nothing.

        Raises:
            ConfigError: It is no query, or asks for what is not there.
        """
        from tcplab._results.query import query  # noqa: PLC0415 (few ask)

        self._tables = located(self._tables)
        return query(sql, self.runs, self._tables)

    def summary(
        self,
        *,
        by: str = "flow",
        statistic: str = "mean",
        level: float = 0.95,
        metrics: Sequence[str] = (),
    ) -> pl.DataFrame:
        """What each flow of each variant achieved: the mean over repetitions.

        Beside each mean stand the limits of its confidence interval, `..._low` and `..._high`:
        those of `lab.statistics.interval`, which hold for skewed and bimodal data too. Nothing
        where there are fewer than 10 repetitions. `..._ci` is half the width of Student's interval,
        which holds from 2 repetitions on if they are normally distributed.

        A row about several flows has their mean of each measure, but the sum of
        `retransmitted_segments` and the least `rtt_min_ms`. Further columns of such rows:

        - `goodput_all_mbit_s`: all their bytes over the time in which any of them ran.
        - `jain_index`: Jain's index of the goodput of all flows that share their bottleneck,
          whatever their class and congestion control; with several bottlenecks, the least. A flow
          that never connected counts as 0.
        - `completion_p50_s`, `completion_p95_s`, `completion_p99_s`: the time in which this share
          of the flows completed (the nearest rank). Flows that did not complete count as longest:
          where the rank is one of them, there is nothing.

        Where a flow consists of transfers (sessions, arrivals, requests), these take its place in
        such rows, each under its own class. A row about a single flow has the numbers of the table
        of flows instead: `transfers`, `completion_mean_s`, `completion_p50_s` and so on.

        Of UDP there are the measures of the table of flows, like `delay_p99_ms` and `jitter_ms`,
        and `lost_share`, the share of the datagrams sent that were lost. A row about several flows
        has the mean of their percentiles of delay, not the percentile of all their datagrams.

        With a measuring window, rows are about that part of the runs, as the table of flows is: a
        flow that ran at another time has no goodput and no part in `jain_index`, and transfers are
        those that began in it.

        `unfinished` is the number of flows that did not complete, with a size or because they
        broke. Where it is not 0, there is no mean `completion_s`: it would be too short.

        Args:
            by: "flow" for a row per flow, "class" for one per class and congestion control, "cc"
                for one per congestion control; UDP, which has none, has a row of its own.
            statistic: "mean", or "median": that of the repetitions, from 5 of them on with limits.
            level: The probability that an interval holds the truth.
            metrics: Further columns: those of `metrics`. Of several flows there is their mean.
        """
        return summary(
            self._measured_flows(metrics),
            self.scan("transfers"),
            variant=self.swept,
            by=by,
            statistic=statistic,
            level=level,
            metrics=metrics,
        )

    def versus(
        self,
        baseline: Mapping[str, str] | str,
        *,
        metrics: Sequence[str] | None = None,
        by: str = "flow",
        margin: float = 0.02,
        level: float = 0.95,
    ) -> pl.DataFrame:
        """What other variants achieved, compared with a baseline in pairs of runs with equal seeds.

        A row for each metric of each flow (or class, or congestion control) of each variant but
        the baseline, where all else that is swept is the same:

        - `baseline`, `mean`: the means over the pairs; `pairs`: how many there are.
        - `difference`, `difference_low`, `difference_high`: the mean difference of the pairs and
          its interval (`lab.statistics.difference`).
        - `relative`, `relative_low`, `relative_high`: the same as shares of the baseline's mean,
          whose own spread is no part of them (`lab.statistics.ratio` has it).
        - `harm`: how much worse the mean is than that of the baseline, as a share of the better one
          (Ware et al. 2019): with a variant in which the flow is alone as baseline, the harm that
          the others do. Negative if it is better; nothing where neither more nor less is better.
        - `effect`: the difference in standard deviations of the differences (Hedges' g).
        - `p`: how probable so great a difference is if there is none, corrected for the number of
          rows (Holm). `p_same`: the same for two means so close if they differ by the margin.
        - `more_runs`: about how many more pairs would tell whether there is a difference of the
          margin, with 80 % probability.
        - `verdict`: `higher`, `lower`, `same` (within the margin), `equal` (nothing is random) or
          `unknown`.
        - `said`: the verdict in words.
        - `assumes`: `normal` where fewer than 10 pairs allow no other interval than Student's.

        Args:
            baseline: The swept keys that tell the baseline from the others, with its values:
                `{"flows[0].cc": "cubic"}`. The value alone, if only one column of `runs` has it.
            metrics: Columns of the summary, or of `metrics`; by default those of the screen.
            by: What a row is about, as in `summary`.
            margin: Differences below this share of the baseline do not matter.
            level: The probability that an interval holds the truth.

        Raises:
            ValueError: No run is of such a baseline, or none has a partner.
        """
        from tcplab._results.versus import versus  # noqa: PLC0415 (SciPy takes a while to load)

        return versus(
            self._per_run(by, metrics or ()),
            swept=self.swept,
            baseline=baseline,
            metrics=metrics,
            by=by,
            margin=margin,
            level=level,
        )

    def metrics(self, *names: str) -> pl.DataFrame:
        """Further measures of each flow of each run, with what was swept beside them:
        [their definitions](metrics.md).

        Args:
            names: Which ones; by default all. Where the experiment does not write down what one
                needs, it is nothing.

        Raises:
            ValueError: There is no such metric.
        """
        chosen = names or tuple(METRICS)
        columns = ["run", "seed", "repetition", *self.swept, "flow", "class", "transport", "cc"]
        return self._measured_flows(chosen).select(*columns, *chosen)

    def completions(self, *edges: int) -> pl.DataFrame:
        """Completion times of each run by size: a row for each class of sizes that has transfers.

        Transfers are those of flows that consist of them, and other flows with a size; with a
        measuring window, those that began in it. `slowdown` is the completion time over that of an
        empty path: half of the flow's least RTT, and the bytes at the rate of its bottleneck.
        Percentiles are by nearest rank, and those that did not complete count as longest.

        Args:
            edges: Sizes in bytes at which a class begins: `completions(10_000, 1_000_000)` has
                three. Those that did not complete count by what arrived of them.
        """
        flows = with_times(self._measured_flows())
        about = ["seed", "repetition", *self.swept]
        return completions(flows, self.scan("transfers"), edges, about)

    def stalls(self, *, rate_mbit_s: float, start_s: float = 2.0) -> pl.DataFrame:
        """How a player of each flow of each run would have stalled: `startup_s` from the start of
        the flow until it plays, the number of `stalls`, and `stalled_s`, their time in all.

        The player begins when `start_s` of its content are there, and plays at its rate; when
        nothing is left it waits until as much is there again. The bytes of each interval (`every`)
        arrive evenly over it; without intervals there is nothing.

        Args:
            rate_mbit_s: The rate of the content.
            start_s: How much is buffered before it plays.
        """
        flows = self._measured_flows()
        columns = ["run", "seed", "repetition", *self.swept, "flow", "class"]
        found = stalls(flows, self.scan("intervals"), rate_mbit_s=rate_mbit_s, start_s=start_s)
        return flows.select(columns).join(found, on=["run", "flow"], maintain_order="left")

    def _per_run(self, by: str, metrics: Sequence[str] = ()) -> PerRun:
        """The measures of each run; `metrics` may name columns of the summary, too."""
        further = [name for name in metrics if name in METRICS]
        return per_run(
            self._measured_flows(further),
            self.scan("transfers"),
            variant=self.swept,
            by=by,
            metrics=further,
        )

    def _measured_flows(self, metrics: Sequence[str] = ()) -> pl.DataFrame:
        """The flows with what was swept and measured beside them, and further metrics."""
        about = self.runs.select("run", "simulated_s", *MEASURED).unique("run")
        flows = self.joined("flows").join(about, on="run", maintain_order="left")
        if not metrics:
            return flows
        # Two variants may share a run: each of its flows counts once.
        each = with_times(flows).unique(["run", "flow"], maintain_order=True)
        links = self.scan("links").join(about.lazy(), on="run", maintain_order="left")
        tables = Tables(each.lazy(), self.scan("intervals"), links)
        found = measured(tables, metrics)
        return flows.join(found, on=["run", "flow"], maintain_order="left")

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._called)

    def __getitem__(self, key: int | slice | str) -> Results:
        """Some of the runs, as results of their own: by place, as a slice, or by id."""
        places = self._places(key)
        own = [self._called[place] for place in places]
        plans = StoredPlans(own, lambda: {plan.id: plan for plan in self.plans})
        runs = {one.run for one in own}
        return Results(plans, self._tables, computed=self.computed & runs)

    def _places(self, key: int | slice | str) -> list[int]:
        if isinstance(key, str):
            # Variants that do not differ share a run.
            found = [place for place, one in enumerate(self._called) if one.run == key]
            if not found:
                raise KeyError(f"no run of these results has the id {key!r}")
            return found
        every = range(len(self))
        if isinstance(key, slice):
            if not every[key]:
                raise IndexError(f"{len(self)} runs: none of them is in this slice")
            return list(every[key])
        if isinstance(key, bool) or not isinstance(key, int):
            kind = type(key).__name__
            raise TypeError(f"results have runs by place, slice or id, not by {kind}")
        if not -len(self) <= key < len(self):
            raise IndexError(f"{len(self)} runs: there is no run {key}")
        return [every[key]]

    def __iter__(self) -> Iterator[Results]:
        """Each run, as results of its own, in the order of the experiment."""
        return (self[place] for place in range(len(self)))

    def __contains__(self, run: object) -> bool:
        """Whether a run of this id is one of them."""
        return any(one.run == run for one in self._called)

    def __repr__(self) -> str:
        """How much there is of which experiment, and what was swept."""
        number = len(self)
        names = list(dict.fromkeys(one.experiment for one in self._called))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        about = [f"{names[0]!r}{more}" if names[0] else "", f"{number} run{'s'[: number != 1]}"]
        if self.swept:
            about.append(f"swept: {', '.join(self.swept)}")
        about.append(f"computed now: {len(self.computed)}")
        return f"Results({'; '.join(filter(None, about))})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """The table and the chart that notebooks show. They need no network."""
        from tcplab._results.notebook import of_results  # noqa: PLC0415 (charts take a while to load)

        return {"text/plain": repr(self), "text/html": of_results(self)}


def together(results: Mapping[str, Results]) -> Results:
    """The runs of several results. Where each is from counts as a swept value, `results`: the name
    that its results have here.
    """
    if not results:
        raise ValueError("results: there are none")
    if len(results) == 1:
        return next(iter(results.values()))
    plans: list[_core.Plan] = []
    tables: dict[str, Group] = {}
    computed: frozenset[str] = frozenset()
    for name, one in results.items():
        plans += [
            plan.named(plan.experiment, plan.repetition, [("results", name), *plan.swept])
            for plan in one.plans
        ]
        tables |= one._tables
        computed |= one.computed
    return Results(plans, tables, computed=computed)


@cache
def _declared() -> frozenset[str]:
    """The columns of tables and of what is made of them."""
    return frozenset({column for _, column, _ in _core.columns()} | COLUMNS | {*_core.backends()})


def _swept(swept: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What was swept and the variant, by the name of its column."""
    named = ((f"sweep.{name}" if name in _declared() else name, text) for name, text in swept)
    return dict(named)


def _named(
    rows: pl.LazyFrame,
    runs: Sequence[Called],
    swept: Sequence[Mapping[str, str]],
    names: Sequence[str],
) -> pl.DataFrame:
    """The rows of runs as this experiment calls them.

    Runs may have been computed for another experiment: the id is about results, not names.
    """
    called = pl.DataFrame(
        {
            "run": [one.run for one in runs],
            "experiment": [one.experiment for one in runs],
            "repetition": pl.Series([one.repetition for one in runs], dtype=pl.Int64),
            **{
                name: pl.Series([one.get(name) for one in swept], dtype=pl.String) for name in names
            },
        }
    )
    own = rows.drop("experiment", "repetition")
    return (
        called.lazy()
        .join(own, on="run", maintain_order="left")
        .select(*declared("runs"), *names)
        .collect()
    )
