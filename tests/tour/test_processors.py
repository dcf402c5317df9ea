from __future__ import annotations

import numpy as np

from library_tour.processors import in_threads, processors


def test_there_is_a_processor():
    assert processors() >= 1


def test_threads_get_all_of_an_array(rng):
    numbers = rng.integers(0, 9, 1001)
    assert sum(in_threads(np.sum, numbers)) == numbers.sum()


def test_threads_get_matching_parts_of_several_arrays():
    numbers = np.arange(101)
    assert all(in_threads(np.array_equal, numbers, numbers))
