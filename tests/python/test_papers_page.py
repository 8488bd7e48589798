"""The report of each study is one file, which a browser shows without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tcplab._papers import _study

MOST_BYTES = 6_000_000

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


SMALL = ["bbr-cubic-2019", "tso-2021"]
"""Studies that represent all studies in the combined report."""


@pytest.mark.parametrize("name", ["cubic-2008", "grieco-2004", "all"])
def test_the_report_of_a_study_opens_in_a_browser(
    browser: Any, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcplab.cli._main import main  # noqa: PLC0415

    if name == "all":
        monkeypatch.setattr(_study, "names", lambda: SMALL)
    path = tmp_path / "report.html"
    assert main(["paper", "report", name, "--out", str(tmp_path), "-o", str(path)]) == 0
    studies = [_study.load(one) for one in (_study.names() if name == "all" else [name])]
    assert path.stat().st_size < MOST_BYTES * len(studies)
    said: list[str] = []
    asked: list[str] = []
    context = browser.new_context(**PHONE)
    context.set_offline(True)
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    assert page.locator("figure > svg").count() == sum(len(one.figures) for one in studies)
    headings = page.locator("h2").all_inner_texts()
    for needed in ("What was asked", "What they found", "What happens today", "Claim by claim"):
        assert headings.count(needed) == len(studies), needed
    for study in studies:
        shown = page.locator("td").all_inner_texts()
        assert {one.id for one in study.claims} <= set(shown)
    # Content wider than a phone scrolls on its own.
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (said, asked) == ([], [path.as_uri()])
    if name != "all":
        problems = Axe().run(page).response["violations"]
        grave = [one["id"] for one in problems if one["impact"] in ("serious", "critical")]
        assert not grave
    context.close()
