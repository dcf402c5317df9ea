"""Pinned and mapped host memory."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.memory.host_memory import is_pinned, pinned_owner


def test_it_is_a_real_numpy_array_and_so_are_its_views(device):
    array = cuda.pinned_empty((3, 5), np.float32)
    assert type(array) is np.ndarray
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert is_pinned(array)
    assert is_pinned(array[1:].reshape(-1)[::2])
    assert not is_pinned(array.copy())


def test_it_is_freed_with_the_last_array_over_it(device):
    array = cuda.pinned_empty(10)
    view, owner = array[3:], pinned_owner(array)
    del array
    gc.collect()
    view[:] = 1
    assert not owner.closed


def test_a_mapped_array_has_a_device_pointer(device):
    array = cuda.pinned_empty(10, mapped=True)
    pointer = cuda.device_pointer(array)
    assert int(cuda.device_pointer(array[4:])) == int(pointer) + 32
    for wrong, words in [(cuda.pinned_empty(3), "pinned but not mapped"), (np.empty(3), "pageable")]:
        with pytest.raises(ValueError, match=words):
            cuda.device_pointer(wrong)
    with pytest.raises(TypeError, match="DeviceArray"):
        cuda.device_pointer(cuda.zeros(3))


def test_a_mapped_array_has_its_device_pointer_in_a_thread_without_a_context_too(device):
    array = cuda.pinned_empty(10, mapped=True)
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(cuda.device_pointer, array).result() == cuda.device_pointer(array)


def test_a_kernel_writes_a_mapped_array(device, module):
    x, y = (cuda.pinned_empty(100, np.float32, mapped=True) for _ in range(2))
    x[:], y[:] = 2, 1
    module["saxpy"][1, 128](3.0, x, y, 100)
    device.synchronize()
    np.testing.assert_array_equal(y, np.full(100, 7, np.float32))


def test_write_combined_memory_is_memory(device):
    array = cuda.pinned_empty(100, write_combined=True)
    array[:] = 3
    assert (cuda.to_device(array).to_host() == 3).all()


def test_size_zero_needs_no_memory(device):
    assert cuda.pinned_empty((0, 3)).shape == (0, 3)


def test_too_much_is_out_of_memory(device):
    with pytest.raises(cuda.OutOfMemoryError):
        cuda.pinned_empty(1 << 50, np.uint8)


def test_the_dtype_is_kept_whole(device):
    dtype = np.dtype(np.float64, metadata={"unit": "m"})
    assert cuda.pinned_empty(5, dtype).dtype.metadata == {"unit": "m"}
