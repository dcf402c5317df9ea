import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import logical_and
from tests.tour.outcomes import counted


@counted
def test_a_vote_writes_only_where_a_block_has_a_zero(rows):
    atomics = {name: row.values["atomics"] for name, row in rows.items() if "atomics" in row.values}
    assert atomics["one atomic per thread"] > 7 * atomics["tree, one atomic per block"]
    assert atomics["one vote per block"] == 3  # the arrays with a zero


@counted
def test_early_exit_reads_less_the_earlier_the_zero_is(result):
    [curve] = result.pictures
    early = [loads for _, loads in curve.lines["loads, early exit"]]
    assert early == sorted(early)
    assert early[0] < 0.5 * curve.lines["loads, to the end"][0][1] < early[-1]


@pytest.mark.parametrize("size", [1, 3, 4, 4097])
def test_a_zero_is_found_wherever_it_is(size, device):
    found = cuda.empty(1, np.int32)
    for index in {0, size // 2, size - 1}:
        x = cuda.to_device(logical_and.with_zero(np.ones(size, np.int32), index))
        for name in logical_and.KERNELS:
            logical_and.joining(device, name, x, found)()
            assert found.to_host()[0] == 0, name
