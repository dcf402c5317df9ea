"""The gate of times: invented stored runs, and invented times in pytest runs of their own."""

from __future__ import annotations

import copy
import json
import random
import re
import statistics
import textwrap
from pathlib import Path

import pytest

from cudart_py.__main__ import main
from cudart_py.benchmark import gate_command, time_gate

# Its copies over the link to the host take more or less time beside the driver's, by a tenth from run to run.
UNSTEADY = "tests/benchmarks/bench_stops.py::test_stop[copies_2d]"
RECORDED = Path(__file__).parents[1] / "benchmarks" / "h200.json"
GPU = {"devices": ["NVIDIA H200"], "driver": "580.159.04"}
# Each benchmark's seconds, its relative noise from process to process, and its peer's seconds.
TRUE = {
    "b.py::copy": (1e-3, 0.002, None),
    "b.py::launch": (4e-6, 0.01, 3e-6),
    "b.py::gemm": (2e-3, 0.003, 2.1e-3),
    "b.py::short": (3e-6, 0.04, None),
}


def stored(seed=0, *, slower=(), host=1.0, gpu=GPU, names=TRUE):
    """Return a run as pytest-benchmark stores it; what is `slower` takes a tenth more time than on the same `host`."""
    generator = random.Random(seed)
    benchmarks = []
    for name in names:
        seconds, noise, peer = TRUE[name]
        theirs = (peer or 0) * host * generator.gauss(1, noise / 3)
        ours = seconds * (host if peer else 1) * generator.gauss(1, noise / 3) * (1.1 if name in slower else 1)
        extra = {"device": gpu["devices"][0]}
        if peer:
            extra["beside"] = {"bare": {"median": theirs, "ratio": ours / theirs, "spread": noise / 2}}
        benchmarks.append(
            {
                "group": None,
                "name": name.partition("::")[2],
                "fullname": name,
                "param": None,
                "params": None,
                "extra_info": extra,
                "options": {},
                "stats": {"median": ours, "iqr": ours * noise, "rounds": 40, "min": ours, "iterations": 1, "data": []},
            }
        )
    machine = {"node": "secret", "python_version": "3.12.3", "gpu": gpu, "cpu": {"brand_raw": "a processor"}}
    return {
        "machine_info": machine,
        "commit_info": {"id": "1"},
        "datetime": "now",
        "version": "5",
        "benchmarks": benchmarks,
    }


def slow(baseline, run, limit=0.05):
    return [one.benchmark for one in time_gate.compare(baseline, run, limit) if one.slower]


BASELINE = time_gate.merge([stored(seed) for seed in (1, 2, 3)])


@pytest.mark.parametrize("name", ["b.py::copy", "b.py::launch", "b.py::gemm"])
def test_a_tenth_more_time_is_found(name):
    assert all(slow(BASELINE, stored(seed, slower=[name])) == [name] for seed in range(10, 110))


def test_unchanged_code_raises_nothing():
    assert not any(slow(BASELINE, stored(seed)) for seed in range(10, 110))


def test_the_recorded_baseline_finds_a_tenth_more_time_of_each_stop():
    baseline = json.loads(RECORDED.read_text())
    assert slow(baseline, baseline) == []
    run, stops = copy.deepcopy(baseline), []
    for found in run["benchmarks"]:
        if "bench_stops.py" in found["fullname"]:
            stops.append(found["fullname"])
            del found["extra_info"]["runs"]  # which would stand for the run's own figures
            found["stats"] = {name: 1.1 * value for name, value in found["stats"].items() if isinstance(value, float)}
            for peer in found["extra_info"].get("beside", {}).values():
                peer["ratio"] *= 1.1
    assert len(stops) > 30
    assert slow(baseline, run) == [stop for stop in stops if stop != UNSTEADY]


def test_what_takes_no_time_is_not_compared():
    run = stored(1)
    run["benchmarks"][0]["stats"]["median"] = 0.0
    assert [one.benchmark for one in time_gate.compare(run, run, 0.05)] == list(TRUE)[1:]


def test_a_slower_host_does_not_change_the_ratio_to_a_peer():
    assert slow(BASELINE, stored(10, host=1.3)) == []
    assert slow(BASELINE, stored(10, host=0.8, slower=["b.py::launch"])) == ["b.py::launch"]


def test_a_benchmark_without_a_common_peer_is_compared_by_its_time():
    run = stored(10)
    run["benchmarks"][1]["extra_info"]["beside"] = {"another": {"median": 1, "ratio": 1, "spread": 0}}
    assert [one.figure for one in time_gate.compare(BASELINE, run, 0.05)] == ["seconds", "seconds", "bare", "seconds"]


def test_a_benchmark_may_ask_for_its_time_to_be_compared():
    run = stored(10)
    peer = run["benchmarks"][1]["extra_info"]["beside"]["bare"]
    peer["ratio"] *= 1.5
    assert slow(BASELINE, run) == ["b.py::launch"]
    run["benchmarks"][1]["extra_info"]["gate"] = "time"
    assert slow(BASELINE, run) == []
    run["benchmarks"][1]["stats"]["median"] *= 1.5
    found = time_gate.compare(BASELINE, run, 0.05)[1]
    assert found.slower
    assert found.figure == "seconds"
    assert time_gate.merge([run])["benchmarks"][1]["extra_info"]["gate"] == "time"


def test_the_limit_grows_with_the_distance_of_the_baselines_runs():
    runs = [stored(1), stored(1), stored(1)]
    for factor, run in zip((0.96, 1, 1.03), runs, strict=True):
        run["benchmarks"][0]["stats"]["median"] *= factor
    found = time_gate.compare(time_gate.merge(runs), stored(1), 0.05)
    assert found[0].limit == pytest.approx(0.12, abs=1e-3)
    assert found[2].limit == 0.05


def test_the_limit_grows_with_the_usual_noise_of_the_group():
    runs = [stored(1), stored(1), stored(1)]
    for run in runs:
        run["benchmarks"] = run["benchmarks"][:3]
        for one in run["benchmarks"]:
            one["group"] = "calls" if one is not run["benchmarks"][2] else "kernels"
            one["extra_info"].pop("beside", None)
    # The runs of the second one happen to agree.
    for factor, run in zip((0.96, 1, 1.04), runs, strict=True):
        run["benchmarks"][0]["stats"]["median"] *= factor
    first, second, other = time_gate.compare(time_gate.merge(runs), runs[1], 0.05)
    assert first.limit == pytest.approx(0.12, abs=1e-3)
    assert second.limit == pytest.approx(0.06, abs=5e-3)
    assert other.limit == 0.05


def test_the_limit_of_one_run_grows_with_its_samples_spread():
    run = stored(1)
    run["benchmarks"][0]["stats"]["iqr"] = run["benchmarks"][0]["stats"]["median"]
    found = time_gate.compare(run, run, 0.05)
    assert found[0].limit == pytest.approx(3 * 0.929 / 40**0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("gpu", "what"),
    [
        ({"devices": ["NVIDIA H100"], "driver": "580.1"}, "GPU is NVIDIA H200, and this machine's NVIDIA H100"),
        ({"devices": ["NVIDIA H200"], "driver": "590.1"}, "driver is 580, and this machine's 590"),
        ({"devices": ["NVIDIA H200"], "driver": "580.2"}, None),
    ],
)
def test_another_gpu_or_driver_is_refused(gpu, what):
    found = time_gate.refusal(BASELINE, stored(1, gpu=gpu))
    assert found is None if what is None else what in found


def test_versions_that_differ_are_named():
    run = stored(1, gpu=GPU | {"torch": "2.11"})
    assert time_gate.differences(BASELINE, run) == ["torch unknown then, 2.11 now"]


def test_a_baseline_is_a_small_stored_run_without_the_hosts_name():
    text = time_gate.baseline_text(BASELINE)
    assert json.loads(text) == BASELINE
    assert len(text.splitlines()) == len(TRUE) + 2
    assert len(text) < 1000 * len(TRUE)
    assert "secret" not in text
    middle = statistics.median(stored(seed)["benchmarks"][0]["stats"]["median"] for seed in (1, 2, 3))
    assert BASELINE["benchmarks"][0]["stats"]["median"] == pytest.approx(middle, rel=1e-5)


# The command, with stored runs


@pytest.fixture
def gate(tmp_path, capsys, monkeypatch):
    """Run the command on invented stored runs; return its status and what it printed."""
    monkeypatch.setattr(gate_command, "gpu_info", lambda: GPU)
    (tmp_path / "baseline.json").write_text(time_gate.baseline_text(BASELINE))

    def run(*runs, options=()):
        given = []
        for number, one in enumerate(runs):
            (tmp_path / f"{number}.json").write_text(json.dumps(one))
            given += ["--stored", str(tmp_path / f"{number}.json")]
        status = main(["gate", *options, *given, str(tmp_path / "baseline.json")])
        return status, capsys.readouterr().out

    return run


def test_the_command_fails_for_what_is_slower_in_two_further_runs(gate):
    changed = [stored(seed, slower=["b.py::gemm"]) for seed in (10, 11, 12)]
    status, text = gate(*changed)
    assert status == 1
    (row,) = [line for line in text.splitlines() if "SLOWER" in line]
    assert row.split()[:4] == ["b.py::gemm", "time", "over", "bare"]
    assert "4 benchmarks compared" in text
    assert "1 slower" in text


def test_the_command_passes_what_is_slower_once(gate):
    status, text = gate(stored(10, slower=["b.py::copy"]), stored(11), stored(12))
    assert status == 0
    assert "not again" in text


def crowded(peers, *, slower=()):
    """Return a baseline and a run with five calls beside others' code, which takes so many times as long in the run."""
    runs = [stored(1), stored(2)]
    for run in runs:
        call = run["benchmarks"][1]
        copies = [copy.deepcopy(call) for _ in peers]
        for number, one in enumerate(copies):
            one["fullname"] = f"b.py::call{number}"
        run["benchmarks"] = [run["benchmarks"][0], *copies]
    for one, times in zip(runs[1]["benchmarks"][1:], peers, strict=True):
        one["extra_info"]["beside"]["bare"]["median"] *= times
    for one in runs[1]["benchmarks"]:
        if one["fullname"] in slower:
            one["stats"]["median"] *= 1.5
    return time_gate.merge(runs[:1]), runs[1]


def test_how_much_slower_peers_are_is_their_upper_quartile():
    assert time_gate.slowdown_of_peers(*crowded([1, 1, 1, 1, 1])) == pytest.approx(1, abs=0.02)
    assert time_gate.slowdown_of_peers(*crowded([1, 1, 1, 2, 2])) == pytest.approx(2, abs=0.04)
    assert time_gate.slowdown_of_peers(*crowded([1, 1, 1])) is None
    assert time_gate.slowdown_of_peers(stored(1), stored(2, names=["b.py::copy"])) is None


@pytest.mark.parametrize(("peers", "status"), [([1] * 5, 1), ([1, 1, 1, 1, 2], 1), ([1, 1, 2, 2, 2], 2)])
def test_a_busy_machine_is_no_judge_of_what_is_slower(tmp_path, capsys, peers, status):
    baseline, run = crowded(peers, slower=["b.py::copy"])
    for name, one in (("baseline", baseline), ("run", run)):
        (tmp_path / name).write_text(json.dumps(one))
    assert main(["gate", "--stored", str(tmp_path / "run"), str(tmp_path / "baseline")]) == status
    text = capsys.readouterr().out
    assert "b.py::copy" in text
    assert ("the machine is busy or slower than the baseline's" in text) == (status == 2)
    _, quiet = crowded([2] * 5)
    (tmp_path / "run").write_text(json.dumps(quiet))
    assert main(["gate", "--stored", str(tmp_path / "run"), str(tmp_path / "baseline")]) == 0


def test_two_further_runs_that_do_not_agree_ask_for_a_third(gate):
    runs = [stored(10 + n, slower=["b.py::copy"] if slower else []) for n, slower in enumerate((1, 0, 1, 1))]
    assert gate(*runs)[0] == 1
    assert gate(*runs[:3], stored(14))[0] == 0


def test_the_command_says_how_wide_limits_are(gate):
    run = stored(1)
    run["benchmarks"][0]["stats"]["median"] *= 0.9
    assert gate(stored(1), run, stored(1), options=["--record"])[0] == 0
    assert "1 of them differ so much from run to run that their limits are up to 30%" in gate(stored(1))[1]


def test_the_command_refuses_another_gpu(gate):
    status, text = gate(stored(1, gpu={"devices": ["NVIDIA H100"], "driver": "580.1"}))
    assert status == 2
    assert "the baseline's GPU is NVIDIA H200, and this machine's NVIDIA H100" in text


def test_another_gpu_is_refused_before_anything_is_run(gate, monkeypatch):
    monkeypatch.setattr(gate_command, "gpu_info", lambda: {"devices": ["NVIDIA H100"], "driver": "580.1"})
    monkeypatch.setattr(gate_command.subprocess, "run", None)
    status, text = gate()
    assert status == 2
    assert "NVIDIA H100" in text


def test_a_run_with_nothing_in_common_does_not_pass(gate):
    run = copy.deepcopy(stored(1))
    for one in run["benchmarks"]:
        one["fullname"] += "_new"
    assert gate(run)[0] == 2


def test_the_command_records_a_baseline_and_adds_to_it(gate, tmp_path):
    assert gate(stored(1), stored(2), options=["--record"])[0] == 0
    assert gate(stored(3), options=["--record", "--add"])[0] == 0
    recorded = json.loads((tmp_path / "baseline.json").read_text())
    assert [len(one["extra_info"]["runs"]["seconds"]) for one in recorded["benchmarks"]] == [3] * len(TRUE)
    assert gate(stored(4))[0] == 0
    assert gate(stored(4, gpu=GPU | {"driver": "590"}), options=["--record", "--add"])[0] == 2


def test_a_file_that_is_no_run_is_refused(gate, tmp_path):
    (tmp_path / "baseline.json").write_text("{}")
    status, text = gate(stored(1))
    assert status == 2
    assert "is no stored run" in text


def test_a_file_that_does_not_exist_is_named_with_the_remedy(tmp_path, capsys):
    assert main(["gate", str(tmp_path / "none.json")]) == 2
    text = capsys.readouterr().out
    assert f"there is no file {tmp_path / 'none.json'}; cudart-py gate --record FILE" in text


def test_a_stored_run_of_counts_is_refused_by_its_name(gate):
    status, text = gate({**stored(1), "benchmarks": []})
    assert status == 2
    assert re.search(r"\.json has no times; counts of the simulator are compared by pytest, with --benchmark-", text)


@pytest.mark.parametrize("options", [["--runs", "0"], ["--runs", "x"]])
def test_no_runs_are_refused(gate, options):
    with pytest.raises(SystemExit, match="2"):
        gate(stored(1), options=["--record", *options])


@pytest.mark.parametrize("limit", ["nan", "inf", "-5", "x"])
def test_a_limit_with_which_nothing_could_be_slower_is_refused(gate, limit, capsys):
    with pytest.raises(SystemExit, match="2"):
        gate(stored(1), stored(2), options=["--limit", limit])
    assert "is not a percentage of 0 or more" in capsys.readouterr().err


def test_runs_of_two_gpus_make_no_baseline(gate):
    assert gate(stored(1), stored(2, gpu=GPU | {"driver": "590"}), options=["--record"])[0] == 2


def test_a_folder_that_is_not_there_is_said_before_anything_is_run(monkeypatch, capsys):
    monkeypatch.setattr(gate_command.subprocess, "run", None)
    assert main(["gate", "--record", "nowhere/baseline.json"]) == 2
    assert "there is no folder nowhere" in capsys.readouterr().out


# The command, with pytest runs of invented times

CONFTEST = """
    import json, pathlib
    from pytest_benchmark import plugin
    from cudart_py.benchmark import Measurement, machine, peers, pytest_plugin

    folder = pathlib.Path(__file__).parent
    number = len(list(folder.glob("ran_*")))
    (folder / f"ran_{number}").touch()
    times = json.loads((folder / "times.json").read_text())

    def measure(fn, **given):
        seconds = fn()[min(number, len(fn()) - 1)]
        return Measurement((seconds, seconds, seconds), device="NVIDIA H200")

    pytest_plugin.measure = measure
    peers.has_capability = lambda name: True
    pytest_plugin.gpu_info = lambda: {"devices": ["NVIDIA H200"], "driver": "580.159.04"}
    plugin.get_cpu_info = dict  # it takes a second to find out
"""
BENCHMARKS = """
    import pytest
    from conftest import times

    @pytest.mark.parametrize("name", times)
    def test_speed(gpu_benchmark, name):
        gpu_benchmark(lambda: times[name], beside={"bare": lambda: [1.0]} if "bare" in name else None)

    def test_no_benchmark():
        raise AssertionError("not run")
"""


@pytest.fixture
def project(tmp_path, monkeypatch, capfd):
    """A project of its own: write each benchmark's time in each run of pytest, then run the command in it."""
    (tmp_path / "conftest.py").write_text(textwrap.dedent(CONFTEST))
    (tmp_path / "test_speed.py").write_text(textwrap.dedent(BENCHMARKS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gate_command, "gpu_info", lambda: GPU)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

    def run(times, *options):
        for ran in tmp_path.glob("ran_*"):
            ran.unlink()
        (tmp_path / "times.json").write_text(json.dumps(times))
        status = main(["gate", *options, "baseline.json", "-q", "-p", "no:cacheprovider"])
        return status, capfd.readouterr().out, len(list(tmp_path.glob("ran_*")))

    return run


def test_a_projects_benchmarks_are_recorded_gated_and_run_again(project):
    usual = {"copy of 1 MiB": [1.0], "fill": [1.0], "launch, bare": [2.0]}
    status, text, runs = project(usual, "--record", "--runs", "1")
    assert (status, runs) == (0, 1), text
    status, text, runs = project(usual | {"fill": [1.2, 1.0, 1.0], "launch, bare": [2.2, 2.2, 2.19]})
    assert (status, runs) == (1, 3), text
    rows = {line.split()[-1]: line.split()[-7:] for line in text.splitlines() if "test_speed.py::" in line}
    assert rows["SLOWER"] == ["2", "2.195", "+9.8", "%", "5.0", "%", "SLOWER"]
    assert rows["again"][-5:] == ["%", "5.0", "%", "not", "again"]
    assert "test_speed[fill] (baseline)" in text, "pytest-benchmark's own table has both"
    assert "3 benchmarks compared with baseline.json: 1 slower, 0 faster; 0 are new, 0 did not run" in text


def test_benchmarks_that_fail_fail_the_gate(project, tmp_path):
    (tmp_path / "baseline.json").write_text(time_gate.baseline_text(BASELINE))
    (tmp_path / "test_speed.py").write_text("def test_wrong(gpu_benchmark):\n    gpu_benchmark(lambda: 1 / 0)\n")
    status, text, _ = project({})
    assert status == 1
    assert "the benchmarks did not pass" in text
