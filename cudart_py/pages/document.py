"""A self-contained HTML page with its style inside, which needs no other file and no network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template

_GENERATOR = b'<meta name="generator" content="cudart-py">'
_HEAD_BYTES = 1000
_SKELETON, _STYLE = (Path(__file__).parent / name for name in ("page.html", "style.css"))


def document(title: str, body: str, *, style: str = "") -> str:
    """Return a complete page; `body` is HTML, and `style` is CSS that only this page needs."""
    return Template(_SKELETON.read_text(encoding="utf-8")).substitute(
        title=escape(title), style=_STYLE.read_text(encoding="utf-8") + style, body=body
    )


def is_document(path: Path) -> bool:
    """Return whether a file is a page that `document` has made. Raises OSError if it cannot be read."""
    with path.open("rb") as file:
        return _GENERATOR in file.read(_HEAD_BYTES)
