"""Both engines count exactly what Nsight Compute counted on a GPU, for the patterns of patterns.cu."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.counters.metrics import MODELLED
from tests.simulator.counters import patterns

DATA = Path(__file__).parent / "data" / "h200.json"
LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized("the software counts, and has no tool beside it")]


@pytest.fixture(scope="module")
def recorded():
    if not DATA.is_file():
        pytest.fail(f"{DATA} is missing: python tests/simulator/counters/record.py {DATA} makes it on a GPU")
    return json.loads(DATA.read_text(encoding="utf-8"))["patterns"]


def launches(engine, names=patterns.NAMES):
    # Some patterns let threads store to the same place on purpose.
    with pytest.MonkeyPatch.context() as patch, cuda.Device(0), cuda.checks("off"), cuda.profile() as profile:
        patch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
        patterns.launch(names)
    return {launch.kernel: launch for launch in profile.launches}


@pytest.fixture(scope="module")
def counted():
    return launches("numpy")


@pytest.mark.parametrize("count", [8, pytest.param(len(patterns.NAMES), marks=pytest.mark.exhaustive)])
def test_patterns_count_the_same_in_machine_code(counted, rng, count):
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    names = tuple(rng.choice(patterns.NAMES, count, replace=False))
    native = launches("native", names)
    assert [name for name in names if native[name] != counted[name]] == []


def test_all_patterns_count_as_on_the_hardware(recorded, counted):
    assert len(counted) >= 40
    wrong = []
    for name, launch in counted.items():
        exact = [metric for metric in recorded[name] if metric in launch.metrics and metric not in MODELLED]
        assert len(exact) >= 8
        wrong += [(name, metric) for metric in exact if launch.metrics[metric] != recorded[name][metric]]
    assert wrong == []


def test_active_lanes_are_within_a_tenth_in_the_median(recorded, counted):
    expected = np.array([recorded[name][LANES] for name in counted])
    errors = abs(np.array([launch.metrics[LANES] for launch in counted.values()]) / expected - 1)
    parted = errors[expected < 31.5]
    assert len(parted) >= 8
    assert np.median(errors) <= 0.1
    assert np.median(parted) <= 0.1


def test_atomics_are_within_one_percent(recorded, counted):
    for name, launch in counted.items():
        for sectors in (SECTORS.format("red"), SECTORS.format("atom")):
            assert launch.metrics[sectors] == pytest.approx(recorded[name][sectors], rel=0.01)
