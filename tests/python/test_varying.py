"""Parameters, zipped keys and variants, in results and on both backends; shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import Command

import tcplab as lab

RATES = ("1 Mbit/s", "2 Mbit/s")


def small(rate: str, cc: str, **more: Any) -> lab.Experiment:
    """Two flows of 20 kB over one link."""
    return lab.Experiment(
        duration="3 s",
        network={"chain": {"rate": rate, "delay": "5 ms"}},
        flows=[
            {"from": "client", "to": "server", "cc": cc, "count": 2, "traffic": traffic}
            for traffic in [{"kind": "bulk", "size": "20 kB"}]
        ],
        **more,
    )


def test_parameters_may_have_the_names_of_columns() -> None:
    # `rate` and `cc` are also names of columns in summaries.
    named = small(
        "$rate",
        "$cc",
        let={"rate": "1 Gbit/s", "cc": "cubic"},
        sweep={"rate": RATES, "cc": ["cubic", "newreno"]},
    )
    paths = {"network.chain.rate": RATES, "flows[0].cc": ["cubic", "newreno"]}
    by_name, by_path = lab.run(named), lab.run(small(RATES[0], "cubic", sweep=paths))
    assert by_name.swept == ["rate", "sweep.cc"]
    assert [plan.id for plan in by_name.plans] == [plan.id for plan in by_path.plans]
    for by in ("flow", "class", "cc"):
        columns = dict(zip(by_path.swept, by_name.swept, strict=True))
        assert by_path.summary(by=by).rename(columns).equals(by_name.summary(by=by))


def test_a_variant_has_a_name_in_tables_and_on_the_screen(tcplab: Command, tmp_path: Path) -> None:
    experiment = small(
        "$rate",
        "cubic",
        let={"rate": "1 Mbit/s"},
        variants={"slow": {}, "fast": {"rate": "9 Mbit/s", "stack": {"sack": False}}},
        zip=[{"seed": [1, 2], "network.chain.queue": ["9 packets", "99 packets"]}],
    )
    results = lab.run(experiment)
    assert results.swept == ["variant", "sweep.seed", "network.chain.queue"]
    runs = results.runs.select(results.swept).rows()
    queues = [("1", "9 packets"), ("2", "99 packets")]
    assert runs == [(name, *queue) for name in ("slow", "fast") for queue in queues]
    assert results.joined("flows")["variant"].to_list() == ["slow"] * 4 + ["fast"] * 4
    assert "variant = slow" in lab.plot.overview(results).to_json()
    (tmp_path / "x.json").write_text(json.dumps(experiment.to_dict()))
    done = tcplab("run", "x.json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "variant"


def test_json_schema_allows_parameters_as_values() -> None:
    experiment: dict[str, Any] = {
        "duration": "$long",
        "network": {"dumbbell": {"pairs": "$n", "rate": "1 Mbit/s", "delay": "$rtt"}},
        "flows": ["$flow", {"from": "left1", "to": "right1", "stack": "$stack"}],
        "let": {"n": 1},
        "variants": {"a": {"n": 2}},
        "zip": [{"n": [1, 2]}],
    }
    jsonschema.validate(experiment, lab.schema())
    for key, wrong in [("duration", "60"), ("seed", "one"), ("sweep", "$x"), ("flows", ["x"])]:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(experiment | {key: wrong}, lab.schema())


def test_python_takes_parameters_where_it_takes_values() -> None:
    dumbbell = lab.Dumbbell(pairs="$n", rate="1 Mbit/s", delay="1 ms", access="$access")
    experiment = lab.Experiment(
        duration="1 s",
        network=lab.Network(dumbbell=dumbbell),
        flows=[lab.Flow(from_="left*", to="right*")],
        let={"n": 3, "access": lab.LinkSettings(delay="2 ms")},
    )
    [plan] = experiment.plans()
    direct = dumbbell.replace(pairs=3, access=lab.LinkSettings(delay="2 ms"))
    meant = experiment.replace(network=lab.Network(dumbbell=direct), let=None)
    assert [plan.id] == [plan.id for plan in meant.plans()]


SHAPES: dict[str, tuple[dict[str, Any], str, str]] = {
    "star": (
        {"star": {"rtts": ["3 ms", "10 ms", "41 ms"], "rate": "10 Mbit/s"}},
        "host*",
        "hub",
    ),
    "fat_tree": (
        {"fat_tree": {"k": 4, "rate": "10 Mbit/s", "delay": "1 ms"}},
        "host1*",
        "host2",
    ),
    "dumbbell": (
        {
            "dumbbell": {
                "rtts": {"kind": "uniform", "least": "30 ms", "most": "90 ms"},
                "pairs": 3,
                "rate": "10 Mbit/s",
                "delay": "10 ms",
            }
        },
        "left*",
        "right*",
    ),
}


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_the_same_on_both_backends(shape: str) -> None:
    network, from_, to = SHAPES[shape]
    flow = lab.Flow(from_=from_, to=to, traffic=lab.BulkTraffic(size="30 kB"), stagger="700 ms")
    experiment = lab.Experiment(
        duration="6 s", network=network, flows=[flow], stack=lab.Stack(profile="linux-6.12")
    )
    columns = ["flow", "bytes", "rtt_min_ms", "completion_s"]
    ours = lab.run(experiment).flows.select(columns)
    assert ours["completion_s"].null_count() == 0
    assert ours.equals(lab.run(experiment, backend="linux").flows.select(columns))
