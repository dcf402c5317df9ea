"""The checks accuse none of the ways in which real programs share memory, in the files of the planted mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from tests.planted.cases import compiled, floats, ints, unwritten, words
from tests.simulator.checks import reports
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = WRONG_ON_PURPOSE


def counted(count, dtype=np.int32):
    return cuda.to_device(np.arange(count, dtype=dtype))


def half_written():
    array = unwritten(32)
    array[:16].copy_from(np.zeros(16, np.int32))
    return array


def by_blocks(threads):
    """Return the arguments of the kernels in which the last block sums up."""
    return lambda: (floats(threads), floats(8 * threads), words(1), 8 * threads)


RIGHT = {
    # Barriers, fences, atomics and waits put these in order, or they store what is there already.
    "races.cu": [
        ("last_block_reduction", (300, 64), lambda: (floats(1), floats(300), floats(300 * 64), words(1))),
        ("spin_lock", (8, 64), lambda: (ints(1), ints(1))),
        ("flag", (2, 32), lambda: (ints(1), ints(1), ints(1))),
        ("histogram", (8, 256), lambda: (ints(32), ints(256))),
        ("warp_sync", (1, 32), lambda: (ints(32),)),
        ("maximum_by_swapping", (4, 64), lambda: (cuda.zeros(1, np.uint64), counted(256, np.uint64))),
        ("same_value", (4, 64), lambda: (ints(1), cuda.full(256, 5, np.int32))),
        ("bytes_side_by_side", (1, 64), lambda: (cuda.zeros(64, np.uint8),)),
        ("bytes_of_a_word", (3, 256), lambda: (cuda.zeros(768, np.uint8),)),
        ("named_barriers", (1, 64), lambda: (ints(32),)),
        ("pipelined_copies", (2, 64), lambda: (floats(64), floats(64 * 7), 7)),
        ("own_copy", (1, 64), lambda: (floats(64), floats(64))),
    ],
    "orders.cu": [
        ("all_fence_then_count", (8, 64), by_blocks(64)),
        ("one_fences_for_all", (8, 64), by_blocks(64)),
        ("ordered_count", (8, 64), by_blocks(64)),
        ("warps_fence_then_count", (8, 96), by_blocks(96)),
        ("one_fences_for_its_warp", (8, 96), by_blocks(96)),
        ("barrier_then_fence", (8, 64), by_blocks(64)),
        ("cached_guess", (4, 64), lambda: (cuda.zeros(1, np.uint64), 0.5)),
        ("guess_in_every_turn", (4, 64), lambda: (floats(1), 0.5)),
        ("guess_at_an_index", (4, 64), lambda: (floats(3), cuda.to_device(np.arange(64, dtype=np.int32) % 3), 2.0)),
        ("block_locks", (4, 64), lambda: (ints(1), ints(64))),
    ],
    # What nobody wrote is not read, or not used.
    "values.cu": [
        ("chosen", (1, 32), lambda: (ints(32), half_written(), 16)),
        ("write_then_read", (1, 32), lambda: (ints(32), unwritten(32))),
        ("copy_uninitialised", (1, 16), lambda: (ints(16), half_written())),
        ("copy_uninitialised", (1, 32), lambda: (ints(32), cuda.managed_empty(32, np.int32))),
        ("local_to_store", (1, 32), lambda: (ints(32), 16, 9)),
    ],
    # All threads that are left reach the barriers, and all lanes that come are named.
    "barriers.cu": [
        ("early_return", (1, 64), lambda: (ints(64), 40)),
        ("equal_loop", (1, 64), lambda: (ints(64), 5)),
        ("right_masks", (1, 64), lambda: (ints(64),)),
    ],
    "groups.cu": [
        # A function has as many barriers as it has uses.
        ("waits_between_barriers", (2, 64), lambda: (ints(1), ints(128))),
        ("calls_in_turn", (1, 64), lambda: (ints(64), 32)),
        ("neighbours_after_return", (1, 64), lambda: (ints(64), 40)),
        # A part of a warp may use whole masks for its own values.
        ("sum_of_a_small_block", (1, 16), lambda: (ints(16), counted(16))),
        ("sums_of_segments", (1, 48), lambda: (ints(48), counted(48))),
        ("sum_with_a_guard", (1, 16), lambda: (ints(16), counted(16))),
        ("scan_upwards", (1, 48), lambda: (ints(48), counted(48))),
        ("whole_masks", (1, 16), lambda: (ints(16), counted(16))),
        ("whole_masks", (1, 40), lambda: (ints(40), counted(40))),
    ],
}  # fmt: skip  # rows of a table


@pytest.mark.parametrize(("file", "row"), [(file, row) for file, rows in RIGHT.items() for row in rows])
def test_what_correct_programs_do_is_not_reported(file, row):
    name, shape, arguments = row
    assert found(compiled(file)[name][shape], *arguments()) == []


@pytest.mark.parametrize(("name", "more"), [("groups", ()), ("piped", (8,)), ("threads", (8,)), ("barred", ())])
def test_the_libraries_copies_are_waited_for(name, more):
    host, out = np.arange(8 * 256, dtype=np.float32).reshape(8, 256), floats(256)
    assert found(reports.compiled("synchronisation.cu")[name][1, 256], out, cuda.to_device(host), *more) == []
    np.testing.assert_array_equal(out.to_host(), host[: 8 if more else 1].sum(axis=0)[::-1])


@pytest.mark.usefixtures("engine")
def test_a_grid_wide_barrier_orders_blocks():
    launch = compiled("races.cu")["grid_sync"].launch
    assert found(lambda: launch(4, 64, cooperative=True)(floats(1000), floats(1000), 1000, 5)) == []
