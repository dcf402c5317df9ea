"""Diagrams: a drawing as SVG, the same content as text for a terminal, and a caption."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

WIDTH = 720
# Colours that people with most kinds of colour blindness can tell apart (lighter versions of Okabe and Ito's palette).
# Parts of one colour belong together. Text is dark, both on these colours and on the ground, which stays white on dark
# pages.
COLORS = ("#8ecae6", "#f4a259", "#80c99b", "#e5989b", "#c3a6d8", "#f2d06b", "#9fb3c8", "#d4b08c")
INK, FAINT, RULE, GROUND, IDLE = "#1c1e21", "#5c6370", "#b8bdc6", "#ffffff", "#eceef1"
_FONT = "font-family:system-ui,sans-serif"
_MONOSPACE = "font-family:ui-monospace,monospace"
_MARGIN, _LINE = 12, 18
# The maximum number of characters of a line of code in a drawing, and the number of columns of a line of text.
_MOST_CODE, _COLUMNS = 88, 80


class Diagram:
    """A diagram, returned by the functions of `cudart_py.profiling`.

    `caption` is a sentence that says what the diagram shows. `str(diagram)` is the diagram as text for a terminal of 80
    columns, and `diagram.svg()` is a drawing that needs no other file. A notebook shows the drawing.
    """

    __slots__ = ("_code", "_height", "_parts", "_text", "caption", "title")

    def __init__(
        self, title: str, caption: str, text: Sequence[str], height: float, parts: Sequence[str], code: str = ""
    ) -> None:
        self.title = title
        self.caption = caption
        self._code = code
        self._text = tuple(text)
        self._height = height
        self._parts = tuple(parts)

    def __str__(self) -> str:
        code = (f"    {_cut(self._code, _COLUMNS - 4)}",) if self._code else ()
        caption = textwrap.fill(self.caption, _COLUMNS)
        return "\n".join((self.title, *code, "", *(line.rstrip() for line in self._text), "", caption))

    def __repr__(self) -> str:
        return f"<Diagram: {self.title}>"

    def svg(self) -> str:
        """Return the drawing as an SVG element that needs no other file, with its caption as its description."""
        top = _LINE * (2 if self._code else 1) + 8
        height = top + self._height + _LINE + 2 * _MARGIN
        description = escape(f"{self.title}. {self.caption}")
        code = escape(_cut(self._code, _MOST_CODE))
        heading = label_at(0, 12, self.title, size=13, color=INK, bold=True)
        heading += f'<text x="0" y="{12 + _LINE}" style="fill:{FAINT};font-size:12px;{_MONOSPACE}">{code}</text>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 2 * _MARGIN} {height:.0f}" role="img" '
            f'aria-label="{description}" style="max-width:{WIDTH + 2 * _MARGIN}px;width:100%;height:auto;{_FONT}">'
            f'<title>{description}</title><rect width="100%" height="100%" rx="6" fill="{GROUND}"/>'
            f'<g transform="translate({_MARGIN} {_MARGIN})">{heading}'
            f"{label_at(0, top + self._height + _LINE - 4, self.caption, size=13, color=INK)}"
            f'<g transform="translate(0 {top})">{"".join(self._parts)}</g></g></svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def label_at(
    x: float, y: float, content: str, *, anchor: str = "start", size: float = 10, color: str = FAINT, bold: bool = False
) -> str:
    """Return a line of text as SVG; `anchor` is the part of the text at `x`: its "start", "middle" or "end"."""
    style = f"fill:{color};font-size:{size:g}px" + (";font-weight:600" if bold else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="{style}">{escape(content)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, stroke: str = RULE) -> str:
    """Return a rectangle as SVG."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'style="fill:{fill};stroke:{stroke};stroke-width:0.8"/>'
    )


def stroke(x1: float, y1: float, x2: float, y2: float, color: str = FAINT, width: float = 1) -> str:
    """Return a straight line as SVG."""
    style = f"stroke:{color};stroke-width:{width:g}"
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" style="{style};fill:none"/>'
