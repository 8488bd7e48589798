"""Charts in a browser: saved pages and notebook cells need no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
import pytest

import tcplab as lab


@pytest.fixture(scope="module")
def results() -> lab.Results:
    pair = lab.Dumbbell(pairs=2, rate="20 Mbit/s", delay="15 ms", queue="1 BDP")
    flows = [
        lab.Flow(name="one", from_="left1", to="right1", cc="cubic"),
        lab.Flow(name="<img src=x onerror=alert(1)>", from_="left2", to="right2", cc="bbr"),
    ]
    network = lab.Network(dumbbell=pair)
    return lab.run(lab.Experiment(name="pair", duration="4 s", network=network, flows=flows))


class Shown:
    """A page without a network, with its messages and requests."""

    def __init__(self, browser: Any, path: Path) -> None:
        """Opens the file."""
        context = browser.new_context(viewport={"width": 1100, "height": 900})
        context.set_offline(True)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def close(self) -> None:
        """Checks that there were no messages, and no request except for the file."""
        self.page.context.close()
        assert self.said == []
        assert [url[:5] for url in self.asked] == ["file:"]


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages: list[Shown] = []

    def opened(content: str | bytes) -> Shown:
        path = tmp_path / f"page{len(pages)}.html"
        text = content if isinstance(content, str) else content.decode()
        path.write_text(text, encoding="utf-8")
        pages.append(Shown(browser, path))
        return pages[-1]

    yield opened
    for page in pages:
        page.close()


def notebook(bundle: Any) -> str:
    """The cell of a notebook as a page."""
    shown = bundle[0] if isinstance(bundle, tuple) else bundle
    return f"<!doctype html><meta charset=utf-8><body>{shown['text/html']}"


def ends_of_time(page: Any) -> list[list[float]]:
    """The range of time that each panel shows, from its labels."""
    found = page.evaluate(
        """() => [...document.querySelectorAll('svg .role-axis')]
        .filter(axis => axis.textContent.includes('time (s)'))
        .map(axis => [...axis.querySelectorAll('.role-axis-label text')]
            .map(text => parseFloat(text.textContent)))"""
    )
    return [[min(labels), max(labels)] for labels in found if labels]


def test_panels_zoom_together_in_a_page(show: Any, results: lab.Results) -> None:
    chart = lab.plot.overview(results)
    # In an SVG, labels can be read.
    chart.usermeta = {"embedOptions": {"renderer": "svg"}}
    page = show(lab.plot.drawn(chart, ".html")).page
    page.wait_for_selector("svg .role-axis-label text")
    before = ends_of_time(page)
    assert before == [[0, 4], [0, 4]]
    box = page.locator("svg").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.25)
    page.mouse.wheel(0, -400)
    for _ in range(100):
        after = ends_of_time(page)
        if after != before:
            break
        page.wait_for_timeout(50)
    # Vega draws both panels together, and both show the same range.
    assert after[0] == after[1]
    assert after[0][1] - after[0][0] < 4


def test_clicking_a_legend_entry_fades_the_others(show: Any, results: lab.Results) -> None:
    chart = lab.plot.cwnd(results)
    chart.usermeta = {"embedOptions": {"renderer": "svg"}}
    page = show(lab.plot.drawn(chart, ".html")).page
    page.get_by_text("one (cubic)").first.click()
    script = """() => [...document.querySelectorAll('svg .mark-line path')]
        .map(path => parseFloat(path.getAttribute('opacity') ?? '1'))"""
    for _ in range(100):
        seen = page.evaluate(script)
        if min(seen) < 0.5:
            break
        page.wait_for_timeout(50)
    assert min(seen) == pytest.approx(0.08)
    assert max(seen) == 1


def test_notebooks_show_charts_without_a_network(show: Any, results: lab.Results) -> None:
    assert alt.renderers.active == "tcplab"
    bundle = lab.plot.cwnd(results)._repr_mimebundle_(None, None)
    page = show(notebook(bundle)).page
    frame = page.frame_locator("iframe")
    frame.locator("canvas, svg").first.wait_for(timeout=30_000)


def test_notebooks_show_results_as_a_table_and_a_chart(show: Any, results: lab.Results) -> None:
    bundle = results._repr_mimebundle_()
    page = show(notebook(bundle)).page
    rows = page.locator("table tbody tr")
    assert rows.count() == 2
    # A name is shown as text, whatever it contains.
    assert "<img src=x onerror=alert(1)>" in rows.nth(1).inner_text()
    assert page.evaluate("() => document.images[0].naturalWidth") > 300
    rate = results.flows["goodput_mbit_s"][0]
    assert f"{rate:.3g}"[:3] in rows.first.inner_text()
    assert bundle["text/plain"] == "Results('pair'; 1 run; computed now: 1)"
