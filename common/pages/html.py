"""The HTML of a page that opens offline: its frame, its tables, and figures embedded in it."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterable, Sequence
from html import escape, unescape
from typing import Protocol

from matplotlib.figure import Figure


class DrawnAsSvg(Protocol):
    """A chart as notebooks know it."""

    def _repr_svg_(self) -> str: ...


STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --page: #fff; --line: #ddd; --quiet: #444; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --page: #16181b; --line: #3a3d42; --quiet: #b0b4ba; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
nav ul { columns: 16rem; padding-left: 1.2rem; } a { color: inherit; }
summary { cursor: pointer; font-weight: 600; padding: .4rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; margin: .5rem 0 1rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
caption span { display: inline-block; position: sticky; left: 0; max-width: 100cqw; } /* not cut on a narrow screen */
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: bottom; }
td { white-space: nowrap; } .words td { white-space: normal; }
th:first-child, td:first-child, .words th, .words td { text-align: left; vertical-align: top; }
.scroll { overflow-x: auto; container-type: inline-size; }
img, svg { max-width: 100%; height: auto; } figure { margin: 1rem 0; }
img, figure > svg { background: #fff; border-radius: 4px; } /* the pictures have dark letters */
figcaption { color: var(--quiet); font-size: .9rem; }
@media print { :root { --text: #000; --page: #fff; } body { max-width: none; margin: 0; }
               nav { display: none; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""


def html_page(title: str, opening: Iterable[str], parts: Iterable[str]) -> str:
    """A whole page, with its title as the first heading, and the contents between the opening and the other parts."""
    parts = list(parts)
    body = "\n".join([f"<h1>{escape(title)}</h1>", *opening, contents(parts), *parts])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def html_heading(title: str) -> str:
    """The heading of a section, to which the contents lead."""
    return f'<h2 id="{anchor(title)}">{escape(title)}</h2>'


def contents(parts: Iterable[str]) -> str:
    """A list of links to the headings among the parts of a page."""
    titles = [found[1] for part in parts for found in re.finditer("<h2[^>]*>(.*?)</h2>", part)]
    items = "".join(f'<li><a href="#{anchor(unescape(title))}">{title}</a></li>' for title in titles)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def anchor(title: str) -> str:
    """The name of a heading in links."""
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def folded(summary: str, parts: Iterable[str]) -> str:
    """Parts of a page that are shown after a click on their summary."""
    return f"<details><summary>{escape(summary)}</summary>\n" + "\n".join(parts) + "\n</details>"


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], words: bool = False, caption: str = "") -> str:
    """An HTML table; `words` aligns every column to the left."""
    head = "".join(f'<th scope="col">{escape(cell).replace(chr(10), "<br>")}</th>' for cell in header)
    head = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    title = f"<caption><span>{escape(caption)}</span></caption>" if caption else ""
    kind = ' class="words"' if words else ""
    return f'<div class="scroll"><table{kind}>{title}{head}<tbody>{body}</tbody></table></div>'


def html_figure(figure: Figure, caption: str) -> str:
    """A figure inside the page; its title becomes the alternative text for readers who cannot see it."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150)
    data = base64.b64encode(file.getvalue()).decode()
    title = figure.get_suptitle()
    text = escape(f"{caption}. {title}{'. ' * bool(title)}The numbers are in the tables of this page.", quote=True)
    return (
        f'<figure><img alt="{text}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def inline_svg(chart: DrawnAsSvg) -> str:
    """A chart that draws itself as SVG, as an element of the page, which needs no namespace there."""
    return chart._repr_svg_().replace(' xmlns="http://www.w3.org/2000/svg"', "")
