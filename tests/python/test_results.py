"""Results are a sequence of runs, each of which is results of its own."""

from __future__ import annotations

from typing import Any

import pytest

import tcplab as lab


@pytest.fixture(scope="module")
def results() -> lab.Results:
    return lab.run(
        lab.Experiment(
            name="four",
            duration="1 s",
            repeat=2,
            network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms")),
            flows=[lab.Flow(from_="client", to="server", start_jitter="100 ms")],
            sweep={"network.chain.queue": ["10 packets", "20 packets"]},
        )
    )


def test_runs_are_counted_and_found_by_place(results: lab.Results) -> None:
    assert len(results) == 4
    ids = [plan.id for plan in results.plans]
    assert [one.runs["run"].to_list() for one in results] == [[run] for run in ids]
    assert results[-1].runs["run"].to_list() == ids[-1:]
    assert results[1:3].runs["run"].to_list() == ids[1:3]
    assert results[::-2].runs["run"].to_list() == ids[::-2]
    assert results[ids[2]].runs["run"].to_list() == [ids[2]]
    assert ids[2] in results
    assert "x" not in results


def test_a_part_has_the_tables_of_its_runs(results: lab.Results) -> None:
    one = results[2]
    run = results.plans[2].id
    assert one.plans[0].to_json() == results.plans[2].to_json()
    assert one.flows.equals(results.flows.filter(results.flows["run"] == run))
    assert one.samples.equals(results.samples.filter(results.samples["run"] == run))
    assert one.digests == {run: results.digests[run]}
    assert one.swept == results.swept
    half = results[:2]
    assert half.summary()["repetitions"].to_list() == [2]
    assert half[1].runs["seed"][0] == 2


def test_runs_that_are_not_there_are_refused(results: lab.Results) -> None:
    for place in (4, -5):
        with pytest.raises(IndexError, match=f"4 runs: there is no run {place}"):
            results[place]
    with pytest.raises(IndexError, match="4 runs: none of them is in this slice"):
        results[4:]
    with pytest.raises(KeyError, match="no run of these results has the id 'x'"):
        results["x"]
    wrong: Any = 1.5
    with pytest.raises(TypeError, match="by place, slice or id, not by float"):
        results[wrong]


def test_results_say_what_they_are(results: lab.Results) -> None:
    said = "Results('four'; 4 runs; swept: network.chain.queue; computed now: 4)"
    assert repr(results) == said
    assert repr(results[0]) == "Results('four'; 1 run; swept: network.chain.queue; computed now: 1)"


def test_comparisons_show_themselves() -> None:
    experiment = lab.Experiment(
        duration="1 s",
        network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms")),
        flows=[lab.Flow(from_="client", to="server")],
    )
    one = lab.run(experiment)
    shown = lab.Comparison({"sim": one, "again": one})._repr_mimebundle_()
    assert shown["text/plain"] == "Comparison(sim, again)"
    # The same run twice: no measure differs.
    assert "+0.00" in shown["text/html"]
    assert "data:image/svg+xml;base64," in shown["text/html"]
