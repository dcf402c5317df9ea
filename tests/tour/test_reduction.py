from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import counters
from library_tour.course import reduction
from library_tour.runner import run_stop


@pytest.fixture(scope="module")
def rows():
    return {row.name: row for row in run_stop("reduction", cuda.Device(0), 5003).result.rows}


@pytest.mark.skipif(not counters.available(), reason="this driver does not count")
def test_fewer_atomics_from_variant_to_variant(rows):
    names = ("an atomic an element", "an atomic a block", "fixed grid, by four", "two passes")
    atomics = [rows[name].values["atomics"] for name in names]
    assert atomics == sorted(atomics, reverse=True)
    assert atomics[-1] == 0


def test_the_sums_of_the_host_and_of_two_passes_are_rounded_little(rows):
    assert rows[reduction.ON_HOST].values["error"] < 1e-5
    assert rows["two passes"].values["error"] < 1e-6


@pytest.mark.parametrize("size", [1, 3, 5003])
@pytest.mark.parametrize("name", reduction.OPERATIONS)
def test_other_operations_give_numpys_result_of_numbers_of_one_sign(size, name, rng, device):
    """Where a wrong neutral element, such as 0, would be the result."""
    block = (rng.random(size, np.float32) + 1) * (-1 if name == "maximum" else 1)
    _, others = reduction.make_variants(device, cuda.to_device(block), np.zeros(1, np.float32), block)
    variant = next(variant for variant in others if variant.name == name)
    assert reduction.sum_with(variant) == variant.expected == reduction.OPERATIONS[name][1](block)
