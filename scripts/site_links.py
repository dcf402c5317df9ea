"""Links from the names of this package that a page of the documentation's site has in its text, to the reference."""

import os
import re
from pathlib import Path

# What is no running text: code in blocks, what is a link already, headings, and what stands beside the text.
NO_TEXT = r"<pre.*?</pre>|<a\b.*?</a>|<h\d.*?</h\d>|<head>.*?</head>|<nav.*?</nav>"
SKIPPED = re.compile(f"({NO_TEXT})", re.DOTALL)
# Of the tables of docs/coming-from also the names of other packages, in the first column.
SKIPPED_THERE = re.compile(rf"({NO_TEXT}|<tr>\s*<td>.*?</td>)", re.DOTALL)
CODE = re.compile(r"<code>(.*?)</code>", re.DOTALL)
# `cuda.memcpy`, `libraries.gemm`, `Stream` and `Stream.wait`, also in front of brackets and arguments.
NAME = re.compile(r"(?<![\w.])(?:(cuda|libraries)\.(\w+(?:\.\w+)?)|([A-Z]\w+(?:\.\w+)?))")
PACKAGES = {"cuda": "cudart_py", "libraries": "cudart_py.libraries", None: "cudart_py"}


def link_names(site: Path) -> None:
    """Make a link of each public name in the text of the pages that lie in a folder, where the reference has it."""
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
    """Return a part of a page's text with links in its pieces of code."""
    return CODE.sub(lambda match: linked(match[1], page, places), text)


def linked(code: str, page: Path, places: dict[str, Path]) -> str:
    """Return the code of a page with links in it."""

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
