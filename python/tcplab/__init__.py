"""tcplab: a laboratory for transport performance.

    import tcplab as lab

    results = lab.run("first.toml")
    results.flows

`Experiment` describes what to run; `run` runs it and gives `Results`; `plot` draws them.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

# The threads of polars' streaming engine, its default, add numbers in any order: the same results
# would differ in their last digits from call to call.
os.environ.setdefault("POLARS_ENGINE_AFFINITY", "in-memory")

if TYPE_CHECKING:
    from tcplab import capture, cc, models, plot, statistics
    from tcplab._advice.advice import Advice
    from tcplab._advice.api import advise
    from tcplab._catalogue import algorithms, columns, explain, profile, profiles, schema
    from tcplab._core import (
        ConfigError,
        InternalError,
        Kernel,
        KernelError,
        RunError,
        __version__,
    )
    from tcplab._experiment.reading import load
    from tcplab._report import report
    from tcplab._results.compare import Comparison, compare
    from tcplab._results.results import Results
    from tcplab._run.kernels import DEFAULT_KERNEL, build_kernel, kernels, remove_kernel
    from tcplab._run.run import run
    from tcplab._run.verify import Finding, Verification, verify
    from tcplab._schema import (
        Advise,
        Antiparallel,
        Arp,
        ArrivalsTraffic,
        BulkTraffic,
        CakeQueue,
        Chain,
        CodelQueue,
        CommandTraffic,
        Contention,
        Cpu,
        DelayRule,
        Distribution,
        DropheadQueue,
        DroptailQueue,
        Dualpi2Queue,
        Dumbbell,
        EmpiricalDistribution,
        EmpiricalSizes,
        EmpiricalSpread,
        Experiment,
        ExponentialDistribution,
        ExponentialSpread,
        FatTree,
        FixedSizes,
        Flow,
        FqCodelQueue,
        FqPieQueue,
        FqQueue,
        GilbertLoss,
        GilbertTimeLoss,
        Graph,
        HandoverDelayRule,
        Host,
        IndependentLoss,
        Keepalive,
        Lan,
        Light,
        Link,
        LinkSettings,
        ListedLoss,
        LognormalDistribution,
        LognormalSizes,
        Loss,
        Measure,
        Memory,
        Network,
        NormalDistribution,
        NormalSpread,
        OnOffTraffic,
        OutageRule,
        ParetoDistribution,
        ParetoSizes,
        ParetoSpread,
        ParkingLot,
        PeriodicOutageRule,
        PieQueue,
        PolicerQueue,
        Queue,
        RandomOutageRule,
        RandomWalkRateRule,
        RateRule,
        Record,
        RedQueue,
        Reordering,
        RequestsTraffic,
        Route,
        SessionClass,
        SfqQueue,
        SineRateRule,
        Sizes,
        Spread,
        Stack,
        Star,
        TbfQueue,
        Trace,
        Traffic,
        Train,
        UdpTraffic,
        UniformDistribution,
        UniformSpread,
        Until,
        WebTraffic,
        ZipfSizes,
    )
    from tcplab._store.manifest import stored
    from tcplab._warnings import TcplabWarning

__all__ = [
    "DEFAULT_KERNEL",
    "Advice",
    "Advise",
    "Antiparallel",
    "Arp",
    "ArrivalsTraffic",
    "BulkTraffic",
    "CakeQueue",
    "Chain",
    "CodelQueue",
    "CommandTraffic",
    "Comparison",
    "ConfigError",
    "Contention",
    "Cpu",
    "DelayRule",
    "Distribution",
    "DropheadQueue",
    "DroptailQueue",
    "Dualpi2Queue",
    "Dumbbell",
    "EmpiricalDistribution",
    "EmpiricalSizes",
    "EmpiricalSpread",
    "Experiment",
    "ExponentialDistribution",
    "ExponentialSpread",
    "FatTree",
    "Finding",
    "FixedSizes",
    "Flow",
    "FqCodelQueue",
    "FqPieQueue",
    "FqQueue",
    "GilbertLoss",
    "GilbertTimeLoss",
    "Graph",
    "HandoverDelayRule",
    "Host",
    "IndependentLoss",
    "InternalError",
    "Keepalive",
    "Kernel",
    "KernelError",
    "Lan",
    "Light",
    "Link",
    "LinkSettings",
    "ListedLoss",
    "LognormalDistribution",
    "LognormalSizes",
    "Loss",
    "Measure",
    "Memory",
    "Network",
    "NormalDistribution",
    "NormalSpread",
    "OnOffTraffic",
    "OutageRule",
    "ParetoDistribution",
    "ParetoSizes",
    "ParetoSpread",
    "ParkingLot",
    "PeriodicOutageRule",
    "PieQueue",
    "PolicerQueue",
    "Queue",
    "RandomOutageRule",
    "RandomWalkRateRule",
    "RateRule",
    "Record",
    "RedQueue",
    "Reordering",
    "RequestsTraffic",
    "Results",
    "Route",
    "RunError",
    "SessionClass",
    "SfqQueue",
    "SineRateRule",
    "Sizes",
    "Spread",
    "Stack",
    "Star",
    "TbfQueue",
    "TcplabWarning",
    "Trace",
    "Traffic",
    "Train",
    "UdpTraffic",
    "UniformDistribution",
    "UniformSpread",
    "Until",
    "Verification",
    "WebTraffic",
    "ZipfSizes",
    "__version__",
    "advise",
    "algorithms",
    "build_kernel",
    "capture",
    "cc",
    "columns",
    "compare",
    "explain",
    "kernels",
    "load",
    "models",
    "plot",
    "profile",
    "profiles",
    "remove_kernel",
    "report",
    "run",
    "schema",
    "statistics",
    "stored",
    "verify",
]

PLACES = {
    "Advice": "_advice.advice",
    "advise": "_advice.api",
    "stored": "_store.manifest",
    "Comparison": "_results.compare",
    "compare": "_results.compare",
    "ConfigError": "_core",
    "InternalError": "_core",
    "Kernel": "_core",
    "KernelError": "_core",
    "RunError": "_core",
    "__version__": "_core",
    "load": "_experiment.reading",
    "DEFAULT_KERNEL": "_run.kernels",
    "build_kernel": "_run.kernels",
    "kernels": "_run.kernels",
    "remove_kernel": "_run.kernels",
    "algorithms": "_catalogue",
    "columns": "_catalogue",
    "explain": "_catalogue",
    "profile": "_catalogue",
    "profiles": "_catalogue",
    "schema": "_catalogue",
    "report": "_report",
    "Results": "_results.results",
    "run": "_run.run",
    "Finding": "_run.verify",
    "Verification": "_run.verify",
    "verify": "_run.verify",
    "TcplabWarning": "_warnings",
}
"""The module that each public name is in. Names that are not listed are in `_schema`."""


def __getattr__(name: str) -> Any:
    # A module loads when one of its names is first used. Most commands need few modules, and none
    # of those that draw charts.
    if name not in __all__:
        raise AttributeError(f"module 'tcplab' has no attribute {name!r}")
    if name in ("capture", "cc", "models", "plot", "statistics"):
        return importlib.import_module(f"tcplab.{name}")
    module = importlib.import_module(f"tcplab.{PLACES.get(name, '_schema')}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
