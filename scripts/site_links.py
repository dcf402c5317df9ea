"""Links to the reference from this package's names in the text of the documentation site's pages."""

import os
import re
from pathlib import Path

# Parts that are not running text: code blocks, existing links, headings, the head of the page and its navigation.
NO_TEXT = r"<pre.*?</pre>|<a\b.*?</a>|<h\d.*?</h\d>|<head>.*?</head>|<nav.*?</nav>"
SKIPPED = re.compile(f"({NO_TEXT})", re.DOTALL)
# The tables of docs/coming-from have the names of other packages in their first column, which is skipped too.
SKIPPED_THERE = re.compile(rf"({NO_TEXT}|<tr>\s*<td>.*?</td>)", re.DOTALL)
CODE = re.compile(r"<code>(.*?)</code>", re.DOTALL)
# `cuda.memcpy`, `libraries.gemm`, `Stream` and `Stream.wait`, including those before brackets and arguments.
NAME = re.compile(r"(?<![\w.])(?:(cuda|libraries)\.(\w+(?:\.\w+)?)|([A-Z]\w+(?:\.\w+)?))")
PACKAGES = {"cuda": "cudart_py", "libraries": "cudart_py.libraries", None: "cudart_py"}


def link_names(site: Path) -> None:
    """Turn each public name that the reference has into a link, in the text of all pages in a folder."""
    places = {
        name: page
        for page in (site / "reference").glob("*.html")
        for name in re.findall(r'id="(cudart_py\.[\w.]+)"', page.read_text(encoding="utf-8"))
    }
    for page in site.rglob("*.html"):
        skipped = SKIPPED_THERE if page.parent.name == "coming-from" else SKIPPED
        parts = skipped.split(page.read_text(encoding="utf-8"))
        parts[::2] = [with_links(part, page, places) for part in parts[::2]]
        page.write_text("".join(parts), encoding="utf-8")


def with_links(text: str, page: Path, places: dict[str, Path]) -> str:
    """Return a part of a page's text with links in its inline code."""
    return CODE.sub(lambda match: linked(match[1], page, places), text)


def linked(code: str, page: Path, places: dict[str, Path]) -> str:
    """Return a piece of inline code of a page with links in it."""

    def link(match: re.Match[str]) -> str:
        package, name = match[1], match[2] or match[3]
        while name:
            whole = f"{PACKAGES[package]}.{name}"
            if whole in places:
                shown = f"{package}.{name}" if package else name
                target = os.path.relpath(places[whole], page.parent)
                return f'<a href="{target}#{whole}">{shown}</a>{match[0].removeprefix(shown)}'
            name = name.rpartition(".")[0]
        return match[0]

    return f"<code>{NAME.sub(link, code)}</code>"
