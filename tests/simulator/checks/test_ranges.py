"""Ranges of bytes that pieces of work have used, compared with sets of bytes."""

import numpy as np

from cudart_py.simulator.checks.races.traces import Ranges

SIZE = 96


def random_rows(rng):
    return [(low, low + rng.integers(1, 12)) for low in rng.integers(0, SIZE, rng.integers(1, 6)).tolist()]


def bytes_of(ranges):
    return {place for low, high in zip(ranges.starts, ranges.ends, strict=True) for place in range(low, high)}


def test_ranges_are_the_sets_of_their_bytes(rng):
    for _ in range(300):
        rows, others = random_rows(rng), random_rows(rng)
        mine, theirs = Ranges.of_rows(rows), Ranges.of_rows(others)
        known, other = ({place for low, high in each for place in range(low, high)} for each in (rows, others))
        assert bytes_of(mine) == known
        assert (mine.low, mine.high) == (min(known), max(known) + 1)
        assert (mine.starts[1:] > mine.ends[:-1]).all()
        assert mine.meets(theirs) == theirs.meets(mine) == min(known & other, default=None)
        assert mine.cover(mine)
        # Ranges that lie in several may go unnoticed.
        assert mine.cover(theirs) <= (other <= known)
        assert len(mine.starts) > 1 or mine.cover(theirs) == (other <= known)
        unit = 1 << int(rng.integers(3))
        lows = np.arange(0, 2 * SIZE, unit)
        first = [min(known & set(range(low, low + unit)), default=-1) for low in lows.tolist()]
        np.testing.assert_array_equal(mine.first_in(lows, unit), first)


def test_a_mask_of_units_gives_ranges(rng):
    assert Ranges.of_mask(np.zeros(5, np.bool_), 4) is None
    for _ in range(200):
        mask = rng.random(rng.integers(1, 20)) < rng.choice([0.2, 0.8, 1])
        ranges = Ranges.of_mask(mask, 4, 100)
        selected = {100 + 4 * unit + byte for unit in np.flatnonzero(mask).tolist() for byte in range(4)}
        assert (set() if ranges is None else bytes_of(ranges)) == selected
