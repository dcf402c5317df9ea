"""Occupancy: the published rules."""

from __future__ import annotations

from typing import Any

import pytest

from cudart_py.simulator import driver
from tests.simulator.kernels import Attribute, blocks, configuration, function, with_counts
from tests.simulator.support import ok


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "expected"),
    [
        (32, 32, 0, 32),  # the most blocks
        (32, 1024, 0, 2),  # the most threads
        (32, 33, 0, 32),
        (64, 1024, 0, 1),  # the registers
        (40, 256, 0, 6),
        (255, 256, 0, 1),
        (16, 128, 100 << 10, 2),  # the shared memory
        (16, 128, 48 << 10, 4),
    ],
)
def test_occupancy_follows_the_published_rules(
    context: Any, registers: int, threads: int, shared: int, expected: int
) -> None:
    kernel = function(ok(driver.cuModuleLoadData(with_counts("bump", registers))), "bump")
    raised = Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    ok(driver.cuFuncSetAttribute(kernel, raised, 227 << 10))
    assert blocks(kernel, threads, shared) == expected


def test_the_suggested_block_fills_the_device(module: Any) -> None:
    kernel = function(module, "bump")
    grid, block = ok(driver.cuOccupancyMaxPotentialBlockSize(kernel, None, 0, 0))
    assert (grid, block) == (264, 1024)
    assert ok(driver.cuOccupancyMaxPotentialBlockSize(kernel, None, 0, 200))[1] <= 200


def test_available_shared_memory_leaves_room_for_the_blocks(module: Any) -> None:
    kernel = function(module, "tile")
    room = ok(driver.cuOccupancyAvailableDynamicSMemPerBlock(kernel, 4, 128))
    ok(driver.cuFuncSetAttribute(kernel, Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, room + 128))
    assert blocks(kernel, 128, room) == 4
    assert blocks(kernel, 128, room + 128) == 3


def test_clusters_are_counted_within_groups_of_multiprocessors(module: Any) -> None:
    kernel = function(module, "bump")
    config = configuration(64, CLUSTER_DIMENSION=(8, 1, 1))
    config.blockDimX = 1024
    assert ok(driver.cuOccupancyMaxPotentialClusterSize(kernel, config)) == 8
    assert ok(driver.cuOccupancyMaxActiveClusters(kernel, config)) == 32
