"""Limits for counters, and for times if the driver has none, tested in separate runs of pytest."""

import json

import pytest

from cudart_py.benchmark import Measurement, pytest_plugin
from cudart_py.benchmark.gates import machine, time_limits
from cudart_py.benchmark.plugin import counter_comparison

pytest_plugins = ["pytester"]

TWO = """
def test_work(gpu_benchmark):
    gpu_benchmark(list)

def test_other(gpu_benchmark):
    gpu_benchmark(list)
"""
COMPARE = ("--benchmark-compare", "--counters-compare-fail=sectors:5%")


@pytest.fixture
def counting(monkeypatch):
    """Return a function that sets the number of sectors that each kernel seems to access."""

    def set_up(sectors):
        launch = {"kernel": "k", "grid": (1, 1, 1), "block": (32, 1, 1), "smsp__inst_executed.sum": 7}
        launch["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] = sectors
        monkeypatch.setattr(pytest_plugin, "measure", lambda fn, **_: fn() or Measurement((), counters=(launch,)))

    return set_up


@pytest.fixture(scope="module")
def first_run():
    """Return a dictionary for the stored run, which the first test that needs it makes: its path and content."""
    return {}


@pytest.fixture
def stored(run, counting, pytester, first_run):
    """Return the file of a stored run in which the kernels of both tests access 100 sectors."""
    counting(100)
    if not first_run:
        run(TWO, "--benchmark-save=first", "-W", "error").assert_outcomes(passed=2)
        (path,) = pytester.path.glob(".benchmarks/*/0001_first.json")
        first_run[path.relative_to(pytester.path)] = path.read_text()
    ((name, content),) = first_run.items()
    path = pytester.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("sectors", "status", "lines"),
    [
        (100, 0, ["*Counters compared with *0001_first.json*", "nothing has changed"]),
        (104, 0, ["*::test_work*sectors*100*104*+4.0 %"]),
        (
            130,
            pytest.ExitCode.TESTS_FAILED,
            [
                "*::test_work*sectors*100*130*+30.0 %*WORSE",
                "The run fails because 2 figures exceed their limits (sectors:5%).",
            ],
        ),
    ],
)
def test_a_run_fails_with_a_table_where_a_counter_is_worse_by_more_than_the_limit(
    run, stored, counting, sectors, status, lines
):
    counting(sectors)
    result = run(TWO, "--benchmark-compare=0001", "--counters-compare-fail=sectors:5%", "--benchmark-autosave")
    result.assert_outcomes(passed=2)
    assert result.ret == status
    result.stdout.fnmatch_lines(lines)


def test_a_limit_names_the_remedy_where_another_python_has_stored_the_run(run, stored):
    folder = stored.parent
    path = folder.rename(folder.with_name("Linux-CPython-3.9-64bit")) / stored.name
    result = run(TWO, *COMPARE, "-W", "ignore")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*none for this Python ({folder.name}). *--benchmark-compare=FILE"])
    assert run(TWO, "--counters-compare-fail=sectors:0", f"--benchmark-compare={path}").ret == 0


RENAMED = TWO.replace("test_other", "test_new")


@pytest.mark.parametrize("change", ["deleted", "renamed", "its file deleted"])
def test_a_benchmark_that_is_gone_fails_the_run_and_asks_for_acceptance(run, stored, change):
    source = {"deleted": TWO.partition("\n\n")[0], "renamed": RENAMED}.get(change, TWO)
    if change == "its file deleted":
        counted = json.loads(stored.read_text())["counted"]
        (name,) = (one["fullname"] for one in counted if one["name"] == "test_other")
        stored.write_text(stored.read_text().replace(name, "test_deleted.py::test_other"))
    result = run(source, *COMPARE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*::test_other*gone*GONE", "The run fails *::test_other.", "*: *--benchmark-autosave"])
    assert run(source, "--benchmark-compare").ret == 0


@pytest.mark.parametrize("by", ["expression", "name"])
def test_a_benchmark_that_is_left_out_is_not_gone(run, stored, by):
    arguments = {"expression": ["-k", "work"], "name": ["test_it.py::test_work"]}[by]
    result = run(TWO, *COMPARE, *arguments)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*::test_other*not run"])


def test_another_version_of_nvrtc_is_named(run, stored, monkeypatch):
    assert json.loads(stored.read_text())["nvrtc"] == machine.nvrtc_version()
    monkeypatch.setattr(counter_comparison, "nvrtc_version", lambda: "13.9.1")
    result = run(TWO, "--benchmark-compare")
    result.stdout.fnmatch_lines([f"NVRTC {machine.nvrtc_version()} compiled *, and 13.9.1 those of this one: *"])


@pytest.mark.parametrize("option", ["--counters-compare-fail=sectors:5%", "--counters-json=-", "--counters-markdown=o"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs --benchmark-compare with a stored run*--benchmark-json=accepted.json"),
        (["--benchmark-compare=0009"], "has none named 0009*"),
        (["--benchmark-compare=no/such.json"], "no/such.json does not exist*--benchmark-json=no/such.json"),
        (["--benchmark-compare=empty.json"], "empty.json is not one*"),
        (["--benchmark-compare=timed.json"], "timed.json has none*"),
        (["--benchmark-compare", "--benchmark-disable"], "needs benchmarks*"),
        (["-p", "no:benchmark"], "needs pytest-benchmark*"),
    ],
)
def test_a_comparison_without_a_stored_run_is_refused_before_anything_runs(
    run, stored, pytester, option, arguments, said
):
    (pytester.path / "empty.json").write_text("{}")
    (pytester.path / "timed.json").write_text('{"benchmarks": [], "machine_info": {}}')
    source = TWO + "\nopen('ran', 'w').close()\n"
    result = run(source, option, *arguments, "-W", "ignore", benchmark="no:benchmark" not in arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option.partition('=')[0]} *{said}"])
    assert not (pytester.path / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--counters-compare-fail=sector:5%"], "'sector' is not a figure"),
        ([*COMPARE, "-k", "new"], "compared nothing: the stored run has no benchmark of this run"),
        (["--counters-markdown=o", "--benchmark-compare", "-k", "plain"], "compared nothing: no test used"),
    ],
)
def test_a_run_that_has_compared_nothing_is_an_error_and_no_success(run, stored, pytester, arguments, said):
    result = run(TWO + RENAMED + "def test_plain():\n    pass\n", *arguments, "-W", "ignore")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}*"])
    assert not (pytester.path / "o").exists()


def test_a_limit_on_a_driver_that_counts_nothing_is_an_error(run, stored, monkeypatch):
    monkeypatch.setattr(pytest_plugin, "measure", lambda fn, **_: fn() or Measurement((1.0, 1.0)))
    result = run(TWO, *COMPARE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*has no counters*"])


def test_a_report_of_failed_tests_does_not_say_that_counters_have_passed(run, stored, pytester):
    result = run("def test_work(gpu_benchmark):\n    1 / 0", "--benchmark-compare", "--counters-json=out.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert json.loads((pytester.path / "out.json").read_text())["outcome"] == "refused"


@pytest.mark.parametrize("where", ["the test", "the file"])
def test_a_failure_is_shown_where_a_limit_has_nothing_to_compare(run, stored, where):
    wrong = "raise RuntimeError('out of paper')\n"
    text = wrong if where == "the file" else f"def test_work(gpu_benchmark):\n    {wrong}"
    result = run(text, *COMPARE)
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    result.stdout.fnmatch_lines(["*RuntimeError: out of paper"])
    assert "counters" not in result.stderr.str()


# Limits for times

TIMED = """
def test_work(gpu_benchmark):
    gpu_benchmark(list)

def test_without_a_gpu(benchmark):
    benchmark(list)

def test_without_a_benchmark():
    pass
"""


@pytest.fixture
def untimed(monkeypatch):
    monkeypatch.setattr(time_limits, "capabilities", frozenset)


@pytest.mark.parametrize("arguments", [(), ("--benchmark-disable",), ("--benchmark-compare",)])
def test_a_limit_of_times_is_refused_before_anything_runs_where_there_are_none(run, untimed, arguments):
    result = run(TIMED, "--benchmark-compare-fail=mean:5%", "-k", "not gpu", "-W", "ignore", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.parseoutcomes().keys() <= {"deselected"}
    result.stderr.fnmatch_lines(["*--benchmark-compare-fail limits times*--counters-compare-fail=sectors:5%*"])


@pytest.mark.parametrize("arguments", [("-k", "without"), ("--benchmark-skip",), ("--benchmark-disable",)])
def test_a_limit_of_times_is_left_to_pytest_benchmark_where_it_has_something_to_compare(run, untimed, arguments):
    options = ["--benchmark-compare-fail=mean:1%", "--benchmark-max-time=0.01", "-v", "-W", "ignore"]
    result = run(TIMED, *options, *arguments)
    assert "limits times" not in result.stderr.str()
    result.stdout.fnmatch_lines(["*::test_without_a_benchmark PASSED*"])


def test_a_limit_of_times_hides_no_error_of_a_file(run, untimed):
    result = run(TIMED + "raise RuntimeError('out of paper')", "--benchmark-compare-fail=mean:5%")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*RuntimeError: out of paper"])
