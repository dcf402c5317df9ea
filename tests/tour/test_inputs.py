import numpy as np
import pytest

from library_tour.inputs import over_all, repeat, repeated


@pytest.mark.parametrize("size", [1, 5, 23])
def test_a_block_is_repeated_to_the_size_on_device_and_host(size):
    block, out = np.arange(5, dtype=np.float32), np.full(size, np.nan, np.float32)
    np.testing.assert_array_equal(repeated(block, size).to_host(), np.resize(block, size))
    repeat(block, out)
    np.testing.assert_array_equal(out, np.resize(block, size))


@pytest.mark.parametrize("size", [1, 4, 5, 10, 23])
def test_a_figure_of_all_rows_is_known_from_the_block(size):
    pairs = np.arange(10, dtype=np.float32).reshape(5, 2)
    assert over_all(lambda rows: rows.prod(axis=1).sum(), pairs, size) == np.resize(pairs, (size, 2)).prod(axis=1).sum()
