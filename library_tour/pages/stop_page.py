"""The page of a stop: its lesson, the code step by step, its figures beside those of an H200, pictures, an exercise."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from cudart_py.pages.document import document

from .. import lesson, listing, path, recorded, steps
from ..diagrams.drawn import StepDiagram, diagrams_of
from ..glossary import Links
from ..lesson import Exercise, Lesson
from ..report import number
from ..runner import Outcome
from ..stop import Result, Row
from .markup import code, inline, markdown
from .pictures import MISSING, addresses, available
from .tables import beside

# Beside the page of a stop.
GLOSSARY = "glossary.html"
STYLE = Path(__file__).with_name("style.css")


def stop_page(done: Outcome, machine: str, linked: Collection[str]) -> str:
    """Return the whole page of a stop that has run on a machine; it needs no other file and no network.

    It links to the pages of the stops `linked`, and to the glossary, which are beside it.
    """
    known = recorded.stop(done.name)
    before = recorded.result(known) if known else None
    of = lesson.load(done.name) if lesson.has_lesson(done.name) else None
    links = Links(GLOSSARY, done.name)
    parts = [
        '<nav><a href="index.html">All stops</a></nav>'
        f"<header><h1>{escape(done.name)}</h1><p>{inline(links.link(done.title))}</p>"
        f"<p>{escape(listing.about(path.position(done.name)))}</p></header><main>"
    ]
    if of:
        parts.append(f"<section>{markdown(links.link(of.why))}</section>")
        parts.append(_section(lesson.LEARN, _list(of.learn, links)))
        parts.append(_section(lesson.IDEA, markdown(links.link(of.idea))))
        # An error may have lost the device that the diagrams' kernels would run on.
        diagrams = () if done.state == "error" else diagrams_of(done.name)
        parts.append(_section(lesson.STEPS, "".join(_steps(done.name, of, diagrams, links))))
    parts.append(_section("Figures", "".join(_figures(done, machine, before))))
    parts.append(_section("Pictures", "".join(_pictures(done, machine, before))))
    if of:
        parts.append(_section(lesson.LOOK_AT, _list(of.look_at, links)))
        parts.append(_section("Exercise", "".join(_exercises(done.name, links))))
        parts.append(_section("Where the course's figures are from", markdown(links.link(of.course))))
    body = "".join((*parts, f"</main>{_neighbours(done.name, linked)}"))
    return document(f"{done.name}: {done.title}", body, style=STYLE.read_text(encoding="utf-8"))


def _neighbours(name: str, linked: Collection[str]) -> str:
    position = path.position(name)
    links = [
        f'<a href="{other}.html">{word}: {escape(other)}</a>' if other in linked else f"{word}: {escape(other)}"
        for word, other in (("Previous", position.previous), ("Next", position.next))
        if other
    ]
    return f'<nav class="neighbours">{" · ".join(links)}</nav>'


def _section(heading: str, body: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{body}</section>"


def _list(texts: Sequence[str], links: Links) -> str:
    return f"<ul>{''.join(f'<li>{inline(links.link(text))}</li>' for text in texts)}</ul>"


def _steps(stop: str, of: Lesson, diagrams: Sequence[StepDiagram], links: Links) -> Iterator[str]:
    for at, step in enumerate(of.steps, 1):
        yield f'<article><h3 id="step-{at}">{at}. {escape(step.name)}</h3>{markdown(links.link(step.text))}'
        for piece in steps.pieces(stop, of, step):
            shown = code(piece.lines, piece.language, piece.first, piece.changed)
            caption = f"<code>{escape(piece.name)}</code>: {escape(piece.caption)}"
            if piece.known:
                yield f"<details><summary>{caption}, as before</summary>{shown}</details>"
            else:
                yield f'<p class="caption">{caption}</p>{shown}'
        for diagram in diagrams:
            if diagram.step == step.name:
                says = inline(links.link(diagram.says))
                yield f'<figure class="diagram">{diagram.svg}<figcaption>{says}</figcaption></figure>'
        yield "</article>"


def _figures(done: Outcome, machine: str, before: Result | None) -> Iterator[str]:
    result = done.result
    if done.message:
        yield f'<p class="worse">{escape(done.message)}</p>'
    sizes = [f"{machine}: size {done.size:,} ({escape(done.counts)})"] if done.size is not None else []
    known = recorded.stop(done.name)
    if known and known["size"] is not None:
        sizes.append(f"{recorded.machine()}: size {known['size']:,}")
    yield "".join(f"<p>{escape(text)}.</p>" for text in sizes)
    for name, of in ((machine, result), (recorded.machine(), before)):
        if of and of.limit and of.limit.rate:
            text = f"{name}: the limit is {number(of.limit.rate)} {of.limit.unit}, {of.limit.name}."
            yield f"<p>{escape(text)}</p>"
    for heading, tables in _tables({machine: result, recorded.machine(): before}):
        yield f"<h3>{escape(heading)}</h3>" if heading else ""
        yield beside(tables)
        yield from (
            f'<p class="note"><strong>{escape(row.name)}</strong>: {escape(row.note)}</p>'
            for row in tables.get(machine, ())
            if row.note
        )
    yield from (f'<p class="note">{escape(note)}</p>' for note in result.notes)
    yield from (
        f'<p class="worse">FAILED: {escape(check.fact)}. {escape(check.detail)}</p>' for check in done.failed_checks
    )


def _tables(results: Mapping[str, Result | None]) -> Iterator[tuple[str, dict[str, Sequence[Row]]]]:
    """Yield the tables of several machines' results by their headings, the first one without any."""
    headings = dict.fromkeys(heading for result in results.values() if result for heading in result.tables)
    for heading in ("", *headings):
        tables = {
            machine: result.tables.get(heading, ()) if heading else result.rows
            for machine, result in results.items()
            if result
        }
        if any(tables.values()):
            yield heading, {machine: rows for machine, rows in tables.items() if rows}


def _pictures(done: Outcome, machine: str, before: Result | None) -> Iterator[str]:
    if not available():
        yield f"<p>{MISSING}</p>"
        return
    shown = False
    for name, result in ((machine, done.result), (recorded.machine(), before)):
        for address, caption in addresses(done.name, result) if result else ():
            label = escape(f"{caption} {name}.")
            yield f'<figure><img src="{address}" alt="{escape(caption)}"><figcaption>{label}</figcaption></figure>'
            shown = True
    if not shown:
        yield "<p>This stop draws none.</p>"


def _exercises(stop: str, links: Links) -> Iterator[str]:
    for name, exercise in lesson.exercises(stop).items():
        if exercise.name:
            yield f"<h3>{escape(exercise.name.capitalize())} exercise</h3>"
        yield from _exercise(name, exercise, links)


def _exercise(name: str, exercise: Exercise, links: Links) -> Iterator[str]:
    start, solution = lesson.start(name), lesson.solution(name)
    language = lesson.language_of(start)
    yield markdown(links.link(exercise.task))
    yield f"<p>This command writes the file <code>{start.name}</code>, from which you start:</p>"
    yield _command(f"library-tour exercise {name}")
    yield code(_read(start), language)
    yield "<p>This one checks what you made of it, on the simulator, which needs no GPU:</p>"
    yield _command(f"library-tour exercise {name} {start.name}")
    for at, hint in enumerate(exercise.hints, 1):
        yield f"<details><summary>Hint {at}</summary>{markdown(hint)}</details>"
    answer = markdown(exercise.answer)
    yield f"<details><summary>Solution</summary>{answer}{code(_read(solution), language)}</details>"


def _command(line: str) -> str:
    return f'<pre class="command">{escape(line)}</pre>'


def _read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
