"""The commands `show` and `exercise`."""

import re
from pathlib import Path

import pytest
from rich.console import Console

from library_tour import glossary, lesson, logbook, path, recorded, report, showing, stops
from library_tour.__main__ import main


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDART_PY_PROGRESS", str(tmp_path / "progress.json"))


@pytest.fixture
def shown(capsys):
    def run(*arguments: str) -> str:
        assert main([*arguments]) == 0
        return " ".join(capsys.readouterr().out.split())

    return run


def test_show_has_the_lesson_the_code_and_the_figures_of_both_machines(shown):
    text = shown("show", "daxpy", "--size", "1000")
    parts = [
        "Chapter 1 of 9", "you will be able to", "The code, step by step", "if (i < n)", "On this machine",
        "size 1,000", recorded.machine(), "What to look at", "library-tour run daxpy --html pages",
        "library-tour exercise daxpy", lesson.COURSE,
        "Previous: library-tour show vector_add", "Next: library-tour show map",
    ]  # fmt: skip  # in the order of the page
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_show_prints_no_line_of_text_twice(capsys):
    main(["show", "daxpy", "--size", "1000"])
    lines = [line for line in capsys.readouterr().out.splitlines() if len(line.split()) > 6]
    prose = [line for line in lines if not re.search(r"[{}();─█]|^ *\d", line)]
    assert len(prose) > 30
    assert len(set(prose)) == len(prose)


def defined(term):
    return " ".join(glossary.explained(term).definition.replace("`", "").split())


def test_show_lists_the_terms_that_the_lesson_uses_and_glossary_explains_each(shown):
    text = shown("show", "bank_conflicts", "--size", "8")
    listed = text.partition("Terms in this lesson ")[2].partition(" Previous: ")[0].split(", ")
    assert {"Warp", "Lane", "Bank", "Bank conflict", "Shared memory"} <= set(listed)
    assert len(set(listed)) == len(listed)
    for word in listed:
        assert defined(word) in shown("glossary", *word.split())


@pytest.mark.parametrize(("code", "term"), [("__global__", "Kernel"), ("__syncthreads", "Barrier"), ("[=]", "Lambda")])
def test_glossary_explains_code_by_its_term(code, term, shown):
    assert shown("glossary", code).startswith(term)


@pytest.mark.parametrize("words", [["bank", "conflict"], ["Bank conflicts"]], ids=str)
def test_glossary_explains_one_term_by_any_of_its_forms_and_prints_all_without_one(words, shown):
    bank_conflict, pitch = defined("bank conflict"), defined("pitch")
    text = shown("glossary", *words)
    assert bank_conflict in text
    assert pitch not in text
    text = shown("glossary")
    assert bank_conflict in text
    assert pitch in text


def test_the_neighbours_of_a_stop_are_those_of_the_route_that_is_followed(shown):
    logbook.follow("first-day")
    text = shown("show", "daxpy", "--size", "1000")
    assert "Next on the route first-day: library-tour show launch_shapes" in text
    assert "library-tour show map" not in text
    names = path.ROUTES["first-day"].names
    assert "Next on the route first-day: library-tour show vector_add" in shown("show", names[-1], "--size", "1000")
    logbook.add(shown=names)
    assert "You have seen every stop on the route first-day. Open exercises: vector_add, " in shown(
        "show", names[-1], "--size", "1000"
    )


def test_a_stop_that_is_not_on_the_followed_route_leads_back_to_it(shown):
    logbook.follow("first-day")
    for arguments in (["show", "memset", "--size", "64"], ["exercise", "memset", str(lesson.solution("memset"))]):
        assert shown(*arguments).endswith("Not on the route first-day. Back to it: library-tour show variables")
    # The stops of the route that come after it are preferred.
    assert str(showing._following("transpose")).endswith("library-tour show divergence")
    logbook.add(passed=["divergence"])
    assert str(showing._following("transpose")).endswith("library-tour show events")
    logbook.add(shown=["events"])
    assert str(showing._following("transpose")).endswith("library-tour show vector_add")
    logbook.add(shown=path.ROUTES["first-day"].names)
    said = str(showing._following("transpose"))
    assert said.startswith("Not on the route first-day. You have seen every stop on the route first-day. Open ")


def test_ctrl_c_ends_in_one_line(monkeypatch, capsys):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(showing, "run_stop", interrupt)
    assert main(["show", "daxpy"]) == 130
    assert capsys.readouterr().err == "library-tour: interrupted\n"


def test_exercise_writes_the_start_and_leaves_a_file_that_is_there(shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = shown("exercise", "daxpy")
    assert "grid-stride loop" in text
    assert "written: daxpy.cu. To check it: library-tour exercise daxpy daxpy.cu" in text
    assert Path("daxpy.cu").read_text() == lesson.start("daxpy").read_text()
    Path("daxpy.cu").write_text("mine")
    assert "daxpy.cu already exists" in shown("exercise", "daxpy")
    assert Path("daxpy.cu").read_text() == "mine"


def test_lines_of_the_compiler_are_not_wrapped(capsys, tmp_path):
    file = tmp_path / "bad.cu"
    line = f'extern "C" __global__ void daxpy(double a, const double* x, double* y, int n) {{ {" " * 40}y[0] = b; }}'
    file.write_text(line, encoding="utf-8")
    assert main(["exercise", "daxpy", str(file)]) == showing.BAD
    lines = capsys.readouterr().out.splitlines()
    (source,) = [number for number, text in enumerate(lines) if text.endswith(line)]
    assert lines[source + 1].index("^") == lines[source].index("b; }")


def test_solved_names_the_further_exercises_and_the_next_stop(shown):
    easy, hard = (f"library-tour exercise coalescing/{name}" for name in ("easy", "hard"))
    text = shown("exercise", "coalescing", str(lesson.solution("coalescing")))
    assert text.endswith(
        f"solved Easy exercise: {easy} Hard exercise: {hard} Next: library-tour show stride_and_offset"
    )
    logbook.follow("cpp")
    text = shown("exercise", "coalescing/easy", str(lesson.solution("coalescing/easy")))
    assert text.endswith(f"solved Hard exercise: {hard} Next on the route cpp: library-tour show aliasing")
    text = shown("exercise", "coalescing/hard", str(lesson.solution("coalescing/hard")))
    assert text.endswith("solved Next on the route cpp: library-tour show aliasing")  # the easy one is passed
    logbook.add(shown=["aliasing"])
    text = shown("exercise", "coalescing", str(lesson.solution("coalescing")))
    assert text.endswith("solved Next on the route cpp: library-tour show transpose")


def test_a_finished_route_is_followed_by_a_profile_of_the_readers_own_kernels(shown):
    logbook.follow("first-day")
    names = path.ROUTES["first-day"].names
    logbook.add(passed=[exercise for name in names for exercise in lesson.exercises(name)])
    text = shown("exercise", "events", str(lesson.solution("events")))
    assert text.endswith(f"solved You have seen every stop on the route first-day. {path.AFTER_A_ROUTE}")


def test_exercise_prints_one_hint_at_a_time_and_the_solution(shown):
    first, second, third = (shown("exercise", "daxpy", "--hint", number) for number in "123")
    assert "gridDim.x * blockDim.x" not in first
    assert "--hint 2" in first
    assert "gridDim.x * blockDim.x" in second
    assert "--hint" not in third
    text = shown("exercise", "daxpy", "--solution")
    assert "The loop's condition" in text
    assert re.search(r"for \(int i = blockIdx\.x", text)


EXERCISES = [name for stop in stops.names() if lesson.has_lesson(stop) for name in lesson.exercises(stop)]


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "file"])
def test_a_solution_is_printed_whole_at_80_columns(terminal, monkeypatch, capsys):
    def words(text: str) -> str:
        return "".join(text.split()) if terminal else text

    monkeypatch.setattr(report, "console", lambda: Console(width=80, force_terminal=terminal, color_system=None))
    for name in EXERCISES:
        assert main(["exercise", name, "--solution"]) == 0
        assert words(lesson.solution(name).read_text()) in words(capsys.readouterr().out), name


def test_a_further_exercise_is_named_with_its_stop(shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = shown("exercise", "coalescing/easy")
    assert "To check it: library-tour exercise coalescing/easy coalescing_easy.cu" in text
    assert Path("coalescing_easy.cu").read_text() == lesson.start("coalescing/easy").read_text()
    assert "coalescing/hard" in shown("show", "coalescing", "--size", "1000")
