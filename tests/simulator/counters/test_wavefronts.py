"""The assignment of words to wavefronts agrees with the count, and each bank serves one word per wavefront."""

import numpy as np
import pytest

from cudart_py.simulator.counters.banks import assign_wavefronts, count_wavefronts


@pytest.mark.parametrize("size", [1, 4, 8, 16])
@pytest.mark.parametrize("words", [4, 40, 1000])
def test_as_many_wavefronts_are_assigned_as_are_counted(size, words):
    random = np.random.default_rng(words)
    for kind in ("load", "store", "atomic", "swap"):
        alone = kind in ("atomic", "swap")
        for _ in range(40):
            # In some rows, lanes share the address of their neighbour at a distance of 1 or 2.
            row = random.integers(0, words, 32)[np.arange(32) & ~random.choice([0, 1, 2])] * size
            present = random.random(32) < random.choice([0.3, 1.0])
            present[0] = True
            assigned = assign_wavefronts(row, present, size, kind)
            assert assigned.max() + 1 == count_wavefronts(row[None], present[None], size, kind)[0]
            assert ((assigned >= 0) == present[:, None]).all()
            served = {}
            for lane in np.flatnonzero(present):
                for part, wavefront in enumerate(assigned[lane]):
                    word = row[lane] // 4 + part
                    key = (wavefront, word % 32)
                    assert served.setdefault(key, (word, lane if alone else 0)) == (word, lane if alone else 0)
