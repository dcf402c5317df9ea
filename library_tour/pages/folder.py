"""The pages of a run, a file each in one folder: that of every stop, an index and the glossary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from cudart_py.pages.document import document
from cudart_py.pages.tables import facts

from .. import glossary, path
from ..runner import Outcome
from .markup import markdown
from .stop_page import GLOSSARY, STYLE, stop_page


def machine(environment: Mapping[str, Any]) -> str:
    """Return what a run's figures are of, as a heading."""
    return f"This machine: {environment['device']['name']}"


def write_stop(folder: Path, outcomes: Sequence[Outcome], environment: Mapping[str, Any]) -> Path:
    """Write the page of the stop that has run last; return its path.

    Pages of stops that have run before are written anew if the last one is their neighbour, to which they then link.
    """
    last, pages = outcomes[-1], {done.name: folder / f"{done.name}.html" for done in outcomes}
    position = path.position(last.name)
    for done in outcomes:
        if done.name in (last.name, position.previous, position.next):
            pages[done.name].write_text(stop_page(done, machine(environment), pages), encoding="utf-8")
    return pages[last.name]


def write_index(folder: Path, outcomes: Sequence[Outcome], environment: Mapping[str, Any]) -> Path:
    """Write the page that leads to those of the stops, and the glossary; return the path of the former."""
    tables = "".join(_tables(outcomes))
    device = environment["device"]
    known = {
        "device": device["name"],
        "compute capability": device["compute_capability"],
        "CUDA": environment["driver"]["cuda"],
        "date": environment["date"],
        "commit": environment["commit"] or "",
        **environment["versions"],
    }
    body = (
        "<header><h1>A tour of CUDA</h1><p>Each stop is one topic: its code step by step, its figures on this machine "
        "beside those of an H200, and an exercise. "
        f'The <a href="{GLOSSARY}">glossary</a> defines the terms.</p></header><main>'
        f"{tables}<section><h2>This run</h2>{facts(known)}</section></main>"
    )
    _write_glossary(folder / GLOSSARY)
    return _write(folder / "index.html", "A tour of CUDA", body)


def _write_glossary(page: Path) -> None:
    terms = sorted(set(glossary.terms().values()), key=lambda term: term.heading.lower())
    entries = "".join(
        f'<dt id="{term.anchor}">{escape(term.heading)}</dt><dd>{markdown(term.definition)}</dd>' for term in terms
    )
    head = '<nav><a href="index.html">All stops</a></nav><header><h1>Glossary</h1></header>'
    body = f"{head}<main><dl>{entries}</dl></main>"
    _write(page, "Glossary", body)


def _write(page: Path, title: str, body: str) -> Path:
    page.write_text(document(title, body, style=STYLE.read_text(encoding="utf-8")), encoding="utf-8")
    return page


def _tables(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the stops that have run as tables, one per chapter."""
    for number, chapter in enumerate(path.CHAPTERS, 1):
        rows = "".join(_row(done) for name in chapter.names for done in outcomes if done.name == name)
        if rows:
            yield (
                f"<section><h2>{number}. {escape(chapter.title)}</h2>"
                f'<div class="scroll"><table class="stops"><tbody>{rows}</tbody></table></div></section>'
            )


def _row(done: Outcome) -> str:
    place = path.position(done.name).place
    return (
        f'<tr><td><a href="{done.name}.html">{escape(done.name)}</a></td><td class="words">{escape(done.title)}</td>'
        f"<td>{place.level}, {place.minutes} min</td>"
        f'<td class="{"worse" if done.bad else "better"}">{escape(done.state)}</td></tr>'
    )
