"""The checks accuse none of the ways in which real programs share memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import cudart_py as cuda
from tests.planted.cases import compiled, floats, ints, words

pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized("one file holds them and the planted mistakes")]


def last(block):
    """Give how a last-block kernel is launched: its grid, block and arguments."""
    return 8, block, lambda: (floats(block), floats(8 * block), words(1), 8 * block)


ORDERED = {
    "all_fence_then_count": last(64),
    "one_fences_for_all": last(64),
    "ordered_count": last(64),
    "warps_fence_then_count": last(96),
    "one_fences_for_its_warp": last(96),
    "barrier_then_fence": last(64),
    "cached_guess": (4, 64, lambda: (cuda.zeros(1, np.uint64), 0.5)),
    "guess_in_every_turn": (4, 64, lambda: (floats(1), 0.5)),
    "guess_at_an_index": (4, 64, lambda: (floats(3), cuda.to_device(np.arange(64, dtype=np.int32) % 3), 2.0)),
    "block_locks": (4, 64, lambda: (ints(1), ints(64))),
}


@pytest.mark.parametrize("name", ORDERED)
def test_what_correct_programs_share_is_no_race(device, name):
    grid, block, arguments = ORDERED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled("orders.cu")[name][grid, block](*arguments())
        device.synchronize()
