"""Models of throughput: their numbers match papers and RFCs, and flows come near them."""

from __future__ import annotations

import math

import polars as pl
import pytest

import tcplab as lab
from tcplab import models

PACKETS = 1e5 / (1448 * 8)
"""Segments per round trip of 100 ms, for a rate in Mbit/s."""


@pytest.mark.parametrize(
    ("loss", "segments"), [(1e-3, 39), (1e-4, 187), (1e-5, 1054), (1e-6, 5926), (1e-7, 33325)]
)
def test_cubic_has_the_windows_of_its_rfc(loss: float, segments: int) -> None:
    """RFC 9438, table 1: round trips of 100 ms and C = 0.4, outside the Reno-friendly region. At
    1e-3 CUBIC is within it, with sqrt(1.5/p) = 38.7.
    """
    assert round(models.cubic(100, loss) * PACKETS) == segments


def test_mathis_has_its_constants() -> None:
    """Table 1 of the paper, periodic losses: C = 1.22 with an ACK for each segment, 0.87 for every
    second one.
    """
    constant = {every: models.mathis(100, 0.01, ack_every=every) * PACKETS / 10 for every in (1, 2)}
    assert constant[1] == pytest.approx(1.22, abs=0.005)
    assert constant[2] == pytest.approx(0.87, abs=0.005)


def test_timeouts_cost_what_the_equation_of_tfrc_says() -> None:
    """RFC 5348 section 3.1: X = s / (R sqrt(2bp/3) + t_RTO (3 sqrt(3bp/8) p (1 + 32 p^2))), for
    b = 1, p = 2 %, R = 100 ms and t_RTO = 400 ms.
    """
    repair = 100 * math.sqrt(0.04 / 3)
    waits = 400 * 3 * math.sqrt(0.0075) * 0.02 * (1 + 32 * 0.0004)
    assert (repair, waits) == (pytest.approx(11.547, abs=1e-3), pytest.approx(2.105, abs=1e-3))
    rate = models.pftk(100, 0.02, ack_every=1)
    assert rate == pytest.approx(1448 * 8 / (repair + waits) / 1e3)
    # With few losses there are no timeouts, as in Mathis. A small window limits the rate.
    assert models.pftk(100, 1e-6) == pytest.approx(models.mathis(100, 1e-6), rel=1e-3)
    assert models.pftk(100, 1e-6, most_segments=10) * PACKETS == pytest.approx(10)


def test_westwood_gains_by_the_share_of_queueing() -> None:
    """Equations 2 and 3: the ratio is sqrt(RTT / (2 Tq)), 1 if half of the RTT is queueing."""
    for queueing, ratio in ((50.0, 1.0), (12.5, 2.0)):
        westwood = models.westwood(100, 0.001, queueing_ms=queueing)
        assert westwood / models.reno(100, 0.001) == pytest.approx(ratio)


def test_bbr_bears_losses_below_a_fifth() -> None:
    assert models.bbr_ceiling(100, 0.15) == pytest.approx(85)
    assert models.bbr_ceiling(100, 0.2) == 0
    assert models.bbr_ceiling(100, 0.5) == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: models.mathis(0, 0.01), "rtt_ms: 0 is not above 0"),
        (lambda: models.pftk(10, 0), r"loss: 0 is not in \(0, 1\)"),
        (lambda: models.cubic(math.nan, 0.1), "rtt_ms"),
        (lambda: models.westwood(10, 0.1, queueing_ms=11), "queueing_ms: 11 is not in"),
        (lambda: models.bbr_ceiling(-1, 0.1), "rate_mbit_s: -1 is not above 0"),
    ],
)
def test_unknown_models_are_refused(call: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()  # type: ignore[operator]


@pytest.fixture(scope="module")
def lossy() -> lab.Results:
    return lab.run(
        {
            "duration": "70 s",
            "measure": {"from": "10 s"},
            "repeat": 6,
            "network": {"chain": {"rate": "400 Mbit/s", "delay": "20 ms", "loss": "0.3 %"}},
            "flows": [{"from": "client", "to": "server", "cc": "newreno"}],
            "record": {"samples": "off", "links": "off"},
            "stack": {"profile": "rfc"},
            "sweep": {"flows[0].stack.abc": [1, "off"]},
        }
    )


def test_newreno_comes_near_its_models(lossy: lab.Results) -> None:
    """The effects that models leave out are small at this loss: random distances between losses,
    recovery that takes a round trip, windows in whole segments.
    """
    for abc, ack_every in (("1", 1), ("off", 2)):
        rows = models.beside(lossy, ack_every=ack_every)
        rows = rows.filter(pl.col("flows[0].stack.abc") == abc)
        means = rows.select(pl.col("goodput_mbit_s", "pftk", "loss").mean()).row(0, named=True)
        assert means["goodput_mbit_s"] == pytest.approx(means["pftk"], rel=0.15), abc
        # Two losses within a round trip cause one reduction.
        assert means["loss"] == pytest.approx(0.003, rel=0.15), abc


def test_the_chart_has_each_flow_beside_each_model(lossy: lab.Results) -> None:
    spec = lab.plot.models(lossy, "mathis", "cubic").to_dict()
    rows = spec["datasets"][spec["layer"][1]["data"]["name"]]
    found = models.beside(lossy)
    assert len(rows) == 2 * len(found) == 24
    assert {row["model"] for row in rows} == {"mathis", "cubic"}
    drawn = sorted(row["predicted"] for row in rows if row["model"] == "mathis")
    assert drawn == sorted(found["mathis"])
    with pytest.raises(ValueError, match="tahoe: no model has this name"):
        lab.plot.models(lossy, "tahoe")


def test_flows_without_losses_have_no_model() -> None:
    results = lab.run(
        {
            "duration": "1 s",
            "network": {"chain": {"rate": "10 Mbit/s", "delay": "5 ms"}},
            "flows": [
                {"from": "client", "to": "server", "traffic": {"kind": "bulk", "size": "9 kB"}}
            ],
        }
    )
    assert models.beside(results).is_empty()
    with pytest.raises(ValueError, match="no flow lost anything"):
        lab.plot.models(results)


def test_a_swept_parameter_may_be_called_as_a_model_is() -> None:
    experiment = lab.Experiment(
        duration="3 s",
        let={"loss": "1 %"},
        network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="10 ms", loss="$loss")),
        flows=[lab.Flow(from_="client", to="server")],
        sweep={"loss": ["1 %", "2 %"]},
    )
    rows = models.beside(lab.run(experiment, progress=False))
    assert rows["sweep.loss"].to_list() == ["1 %", "2 %"]
    assert rows["loss"].dtype == pl.Float64
