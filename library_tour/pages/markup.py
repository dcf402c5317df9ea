"""Text in the formats of pages: Markdown as HTML, plain text as Markdown, code with colours, the lines of a note."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

# The line of a program in the text of an error, such as "   27 | *where = value;".
_CODE_LINE = re.compile(r"\s*\d+ \| ")


@functools.cache
def _parser() -> MarkdownIt:
    # Text in Markdown is the package's own, and has no HTML.
    return MarkdownIt("commonmark", {"html": False})


def html(markdown: str) -> Markup:
    """Return Markdown as HTML."""
    return Markup(_parser().render(markdown))


def inline_html(markdown: str) -> Markup:
    """Return Markdown of one paragraph as HTML without the paragraph."""
    return Markup(_parser().renderInline(markdown))


def plain(text: str) -> str:
    """Return plain text as Markdown that may stand in a line of its own, in a link or in a cell of a table."""
    escaped = re.sub(r"([\\`*_{}\[\]#])", r"\\\1", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")


def highlighted(lines: Sequence[str], language: str) -> list[Markup]:
    """Return lines of source code as HTML with the classes of Pygments."""
    text = "\n".join(lines)
    colored = highlight(text, get_lexer_by_name(language, stripnl=False), HtmlFormatter(nowrap=True)).split("\n")
    return [Markup(line) for line in colored[: len(lines)]]


def note_lines(note: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a note, with whether each is a line of code."""
    for line in note.splitlines():
        yield line.strip(), bool(_CODE_LINE.match(line))
