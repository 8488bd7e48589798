"""tcplab: a laboratory for transport performance.

    import tcplab as lab

    results = lab.run("first.toml")
    results.flows

`Experiment` describes what to run; `run` runs it and gives `Results`; `plot` draws them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcplab import capture, cc, models, plot, statistics
    from tcplab._advice.advice import Advice
    from tcplab._advice.api import advise
    from tcplab._asked import stored
    from tcplab._compare import Comparison, compare
    from tcplab._core import (
        ConfigError,
        InternalError,
        Kernel,
        KernelError,
        RunError,
        __version__,
    )
    from tcplab._experiment import load
    from tcplab._kernels import DEFAULT_KERNEL, build_kernel, kernels, remove_kernel
    from tcplab._lists import algorithms, columns, explain, profile, profiles, schema
    from tcplab._report import report
    from tcplab._results import Results
    from tcplab._run import run
    from tcplab._verify import Finding, Verification, verify
    from tcplab._warnings import TcplabWarning
    from tcplab.experiment import (
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
        DropheadQueue,
        DroptailQueue,
        Dualpi2Queue,
        Dumbbell,
        EmpiricalSizes,
        EmpiricalSpread,
        Experiment,
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
        LognormalSizes,
        Loss,
        Measure,
        Memory,
        Network,
        NormalSpread,
        OnOffTraffic,
        OutageRule,
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
        UniformSpread,
        Until,
        WebTraffic,
        ZipfSizes,
    )

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
    "DropheadQueue",
    "DroptailQueue",
    "Dualpi2Queue",
    "Dumbbell",
    "EmpiricalSizes",
    "EmpiricalSpread",
    "Experiment",
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
    "LognormalSizes",
    "Loss",
    "Measure",
    "Memory",
    "Network",
    "NormalSpread",
    "OnOffTraffic",
    "OutageRule",
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
    "stored": "_asked",
    "Comparison": "_compare",
    "compare": "_compare",
    "ConfigError": "_core",
    "InternalError": "_core",
    "Kernel": "_core",
    "KernelError": "_core",
    "RunError": "_core",
    "__version__": "_core",
    "load": "_experiment",
    "DEFAULT_KERNEL": "_kernels",
    "build_kernel": "_kernels",
    "kernels": "_kernels",
    "remove_kernel": "_kernels",
    "algorithms": "_lists",
    "columns": "_lists",
    "explain": "_lists",
    "profile": "_lists",
    "profiles": "_lists",
    "schema": "_lists",
    "report": "_report",
    "Results": "_results",
    "run": "_run",
    "Finding": "_verify",
    "Verification": "_verify",
    "verify": "_verify",
    "TcplabWarning": "_warnings",
}
"""The module that each public name is in. Names that are not listed are in `experiment`."""


def __getattr__(name: str) -> Any:
    # A module loads when one of its names is first used. Most commands need few modules, and none
    # of those that draw charts.
    if name not in __all__:
        raise AttributeError(f"module 'tcplab' has no attribute {name!r}")
    if name in ("capture", "cc", "models", "plot", "statistics"):
        return importlib.import_module(f"tcplab.{name}")
    module = importlib.import_module(f"tcplab.{PLACES.get(name, 'experiment')}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
