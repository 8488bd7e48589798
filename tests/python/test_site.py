"""The site that `make docs` makes: it has no dead links, needs no network, can be searched, and is
accessible, also on a phone and in dark mode.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from test_report_page import PHONE, WIDE

ROOT = Path(__file__).parent.parent.parent
MAIN = ["index.html", "docs/tutorial.html", "docs/gallery.html", "docs/gallery/windows.html"]
MAIN += ["docs/how-to/queues.html", "docs/reference/cc/cubic.html", "search.html"]


class Seen(HTMLParser):
    """The links, loaded files and anchors of a page."""

    def __init__(self, page: Path) -> None:
        """Parses the page."""
        super().__init__()
        self.anchors = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes the references of an element."""
        found = {key: value or "" for key, value in attrs}
        self.anchors |= {found[key] for key in ("id", "name") if key in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(found["href"])
        elif "src" in found:
            self.loaded.append(found["src"])


@pytest.fixture(scope="session")
def site() -> Path:
    """The site, rebuilt if something has changed."""
    if importlib.util.find_spec("sphinx") is None:
        reason = "the site cannot be made: `make docs` installs what is missing"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    done = subprocess.run(
        [ROOT / "scripts" / "site"], check=False, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return ROOT / "target" / "site"


def test_every_page_and_every_link_target_exists(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT).with_suffix(".html")).exists(), page
    seen = {page: Seen(page) for page in site.rglob("*.html")}
    dead = []
    for page, parts in seen.items():
        for link in parts.links:
            address = urlsplit(link)
            if address.scheme:
                assert address.scheme in ("http", "https"), link
                continue
            target = page if not address.path else (page.parent / unquote(address.path)).resolve()
            anchors = seen[target].anchors if target in seen else {""}
            if not target.exists() or unquote(address.fragment) not in anchors:
                dead.append(f"{page.relative_to(site)}: {link}")
    assert dead == []


def test_nothing_is_loaded_from_a_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        for address in Seen(page).loaded:
            place = urlsplit(address)
            assert not place.scheme, address
            assert (page.parent / unquote(place.path)).exists(), address


class Opened:
    """A page without a network, with its messages and requests."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        """Opens the page."""
        self.said: list[str] = []
        self.asked: list[str] = []
        context = browser.new_context(**options)
        context.set_offline(True)
        self.page = context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)

    def close(self) -> None:
        """Checks that there were no messages, and only requests for files."""
        self.page.context.close()
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("file:", "data:"))] == []


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[Any]:
    pages: list[Opened] = []

    def opens(page: str, **options: Any) -> Any:
        pages.append(Opened(browser, (site / page).as_uri(), **(WIDE | options)))
        return pages[-1].page

    yield opens
    for page in pages:
        page.close()


def test_a_search_finds_the_page_from_a_file(opened: Any) -> None:
    page = opened("index.html")
    page.fill("input[name=q]", "bufferbloat")
    page.press("input[name=q]", "Enter")
    page.wait_for_selector("ul.search li a", timeout=20_000)
    page.wait_for_function("document.querySelector('.search-summary')?.textContent.match(/\\d/)")
    found = page.eval_on_selector_all("ul.search li > a", "all => all.map(a => a.textContent)")
    assert "Lesson 3: bufferbloat" in found


@pytest.mark.parametrize(
    ("name", "scheme"), [*((name, "light") for name in MAIN), (MAIN[1], "dark"), (MAIN[3], "dark")]
)
def test_axe_finds_no_serious_accessibility_problem(name: str, scheme: str, opened: Any) -> None:
    page = opened(name, color_scheme=scheme)
    found = Axe().run(page, options={"preload": False}).response["violations"]
    serious = [rule for rule in found if rule["impact"] in ("serious", "critical")]
    said = [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in serious]
    assert said == []


@pytest.mark.parametrize("name", MAIN)
def test_pages_fit_a_phone_screen(name: str, opened: Any) -> None:
    page = opened(name, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_dark_mode_has_dark_pages_and_charts(opened: Any) -> None:
    page = opened("docs/gallery/windows.html", color_scheme="dark")
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in back.strip("rgb()").split(",")) < 64
    chart = page.locator("article section img").first
    assert "invert" in chart.evaluate("image => getComputedStyle(image).filter")
    assert chart.evaluate("image => image.naturalWidth") > 400
