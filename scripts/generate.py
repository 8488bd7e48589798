"""Writes all generated files. With `--check`, writes nothing and lists outdated files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from columns import markdown
from generate_manual import command_line_page, metrics_page, python_page
from generate_reference import (
    algorithm_page,
    algorithms_page,
    experiment_page,
    json_page,
    profiles_page,
    tables_page,
)
from generate_schema import schema_module
from generate_support import limits_page, readme
from studies import OVERVIEW, PAGES, names, overview, page

import tcplab
from tcplab import plot

ROOT = Path(__file__).parent.parent
# Examples whose digests are recorded: without randomness, with randomness, and a sweep.
ON_RECORD = ["first", "loss", "on_off", "datagrams", "load", "server_time", "measure"]


def digests() -> str:
    """The digests of examples, which the Rust tests compare in other builds."""
    runs = {name: tcplab.run(ROOT / "examples" / f"{name}.toml").digests for name in ON_RECORD}
    return json.dumps(runs, indent=2) + "\n"


# The experiment behind the charts of congestion controls: it shows slow start, and how a window
# meets a full queue.
STANDARD_PATH = """
name = "10 Mbit/s, a round trip of 40 ms, a queue of {said}"
duration = "20 s"

[[network.links]]
between = ["sender", "receiver"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = {queue}

[[flows]]
name = "flow"
from = "sender"
to = "receiver"
"""


# Algorithms that react to ECN marks get a queue that marks.
MARKING = """{ kind = "red", limit = "1 BDP", min = "10 packets", max = "10 packets", \
weight = 1.0, probability = 1.0, gentle = false, ecn = true }"""


def chart_of(name: str, kind: str) -> str:
    """The window of a congestion control on the standard path."""
    queue, said = '"1 BDP"', "1 BDP"
    if kind == "marks":
        queue, said = MARKING, "1 BDP that marks from 10 packets on"
    path = STANDARD_PATH.format(queue=queue, said=said)
    with tempfile.TemporaryDirectory() as folder:
        experiment, chart = Path(folder) / "standard.toml", Path(folder) / "chart.svg"
        experiment.write_text(f'{path}cc = "{name}"\n', encoding="utf-8")
        plot.save(plot.cwnd(tcplab.run(experiment)), chart)
        return chart.read_text(encoding="utf-8")


# Pages with a chart, each with the name of the script on it that draws the chart.
DRAWN = {
    "hosts": "processor",
    "links": "handover",
    "networks": "hops",
    "queues": "delays",
    "sockets": "buffers",
}


def chart_of_page(page: str, name: str) -> str:
    """The chart of a page, drawn by a script on it."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    script = text.partition(f'```python title="{name}.py"\n')[2].partition("```")[0]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        subprocess.run([sys.executable, "-W", "ignore", "-c", script], cwd=folder, check=True)
        return (Path(folder) / f"{name}.svg").read_text(encoding="utf-8")


# The files that `tcplab new` writes, by name, each with the example that it is copied from.
TEMPLATES = {
    "dumbbell": "first",
    "sweep": "sweep",
    "web": "page_lte",
    "wifi": "wifi",
    "lan": "lan",
    "bufferbloat": "bufferbloat",
    "rrul": "rrul",
    "incast": "incast",
    "rtt-fairness": "rtt_fairness",
    "slow-start": "slow_start",
    "video-call": "video_call",
    "bbr-cubic": "bbr_cubic",
    "papers/dctcp": "marking",
    "papers/buffers": "variants",
    "papers/fat-tree": "fat_tree",
    "papers/phase-effect": "phase_effect",
}


def template(example: str) -> str:
    """An example as a template, with its path replaced by FILE.toml."""
    text = (ROOT / "examples" / f"{example}.toml").read_text(encoding="utf-8")
    return text.replace(f"examples/{example}.toml", "FILE.toml")


CC = "docs/reference/cc"
FILES: dict[str, Callable[[], str]] = {
    "python/tcplab/_schema.py": schema_module,
    "docs/reference/experiment.md": experiment_page,
    "docs/reference/tables.md": tables_page,
    "docs/reference/python.md": python_page,
    "docs/reference/json.md": json_page,
    "docs/reference/metrics.md": metrics_page,
    "docs/reference/command-line.md": command_line_page,
    "docs/reference/congestion-controls.md": algorithms_page,
    "docs/reference/profiles.md": profiles_page,
    "docs/limits.md": limits_page,
    "README.md": readme,
    "tests/digests.json": digests,
}
for name, kind in tcplab.algorithms().select("name", "kind").iter_rows():
    FILES[f"{CC}/{name}.md"] = partial(algorithm_page, name)
    FILES[f"{CC}/{name}.svg"] = partial(chart_of, name, kind)


for name, script in DRAWN.items():
    FILES[f"docs/images/{name}.svg"] = partial(chart_of_page, name, script)


for study in names():
    FILES[f"{PAGES}/{study}.md"] = partial(page, study)
FILES[f"{OVERVIEW}.md"] = overview


for name, example in TEMPLATES.items():
    FILES[f"python/tcplab/templates/{name}.toml"] = partial(template, example)


def main() -> int:
    """Writes or checks every file."""
    is_check = sys.argv[1:] == ["--check"]
    outdated = 0
    for name, generate in FILES.items():
        path, text = ROOT / name, generate()
        if path.suffix == ".md":
            text = markdown(text)
        path.parent.mkdir(exist_ok=True, parents=True)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        outdated += 1
        if is_check:
            print(f"{name} is out of date; `make fmt` writes it anew", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if is_check and outdated else 0


if __name__ == "__main__":
    sys.exit(main())
