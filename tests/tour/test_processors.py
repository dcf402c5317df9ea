from __future__ import annotations

import numpy as np

from library_tour.processors import in_threads, processors


def test_threads_get_matching_parts_of_all_arrays(rng):
    assert processors() >= 1
    numbers = rng.integers(0, 9, 1001)
    assert sum(in_threads(np.sum, numbers)) == numbers.sum()
    assert all(in_threads(np.array_equal, numbers, numbers))
