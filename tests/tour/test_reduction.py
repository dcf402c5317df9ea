import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import reduction
from tests.tour.outcomes import counted


@counted
def test_fewer_atomics_from_variant_to_variant(rows):
    names = ("one atomic per element", "one atomic per block", "fixed grid, vector loads", "two passes")
    atomics = [rows[name].values["atomics"] for name in names]
    assert atomics == sorted(atomics, reverse=True)
    assert atomics[-1] == 0


def test_the_sums_of_the_host_and_of_two_passes_are_rounded_little(rows):
    assert rows[reduction.ON_HOST].values["error"] < 1e-5
    assert rows["two passes"].values["error"] < 1e-6


@pytest.mark.parametrize("size", [1, 3, 1003])
def test_other_operations_give_numpys_result_for_elements_of_one_sign(size, rng, device):
    """With elements of one sign, a wrong identity element such as 0 would become the result."""
    positive = rng.random(size, np.float32) + 1
    for name, (_, numpys) in reduction.OPERATIONS.items():
        block = -positive if name == "maximum" else positive
        _, others = reduction.make_variants(device, cuda.to_device(block), np.zeros(1, np.float32), block)
        variant = next(variant for variant in others if variant.name == name)
        assert reduction.sum_with(variant) == variant.expected == numpys(block), name
