"""The code of a lesson's steps, with the lines that a step changes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import excerpts
from .lesson import Lesson, Step, language_of

# If more than this part of a piece is new, it counts as new code rather than as a changed piece.
MOST_CHANGED = 0.7


@dataclass(frozen=True)
class Piece:
    """A piece of a step's code: a definition, the numbers of its changed lines, and its template arguments by name.

    `known` says that the previous step shows the same piece.
    """

    name: str
    file: Path
    first: int
    lines: Sequence[str]
    changed: frozenset[int]
    arguments: Sequence[tuple[str, str]]
    known: bool

    @property
    def caption(self) -> str:
        """The origin of the piece, and the values of its template parameters."""
        values = "".join(f", {parameter} = {value}" for parameter, value in self.arguments)
        return f"{'excerpt, ' if '[' in self.name else ''}{self.file.name}, from line {self.first}{values}"

    @property
    def title(self) -> str:
        """The name of the definition, or of the function of which the piece is a part."""
        return self.name.partition("[")[0]

    @property
    def language(self) -> str:
        """The language of the file: python or cuda."""
        return language_of(self.file)


def pieces(stop: str, lesson: Lesson, step: Step) -> list[Piece]:
    """Return the code that a step shows, compared with the code of the previous step or of the step that it names."""
    before = _before(lesson, step)
    shown = {name: excerpts.find(stop, name) for name in (before.shows if before else ())}
    old = [line for name, excerpt in shown.items() for line in _plain(name, excerpt.lines)]
    found = []
    for name in step.shows:
        excerpt = excerpts.find(stop, name)
        arguments = _arguments(name, excerpt.lines)
        known = name in shown
        # The text of another instance of the same template is the same too.
        same = any((each.file, each.first) == (excerpt.file, excerpt.first) for each in shown.values())
        changed = set() if same or not before else _changed(old, _plain(name, excerpt.lines))
        numbers = frozenset(excerpt.first + at for at in changed)
        found.append(Piece(name, excerpt.file, excerpt.first, excerpt.lines, numbers, arguments, known))
    return found


def _before(lesson: Lesson, step: Step) -> Step | None:
    steps = list(lesson.steps)
    if step.compared_with:
        return next(each for each in steps if each.name == step.compared_with)
    at = steps.index(step)
    return steps[at - 1] if at else None


def _changed(old: Sequence[str], new: Sequence[str]) -> set[int]:
    """Return which of the new lines are not among the old ones in their order; none if nearly all are new."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    changed = {at for tag, _, _, first, last in matcher.get_opcodes() if tag != "equal" for at in range(first, last)}
    changed = {at for at in changed if re.search(r"\w", new[at])}  # a brace alone says nothing
    counted = sum(bool(re.search(r"\w", line)) for line in new)
    return changed if len(changed) <= MOST_CHANGED * counted else set()


def _plain(name: str, lines: Sequence[str]) -> list[str]:
    """Return lines without indentation and with one name for all definitions, so these do not count as changes."""
    word = re.compile(rf"\b{re.escape(name.partition('<')[0])}\b")
    return [word.sub("@", line.strip()) for line in lines]


def _arguments(name: str, lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return the parameters of a template and their values in an instance such as "transpose_tile<1>"."""
    values = name.partition("<")[2].rstrip(">")
    template = next((line for line in lines if line.startswith("template")), "")
    parameters = [part.split()[-1] for part in template.partition("<")[2].rstrip(">").split(",") if part.split()]
    return list(zip(parameters, (value.strip() for value in values.split(",")), strict=False)) if values else []
