"""Warps with random accesses count as on an H200, in both engines.

The counts of shared memory were recorded with CUPTI, warp by warp, and the others with Nsight Compute.
"""

import json
from pathlib import Path

import pytest

import cudart_py as cuda
from tests.simulator.counters import warps

pytestmark = pytest.mark.needs("profile")

SHARED = ("shared_", "ldsm", "stsm")
DATA = Path(__file__).parent / "data" / "h200_warps.json"
# Atomics and copies around the L1 cache that touch more than 128 bytes: the hardware counts up to 3 % more sectors.
ESTIMATED = {
    "copy_cg16 permuted/full": 0.01,
    **dict.fromkeys(("atomic_u64 permuted/random", "atomic_f64 permuted/random", "atomic_v4f32 permuted/random"), 0.03),
}
# The requests for constants of the kernels' own parameters, per warp, which the simulator does not count.
PARAMETERS = 3


@pytest.fixture(scope="module")
def recorded():
    return json.loads(DATA.read_text(encoding="utf-8"))["launches"]


def test_every_launch_is_recorded(recorded):
    assert [one.name for one in warps.launches()] == list(recorded)


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("in_shared", [True, False], ids=["shared memory", "other memory"])
def test_random_accesses_count_as_on_the_hardware(recorded, in_shared, engine, monkeypatch):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    launches = [one for one in warps.launches() if one.kernel.startswith(SHARED) == in_shared]
    # Lanes store to the same addresses on purpose.
    with cuda.Device(0), cuda.sanitizer("off"), cuda.profile() as profile:
        warps.run(launches)
    wrong = []
    for one, launch in zip(launches, profile.launches, strict=True):
        for metric, expected in recorded[one.name].items():
            counted = launch.metrics[metric]
            if metric == "idc__requests.sum":
                counted += PARAMETERS * len(one.table)
            if counted != pytest.approx(expected, rel=ESTIMATED.get(one.name, 0), abs=0):
                wrong.append((one.name, metric, counted, expected))
    assert wrong == []
