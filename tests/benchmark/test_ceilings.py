"""The ceilings: the results of their kernels, and the choice of the fastest way."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.benchmark import Ceilings, MeasureOptions, ceilings
from cudart_py.benchmark.device import ceilings as module_under_test
from cudart_py.benchmark.device.ceilings import SOURCE, measured_ceiling

QUICK = MeasureOptions(min_samples=1, min_seconds=0.0, max_seconds=0.0, warm_up_seconds=0.0)


@pytest.fixture(scope="module")
def kernels():
    names = ["copy_words<4>", "read_words<4>", "write_words<4>", "multiply_add<double, 2, 3>"]
    with cuda.Device(0):
        return cuda.compile(SOURCE, names=names)


@pytest.mark.parametrize("grid", [1, 3, 4])
def test_every_word_is_copied_read_and_written_by_any_grid(device, kernels, rng, grid):
    words = rng.integers(0, 2**32, (512, 4), dtype=np.uint32)
    source, target, sums = cuda.to_device(words), cuda.zeros(words.shape, np.uint32), cuda.zeros(grid, np.uint32)
    kernels["copy_words<4>"][grid, 32](target, source, 512)
    assert np.array_equal(target.to_host(), words)
    kernels["read_words<4>"][grid, 32](source, 512, sums)
    assert sums.to_host().sum(dtype=np.uint32) == words.sum(dtype=np.uint32)
    kernels["write_words<4>"][grid, 32](target, 512, 7)
    assert (target.to_host() == 7).all()


def test_a_thread_does_all_its_multiply_adds(device, kernels):
    out = cuda.zeros(32, np.float64)
    kernels["multiply_add<double, 2, 3>"][1, 32](out, 2.0, 1.0, 2)
    chains = np.arange(32)[:, None] + np.arange(2.0)
    for _ in range(3 * 2):
        chains = 2.0 * chains + 1.0
    assert np.array_equal(out.to_host(), chains.sum(axis=1))


@pytest.fixture
def few_ways(monkeypatch, event_times):
    """Make the ceilings try only a few small ways."""
    # With one round, or a smaller buffer, the time would be below the resolution of events.
    ways = {
        "_ARITHMETIC_BLOCK": 32,
        "_ARITHMETIC_BLOCKS_PER_SM": 1,
        "_ARITHMETIC_ROUNDS": 512,
        "_BLOCKS": (64,),
        "_BUFFER_BYTES": 1 << 20,
        "_CHAINS": 1,
        "_LOADS": (1,),
        "_STEPS": 4,
        "_RESIDENT": (0, 1),
    }
    for name, value in {**ways, "_TRY": QUICK, "_FINAL": QUICK}.items():
        monkeypatch.setattr(module_under_test, name, value)
    measured_ceiling.cache_clear()
    yield
    measured_ceiling.cache_clear()


def test_all_five_are_measured_once_a_process_and_give_their_memory_back(device, few_ways):
    before = cuda.MemoryPool.current(device).used
    found = ceilings(device)
    assert all(getattr(found, kind) > 0 for kind in module_under_test.KINDS)
    assert measured_ceiling(device, "write") is measured_ceiling(device, "write")
    assert cuda.MemoryPool.current(device).used <= before


def test_the_fastest_way_counts(monkeypatch):
    monkeypatch.setattr(module_under_test, "_seconds", lambda way, options: way)
    assert module_under_test._peak(iter([4.0, 2.0, 3.0]), 8.0) == 4.0


@pytest.mark.parametrize("limit", [0, 1 << 20, 1 << 40])
def test_a_buffer_divides_into_every_tile(limit):
    nbytes = module_under_test._buffer_bytes(limit)
    assert nbytes > 0
    assert not any(nbytes % (16 * n * loads) for n in module_under_test._BLOCKS for loads in module_under_test._LOADS)


def test_without_device_times_there_are_no_peaks_and_an_unknown_kind_is_refused(device, monkeypatch):
    monkeypatch.setattr(module_under_test, "has_capability", lambda name: False)
    measured_ceiling.cache_clear()
    with pytest.raises(cuda.errors.NotSupportedError, match="no peak can be measured"):
        ceilings(device)
    with pytest.raises(ValueError, match="'ceiling' must be one of"):
        measured_ceiling(device, "tensor")


def test_the_text_has_units():
    found = str(Ceilings(copy=4.2e12, read=4.4e12, write=4.3e12, fp32=6e13, fp64=3e13))
    assert found.startswith("copy 4,200 GB/s, read 4,400 GB/s")
    assert found.endswith("fp32 60.0 TFLOP/s, fp64 30.0 TFLOP/s")
