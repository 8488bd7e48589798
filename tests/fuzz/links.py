"""Random experiments over links that lose, delay, reorder and change.

Each kind has one link feature, in the direction of the data, of the ACKs, or of both.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fuzz.draw import Bottleneck, Plain, log_uniform, long_flows, rounded


def share(random: Random, least: float = 0.0005, most: float = 0.03) -> float:
    """A small probability."""
    return rounded(log_uniform(random, least, most))


def millis(value: float) -> str:
    """A time in milliseconds, with nanosecond resolution."""
    return f"{max(value, 0.001):.6f} ms"


def mbit(value: float) -> str:
    """A rate in whole bits per second."""
    return f"{max(round(value * 1e6), 1000)} bit/s"


def seconds(value: float) -> str:
    """A time in seconds, with microsecond resolution."""
    return f"{max(value, 1e-6):.6f} s"


def packet_ms(path: Bottleneck) -> float:
    """The transmission time of a full packet."""
    return 12 / path.rate_mbit_s


def independent(random: Random, _path: Bottleneck) -> Plain:
    """Independent losses of data, of ACKs, or of both."""
    on = random.choice(("data", "acks", "both"))
    return {"loss": {"kind": "independent", "probability": share(random), "on": on}}


def gilbert(random: Random, _path: Bottleneck) -> Plain:
    """Bursts of losses counted in packets."""
    loss: Plain = {"kind": "gilbert", "to_bad": share(random), "to_good": share(random, 0.1, 1)}
    if random.random() < 0.5:
        loss |= {"loss_good": share(random, 1e-4, 1e-3), "loss_bad": share(random, 0.1, 1)}
    if random.random() < 0.3:
        loss["on"] = random.choice(("data", "acks"))
    return {"loss": loss}


def gilbert_time(random: Random, path: Bottleneck) -> Plain:
    """Bursts of losses that last for a time, from a tenth of a packet's transmission time."""
    bad = log_uniform(random, packet_ms(path) / 10, max(path.rtt_ms, packet_ms(path)))
    loss: Plain = {
        "kind": "gilbert-time",
        "good": millis(bad * log_uniform(random, 10, 1000)),
        "bad": millis(bad),
        "holding": random.choice(("fixed", "exponential")),
        "reading": random.choice(("time", "packets")),
        "loss_bad": random.choice((1.0, share(random, 0.1, 1))),
    }
    if random.random() < 0.3:
        loss["change"] = share(random, 0.1, 1)
    return {"loss": loss}


def reordering(random: Random, path: Bottleneck) -> Plain:
    """Some packets are held back."""
    held = log_uniform(random, packet_ms(path) / 3, max(path.rtt_ms, packet_ms(path)))
    return {"reordering": {"probability": share(random, 0.001, 0.1), "delay": millis(held)}}


def corruption(random: Random, _path: Bottleneck) -> Plain:
    """Some packets are corrupted."""
    return {"corruption": share(random)}


def duplication(random: Random, _path: Bottleneck) -> Plain:
    """Some packets are duplicated."""
    return {"duplication": share(random, 0.0005, 0.1)}


def spread(random: Random, mean_ms: float) -> Plain:
    """A distribution with about this mean."""
    kind = random.choice(("uniform", "normal", "pareto", "exponential", "empirical"))
    if kind == "uniform":
        least = random.choice((0, mean_ms / 2))
        return {"kind": kind, "least": millis(least), "most": millis(2 * mean_ms - least)}
    if kind == "normal":
        deviation = mean_ms * random.uniform(0.05, 0.6)
        return {"kind": kind, "mean": millis(mean_ms), "deviation": millis(deviation)}
    if kind == "pareto":
        shape = rounded(random.uniform(1.5, 4))
        return {"kind": kind, "shape": shape, "least": millis(mean_ms * (shape - 1) / shape)}
    if kind == "exponential":
        return {"kind": kind, "mean": millis(mean_ms)}
    times = [millis(mean_ms * random.uniform(0, 2)) for _ in range(random.randint(1, 30))]
    return {"kind": kind, "times": times}


def jitter(random: Random, path: Bottleneck) -> Plain:
    """Random delays that preserve order."""
    mean = log_uniform(random, packet_ms(path) / 10, max(path.rtt_ms, packet_ms(path)) / 2)
    return {"jitter": spread(random, mean)}


def disorder(random: Random, path: Bottleneck) -> Plain:
    """Random delays in which packets overtake others."""
    mean = log_uniform(random, packet_ms(path) / 10, max(path.rtt_ms, packet_ms(path)) / 2)
    plain = millis(2 * mean)
    return {"jitter": random.choice((plain, spread(random, mean))), "overtaking": True}


def times(random: Random, path: Bottleneck, most: int = 8) -> list[float]:
    """A few times within an experiment, in order."""
    number = random.randint(1, most)
    return sorted({round(random.uniform(0, path.duration_s), 6) for _ in range(number)})


def rate_steps(random: Random, path: Bottleneck) -> Plain:
    """Rate changes at a few times."""
    rates = (mbit(path.rate_mbit_s * log_uniform(random, 0.1, 4)) for _ in range(99))
    return {"rate_changes": [[seconds(at), next(rates)] for at in times(random, path)]}


def sine(random: Random, path: Bottleneck) -> Plain:
    """A sinusoidal rate."""
    period = log_uniform(random, path.rtt_ms, 1e3 * path.duration_s)
    return {
        "rate_changes": {
            "kind": "sine",
            "amplitude": mbit(path.rate_mbit_s * random.uniform(0.1, 0.95)),
            "period": millis(period),
            "every": millis(period / random.randint(8, 100)),
        }
    }


def random_walk(random: Random, path: Bottleneck) -> Plain:
    """A rate that follows a random walk."""
    rate = path.rate_mbit_s
    least, most = rate * random.uniform(0.1, 0.9), rate * random.uniform(1.1, 3)
    return {
        "rate_changes": {
            "kind": "random-walk",
            "step": mbit((most - least) * random.uniform(0.01, 0.5)),
            "every": millis(log_uniform(random, 10, 2000)),
            "least": mbit(least),
            "most": mbit(most),
        }
    }


def trace(random: Random, path: Bottleneck) -> Plain:
    """A trace of delivery opportunities, some milliseconds with several."""
    opportunities: list[list[int]] = []
    at, length = 0, round(log_uniform(random, 1, 3000))
    per_ms = path.rate_mbit_s / 12
    while not opportunities or at < length:
        at += max(1, round(random.expovariate(min(1.0, per_ms))))
        opportunities.append([at, max(1, round(random.expovariate(1 / max(per_ms, 1))))])
    return {"rate_changes": {"opportunities": opportunities}}


def light(random: Random, path: Bottleneck) -> Plain:
    """A trace, with a separate one for light load."""
    at, trains = 0, []
    for _ in range(random.randint(2, 9)):
        opportunities = [0]
        for _ in range(round(log_uniform(random, 1, 60))):
            opportunities.append(opportunities[-1] + round(random.expovariate(1)))
        delay = f"{path.rtt_ms / 2 * random.uniform(0.2, 2):.3f} ms"  # whole microseconds
        trains.append({"at": f"{at} ms", "delay": delay, "opportunities": opportunities})
        at += random.randint(1, 3000)
    after = millis(random.choice((0, log_uniform(random, 0.1, 100))))
    return trace(random, path) | {"light": {"trains": trains, "after": after}}


def outages(random: Random, path: Bottleneck) -> Plain:
    """Outages, sometimes over a trace."""
    lasts = log_uniform(random, 5, 1500)
    kind = random.choice(("listed", "periodic", "random"))
    settings: Plain = {}
    if kind == "listed":
        starts = [at for at in times(random, path, 3) if at < path.duration_s - 2]
        apart = [at for place, at in enumerate(starts) if place == 0 or at > starts[place - 1] + 2]
        settings["outages"] = [[seconds(at), millis(lasts)] for at in apart]
    elif kind == "periodic":
        every = millis(lasts * random.uniform(3, 30))
        settings["outages"] = {"kind": kind, "every": every, "lasts": millis(lasts)}
    else:
        up = millis(lasts * random.uniform(3, 30))
        settings["outages"] = {"kind": kind, "up": up, "down": millis(lasts)}
    if random.random() < 0.3:
        settings |= random.choice((trace, rate_steps, sine))(random, path)
    return settings


def delay_changes(random: Random, path: Bottleneck) -> Plain:
    """Delay changes at a few times, with or without overtaking."""
    settings: Plain = {"overtaking": True} if random.random() < 0.4 else {}
    half = path.rtt_ms / 2
    if random.random() < 0.5:
        steps = [[seconds(at), millis(half * random.uniform(0.1, 2))] for at in times(random, path)]
        return settings | {"delay_changes": steps}
    every = millis(log_uniform(random, 20, 500 * path.duration_s))
    least, most = half * random.uniform(0.1, 0.9), half * random.uniform(1, 2)
    handover = {"kind": "handover", "every": every, "least": millis(least), "most": millis(most)}
    return settings | {"delay_changes": handover}


def contention(random: Random, path: Bottleneck) -> Plain:
    """A shared channel that is won for a few packets at a time."""
    aggregate = random.choice((1, 2, 4, 16, 64))
    mean = packet_ms(path) * log_uniform(random, 0.05, 2)
    return {"contention": {"access": spread(random, mean), "aggregate": aggregate}}


def several(random: Random, path: Bottleneck) -> Plain:
    """Two or three of these features."""
    settings: Plain = {}
    for kind in random.sample(sorted(DOES), random.randint(2, 3)):
        settings |= DOES[kind](random, path)
    if "contention" in settings:
        settings.pop("outages", None)
        if "opportunities" in settings.get("rate_changes", {}):
            del settings["rate_changes"]
    return settings


DOES: dict[str, Callable[[Random, Bottleneck], Plain]] = {
    "loss on a kind": independent,
    "gilbert": gilbert,
    "gilbert by time": gilbert_time,
    "reordering": reordering,
    "corruption": corruption,
    "duplication": duplication,
    "jitter spread": jitter,
    "jitter disorder": disorder,
    "rate steps": rate_steps,
    "sine": sine,
    "random walk": random_walk,
    "trace": trace,
    "outages": outages,
    "delay changes": delay_changes,
    "contention": contention,
}
"""Link features."""


def over(does: Callable[[Random, Bottleneck], Plain]) -> Callable[[Random], Plain]:
    """One or two flows over a link with a feature, in one or both directions.

    The flows are between pairs of hosts behind routers, or between the two ends of the link.
    """

    def make(random: Random) -> Plain:
        path = Bottleneck.draw(random)
        number = random.randint(1, 2)
        flows = long_flows(random, path, number)
        bottleneck: Plain = {"between": ["west", "east"], **path.settings()}
        way = random.choice(("forward", "forward", "back", "both"))
        found = does(random, path)
        bottleneck |= found if way == "both" else {way: found}
        if random.random() < 0.15:
            bottleneck["queue"] = {"kind": "codel"}
        links = [bottleneck]
        if random.random() < 0.3:
            for flow in flows:
                flow["from"], flow["to"] = "west", "east"
            bottleneck["delay"] = f"{path.rtt_ms / 2:.6g} ms"
        else:
            access = {"rate": "1 Gbit/s", "delay": "1 ms", "queue": "1000 packets"}
            for flow in flows:
                ends = ([flow["from"], "west"], ["east", flow["to"]])
                links += [{"between": between, **access} for between in ends]
        return path.experiment({"links": links}, flows) | {"seed": random.randint(0, 10**6)}

    return make


LINKS = {kind: over(does) for kind, does in (DOES | {"several": several, "light": light}).items()}
"""Kinds of links. Each kind numbers its experiments separately."""
