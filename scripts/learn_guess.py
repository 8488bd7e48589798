"""Trains and measures the guess of `tcplab capture cc`.

    pip install scikit-learn                        # for `learn` and `leave-out` only
    python scripts/learn_guess.py learn             # writes python/tcplab/_capture/guess.npz
    python scripts/learn_guess.py measure           # other paths and seeds, on sim
    python scripts/learn_guess.py measure --on linux --runs 3
    python scripts/learn_guess.py measure --others  # algorithms that Linux does not have
    python scripts/learn_guess.py leave-out         # each algorithm unknown in turn

Runs are drawn by name and number, so that all of them can be repeated. Their features are cached in
target/guess. Floating-point sums may differ between machines, and the trees with them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tcplab as lab
from tcplab._capture import guess
from tcplab._capture.features import features
from tcplab._capture.rounds import Rounds, rounds

ROOT = Path(__file__).parent.parent

KERNEL = {
    "bbr": "bbr",
    "bic": "bic",
    "cdg": "cdg",
    "cubic": "cubic",
    "dctcp": "dctcp",
    "highspeed": "highspeed",
    "htcp": "htcp",
    "hybla": "hybla",
    "illinois": "illinois",
    "lp": "reno or lp",
    "newreno": "reno or lp",
    "nv": "nv",
    "scalable": "scalable",
    "vegas": "vegas",
    "veno": "veno",
    "westwood+": "westwood",
    "yeah": "yeah",
}
"""The algorithms of Linux, by their names in `sim`, and the answer for each. Linux's LP behaves as
Reno in seven of eight connections, so that they share an answer.
"""

OTHERS = ("bbr3", "compound", "copa", "ledbat", "prague", "westwood")
"""Algorithms that Linux does not have."""

FIRST = {"learn": 0, "test": 1000, "linux": 2000, "other": 3000}
"""The number of the first run for each purpose."""

FOLDS = 5
TREES = 100


def experiment(purpose: str, algorithm: str, number: int) -> dict[str, Any]:
    """A bulk transfer over a random path."""
    drawn = random.Random(f"{purpose} {algorithm} {number}")

    def between(low: float, high: float) -> float:
        return low * float((high / low) ** drawn.random())

    rate, rtt, queue = between(2, 200), between(5, 200), between(0.3, 4)
    loss = between(1e-4, 1e-2) if drawn.random() < 0.5 else 0
    duration = drawn.uniform(10, 60)
    ecn = algorithm == "dctcp" or drawn.random() < 0.15
    bdp = rate * rtt * 1e3 / 8 / 1514
    # A queue needs room for at least a few packets.
    limit = f"{max(queue, 12 / bdp):.3f} BDP"
    link: dict[str, Any] = {
        "between": ["router", "receiver"],
        "rate": f"{rate:.3f} Mbit/s",
        "delay": f"{rtt * 500:.0f} us",
        "queue": limit,
    }
    if ecn and drawn.random() < 0.5:
        mark = f"{max(5, int(bdp * min(queue, 1) * drawn.uniform(0.1, 0.5)))} packets"
        red = {"weight": 1.0, "probability": 1.0, "gentle": False, "ecn": True}
        link["queue"] = {"kind": "red", "limit": limit, "min": mark, "max": mark} | red
    if loss:
        link["forward"] = {"loss": {"kind": "independent", "probability": round(loss, 6)}}
    near = {"between": ["sender", "router"], "rate": "10 Gbit/s", "delay": "10 us"}
    stack = {"profile": "linux-6.12", "ecn": ecn, "rmem": "100 MB", "wmem": "100 MB"}
    flow = {"from": "sender", "to": "receiver", "cc": algorithm, "traffic": {"kind": "bulk"}}
    return {
        "duration": f"{duration:.1f} s",
        "seed": number,
        "stack": stack,
        "record": {"captures": ["sender>router", "router>sender"]},
        "network": {"links": [near, link]},
        "flows": [flow],
    }


@dataclass(frozen=True)
class Run:
    """The observations of a run."""

    algorithm: str
    refused: str | None
    seen: Rounds | None


def seen(job: tuple[str, str, int], cache: Path) -> Run:
    """The observations of a run, from the cache or from running it."""
    purpose, algorithm, number = job
    kept = cache / purpose / f"{algorithm}-{number}.pickle"
    if kept.exists():
        with kept.open("rb") as file:
            found: Run = pickle.load(file)
        return found
    kept.parent.mkdir(parents=True, exist_ok=True)
    backend = "linux" if purpose == "linux" else "sim"
    with tempfile.TemporaryDirectory(prefix="tcplab-guess-") as folder:
        with warnings.catch_warnings():
            # ECN is requested on purpose although no queue marks.
            warnings.simplefilter("ignore", lab.TcplabWarning)
            asked = experiment(purpose, algorithm, number)
            lab.run(asked, out=folder, workers=1, progress=False, backend=backend)
        (path,) = Path(folder).glob("**/capture.pcapng")
        flow = lab.capture.flows(path).row(0, named=True)
        found = Run(algorithm, guess.refusal(flow), rounds(lab.capture.packets(path, 0), flow))
    with kept.open("wb") as file:
        pickle.dump(found, file)
    return found


def runs(purpose: str, algorithms: Sequence[str], count: int, cache: Path) -> Iterator[Run]:
    """Runs of each algorithm."""
    first = FIRST[purpose]
    jobs = [(purpose, name, first + place) for place in range(count) for name in algorithms]
    # Threads of a forked process may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(mp_context=context) as pool:
        for done, run in enumerate(pool.map(partial(seen, cache=cache), jobs, chunksize=4), 1):
            if done % 100 == 0:
                print(f"{done} of {len(jobs)} runs", flush=True)
            yield run


def usable(run: Run) -> bool:
    """Whether a run qualifies for a guess."""
    return (
        run.refused is None
        and run.seen is not None
        and len(run.seen.window) >= guess.LEAST_ROUNDS
        and float(np.median(run.seen.window)) >= guess.LEAST_WINDOW
    )


def table(
    purpose: str, algorithms: Sequence[str], count: int, cache: Path
) -> tuple[Any, list[str], list[str]]:
    """The features of the usable runs, the answers, and the names of the features."""
    rows: list[Any] = []
    answers: list[str] = []
    names: list[str] = []
    for run in runs(purpose, algorithms, count, cache):
        if run.seen is not None and usable(run):
            found = features(run.seen)
            names = names or list(found)
            rows.append(guess.vector(found, names))
            answers.append(KERNEL[run.algorithm])
    return np.array(rows), answers, names


def forest(rows: Any, answers: Sequence[str], names: list[str]) -> guess.Model:
    """A forest trained on these rows, without the weights of its certainty."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

    learner = RandomForestClassifier(
        TREES, max_features=0.25, min_samples_leaf=2, class_weight="balanced", random_state=1,
        n_jobs=2,
    )  # fmt: skip
    learner.fit(rows, answers)
    classes = [str(one) for one in learner.classes_]
    roots: list[int] = []
    features_: list[Any] = []
    thresholds: list[Any] = []
    rights: list[Any] = []
    for tree in (one.tree_ for one in learner.estimators_):
        roots.append(len(features_))
        # Each left child follows its parent, so that only right children are stored.
        order, todo = [], [0]
        while todo:
            node = todo.pop()
            order.append(node)
            if tree.children_left[node] >= 0:
                todo += [tree.children_right[node], tree.children_left[node]]
        place = {node: number for number, node in enumerate(order)}
        for node in order:
            is_leaf = tree.children_left[node] < 0
            best = int(tree.value[node][0].argmax())
            features_.append(guess.LEAF if is_leaf else int(tree.feature[node]))
            thresholds.append(0.0 if is_leaf else tree.threshold[node])
            rights.append(best if is_leaf else place[tree.children_right[node]])
    of = {name: rows[np.array(answers) == name] for name in classes}
    limit = np.array(thresholds, dtype=np.float32)
    # A threshold rounded upwards would move rows to the other side.
    limit = np.where(limit > np.array(thresholds), np.nextafter(limit, np.float32(-np.inf)), limit)
    return guess.Model(
        names=names,
        classes=classes,
        roots=np.array(roots, dtype=np.uint32),
        feature=np.array(features_, dtype=np.uint8),
        threshold=limit.astype(np.float32),
        right=np.array(rights, dtype=np.uint16),
        low=np.array([np.quantile(of[one], 0.01, axis=0) for one in classes], dtype=np.float32),
        high=np.array([np.quantile(of[one], 0.99, axis=0) for one in classes], dtype=np.float32),
        weights=np.zeros(3),
    )


def judged(model: guess.Model, rows: Any) -> tuple[list[str], Any]:
    """The answers of a forest for rows, and the inputs of its certainty."""
    said, by = [], []
    for row in rows:
        votes = guess.shares(model, row)
        best, one = guess.measures(votes, row, model.low, model.high, model.names)
        said.append(model.classes[best])
        by.append(one)
    return said, np.array(by)


@dataclass(frozen=True)
class Calibration:
    """The data from which the weights of the certainty are learnt."""

    right: Any
    """Whether guesses were right, for runs that the forest had not seen."""
    known: Any
    """The certainty inputs of these guesses."""
    unknown: dict[str, Any]
    """For each answer, the certainty inputs of its runs, from a forest trained without them."""

    def weights(self, without: str = "") -> Any:
        """The weights. Right guesses weigh as much in total as the others, which are wrong or about
        algorithms that the forest was not trained on.
        """
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

        others = [by for name, by in self.unknown.items() if name != without]
        measured = np.concatenate([self.known, *others])
        is_right = np.concatenate([self.right, np.zeros(sum(map(len, others)), dtype=bool)])
        # Rows that are refused whatever the weights are teach nothing.
        is_open = np.isfinite(measured).all(axis=1)
        measured, is_right = measured[is_open], is_right[is_open]
        line = LogisticRegression(class_weight="balanced", max_iter=1000).fit(measured, is_right)
        return np.concatenate([line.intercept_, line.coef_[0]])


def calibration(rows: Any, answers: list[str], names: list[str]) -> Calibration:
    """Evaluates runs by forests trained without these runs, or without their algorithm."""
    from sklearn.model_selection import StratifiedKFold  # noqa: PLC0415

    labels = np.array(answers)
    known = np.zeros((len(rows), 2))
    right = np.zeros(len(rows), dtype=bool)
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=1).split(rows, labels):
        said, known[test] = judged(forest(rows[train], labels[train].tolist(), names), rows[test])
        right[test] = np.array(said) == labels[test]
    unknown = {}
    for name in sorted(set(answers)):
        out = labels == name
        model = forest(rows[~out], labels[~out].tolist(), names)
        unknown[name] = judged(model, rows[out])[1]
        print(f"without {name}", flush=True)
    return Calibration(right, known, unknown)


def learn(cache: Path, count: int) -> None:
    """Writes the model, and the data that `leave-out` needs."""
    rows, answers, names = table("learn", list(KERNEL), count, cache)
    judgement = calibration(rows, answers, names)
    model = forest(rows, answers, names)
    data = vars(model) | {
        "names": np.array(names),
        "classes": np.array(model.classes),
        "weights": judgement.weights(),
    }
    np.savez_compressed(guess.MODEL, **data)
    without = {}
    labels = np.array(answers)
    for name in model.classes:
        out = labels != name
        one = forest(rows[out], labels[out].tolist(), names)
        without[name] = (one, judgement.weights(without=name))
    with (cache / "without.pickle").open("wb") as file:
        pickle.dump(without, file)
    print(f"{len(rows)} runs, {len(model.feature)} nodes, {guess.MODEL.stat().st_size} bytes")
    print(f"weights {data['weights']}")


def answer(run: Run, model: guess.Model) -> str:
    """The answer for a run."""
    if run.seen is None or not usable(run):
        return guess.UNKNOWN
    name, certainty = guess.guess(features(run.seen), model)
    return name if certainty >= guess.LEAST_CERTAINTY else guess.UNKNOWN


def measure(purpose: str, count: int, cache: Path) -> None:
    """Prints the answers for runs that were not used in training."""
    algorithms = OTHERS if purpose == "other" else list(KERNEL)
    told = [
        (run.algorithm, answer(run, guess.model()))
        for run in runs(purpose, algorithms, count, cache)
    ]
    print("| algorithm | right | wrong | unknown | wrong guesses |")
    print("|---|---:|---:|---:|---|")
    sums: Counter[str] = Counter()
    for name in algorithms:
        said = Counter(one for algorithm, one in told if algorithm == name)
        right = said.pop(KERNEL.get(name, ""), 0)
        unknown = said.pop(guess.UNKNOWN, 0)
        sums.update(right=right, unknown=unknown, wrong=said.total())
        taken_for = ", ".join(f"{number} {one}" for one, number in sorted(said.items()))
        print(f"| {name} | {right} | {said.total()} | {unknown} | {taken_for} |")
    right, wrong, unknown = sums["right"], sums["wrong"], sums["unknown"]
    print(f"| all | {right} | {wrong} | {unknown} | |")
    answered = right + wrong
    print(f"answered {100 * answered / max(answered + unknown, 1):.1f} %")
    print(f"right of these {100 * right / max(answered, 1):.1f} %")


def leave_out(count: int, cache: Path) -> None:
    """Prints, for each algorithm, the answers of a model that was trained without it."""
    with (cache / "without.pickle").open("rb") as file:
        without: dict[str, tuple[guess.Model, Any]] = pickle.load(file)
    print("| left out | unknown | taken for |")
    print("|---|---:|---|")
    parts = []
    told: dict[str, Counter[str]] = {}
    for run in runs("test", list(KERNEL), count, cache):
        name = KERNEL[run.algorithm]
        model, weights = without[name]
        one = guess.Model(**(vars(model) | {"weights": weights}))
        told.setdefault(name, Counter())[answer(run, one)] += 1
    for name in sorted(told):
        said = told[name]
        number, unknown = said.total(), said.pop(guess.UNKNOWN, 0)
        parts.append(unknown / number)
        wrong = ", ".join(f"{times} {one}" for one, times in sorted(said.items()))
        print(f"| {name} | {unknown} of {number} | {wrong} |")
    print(f"unknown on average {100 * float(np.mean(parts)):.1f} %")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=["learn", "measure", "leave-out"])
    parser.add_argument("--on", choices=["sim", "linux"], default="sim")
    parser.add_argument("--others", action="store_true", help="algorithms Linux does not have")
    parser.add_argument("--runs", type=int, help="runs of each algorithm")
    parser.add_argument("--cache", type=Path, default=ROOT / "target/guess")
    args = parser.parse_args()
    if args.what == "learn":
        learn(args.cache, args.runs or 200)
    elif args.what == "leave-out":
        leave_out(args.runs or 30, args.cache)
    elif args.others:
        measure("other", args.runs or 15, args.cache)
    else:
        measure("linux" if args.on == "linux" else "test", args.runs or 30, args.cache)


if __name__ == "__main__":
    main()
