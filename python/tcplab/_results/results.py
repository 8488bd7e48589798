"""Results: the tables of all runs of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tcplab import _core
from tcplab import _polars as pl
from tcplab._experiment.quantities import numbers
from tcplab._results.flow_summary import COLUMNS, MEASURED, PerRun, per_run, summary, with_times
from tcplab._results.metrics import METRICS, Tables, completions, measured, stalls
from tcplab._store.plans import Called, StoredPlans, called
from tcplab._store.run_groups import TABLES, Group, OnDisk, declared, rows_of
from tcplab._store.store import located


class Results:
    """The tables of all runs, in the order in which the experiment asks for them.

    Tables of runs on disk are read on demand. With many runs, `scan` a table and select from it,
    rather than read `samples` or `links` as a whole.

    `len(results)` is the number of runs. `results[0]`, `results[2:5]` and `results["..."]` (a run's
    id) are results of those runs alone, and `for one in results` iterates over the runs. A notebook
    shows results as a table and a chart.
    """

    def __init__(
        self,
        plans: Sequence[_core.Plan],
        tables: Mapping[str, Group],
        *,
        computed: frozenset[str],
    ) -> None:
        """`tables` gives the group of each run; `computed` are the runs that were not stored
        before.
        """
        self.plans: Sequence[_core.Plan] = plans
        self.computed = computed
        self._called = plans.called if isinstance(plans, StoredPlans) else called(plans)
        self._tables: Mapping[str, Group] = {one.run: tables[one.run] for one in self._called}

    @cached_property
    def swept(self) -> list[str]:
        """The columns of `runs` that hold swept values, and the column of the variant's name."""
        return list(dict.fromkeys(name for one in self._values for name in one))

    @cached_property
    def _values(self) -> list[dict[str, str]]:
        """For each run, its swept values and its variant by column name."""
        return [_swept(one.swept) for one in self._called]

    @cached_property
    def runs(self) -> pl.DataFrame:
        """A row for each run. Swept values are in columns named by their path or parameter, as
        text; the variant's name is in `variant`.

        If all values of a column are quantities of one kind, a second column has them as numbers in
        one unit. Its name ends with the unit: `_mbit_s` for rates, `_ms` for times, `_bytes`,
        `_packets`, `_bdp`, `_share` for percentages, `_number` for plain numbers, `_boolean` for
        true and false. The value `"10 ms"` of `delay` is 10.0 in `delay_ms`.
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
        """A row for each flow and interval, if the experiment sets `every`."""
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
        """Returns further files of a run, by name: captured packets, the output of programs."""
        self._tables = located(self._tables)
        return self._tables[run].files(run)

    def folder(self, run: str) -> Path | None:
        """Returns the folder with further files of a run; `None` if there are none on disk."""
        self._tables = located(self._tables)
        group = self._tables[run]
        folder = group.folder / run if isinstance(group, OnDisk) else None
        return folder if folder is not None and folder.is_dir() else None

    @property
    def folders(self) -> list[Path]:
        """The folders in which the results are stored: as a rule one, the `out` given to `run`."""
        self._tables = located(self._tables)
        groups = self._tables.values()
        return list(dict.fromkeys(one.folder.parent for one in groups if isinstance(one, OnDisk)))

    @property
    def links(self) -> pl.DataFrame:
        """The state of each direction of each link over time."""
        return self.scan("links").collect()

    @property
    def digests(self) -> dict[str, str]:
        """A hash of all tables of each run, by its id. Equal results have equal hashes."""
        return {run: tables.ran[run].digest for run, tables in self._tables.items()}

    def scan(self, table: str, run: str | None = None) -> pl.LazyFrame:
        """Returns a table of all runs, or of one, as a lazy frame: only the selection is read."""
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
        """Returns a table with the swept values, the seed and the repetition of the run in each
        row.
        """
        return self._joined_flows if table == "flows" else self._joined(table)

    @cached_property
    def _joined_flows(self) -> pl.DataFrame:
        return self._joined("flows")

    def _joined(self, table: str) -> pl.DataFrame:
        about = self.runs.select("run", "seed", "repetition", *self.swept)
        return about.lazy().join(self.scan(table), on="run", maintain_order="left_right").collect()

    def query(self, sql: str) -> pl.DataFrame:
        """Returns the rows that an SQL query selects, in the dialect of DuckDB: `select cc,
        avg(goodput_mbit_s) from flows group by cc`.

        Every table is available by its name, and so is `plans`; `runs` has the columns of
        `Results.runs`. A query cannot read other files of the machine, and changes nothing.

        Raises:
            ConfigError: The text is not a query, or refers to something that does not exist.
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
        """Returns the measures of each flow of each variant, averaged over repetitions.

        Each mean has the limits of its confidence interval beside it, `..._low` and `..._high`:
        those of `lab.statistics.interval`, which hold for skewed and bimodal data too. They are
        null with fewer than 10 repetitions. `..._ci` is half the width of Student's interval, which
        holds for normally distributed repetitions, from 2 on.

        A row about several flows has the mean of each measure over them, but the sum of
        `retransmitted_segments` and the least `rtt_min_ms`. Further columns of such rows:

        - `goodput_all_mbit_s`: the bytes of all flows over the time in which any of them ran.
        - `jain_index`: Jain's index of the goodput of all flows that share a bottleneck, whatever
          their class and congestion control; with several bottlenecks, the least. A flow that never
          connected counts as 0.
        - `completion_p50_s`, `completion_p95_s`, `completion_p99_s`: the time within which this
          share of the flows completed (nearest rank). Flows that did not complete count as longest:
          the value is null where the rank falls on one of them.

        The transfers of a flow (sessions, arrivals, requests) take its place in such rows, each
        under its own class. A row about a single flow has the numbers of the table of flows
        instead: `transfers`, `completion_mean_s`, `completion_p50_s` and so on.

        UDP flows have the measures of the table of flows, such as `delay_p99_ms` and `jitter_ms`,
        and `lost_share`, the share of the sent datagrams that were lost. A row about several flows
        has the mean of their delay percentiles, not the percentile of all their datagrams.

        With a measuring window, rows describe that part of the runs, as the table of flows does: a
        flow that ran at another time has no goodput and no part in `jain_index`, and only transfers
        that began in the window count.

        `unfinished` is the number of flows that have a size, or broke, and did not complete. Where
        it is not 0, the mean `completion_s` is null: it would be too short.

        Args:
            by: "flow" for a row per flow, "class" for one per class and congestion control, "cc"
                for one per congestion control. UDP has no congestion control and gets a row of its
                own.
            statistic: "mean", or "median" over the repetitions, with limits from 5 repetitions on.
            level: The confidence level of the intervals.
            metrics: Further columns: names of `metrics`. A row about several flows has their mean.
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
        """Compares variants with a baseline, in pairs of runs with equal seeds.

        The table has a row for each metric of each flow (or class, or congestion control) of each
        variant except the baseline. A variant is compared with the baseline run in which all other
        swept keys are the same:

        - `baseline`, `mean`: the means over the pairs; `pairs`: the number of pairs.
        - `difference`, `difference_low`, `difference_high`: the mean difference of the pairs and
          its interval (`lab.statistics.difference`).
        - `relative`, `relative_low`, `relative_high`: the same as shares of the baseline's mean.
          They leave out the spread of the baseline itself, which `lab.statistics.ratio` includes.
        - `harm`: how much worse the mean is than the baseline's, as a share of the better one (Ware
          et al. 2019). With a baseline variant in which the flow is alone, this is the harm done by
          the other flows. Negative if the flow does better; null for a metric where neither more
          nor less is better.
        - `effect`: the difference in standard deviations of the differences (Hedges' g).
        - `p`: the probability of so great a difference if there is none, corrected for the number
          of rows (Holm). `p_same`: the probability of two means so close if they differ by the
          margin.
        - `more_runs`: the estimated number of further pairs that would show with 80 % probability
          whether there is a difference of the margin.
        - `verdict`: `higher`, `lower`, `same` (within the margin), `equal` (nothing is random) or
          `unknown`.
        - `said`: the verdict in words.
        - `assumes`: `normal` if Student's interval is the only one that fewer than 10 pairs allow.

        Args:
            baseline: The swept keys that identify the baseline, with its values: `{"flows[0].cc":
                "cubic"}`. The value alone is enough if only one column of `runs` has it.
            metrics: Columns of the summary, or names of `metrics`; by default the columns of the
                screen.
            by: What a row is about, as in `summary`.
            margin: Differences below this share of the baseline do not matter.
            level: The confidence level of the intervals.

        Raises:
            ValueError: No run belongs to such a baseline, or no other run has a partner in it.
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
        """Returns further measures of each flow of each run, with the swept values beside them:
        [definitions](metrics.md).

        Args:
            names: The metrics; by default all. A metric is null if the experiment does not record
                what it needs.

        Raises:
            ValueError: No metric has this name.
        """
        chosen = names or tuple(METRICS)
        columns = ["run", "seed", "repetition", *self.swept, "flow", "class", "transport", "cc"]
        return self._measured_flows(chosen).select(*columns, *chosen)

    def completions(self, *edges: int) -> pl.DataFrame:
        """Returns completion times by size: a row for each run and size class that has transfers.

        Transfers are those of flows that consist of them, and flows with a size. With a measuring
        window, only transfers that began in it count. `slowdown` is the completion time divided by
        that on an empty path: half of the flow's least RTT, plus the bytes at the rate of its
        bottleneck. Percentiles are by nearest rank; transfers that did not complete count as
        longest.

        Args:
            edges: The sizes in bytes at which a class begins: `completions(10_000, 1_000_000)` has
                three classes. The size of a transfer that did not complete is the bytes that
                arrived.
        """
        flows = with_times(self._measured_flows())
        about = ["seed", "repetition", *self.swept]
        return completions(flows, self.scan("transfers"), edges, about)

    def stalls(self, *, rate_mbit_s: float, start_s: float = 2.0) -> pl.DataFrame:
        """Returns how a media player fed by each flow of each run would have stalled: `startup_s`,
        the time from the start of the flow until it plays, the number of `stalls`, and `stalled_s`,
        their total time.

        The player starts when `start_s` of content is buffered and plays at the rate of the
        content. When its buffer is empty, it waits until the same amount is buffered again. The
        bytes of each interval (`every`) are taken to arrive evenly over it; without intervals the
        columns are null.

        Args:
            rate_mbit_s: The rate of the content.
            start_s: The seconds of content that are buffered before playing.
        """
        flows = self._measured_flows()
        columns = ["run", "seed", "repetition", *self.swept, "flow", "class"]
        found = stalls(flows, self.scan("intervals"), rate_mbit_s=rate_mbit_s, start_s=start_s)
        return flows.select(columns).join(found, on=["run", "flow"], maintain_order="left")

    def _per_run(self, by: str, metrics: Sequence[str] = ()) -> PerRun:
        """The measures of each run. `metrics` may also name columns of the summary."""
        further = [name for name in metrics if name in METRICS]
        return per_run(
            self._measured_flows(further),
            self.scan("transfers"),
            variant=self.swept,
            by=by,
            metrics=further,
        )

    def _measured_flows(self, metrics: Sequence[str] = ()) -> pl.DataFrame:
        """The flows with swept and measured columns beside them, and further metrics."""
        about = self.runs.select("run", "simulated_s", *MEASURED).unique("run")
        flows = self.joined("flows").join(about, on="run", maintain_order="left")
        if not metrics:
            return flows
        # Two variants may share a run; each of its flows is measured once.
        each = with_times(flows).unique(["run", "flow"], maintain_order=True)
        links = self.scan("links").join(about.lazy(), on="run", maintain_order="left")
        tables = Tables(each.lazy(), self.scan("intervals"), links)
        found = measured(tables, metrics)
        return flows.join(found, on=["run", "flow"], maintain_order="left")

    def __len__(self) -> int:
        """The number of runs."""
        return len(self._called)

    def __getitem__(self, key: int | slice | str) -> Results:
        """The selected runs as results of their own: by position, by slice, or by id."""
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
        """Iterates over the runs, each as results of its own, in the order of the experiment."""
        return (self[place] for place in range(len(self)))

    def __contains__(self, run: object) -> bool:
        """Whether a run with this id is included."""
        return any(one.run == run for one in self._called)

    def __repr__(self) -> str:
        """The number of runs, the experiment, and the swept keys."""
        number = len(self)
        names = list(dict.fromkeys(one.experiment for one in self._called))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        about = [f"{names[0]!r}{more}" if names[0] else "", f"{number} run{'s'[: number != 1]}"]
        if self.swept:
            about.append(f"swept: {', '.join(self.swept)}")
        about.append(f"computed now: {len(self.computed)}")
        return f"Results({'; '.join(filter(None, about))})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """The table and the chart that notebooks show. Neither needs a network."""
        from tcplab._results.notebook import of_results  # noqa: PLC0415 (charts take a while to load)

        return {"text/plain": repr(self), "text/html": of_results(self)}


def together(results: Mapping[str, Results]) -> Results:
    """Combines the runs of several results. The origin of a run counts as a swept value, `results`:
    the name given to its results here.
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
    """The names of all columns that tables have, and of columns derived from them."""
    return frozenset({column for _, column, _ in _core.columns()} | COLUMNS | {*_core.backends()})


def _swept(swept: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The swept values and the variant of a run, by column name."""
    named = ((f"sweep.{name}" if name in _declared() else name, text) for name, text in swept)
    return dict(named)


def _named(
    rows: pl.LazyFrame,
    runs: Sequence[Called],
    swept: Sequence[Mapping[str, str]],
    names: Sequence[str],
) -> pl.DataFrame:
    """The rows of runs with the names that this experiment gives them.

    Runs may have been computed for another experiment: an id identifies a result, not a name.
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
