"""Variables: which memory each kind is in, and what the wrong use of each is answered with."""

from __future__ import annotations

from library_tour.course import variables
from tests.tour.outcomes import counted


@counted
def test_only_a_device_variable_is_read_from_global_memory_at_each_step(rows):
    loads = {name: rows[name].values["loads"] for name in ("__device__ array", "static shared memory", "register")}
    warps = loads["register"]  # one load of the seed each
    assert loads["static shared memory"] == warps
    assert loads["__device__ array"] == warps * (variables.CHECKED_STEPS + 2)


@counted
def test_shared_variables_take_wavefronts_and_registers_none(rows):
    assert rows["static shared memory"].values["wavefronts"] == rows["dynamic shared memory"].values["wavefronts"] > 0
    assert rows["register"].values["wavefronts"] == 0


def test_shared_memory_that_nobody_wrote_is_reported(rows):
    assert "uninitialised value" in rows["shared, never written"].note


def test_static_shared_memory_above_48_kib_does_not_compile(rows):
    note = rows["static, 64 KiB"].note
    assert note.startswith("Entry function")
    assert "too much shared data" in note


def test_more_dynamic_shared_memory_leaves_room_for_fewer_blocks(rows):
    blocks = [row.values["blocks"] for row in rows.values() if "blocks" in row.values]
    assert blocks == sorted(blocks, reverse=True)
    assert blocks[-1] == 1
