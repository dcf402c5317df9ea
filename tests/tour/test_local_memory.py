from __future__ import annotations

import numpy as np

import cudart_py as cuda
from library_tour import counters
from library_tour.course import local_memory
from tests.tour.outcomes import counted

SIZE = 2000
KERNELS = set(local_memory.KERNELS)
IN_LOCAL_MEMORY = {"loop, not unrolled", "value as the index"}


def test_an_array_with_a_varying_index_takes_local_memory(result):
    [reported] = result.tables.values()
    nbytes = {row.name: row.values["local bytes"] for row in reported}
    assert all(nbytes[name] >= 4 * local_memory.COUNTERS for name in IN_LOCAL_MEMORY)
    assert nbytes["loop, unrolled"] == nbytes["in shared memory"] == 0


def test_registers_that_do_not_fit_are_spilled(result):
    [reported] = result.tables.values()
    columns = {row.name: row.values for row in reported}
    assert columns["unrolled, spilled"]["registers"] <= 32 < columns["loop, unrolled"]["registers"]
    assert {name for name in KERNELS if columns[name]["spill stores"]} == {"unrolled, spilled"}
    assert {name for name in KERNELS if columns[name]["spill loads"]} == {"unrolled, spilled"}


@counted
def test_arrays_with_constant_indices_are_in_registers(result):
    accesses = {row.name: row.values["local"] for row in result.rows}
    assert {name for name in KERNELS if accesses[name]} == IN_LOCAL_MEMORY
    assert accesses["loop, not unrolled"] > 10 * accesses["value as the index"]


@counted
def test_an_index_that_depends_on_the_lane_is_not_coalesced(result):
    [row] = [row for row in result.rows if row.name == "value as the index"]
    assert row.values["sectors, random"] > 2 * row.values["sectors, same"]
    [row] = [row for row in result.rows if row.name == "loop, not unrolled"]
    assert row.values["sectors, random"] == row.values["sectors, same"]


@counted
def test_any_index_is_free_of_conflicts_in_shared_memory():
    source = cuda.to_device(local_memory.make_values(SIZE)["random"])
    counts = cuda.empty(local_memory.COUNTERS * local_memory.BLOCK, np.uint32)
    kernel = local_memory.load("local_memory")["count_shared"]
    found = counters.count(kernel[1, local_memory.BLOCK].bind(source, counts, SIZE), ["conflicts"])
    assert found == {"conflicts": 0}
