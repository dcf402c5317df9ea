"""The course on the documentation site, in Markdown: a page per stop, the chapters, and the gallery."""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from .. import path, stops
from . import gallery
from .pictures import Beside
from .rendering import render
from .simulated import StopRun
from .stop_page import Place, stop_page

# Folders beside the course's page.
STOPS, KERNELS, PICTURES = "stops", "kernels", "pictures"
# The comment that the chapters replace in the course's page.
PATH = "<!-- the path -->"


def write(folder: Path, runs: Sequence[StopRun]) -> None:
    """Write the pages of the stops that have run, and the gallery of their kernels, into the folder of the course.

    The chapters and routes are inserted into the course's page, the existing `index.md`. Without matplotlib there are
    no charts.
    """
    first = folder / "index.md"
    first.write_text(with_chapters(first.read_text(encoding="utf-8")), encoding="utf-8")
    shown = gallery.write(folder / KERNELS, runs)
    (folder / STOPS).mkdir(parents=True, exist_ok=True)
    # Use all cores, because drawing the charts is slow.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as processes:
        texts = processes.map(functools.partial(page_of, folder=folder / STOPS, shown=shown), runs)
        for run, text in zip(runs, texts, strict=True):
            (folder / STOPS / f"{run.outcome.name}.md").write_text(text, encoding="utf-8")


def page_of(run: StopRun, folder: Path, shown: Collection[str] = ()) -> str:
    """Return the page of a stop, and write its pictures; `shown` names the stops whose kernels are in the gallery."""
    name = run.outcome.name
    kernels = f"../{KERNELS}/{name}.md" if name in shown else ""
    pictures = Beside(folder / PICTURES, PICTURES)
    place = Place("markdown", "../index.md", "../../glossary.md", "{}.md".format, pictures, kernels)
    return stop_page(run.outcome, run.device, run.diagrams, place)


def with_chapters(text: str) -> str:
    """Return the text of the course's page with the chapters and routes in place of the comment PATH."""
    titles = {name: stops.load(name).TITLE for name in path.names()}
    chapters = render(
        "course",
        "markdown",
        chapters=path.CHAPTERS,
        routes=path.ROUTES,
        titles=titles,
        address=f"{STOPS}/{{}}.md".format,
    )
    return text.replace(PATH, chapters)
