"""An experiment is the same, however it is written."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import pickle
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from conftest import EXAMPLES

import tcplab as lab
from tcplab import _core
from tcplab import _schema as generated

SCRIPT = EXAMPLES.parent / "scripts" / "generate.py"
FILES = sorted(EXAMPLES.glob("*.toml"))


def ids(experiment: lab.Experiment) -> list[str]:
    return [plan.id for plan in experiment.plans()]


def test_all_generated_files_are_up_to_date() -> None:
    check = [sys.executable, str(SCRIPT), "--check"]
    assert subprocess.run(check, check=False).returncode == 0


def test_all_generated_classes_are_public() -> None:
    assert set(generated.__all__) <= set(lab.__all__)


def test_python_and_toml_give_the_same_ids() -> None:
    built = runpy.run_path(str(EXAMPLES / "first.py"))["experiment"]
    assert ids(built) == ids(lab.load(EXAMPLES / "first.toml"))
    assert built.to_dict() == lab.load(EXAMPLES / "first.toml").to_dict()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_toml_json_and_dicts_give_the_same_ids(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = lab.load(file)
    # Networks that experiments name are searched for beside their file, or in the current folder.
    for network in EXAMPLES.glob("*.graphml"):
        shutil.copy(network, tmp_path)
    monkeypatch.chdir(tmp_path)
    written = tmp_path / "experiment.json"
    written.write_text(json.dumps(loaded.to_dict()))
    assert ids(lab.load(written)) == ids(loaded)
    assert ids(lab.Experiment(**loaded.to_dict())) == ids(loaded)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_json_schema_accepts_every_example(file: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(lab.schema())
    jsonschema.validate(lab.load(file).to_dict(), lab.schema())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"{0.7 * 3} s", "2.1 s"),
        (f"{1e-5} s", "10 us"),
        (f"{100 / 3} ms", "33.333333333 ms"),
        ("2.1 s", "2.1 s"),
    ],
)
def test_quantities_made_of_floats_are_rounded(written: str, meant: str) -> None:
    def with_start(start: str) -> lab.Experiment:
        chain = lab.Chain(rate=f"{10 / 3} Mbit/s", delay="5 ms")
        flow = lab.Flow(from_="client", to="server", start=start)
        return lab.Experiment(duration="5 s", network=lab.Network(chain=chain), flows=[flow])

    # 10 / 3 Mbit/s are 3,333,333 bit/s.
    assert '"3.333333 Mbit/s"' in with_start("0 s").plans()[0].to_json()
    assert ids(with_start(written)) == ids(with_start(meant))


def test_unrounded_quantities_are_refused_as_too_fine() -> None:
    flow = lab.Flow(from_="client", to="server", start="0.0000001 us")
    chain = lab.Chain(rate="1 Mbit/s", delay="5 ms")
    experiment = lab.Experiment(duration="5 s", network=lab.Network(chain=chain), flows=[flow])
    with pytest.raises(lab.ConfigError, match="finer than a picosecond"):
        experiment.plans()


def test_kinds_are_classes_or_dicts_or_text() -> None:
    def with_queue(queue: lab.Queue) -> list[str]:
        shape = lab.Dumbbell(rate="10 Mbit/s", delay="5 ms", queue=queue)
        flow = lab.Flow(from_="left1", to="right1", traffic=lab.BulkTraffic(size="1 MB"))
        network = lab.Network(dumbbell=shape)
        return ids(lab.Experiment(duration="1 s", network=network, flows=[flow]))

    by_class = with_queue(lab.DroptailQueue(limit="20 packets"))
    assert by_class == with_queue({"kind": "droptail", "limit": "20 packets"})
    assert by_class == with_queue("20 packets")


def test_a_loaded_experiment_is_made_of_the_classes() -> None:
    loaded = lab.load(EXAMPLES / "first.toml")
    assert isinstance(loaded.network, lab.Network)
    assert isinstance(loaded.network.dumbbell, lab.Dumbbell)
    assert loaded.flows is not None
    assert loaded.flows[1] == lab.Flow(
        name="b", from_="left2", to="right2", cc="newreno", start="5 s"
    )


def test_a_changed_experiment_is_no_longer_the_file() -> None:
    loaded = lab.load(EXAMPLES / "first.toml")
    changed = loaded.replace(duration="61 s")
    assert ids(changed) != ids(loaded)
    assert ids(changed.replace(duration="60 s")) == ids(loaded)
    assert ids(pickle.loads(pickle.dumps(loaded))) == ids(loaded)


def test_parts_are_immutable_and_take_their_keys_alone() -> None:
    flow = lab.Flow(from_="a", to="b")
    assert flow.cc is None
    with pytest.raises(dataclasses.FrozenInstanceError, match="'cc': use `replace`"):
        flow.cc = "bbr"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del flow.cc
    assert flow.replace(cc="bbr").cc == "bbr"
    with pytest.raises(TypeError, match="Flow: there is no 'frm'; there are name, from_, to, "):
        lab.Flow(frm="a", to="b")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Flow: 'from_' is missing"):
        lab.Flow(to="b")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        lab.Flow("a", "b")  # type: ignore[call-arg, misc]
    copies = (pickle.loads(pickle.dumps(flow)), copy.copy(flow), copy.deepcopy(flow))
    assert {flow, *copies} == {flow}


def test_help_names_the_keys_of_a_part() -> None:
    parameters = inspect.signature(lab.Measure).parameters
    assert list(parameters) == ["from_", "to"]
    assert all(one.kind is one.KEYWORD_ONLY and one.default is None for one in parameters.values())
    assert inspect.signature(lab.Flow).parameters["to"].default is inspect.Parameter.empty


def test_repr_shows_the_given_fields() -> None:
    assert repr(lab.Flow(from_="a", to="b")) == "Flow(from_='a', to='b')"
    assert lab.Flow(from_="a", to="b", class_="large").to_dict() == {
        "from": "a",
        "to": "b",
        "class": "large",
    }


def test_numbers_of_other_libraries_are_numbers() -> None:
    class Seven:
        def __index__(self) -> int:
            return 7

    small = lab.Experiment(duration="1 s", seed=Seven(), sweep={"seed": range(2)})  # type: ignore[arg-type]
    assert small.to_dict() == {"duration": "1 s", "seed": 7, "sweep": {"seed": [0, 1]}}


def test_values_without_json_form_are_refused_by_place() -> None:
    flow = {"from": "a", "to": "b", "count": float("nan")}
    with pytest.raises(lab.ConfigError, match=r"^flows\[0\]\.count: nan is not a number"):
        lab.Experiment(duration="1 s", flows=[flow]).plans()
    with pytest.raises(lab.ConfigError, match=r"^network: <object .* is not text, a number"):
        lab.Experiment(duration="1 s", network=object()).plans()  # type: ignore[arg-type]


def test_mistakes_in_python_have_their_place() -> None:
    network = lab.Network(chain=lab.Chain(rate="10 Mbit", delay="5 ms"))
    flows = [lab.Flow(from_="client", to="mars", cc="qubic")]
    with pytest.raises(lab.ConfigError) as caught:
        lab.Experiment(duration="1 s", network=network, flows=flows).plans()
    places = [line.split(":")[0] for line in str(caught.value).split("\n")]
    assert places == ["network.chain.rate", "flows[0].to", "flows[0].cc"]


def test_a_duration_may_be_swept_only(tmp_path: Path) -> None:
    file = tmp_path / "swept.toml"
    file.write_text(
        'sweep.duration = ["1 s", "2 s"]\n'
        'network.chain = { rate = "1 Mbit/s", delay = "5 ms" }\n'
        'flows = [{ from = "client", to = "server" }]\n'
    )
    assert [plan.duration_s for plan in lab.load(file).plans()] == [1.0, 2.0]


def test_a_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []

    class Counting:
        @staticmethod
        def from_toml(text: str, file: str | None = None) -> _core.Document:
            parsed.append(file)
            return from_toml(text, file)

    from_toml = _core.Document.from_toml
    monkeypatch.setattr(_core, "Document", Counting)
    file = EXAMPLES / "first.toml"
    lab.run(lab.load(file).changed({"duration": "6 s"}), out=tmp_path)
    assert parsed == [str(file)]
