"""Pieces of a drawing in SVG. The colours come from the CSS of the page that contains the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a straight line with the CSS class `kind`."""
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def text(x: float, y: float, content: str, anchor: str, kind: str = "") -> str:
    """Return a line of text; `anchor` is the part of the text at `x`: its "start", "middle" or "end"."""
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def drawing(label: str, width: int, height: int, parts: Sequence[str]) -> str:
    """Return an SVG drawing of these parts; `label` describes it to readers who cannot see it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
        f"<title>{escape(label)}</title>{''.join(parts)}</svg>"
    )
