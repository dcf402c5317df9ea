import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import dot_product
from library_tour.runner import run_stop
from tests.tour.outcomes import counted


@counted
def test_shuffles_take_less_shared_memory_and_a_block_fewer_atomics(rows):
    values = {name: row.values for name, row in rows.items()}
    assert values["shuffles, atomic per warp"]["wavefronts"] == 0
    assert values["tree in shared memory"]["wavefronts"] > 3 * values["shuffles, atomic per block"]["wavefronts"]
    # There is one atomic per warp, or 32 elements, against one per block, or 256 elements.
    assert values["shuffles, atomic per warp"]["atomics"] > 7 * values["shuffles, atomic per block"]["atomics"]
    assert values["four loads of each array"]["loads"] < 0.3 * values["shuffles, atomic per block"]["loads"]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_product_of_random_numbers_is_numpys(size, rng, device):
    x, y = rng.random((2, size), np.float32)
    arrays = cuda.to_device(x), cuda.to_device(y)
    for variant in dot_product.make_variants(device, *arrays, lambda count: np.zeros(1, np.float32)):
        variant.launch()
        assert variant.output.to_host()[0] == pytest.approx(x.astype(float) @ y.astype(float), rel=1e-5)


def test_one_atomic_per_thread_is_timed_with_few_elements(monkeypatch, nothing_apart, device):
    monkeypatch.setattr(dot_product, "ATOMICS", 100)
    result = run_stop("dot_product", device, 1000).result
    assert result.notes[-1] == "The 'one atomic per thread' kernel is timed with 100 elements."
