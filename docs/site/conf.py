"""How `make docs` makes a site of README, CONTRIBUTING and docs/, with Sphinx.

The Markdown files stay as they are read on GitHub: their relative links are followed and checked,
`title="..."` of a block becomes its caption, and the contents beside each page are the lists of
links in README. The gallery's charts are made on the way (`scripts/gallery.py`), and so are the
figures of published studies (`scripts/studies.py`).
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parent.parent.parent
sys.path.append(str(ROOT / "scripts"))

import gallery  # noqa: E402
import studies  # noqa: E402

import tcplab  # noqa: E402

project = "tcplab"
release = tcplab.__version__
html_title = f"tcplab {release}"
copyright = "the authors of tcplab, MIT or Apache 2.0"  # noqa: A001 - the name that Sphinx reads

extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "benches/**.md", "docs/**.md"]
exclude_patterns = [".*", "crates", "python", "results", "target", "tests"]
nitpicky = True
# The anchors that GitHub gives to headings.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
# Excerpts would be fetched, which browsers refuse for files.
html_show_search_summary = False
html_theme_options: dict[str, list[str]] = {"top_of_page_buttons": []}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# README lists the pages, as "- How to run it: [...](docs/how-to/...), ...", over several lines.
LISTED = re.compile(r"^- (?:([A-Z][\w -]+):\s+)?(\[.*?)(?=^- |^$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([\w/.-]+)\.md\)")
# Pages that others list.
BELOW = {
    "docs/reference/congestion-controls": "docs/reference/cc/*",
    "docs/explanation/security": "docs/explanation/security-*",
    "docs/how-to/papers": "docs/papers/*",
    "CONTRIBUTING": "benches/ns3/*\n/SECURITY",
}
IMAGE = re.compile(r'src="[^"]*_images/([^"/]+\.svg)"')
SIZE = re.compile(r'width="\d+" height="\d+"')
TITLED = re.compile(r'^```(\w+) title="([^"]+)"$', re.MULTILINE)


def contents(readme: str) -> str:
    """The pages that README lists, as tables of contents that only the sidebar shows."""
    parts = []
    for caption, links in LISTED.findall(readme):
        pages = "\n".join(f"/{page}" for page in LINK.findall(links))
        parts.append(toctree(pages, caption))
    return "".join(parts)


def toctree(pages: str, caption: str = "") -> str:
    """Pages below one, which the sidebar shows."""
    options = ":hidden:\n:glob:\n" + (f":caption: {caption}\n" if caption else "")
    return f"\n```{{toctree}}\n{options}\n{pages}\n```\n"


def prepare(app: Sphinx, page: str, source: list[str]) -> None:
    """Adds to a page what GitHub does without: contents, captions and charts."""
    text = source[0]
    try:
        if page == "docs/gallery":
            text = gallery.with_overview(text)
        elif page.startswith("docs/gallery/"):
            text = gallery.with_charts(text)
        elif page.startswith(f"{studies.PAGES}/") and page != studies.OVERVIEW:
            text = studies.with_figures(page.rpartition("/")[2])
    except gallery.EntryError as error:
        raise ExtensionError(f"{page}: {error}") from error
    text = TITLED.sub(r"```{code-block} \1\n:caption: \2\n", text)
    if page == root_doc:
        text += contents(text)
    elif page == "docs/gallery":
        text += toctree("\n".join(dict.fromkeys(gallery.LISTED.findall(source[0]))))
    elif page in BELOW:
        text += toctree(f"/{BELOW[page]}")
    source[0] = text


def charts_may_differ(app: Sphinx, env: object, *_: object) -> list[str]:
    """The pages with charts are always read again: these depend on the program."""
    drawn = ("docs/gallery", studies.PAGES)
    return [page for page in app.project.docnames if page.startswith(drawn)]


def for_everyone(
    app: Sphinx, page: str, template: str, context: dict[str, str], *_: object
) -> None:
    """Headings have a level, and what is wider than the page can be scrolled by keyboard."""
    for part, before, after in (
        ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
        ("body", "<pre>", '<pre tabindex="0">'),
        ("body", '<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ):
        context[part] = context.get(part, "").replace(before, after)
    # Pictures with a size leave the text where it is while they are loaded.
    sources = {name: ROOT / source for source, name in app.builder.images.items()}
    context["body"] = IMAGE.sub(lambda found: sized(found, sources), context["body"])


def sized(image: re.Match[str], sources: dict[str, Path]) -> str:
    """An image of the page with the size that its SVG file has."""
    size = SIZE.search(sources[unquote(image[1])].read_text(encoding="utf-8"))
    return f"{image[0]} {size[0]}" if size else image[0]


def front_page(app: Sphinx, failure: Exception | None) -> None:
    """README is what a browser shows first."""
    if failure is None:
        shutil.copy(Path(app.outdir) / "README.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    # Every page is made anew after a change of this file.
    made_by = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    app.add_config_value("made_by", made_by, "env")
    app.connect("source-read", prepare)
    app.connect("env-get-outdated", charts_may_differ)
    # After furo has made the contents.
    app.connect("html-page-context", for_everyone, priority=900)
    app.connect("build-finished", front_page)
