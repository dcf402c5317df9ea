"""Both engines count exactly what Nsight Compute counted on a GPU, for every pattern of patterns.cu."""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
from pathlib import Path

import pytest

import cudart_py as cuda
from cudart_py.simulator.counters.metrics import MODELLED

HERE = Path(__file__).parent
DATA = HERE / "data" / "h200.json"
LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"
pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized("the software counts, and has no tool beside it")]


def _patterns():
    spec = importlib.util.spec_from_file_location("counter_patterns", HERE / "patterns.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


patterns = _patterns()


@pytest.fixture(scope="module")
def recorded():
    if not DATA.is_file():
        pytest.fail(f"{DATA} is missing: python tests/simulator/counters/record.py {DATA} makes it on a GPU")
    return json.loads(DATA.read_text(encoding="utf-8"))["patterns"]


@pytest.fixture(scope="module")
def launches():
    """Return what each engine has counted: of each pattern its metrics, in the whole and by line."""
    found = {}
    for engine in ("numpy", *(["native"] if importlib.util.find_spec("llvmlite") else [])):
        # Some patterns let threads store to the same place on purpose.
        with pytest.MonkeyPatch.context() as patch, cuda.Device(0), cuda.checks("off"), cuda.profile() as profile:
            patch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
            patterns.launch()
        found[engine] = {launch.kernel: launch for launch in profile.launches}
    return found


@pytest.fixture(scope="module")
def counted(launches):
    return {name: launch.metrics for name, launch in launches["numpy"].items()}


def test_there_are_at_least_forty_patterns():
    assert len(patterns.NAMES) >= 40


@pytest.mark.parametrize("name", patterns.NAMES)
def test_a_pattern_counts_the_same_in_machine_code(launches, name):
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    assert launches["native"][name] == launches["numpy"][name]


@pytest.mark.parametrize("name", patterns.NAMES)
def test_a_pattern_counts_as_on_the_hardware(recorded, counted, name):
    exact = [metric for metric in recorded[name] if metric in counted[name] and metric not in MODELLED]
    assert len(exact) >= 8
    assert {metric: counted[name][metric] for metric in exact} == {metric: recorded[name][metric] for metric in exact}


def test_active_lanes_are_within_a_tenth_in_the_median(recorded, counted):
    errors = [abs(counted[name][LANES] / recorded[name][LANES] - 1) for name in patterns.NAMES]
    assert statistics.median(errors) <= 0.1
    # Where lanes part, too.
    parted = [error for name, error in zip(patterns.NAMES, errors, strict=True) if recorded[name][LANES] < 31.5]
    assert len(parted) >= 8
    assert statistics.median(parted) <= 0.1


def test_atomics_are_within_one_percent(recorded, counted):
    for name in patterns.NAMES:
        for metric in ("red", "atom"):
            sectors = f"l1tex__t_sectors_pipe_lsu_mem_global_op_{metric}.sum"
            assert counted[name][sectors] == pytest.approx(recorded[name][sectors], rel=0.01)
