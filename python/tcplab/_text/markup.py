"""Renders pages as Markdown, and as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from tcplab._report._html import sheet
from tcplab._text.blocks import Block, Heading, Items, Picture, Rows
from tcplab.plot._export import drawn


def markdown(page: Sequence[Block], picture: Callable[[Picture], str] | None = None) -> str:
    """The page as Markdown. `picture` returns the path of the file of a picture; without it,
    pictures are only named.
    """
    parts = []
    for block in page:
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {block.text}")
        elif isinstance(block, Rows):
            lines = [block.heads, ["---"] * len(block.heads), *block.rows]
            parts.append("\n".join(f"| {' | '.join(map(_cell, row))} |" for row in lines))
        elif isinstance(block, Items):
            parts.append("\n".join(f"- {item}" for item in block.items))
        elif isinstance(block, Picture):
            parts.append(
                f"![{block.words}]({picture(block)})" if picture is not None else f"- {block.words}"
            )
        else:
            parts.append(block)
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def html(page: Sequence[Block]) -> str:
    """The page as one HTML file that loads nothing."""
    title = next(block.text for block in page if isinstance(block, Heading))
    parts = []
    for block in page:
        if isinstance(block, Heading):
            parts.append(f"<h{block.level}>{escape(block.text)}</h{block.level}>")
        elif isinstance(block, Rows):
            heads = "".join(f'<th scope="col">{_marked(one)}</th>' for one in block.heads)
            rows = "".join(
                "<tr>" + "".join(f"<td>{_marked(one)}</td>" for one in row) + "</tr>"
                for row in block.rows
            )
            parts.append(
                '<div class="wide" tabindex="0"><table>'
                f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
            )
        elif isinstance(block, Items):
            items = "".join(f"<li>{_marked(one)}</li>" for one in block.items)
            parts.append(f"<ul>{items}</ul>")
        elif isinstance(block, Picture):
            image = drawn(block.chart(), ".svg").decode()
            parts.append(
                f'<figure class="wide" tabindex="0" role="img" aria-label="{escape(block.words)}">'
                f"{image}</figure>"
            )
        else:
            parts.append(f"<p>{_marked(block)}</p>")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{sheet()}{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


STYLE = """
main { max-width: 75rem; margin: 0 auto; padding: 1rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
figure.wide { background: white; }
td:first-child { white-space: nowrap; }
td, th { text-align: left; vertical-align: top; padding: 0.3rem 0.6rem; white-space: normal; }
"""

SIGNS: Mapping[str, str] = {"**": "strong", "*": "em", "`": "code"}


def _marked(text: str) -> str:
    """Converts the small subset of Markdown that pages here use."""
    done = escape(text)
    for sign, tag in SIGNS.items():
        pieces = done.split(sign)
        if len(pieces) % 2 == 0:  # An unpaired sign stands for itself.
            continue
        done = "".join(
            f"<{tag}>{piece}</{tag}>" if number % 2 else piece
            for number, piece in enumerate(pieces)
        )
    return done
