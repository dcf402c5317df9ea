"""Lessons: the text that goes with a stop, and an exercise whose answer is checked.

A lesson is the object LESSON of `library_tour/lessons/<stop>.py`. The code that an exercise starts from is
`library_tour/exercises/<stop>.cu`, or `.py` for an exercise in host code, and its solution is the file of the same name
in `library_tour/solutions/`.

Some stops have further exercises, in FURTHER of `library_tour/further/<stop>.py`. A further exercise is named
`<stop>/<its own name>`, and its files are named `<stop>_<its own name>`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import stops
from .stop import Check, Value

SUFFIXES = (".cu", ".py")

# The headings of a lesson's parts, in order.
LEARN = "By the end of this lesson you will be able to"
IDEA = "The idea"
STEPS = "The code, step by step"
LOOK_AT = "What to look at"
COURSE = "Where the lectures' figures come from"


class MissingLessonError(LookupError):
    """A stop that has no lesson."""


class UnknownExerciseError(LookupError):
    """A name that no exercise of a stop has; the message lists the names."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step from slow to fast, or from simple to complete: code that is shown, and what it changes.

    `name` is the row's name in the stop's table, if the step is a row. `shows` names the code: functions, structures
    and constants of `kernels/<stop>.cu`, of a header that it includes, or of the stop's Python program. An instance of
    a template has its arguments, as in "transpose_tile<1>", and a method of a Python class has the class, as in
    "Pieces.queue". "fit_row[points:x]" shows only the part of a Python function from the assignment to `points` to the
    one to `x`. Lines that differ from the code of the previous step, or of the step that `compared_with` names, are
    highlighted. `text` is Markdown.
    """

    name: str
    shows: Sequence[str]
    text: str
    compared_with: str = ""


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """A task, and the checks that decide whether an answer is right.

    `task`, `hints` and `answer`, which explains the solution, are Markdown. There are one to three hints, and each
    gives away more than the one before it. `check` is called with the compiled module of an answer in CUDA C++, or with
    the imported module of one in Python, always on the simulator. It yields the checks that it makes. An exception in
    the answer counts as a failed check, and so does a warning from the driver. `name` is "easy" or "hard" for a further
    exercise.
    """

    name: str = ""
    task: str
    hints: Sequence[str]
    answer: str
    check: Callable[[Any], Iterable[Check]]


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """The text that goes with a stop; every piece is Markdown without headings.

    `why` opens the lesson: one or two paragraphs that say why the reader should care, with a number from the H200.
    `learn` completes the sentence "By the end of this lesson you will be able to", one item per skill. `idea` explains
    what the hardware does and gives the rule of thumb, before any code. `look_at` says what the tables and pictures
    show, a sentence or two each. `course` says where the figures of the lectures that the tour follows come from, and
    on which card they were measured. `further` contains the exercises other than the lesson's own.
    """

    why: str
    learn: Sequence[str]
    idea: str
    steps: Sequence[Step]
    look_at: Sequence[str]
    exercise: Exercise
    course: str
    further: Sequence[Exercise] = ()


def at_most(fact: str, actual: Value, most: float) -> Check:
    """Check that a count or an error is at most `most`."""
    value = float(actual)
    # Two decimals for averages of counts, and three significant digits for numerical errors.
    text = f"{round(value, 2):,.10g}" if value == 0 or 1 <= abs(value) < 1e9 else f"{value:.3g}"
    return Check(fact, value <= most, f"The actual value is {text}.")


def uses_all_bytes(kind: str, efficiency: Value) -> Check:
    """Check that the loads or the stores of an answer use all bytes of the sectors that they touch."""
    fact = f"a {kind} of a warp uses all bytes of its sectors"
    return Check(fact, float(efficiency) >= 1, f"On average, it uses {100 * float(efficiency):.1f} %.")


def number_of(number: int, noun: str) -> str:
    """Return a number with its noun, which has an "s" unless the number is 1: "1 load", "2,048 loads"."""
    return f"{number:,} {noun}{'s'[: number != 1]}"


def has_lesson(stop: str) -> bool:
    """Check whether a stop has a lesson."""
    return _has_module("lessons", stop)


def load(stop: str) -> Lesson:
    """Return a stop's lesson, with its further exercises.

    Raises UnknownStopError for a name that no stop has, and MissingLessonError for a stop without a lesson.
    """
    stops.module_name(stop)
    if not has_lesson(stop):
        raise MissingLessonError(f"the stop {stop} has no lesson")
    lesson = importlib.import_module(f"{__package__}.lessons.{stop}").LESSON
    assert isinstance(lesson, Lesson)
    if _has_module("further", stop):
        lesson = replace(lesson, further=importlib.import_module(f"{__package__}.further.{stop}").FURTHER)
    return lesson


def exercises(stop: str) -> dict[str, Exercise]:
    """Return a stop's exercises keyed by name, the lesson's own first; raise what `load` raises."""
    of = load(stop)
    return {stop: of.exercise} | {f"{stop}/{further.name}": further for further in of.further}


def exercise(name: str) -> Exercise:
    """Return an exercise by its name: `<stop>`, or `<stop>/<its own name>` for a further one.

    Raises UnknownExerciseError for a name that no exercise of the stop has, and what `load` raises.
    """
    known = exercises(name.partition("/")[0])
    if name not in known:
        *others, last = known
        names = f"the exercises are {', '.join(others)} and {last}" if others else f"the only exercise is {last}"
        raise UnknownExerciseError(f"there is no exercise {name!r}; {names}")
    return known[name]


def start(name: str) -> Path:
    """Return the file that an exercise starts from."""
    return _code("exercises", name)


def solution(name: str) -> Path:
    """Return the file with the solution of an exercise."""
    return _code("solutions", name)


def language_of(file: Path) -> str:
    """Return the language of a code file as Pygments and MkDocs name it: python or cuda."""
    return "python" if file.suffix == ".py" else "cuda"


def _has_module(folder: str, stop: str) -> bool:
    return importlib.util.find_spec(f"{__package__}.{folder}.{stop}") is not None


def _code(folder: str, name: str) -> Path:
    stem = name.replace("/", "_")
    places = [Path(__file__).parent / folder / f"{stem}{suffix}" for suffix in SUFFIXES]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(f"there is no code for the exercise {name}: looked for {places[0]} and {places[1]}")
