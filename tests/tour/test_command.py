import importlib.metadata
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cudart_py as cuda
from library_tour import answers, lesson, path, plots, report, roofline, stops, timing
from library_tour.__main__ import main
from library_tour.stop import Check, Curve, Result, Row


def good(device: cuda.Device, size: int) -> Result:
    return Result([Row("only", {"size": size}, Check("it is right", True))])


def wrong(device: cuda.Device, size: int) -> Result:
    return Result([Row("only", check=Check("two is three", False, "it is two"))])


def broken(device: cuda.Device, size: int) -> Result:
    raise RuntimeError("the wheels came off")


def unsupported(device: cuda.Device, size: int) -> Result:
    raise cuda.errors.NotSupportedError("no such thing here")


def interrupt(device: cuda.Device, size: int) -> Result:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "ran", "size"),
    [
        ([], ["first", "second"], "100"),
        (["run", "--size", "7"], ["first", "second"], "7"),
        (["run", "second", "second", "--size", "1234"], ["second"], "1,234"),
    ],
    ids=str,
)
def test_each_named_stop_or_all_of_them_run_once_in_order(only_stops, capsys, monkeypatch, arguments, ran, size):
    only_stops(first=good, second=good)
    monkeypatch.setattr(timing, "available", lambda: False)
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^(\w+): What \1 shows$", out, re.MULTILINE) == ran
    assert out.count(f"size {size}: grains of sand") == len(ran)


def test_untimed_runs_the_small_size_and_takes_no_times(only_stops, capsys, monkeypatch):
    monkeypatch.setattr(timing, "_wanted", True)  # monkeypatch restores it
    only_stops(first=good)
    main(["run", "first", "--untimed"])
    assert not timing.available()
    out = capsys.readouterr().out
    assert "size 100: grains of sand" in out
    assert "checked, not timed" in out


def test_failed_checks_and_errors_are_told_and_the_other_stops_go_on(only_stops, capsys):
    only_stops(first=wrong, second=broken, third=good)
    assert main([]) == 1
    out = capsys.readouterr().out
    for words in ("only  FAILED", "FAILED: two is three. it is two", "wheels came off", "1 passed, 1 failed, 1 error"):
        assert words in out


def test_what_the_driver_cannot_do_is_no_failure_but_a_size_too_small_is(only_stops, capsys):
    only_stops(first=unsupported)
    for size, said in (("2", "cannot run the stop: no such thing here"), ("1", "grains of sand, at least 2")):
        assert main(["run", "first", "--size", size]) == (size == "1")
        assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "transpos"], "no stop 'transpos': did you mean transpose?"),
        (["run", "zzz"], "`library-tour list`"),
        (["run", "overlap"], "no stop 'overlap': `library-tour list`"),
        (["run", "--size", "0"], "--size"),
        (["run", "--size", "many"], "--size"),
        (["list", "--route", "shortest"], "the routes are first-day"),
        (["run", "--device", "99"], "'ordinal' must be"),
        (["transpos"], "did you mean `library-tour run transpose`"),
        (["rum"], "invalid choice"),
        (["show", "transpos"], "did you mean transpose?"),
        (["glossary", "xyzzy"], "`library-tour glossary`"),
        (["glossary", "banc conflict"], "did you mean bank conflict?"),
        (
            ["exercise", "daxpy", "nothing.cu"],
            "library-tour: nothing.cu does not exist; to begin: library-tour exercise daxpy\n",
        ),
        (["exercise", "copies", str(lesson.start("daxpy"))], "copies must be a Python file (.py), not daxpy.cu\n"),
        (["exercise", "daxpy", str(lesson.start("copies"))], "daxpy must be a CUDA C++ file (.cu), not copies.py\n"),
        (["exercise", "daxpy", str(Path(path.__file__).with_name("h200.json"))], "(.cu), not h200.json\n"),
        (["exercise", "coalescing/medium"], "; the exercises are coalescing, coalescing/easy and coalescing/hard\n"),
        (["exercise", "coalescing/"], "no exercise 'coalescing/'; the exercises are"),
        (["exercise", "daxpy/easy"], "no exercise 'daxpy/easy'; the only exercise is daxpy\n"),
        (["run", "--json", "none/run.json"], "No such file or directory"),
    ],
    ids=str,
)
def test_wrong_usage_is_status_2_and_says_what_is_meant(arguments, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert words in capsys.readouterr().err


def test_list_has_the_names_titles_sizes_and_places_of_all_stops(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if re.match(r"\w+ +[●○]{3} ", line)] == list(stops.names())
    assert max(map(len, lines)) <= 80
    assert main(["list", "--json"]) == 0
    for name, of in zip(stops.names(), json.loads(capsys.readouterr().out), strict=True):
        stop, position = stops.load(name), path.position(name)
        size = of["size"] and of["size"]["counts"]
        assert (of["name"], of["title"], size) == (name, stop.TITLE, stop.SIZE and stop.SIZE.counts)
        assert (of["chapter"], of["level"], of["minutes"], of["after"]) == (
            position.chapter.title, position.place.level, position.place.minutes, list(position.place.after),
        )  # fmt: skip  # first the values in the list, then those in the path


def test_the_route_all_is_the_whole_path(capsys):
    printed = []
    for arguments in (["list"], ["list", "--route", "all"], ["list", "--json"], ["list", "--json", "--route", "all"]):
        assert main(arguments) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[2] == printed[3]


@pytest.mark.parametrize("route", path.ROUTES)
def test_list_has_the_stops_of_a_route(route, capsys):
    assert main(["list", "--route", route]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if re.match(r"\w+ +[●○]{3} ", line)] == path.ROUTES[route].names


@pytest.mark.parametrize("arguments", [["list"], ["exercise", "daxpy", str(lesson.solution("daxpy"))]], ids=str)
@pytest.mark.parametrize("error", [KeyError("lost"), ValueError("lost"), OSError("lost")], ids=repr)
def test_an_error_of_our_own_is_not_told_as_wrong_usage(arguments, error, monkeypatch):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(report, "listing", fail)
    monkeypatch.setattr(answers, "check_answers", fail)
    with pytest.raises(type(error), match="lost"):
        main(arguments)


def test_json_and_pages_are_written(only_stops, tmp_path, capsys):
    only_stops(first=good, second=broken, third=wrong)
    path, folder = tmp_path / "run.json", tmp_path / "new" / "pages"
    assert main(["run", "--json", str(path), "--html", str(folder), "--size", "5"]) == 1
    ran = json.loads(path.read_text())["stops"]
    assert [stop["state"] for stop in ran] == ["passed", "error", "failed"]
    assert ran[0]["rows"] == [{"name": "only", "values": {"size": 5}, "holds": True, "note": ""}]
    assert sorted(page.stem for page in folder.iterdir()) == ["first", "glossary", "index", "second", "third"]
    assert "RuntimeError: the wheels came off" in (folder / "second.html").read_text()
    assert "What second shows" in (folder / "index.html").read_text()
    assert str(folder / "index.html") in capsys.readouterr().out


def test_ctrl_c_ends_in_one_line_and_keeps_what_is_done(only_stops, tmp_path, capsys):
    only_stops(first=good, second=interrupt, third=good)
    assert main(["run", "--json", "-", "--html", str(tmp_path), "--size", "5"]) == 130
    out, err = capsys.readouterr()
    assert [stop["name"] for stop in json.loads(out)["stops"]] == ["first"]  # the output has nothing but JSON
    assert not Path("-").exists()
    assert sorted(page.name for page in tmp_path.iterdir()) == ["first.html", "glossary.html", "index.html"]
    assert err.splitlines()[-1] == "library-tour: interrupted in second; 1 of 3 stops have run"


INTERRUPTED = """
import sys, time
from library_tour.__main__ import main
from library_tour.course import memset
memset.run = lambda device, size: (print("waiting", flush=True), time.sleep(60))
sys.exit(main(["run", "memset"]))
"""


@pytest.mark.unsanitized("a process of its own is interrupted")
def test_a_real_ctrl_c_prints_no_traceback():
    command, pipe = [sys.executable, "-c", INTERRUPTED], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as running:
        while b"waiting" not in running.stdout.readline():
            pass
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert err.splitlines()[-1] == b"library-tour: interrupted in memset; 0 of 1 stops have run"
    assert b"Traceback" not in err


@pytest.mark.parametrize(("options", "card"), [([], "NVIDIA H200"), (["--card", "t4"], "NVIDIA T4")], ids=str)
def test_plot_draws_each_stop_and_the_roofline_of_all_kernels(options, card, only_stops, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra plot)")
    metrics = {
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 4,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 32,
    }
    drawn = []
    monkeypatch.setattr(roofline, "save", lambda figure, stem: drawn.append(figure) or [stem])

    def counted(device: cuda.Device, size: int) -> Result:
        growth = Curve("growth", "x", "y", {"line": [(1, 1), (2, 4)]})
        return Result([Row("only", metrics=metrics)], pictures=[growth])

    only_stops(first=counted, second=counted)
    assert main(["run", "--plot", str(tmp_path / "new" / "folder"), *options]) == 0
    files = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert files == [f"{name}-growth.{suffix}" for name in ("first", "second") for suffix in ("png", "svg")]
    [figure] = drawn
    assert card in figure.get_suptitle()
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == ["first: only", "second: only"]


def test_plot_without_matplotlib_names_the_extra(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(plots.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--plot", str(tmp_path)])
    assert "pip install 'cudart-py[plot]'" in capsys.readouterr().err


def test_driver_chooses_the_driver(tmp_path):
    """In a new process, because a process chooses its driver once."""
    command = [sys.executable, "-m", "library_tour", "run", "memset", "--size", "64", "--driver", "simulator"]
    done = subprocess.run([*command, "--json", str(tmp_path / "run.json")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "gpu_timing" not in json.loads((tmp_path / "run.json").read_text())["driver"]["capabilities"]


def test_the_installed_command_is_this_main():
    [script] = importlib.metadata.entry_points(group="console_scripts", name="library-tour")
    assert script.load() is main
