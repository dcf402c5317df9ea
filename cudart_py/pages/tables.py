"""Tables in HTML: cells with text, CSS classes and links, in a box that scrolls where the window is narrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple


class Cell(NamedTuple):
    """A cell of a table: its text, its CSS classes, where a click leads to."""

    text: str
    kind: str = ""
    link: str = ""

    def html(self, tag: str = "td") -> str:
        """Return the cell as an element, its text escaped."""
        content = breakable(self.text) if self.kind == "name" else escape(self.text)
        if self.link:
            content = f'<a href="#{self.link}">{content}</a>'
        return f'<{tag} class="{self.kind}">{content}</{tag}>' if self.kind else f"<{tag}>{content}</{tag}>"


def breakable(name: str) -> str:
    """Return a name, such as a benchmark's, as HTML that may be broken between its parts."""
    return re.sub(r"(/|::|\[)", r"\1<wbr>", escape(name))


def table(kind: str, headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Write a table in a box that scrolls where it is too wide; columns with nothing below the heading are left out."""
    columns = list(zip([Cell(heading) for heading in headings], *rows, strict=True))
    kept = [column for column in columns if any(cell.text for cell in column[1:])]
    head, *body = zip(*kept, strict=True)
    lines = "".join(f"<tr>{''.join(cell.html() for cell in row)}</tr>" for row in body)
    first = "".join(cell.html("th") for cell in head)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{first}</tr></thead><tbody>{lines}</tbody></table></div>'
    )


def facts(known: Mapping[str, str]) -> str:
    """Return a table of two columns, of what is known under which name; a fact without a text is left out."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in known.items() if text)
    return f"<table><tbody>{rows}</tbody></table>"
