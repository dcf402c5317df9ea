"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from cudart_py import NotSupportedError
from cudart_py.benchmark import Measurement, machine, measuring, pytest_plugin, time_limits

pytest_plugins = ["pytester"]

# A measurement that needs no device: two samples of 2 ms, for 4e9 bytes.
SAMPLES = (0.002, 0.002)


@pytest.fixture
def measured(monkeypatch):
    """Let `measure` and `measure_host` run the code once and find what they are told."""
    asked = []

    def find(fn, **arguments):
        asked.append(arguments)
        fn()
        return Measurement(
            SAMPLES,
            bytes=arguments.get("bytes", 0),
            batch=3,
            clock_mhz=1980.0,
            cache="flushed",
            blocked=True,
            device="a GPU",
        )

    def find_host(fn, *, stream=None, batch=None, options=None):
        return find(fn)

    def find_gpu(fn, *, stream=None, bytes=0, flops=0, ceiling=None, flush_l2=True, batch=None, options=None):
        return find(fn, bytes=bytes, options=options)

    find_gpu.__name__, find_host.__name__ = "measure", "measure_host"
    monkeypatch.setattr(pytest_plugin, "measure", find_gpu)
    monkeypatch.setattr(pytest_plugin, "measure_host", find_host)
    monkeypatch.setattr(time_limits, "capabilities", lambda: frozenset({"gpu_timing"}))
    return asked


@pytest.fixture
def no_times(monkeypatch):
    """A driver without device times, whichever it is."""
    monkeypatch.setattr(measuring, "has_capability", lambda name: False)


TEST = """
calls = []

def test_work(gpu_benchmark):
    found = gpu_benchmark(lambda: calls.append(1), bytes=4e9)
    assert len(calls) == 1
"""


STREAMS = """
streams = []

def test_work(gpu_benchmark):
    found = gpu_benchmark(streams.append, streams=48)
    assert len(streams) == 1 and not found.timed
"""


def test_work_for_many_streams_runs_once_where_it_is_not_timed(run, pytester, device, no_times):
    run(STREAMS, "--benchmark-disable").assert_outcomes(passed=1)
    run(STREAMS).assert_outcomes(passed=1)


def saved(pytester):
    return json.loads((pytester.path / "out.json").read_text())


def test_the_samples_become_pytest_benchmarks_own(run, pytester, measured):
    run(TEST, "--benchmark-json=out.json").assert_outcomes(passed=1)
    (bench,) = saved(pytester)["benchmarks"]
    assert bench["stats"]["data"] == pytest.approx(SAMPLES)
    assert (bench["stats"]["rounds"], bench["stats"]["iterations"]) == (2, 3)
    assert bench["options"]["timer"] == "measure"


@pytest.mark.parametrize("batch", [1, 3])
def test_a_sample_is_one_round_whether_of_one_call_or_of_a_batch(run, pytester, monkeypatch, batch):
    """pytest-benchmark times rounds of one iteration and of several by different code."""
    found = Measurement((0.002, 0.003, 0.007), batch=batch, cache="warm", blocked=True)
    monkeypatch.setattr(pytest_plugin, "measure", lambda fn, **_: fn() or found)
    run(TEST, "--benchmark-json=out.json").assert_outcomes(passed=1)
    stats = saved(pytester)["benchmarks"][0]["stats"]
    assert stats["data"] == pytest.approx(found.samples)
    assert (stats["median"], stats["iterations"]) == (pytest.approx(0.003), batch)


def test_rates_and_clocks_are_in_the_json(run, pytester, measured):
    run(TEST, "--benchmark-json=out.json")
    extra = saved(pytester)["benchmarks"][0]["extra_info"]
    assert extra["GB/s"] == pytest.approx(2000)
    assert (extra["clock_mhz"], extra["batch"], extra["cache"], extra["device"]) == (1980.0, 3, "flushed", "a GPU")


def test_a_table_of_rates_comes_at_the_end(run, measured):
    output = run(TEST).stdout
    output.fnmatch_lines(["*GPU benchmarks*", "name*median*spread*GB/s*MHz*L2", "test_work*2 ms*0.0 %*2,000*1980*×3"])
    output.no_fnmatch_line("*TFLOP/s*")


def test_a_quiet_run_has_no_table(run, measured):
    run(TEST, "--benchmark-quiet").stdout.no_fnmatch_line("*GPU benchmarks*")


def test_a_run_is_compared_with_a_saved_one(run, pytester, measured):
    run(TEST, "--benchmark-save=first").assert_outcomes(passed=1)
    result = run(TEST, "--benchmark-compare", "--benchmark-compare-fail=median:1%")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_work*(0001_first)*", "*test_work*(NOW)*"])


def test_this_projects_own_runs_may_be_compared_with_those_of_another_machine(run, pytester, measured):
    """Its configuration makes errors of warnings, but not of pytest-benchmark's about the machine."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    filters = [f"-W{one}" for one in project["tool"]["pytest"]["ini_options"]["filterwarnings"]]
    run(TEST, "--benchmark-compare", "--benchmark-save=first", *filters).assert_outcomes(passed=1)
    (stored,) = (pytester.path / ".benchmarks").rglob("0001_first.json")
    stored.write_text(json.dumps(json.loads(stored.read_text()) | {"machine_info": {"node": "another"}}))
    result = run(TEST, "--benchmark-compare", *filters)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_work*(0001_first)*", "*test_work*(NOW)*"])


def test_the_options_of_pytest_benchmark_are_obeyed(run, measured):
    run(TEST, "--benchmark-max-time=0.5", "--benchmark-min-rounds=9")
    options = measured[0]["options"]
    assert (options.max_seconds, options.min_samples) == (0.5, 9)


def test_so_is_its_marker(run, measured):
    marked = TEST.replace("def test", "import pytest\n@pytest.mark.benchmark(max_time=0.25, group='g')\ndef test")
    run(marked, "--benchmark-max-time=0.5").stdout.fnmatch_lines(["*benchmark 'g'*"])
    assert measured[0]["options"].max_seconds == 0.25


def test_disabled_benchmarks_run_the_code_once(run, measured, no_times):
    result = run(TEST, "--benchmark-disable")
    result.assert_outcomes(passed=1)
    assert not measured
    result.stdout.no_fnmatch_line("*GPU benchmarks*")


def test_a_misspelt_argument_shows_in_disabled_benchmarks_too(run, measured, no_times):
    misspelt = "def test_work(gpu_benchmark):\n    gpu_benchmark(print, bites=3)\n"
    result = run(misspelt, "--benchmark-disable")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*TypeError*bites*"])


def test_skipped_benchmarks_are_skipped(run, measured):
    run(TEST, "--benchmark-skip").assert_outcomes(skipped=1)


def test_benchmarks_only_keeps_them(run, measured):
    source = TEST + "\ndef test_other():\n    pass\n"
    run(source, "--benchmark-only").assert_outcomes(passed=1, skipped=1)


def test_without_device_times_the_code_runs_once_and_nothing_is_kept(run, no_times):
    result = run(TEST)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*GB/s*")
    result.stdout.no_fnmatch_line("*Median*")


def counted(launches):
    """A measurement that was not timed: so many launches of one kernel, with one metric that the table has."""
    launch = {"kernel": "saxpy", "grid": (4, 2, 1), "block": (256, 1, 1), "smsp__inst_executed.sum": 7, "other": 3}
    return Measurement((), counters=(launch,) * launches)


def test_counters_are_shown_where_there_are_no_times(run, monkeypatch):
    monkeypatch.setattr(pytest_plugin, "measure", lambda fn, **_: fn() or counted(1))
    output = run(TEST).stdout
    output.fnmatch_lines(["not timed*", "name*kernel*grid*block*warp instructions", "test_work  saxpy*4×2*256*7"])
    output.no_fnmatch_line("*launches*")


def test_equal_launches_share_a_line(run, monkeypatch):
    monkeypatch.setattr(pytest_plugin, "measure", lambda fn, **_: fn() or counted(3))
    run(TEST).stdout.fnmatch_lines(["test_work  saxpy*×3*4×2*256*7"])


def test_counters_are_in_the_json_beside_what_was_timed(run, pytester, monkeypatch):
    monkeypatch.setattr(pytest_plugin, "measure", lambda fn, **_: fn() or counted(1))
    timed = "def test_time(benchmark):\n    benchmark(lambda: None)\n"
    run(TEST + "\n" + timed, "--benchmark-json=out.json", "--benchmark-max-time=0.01")
    (found,) = saved(pytester)["counted"]
    assert found["name"] == "test_work"
    assert (found["counters"][0]["kernel"], found["counters"][0]["other"]) == ("saxpy", 3)


def test_counters_alone_are_in_the_json_too(run, pytester, monkeypatch):
    monkeypatch.setattr(pytest_plugin, "measure", lambda fn, **_: fn() or counted(1))
    # pytest-benchmark warns where it saves nothing.
    run(TEST, "--benchmark-json=out.json", "-W", "error").assert_outcomes(passed=1)
    found = saved(pytester)
    assert [one["name"] for one in found["counted"]] == ["test_work"]
    assert (found["benchmarks"], "cpu" in found["machine_info"], "id" in found["commit_info"]) == ([], True, True)


def test_the_table_says_when_launch_latency_is_in_a_time(run, monkeypatch):
    found = Measurement(SAMPLES, cache="warm", blocked=False)
    monkeypatch.setattr(pytest_plugin, "measure", lambda fn, **_: fn() or found)
    run(TEST).stdout.fnmatch_lines(["test_work*warm, launch latency included"])


def test_the_host_fixture_measures_the_host(run, pytester, measured):
    run("def test_host(host_benchmark):\n    host_benchmark(lambda: None)\n", "--benchmark-json=out.json")
    (bench,) = saved(pytester)["benchmarks"]
    assert bench["options"]["timer"] == "measure_host"
    assert bench["stats"]["median"] == pytest.approx(0.002)


def test_the_table_tells_the_hosts_time_from_the_devices(run, monkeypatch):
    monkeypatch.setattr(pytest_plugin, "measure_host", lambda fn, **_: fn() or Measurement(SAMPLES, batch=60, cache=""))
    run("def test_host(host_benchmark):\n    host_benchmark(lambda: None)\n").stdout.fnmatch_lines(
        ["test_host*host's time ×60"]
    )


def test_what_the_code_raises_fails_the_test_without_a_warning(run, no_times):
    result = run("def test_work(gpu_benchmark):\n    gpu_benchmark(lambda: 1 / 0)\n", "-W", "error")
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*not used at all*")


def test_the_machine_info_names_gpus_and_versions(run, pytester, measured, monkeypatch):
    class Nvml:
        NvmlError = ZeroDivisionError
        device_get_count_v2 = staticmethod(lambda: 2)
        device_get_handle_by_index_v2 = staticmethod(lambda index: index)
        device_get_name = staticmethod(lambda handle: f"GPU {handle}")
        system_get_driver_version = staticmethod(lambda: "580.1")
        system_get_cuda_driver_version_v2 = staticmethod(lambda: 13010)

    monkeypatch.setattr(machine, "nvml", lambda: Nvml)
    run(TEST, "--benchmark-json=out.json")
    found = saved(pytester)["machine_info"]["gpu"]
    assert found["devices"] == ["GPU 0", "GPU 1"]
    assert (found["driver"], found["cuda_driver"]) == ("580.1", "13.1")
    assert found["cuda-bindings"].startswith("13.")


def test_a_machine_without_nvml_has_no_gpu_in_its_info(monkeypatch):
    def none():
        raise NotSupportedError("no library")

    monkeypatch.setattr(machine, "nvml", none)
    info = {"cpu": "x"}
    pytest_plugin.pytest_benchmark_update_machine_info(info)
    assert info == {"cpu": "x"}


def test_without_pytest_benchmark_the_code_runs_once_and_nothing_is_said(run, no_times):
    source = TEST + "\ndef test_host(host_benchmark):\n    host_benchmark(lambda: None)\n"
    result = run(source, benchmark=False)
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*warning*")


def test_the_package_offers_the_plugin_to_pytest():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert tomllib.loads(text)["project"]["entry-points"]["pytest11"] == {
        "cudart_py": "cudart_py.benchmark.pytest_plugin"
    }


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
    monkeypatch.setenv("CUDART_PY_SIMULATOR_CHECKS", "error")
    result = run(WRONG, "--tb=short")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*SimulatorWarning: kernel copy at *uninitialised value reaches a store*"])
    lines = [line for line in result.outlines if ".py:" in line and " in " in line]
    assert [line.rpartition(" in ")[2] for line in lines] == ["test_copy"]


# -- counters beside a stored run --------------------------------------------------------------


def counting(monkeypatch, sectors):
    launch = {"kernel": "k", "grid": (1, 1, 1), "block": (32, 1, 1), "smsp__inst_executed.sum": 7}
    launch["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] = sectors
    monkeypatch.setattr(pytest_plugin, "measure", lambda fn, **_: fn() or Measurement((), counters=(launch,)))


@pytest.fixture
def stored(run, monkeypatch):
    """A run that is stored, in which the test's kernel touches 100 sectors."""
    counting(monkeypatch, 100)
    run(TEST, "--benchmark-save=first", "-W", "error").assert_outcomes(passed=1)


def test_counters_are_stored_with_full_names_and_groups(stored, pytester):
    (path,) = pytester.path.glob(".benchmarks/*/0001_first.json")
    (found,) = json.loads(path.read_text())["counted"]
    assert found["fullname"].endswith(".py::test_work")
    assert found["group"] is None
    assert found["counters"][0]["kernel"] == "k"


def test_a_run_without_a_change_passes(run, stored, monkeypatch):
    result = run(TEST, "--benchmark-compare", "--counters-compare-fail=sectors:0")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*Counters beside *0001_first.json*", "nothing has changed"])


def test_a_worse_counter_fails_the_run_with_a_table(run, stored, monkeypatch):
    counting(monkeypatch, 130)
    result = run(TEST, "--benchmark-compare=0001", "--counters-compare-fail=sectors:5%")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["benchmark*figure*before*now*change", "*::test_work*sectors*100*130*+30.0 %*WORSE"])
    result.stdout.fnmatch_lines(["the run fails: 1 of the figures became worse by more than the limits: sectors:5%"])


def test_a_change_within_the_limit_is_shown_and_passes(run, stored, monkeypatch):
    counting(monkeypatch, 104)
    result = run(TEST, "--benchmark-compare", "--counters-compare-fail=sectors:5%", "--benchmark-autosave")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*::test_work*sectors*100*104*+4.0 %"])


@pytest.mark.parametrize("arguments", [(), ("--benchmark-compare=0009", "-W", "ignore")])
def test_a_limit_with_nothing_to_compare_is_an_error_and_no_success(run, stored, arguments):
    result = run(TEST, "--counters-compare-fail=sectors:5%", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--counters-compare-fail needs --benchmark-compare*"])


def test_a_limit_names_the_remedy_where_another_python_has_stored_the_run(run, stored, pytester):
    (folder,) = pytester.path.glob(".benchmarks/*")
    (path,) = folder.rename(folder.with_name("Linux-CPython-3.9-64bit")).iterdir()
    result = run(TEST, "--counters-compare-fail=sectors:0", "--benchmark-compare", "-W", "ignore")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*none for this Python ({folder.name}): *--benchmark-compare=FILE"])
    assert run(TEST, "--counters-compare-fail=sectors:0", f"--benchmark-compare={path}").ret == 0


def test_a_limit_fails_where_all_stored_benchmarks_are_gone(run, stored):
    result = run(TEST.replace("test_work", "test_other"), "--benchmark-compare", "--counters-compare-fail=sectors:0")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*::test_other*new", "*::test_work*gone*GONE"])


def test_a_limit_fails_where_the_run_has_none_of_the_stored_benchmarks(run, stored):
    both = TEST + TEST.replace("test_work", "test_other")
    result = run(both, "--benchmark-compare", "--counters-compare-fail=sectors:0", "-k", "other")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*compared nothing: the stored run has no benchmark of this run; store a run again"])


@pytest.mark.parametrize("where", ["the test", "the file"])
def test_a_failure_is_shown_where_a_limit_has_nothing_to_compare(run, stored, where):
    wrong = "raise RuntimeError('out of paper')\n"
    text = wrong if where == "the file" else f"def test_work(gpu_benchmark):\n    {wrong}"
    result = run(text, "--benchmark-compare", "--counters-compare-fail=sectors:0")
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    result.stdout.fnmatch_lines(["*RuntimeError: out of paper"])
    assert "found no counters" not in result.stderr.str()


TWO = """
def test_work(gpu_benchmark):
    gpu_benchmark(list)

def test_other(gpu_benchmark):
    gpu_benchmark(list)
"""


@pytest.fixture
def two_stored(run, monkeypatch, pytester):
    """The file of a run that is stored, of two benchmarks in one module."""
    counting(monkeypatch, 100)
    run(TWO, "--benchmark-save=first").assert_outcomes(passed=2)
    (path,) = pytester.path.glob(".benchmarks/*/0001_first.json")
    return path


def test_a_benchmark_that_was_renamed_fails_the_run_and_asks_for_acceptance(run, two_stored):
    renamed = TWO.replace("test_other", "test_new")
    result = run(renamed, "--benchmark-compare", "--counters-compare-fail=sectors:0")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*::test_new*new", "*::test_other*gone*GONE"])
    result.stdout.fnmatch_lines(
        ["the run fails: *no longer there: *::test_other", "*store the run again to accept it."]
    )
    assert run(renamed, "--benchmark-compare").ret == 0


def test_a_benchmark_whose_file_is_deleted_is_gone_too(run, two_stored):
    (name,) = (one["fullname"] for one in json.loads(two_stored.read_text())["counted"] if one["name"] == "test_other")
    two_stored.write_text(two_stored.read_text().replace(name, "test_deleted.py::test_other"))
    result = run(TWO, "--benchmark-compare", "--counters-compare-fail=sectors:0")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_deleted.py::test_other*gone*GONE"])


@pytest.mark.parametrize("by", ["expression", "name"])
def test_a_benchmark_that_is_left_out_is_not_gone(run, two_stored, request, by):
    arguments = {"expression": ["-k", "work"], "name": [f"{request.node.originalname}.py::test_work"]}[by]
    result = run(TWO, "--benchmark-compare", "--counters-compare-fail=sectors:0", *arguments)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*::test_other*not run"])


def test_another_version_of_nvrtc_is_named(run, stored, pytester, monkeypatch):
    (path,) = pytester.path.glob(".benchmarks/*/0001_first.json")
    assert json.loads(path.read_text())["nvrtc"] == machine.nvrtc_version()
    monkeypatch.setattr(pytest_plugin, "nvrtc_version", lambda: "13.9.1")
    result = run(TEST, "--benchmark-compare")
    result.stdout.fnmatch_lines([f"NVRTC {machine.nvrtc_version()} compiled *, and 13.9.1 those of this one: *"])


def test_a_limit_on_a_driver_that_counts_nothing_is_an_error(run, stored, measured):
    result = run(TEST, "--benchmark-compare", "--counters-compare-fail=sectors:5%")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*found no counters*"])


def test_a_misspelt_limit_is_refused_before_anything_runs(run):
    result = run(TEST, "--counters-compare-fail=sector:5%")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'sector' is no figure*"])


BESIDE = """
calls = []

def test_work(gpu_benchmark):
    found = gpu_benchmark(lambda: calls.append("ours"), beside={"other": lambda: calls.append("other"), "absent": None})
    assert sorted(set(calls)) == ["other", "ours"]
"""


def test_the_ratio_to_a_peer_is_in_the_json_and_in_the_table(run, pytester, measured, event_times):
    run(BESIDE, "--benchmark-json=out.json").stdout.fnmatch_lines(["name*beside*", "test_work*1 × other*"])
    extra = saved(pytester)["benchmarks"][0]["extra_info"]
    assert extra["beside"] == {"other": {"median": 0.002, "ratio": 1.0, "spread": 0.0}}


def test_peers_run_once_where_nothing_is_timed(run, device, no_times):
    source = BESIDE.replace("found =", "assert not calls; found =") + "    assert len(calls) == 2\n"
    run(source, "--benchmark-disable").assert_outcomes(passed=1)
