"""The allocation that a report of a wild address names first, by distance, and by whether it still lives."""

from __future__ import annotations

import re
from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import memory
from tests.simulator.support import ok

MEBIBYTE = 1 << 20
KEEP = bindings.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD


@pytest.fixture
def pool(context: Any) -> Any:
    """The default pool, which keeps what it has."""
    found = ok(driver.cuDeviceGetDefaultMemPool(0))
    ok(driver.cuMemPoolSetAttribute(found, KEEP, bindings.cuuint64_t(2**64 - 1)))
    return found


def allocate(size: int) -> int:
    return int(ok(driver.cuMemAllocAsync(size, 0)))


def free(address: int) -> None:
    ok(driver.cuMemFreeAsync(address, 0))
    ok(driver.cuCtxSynchronize())


def reused(*sizes: int) -> int:
    """Allocate one size after the other at one address, each but the last one freed before the next; return it."""
    address = allocate(sizes[0])
    for size in sizes[1:]:
        free(address)
        assert allocate(size) == address
    ok(driver.cuCtxSynchronize())
    return address


def test_the_live_allocation_in_a_freed_ones_place_is_named_first(pool: Any) -> None:
    address = reused(8192, 7996)
    text = memory.describe(address + 7996)
    assert re.match(r"0 bytes after the end of the 7996-byte allocation", text)
    assert re.search(r"; earlier, it was 7996 bytes into the 8192-byte allocation at .*, which was freed$", text)
    assert memory.describe(address + 7995).startswith("7995 bytes into the 7996-byte allocation")


def test_of_several_freed_ones_the_last_is_named_second(pool: Any) -> None:
    text = memory.describe(reused(8192, 8100, 7996) + 8000)
    assert re.match(r"4 bytes after the end of the 7996-byte .*8000 bytes into the 8100-byte .* which was freed", text)


def test_freed_memory_that_nothing_has_taken_is_named_itself(pool: Any) -> None:
    address, neighbour = allocate(8192), allocate(8192)
    free(address)
    assert re.fullmatch(
        r"100 bytes into the 8192-byte allocation at .* which was freed", memory.describe(address + 100)
    )
    assert memory.describe(neighbour + 8192).startswith("0 bytes after the end of the 8192-byte")


def test_a_large_freed_allocation_is_named_where_the_live_one_in_it_is_far(context: Any) -> None:
    """The addresses come round when all have been used, so that a small one may begin in a large one's place."""
    address = int(ok(driver.cuMemAlloc(8 * MEBIBYTE)))
    ok(driver.cuMemFree(address))
    memory.space.region._cursor = address
    assert int(ok(driver.cuMemAlloc(MEBIBYTE))) == address
    near, far = memory.describe(address + MEBIBYTE + 8), memory.describe(address + 3 * MEBIBYTE)
    assert re.match(r"8 bytes after the end of the 1048576-byte .* into the 8388608-byte .* which was freed", near)
    assert re.match(r"3145728 bytes into the 8388608-byte allocation at .* which was freed$", far)


def test_an_address_before_a_live_allocation_is_beside_that_one(context: Any) -> None:
    address = int(ok(driver.cuMemAlloc(MEBIBYTE)))
    assert memory.describe(address - 4).startswith("4 bytes before the start of the 1048576-byte allocation")
    freed = int(ok(driver.cuMemAlloc(MEBIBYTE)))
    ok(driver.cuMemFree(freed))
    memory.space.region._cursor = freed + MEBIBYTE // 2
    inside = int(ok(driver.cuMemAlloc(MEBIBYTE // 4)))
    assert inside == freed + MEBIBYTE // 2
    text = memory.describe(inside - 16)
    assert re.match(r"16 bytes before the start of the 262144-byte .* into the 1048576-byte .* which was freed", text)


def test_an_address_far_from_everything_names_nothing(context: Any) -> None:
    address = int(ok(driver.cuMemAlloc(64 * MEBIBYTE)))
    assert memory.describe(address + 66 * MEBIBYTE) == "no allocation is near it"
    assert memory.describe(8).startswith("host memory that is neither")


PROGRAM = """
import numpy as np
import cudart_py as cuda

copy = cuda.compile('''extern "C" __global__ void copy(float* out, const float* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}''')["copy"]
pool = cuda.MemoryPool(release_threshold=2**40)
stream = cuda.Stream()
for n in (2048, 1999):
    a, out = (cuda.full(n, 1, np.float32, stream=stream, pool=pool) for _ in range(2))
    copy[8, 256, 0, stream](out, a)
    try:
        stream.synchronize()
    except cuda.IllegalAddressError as error:
        print(error)
        break
    del a, out
    stream.synchronize()
"""


@pytest.mark.parametrize("checks", ["off", "warn"])
@pytest.mark.parametrize("engine", ["auto", "numpy", "native"])
def test_a_missing_bound_is_blamed_on_the_allocation_that_was_indexed(python: Any, engine: str, checks: str) -> None:
    said = python(
        PROGRAM,
        CUDART_PY_DRIVER="simulator",
        CUDART_PY_SIMULATOR_ENGINE=engine,
        CUDART_PY_SIMULATOR_CHECKS=checks,
    ).stdout
    assert re.search(r"out of bounds: 0 bytes after the end of the 7996-byte allocation at", said), said
    assert re.search(r"; earlier, it was 7996 bytes into the 8192-byte allocation at .* which was freed", said)
