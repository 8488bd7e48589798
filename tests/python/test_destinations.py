"""Advice by destination: each gets its best settings, with as few different settings as possible
without a loss.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tcplab._advice import destinations
from tcplab._advice.evidence import Gain
from tcplab.cli._main import main


def gained(candidate: str, gain: float) -> Gain:
    """A certain gain."""
    return Gain(
        candidate, "goodput", "sim", gain, gain, gain, gain, 12, "runs", 12, 1.0, 1 + gain, gain, ""
    )


def test_destinations_share_a_setting_if_none_loses_by_it() -> None:
    # With the setting of the first, the second loses half a percent, the third ten; the fourth
    # should keep its present setting.
    matrix = [
        [gained("a", 1.0), gained("b", 0.5), gained("c", 0.5), None],
        [gained("a", 0.99), gained("b", 1.0), gained("c", 0.2), None],
        [gained("a", 0.8), gained("b", 0.8), gained("c", 1.0), None],
        [gained("a", 0.0), gained("b", 0.0), gained("c", 0.0), None],
    ]
    costs = [(1, 0), (1, 0), (1, 0), (0, 0)]
    assert destinations.grouped(matrix, [0, 1, 2, 3], costs) == [0, 0, 2, 3]
    # The second does not get a setting that costs more than its own.
    costs = [(2, 0), (1, 0), (1, 0), (0, 0)]
    assert destinations.grouped(matrix, [0, 1, 2, 3], costs) == [0, 1, 2, 3]


PATHS = """
[[destinations]]
name = "office"
prefix = "192.0.2.0/24"
rate = "10 Mbit/s"
rtt = "20 ms"

[[destinations]]
name = "branch"
prefix = "198.51.100.0/24"
rate = "10 Mbit/s"
rtt = "60 ms"
loss = "2 %"
"""


def test_each_destination_gets_its_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "paths.toml").write_text(PATHS)
    out = tmp_path / "out"
    words = ["--on", "sim", "--quiet", "--budget", "10min", "--out", str(out)]
    assert main(["advise", "--destinations", str(tmp_path / "paths.toml"), *words]) == 0
    office, branch = capsys.readouterr().out.splitlines()[2:]
    # CUBIC fills a lossless link with a buffer of one BDP.
    assert " today " in office
    assert "198.51.100.0/24" in branch
    assert "198.51.100.0/24" in (out / "apply" / "routes" / "apply.sh").read_text()
    assert "192.0.2.0" not in (out / "apply" / "routes" / "apply.sh").read_text()
    assert (out / "2-branch" / "advice.html").exists()
    assert main(["verify", str(out / "1-office")]) == 0
    capsys.readouterr()
    # The folder of all: its table again, and the evidence of all, which a changed number is not.
    assert main(["show", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [office, branch]
    assert main(["verify", str(out)]) == 0
    stored = (out / "destinations.json").read_text()
    (out / "destinations.json").write_text(stored.replace('"setting": "today"', '"setting": "bbr"'))
    assert main(["verify", str(out)]) == 1
    assert "destinations.json is not what the results say" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no [[destinations]]"),
        ("x = 1", "x: expected [[destinations]] alone"),
        ("[[destinations]]\nrate = '1M'", "destinations[0].prefix: is missing"),
        ("[[destinations]]\nprefix = '10.0.0.1/24'\nrate = '1M'\nrtt = '3ms'", "host bits set"),
        (
            "[[destinations]]\nprefix = '10.0.0.0/24'\nrate = '1M'\nrtt = '3'",
            "destinations[0].rtt: 3 has no unit",
        ),
        (PATHS + "queue = '1 bit'", "paths.toml: line 14: destinations[1].queue: `bit` is not a"),
        (PATHS.replace("office", "branch"), "branch is there twice"),
        (PATHS + "colour = 1", "destinations[1].colour: expected one of"),
        (PATHS + "connections = 0", "destinations[1].connections: expected a whole number"),
        (
            PATHS + "goal = 'page-time'",
            "destinations[1].goal: page-time: needs flows of the kind web",
        ),
    ],
)
def test_invalid_destination_lists_are_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "paths.toml", tmp_path / "out"
    file.write_text(text)
    assert main(["advise", "--destinations", str(file), "--out", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()
