"""Tables in HTML: cells with text, CSS classes and links, in a box that scrolls in a narrow window."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple


class Cell(NamedTuple):
    """A cell of a table: its text, its CSS classes, and the id of the element that it links to."""

    text: str
    kind: str = ""
    link: str = ""

    def html(self, tag: str = "td") -> str:
        """Return the cell as an HTML element with escaped text."""
        content = breakable(self.text) if self.kind == "name" else escape(self.text)
        if self.link:
            content = f'<a href="#{self.link}">{content}</a>'
        return f'<{tag} class="{self.kind}">{content}</{tag}>' if self.kind else f"<{tag}>{content}</{tag}>"


def breakable(name: str) -> str:
    """Return a name, such as the name of a benchmark, as HTML in which a line may break between the parts."""
    return re.sub(r"(/|::|\[)", r"\1<wbr>", escape(name))


def table(kind: str, headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a table in a box that scrolls if the table is too wide; columns without any text are left out."""
    columns = list(zip([Cell(heading) for heading in headings], *rows, strict=True))
    kept = [column for column in columns if any(cell.text for cell in column[1:])]
    head, *body = zip(*kept, strict=True)
    lines = "".join(f"<tr>{''.join(cell.html() for cell in row)}</tr>" for row in body)
    first = "".join(cell.html("th") for cell in head)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{first}</tr></thead><tbody>{lines}</tbody></table></div>'
    )


def facts(known: Mapping[str, str]) -> str:
    """Return a table with the columns name and text; a name without text is left out."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in known.items() if text)
    return f"<table><tbody>{rows}</tbody></table>"
