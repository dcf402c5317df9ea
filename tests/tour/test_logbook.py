"""Progress is kept between runs of the command, and an unreadable file of progress stops nothing."""

import json

import pytest

from library_tour import lesson, logbook, path
from library_tour.__main__ import main
from library_tour.stop import Check, Result, Row


@pytest.fixture
def file(tmp_path, monkeypatch):
    place = tmp_path / "new" / "progress.json"
    monkeypatch.setenv("CUDART_PY_PROGRESS", str(place))
    return place


def kept(file):
    return json.loads(file.read_text())


def good(device, size):
    return Result([Row("only")])


def wrong(device, size):
    return Result([Row("only", check=Check("two is three", False))])


def test_stops_that_pass_and_stops_that_are_shown_are_kept_once_and_in_order(only_stops, file):
    only_stops(first=good, second=wrong, third=good)
    main(["run", "third", "second", "first"])
    main(["run", "first"])
    main(["show", "second"])
    assert kept(file) == {"run": ["third", "first"], "shown": ["second"], "passed": [], "route": ""}
    assert [path.name for path in file.parent.iterdir()] == [file.name]  # no temporary file is left


def test_an_exercise_is_kept_when_its_answer_is_right(file, capsys):
    for answer, status, said in (
        (lesson.start("daxpy"), 1, "not solved; for a hint: library-tour exercise daxpy --hint"),
        (lesson.solution("daxpy"), 0, "solved"),
    ):
        assert not file.exists()
        assert main(["exercise", "daxpy", str(answer)]) == status
        assert said in " ".join(capsys.readouterr().out.split())
    assert kept(file)["passed"] == ["daxpy"]
    logbook.add(run=["daxpy"], shown=["daxpy"])
    capsys.readouterr()
    assert main(["progress"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "1. First kernels: 1 of 8 stops seen, 1 of 8 exercises passed" in lines
    assert [line.split() for line in lines if line.startswith("daxpy ")] == [
        ["daxpy", "run,", "shown,", "exercise", "passed"]
    ]
    assert "Next: library-tour show device_query" in lines


def test_a_stop_is_seen_once_one_of_its_exercises_is_passed(file, capsys):
    logbook.add(passed=["device_query", "coalescing/easy"])
    assert main(["progress"]) == 0
    out = capsys.readouterr().out
    assert "1. First kernels: 1 of 8 stops seen, 1 of 8 exercises passed" in out
    assert "Next: library-tour show vector_add" in out


def test_a_stop_that_was_seen_shows_its_open_exercises(file, capsys):
    logbook.add(run=["vector_add", "daxpy"], passed=["daxpy", "coalescing/easy"])
    assert main(["progress"]) == 0
    states = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if " " in line)
    assert states["vector_add"].rstrip() == "run; open: vector_add"
    assert states["daxpy"].rstrip() == "run, exercise passed"
    assert states["coalescing"].rstrip() == "easy exercise passed; open: coalescing, coalescing/hard"
    assert states["transpose"].rstrip() == "–"


def test_a_stop_that_was_only_run_is_not_seen(file, capsys):
    logbook.add(run=path.names())
    for route in ("all", "first-day"):
        assert main(["progress", "--route", route]) == 0
        out = capsys.readouterr().out
        assert "0 of 10 stops seen" in out or "0 of 8 stops seen" in out
        assert "You have seen" not in out
        assert "Next: library-tour show" in out


def test_a_route_is_followed_until_another_one_is_chosen(file, capsys):
    logbook.add(run=["daxpy"], shown=["map"], passed=["daxpy"])
    assert main(["progress", "--route", "first-day"]) == 0
    logbook.add(shown=["launch_shapes"])  # keeps the route
    capsys.readouterr()
    for arguments, counts, following in (
        (["progress"], "2 of 10 stops seen, 1 of 12 exercises passed", "vector_add"),
        (["progress", "--route", "all"], "1. First kernels: 3 of 8 stops seen", "device_query"),
        (["progress"], "1. First kernels: 3 of 8 stops seen", "device_query"),
    ):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert counts in out
        assert f"Next: library-tour show {following}\n" in out


def test_the_last_stop_of_a_route_ends_it(file, capsys):
    logbook.add(shown=path.ROUTES["first-day"].names)
    main(["progress", "--route", "first-day"])
    out = capsys.readouterr().out
    assert "You have seen every stop of this route." in out
    assert path.AFTER_A_ROUTE in " ".join(out.split())
    assert "library-tour show" not in out
    assert "Open exercises: vector_add, daxpy, launch_shapes, errors and 8 more." in " ".join(out.split())


def test_the_progress_fits_the_terminal(file, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    names = path.ROUTES["first-day"].names
    exercises = [exercise for name in names for exercise in lesson.exercises(name)]
    logbook.add(passed=[name for name in exercises if name not in ("daxpy", "coalescing/hard")])
    logbook.follow("first-day")
    logbook.add(shown=["daxpy"])
    main(["progress"])
    *lines, place = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert "Open exercises: daxpy, coalescing/hard." in " ".join(" ".join(lines).split())
    assert place == f"Kept in {file}"


def test_a_file_of_an_earlier_version_has_no_route(file):
    file.parent.mkdir()
    file.write_text('{"run": ["daxpy"], "shown": [], "passed": []}')
    assert logbook.read() == logbook.Progress(run=["daxpy"])


def test_a_route_that_is_not_there_is_wrong_usage_and_changes_nothing(file, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["progress", "--route", "shortest"])
    assert "the routes are first-day" in capsys.readouterr().err
    assert not file.exists()


def test_reset_forgets_all(file, capsys):
    logbook.add(run=["daxpy"])
    logbook.follow("cpp")
    for _ in range(2):  # there is nothing to forget the second time
        assert main(["progress", "--reset"]) == 0
        assert str(file) in capsys.readouterr().out.replace("\n", "")
        assert logbook.read() == logbook.Progress()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"run": [], "shown": []}',
        '{"run": "daxpy", "shown": [], "passed": [1]}',
        '{"run": [], "shown": [], "passed": [], "route": "shortest"}',
        "\0",
    ],
    ids=repr,
)
def test_a_file_without_progress_is_told_in_one_line_and_left_as_it_is(text, file, only_stops, capsys):
    file.parent.mkdir()
    file.write_text(text)
    only_stops(first=good)
    assert main(["run", "first"]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert str(file) in line
    assert "`library-tour progress --reset`" in line
    assert file.read_text() == text
    with pytest.raises(SystemExit, match="2"):
        main(["progress"])
    assert "--reset" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told_in_one_line(tmp_path, monkeypatch, only_stops, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CUDART_PY_PROGRESS", str(tmp_path / "file" / "progress.json"))
    only_stops(first=good)
    assert main(["run", "first"]) == 0
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_default_place_is_in_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDART_PY_PROGRESS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert logbook.file().name == "progress.json"
    assert "cudart_py" in str(logbook.file())
