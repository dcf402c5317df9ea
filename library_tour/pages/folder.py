"""The pages of a run, in one folder: a page per stop, an index and the glossary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cudart_py.pages.document import document
from cudart_py.pages.tables import facts

from .. import glossary, path, stops
from ..diagrams.drawn import diagrams_of
from ..glossary import anchor
from ..runner import Outcome
from .pictures import InPage
from .rendering import render
from .stop_page import Place, stop_page

# All pages are in the same folder.
INDEX, GLOSSARY = "index.html", "glossary.html"
STYLE = Path(__file__).with_name("style.css")


def machine(environment: Mapping[str, Any]) -> str:
    """Return a heading that names the machine of a run's figures."""
    return f"This machine: {environment['device']['name']}"


def write_stop(folder: Path, outcomes: Sequence[Outcome], environment: Mapping[str, Any]) -> Path:
    """Write the page of the stop that has run last; return its path.

    The pages of the stops before and after it are rewritten if they exist, so that they link to it.
    """
    last, names = outcomes[-1], [done.name for done in outcomes]
    position = path.position(last.name)
    place = Place("html", INDEX, GLOSSARY, lambda name: f"{name}.html" if name in names else "", InPage())
    for done in outcomes:
        if done.name in (last.name, position.previous, position.next):
            # After an error, the device may no longer be able to run the diagrams' kernels.
            diagrams = () if done.state == "error" else diagrams_of(done.name)
            body = stop_page(done, machine(environment), diagrams, place)
            _write(folder / f"{done.name}.html", f"{done.name}: {done.title}", body)
    return folder / f"{last.name}.html"


def write_index(folder: Path, outcomes: Sequence[Outcome], environment: Mapping[str, Any]) -> Path:
    """Write the index, which links to the stops' pages, and the glossary; return the path of the index.

    Pages that earlier runs have left in the folder are listed too.
    """
    terms = sorted(set(glossary.terms().values()), key=lambda term: term.heading.lower())
    _write(folder / GLOSSARY, "Glossary", render("glossary", "html", terms=terms))
    device = environment["device"]
    run = facts(
        {
            "device": device["name"],
            "compute capability": device["compute_capability"],
            "CUDA": environment["driver"]["cuda"],
            "date": environment["date"],
            "commit": environment["commit"] or "",
            **environment["versions"],
        }
    )
    body = render("index", "html", chapters=list(_chapters(folder, outcomes)), glossary=GLOSSARY, run=run)
    return _write(folder / INDEX, "A tour of CUDA", body)


def _chapters(folder: Path, outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    """Yield the chapters with the stops that have pages; a stop from an earlier run has no outcome."""
    ran = {done.name: done for done in outcomes}
    for number, chapter in enumerate(path.CHAPTERS, 1):
        rows = [
            {"place": place, "done": done, "title": done.title if done else stops.load(place.name).TITLE}
            for place in chapter.places
            if (done := ran.get(place.name)) or (folder / f"{place.name}.html").exists()
        ]
        if rows:
            heading = f"{number}. {chapter.title}"
            yield {"heading": heading, "anchor": anchor(heading), "stops": rows}


def _write(page: Path, title: str, body: str) -> Path:
    page.write_text(document(title, body, style=STYLE.read_text(encoding="utf-8")), encoding="utf-8")
    return page
