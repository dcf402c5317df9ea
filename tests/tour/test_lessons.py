"""Every lesson is complete; the solution of its exercise passes the checks, and the starting code fails them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from library_tour import answers, excerpts, lesson, recorded, stops
from library_tour.lesson import Lesson

NAMES = stops.names()
# The most important stops have three exercises.
WITH_FURTHER = {
    "coalescing", "transpose", "bank_conflicts", "reduction", "histogram", "streams", "occupancy", "matmul", "heat",
    "monte_carlo",
}  # fmt: skip  # one name per line would be too long
FURTHER = {**{name: ["easy", "hard"] for name in WITH_FURTHER}, "precision": ["easy"]}
EXERCISES = [exercise for name in NAMES for exercise in lesson.exercises(name)]


def texts(of: Lesson) -> list[str]:
    steps = [step.text for step in of.steps]
    exercises = [[each.task, *each.hints, each.answer] for each in (of.exercise, *of.further)]
    ending = [*(text for exercise in exercises for text in exercise), of.course]
    return [of.why, *of.learn, of.idea, *steps, *of.look_at, *ending]


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("lessons", NAMES),
        ("further", FURTHER),
        *((folder, [name.replace("/", "_") for name in EXERCISES]) for folder in ("exercises", "solutions")),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_folder_has_one_file_a_lesson_or_exercise_and_no_others(folder, names):
    files = (Path(lesson.__file__).parent / folder).iterdir()
    assert sorted(path.stem for path in files if path.suffix in (".py", ".cu", ".cuh")) == sorted(["__init__", *names])


def test_further_exercises_are_an_easy_and_a_hard_one():
    for name, names in FURTHER.items():
        assert [further.name for further in lesson.load(name).further] == names


def check_text(text: str) -> None:
    assert text == text.strip()
    assert text.endswith((".", "?", "```")), text
    assert not any(line.startswith(("#", "<")) for line in text.splitlines()), text
    # Some Markdown renderers do not recognize a list without an empty line above it.
    assert not re.search(r"^(?![-*\d\s])\S.*\n([-*]|\d+\.) ", text, re.MULTILINE), text


def test_every_lesson_is_complete_and_the_code_of_its_steps_is_found():
    for name in NAMES:
        of = lesson.load(name)
        assert len(of.learn) >= 2, name
        assert of.steps, name
        assert of.look_at, name
        for text in texts(of):
            check_text(text)
        for exercise, of_exercise in lesson.exercises(name).items():
            assert lesson.start(exercise).suffix == lesson.solution(exercise).suffix
            assert 1 <= len(of_exercise.hints) <= 3, exercise
        for step in of.steps:
            assert all(excerpts.find(name, shown).lines for shown in step.shows), (name, step.name)
        steps = [step.name for step in of.steps]
        assert len(set(steps)) == len(steps), name
        assert {step.compared_with for step in of.steps} <= {"", *steps}, name


# A figure in a lesson that may have been measured.
FIGURE = re.compile(r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)\s(?:GB/s|TFLOP/s|ms)\b")
# A figure that differs from all recorded ones by a relative error in between is an old measurement of one of them. The
# figures of two runs on the same GPU differ by less, and different quantities by more.
LEAST_ERROR, MOST_ERROR = 0.015, 0.06


def numbers(recorded: object) -> Iterator[float]:
    if isinstance(recorded, dict | list):
        for value in recorded.values() if isinstance(recorded, dict) else recorded:
            yield from numbers(value)
    elif isinstance(recorded, int | float) and recorded:
        yield recorded


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_gives_no_older_figures_than_the_recorded_run_below_it(name):
    stop = recorded.stop(name)
    found = list(numbers([stop["rows"], stop["tables"], stop["limit"]]))
    found += [number * scale for number in found for scale in (1000, 1e-3)]
    for text in texts(lesson.load(name)):
        for figure in FIGURE.finditer(text):
            digits = figure[1].replace(",", "")
            # The value of the last digit that counts: 100 for 4,100, and 0.1 for 4.1.
            unit = 10.0 ** -(len(digits.partition(".")[2]) or len(digits.rstrip("0")) - len(digits))
            errors = [abs(number - float(digits)) for number in found]
            error = min(errors, default=0)
            assert error <= max(LEAST_ERROR * float(digits), unit / 2) or error > MOST_ERROR * float(digits), (
                f"{figure[0]} is now {found[errors.index(error)]:,.6g}, in: {text}"
            )


SLOW = "rand"  # compiles cuRAND's headers twice


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive) if name == SLOW else name for name in EXERCISES]
)
def test_solutions_are_right_and_starts_are_not(name):
    solution, start = answers.check_answers(name, [lesson.solution(name), lesson.start(name)])
    assert solution
    assert [check for check in solution if not check.holds] == []
    assert [check for check in start if not check.holds] != []
    # Facts must say "1 load" and "1 person", not "1 loads" and "1 people".
    assert [check.fact for check in solution if re.search(r"(^|of |over |: )1 ([a-z]+s|people)\b", check.fact)] == []
    # The starting code compiles; its mistake is found by a check, or by the driver.
    assert "the answer does not compile" not in [check.fact for check in start]
