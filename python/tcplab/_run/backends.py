"""The Python side of the backends. The backends themselves are registered in Rust."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcplab import _core
from tcplab._run.kernels import build_missing
from tcplab._schema import Experiment


@dataclass(frozen=True)
class Backend:
    """The properties of a backend that Python must know."""

    prepare: Callable[[Sequence[_core.Plan], bool | None], bool] | None = None
    """Builds whatever the plans need and is missing. Returns whether anything was built."""
    has_kernels: bool = False
    """Whether experiments on this backend can choose a kernel."""


PARTICULAR = {"linux": Backend(prepare=build_missing, has_kernels=True)}

BACKENDS = {name: PARTICULAR.get(name, Backend()) for name in _core.backends()}
"""All backends by name, those with the fewest requirements first."""


def has_kernels(name: str) -> bool:
    """Whether this is the name of a backend on which a kernel can be chosen."""
    return name in BACKENDS and BACKENDS[name].has_kernels


def other_version(plan: _core.Plan) -> str | None:
    """The version of tcplab that a `sim` plan is for, or `None` if that is the running version."""
    version = plan.version.split("+")[0]
    is_other = plan.backend == "sim" and version != _core.__version__
    return version if is_other else None


def prepared(
    experiment: Experiment, name: str, kernel: str | None, progress: bool | None
) -> list[_core.Plan]:
    """The plans of an experiment, once everything they need has been built."""
    plans = experiment.plans(name, kernel=kernel)
    prepare = BACKENDS[name].prepare
    if prepare is not None and prepare(plans, progress):
        plans = experiment.plans(name, kernel=kernel)
    return plans


def first_plan(experiment: Experiment) -> _core.Plan:
    """The first run of an experiment, on the first backend that can run it."""
    refusals: list[_core.ConfigError | _core.KernelError] = []
    for name in BACKENDS:
        try:
            return experiment.plans(name)[0]
        except (_core.ConfigError, _core.KernelError) as error:
            refusals.append(error)
    raise refusals[0]
