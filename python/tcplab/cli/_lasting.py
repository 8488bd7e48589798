"""How long a run must be whose path and transfers are described by flags."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tcplab._core import ConfigError
from tcplab._experiment.quantities import number_of

USUAL_S, SHORT_S = 10, 1

ENDLESS_S = 1000
"""The longest run of flows that never end."""

LONGEST_S = 5000
"""That of transfers, after which nothing is left to simulate."""

MAX_SLOWDOWN = 3
"""Transfers may take so many times as long as the link, or Mathis' formula, would have it."""

ROUND_TRIPS = 50
"""The fewest in a run: slow start alone takes ten."""

MANY_BITS = 2e10
"""So many bits, 1.7 million packets, in a run of thousands are too many for a search."""

MANY_ROUND_TRIPS = 2000

MSS = 1448

MATHIS = math.sqrt(1.5)
"""The constant of Mathis et al. (1997): a flow that loses a share p of its segments has at most
1.22 / sqrt(p) of them per round trip.
"""


def duration(
    flags: Mapping[str, Iterable[Any]], *, has_other: bool, is_searched: bool = False
) -> str:
    """A duration with enough round trips, in which transfers of a known size end, over the worst of
    the paths. `has_other` says that another flow lasts as long as the run, `is_searched` that there
    are thousands of runs: fast and short paths then have shorter ones.
    """
    size = max((_bytes(one) for one in flags.get("traffic", ())), default=0.0)
    rate = min(_numbers(flags.get("rate", ()), "mbit_s"), default=10.0)
    rtt_s = max(_numbers(flags.get("rtt", ()), "ms"), default=40.0) / 1000
    loss = max(_numbers(flags.get("loss", ()), "share"), default=0.0)
    flows = max(_numbers(flags.get("flows", ()), "number"), default=1.0)
    least_s = 8 * flows * size / (1e6 * rate) if rate > 0 else 0.0
    if loss > 0:
        least_s = max(least_s, size * rtt_s * math.sqrt(loss) / (MSS * MATHIS))
    needed_s = MAX_SLOWDOWN * least_s + ROUND_TRIPS * rtt_s
    fastest = max(_numbers(flags.get("rate", ()), "mbit_s"), default=10.0)
    is_long = 1e6 * fastest * USUAL_S > MANY_BITS
    if is_searched and not size and is_long and MANY_ROUND_TRIPS * rtt_s <= SHORT_S:
        return f"{SHORT_S} s"
    most_s = LONGEST_S if size and not has_other else ENDLESS_S
    steps = [digit * USUAL_S * 10**power for power in range(3) for digit in (1, 2, 5)]
    return f"{next((one for one in steps if needed_s <= one < most_s), most_s)} s"


def _bytes(traffic: Any) -> float:
    """The bytes of a transfer or a page; none of traffic without an end."""
    if not isinstance(traffic, Mapping):
        return 0.0
    if traffic.get("kind") == "web":
        classes = traffic.get("classes") or []
        return sum(float(one.get("count", 1)) * _size(one.get("size")) for one in classes)
    return _size(traffic.get("size"))


def _size(given: Any) -> float:
    return max(_numbers([given], "bytes"), default=0.0)


def _numbers(given: Iterable[Any], kind: str) -> list[float]:
    """Quantities of a kind, among them the ends of ranges and of distributions; a share may be a
    plain number. Other text is left out, since its reader reports it.
    """
    kinds = (kind, "number") if kind == "share" else (kind,)
    ends = [one for value in given for one in _ends(value)]
    found = [number_of(one, it) for one in ends for it in kinds]
    return [one for one in found if one is not None]


def _ends(value: Any) -> list[Any]:
    """The least and the most of a range, or of nearly all values of a distribution."""
    if not isinstance(value, Mapping):
        return [value]
    if value.keys() == {"from", "to"}:
        return [value["from"], value["to"]]
    if isinstance(value.get("values"), list):
        return list(value["values"])
    if "kind" not in value:
        return []
    from tcplab._advice.distributions import Distribution  # noqa: PLC0415 (few need it)

    try:
        drawn = Distribution("", value)
        return [drawn.at(share) for share in (0.01, 0.99)]
    except (ConfigError, KeyError):
        return []
