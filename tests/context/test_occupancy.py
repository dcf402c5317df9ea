"""Occupancy from numbers alone, beside the driver's."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cudart_py as cuda
from cudart_py.context.occupancy import MULTIPROCESSORS, multiprocessor_of
from cudart_py.driver.seam import api

# Made by scripts/record_occupancy.py.
RECORD = Path(__file__).with_name("occupancy_sm_90.json")


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "blocks", "limiter"),
    [
        ((9, 0), 256, 32, 0, 8, "warps"),
        ((9, 0), 1024, 33, 0, 1, "registers"),
        ((9, 0), 32, 32, 0, 32, "blocks"),
        ((9, 0), 128, 16, 100 << 10, 2, "shared memory"),
        ((9, 0), 128, 16, 227 << 10, 1, "shared memory"),
        ((9, 0), 128, 16, (227 << 10) + 1, 0, "shared memory"),
        ((9, 0), 1025, 16, 0, 0, "threads"),
        ((9, 0), 1024, 72, 0, 0, "registers"),
        ((9, 0), 33, 0, 0, 32, "warps"),
        ((7, 5), 256, 32, 16 << 10, 4, "warps"),
        ((7, 5), 64, 32, 16 << 10, 4, "shared memory"),
        ((8, 6), 256, 32, 0, 6, "warps"),
        ((8, 9), 32, 32, 0, 24, "blocks"),
        ((12, 0), 128, 40, 99 << 10, 1, "shared memory"),
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


def test_no_registers_is_no_limit_by_registers():
    assert "registers" not in cuda.occupancy((9, 0), 128).limits


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (((6, 1), 32), ValueError, r"one of \(7, 5\), .*, not the tuple \(6, 1\)"),
        (("sm_90", 32), TypeError, "sm_90"),
        (((9,), 32), ValueError, "compute_capability"),
        (((9, 0), 0), ValueError, "argument 'threads_per_block' must be an int from 1 to .*, not the int 0"),
        (((9, 0), 2.5), TypeError, "'threads_per_block' must be an int, not the float 2.5"),
        (((9, 0), True), TypeError, "threads_per_block"),
        (((9, 0), 32, 256), ValueError, "'registers_per_thread' must be an int from 0 to 255, not the int 256"),
        (((9, 0), 32, 1, -1), ValueError, "'shared_bytes_per_block' .* not the int -1"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        cuda.occupancy(*arguments)


def test_it_needs_no_driver(python):
    program = (
        "import cudart_py as cuda\n"
        "print(cuda.occupancy((9, 0), 256, 32).blocks)\n"
        "from cudart_py.driver import seam; print(seam._module)\n"
    )
    assert python(program, CUDART_PY_DRIVER="").stdout.split() == ["8", "None"]


def fill(multiprocessor, threads, registers, shared):
    """Put blocks on a multiprocessor one by one until one does not fit."""
    warps = -(-threads // 32)
    free = [multiprocessor.registers // 4 // 256] * 4  # register units of each part
    need = -(-registers * 32 // 256)
    units = multiprocessor.shared_bytes // multiprocessor.shared_unit
    block_units = -(-(shared + multiprocessor.reserved_shared_bytes) // multiprocessor.shared_unit)
    if threads > 1024 or shared > multiprocessor.shared_bytes_per_block:
        return 0
    if need * 4 * -(-warps // 4) * 256 > multiprocessor.registers:
        return 0
    slots, blocks = multiprocessor.warps, 0
    while blocks < multiprocessor.blocks and slots >= warps and units >= block_units:
        for _ in range(warps):
            part = max(range(4), key=lambda p: free[p])
            if free[part] < need:
                return blocks
            free[part] -= need
        slots, units, blocks = slots - warps, units - block_units, blocks + 1
    return blocks


@given(st.sampled_from(list(MULTIPROCESSORS)), st.integers(1, 1100), st.integers(1, 255), st.integers(0, 240_000))
def test_it_equals_filling_a_multiprocessor_block_by_block(capability, threads, registers, shared):
    expected = fill(MULTIPROCESSORS[capability], threads, registers, shared)
    assert cuda.occupancy(capability, threads, registers, shared).blocks == expected


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


def test_the_table_agrees_with_the_device(device):
    assert multiprocessor_of(device.properties) == MULTIPROCESSORS[device.compute_capability]


@pytest.mark.parametrize("shared", [0, 1000, 30_000, 100_000])
@pytest.mark.parametrize("block", [1, 32, 100, (16, 16), 512, (8, 8, 16)])
def test_a_kernels_occupancy_equals_the_drivers(device, module, block, shared):
    kernel = module["dynamic"]
    kernel.launch(1, block, shared)
    threads = 1
    for size in block if isinstance(block, tuple) else (block,):
        threads *= size
    expected = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel.handle, threads, shared)
    found = kernel.occupancy(block, shared)
    assert found.blocks == expected
    assert found.warps == expected * -(-threads // 32)


def test_a_kernels_occupancy_has_a_launchs_errors(device, module):
    with pytest.raises(ValueError, match=r"bounded: a block of \(65, 1, 1\)"):
        module["bounded"].occupancy(65)
    with pytest.raises(ValueError, match="dynamic shared memory"):
        module["saxpy"].occupancy(32, 1 << 20)


def test_the_suggested_block_fills_a_multiprocessor_best(device, module):
    kernel = module["saxpy"]
    block = kernel.suggested_block()
    best = max(kernel.occupancy(size).warps for size in range(32, 1025, 32))
    assert kernel.occupancy(block).warps == best
    assert kernel.suggested_block(limit=96) <= 96
    assert module["bounded"].suggested_block() <= 64


def test_the_suggested_block_takes_shared_bytes_as_a_function_of_the_block(device, module):
    kernel = module["saxpy"]
    block = kernel.suggested_block(lambda threads: 400 * threads)
    assert 0 < 400 * block <= 48 << 10
    asked = []
    kernel.suggested_block(lambda threads: asked.append(threads) or 0)
    assert asked


def test_an_error_in_that_function_is_raised(device, module):
    def fail(threads):
        raise KeyError(threads)

    with pytest.raises(KeyError):
        module["dynamic"].suggested_block(fail)
