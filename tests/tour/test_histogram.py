import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import histogram
from tests.tour.outcomes import counted


@counted
def test_shared_memory_and_wide_loads_save_requests(rows):
    names = ("shared memory", "global atomics", "four loads in flight")
    shared, global_memory, wide = (rows[name].values for name in names)
    assert shared["atomic sectors"] < global_memory["atomic sectors"]
    assert wide["loads"] < shared["loads"] / 3


@pytest.mark.parametrize("size", [2, 3, 400])
def test_values_are_removed_and_empty_bins_are_found(device, rng, size):
    values = rng.random(size, np.float32)
    values[0] = 2.0  # outside the bins
    assert all(row.check.holds for row in histogram.other_operations(values))


@pytest.mark.usefixtures("numpy_engine")
@pytest.mark.parametrize("beyond", [-1, 0, 4 * histogram.BLOCK + 7])
def test_every_kernel_counts_each_value_once_however_often_its_loops_turn(device, rng, beyond):
    """One block loads four groups of four values per thread at once, then one group, then single values."""
    bins, module = histogram.BINS[0], histogram.load_all()
    values = rng.uniform(-0.1, 1.1, 2 * 16 * histogram.BLOCK + beyond).astype(np.float32)
    expected = histogram.reference(values, bins)
    for name in histogram.kernels_for(bins).values():
        counts, work = cuda.zeros(bins + 1, np.uint32), cuda.empty(bins + 1, np.uint32)
        module[name][1, histogram.BLOCK](cuda.to_device(values), counts, work, values.size)
        np.testing.assert_array_equal(counts.to_host(), expected, err_msg=name)
