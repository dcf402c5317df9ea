"""Variables: which memory each kind is in, and what the wrong use of each is answered with."""

from __future__ import annotations

from library_tour.course import variables
from tests.tour.outcomes import counted


@counted
def test_only_a_device_variable_is_read_from_global_memory_at_each_step_and_shared_ones_take_wavefronts(rows):
    loads, wavefronts = (
        {name: row.values.get(column) for name, row in rows.items()} for column in ("loads", "wavefronts")
    )
    warps = loads["register"]  # one load of the seed each
    assert loads["static shared memory"] == warps
    assert loads["__device__ array"] == warps * (variables.CHECKED_STEPS + 2)
    assert wavefronts["static shared memory"] == wavefronts["dynamic shared memory"] > 0 == wavefronts["register"]


def test_shared_memory_that_nobody_wrote_is_reported_and_static_memory_above_48_kib_does_not_compile(rows):
    assert "uninitialised value" in rows["shared, never written"].note
    assert "too much shared data" in rows["static, 64 KiB"].note


def test_more_dynamic_shared_memory_leaves_room_for_fewer_blocks(rows):
    blocks = [row.values["blocks"] for row in rows.values() if "blocks" in row.values]
    assert blocks == sorted(blocks, reverse=True)
    assert blocks[-1] == 1
