"""Allocators with which other libraries allocate from our pools: CuPy, PyTorch, nvmath, and stand-ins for these."""

import ctypes
import gc
import sys
import threading
import types

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.interop import allocators


@pytest.fixture
def pool(device):
    with cuda.MemoryPool() as result:
        yield result


class _ThirdStream:
    """A stream of cuda.core, as far as borrowing it goes."""

    def __init__(self, stream):
        self._handle = stream.handle

    def __cuda_stream__(self):
        return 0, self._handle


def filled(address, nbytes, stream):
    array = cuda.DeviceArray.borrow(address, nbytes, np.uint8)
    return bytes(array.fill(7, stream=stream).to_host(stream=stream)) == b"\7" * nbytes


def test_nvmath_allocates_from_the_pool_in_its_stream(pool):
    allocator = allocators.nvmath(pool)
    with cuda.Stream(non_blocking=True) as stream:
        memory = allocator.memalloc_async(1000, _ThirdStream(stream))
        assert memory.size == 1000
        assert pool.used >= 1000
        assert filled(memory.device_ptr, 1000, stream)
        memory.free()
        memory.free()
        assert pool.used == 0
        allocator.memalloc_async(1000, _ThirdStream(stream))  # dropped at once
        gc.collect()
        assert pool.used == 0


def test_nvmath_gets_memory_that_any_stream_may_use_at_once(pool):
    memory = allocators.nvmath(pool).memalloc(300)
    with cuda.Stream(non_blocking=True) as stream:
        assert filled(memory.device_ptr, 300, stream)
    assert pool.used >= 300
    del memory
    gc.collect()
    assert pool.used == 0
    for size, error in ((-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match=r"^NvmathAllocator.memalloc: argument 'size' must be an int"):
            allocators.nvmath(pool).memalloc(size)


def test_the_allocator_is_nvmaths_memory_manager(pool):
    memory = pytest.importorskip("nvmath.memory", reason="nvmath-python is not installed")
    allocator = allocators.nvmath(pool)
    assert isinstance(allocator, memory.BaseCUDAMemoryManager)
    assert isinstance(allocator, memory.BaseCUDAMemoryManagerAsync)


@pytest.fixture
def cupy(monkeypatch):
    """A stand-in for CuPy, with the two names that the allocator uses."""

    class PythonFunctionAllocator:
        def __init__(self, malloc_func, free_func):
            self.malloc_func, self.free_func = malloc_func, free_func

        def malloc(self, size):
            return self.malloc_func(size, 0), self

    stand_in, cuda_ = types.ModuleType("cupy"), types.ModuleType("cupy.cuda")
    stand_in.cuda = cuda_
    cuda_.PythonFunctionAllocator = PythonFunctionAllocator
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda_)
    return cuda_


def test_cupy_allocates_from_the_pool_in_its_current_stream(pool, cupy):
    with cuda.Stream(non_blocking=True) as stream:
        cupy.get_current_stream = lambda: type("Stream", (), {"ptr": stream.handle})()
        malloc = allocators.cupy(pool)
        address, allocator = malloc(2000)
        assert pool.used >= 2000
        assert filled(address, 2000, stream)
        allocator.free_func(address, 0)
        allocator.free_func(address, 0)
        assert pool.used == 0
        assert malloc(0)[0] == 0


def test_pytorch_allocates_from_the_pool_in_its_streams(pool, monkeypatch):
    torch = {name: types.ModuleType(name) for name in ("torch", "torch._C", "torch.cuda", "torch.cuda.memory")}
    torch["torch._C"]._cuda_customAllocator = lambda malloc, free: (malloc, free)
    torch["torch.cuda.memory"]._CUDAAllocator = lambda addresses: addresses
    for name, module in torch.items():
        monkeypatch.setitem(sys.modules, name, module)
    malloc, free = (
        kind(address)
        for kind, address in zip((allocators._MALLOC, allocators._FREE), allocators.torch(pool), strict=True)
    )
    with cuda.Stream(non_blocking=True) as first, cuda.Stream(non_blocking=True) as second:
        address = malloc(3000, 0, ctypes.c_void_p(first.handle))
        assert pool.used >= 3000
        assert filled(address, 3000, first)
        free(address, 3000, 0, ctypes.c_void_p(second.handle))
        assert pool.used == 0
        default = malloc(10, 0, None)
        free(default, 10, 0, None)
        assert pool.used == 0


@pytest.mark.parametrize("make", [allocators.cupy, allocators.torch, allocators.nvmath])
def test_pools_of_other_memory_are_refused_before_the_library_is_imported(device, make):
    for pool, error in ((5, TypeError), (cuda.MemoryPool(kind="pinned"), ValueError)):
        with pytest.raises(error, match=rf"^allocators\.{make.__name__}: argument 'pool' must"):
            make(pool)


def test_real_cupy_allocates_from_the_pool(pool):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if "interop" not in cuda.capabilities():
        pytest.skip("other libraries cannot use this driver's memory")
    cupy.cuda.set_allocator(allocators.cupy(pool))
    try:
        x = cupy.arange(1000)
        assert pool.used >= x.nbytes
        assert int(x.sum()) == 499500
        del x
        assert pool.used < 8000
    finally:
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


def test_memory_of_nvmath_is_freed_in_a_capture_without_invalidating_it(pool):
    memories = [allocators.nvmath(pool).memalloc(300) for _ in range(2)]
    with cuda.Stream() as stream, stream.capture() as graph:
        memories.pop().free()
        memories.pop()  # dropped
        gc.collect()
    assert graph.node_count == 0
    assert pool.used == 0


def test_memory_that_the_garbage_collector_frees_during_an_allocation_is_freed(device, pool, monkeypatch):
    """A collection in the middle of `malloc` calls `free` in the same thread."""
    blocks = allocators._Blocks("allocators.test", pool)

    class Collected(dict):
        def __setitem__(self, address, array):
            for other in list(self):
                blocks.free(other)
            super().__setitem__(address, array)

    blocks._arrays = Collected()
    with cuda.Stream(non_blocking=True) as stream:

        def allocate():
            with cuda.Device(0):
                for _ in range(2):
                    blocks.malloc(100, stream)

        thread = threading.Thread(target=allocate, daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        assert len(blocks._arrays) == 1
        blocks.free(next(iter(blocks._arrays)))
