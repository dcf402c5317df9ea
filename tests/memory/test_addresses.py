"""Attributes of addresses, as the driver reports them."""

import numpy as np
import pytest

import cudart_py as cuda


def test_device_memory_by_arrays_pointers_and_addresses(device):
    array = cuda.zeros(1000)
    found = cuda.pointer_attributes(array[10:])
    assert (found.kind, found.device, found.host_pointer) == ("device", device, None)
    assert found.address == found.device_pointer == array.pointer + 80
    assert found.start == array.pointer
    assert found.nbytes >= array.nbytes
    for same in (cuda.Pointer(array.pointer + 80), array.pointer + 80):
        assert cuda.pointer_attributes(same) == found
    with cuda.MemoryPool() as pool, cuda.empty(10, pool=pool) as array:
        assert cuda.pointer_attributes(array).pool == pool.handle


def test_host_memory(device):
    array, plain = cuda.pinned_empty(1000), np.zeros(100_000)
    found = cuda.pointer_attributes(array[10:])
    assert (found.kind, found.pool, found.start) == ("host", None, array.ctypes.data)
    assert found.host_pointer == array.ctypes.data + 80
    found = cuda.pointer_attributes(cuda.managed_empty(10))
    assert found.kind == "managed"
    assert found.host_pointer == found.device_pointer == found.address
    with cuda.register_host(plain):
        assert cuda.pointer_attributes(plain).kind == "host"
    found = cuda.pointer_attributes(plain)
    assert (found.kind, found.device, found.device_pointer, found.start) == ("pageable", None, None, None)
    assert found.host_pointer == plain.ctypes.data


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: -1, ValueError, "argument 'x' must be an int from 0 to"),
        (lambda: cuda.zeros(0), ValueError, "at least one element"),
        (lambda: np.zeros(0), ValueError, "at least one element"),
    ],
)
def test_other_things_are_refused(device, make, error, words):
    with pytest.raises(error, match=words):
        cuda.pointer_attributes(make())
