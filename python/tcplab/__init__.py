"""tcplab: a laboratory for transport performance.

    import tcplab as lab

    results = lab.run("first.toml")
    results.flows

`Experiment` describes what to run; `run` runs it and gives `Results`; `plot` draws them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tcplab import cc
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
from tcplab._results import Results
from tcplab._run import run
from tcplab._verify import Finding, Verification, verify
from tcplab._warnings import TcplabWarning
from tcplab.experiment import (
    Antiparallel,
    Arp,
    ArrivalsTraffic,
    BulkTraffic,
    CakeQueue,
    Chain,
    CodelQueue,
    CommandTraffic,
    Contention,
    DelayRule,
    DropheadQueue,
    DroptailQueue,
    Dumbbell,
    EmpiricalSizes,
    EmpiricalSpread,
    Experiment,
    ExponentialSpread,
    FixedSizes,
    Flow,
    FqCodelQueue,
    FqPieQueue,
    FqQueue,
    GilbertLoss,
    GilbertTimeLoss,
    HandoverDelayRule,
    Host,
    IndependentLoss,
    Keepalive,
    Lan,
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
    TbfQueue,
    Trace,
    Traffic,
    UdpTraffic,
    UniformSpread,
    WebTraffic,
    ZipfSizes,
)

if TYPE_CHECKING:
    from tcplab import plot

__all__ = [
    "DEFAULT_KERNEL",
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
    "DelayRule",
    "DropheadQueue",
    "DroptailQueue",
    "Dumbbell",
    "EmpiricalSizes",
    "EmpiricalSpread",
    "Experiment",
    "ExponentialSpread",
    "Finding",
    "FixedSizes",
    "Flow",
    "FqCodelQueue",
    "FqPieQueue",
    "FqQueue",
    "GilbertLoss",
    "GilbertTimeLoss",
    "HandoverDelayRule",
    "Host",
    "IndependentLoss",
    "InternalError",
    "Keepalive",
    "Kernel",
    "KernelError",
    "Lan",
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
    "TbfQueue",
    "TcplabWarning",
    "Trace",
    "Traffic",
    "UdpTraffic",
    "UniformSpread",
    "Verification",
    "WebTraffic",
    "ZipfSizes",
    "__version__",
    "algorithms",
    "build_kernel",
    "cc",
    "columns",
    "compare",
    "explain",
    "kernels",
    "load",
    "plot",
    "profile",
    "profiles",
    "remove_kernel",
    "run",
    "schema",
    "verify",
]


def __getattr__(name: str) -> Any:
    # Charts take longer to load than all the rest, and most commands draw none.
    if name == "plot":
        return importlib.import_module("tcplab.plot")
    raise AttributeError(f"module 'tcplab' has no attribute {name!r}")
