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


def test_the_reference_counts_each_threads_groups():
    values = np.array([0, 1, 1, 1, 2, 2, 2, 2, 31, 0, 0, 0], np.uint32)
    counts = local_memory.reference(values, 2)
    assert counts.shape == (32, 2)
    assert counts[[0, 1, 2, 31]].tolist() == [[4, 0], [3, 0], [0, 4], [1, 0]]
    assert counts.sum() == values.size


def test_values_are_the_same_in_all_lanes_of_a_warp():
    same = local_memory.make_values(70)["same"].reshape(70, 4)
    assert (same[:32] == same[0]).all()
    assert (same[64:] == same[64]).all()
    assert not (same == same[0]).all()
