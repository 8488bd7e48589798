"""Entries of the gallery: few lines, a finding that holds, and the same chart each time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts"))

import gallery

PAGE = """# A page

## Two flows share a link

One sentence.

```toml title="two.toml"
duration = "1 s"
network.chain = {{ rate = "10 Mbit/s", delay = "5 ms", queue = "{queue}" }}

[[flows]]
from = "client"
to = "server"
count = 2
```

```python title="two.py"
import tcplab as lab

results = lab.run("two.toml")
{lines}
```

<!-- holds:
{holds}
-->
"""
SAVED = 'lab.plot.save(lab.plot.cwnd(results), "two.svg")'
HOLDS = 'assert results.flows["bytes"].min() > 0'


def entry(lines: str = SAVED, holds: str = HOLDS, queue: str = "20 packets") -> gallery.Entry:
    (found,) = gallery.entries(PAGE.format(lines=lines, holds=holds, queue=queue))
    return found


def test_a_chart_is_drawn_by_the_lines_and_the_same_each_time() -> None:
    assert entry().title == "Two flows share a link"
    first = entry().draw()
    assert first.startswith(b"<svg")
    assert entry().draw() == first


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (entry(holds="few = 3\nassert results.flows.height == few"), "assert results.flows.height"),
        (entry(holds="assert results.flows.nothing"), "AttributeError"),
        (entry(lines="results.flows"), "two.svg"),
        (entry(lines=SAVED.replace("cwnd", "nothing")), "nothing"),
        # tcplab's warnings concern the author of the experiment.
        (entry(queue="0.1 BDP"), "TcplabWarning"),
    ],
    ids=["untrue", "mistaken", "unsaved", "broken", "warned"],
)
def test_no_chart_is_written_after_an_error(wrong: gallery.Entry, said: str) -> None:
    with pytest.raises(gallery.EntryError, match=said):
        wrong.draw()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lines": "\n".join(f"a{number} = 1" for number in range(5))}, "6 lines, more than 5"),
        ({"holds": "true = 1"}, "nothing is asserted"),
    ],
    ids=["long", "unproved"],
)
def test_an_entry_is_short_and_proves_its_title(changed: dict[str, str], said: str) -> None:
    with pytest.raises(gallery.EntryError, match=said):
        entry(**changed)


def test_the_key_of_a_chart_changes_with_all_that_it_depends_on() -> None:
    others = [
        entry(queue="30 packets"),
        entry(lines=f"x = 1\n{SAVED}"),
        entry(holds=f"{HOLDS} * 2"),
    ]
    assert len({one._key() for one in [entry(), *others]}) == 4


def test_the_site_shows_the_chart_and_not_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery.Entry, "chart", lambda _: gallery.ROOT / "target" / "two.svg")
    shown = gallery.with_charts(PAGE.format(lines=SAVED, holds=HOLDS, queue="20 packets"))
    assert "## Two flows share a link\n\n![Chart: Two flows share a link](/target/two.svg)" in shown
    assert "holds" not in shown
    assert SAVED in shown
