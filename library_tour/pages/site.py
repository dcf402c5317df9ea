"""The course's pages of the documentation's site, in Markdown: a page a stop, from its lesson and the recorded run."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import lesson, path, plots, recorded, steps, stops
from ..diagrams.drawn import diagrams_of
from ..glossary import Links, anchor
from ..lesson import Exercise, Lesson
from ..report import number, text_of
from ..stop import Result, Row
from .pictures import available

# Beside the pages.
PICTURES = "pictures"
# In the place of this comment, the page of the course gets its chapters.
PATH = "<!-- the path -->"
# From the page of a stop.
GLOSSARY = "../../glossary.md"


def write(folder: Path) -> list[Path]:
    """Write the page of every stop into a folder, and the pictures beside them; return the pages in the tour's order.

    Without matplotlib there are no pictures.
    """
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    pages = []
    for name in stops.names():
        page = folder / f"{name}.md"
        page.write_text("\n\n".join(_page(name, folder)) + "\n", encoding="utf-8")
        pages.append(page)
    return pages


def index(text: str) -> str:
    """Return the page of the course with its chapters and routes, where its text has the comment PATH."""
    return text.replace(PATH, "\n\n".join([*_chapters(), *_routes()]))


def _chapters() -> Iterator[str]:
    for at, chapter in enumerate(path.CHAPTERS, 1):
        yield f"### {at}. {chapter.title}"
        yield f"After this chapter you can {chapter.able}"
        lines = ["| stop | about | level | minutes | after |", "|---|---|---|---:|---|"]
        for place in chapter.places:
            cells = [_link(place.name), _text(stops.load(place.name).TITLE), place.level, str(place.minutes)]
            lines.append(f"| {' | '.join([*cells, ', '.join(map(_link, place.after))])} |")
        yield "\n".join(lines)


def _routes() -> Iterator[str]:
    yield "## Routes"
    yield "A route has the stops that one kind of reader needs first, in an order in which each builds on those before."
    for name, route in path.ROUTES.items():
        command = f"`library-tour list --route {name}`"
        yield f"**{route.title}.** {route.reader} {len(route.names)} stops, {path.hours(route.minutes)}; {command}."
        yield " → ".join(map(_link, route.names))


def _link(name: str, folder: str = "stops/") -> str:
    return f"[{_text(name)}]({folder}{name}.md)"


def _page(name: str, folder: Path) -> Iterator[str]:
    of = lesson.load(name) if lesson.has_lesson(name) else None
    known = recorded.stop(name)
    result = recorded.result(known) if known else None
    stop, links = stops.load(name), Links(GLOSSARY, name)
    yield f"# {name}"
    yield f"*{links.link(_text(stop.TITLE))}*"
    position = path.position(name)
    place = position.place
    after = f", after {', '.join(_link(other, '') for other in place.after)}" if place.after else ""
    heading = f"{position.number}. {position.chapter.title}"
    chapter = f"[Chapter {position.number}](../index.md#{anchor(heading)}), {position.chapter.title}"
    yield f"{chapter}: {place.level}, {place.minutes} minutes{after}."
    if of:
        yield links.link(of.why)
        yield f"## {lesson.LEARN}"
        yield links.link(_list(of.learn))
        yield f"## {lesson.IDEA}"
        yield links.link(of.idea)
        yield f"## {lesson.STEPS}"
        yield from _steps(name, of, folder, links)
    yield "## Figures"
    yield from _output(stop.__doc__ or "")
    if result:
        size = f" The size is {known['size']:,}." if known and known["size"] else ""
        yield f"{_text(recorded.machine())}.{size}{_limit(result)}"
        yield from _tables(result)
        yield from _pictures(name, result, folder)
    if of:
        yield f"## {lesson.LOOK_AT}"
        yield links.link(_list(of.look_at))
        yield "## Exercise"
        yield from _exercises(name, links)
        yield "## Where the course's figures are from"
        yield links.link(of.course)
    yield "---"
    neighbours = {"Previous": position.previous, "Next": position.next}
    yield " · ".join(f"{word}: {_link(other, '')}" for word, other in neighbours.items() if other)


def _steps(name: str, of: Lesson, folder: Path, links: Links) -> Iterator[str]:
    diagrams = list(enumerate(diagrams_of(name), 1))
    for at, step in enumerate(of.steps, 1):
        yield f"### {at}. {_text(step.name)}"
        yield links.link(step.text)
        for piece in steps.pieces(name, of, step):
            caption = f"`{piece.name}`: {piece.caption}"
            if piece.known:
                yield f"{caption}, as before."
            else:
                yield f"{caption}."
                marked = " ".join(str(line - piece.first + 1) for line in sorted(piece.changed))
                highlighted = f' hl_lines="{marked}"' if marked else ""
                yield _code(piece.lines, piece.language, f' linenums="{piece.first}"{highlighted}')
        for place, diagram in diagrams:
            if diagram.step == step.name:
                file = folder / PICTURES / f"{name}-diagram-{place}.svg"
                file.write_text(diagram.svg, encoding="utf-8")
                yield f"![{_text(diagram.described)}]({PICTURES}/{file.name})"
                yield f"*{links.link(_text(diagram.says))}*"


def _code(lines: Sequence[str], language: str, options: str = "") -> str:
    return "\n".join([f"```{{ .{language}{options} }}", *lines, "```"])


def _output(docstring: str) -> Iterator[str]:
    """Yield what the stop's docstring shows of its output, which is that of the simulator."""
    _, found, output = inspect.cleandoc(docstring).partition("    $ library-tour run")
    if found:
        yield "On the simulator, which checks and counts:"
        yield _code(textwrap.dedent(found + output).strip().splitlines(), "text")


def _limit(result: Result) -> str:
    limit = result.limit
    return f" The limit is {number(limit.rate)} {limit.unit}: {_text(limit.name)}." if limit and limit.rate else ""


def _tables(result: Result) -> Iterator[str]:
    yield from _table(result.rows)
    for heading, rows in result.tables.items():
        yield f"**{_text(heading)}**"
        yield from _table(rows)


def _table(rows: Sequence[Row]) -> Iterator[str]:
    columns = list(dict.fromkeys(column for row in rows for column in row.values))
    if columns:
        lines = [f"| | {' | '.join(map(_text, columns))} |", f"|---|{'---:|' * len(columns)}"]
        for row in rows:
            if not row.values:  # a row of checks alone
                continue
            cells = [_text(text_of(column, row.values.get(column, ""))) for column in columns]
            lines.append(f"| {_text(row.name)} | {' | '.join(cells)} |")
        yield "\n".join(lines)


def _text(text: str) -> str:
    """Return plain text as Markdown that may stand in a cell of a table."""
    escaped = re.sub(r"([\\`*_{}\[\]#])", r"\\\1", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")


def _pictures(name: str, result: Result, folder: Path) -> Iterator[str]:
    if available():
        for file, caption in plots.draw(name, "", result, folder / PICTURES, formats=("svg",)).items():
            yield f"![{_text(caption)}]({PICTURES}/{file.name})"
            yield f"*{_text(caption)}*"


def _exercises(stop: str, links: Links) -> Iterator[str]:
    for name, exercise in lesson.exercises(stop).items():
        if exercise.name:
            yield f"### {exercise.name.capitalize()} exercise"
        yield from _exercise(name, exercise, links)


def _exercise(name: str, exercise: Exercise, links: Links) -> Iterator[str]:
    start, solution = lesson.start(name), lesson.solution(name)
    language = lesson.language_of(start)
    yield links.link(exercise.task)
    yield f"This command writes the file `{start.name}`, from which you start:"
    yield _code([f"library-tour exercise {name}"], "sh")
    yield _code(start.read_text(encoding="utf-8").splitlines(), language)
    yield "This one checks what you made of it, on the simulator, which needs no GPU:"
    yield _code([f"library-tour exercise {name} {start.name}"], "sh")
    for at, hint in enumerate(exercise.hints, 1):
        yield _folded(f"Hint {at}", hint)
    code = _code(solution.read_text(encoding="utf-8").splitlines(), language)
    yield _folded("Solution", f"{exercise.answer}\n\n{code}")


def _folded(title: str, text: str) -> str:
    return f'??? note "{title}"\n\n{textwrap.indent(text, "    ")}'


def _list(texts: Sequence[str]) -> str:
    return "\n".join("- " + textwrap.indent(text, "  ").lstrip() for text in texts)
