"""Allocators for other libraries, whose memory then comes from this package's pools.

    from cudart_py.interop import allocators

    cupy.cuda.set_allocator(allocators.cupy(pool))
    torch.cuda.memory.change_current_allocator(allocators.torch(pool))
    nvmath.linalg.advanced.matmul(a, b, options={"allocator": allocators.nvmath(pool)})

One pool then serves the whole program, instead of one per library that holds on to memory that the others need.
"""

from __future__ import annotations

import ctypes
from typing import Any

from ..base import arguments
from ..context.current import activated
from ..context.device import Device, current_device
from ..memory.array import DeviceArray, allocate_array
from ..memory.pools import MemoryPool, pool_of_kind
from ..streams.stream import Stream

__all__ = ["NvmathAllocator", "cupy", "nvmath", "torch"]
__dir__ = __all__.copy

_MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
# The C functions that PyTorch has been given, which it may call until the process ends.
_given: list[Any] = []


class _Blocks:
    """The allocations of another library, which knows only their addresses."""

    def __init__(self, call: str, pool: MemoryPool | None) -> None:
        self._call = call
        self._pool = None if pool is None else pool_of_kind(call, pool, "device")
        # Without a lock, because the garbage collector may call `free` in the middle of `malloc`. Each change of a dict
        # is a single step.
        self._arrays: dict[int, DeviceArray] = {}

    def array(self, nbytes: int, stream: Stream) -> DeviceArray:
        """Return new memory in the order of a stream, from the pool or from the current pool of the stream's device."""
        return allocate_array(self._call, int(nbytes), "uint8", stream, self._pool)

    def malloc(self, nbytes: int, stream: Stream) -> int:
        """Return the address of new memory; 0 for no bytes."""
        if not nbytes:
            return 0
        array = self.array(nbytes, stream)
        self._arrays[array.pointer] = array
        return array.pointer

    def free(self, address: int | None, stream: Stream | None = None) -> None:
        """Free memory in the order of a stream, by default the one in which it was allocated."""
        array = self._arrays.pop(address or 0, None)
        if array is not None:
            array.close(stream=stream)


def cupy(pool: MemoryPool | None = None) -> Any:
    """Return an allocator for `cupy.cuda.set_allocator` that allocates from a pool.

    `pool` is by default the current pool of the device for which CuPy allocates. Memory is allocated in CuPy's current
    stream, and freed in the same stream. Raises ImportError without CuPy.
    """
    blocks = _Blocks("allocators.cupy", pool)
    from cupy import cuda  # type: ignore[import-not-found]  # an optional library; it takes long to import

    def malloc(nbytes: int, device_id: int) -> int:
        return blocks.malloc(nbytes, Stream.borrow(cuda.get_current_stream(), Device(device_id)))

    def free(address: int, device_id: int) -> None:
        blocks.free(address)

    return cuda.PythonFunctionAllocator(malloc, free).malloc


def torch(pool: MemoryPool | None = None) -> Any:
    """Return an allocator for `torch.cuda.memory.change_current_allocator` that allocates from a pool.

    PyTorch accepts another allocator only before its first allocation. `pool` is by default the current pool of the
    device for which PyTorch allocates. Memory is allocated and freed in the streams that PyTorch passes. If there is
    not enough memory, PyTorch gets a null pointer, and Python reports the OutOfMemoryError as ignored. Raises
    ImportError without PyTorch.
    """
    blocks = _Blocks("allocators.torch", pool)
    from torch._C import _cuda_customAllocator  # type: ignore[import-not-found]  # as for CuPy
    from torch.cuda.memory import _CUDAAllocator  # type: ignore[import-not-found]  # as above

    def malloc(nbytes: int, device: int, stream: int | None) -> int:
        with activated(Device(device)):
            return blocks.malloc(nbytes, Stream.borrow(stream or 0, Device(device)))

    def free(address: int | None, nbytes: int, device: int, stream: int | None) -> None:
        with activated(Device(device)):
            blocks.free(address, Stream.borrow(stream or 0, Device(device)))

    functions = _MALLOC(malloc), _FREE(free)
    _given.append(functions)
    # The documented class takes these two addresses from a shared library, which would have to be compiled.
    return _CUDAAllocator(_cuda_customAllocator(*(ctypes.cast(each, ctypes.c_void_p).value for each in functions)))


class _Memory:
    """Memory of `NvmathAllocator`, freed when it is dropped or by `free()`."""

    __slots__ = ("_array", "device_ptr", "size")

    def __init__(self, array: DeviceArray) -> None:
        self._array = array
        self.device_ptr = array.pointer
        self.size = array.nbytes

    def free(self) -> None:
        """Free the memory in the order of its stream; a second call does nothing."""
        self._array.close()


class NvmathAllocator:
    """The allocator that `nvmath` returns: a BaseCUDAMemoryManager and a BaseCUDAMemoryManagerAsync of nvmath."""

    def __init__(self, pool: MemoryPool | None = None) -> None:
        self._blocks = _Blocks("allocators.nvmath", pool)
        self._device = None if pool is None else pool.device

    def memalloc(self, size: int) -> _Memory:
        """Return memory that any stream may use immediately; freeing it waits for the device."""
        nbytes = arguments.integer("NvmathAllocator.memalloc", "size", size, 0)
        # Freeing memory whose stream is closed waits for the device.
        with activated(self._device or current_device()), Stream(non_blocking=True) as stream:
            array = self._blocks.array(nbytes, stream)
            stream.synchronize()
        return _Memory(array)

    def memalloc_async(self, size: int, stream: Any) -> _Memory:
        """Return memory in the order of a stream, in which it is also freed."""
        nbytes = arguments.integer("NvmathAllocator.memalloc_async", "size", size, 0)
        return _Memory(self._blocks.array(nbytes, Stream.borrow(stream)))


def nvmath(pool: MemoryPool | None = None) -> NvmathAllocator:
    """Return an allocator for the option `allocator` of nvmath-python's functions that allocates from a pool.

    `pool` is by default the current pool of the device for which nvmath allocates.
    """
    return NvmathAllocator(pool)
