"""The page of a stop: its lesson, the code step by step, its figures and those of an H200, pictures, an exercise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import lesson, path, recorded, steps
from ..diagrams.drawn import StepDiagram
from ..glossary import Links, anchor
from ..lesson import Exercise, Lesson
from ..path import Position
from ..report import has_counters, number
from ..runner import Outcome
from ..steps import Piece
from ..stop import Check, Result, Row
from .pictures import MISSING, Beside, InPage, Shown, available
from .rendering import Format, render
from .tables import Table, beside


@dataclass(frozen=True)
class Place:
    """The addresses of other pages relative to a stop's page, its format and its pictures.

    `index` is the address of the page with all stops, and `glossary` the address of the glossary. `address` returns the
    address of another stop's page, and `kernels` is the address of the page with the stop's kernels; each is "" if
    there is no such page.
    """

    format: Format
    index: str
    glossary: str
    address: Callable[[str], str]
    pictures: InPage | Beside
    kernels: str = ""


@dataclass(frozen=True)
class _Code:
    name: str
    language: str
    lines: Sequence[str]

    @classmethod
    def of(cls, file: Path) -> _Code:
        return cls(file.name, lesson.language_of(file), file.read_text(encoding="utf-8").splitlines())


@dataclass(frozen=True)
class _Step:
    name: str
    text: str
    pieces: Sequence[Piece]
    diagrams: Sequence[Shown]


@dataclass(frozen=True)
class _Exercise:
    name: str
    task: str
    hints: Sequence[str]
    answer: str
    start: _Code
    solution: _Code

    @classmethod
    def of(cls, name: str, exercise: Exercise) -> _Exercise:
        start, solution = _Code.of(lesson.start(name)), _Code.of(lesson.solution(name))
        return cls(exercise.name, exercise.task, exercise.hints, exercise.answer, start, solution)


@dataclass(frozen=True)
class _Page:
    """The contents of a page; `pictures` is None if none can be drawn, and each note has the name of its row or ""."""

    name: str
    title: str
    index: str
    kernels: str
    position: Position
    chapter: str
    chapters: int
    address: Callable[[str], str]
    steps: Sequence[_Step]
    message: str
    machines: Sequence[str]
    tables: Sequence[tuple[str, Table]]
    notes: Sequence[tuple[str, str]]
    failed_checks: Sequence[Check]
    pictures: Sequence[Shown] | None
    exercises: Sequence[tuple[str, _Exercise]]
    neighbours: Sequence[tuple[str, str, str]]


def stop_page(done: Outcome, machine: str, diagrams: Sequence[StepDiagram], place: Place) -> str:
    """Return the page of a stop that has run on a machine, in the format of its place."""
    of = lesson.load(done.name) if lesson.has_lesson(done.name) else None
    known = recorded.stop(done.name)
    results = {machine: done.result} | ({recorded.machine(): recorded.result(known)} if known else {})
    position = path.position(done.name)
    shown = _Page(
        name=done.name,
        title=done.title,
        index=place.index,
        kernels=place.kernels,
        position=position,
        chapter=f"{place.index}#{anchor(f'{position.number}. {position.chapter.title}')}",
        chapters=len(path.CHAPTERS),
        address=place.address,
        steps=list(_steps(done.name, of, place.pictures.diagrams(done.name, diagrams))) if of else [],
        message=done.message,
        machines=list(_machines(done, machine)),
        tables=list(_tables(results)),
        notes=[
            *((row.name, row.note) for row in done.result.all_rows if row.note),
            *(("", x) for x in done.result.notes),
        ],
        failed_checks=done.failed_checks,
        pictures=list(place.pictures.charts(done.name, results)) if available() else None,
        exercises=[(name, _Exercise.of(name, each)) for name, each in lesson.exercises(done.name).items()]
        if of
        else [],
        neighbours=[
            (word, name, place.address(name))
            for word, name in (("Previous", position.previous), ("Next", position.next))
            if name
        ],
    )
    headings = {name: getattr(lesson, name) for name in ("LEARN", "IDEA", "STEPS", "LOOK_AT")}
    links = Links(place.glossary, done.name)
    return render("stop", place.format, stop=shown, lesson=of, headings=headings, links=links, missing=MISSING)


def _steps(name: str, of: Lesson, diagrams: Sequence[tuple[StepDiagram, Shown]]) -> Iterator[_Step]:
    for step in of.steps:
        drawn = [shown for diagram, shown in diagrams if diagram.step == step.name]
        yield _Step(step.name, step.text, steps.pieces(name, of, step), drawn)


def _machines(done: Outcome, machine: str) -> Iterator[str]:
    """Yield a sentence per machine on the size and the limit of its run."""
    known = recorded.stop(done.name)
    yield _machine(machine, done.size, f" ({done.counts})" if done.counts else "", done.result)
    if known:
        yield _machine(recorded.machine(), known["size"], "", recorded.result(known))


def _machine(name: str, size: int | None, counts: str, result: Result) -> str:
    parts = [f"size {size:,}{counts}"] if size is not None else []
    if has_counters(result):
        parts.append(f"counters: measured over {result.counted}")
    limit = result.limit
    if limit and limit.rate:
        parts.append(f"the limit is {number(limit.rate)} {limit.unit}, {limit.name}")
    return f"{name}: {'; '.join(parts)}." if parts else f"{name}."


def _tables(results: Mapping[str, Result]) -> Iterator[tuple[str, Table]]:
    """Yield the tables of several machines' results with their headings; the first table's heading is empty."""
    headings = dict.fromkeys(heading for result in results.values() for heading in result.tables)
    for heading in ("", *headings):
        rows: dict[str, Sequence[Row]] = {
            machine: result.tables.get(heading, ()) if heading else result.rows for machine, result in results.items()
        }
        rows = {machine: of for machine, of in rows.items() if of}
        if rows:
            yield heading, beside(rows)
