from __future__ import annotations

import pytest

from library_tour.course import constant_memory
from tests.tour.outcomes import SIZES, counted


@counted
def test_a_coefficient_in_constant_memory_needs_no_load_from_global_memory_and_one_in_a_register_serves_many(rows):
    warps = -(-SIZES["constant_memory"] // 32)
    loads = {name: row.values["loads"] for name, row in rows.items()}
    assert loads["constant memory"] == loads["argument by value"] == warps
    assert loads["global memory"] == pytest.approx((constant_memory.TERMS + 1) * warps, rel=0.02)
    assert loads["registers, 8 numbers each"] == pytest.approx(loads["global memory"] / 8, rel=0.03)


@counted
def test_lanes_that_read_32_words_of_shared_memory_meet_no_conflict(rows):
    reads = constant_memory.CHECKED_BLOCKS * constant_memory.BLOCK // 32 * 8 * constant_memory.CHECKED_ROUNDS
    copied = constant_memory.CHECKED_BLOCKS * constant_memory.BLOCK // 32
    assert rows["shared table, 32 words"].values["wavefronts"] == reads + copied


@counted
def test_a_table_in_constant_memory_costs_a_request_for_each_word_that_lanes_differ_in(rows):
    requests = {name: row.values["constants"] for name, row in rows.items()}
    assert requests["constant table, 32 words"] == 32 * requests["constant table, 1 word"] > 0
    assert sum(requests.values()) == 33 * requests["constant table, 1 word"]
