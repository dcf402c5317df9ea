"""Occupancy calculated without a driver, compared with the driver's values."""

import dataclasses
import json
import math
from pathlib import Path

import pytest

import cudart_py as cuda
from cudart_py.context.occupancy import MULTIPROCESSORS, multiprocessor_of
from cudart_py.driver.calls import api

# Recorded on an H200, for kernels with register limits from 16 to 255 and kernels without a limit. `columns` names the
# numbers of each row; the last is the driver's number of blocks per multiprocessor.
RECORD = Path(__file__).with_name("occupancy_sm_90.json")


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "blocks", "limiter"),
    [
        ((9, 0), 256, 32, 0, 8, "warps"),
        ((9, 0), 1024, 33, 0, 1, "registers"),
        ((9, 0), 32, 32, 0, 32, "blocks"),
        ((9, 0), 384, 37, 0, 4, "registers"),
        ((9, 0), 128, 16, (227 << 10) + 1, 0, "shared memory"),
        ((9, 0), 1025, 16, 0, 0, "threads"),
        ((7, 5), 256, 32, 16 << 10, 4, "warps"),
        ((7, 5), 64, 32, 16 << 10, 4, "shared memory"),
        ((8, 6), 256, 32, 0, 6, "warps"),
        ((8, 9), 32, 32, 0, 24, "blocks"),
        ((12, 0), 128, 40, 99 << 10, 1, "shared memory"),
        ((1, 0), 256, 11, 0, 2, "registers"),
        ((1, 0), 96, 10, 0, 6, "warps"),  # warps are allocated in pairs
        ((1, 2), 64, 10, 0, 8, "blocks"),
        ((1, 2), 64, 40, 0, 6, "registers"),
        ((1, 3), 256, 16, 0, 4, "warps"),
        ((1, 3), 1024, 10, 0, 0, "threads"),
        ((1, 3), 128, 125, 0, 0, "registers"),
        ((1, 3), 128, 8, 4097, 3, "shared memory"),
        ((2, 0), 100, 48, 0, 5, "registers"),
        ((2, 0), 736, 21, 0, 1, "registers"),  # allocated like 24 registers, not 22
        ((2, 0), 608, 25, 0, 2, "warps"),
        ((2, 1), 256, 64, 0, 0, "registers"),
        ((2, 0), 256, 20, 48 << 10, 1, "shared memory"),
        ((3, 0), 256, 64, 0, 0, "registers"),
        ((3, 2), 1024, 33, 0, 0, "registers"),
        ((3, 7), 256, 64, 0, 8, "warps"),
        ((3, 5), 256, 64, 0, 4, "registers"),
        ((5, 2), 64, 32, 8 << 10, 12, "shared memory"),
        ((5, 2), 64, 32, (48 << 10) + 1, 0, "shared memory"),
        ((6, 0), 320, 182, 0, 0, "registers"),  # what 6.1 cannot run is refused here too
        ((6, 0), 96, 182, 0, 3, "registers"),
        ((6, 1), 96, 182, 0, 2, "registers"),
        ((6, 1), 96, 144, 0, 4, "registers"),
        ((7, 0), 128, 32, 96 << 10, 1, "shared memory"),
        ((7, 0), 128, 32, (96 << 10) + 1, 0, "shared memory"),
    ],
)
def test_known_cases(capability, threads, registers, shared, blocks, limiter):
    found = cuda.occupancy(capability, threads, registers, shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)


def test_the_record_says_warps_fraction_and_every_limit():
    found = cuda.occupancy((9, 0), 96, 64, 10_000)
    assert found.limits == {"warps": 21, "blocks": 32, "registers": 10, "shared memory": 20}
    assert (found.blocks, found.warps, found.max_warps, found.fraction) == (10, 30, 64, 30 / 64)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.blocks = 1
    hash(found)
    assert "registers" not in cuda.occupancy((9, 0), 128).limits


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (((4, 0), 32), ValueError, r"one of \(1, 0\), .*, not the tuple \(4, 0\)"),
        (((9,), 32), ValueError, "compute_capability"),
        (((9, 0), 0), ValueError, "argument 'threads_per_block' must be an int from 1 to .*, not the int 0"),
        (((9, 0), 32, 256), ValueError, "'registers_per_thread' must be an int from 0 to 255, not the int 256"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        cuda.occupancy(*arguments)


def test_it_equals_what_a_gpus_driver_said_in_two_thousand_combinations():
    record = json.loads(RECORD.read_text())
    assert len(record["rows"]) >= 2000
    assert len({registers for _, registers, *_ in record["rows"]}) >= 20
    differing = [
        row
        for row in record["rows"]
        if cuda.occupancy(tuple(record["compute_capability"]), row[0], row[1], row[2] + row[3]).blocks != row[4]
    ]
    assert not differing


def test_the_table_is_in_order_and_agrees_with_the_device(device):
    assert list(cuda.MULTIPROCESSORS) == sorted(cuda.MULTIPROCESSORS)
    assert multiprocessor_of(device.properties) == MULTIPROCESSORS[device.compute_capability]


@pytest.mark.parametrize("shared", [0, 1000, 30_000, 100_000])
@pytest.mark.parametrize("block", [1, 32, 100, (16, 16), 512, (8, 8, 16)])
def test_a_kernels_occupancy_equals_the_drivers(device, module, block, shared):
    kernel = module["dynamic"]
    kernel.configure(1, block, shared)
    threads = math.prod(block) if isinstance(block, tuple) else block
    expected = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel.handle, threads, shared)
    found = kernel.occupancy(block, shared)
    assert found.blocks == expected
    assert found.warps == expected * -(-threads // 32)


def test_a_kernels_occupancy_has_a_launchs_errors(device, module):
    with pytest.raises(ValueError, match=r"bounded: a block of \(65, 1, 1\)"):
        module["bounded"].occupancy(65)
    with pytest.raises(ValueError, match="shared_bytes"):
        module["saxpy"].occupancy(32, 1 << 20)


def test_the_suggested_block_fills_a_multiprocessor_best_within_its_limits(device, module):
    kernel = module["saxpy"]
    best = max(kernel.occupancy(size).warps for size in range(32, 1025, 32))
    assert kernel.occupancy(kernel.suggested_block()).warps == best
    assert kernel.suggested_block(limit=96) <= 96
    assert module["bounded"].suggested_block() <= 64
    most = device.properties.shared_memory_per_block_optin
    assert 0 < 400 * kernel.suggested_block(shared_bytes=lambda threads: 400 * threads) <= most
    with pytest.raises(ValueError, match="'shared_bytes' must be at most"):
        kernel.suggested_block(shared_bytes=most + 1)


def test_the_suggested_block_does_not_depend_on_earlier_calls(device, module):
    kernel, most = module["dynamic"], device.properties.shared_memory_per_block_optin
    found = kernel.suggested_block(shared_bytes=lambda threads: 64 * threads)
    best = max(kernel.occupancy(size, 64 * size).warps for size in range(32, 1025, 32))
    assert kernel.occupancy(found, 64 * found).warps == best
    assert kernel.suggested_block(shared_bytes=most - kernel.attributes.shared_bytes) > 0
    assert kernel.suggested_block(shared_bytes=lambda threads: 64 * threads) == found


def test_a_function_of_the_shared_memory_may_fail(module):

    def fail(threads):
        raise KeyError(threads)

    with pytest.raises(KeyError):
        module["dynamic"].suggested_block(shared_bytes=fail)
