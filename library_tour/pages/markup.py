"""Pieces of HTML: Markdown, and source code with its changed lines."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from html import escape

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name


@functools.cache
def _parser() -> MarkdownIt:
    # Text in Markdown is the package's own, and has no HTML.
    return MarkdownIt("commonmark", {"html": False})


def markdown(text: str) -> str:
    """Return Markdown as HTML."""
    return str(_parser().render(text))


def inline(text: str) -> str:
    """Return Markdown of one paragraph as HTML without the paragraph."""
    return str(_parser().renderInline(text))


def code(lines: Sequence[str], language: str, first: int = 1, changed: Collection[int] = ()) -> str:
    """Return source code as HTML, a line each, with the numbers from `first` on; changed lines are marked."""
    text = "\n".join(lines)
    coloured = highlight(text, get_lexer_by_name(language, stripnl=False), HtmlFormatter(nowrap=True)).split("\n")
    rows = []
    for number, line in enumerate(coloured[: len(lines)], first):
        kind = "line changed" if number in changed else "line"
        rows.append(f'<span class="{kind}"><span class="number">{number}</span>{line}\n</span>')
    return f'<div class="scroll"><pre class="code" lang="{escape(language)}">{"".join(rows)}</pre></div>'
