"""The pytest plugin's fixtures, tested in separate runs of pytest."""

import builtins
import contextlib
import csv
import json
import re
import statistics
import tomllib
from pathlib import Path

import pytest

import cudart_py as cuda
from cudart_py.benchmark import Measurement, pytest_plugin
from cudart_py.benchmark.gates import machine, time_limits
from cudart_py.benchmark.plugin import session_clocks
from cudart_py.errors import NotSupportedError
from cudart_py.profiling import profiler

pytest_plugins = ["pytester"]

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
# The result of a fake measurement that needs no device.
FOUND = {"batch": 3, "clock_mhz": 1980.0, "cache": "flushed", "blocked": True, "device": "a GPU"}
SAMPLES = (0.002, 0.002)


@pytest.fixture
def finds(monkeypatch):
    """Return a function that makes `measure` and `measure_host` run the code once and give the chosen results.

    It returns a list that receives the options of each measurement.
    """

    def set_up(**found):
        asked = []

        def measure(fn, *, bytes=0, options=None, **_):
            asked.append(options)
            fn()
            return Measurement(**FOUND | {"samples": SAMPLES, "bytes": bytes} | found)

        def measure_host(fn, **given):
            return measure(fn, **given)

        for function in (measure, measure_host):
            monkeypatch.setattr(pytest_plugin, function.__name__, function)
        monkeypatch.setattr(time_limits, "capabilities", lambda: frozenset({"gpu_timing"}))
        return asked

    return set_up


TEST = """
calls = []

def test_work(gpu_benchmark):
    found = gpu_benchmark(lambda: calls.append(1), bytes=4e9)
    assert len(calls) == 1
"""
HOST = """
def test_host(host_benchmark):
    host_benchmark(lambda: None)
"""
STREAMS = """
streams = []

def test_streams(gpu_benchmark):
    found = gpu_benchmark(streams.append, streams=48)
    assert len(streams) == 1 and not found.timed
"""
BESIDE = """
calls = []

def test_work(gpu_benchmark):
    assert not calls
    gpu_benchmark(lambda: calls.append("ours"), beside={"other": lambda: calls.append("other"), "absent": None})
    assert sorted(set(calls)) == ["other", "ours"]
"""
PLAIN = """
def test_plain():
    pass
"""


def saved(pytester):
    return json.loads((pytester.path / "out.json").read_text())


class Nvml:
    NvmlError = ZeroDivisionError
    device_get_count_v2 = staticmethod(lambda: 2)
    device_get_handle_by_index_v2 = staticmethod(lambda index: index)
    device_get_name = staticmethod(lambda handle: f"GPU {handle}")
    system_get_driver_version = staticmethod(lambda: "580.1")
    system_get_cuda_driver_version_v2 = staticmethod(lambda: 13010)


def test_what_was_measured_is_in_the_json_and_in_a_table(run, pytester, finds, monkeypatch):
    monkeypatch.setattr(machine, "nvml", lambda: Nvml)
    asked = finds()
    result = run(TEST + HOST, "--benchmark-json=out.json", "--benchmark-max-time=0.5", "--benchmark-min-rounds=9")
    found = saved(pytester)
    bench, host = found["benchmarks"]
    assert bench["stats"]["data"] == pytest.approx(SAMPLES)
    assert (bench["stats"]["rounds"], bench["stats"]["iterations"]) == (2, 3)
    assert (bench["options"]["timer"], host["options"]["timer"]) == ("measure", "measure_host")
    assert bench["extra_info"]["GB/s"] == pytest.approx(2000)
    extra = {"clock_mhz": 1980.0, "batch": 3, "cache": "flushed", "device": "a GPU"}
    assert bench["extra_info"].items() >= extra.items()
    gpu = found["machine_info"]["gpu"]
    assert (gpu["devices"], gpu["driver"], gpu["cuda_driver"]) == (["GPU 0", "GPU 1"], "580.1", "13.1")
    assert gpu["cuda-bindings"].startswith("13.")
    assert (asked[0].max_seconds, asked[0].min_samples) == (0.5, 9)
    table = ["*GPU benchmarks*", "name*median*spread*GB/s*MHz*L2", "test_work*2 ms*0.0 %*2,000*1980*×3"]
    result.stdout.fnmatch_lines(table)
    result.stdout.no_fnmatch_line("*TFLOP/s*")


def test_measurements_are_written_as_csv_as_markdown_and_as_histograms(run, pytester, finds):
    asked = finds()
    files = ("--measurements-csv=out.csv", "--measurements-markdown=out.md", "--measurements-histogram")
    result = run(TEST, *files, "--benchmark-stop=entropy")
    assert asked[0].stop == "entropy"
    (row,) = csv.DictReader((pytester.path / "out.csv").read_text().splitlines())
    assert row["benchmark"] == "test_it.py::test_work"
    assert float(row["median"]) == pytest.approx(statistics.median(SAMPLES))
    assert (float(row["min"]), float(row["max"])) == pytest.approx((min(SAMPLES), max(SAMPLES)))
    assert (row["samples"], row["device"], row["TFLOP/s"]) == (str(len(SAMPLES)), "a GPU", "")
    heading, border, line = (pytester.path / "out.md").read_text().splitlines()
    assert heading.startswith("| benchmark | samples | min | 5 % |")
    assert line.startswith(f"| test\\_it.py::test\\_work | {len(SAMPLES)} |")
    assert heading.count("|") == border.count("|") == line.count("|")
    assert any("█" * 40 in line for line in result.outlines)


AXES = """
import pytest

@pytest.mark.axis("n", [10, 20])
@pytest.mark.axis("kind", ["copy", "fill"])
def test_size(n, kind):
    print(f"ran {n!r} {kind}")
"""


@pytest.mark.parametrize(
    ("options", "ran"),
    [
        ((), {"10 copy", "10 fill", "20 copy", "20 fill"}),
        (("--axis=n=2^3:2^5,7", "--axis=kind=other"), {"8 other", "16 other", "32 other", "7 other"}),
        (("--axis=n=10:30:15,2^10", "--axis=kind=copy"), {"10 copy", "25 copy", "1024 copy"}),
    ],
)
def test_axes_have_their_values_or_those_of_the_command_line(run, options, ran):
    result = run(AXES, "-s", *options)
    assert {match[1] for line in result.outlines if (match := re.search(r"ran (.*\w)", line))} == ran
    result.assert_outcomes(passed=len(ran))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("m=1", "--axis: no collected test has the axis m"),
        ("n=7,5:3", "'5:3' has no values"),
        ("n=1:9:0", "'1:9:0' has the step 0"),
        ("n=2^0:2^900000", "has an exponent of more than 63"),
        ("n=x", "--axis: n='x' is not of type int"),
        ("n=", "'n=' is not NAME=VALUE,VALUE"),
        ("n=1:99999", "has more than 10,000 values"),
    ],
)
def test_values_that_no_axis_can_have_are_refused(run, value, said):
    result = run(AXES, f"--axis={value}")
    assert result.ret != 0
    assert said in result.stdout.str() + result.stderr.str()


def test_a_profiler_records_one_call_without_peers(run, device, monkeypatch):
    events = []
    monkeypatch.setattr(profiler, "profiler_start", lambda: events.append("start"))
    monkeypatch.setattr(profiler, "profiler_stop", lambda: events.append("stop"))
    monkeypatch.setattr(builtins, "events", events, raising=False)
    source = "def test(gpu_benchmark):\n    gpu_benchmark(lambda: events.append(1), beside={'other': lambda: 1 / 0})\n"
    run(source, "--benchmark-profile").assert_outcomes(passed=1)
    assert events == ["start", 1, "stop"]


@pytest.mark.parametrize("allowed", [True, False])
def test_clocks_are_locked_for_the_run_where_allowed_and_it_says_so(run, device, finds, monkeypatch, allowed):
    finds()
    events = []

    @contextlib.contextmanager
    def lock(clock, *, device):
        if not allowed:
            raise NotSupportedError("for administrators")
        events.append(clock)
        yield
        events.append("unlocked")

    monkeypatch.setattr(session_clocks, "locked_clocks", lock)
    result = run(PLAIN + TEST, "--lock-clocks=1500")
    result.assert_outcomes(passed=2)
    count = len(cuda.devices())
    assert events == ([1500] * count + ["unlocked"] * count if allowed else [])
    said = "clocks were locked to 1500 MHz" if allowed else "clocks are not locked: for administrators"
    result.stdout.fnmatch_lines([said])


def test_a_sample_of_one_call_is_one_round(run, pytester, finds):
    """pytest-benchmark handles rounds of one iteration, and rounds of several as in the test above, separately."""
    finds(samples=(0.002, 0.003, 0.007), batch=1)
    run(TEST, "--benchmark-json=out.json", "--benchmark-quiet").stdout.no_fnmatch_line("*GPU benchmarks*")
    stats = saved(pytester)["benchmarks"][0]["stats"]
    assert stats["data"] == pytest.approx((0.002, 0.003, 0.007))
    assert (stats["median"], stats["iterations"]) == (pytest.approx(0.003), 1)


def test_a_run_is_compared_with_one_of_another_machine(run, pytester, finds):
    """This project's configuration turns warnings into errors, except pytest-benchmark's warning about the machine."""
    finds()
    filters = [f"-W{one}" for one in PROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"]]
    run(TEST, "--benchmark-compare", "--benchmark-save=first", *filters).assert_outcomes(passed=1)
    (stored,) = (pytester.path / ".benchmarks").rglob("0001_first.json")
    stored.write_text(json.dumps(json.loads(stored.read_text()) | {"machine_info": {"node": "another"}}))
    result = run(TEST, "--benchmark-compare", "--benchmark-compare-fail=median:1%", *filters)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_work*(0001_first)*", "*test_work*(NOW)*"])


def test_the_marker_of_pytest_benchmark_is_obeyed(run, finds):
    asked = finds()
    marked = TEST.replace("def test", "import pytest\n@pytest.mark.benchmark(max_time=0.25, group='g')\ndef test")
    run(marked, "--benchmark-max-time=0.5").stdout.fnmatch_lines(["*benchmark 'g'*"])
    assert asked[0].max_seconds == 0.25


def test_disabled_benchmarks_run_the_code_once_and_check_the_arguments(run, device, no_times):
    misspelt = "\ndef test_misspelt(gpu_benchmark):\n    gpu_benchmark(print, bites=3)\n"
    result = run(TEST + STREAMS + misspelt, "--benchmark-disable")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*TypeError*bites*"])
    result.stdout.no_fnmatch_line("*GPU benchmarks*")


@pytest.mark.parametrize(("option", "outcomes"), [("skip", (1, 2)), ("only", (2, 1))])
def test_benchmarks_are_skipped_and_chosen(run, finds, option, outcomes):
    finds()
    passed, skipped = outcomes
    run(TEST + HOST + PLAIN, f"--benchmark-{option}").assert_outcomes(passed=passed, skipped=skipped)


@pytest.mark.parametrize("theirs", [True, False])
def test_without_device_times_or_pytest_benchmark_the_code_runs_once(run, device, no_times, theirs):
    failing = "\ndef test_failing(gpu_benchmark):\n    gpu_benchmark(lambda: 1 / 0)\n"
    beside = BESIDE.replace("test_work", "test_peers").replace("calls", "both") + "    assert len(both) == 2\n"
    result = run(TEST + HOST + STREAMS + beside + failing, "-W", "error", benchmark=theirs)
    result.assert_outcomes(passed=4, failed=1)
    for unsaid in ("*GB/s*", "*Median*", "*warning*", "*not used at all*"):
        result.stdout.no_fnmatch_line(unsaid)


LAUNCH = {"kernel": "saxpy", "grid": (4, 2, 1), "block": (256, 1, 1), "smsp__inst_executed.sum": 7, "other": 3}


@pytest.mark.parametrize("timed", ["", "def test_time(benchmark):\n    benchmark(lambda: None)\n"])
def test_counters_are_in_the_json_alone_and_beside_what_was_timed(run, pytester, finds, timed):
    finds(samples=(), counters=(LAUNCH,))
    # pytest-benchmark would warn if it had nothing to save.
    run(f"{TEST}\n{timed}", "--benchmark-json=out.json", "--benchmark-max-time=0.01", "-W", "error")
    found = saved(pytester)
    (counted,) = found["counted"]
    assert counted["name"] == "test_work"
    assert found["untimed"] == [counted["fullname"]]
    assert (counted["counters"][0]["kernel"], counted["counters"][0]["other"]) == ("saxpy", 3)
    assert len(found["benchmarks"]) == bool(timed)
    assert ("cpu" in found["machine_info"], "id" in found["commit_info"]) == (True, True)


HOW = "name*kernel*grid*block*warp instructions"


@pytest.mark.parametrize(
    ("test", "found", "lines"),
    [
        (TEST, {"samples": (), "counters": (LAUNCH,)}, ["not timed*", HOW, "test_work  saxpy*4×2*256*7"]),
        (TEST, {"samples": (), "counters": (LAUNCH,) * 3}, ["not timed*", HOW, "test_work  saxpy*×3*4×2*256*7"]),
        (TEST, {"cache": "warm", "blocked": False}, ["test_work*warm*, launch latency included"]),
        (TEST, {"streams": 5}, ["test_work*5 streams*"]),
        (HOST, {"cache": "", "batch": 60}, ["test_host*host time ×60"]),
    ],
)
def test_the_table_says_what_is_in_a_time_or_what_was_counted_instead(run, finds, test, found, lines):
    finds(**found)
    run(test).stdout.fnmatch_lines(lines)


def test_a_machine_without_nvml_has_no_gpu_in_its_info(monkeypatch):
    def none():
        raise NotSupportedError("no library")

    monkeypatch.setattr(machine, "nvml", none)
    info = {"cpu": "x"}
    pytest_plugin.pytest_benchmark_update_machine_info(info)
    assert info == {"cpu": "x"}


def test_the_package_offers_the_plugin_to_pytest():
    assert PROJECT["project"]["entry-points"]["pytest11"] == {"cudart_py": "cudart_py.benchmark.pytest_plugin"}


WRONG = """
import numpy as np
import cudart_py as cuda

def test_copy():
    source = 'extern "C" __global__ void copy(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }'
    out = cuda.empty(32, np.int32)
    cuda.compile(source)["copy"][1, 32](cuda.empty(32, np.int32), out)
    out.to_host()
"""


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the kernel is wrong on purpose")
def test_the_report_of_a_mistake_that_the_checks_raise_ends_at_the_tests_line(run, monkeypatch):
    monkeypatch.setenv("CUDART_PY_SANITIZER", "error")
    result = run(WRONG, "--tb=short")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*SimulatorWarning: kernel copy at *uninitialised value*"])
    lines = [line for line in result.outlines if ".py:" in line and " in " in line]
    assert [line.rpartition(" in ")[2] for line in lines] == ["test_copy"]


def test_the_ratio_to_a_peer_is_in_the_json_and_in_the_table(run, pytester, finds, event_times):
    finds()
    run(BESIDE, "--benchmark-json=out.json").stdout.fnmatch_lines(["name*beside*", "test_work*1 × other*"])
    extra = saved(pytester)["benchmarks"][0]["extra_info"]
    assert extra["beside"] == {"other": {"median": 0.002, "ratio": 1.0, "spread": 0.0}}


# The tests run in this order, and each fails if the previous one left a fault behind. Two of them queue a fault.
FAULTS = """
import pytest
import cudart_py as cuda

SOURCE = 'extern "C" __global__ void wild() { *(int *)8 = 1; } extern "C" __global__ void nothing() {}'

def wild():
    cuda.compile(SOURCE)["wild"][1, 1]()

def fault():
    wild()
    with pytest.raises(cuda.errors.IllegalAddressError):
        cuda.current_device().synchronize()

def works():
    return cuda.zeros(3).to_host().sum() == 0

@pytest.fixture(scope="module")
def shared():
    return cuda.compile(SOURCE)

def test_that_makes(shared, fresh_driver):
    shared["nothing"][1, 1]()

def test_that_uses(shared, fresh_driver):
    shared["nothing"][1, 1]()

def test_of_a_fault(fresh_driver):
    fault()

def test_behind_it():
    assert works()

def test_that_ends_the_context():
    fault()

def test_that_begins_anew(fresh_driver):
    assert works()

def test_that_never_waits():
    wild()

def test_that_begins_anew_again(fresh_driver):
    assert works()

@pytest.fixture
def that_never_waits():
    yield
    wild()

def test_whose_fixture_never_waits(that_never_waits):
    assert works()

def test_behind_the_error_of_another():
    assert works()
"""


@pytest.mark.needs("reset")
def test_a_fault_ends_with_its_test_and_without_one_nothing_is_closed(run, pytester, python):
    """The tests run in a separate process."""
    pytester.makepyfile(FAULTS)
    done = python("import pytest; pytest.main(['-p', 'cudart_py.benchmark.pytest_plugin'])")
    lines = done.stdout.splitlines()
    assert pytest.RunResult.parse_summary_nouns(lines) == {"passed": 9, "failed": 1, "errors": 1}
    pytest.LineMatcher(lines).fnmatch_lines(["FAILED *::test_that_never_waits*", "ERROR *::test_whose_fixture_*"])


def test_without_the_capability_the_test_is_skipped(run, monkeypatch):
    monkeypatch.setattr(pytest_plugin, "capabilities", frozenset)
    run("def test_of_a_fault(fresh_driver):\n    raise AssertionError", benchmark=False).assert_outcomes(skipped=1)
