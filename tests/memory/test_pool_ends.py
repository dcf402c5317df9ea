"""A pool is destroyed only when no free of its memory is in flight, in whatever order objects are closed or dropped."""

import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.context.lifetimes import unfinished
from cudart_py.driver import backend, calls, enums
from tests.memory import close_pools


@pytest.fixture
def destroyed(device, driver_calls):
    """Return a function that counts the pools that the driver was asked to destroy since the fixture began."""
    gc.collect()
    device.synchronize()
    driver_calls.clear()
    return lambda: driver_calls["cuMemPoolDestroy"]


@pytest.mark.parametrize("order", [order.__name__ for order in close_pools.COMPLETE])
def test_no_order_of_closing_destroys_a_pool_too_early(device, destroyed, order):
    # The fixture `pools_end_empty` checks each pool.
    close_pools.run(order, 3)
    gc.collect()
    device.synchronize()
    assert destroyed() == 3


@pytest.mark.parametrize("order", ["array_first", "left_alive", "reset"])
def test_a_process_that_closes_pools_lives(device, python, order):
    program = f"from tests.memory import close_pools; close_pools.run({order!r}, 10)"
    ended = python(program, CUDART_PY_DRIVER=backend._selected)
    assert ended.stdout + ended.stderr == ""


def test_a_pool_with_a_free_in_flight_ends_after_the_next_synchronization(device, destroyed):
    # The free waits for the event, which is recorded after work in the other stream.
    with cuda.Stream(non_blocking=True) as stream, cuda.Stream(non_blocking=True) as other:
        pool = cuda.MemoryPool()
        cuda.zeros(1000, np.uint8, stream=stream, pool=pool).close()
        pool.close()
        other.synchronize()
        stream.synchronize()
        assert destroyed() == 1


@pytest.mark.needs("in_process")
def test_closing_waits_for_nothing(device, destroyed):
    with cuda.Stream(non_blocking=True) as stream:
        pool = cuda.MemoryPool()
        cuda.zeros(1000, np.uint8, stream=stream, pool=pool).close()
        pool.close()
        assert not stream.done
        assert destroyed() == 0
        device.synchronize()
        assert destroyed() == 1


def test_a_pool_that_is_found_before_its_array_waits_for_it(device, destroyed):
    # This happens when the garbage collector finds both in one cycle.
    pool = cuda.MemoryPool()
    array = cuda.empty(1000, np.uint8, pool=pool)
    pool._memory.close()
    device.synchronize()
    assert destroyed() == 0
    array.close()
    device.synchronize()
    assert destroyed() == 1
    pool.close()


def test_an_empty_pool_ends_at_once(device, destroyed):
    cuda.MemoryPool().close()
    assert destroyed() == 1


def test_an_allocation_gets_the_memory_of_closed_pools(device, destroyed, monkeypatch):
    pool = cuda.MemoryPool()
    cuda.zeros(1000, np.uint8, pool=pool).close()
    pool.close()
    allocate = calls.raw.cuMemAllocFromPoolAsync

    def short_of_memory(*arguments):
        return (enums.CUresult.CUDA_ERROR_OUT_OF_MEMORY, None) if unfinished else allocate(*arguments)

    with cuda.MemoryPool() as other:
        monkeypatch.setitem(vars(calls.raw), "cuMemAllocFromPoolAsync", short_of_memory)
        cuda.zeros(1000, np.uint8, pool=other).close()
        assert destroyed() == 1
