"""The gate for times, with invented stored runs, and with invented times in separate runs of pytest."""

import copy
import json
import random
import re
import shlex
import statistics
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudart_py.__main__ import main
from cudart_py.benchmark import Measurement, pytest_plugin
from cudart_py.benchmark.gates import gate_command, pytest_runs, time_gate

pytest_plugins = ["pytester"]

# The time of its copies over the link, relative to the driver's copies, varies by a tenth from run to run.
UNSTEADY = "tests/benchmarks/bench_stops.py::test_stop[copies_2d]"
RECORDED = Path(__file__).parents[1] / "benchmarks" / "h200.json"
DOCS = Path(__file__).parents[2] / "docs"
GPU = {"devices": ["NVIDIA H200"], "driver": "580.159.04"}
# By benchmark: its seconds, its relative noise between processes, and its peer's seconds.
TRUE = {
    "b.py::copy": (1e-3, 0.002, None),
    "b.py::launch": (4e-6, 0.01, 3e-6),
    "b.py::gemm": (2e-3, 0.003, 2.1e-3),
    "b.py::short": (3e-6, 0.04, None),
}


def stored(seed=0, *, slower=(), host=1.0, gpu=GPU, names=TRUE):
    """Return a run as pytest-benchmark stores it; benchmarks in `slower` take a tenth more time.

    `host` is a factor for the times of host calls, which are those with a peer, and of their peers.
    """
    generator = random.Random(seed)
    benchmarks = []
    for name in names:
        seconds, noise, peer = TRUE[name]
        theirs = (peer or 0) * host * generator.gauss(1, noise / 3)
        ours = seconds * (host if peer else 1) * generator.gauss(1, noise / 3) * (1.1 if name in slower else 1)
        extra = {"device": gpu["devices"][0]}
        if peer:
            extra["beside"] = {"bare": {"median": theirs, "ratio": ours / theirs, "spread": noise / 2}}
        stats = {"median": ours, "iqr": ours * noise, "rounds": 40, "data": []}
        named = {"group": None, "name": name, "fullname": name, "param": None}
        benchmarks.append({**named, "extra_info": extra, "stats": stats})
    machine = {"node": "secret", "python_version": "3.12.3", "gpu": gpu, "cpu": {"brand_raw": "a processor"}}
    kept = {"machine_info": machine, "commit_info": {"id": "1"}, "datetime": "now", "version": "5"}
    return {**kept, "benchmarks": benchmarks}


def slow(baseline, run, limit=0.05):
    return [one.benchmark for one in time_gate.compare(baseline, run, limit) if one.slower]


BASELINE = time_gate.merge([stored(seed) for seed in (1, 2, 3)])
OTHER_GPU = "the baseline's GPU is NVIDIA H200, and {}'s is NVIDIA H100"


def changed(run, number, **values):
    """Change a run and return it: multiply a benchmark's `time`, its `ratio` to its peer, or its `peer`'s time."""
    found = run["benchmarks"][number]
    found["stats"]["median"] *= values.get("time", 1)
    if "ratio" in values or "peer" in values:
        found["extra_info"]["beside"]["bare"]["ratio"] *= values.get("ratio", 1)
        found["extra_info"]["beside"]["bare"]["median"] *= values.get("peer", 1)
    return run


def with_medians(*factors):
    """Return runs that differ only in the time of the first benchmark, by these factors."""
    return [changed(stored(1), 0, time=factor) for factor in factors]


@pytest.mark.parametrize("name", ["b.py::copy", "b.py::launch", "b.py::gemm", None])
def test_a_tenth_more_time_is_found_and_unchanged_code_raises_nothing(name):
    expected = [name] if name else []
    assert all(slow(BASELINE, stored(seed, slower=expected)) == expected for seed in range(10, 60))


def test_the_recorded_baseline_finds_a_tenth_more_time_of_each_stop():
    baseline = json.loads(RECORDED.read_text())
    assert slow(baseline, baseline) == []
    run, stops = copy.deepcopy(baseline), []
    for found in run["benchmarks"]:
        if "bench_stops.py" in found["fullname"]:
            stops.append(found["fullname"])
            del found["extra_info"]["runs"]  # they would be used instead of the run's own figures
            found["stats"] = {name: 1.1 * value for name, value in found["stats"].items() if isinstance(value, float)}
            for peer in found["extra_info"].get("beside", {}).values():
                peer["ratio"] *= 1.1
    assert len(stops) > 30
    assert slow(baseline, run) == [stop for stop in stops if stop != UNSTEADY]


def test_a_slower_host_does_not_change_the_ratio_to_a_peer():
    assert slow(BASELINE, stored(10, host=1.3)) == []
    assert slow(BASELINE, stored(10, host=0.8, slower=["b.py::launch"])) == ["b.py::launch"]


def test_a_benchmark_without_a_common_peer_is_compared_by_its_time():
    run = stored(10)
    run["benchmarks"][1]["extra_info"]["beside"] = {"another": {"median": 1, "ratio": 1, "spread": 0}}
    assert [one.figure for one in time_gate.compare(BASELINE, run, 0.05)] == ["seconds", "seconds", "bare", "seconds"]


def test_a_benchmark_may_ask_for_its_time_to_be_compared():
    run = changed(stored(10), 1, ratio=1.5)
    assert slow(BASELINE, run) == ["b.py::launch"]
    run["benchmarks"][1]["extra_info"]["gate"] = "time"
    assert slow(BASELINE, run) == []
    found = time_gate.compare(BASELINE, changed(run, 1, time=1.5), 0.05)[1]
    assert (found.slower, found.figure) == (True, "seconds")
    assert time_gate.merge([run])["benchmarks"][1]["extra_info"]["gate"] == "time"


def test_the_limit_grows_with_the_distance_of_the_baselines_runs_and_the_usual_noise_of_the_group():
    runs = with_medians(0.96, 1, 1.04)  # the times of the second benchmark agree
    for run in runs:
        run["benchmarks"] = run["benchmarks"][:3]
        for one, group in zip(run["benchmarks"], ("calls", "calls", "kernels"), strict=True):
            one["group"] = group
            one["extra_info"].pop("beside", None)
    first, second, other = time_gate.compare(time_gate.merge(runs), runs[1], 0.05)
    assert first.limit == pytest.approx(0.12, abs=1e-3)
    assert second.limit == pytest.approx(0.06, abs=5e-3)
    assert other.limit == 0.05


def test_the_limit_of_one_run_grows_with_its_samples_spread_and_what_takes_no_time_is_not_compared():
    run = changed(stored(1), 3, time=0)
    run["benchmarks"][0]["stats"]["iqr"] = run["benchmarks"][0]["stats"]["median"]
    found = time_gate.compare(run, run, 0.05)
    assert found[0].limit == pytest.approx(3 * 0.929 / 40**0.5, rel=1e-3)
    assert [one.benchmark for one in found] == list(TRUE)[:3]


def test_other_versions_are_named_and_refused_only_of_a_major_version_of_the_driver():
    run = stored(1, gpu=GPU | {"torch": "2.11", "driver": "580.2"})
    assert time_gate.refusal(BASELINE, run, "the run") is None
    assert time_gate.differences(BASELINE, run) == [
        "driver differs: 580.159.04 in the baseline, 580.2 in the run",
        "torch differs: unknown in the baseline, 2.11 in the run",
    ]
    assert "driver is 580" in time_gate.refusal(BASELINE, stored(1, gpu=GPU | {"driver": "590.1"}), "the run")


def test_a_baseline_is_a_small_stored_run_without_the_hosts_name():
    text = time_gate.baseline_text(BASELINE)
    assert json.loads(text) == BASELINE
    assert len(text.splitlines()) == len(TRUE) + 2
    assert len(text) < 1000 * len(TRUE)
    assert "secret" not in text
    middle = statistics.median(stored(seed)["benchmarks"][0]["stats"]["median"] for seed in (1, 2, 3))
    assert BASELINE["benchmarks"][0]["stats"]["median"] == pytest.approx(middle, rel=1e-5)


# The command with stored runs


def on_a_gpu(monkeypatch):
    """Let the command find a GPU."""
    monkeypatch.setattr(gate_command, "gpu_info", lambda: GPU)
    monkeypatch.setattr(gate_command, "capabilities", lambda: {"gpu_timing"})


@pytest.fixture
def gate(tmp_path, capsys, monkeypatch):
    """Return a function that runs the command on invented stored runs, and returns its status and its output."""
    on_a_gpu(monkeypatch)
    monkeypatch.setattr(pytest_runs.subprocess, "run", None)
    (tmp_path / "baseline.json").write_text(time_gate.baseline_text(BASELINE))

    def run(*runs, options=(), baseline=None):
        if baseline is not None:
            (tmp_path / "baseline.json").write_text(baseline)
        given = []
        for number, one in enumerate(runs):
            (tmp_path / f"{number}.json").write_text(json.dumps(one))
            given += ["--stored", str(tmp_path / f"{number}.json")]
        status = main(["gate", *options, *given, str(tmp_path / "baseline.json")])
        return status, capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("slower", "status"),
    [((1, 1, 1), 1), ((1, 0, 0), 0), ((1, 0, 1, 1), 1), ((1, 0, 1, 0), 0)],
    ids=["in two further runs", "once", "asks for a third", "not in the third"],
)
def test_the_command_fails_for_what_is_slower_in_most_further_runs(gate, slower, status):
    found, text = gate(*(stored(10 + n, slower=["b.py::gemm"] if each else []) for n, each in enumerate(slower)))
    rows = [line.split() for line in text.splitlines() if "b.py::gemm" in line]
    assert (found, [row[:4] for row in rows]) == (status, [["b.py::gemm", "time", "over", "bare"]])
    assert ("SLOWER" in rows[0], "not again" in text) == (status == 1, status == 0)
    assert "4 benchmarks compared" in text
    assert f"{status} slower" in text


def test_the_outcome_is_written_for_machines_and_for_comments(gate, tmp_path):
    runs = [stored(10 + n, slower=["b.py::gemm"]) for n in range(3)]
    for run in runs:
        run["machine_info"]["python_version"] = "3.13.0"
    options = ["--json", str(tmp_path / "gate.json"), "--markdown", "-"]
    status, text = gate(*runs, options=options)
    data = json.loads((tmp_path / "gate.json").read_text())
    assert (status, data["outcome"], data["compared"], data["slower"]) == (1, "failed", 4, 1)
    by_name = {one["benchmark"]: one for one in data["benchmarks"]}
    assert {name: one["verdict"] for name, one in by_name.items() if one["verdict"]} == {"b.py::gemm": "slower"}
    assert by_name["b.py::gemm"]["change"] == pytest.approx(0.1, abs=0.03)
    assert "1 of 4" in data["reason"]
    comment = text  # and nothing else is on standard output
    assert comment.startswith("### Benchmarks: 1 of 4 benchmarks became slower")
    assert re.search(
        r"^\| b\.py::gemm \| time over bare \|.*\| \+[\d.]+ % \| [\d.]+ % \| slower \|$", comment, re.MULTILINE
    )
    assert "- Python differs: 3.12.3 in the baseline, 3.13.0 in the run" in comment
    assert comment.count("1 of 4 benchmarks") == 1
    assert "The limit is 5 %, or more" in comment


def test_a_comment_has_the_commands_of_a_refusal_as_code(gate):
    status, text = gate(stored(1) | {"benchmarks": []}, options=["--markdown", "-"])
    assert status == 2
    assert re.fullmatch(
        r"### Benchmarks: nothing was compared\n\ncudart-py gate: \S*0\.json has no times\. [^`]*:\n\n"
        r"```sh\nCUDART_PY_DRIVER=simulator .*--benchmark-json=.*\nCUDART_PY_DRIVER=simulator .*\n```\n",
        text,
    )


def test_the_command_that_accepts_a_stored_run_records_that_run(gate, tmp_path):
    _, text = gate(stored(10, slower=["b.py::gemm"]))
    command = re.search("record the baseline again: cudart-py (.*)", text)[1]
    assert main(shlex.split(command)) == 0
    assert gate(stored(10, slower=["b.py::gemm"]))[0] == 0


def test_a_gate_that_compares_nothing_says_so_in_its_json_too(gate, tmp_path):
    place = tmp_path / "gate.json"
    status, _ = gate(stored(1, gpu=GPU | {"devices": ["NVIDIA H100"]}), options=["--json", str(place)])
    data = json.loads(place.read_text())
    assert (status, data["outcome"], data["compared"]) == (2, "refused", 0)
    assert OTHER_GPU.format("the run") in data["reason"]


def crowded(peers, *, slower=False):
    """Return a baseline and a run of calls with peers; `peers` has the factor of each peer's time in the run."""
    runs = [stored(1), stored(2)]
    for run in runs:
        first, call = run["benchmarks"][:2]
        run["benchmarks"] = [first, *(copy.deepcopy(call) | {"fullname": f"b.py::call{n}"} for n in range(len(peers)))]
    for number, times in enumerate(peers, 1):
        changed(runs[1], number, peer=times)
    return time_gate.merge(runs[:1]), changed(runs[1], 0, time=1.5 if slower else 1)


@pytest.mark.parametrize(
    ("peers", "slower", "status"),
    # If there are enough peers, their upper quartile shows whether the machine is busy.
    [([1, 1, 1, 1, 2], True, 1), ([1, 1, 1, 2, 2], True, 2), ([2] * 5, False, 0), ([2] * 3, True, 1)],
)
def test_a_busy_machine_is_no_judge_of_what_is_slower(gate, peers, slower, status):
    baseline, run = crowded(peers, slower=slower)
    found, text = gate(run, baseline=json.dumps(baseline))
    assert (found, "b.py::copy" in text) == (status, slower)
    assert ("the machine is busy" in text) == (status == 2)


def test_the_command_records_a_baseline_and_adds_to_it(gate, tmp_path):
    assert gate(stored(1), stored(2), options=["--record"])[0] == 0
    assert gate(stored(3), options=["--record", "--add"])[0] == 0
    recorded = json.loads((tmp_path / "baseline.json").read_text())
    assert [len(one["extra_info"]["runs"]["seconds"]) for one in recorded["benchmarks"]] == [3] * len(TRUE)
    assert gate(stored(4))[0] == 0
    other = stored(4, gpu=GPU | {"driver": "590"})
    assert gate(other, options=["--record", "--add"])[0] == 2
    assert gate(stored(1), other, options=["--record"])[0] == 2
    assert gate(*with_medians(1, 0.9, 1), options=["--record"])[0] == 0
    assert "1 limit above 5 %, because times vary from run to run: at most 30.0 %" in gate(stored(1))[1]


@pytest.mark.parametrize(
    ("run", "baseline", "said"),
    [
        (stored(1) | {"benchmarks": [one | {"fullname": "new"} for one in stored(1)["benchmarks"]]}, None, ""),
        (stored(1), "{}", "is not a stored run, because it has no 'benchmarks'"),
        (stored(1), "{", "is not a stored run, because it is not JSON"),
        (stored(1) | {"benchmarks": []}, None, ".json has no times. To compare counters of the simulator instead"),
        (stored(1, gpu={"devices": ["NVIDIA H100"], "driver": "580.1"}), None, OTHER_GPU.format("the run")),
    ],
    ids=["nothing in common", "no run", "no JSON", "counts", "another GPU"],
)
def test_what_cannot_be_compared_does_not_pass(gate, run, baseline, said):
    status, text = gate(run, baseline=baseline)
    assert status == 2
    assert said in text


def test_another_gpu_is_refused_before_anything_is_run(gate, monkeypatch):
    monkeypatch.setattr(gate_command, "gpu_info", lambda: {"devices": ["NVIDIA H100"], "driver": "580.1"})
    status, text = gate()
    assert (status, OTHER_GPU.format("this machine") in text) == (2, True)


@pytest.mark.parametrize("options", [[], ["--record"]])
def test_without_a_gpu_the_commands_for_counters_are_shown_before_anything_is_run(gate, monkeypatch, capsys, options):
    monkeypatch.setattr(gate_command, "capabilities", frozenset)
    assert main(["gate", *options, "baseline.json", "a b.py"]) == 2
    text = capsys.readouterr().out
    command = "  CUDART_PY_DRIVER=simulator python -m pytest 'a b.py' --benchmark"
    assert f"{command}-json=accepted.json" in text
    compared = text.partition(f"{command}-compare=accepted.json ")[2].splitlines()[0]
    for guide in ("guide/ci.md", "tracking.md"):
        limits = re.search(r"^    (--counters-compare-fail=.*)$", (DOCS / guide).read_text(), re.MULTILINE)
        assert limits is not None
        assert compared == limits[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["{}/none.json"], "{}/none.json does not exist: record it with cudart-py gate --record {}/none.json"),
        (
            ["--stored", "{}/none.json", "{}/baseline.json"],
            "none.json does not exist: store a run with ",
        ),
        (["--add", "{}/baseline.json"], "--add needs --record"),
        (["--runs", "2", "{}/baseline.json"], "--runs needs --record"),
        (["--record", "--json", "{}/out", "{}/baseline.json"], "--record compares nothing"),
        (["{}/baseline.json", "b.py", "--json={}/out"], "--json is an option of cudart-py gate: write it before"),
        (["--record", "{}/nowhere/baseline.json"], "the folder {}/nowhere does not exist"),
        *((["--runs", value, "{}/baseline.json"], "--runs") for value in ("0", "x")),
        *((["--limit", value, "{}/baseline.json"], "is not a percentage") for value in ("nan", "inf", "-5", "x")),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_is(gate, tmp_path, capsys, options, said):
    try:
        status = main(["gate", *(option.format(tmp_path, tmp_path) for option in options)])
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert said.format(tmp_path, tmp_path) in "".join(capsys.readouterr())


# The command with pytest runs of invented times

BENCHMARKS = """
import json, pathlib, pytest

times = json.loads(pathlib.Path(__file__).with_name("times.json").read_text())

@pytest.mark.parametrize("name", times)
def test_speed(gpu_benchmark, name):
    gpu_benchmark(lambda: times[name], beside={"bare": lambda: [1.0]} if "bare" in name else None)

def test_no_benchmark():
    raise AssertionError("not run")
"""


def test_a_projects_benchmarks_are_recorded_gated_and_run_again(pytester, run, monkeypatch, capfd, event_times):
    (pytester.path / "test_speed.py").write_text(BENCHMARKS)
    on_a_gpu(monkeypatch)
    monkeypatch.setattr(pytest_plugin, "gpu_info", lambda: GPU)
    runs, outputs = [], set()

    def measure(fn, **arguments):
        seconds = fn()[min(len(runs), len(fn())) - 1]
        return Measurement((seconds, seconds, seconds), device="NVIDIA H200")

    def start(command, **arguments):
        runs.append(command)
        outputs.add(arguments["stdout"])
        done = run("", *command[3:])
        return SimpleNamespace(returncode=int(done.ret), stdout=done.stdout.str(), stderr=done.stderr.str())

    monkeypatch.setattr(pytest_plugin, "measure", measure)
    monkeypatch.setattr(pytest_runs, "subprocess", SimpleNamespace(run=start, PIPE=-1))

    def gate(times, *options):
        """Set the time of each benchmark in each run of pytest, and run the command."""
        runs.clear()
        (pytester.path / "times.json").write_text(json.dumps(times))
        status = main(["gate", *options, "baseline.json", "-q", "-p", "no:cacheprovider"])
        return status, len(runs), capfd.readouterr().out

    usual = {"copy of 1 MiB": [1.0], "fill": [1.0], "launch, bare": [2.0]}
    assert gate(usual, "--record", "--runs", "1")[:2] == (0, 1)
    *found, text = gate(usual | {"fill": [1.2, 1.0, 1.0], "launch, bare": [2.2, 2.2, 2.19]})
    assert found == [1, 3], text
    rows = {line.split()[-1]: line.split()[-7:] for line in text.splitlines() if "test_speed.py::" in line}
    assert rows["SLOWER"] == ["2", "2.195", "+9.8", "%", "5.0", "%", "SLOWER"]
    assert rows["again"][-5:] == ["%", "5.0", "%", "not", "again"]
    assert "test_speed[fill] (baseline)" in text, "pytest-benchmark's own table has both"
    assert json.loads(gate(usual, "--json", "-")[-1])["outcome"] == "passed"
    assert 2 in outputs, "pytest writes to standard error"
    assert "3 benchmarks compared with baseline.json: 1 slower, 0 faster, 0 new, 0 not run" in text


def test_recording_names_the_benchmarks_without_times_and_fails(gate, tmp_path):
    partly = stored(2)
    lost = partly["benchmarks"].pop()["fullname"]
    status, text = gate(partly | {"untimed": [lost]}, options=["--record"])
    assert (status, lost in text) == (2, True)
    recorded = json.loads((tmp_path / "baseline.json").read_text())
    assert [one["fullname"] for one in recorded["benchmarks"]] == [one["fullname"] for one in partly["benchmarks"]]
    counted = stored(1) | {"counted": [{"name": "more", "fullname": "b.py::more", "counters": []}]}
    status, text = gate(counted, options=["--record"])
    assert (status, "b.py::more" in text) == (2, True)
    assert gate(stored(1), partly | {"untimed": [lost]}, options=["--record"])[0] == 0, "another run has its time"


def test_benchmarks_that_fail_fail_the_gate(tmp_path, monkeypatch, capfd):
    """The benchmarks run in a separate process, which the command starts. It loads only the plugins that they need."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = ("-p", "benchmark", "-p", "cudart_py.benchmark.pytest_plugin", "-p", "no:cacheprovider")
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    on_a_gpu(monkeypatch)
    (tmp_path / "baseline.json").write_text(time_gate.baseline_text(BASELINE))
    (tmp_path / "test_speed.py").write_text("def test_wrong(gpu_benchmark):\n    gpu_benchmark(lambda: 1 / 0)\n")
    assert main(["gate", "baseline.json", "-q", *plugins]) == 1
    assert "the benchmarks did not pass" in capfd.readouterr().out
