import pytest

from library_tour.course import constant_memory
from tests.tour.outcomes import SIZES, counted


@counted
def test_counters_show_the_cost_of_each_memory(rows):
    warps = -(-SIZES["constant_memory"] // 32)
    loads = {name: row.values["loads"] for name, row in rows.items()}
    assert loads["constant memory"] == loads["argument by value"] == warps
    assert loads["global memory"] == pytest.approx((constant_memory.TERMS + 1) * warps, rel=0.02)
    assert loads["8 elements per thread"] == pytest.approx(loads["global memory"] / 8, rel=0.03)
    # Lanes that read 32 consecutive words of shared memory have no bank conflict.
    copied = constant_memory.CHECKED_BLOCKS * constant_memory.BLOCK // 32
    reads = copied * 8 * constant_memory.CHECKED_ROUNDS
    assert rows["shared table, 32 words"].values["wavefronts"] == reads + copied
    # Constant memory gets one request per distinct word.
    requests = {name: row.values["constants"] for name, row in rows.items()}
    assert requests["constant table, 32 words"] == 32 * requests["constant table, 1 word"] > 0
    assert sum(requests.values()) == 33 * requests["constant table, 1 word"]
