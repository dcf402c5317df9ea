"""Real programs give correct results and no findings with each engine and each setting of the checks."""

import numpy as np
import pytest

import cudart_py as cuda
from tests.programs.cases import CASES, FOLDER

KERNELS = FOLDER.with_name("cub_algorithms.cu")
TILE, THREADS = 256, 64
# Each engine of the simulator, with and without checks. With "auto", programs begin without machine code and switch to
# that of the kernels; ("native", "error") then has the same machine code.
FIRST = ("numpy", "error")
EXHAUSTIVE = [("numpy", "off"), ("auto", "warn"), ("native", "error")]
MODES = [FIRST, ("native", "off"), *(pytest.param(mode, marks=pytest.mark.exhaustive) for mode in EXHAUSTIVE)]


@pytest.fixture(params=MODES, ids=", ".join)
def mode(request, monkeypatch):
    """Run the test with each engine, with and without checks; on a GPU, which has neither, run it once."""
    engine, checks = request.param
    if "profile" not in cuda.capabilities():
        if request.param != FIRST:
            pytest.skip("the driver has neither engines nor checks to choose from")
        yield request.param
        return
    if engine == "native":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    with cuda.sanitizer(checks):
        yield request.param


def test_sorts_pairs(device, mode, kernels, rng):
    for n in (5, TILE + 1, 3 * TILE, 5 * TILE - 3):
        keys = rng.integers(0, 2**32, n, np.uint32)
        keys[rng.integers(0, n, n // 4)] = keys[0]
        there = cuda.to_device(keys), cuda.to_device(np.arange(n, dtype=np.int32))
        here = cuda.empty(n, np.uint32), cuda.empty(n, np.int32)
        kernels["sort_tiles"][-(-n // TILE), THREADS](*there, *here, n)
        run = TILE
        while run < n:
            here, there = there, here
            kernels["merge_tiles"][-(-n // 128), 128](*there, *here, run, n)
            run *= 2
        order = np.argsort(keys, kind="stable")
        np.testing.assert_array_equal(here[0].to_host(), keys[order])
        np.testing.assert_array_equal(here[1].to_host(), order)


def test_scans_in_a_single_pass(device, mode, kernels, rng):
    for n in (3, TILE, 7 * TILE - 1, 40 * TILE + 5):
        x = rng.integers(-1000, 1000, n, np.int32)
        tiles, out = -(-n // TILE), cuda.empty(n, np.int32)
        # One word of 8 bytes per tile, and for the 32 tiles before the first one, at which the first tiles look back.
        storage = cuda.empty(8 * (tiles + 32), np.int8)
        kernels["start_scan"][-(-tiles // 128), 128](storage, tiles)
        kernels["scan"][tiles, THREADS](cuda.to_device(x), out, n, storage, tiles)
        np.testing.assert_array_equal(out.to_host(), np.cumsum(x, dtype=np.int32))


def test_multiplies_pairs_and_adds_them_up(device, mode, kernels, rng):
    blocks = 9
    sums, ended, out = cuda.empty(blocks, np.int64), cuda.zeros(1, np.uint32), cuda.empty(1, np.int64)
    for n in (1, 100, 777, 3000):
        a, b = rng.integers(-(2**31), 2**31, (2, n)).astype(np.int32)
        kernels["dot"][blocks, THREADS](cuda.to_device(a), cuda.to_device(b), sums, ended, out, n)
        assert int(out.to_host()[0]) == int(np.dot(a.astype(np.int64), b.astype(np.int64)))


@pytest.mark.parametrize("name", CASES)
def test_a_program_gives_numpys_results(device, mode, name):
    """With the engine `auto`, a program runs several times, because it switches to machine code after a few runs."""
    case = CASES[name](full=False)
    for _ in range(4 if "auto" in mode else 1):
        case.run()
        device.synchronize()
        case.check()
