"""Memory pools: statistics, limits, thresholds and ownership."""

import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver.calls import api
from cudart_py.memory.array import allocate_array
from tests.interrupts import interrupted

MIB = 1 << 20


def test_a_pool_counts_what_its_arrays_use_and_the_high_marks_begin_again(device):
    with cuda.MemoryPool() as pool:
        assert (pool.used, pool.reserved) == (0, 0)
        array = cuda.empty(4 * MIB, np.uint8, pool=pool)
        assert pool.used == 4 * MIB
        assert pool.reserved >= 4 * MIB
        array.close()
        device.synchronize()
        assert pool.used == 0
        assert pool.used_high == 4 * MIB
        assert pool.reserved_high >= 4 * MIB
        small = cuda.empty(MIB, np.uint8, pool=pool)
        device.synchronize()
        pool.reset_high()
        assert pool.used_high == MIB
        small.close()


@pytest.mark.parametrize("of_its_own", [False, True])
def test_an_interrupt_beside_the_drivers_allocation_loses_no_memory(device, of_its_own):
    pool = cuda.MemoryPool() if of_its_own else None
    watched = cuda.MemoryPool.current(device) if pool is None else pool

    def used():
        gc.collect(1)  # objects left by an interrupt are young, and a full collection would be slow here
        device.synchronize()
        return watched.used

    def allocate():
        cuda.empty(MIB, np.uint8, pool=pool).close()

    before, step = used(), 1
    while interrupted(allocate, {allocate_array.__code__}, step, behind_driver=False):
        assert used() == before, f"interrupt {step}"
        step += 1
    assert step > 1


def test_a_pool_holds_no_more_than_its_maximum(device):
    with cuda.MemoryPool(max_size=32 * MIB) as pool:
        first = cuda.empty(24 * MIB, np.uint8, pool=pool)
        with pytest.raises(
            cuda.OutOfMemoryError, match=f"the pool holds at most {32 * MIB:,}, of which {24 * MIB:,} are in use"
        ):
            cuda.empty(24 * MIB, np.uint8, pool=pool)
        first.close()
        device.synchronize()
        cuda.empty(24 * MIB, np.uint8, pool=pool).close()
        assert pool.max_size == 32 * MIB
        pool.make_current()
        with pytest.raises(cuda.OutOfMemoryError, match=f"the pool holds at most {32 * MIB:,}"):
            cuda.empty(64 * MIB, np.uint8)


def test_a_size_in_the_place_of_the_device_is_refused_with_the_argument_for_sizes(device):
    with pytest.raises(TypeError, match="'device' must be a Device or None, not the int .*max_size="):
        cuda.MemoryPool(64 * MIB)


@pytest.mark.needs("profile")  # a GPU's driver rounds up the limit too
def test_a_limit_that_rounding_exceeds_is_explained(device):
    with cuda.MemoryPool(max_size=1000) as pool:
        with pytest.raises(cuda.OutOfMemoryError, match="the pool holds at most 1,000, .* rounded up"):
            cuda.empty(1000, np.uint8, pool=pool)
        with pytest.raises(cuda.OutOfMemoryError, match="the pool holds at most 1,000, of which 0 are in use \\("):
            cuda.empty(1001, np.uint8, pool=pool)


def test_memory_below_the_threshold_is_kept_and_goes_back_by_trim_or_at_a_synchronisation(device):
    with cuda.MemoryPool() as pool:
        cuda.empty(64 * MIB, np.uint8, pool=pool).close()
        device.synchronize()
        assert pool.reserved >= 64 * MIB
        pool.trim()
        assert pool.reserved == 0
        pool.release_threshold = 0
        assert pool.release_threshold == 0
        cuda.empty(64 * MIB, np.uint8, pool=pool).close()
        device.synchronize()
        assert pool.reserved == 0
    with cuda.MemoryPool(release_threshold=1 << 40) as pool:
        assert pool.release_threshold == 1 << 40


def test_closing_a_pool_leaves_its_arrays(device):
    pool = cuda.MemoryPool()
    array = cuda.empty(100, pool=pool)
    pool.close()
    array.copy_from(np.arange(100.0))
    np.testing.assert_array_equal(array.to_host(), np.arange(100.0))
    array.close()
    for use in (lambda: cuda.empty(1, pool=pool), pool.trim):
        with pytest.raises(ValueError, match="closed MemoryPool|MemoryPool is closed"):
            use()
    assert "closed" in repr(pool)


def test_the_devices_pool_is_known_and_never_destroyed(device):
    pool = cuda.MemoryPool.current(device)
    before = pool.used
    array = cuda.empty(MIB, np.uint8)
    assert pool.used >= before + MIB
    pool.close()
    array.close()
    assert cuda.MemoryPool.current(device).used >= 0


@pytest.mark.parametrize("dropped", [True, False])
def test_the_device_may_use_another_pool_until_it_is_closed(device, dropped):
    original = cuda.MemoryPool.current(device).handle
    pool = cuda.MemoryPool()
    pool.make_current()
    assert cuda.MemoryPool.current(device) is pool
    try:
        if dropped:
            del pool  # the device keeps it alive
            gc.collect()
        array = cuda.empty(MIB, np.uint8)
        assert cuda.MemoryPool.current(device).used == MIB
        array.close()
        if not dropped:
            pool.close()
            assert cuda.MemoryPool.current(device).handle == original
            cuda.zeros(3).close()
    finally:
        cuda.MemoryPool.default(device).make_current()
    assert cuda.MemoryPool.current(device).handle == original


@pytest.mark.parametrize("stream", [cuda.legacy_default, cuda.per_thread_default])
def test_an_array_that_is_allocated_while_the_pool_changes_keeps_its_own_pool(device, monkeypatch, stream):
    arrays = []
    change = api.cuDeviceSetMemPool

    def change_and_allocate(*arguments):
        change(*arguments)
        arrays.append(cuda.empty(8, stream=stream))  # another thread may do so before the setter continues

    monkeypatch.setattr(api, "cuDeviceSetMemPool", change_and_allocate)
    pools = cuda.MemoryPool(), cuda.MemoryPool()
    for pool in (*pools, cuda.MemoryPool.default(device)):
        pool.make_current()
    memory_of = {pool.handle: pool._memory for pool in pools}
    allocated_from = [memory_of.get(cuda.pointer_attributes(array).pool) for array in arrays]
    assert set(memory_of.values()) <= set(allocated_from)
    for array, memory in zip(arrays, allocated_from, strict=True):
        assert memory is None or memory in array._origin
