"""Variables: the memory that each kind uses, and errors for wrong uses."""

from library_tour.course import variables
from tests.tour.outcomes import counted


@counted
def test_only_a_device_variable_is_loaded_at_each_step_and_shared_ones_take_wavefronts(rows):
    names = ("register", "__device__ array", "static shared memory", "dynamic shared memory")
    register, array, static, dynamic = (rows[name].values for name in names)
    assert static["loads"] == register["loads"]  # one load of the seeds per warp
    assert array["loads"] == register["loads"] * (variables.CHECKED_STEPS + 2)
    assert static["wavefronts"] == dynamic["wavefronts"] > 0 == register["wavefronts"]


def test_static_memory_above_48_kib_does_not_compile(rows):
    assert "too much shared data" in rows["static, 64 KiB"].note


def test_with_more_dynamic_shared_memory_fewer_blocks_fit(rows):
    blocks = [row.values["blocks"] for row in rows.values() if "blocks" in row.values]
    assert blocks == sorted(blocks, reverse=True)
    assert blocks[-1] == 1
