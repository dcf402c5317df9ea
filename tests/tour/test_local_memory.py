import numpy as np

import cudart_py as cuda
from library_tour import counters
from library_tour.course import local_memory
from tests.tour.outcomes import counted

SIZE = 2000
KERNELS = set(local_memory.KERNELS)
IN_LOCAL_MEMORY = {"loop, not unrolled", "value as the index"}


def test_an_array_with_a_varying_index_is_in_local_memory_and_registers_that_do_not_fit_are_spilled(result):
    [reported] = result.tables.values()
    columns = {row.name: row.values for row in reported}
    assert all(columns[name]["local bytes"] >= 4 * local_memory.COUNTERS for name in IN_LOCAL_MEMORY)
    assert columns["loop, unrolled"]["local bytes"] == columns["in shared memory"]["local bytes"] == 0
    assert columns["unrolled, spilled"]["registers"] <= 32 < columns["loop, unrolled"]["registers"]
    for column in ("spill stores", "spill loads"):
        assert {name for name in KERNELS if columns[name][column]} == {"unrolled, spilled"}


@counted
def test_arrays_with_constant_indices_are_in_registers(result):
    accesses = {row.name: row.values["local"] for row in result.rows}
    assert {name for name in KERNELS if accesses[name]} == IN_LOCAL_MEMORY
    assert accesses["loop, not unrolled"] > 8 * accesses["value as the index"]


@counted
def test_an_index_that_depends_on_the_lane_is_not_coalesced(result):
    rows = {row.name: row.values for row in result.rows}
    sectors = {name: (rows[name]["sectors, random"], rows[name]["sectors, same"]) for name in IN_LOCAL_MEMORY}
    assert sectors["value as the index"][0] > 2 * sectors["value as the index"][1]
    assert sectors["loop, not unrolled"][0] == sectors["loop, not unrolled"][1]


@counted
def test_any_index_is_free_of_conflicts_in_shared_memory():
    source = cuda.to_device(local_memory.make_values(SIZE)["random"])
    counts = cuda.empty(local_memory.COUNTERS * local_memory.BLOCK, np.uint32)
    launch = local_memory.load("local_memory")["count_shared"][1, local_memory.BLOCK].bind(source, counts, SIZE)
    assert counters.count(launch, ["conflicts"]) == {"conflicts": 0}
