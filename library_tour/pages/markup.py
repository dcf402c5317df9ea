"""Text converted for pages: Markdown as HTML, plain text as Markdown, highlighted code, the lines of a note."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

# A source line in an error message, such as "   27 | *where = value;".
_CODE_LINE = re.compile(r"\s*\d+ \| ")


@functools.cache
def _parser() -> MarkdownIt:
    # All Markdown is the package's own, and contains no HTML.
    return MarkdownIt("commonmark", {"html": False})


def html(markdown: str) -> Markup:
    """Return Markdown as HTML."""
    return Markup(_parser().render(markdown))


def inline_html(markdown: str) -> Markup:
    """Return one paragraph of Markdown as HTML without the paragraph element."""
    return Markup(_parser().renderInline(markdown))


def plain(text: str) -> str:
    """Return plain text as one line of Markdown that is safe in a link and in a table cell."""
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
