"""The HTML of a page that opens offline: its frame, its tables, and figures embedded in it."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Protocol

from matplotlib.figure import Figure


class DrawnAsSvg(Protocol):
    """A chart as notebooks know it."""

    def _repr_svg_(self) -> str: ...


STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; padding-bottom: .2rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; margin: .5rem 0 1rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; vertical-align: bottom; }
td { white-space: nowrap; } .words td { white-space: normal; }
th:first-child, td:first-child, .words th, .words td { text-align: left; vertical-align: top; }
.scroll { overflow-x: auto; }
img, svg { max-width: 100%; height: auto; } figure { margin: 1rem 0; } figcaption { color: #444; font-size: .9rem; }
@media print { body { max-width: none; margin: 0; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""


def html_page(title: str, parts: Iterable[str]) -> str:
    """A whole page, with its title as the first heading."""
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], words: bool = False, caption: str = "") -> str:
    """An HTML table; `words` aligns every column to the left."""
    head = "".join(f'<th scope="col">{escape(cell).replace(chr(10), "<br>")}</th>' for cell in header)
    head = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
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
