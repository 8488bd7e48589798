"""How CUBIC and Prague share a link of DualPI2: a map of rates and round trips.

`python examples/l4s_map.py` runs all of it, `python examples/l4s_map.py 20 50` these rates in
Mbit/s alone. Of each cell it prints Jain's index of the two goodputs, the window of Prague in
segments, and how long 99 of 100 of its packets waited; all are of the last two thirds of the run.
The chart is in `l4s_map.svg`.
"""

import sys

import altair as alt
import polars as pl

import tcplab as lab

RATES_MBIT_S = [2, 5, 10, 20, 50, 100, 200]
RTTS_MS = [5, 10, 20, 40, 80]


def both(rate: float, rtt: float) -> lab.Experiment:
    """One flow of each, for a minute."""
    return lab.Experiment(
        duration="60 s",
        measure=lab.Measure(from_="20 s"),
        network=lab.Network(
            dumbbell=lab.Dumbbell(
                pairs=2,
                rate=f"{rate} Mbit/s",
                delay=f"{rtt / 2 - 1:g} ms",
                queue="dualpi2",
                access=lab.LinkSettings(rate="1 Gbit/s", delay="0.5 ms"),
            )
        ),
        flows=[
            lab.Flow(name="cubic", from_="left1", to="right1", cc="cubic"),
            lab.Flow(name="prague", from_="left2", to="right2", cc="prague"),
        ],
        record=lab.Record(links="off", samples="100 ms", packets=["left>right"]),
    )


def cell(rate: float, rtt: float) -> dict[str, float]:
    """What comes out of one run."""
    results = lab.run(both(rate, rtt))
    goodputs = results.flows["goodput_mbit_s"]
    samples = results.samples.filter(flow="prague").filter(pl.col("time_s") > 20)
    packets = results.packets.filter(flow="prague").sort("time_s")
    seen = packets.filter(pl.col("point").is_in(["enter", "leave"]))
    waits = seen.with_columns(wait=pl.col("time_s") - pl.col("time_s").shift().over("seq"))
    left = waits.filter(point="leave").filter(pl.col("time_s") > 20)
    return {
        "rate": rate,
        "rtt": rtt,
        "jain": goodputs.sum() ** 2 / (2 * (goodputs**2).sum()),
        "window": samples["prague_window"].mean(),
        "wait_ms": left["wait"].quantile(0.99) * 1e3,
    }


def main() -> None:
    """Prints the map and draws it."""
    rates = [float(rate) for rate in sys.argv[1:]] or RATES_MBIT_S
    cells = pl.DataFrame([cell(rate, rtt) for rate in rates for rtt in RTTS_MS])
    print("Mbit/s  RTT ms  Jain   window  wait ms")
    for one in cells.iter_rows(named=True):
        print("{rate:6g}  {rtt:6g}  {jain:.2f}  {window:7.1f}  {wait_ms:7.2f}".format(**one))
    axes = {
        "x": alt.X("rate:O", title="rate in Mbit/s"),
        "y": alt.Y("rtt:O", title="RTT in ms", sort="descending"),
    }
    parts = []
    for column, title, domain in [
        ("jain", "Jain's index of CUBIC and Prague", (0.5, 1)),
        ("wait_ms", "queue of Prague in ms (p99)", (0, 5)),
    ]:
        base = alt.Chart(cells, title=title, width=320, height=180).encode(**axes)
        colour = alt.Scale(scheme="viridis", domain=domain, clamp=True, reverse=column != "jain")
        squares = base.mark_rect().encode(alt.Color(f"{column}:Q", scale=colour, legend=None))
        numbers = base.mark_text().encode(text=alt.Text(f"{column}:Q", format=".2f"))
        parts.append(squares + numbers)
    chart = alt.hconcat(*parts).resolve_scale(color="independent")
    lab.plot.save(chart, "l4s_map.svg")


if __name__ == "__main__":
    main()
