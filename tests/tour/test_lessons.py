"""Every lesson is complete, and its exercise can be solved and is not solved at the start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from library_tour import answers, excerpts, lesson, stops
from library_tour.lesson import Lesson

PACKAGE = Path(lesson.__file__).parent
NAMES = stops.names()


def texts(of: Lesson) -> list[str]:
    exercise = of.exercise
    steps = [step.text for step in of.steps]
    return [*of.learn, *steps, *of.look_at, exercise.task, exercise.hint, exercise.answer, of.course]


def stems(folder: str) -> list[str]:
    return sorted(path.stem for path in (PACKAGE / folder).iterdir() if path.suffix in (".py", ".cu", ".cuh"))


def test_every_stop_has_a_lesson():
    assert list(filter(lesson.has_lesson, NAMES)) == list(NAMES)


@pytest.mark.parametrize("folder", ["lessons", "exercises", "solutions"])
def test_a_folder_has_one_file_a_lesson_and_no_others(folder):
    assert stems(folder) == sorted(["__init__", *NAMES])


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_is_complete(name):
    of = lesson.load(name)
    assert len(of.learn) >= 2
    assert of.steps
    assert of.look_at
    for text in texts(of):
        assert text == text.strip()
        assert text.endswith((".", "?", "```")), text
        assert not any(line.startswith(("#", "<")) for line in text.splitlines()), text
        # A list without an empty line above it is none for every reader of Markdown.
        assert not re.search(r"^(?![-*\d\s])\S.*\n([-*]|\d+\.) ", text, re.MULTILINE), text
    assert lesson.start(name).suffix == lesson.solution(name).suffix


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_each_step_is_found(name):
    of = lesson.load(name)
    for step in of.steps:
        for shown in step.shows:
            assert excerpts.find(name, shown).lines, shown
    names = [step.name for step in of.steps]
    assert len(set(names)) == len(names)
    assert {step.compared_with for step in of.steps} <= {"", *names}


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_is_right_and_the_start_is_not(name):
    solution, start = answers.check_answers(name, [lesson.solution(name), lesson.start(name)])
    assert solution
    assert [check for check in solution if not check.holds] == []
    assert [check for check in start if not check.holds] != []
    # The start is code that runs: what is wrong with it is found by a check, or by the driver.
    assert "the answer compiles" not in [check.fact for check in start]
