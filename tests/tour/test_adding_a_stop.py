"""The stop that docs/adding-a-stop.md adds works."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import cudart_py as cuda
import library_tour.course
import library_tour.lessons
from library_tour import answers, device_code, excerpts, lesson, stops
from library_tour.runner import run_stop

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-stop.md"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write the page's files to new folders, and make a tour of its stop only."""
    [device], [program, text], [start, solution] = (
        re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(), re.DOTALL) for kind in ("cpp", "python", "cuda")
    )
    files = {"reverse.cu": device, "reverse.py": program, "lessons/reverse.py": text}
    for name, content in (files | {"exercises/reverse.cu": start, "solutions/reverse.cu": solution}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(library_tour.course, "__path__", [*library_tour.course.__path__, str(tmp_path)])
    monkeypatch.setattr(library_tour.lessons, "__path__", [str(tmp_path / "lessons")])
    monkeypatch.setattr(lesson, "__file__", str(tmp_path / "lesson.py"))
    monkeypatch.setattr(excerpts, "find_device_code", lambda stem: tmp_path / f"{stem}.cu")
    monkeypatch.setattr(stops, "COURSE", ("reverse",))
    monkeypatch.setattr(device_code, "find", lambda stem: tmp_path / f"{stem}.cu")
    importlib.invalidate_caches()
    yield
    sys.modules.pop("library_tour.course.reverse", None)
    sys.modules.pop("library_tour.lessons.reverse", None)


def test_the_pages_stop_runs_and_its_exercise_is_solved_by_its_solution_and_not_by_its_start(written):
    outcome = run_stop("reverse", cuda.Device(0), 1000)
    assert outcome.state == "passed", outcome.traceback
    [step] = lesson.load("reverse").steps
    assert excerpts.find("reverse", *step.shows).lines[0].startswith('extern "C" __global__')
    assert all(check.holds for check in answers.tried("reverse", lesson.solution("reverse")))
    # The result itself is wrong, so this test does not depend on a driver that finds the race.
    found = [check.holds for check in answers.tried("reverse", lesson.start("reverse")) if "reversed" in check.fact]
    assert found == [False, False]


def test_the_page_names_what_is_there():
    for path in re.findall(r"`((?:library_tour|kernels)/[\w./]+)`", PAGE.read_text()):
        assert "reverse" in path or (PAGE.parents[1] / path).exists(), path
