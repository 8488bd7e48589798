"""The experiment of `first.toml`, built in Python: the same runs, with the same ids."""

import tcplab as lab

experiment = lab.Experiment(
    name="two algorithms, one bottleneck",
    duration="60 s",
    network=lab.Network(
        dumbbell=lab.Dumbbell(
            pairs=2,
            rate="10 Mbit/s",
            delay="19 ms",
            queue="1 BDP",
            access=lab.LinkSettings(delay="0.5 ms"),
        )
    ),
    flows=[
        lab.Flow(name="a", from_="left1", to="right1", cc="cubic"),
        lab.Flow(name="b", from_="left2", to="right2", cc="newreno", start="5 s"),
    ],
)

if __name__ == "__main__":
    results = lab.run(experiment)
    print(results.flows.select("flow", "cc", "goodput_mbit_s", "rtt_mean_ms"))
    lab.plot.save(lab.plot.overview(results), "first.svg")
