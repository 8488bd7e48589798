"""The page of a report in a browser: charts, sorting and zooming work by mouse, by keyboard and on
a phone, without any network.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import EXAMPLES
from test_output import IN_NAMES

import tcplab as lab

READY = "html[data-ready=yes]"

WIDE = {"viewport": {"width": 1200, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of an example with three variants and two flows."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    example = lab.load(EXAMPLES / "answers.toml").replace(every="500 ms")
    lab.report(lab.run(example), path)
    return path


class Opened:
    """A page, with its messages and requests."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        """Opens the page without a network."""
        self.said: list[str] = []
        self.asked: list[str] = []
        context = browser.new_context(**(options or WIDE))
        context.set_offline(True)
        self.page = context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(READY, timeout=30_000)

    def close(self) -> None:
        """Checks that there were no messages, and no request except for the file."""
        self.page.context.close()
        assert self.said == []
        others = [url for url in self.asked if not url.startswith("blob:")]
        assert len(others) == 1
        assert others[0].startswith("file:")


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Opened]:
    one = Opened(browser, file)
    yield one
    one.close()


def wait(page: Any, is_so: str) -> None:
    """Waits for a condition. The page's policy forbids Playwright's own method."""
    for _ in range(200):
        if page.evaluate(is_so):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"it never comes that {is_so}")


def marks(page: Any, part: str, kind: str) -> int:
    """The number of visible marks in the charts of a section."""
    return int(page.locator(f"{part} .canvas:visible svg .{kind} > path").count())


def test_the_answer_stands_first_and_charts_are_drawn(opened: Opened) -> None:
    page = opened.page
    assert page.locator("main section").first.get_attribute("id") == "answer"
    headline = page.locator(".headline")
    assert headline.inner_text().startswith("bbr gives ")
    # Above the fold, and larger than all other text.
    assert headline.bounding_box()["y"] < 500
    assert marks(page, "#comparison", "mark-rect.role-mark") == 6
    # Goodput, window and RTT of two flows, and the queue of one link.
    assert marks(page, "#runs", "mark-line.role-mark") == 7


def test_metrics_are_switched_by_keyboard(opened: Opened) -> None:
    page = opened.page
    page.locator("input[name=metric]").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('.comparison[data-metric="retransmitted_share"] svg')
    assert page.locator(".comparison:visible").count() == 1
    assert page.locator(".comparison:visible h3").inner_text() == "Share of resent segments (%)"
    assert marks(page, "#comparison", "mark-rect.role-mark") == 6


def test_the_table_sorts_by_mouse_and_by_keyboard(opened: Opened) -> None:
    page = opened.page
    place = [
        text.split("\n")[0] for text in page.locator("table.sortable thead th").all_inner_texts()
    ].index("goodput")
    cells = f"table.sortable tbody td:nth-child({place + 1})"

    def values() -> list[float]:
        return [float(one.get_attribute("data-value")) for one in page.locator(cells).all()]

    unsorted = values()
    head = page.locator(f"table.sortable thead th:nth-child({place + 1})")
    head.locator("button").click()
    assert values() == sorted(unsorted)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert values() == sorted(unsorted, reverse=True)
    page.locator("table.sortable thead th:first-child button").click()
    names = page.locator("table.sortable tbody td:first-child").all_inner_texts()
    assert names == sorted(names)
    assert head.get_attribute("aria-sort") is None


def test_a_file_of_all_numbers_is_saved(opened: Opened, file: Path) -> None:
    with opened.page.expect_download() as saving:
        opened.page.get_by_role("button", name="Save as CSV").click()
    text = Path(saving.value.path()).read_text()
    example = lab.load(EXAMPLES / "answers.toml").replace(every="500 ms")
    summary = lab.run(example).summary(metrics=["queue_delay_p95_ms"])
    assert text == summary.write_csv()


def test_a_run_is_chosen_and_another_laid_over_it(opened: Opened) -> None:
    page = opened.page
    labels = page.locator("#run option").all_inner_texts()
    page.select_option("#run", label=labels[1])
    page.select_option("#second", label=labels[2])
    wait(
        page,
        "document.querySelectorAll('#panel-cwnd svg .mark-line.role-mark > path').length === 4",
    )
    legend = page.locator("#panel-cwnd svg").text_content()
    assert labels[1] in legend
    assert labels[2] in legend


def test_times_are_zoomed_by_numbers_and_by_dragging(opened: Opened) -> None:
    page = opened.page
    page.fill("#from", "2")
    page.fill("#to", "4")
    page.locator("#to").press("Tab")
    table = "#panel-cwnd details table"
    page.locator("#panel-cwnd summary").click()
    page.wait_for_selector(table)
    times = [float(text) for text in page.locator(f"{table} td:nth-child(3)").all_inner_texts()]
    assert times
    assert min(times) >= 2
    assert max(times) <= 4
    page.locator("#whole").click()
    wait(page, "document.querySelector('#from').value === ''")
    page.locator("#panel-queue .canvas").scroll_into_view_if_needed()
    box = page.locator("#panel-queue .canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 90)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 100, steps=5)
    page.mouse.up()
    wait(page, "document.querySelector('#from').value !== ''")
    low, high = (float(page.input_value(f"#{name}")) for name in ("from", "to"))
    # The axis takes part of the width.
    assert 2 < low < high < 8


def test_charts_draw_the_values_of_their_tables(opened: Opened) -> None:
    page = opened.page
    page.locator(".comparison:visible details summary").click()
    rows = page.locator(".comparison:visible details tbody tr").all_inner_texts()
    values = sorted(round(float(row.split("\t")[2]), 2) for row in rows)
    texts = page.locator("#comparison .canvas:visible svg .mark-text.role-mark text")
    assert sorted(round(float(text), 2) for text in texts.all_text_contents()) == values


@pytest.mark.parametrize("options", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_accessibility_problem(
    browser: Any, file: Path, options: dict[str, Any], scheme: str
) -> None:
    one = Opened(browser, file, **options, color_scheme=scheme)
    for part in one.page.locator("details").all():
        part.evaluate("(part) => { part.open = true; }")
    found = Axe().run(one.page).response["violations"]
    serious = [
        (each["id"], [node["html"][:200] for node in each["nodes"][:3]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []
    one.close()


def test_a_phone_screen_shows_the_whole_page(browser: Any, file: Path) -> None:
    one = Opened(browser, file, **PHONE)
    assert one.page.evaluate("document.documentElement.scrollWidth") == 390
    size = one.page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
    assert size >= 16
    one.close()


def test_dark_pages_are_dark(browser: Any, file: Path) -> None:
    one = Opened(browser, file, **WIDE, color_scheme="dark")
    paper = one.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(20, 23, 26)"
    drawn = one.page.locator("#comparison .canvas:visible svg .mark-rect.role-mark > path").first
    assert drawn.get_attribute("fill").upper() == "#5AB4F0"
    one.page.emulate_media(color_scheme="light")
    wait(
        one.page,
        "document.querySelector('#comparison .canvas svg .mark-rect.role-mark > path')"
        ".getAttribute('fill').toUpperCase() === '#0072B2'",
    )
    one.close()


def test_everything_is_reached_by_keyboard(opened: Opened) -> None:
    page = opened.page
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "(() => { const e = document.activeElement; return e.id || e.name || e.dataset.csv"
                " || e.className || e.tagName; })()"
            )
        )
    assert reached[0] == "skip"
    for name in ("metric", "summary.csv", "run", "second", "from", "to", "whole"):
        assert name in reached, name


def test_names_are_not_interpreted_as_html_in_the_browser(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    flows = [
        lab.Flow(name=name.replace("/", "|"), from_="client", to="server", class_=name)
        for name, _ in IN_NAMES.values()
    ]
    experiment = lab.Experiment(
        name="<img src=x onerror=alert(1)>",
        duration="1 s",
        network=lab.Network(chain=lab.Chain(rate="10 Mbit/s", delay="5 ms")),
        flows=flows,
    )
    lab.report(lab.run(experiment), path)
    one = Opened(browser, path)
    assert one.page.locator("h1").inner_text() == "<img src=x onerror=alert(1)>"
    assert one.page.locator("img, iframe, object").count() == 0
    one.close()


def test_without_scripts_all_numbers_are_there(browser: Any, file: Path) -> None:
    context = browser.new_context(java_script_enabled=False, **WIDE)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator(".headline").inner_text().startswith("bbr gives ")
    assert page.locator("table.sortable tbody tr").count() == 6
    assert page.locator("button[data-csv]").first.is_hidden()
    context.close()
