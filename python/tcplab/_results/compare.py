"""Compares one experiment on several backends, number by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import polars as pl

from tcplab._results.flow_summary import MEASURED
from tcplab._results.results import Results
from tcplab._run.backends import has_kernels
from tcplab._run.run import run
from tcplab._schema import Experiment
from tcplab._store.remote import below

if TYPE_CHECKING:
    from distributed import Client

MEASURES = (
    "goodput_mbit_s",
    "completion_s",
    "cwnd_mean_segments",
    "rtt_mean_ms",
    "retransmitted_segments",
    "loss_episodes",
    "timeouts",
    "completion_mean_s",
    "completion_p50_s",
    "completion_p95_s",
    "completion_p99_s",
    "lost_packets",
    "reordered_packets",
    "delay_mean_ms",
    "delay_p99_ms",
    "ipdv_ms",
)
"""The measures compared for each flow. The mean window is taken over the samples."""


class Comparison:
    """The results of one experiment on several backends. The last one is the reference."""

    def __init__(self, results: Mapping[str, Results]) -> None:
        """`results` are the results on each backend, by its name."""
        self.results = dict(results)

    @property
    def backends(self) -> list[str]:
        """The backends, in the order in which they were given."""
        return list(self.results)

    @property
    def swept(self) -> list[str]:
        """The columns of swept values."""
        return next(iter(self.results.values())).swept

    def differences(self) -> pl.DataFrame:
        """Returns a row for each measure of each flow of each run, in the order of the experiment.

        Each backend has a column with its number. Each but the last also has a column with its
        difference from the last, such as `sim-linux`, as a share of the number of the last. The
        difference is null where that number is zero.
        """
        key = [*self.swept, "repetition", "flow", "measure"]
        reference = self.backends[-1]
        joined = self._numbers(reference)
        for backend in reversed(self.backends[:-1]):
            joined = self._numbers(backend).join(
                joined,
                on=key,
                how="full",
                coalesce=True,
                nulls_equal=True,
                maintain_order="left_right",
            )
        shares = []
        for backend in self.backends[:-1]:
            share = (pl.col(backend) - pl.col(reference)) / pl.col(reference)
            shares.append(share.alias(f"{backend}-{reference}"))
        return joined.with_columns(shares)

    def _numbers(self, backend: str) -> pl.DataFrame:
        """A row for each measure of each flow. The column of numbers is named after the backend."""
        results = self.results[backend]
        measured = results.runs.select("run", *MEASURED).unique("run")
        windows = (
            results.scan("samples")
            .join(measured.lazy(), on="run", maintain_order="left")
            .filter(pl.col("time_s").is_between("measured_from_s", "measured_to_s"))
            .group_by("run", "flow", maintain_order=True)
            .agg(pl.col("cwnd_segments").mean().alias("cwnd_mean_segments"))
        )
        flows = (
            results.joined("flows")
            .lazy()
            .join(windows, on=["run", "flow"], how="left", maintain_order="left")
            .collect()
            .with_row_index("row number")
        )
        index = [*self.swept, "repetition", "flow"]
        measured = flows.select(
            "row number", *index, *(pl.col(one).cast(pl.Float64) for one in MEASURES)
        )
        # The rows of one measure, for all flows, precede those of the next.
        rows = measured.unpivot(
            index=["row number", *index], on=MEASURES, variable_name="measure", value_name=backend
        )
        return rows.sort("row number", maintain_order=True).drop("row number")

    def __repr__(self) -> str:
        """The names of the backends."""
        return f"Comparison({', '.join(self.backends)})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """The table and the chart that notebooks show. Neither needs a network."""
        from tcplab._results.notebook import of_comparison  # noqa: PLC0415 (charts take a while to load)

        return {"text/plain": repr(self), "text/html": of_comparison(self)}


def compare(
    experiment: Experiment | Mapping[str, Any] | str | PathLike[str],
    *,
    backends: Sequence[str] = ("sim", "linux"),
    out: str | PathLike[str] | None = None,
    workers: int | None = None,
    memory: str | None = None,
    kernel: str | None = None,
    progress: bool | None = None,
    client: Client | None = None,
) -> Comparison:
    """Runs an experiment on several backends and compares the results.

    Args:
        experiment: The experiment, also as a plain dict, or the path of its file.
        backends: Two or more backends. The last one is the reference.
        out: A folder for the tables, with a subfolder for each backend; see `run`.
        workers: The number of concurrent runs.
        memory: The memory that all concurrent runs may use together; see `run`.
        kernel: The kernel that the backend `linux` uses.
        progress: Whether progress is shown.
        client: A client of a Dask cluster that runs the experiment; see `run`.

    Raises:
        ConfigError: One of the backends cannot run the experiment.
        KernelError: A kernel is needed and cannot be built.
        RunError: A kernel, or a program in it, failed.
        InternalError: A run broke a law that every run must keep: a bug in tcplab.
        OSError: The folder cannot be written.
    """
    if len(set(backends)) < max(len(backends), 2):
        raise ValueError(f"backends: {', '.join(backends)}: two different ones are needed")
    results = {
        backend: run(
            experiment,
            out=None if out is None else below(out, backend),
            workers=workers,
            memory=memory,
            backend=backend,
            kernel=kernel if has_kernels(backend) else None,
            progress=progress,
            client=client,
        )
        for backend in backends
    }
    return Comparison(results)
