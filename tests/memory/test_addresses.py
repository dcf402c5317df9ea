"""What the driver knows of addresses."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda


def test_device_memory(device):
    array = cuda.zeros(1000)
    found = cuda.pointer_attributes(array[10:])
    assert (found.kind, found.device) == ("device", device)
    assert found.address == found.device_pointer == array.pointer + 80
    assert found.host_pointer is None
    assert found.start == array.pointer
    assert found.nbytes >= array.nbytes


def test_pinned_memory(device):
    array = cuda.pinned_empty(1000)
    found = cuda.pointer_attributes(array[10:])
    assert (found.kind, found.pool) == ("host", None)
    assert found.host_pointer == array.ctypes.data + 80
    assert found.start == array.ctypes.data


def test_registered_memory_is_host_memory_until_it_is_closed(device):
    array = np.zeros(100_000)
    with cuda.register_host(array):
        assert cuda.pointer_attributes(array).kind == "host"
    assert cuda.pointer_attributes(array).kind == "pageable"


def test_managed_memory(device):
    found = cuda.pointer_attributes(cuda.managed_empty(10))
    assert found.kind == "managed"
    assert found.host_pointer == found.device_pointer == found.address


def test_pageable_memory(device):
    array = np.zeros(10)
    found = cuda.pointer_attributes(array)
    assert (found.kind, found.device, found.device_pointer, found.start) == ("pageable", None, None, None)
    assert found.host_pointer == array.ctypes.data


def test_a_pool_is_named(device):
    with cuda.MemoryPool() as pool:
        array = cuda.empty(10, pool=pool)
        assert cuda.pointer_attributes(array).pool == pool.handle
        array.close()


def test_pointers_and_addresses_are_taken(device):
    array = cuda.zeros(10)
    expected = cuda.pointer_attributes(array)
    assert cuda.pointer_attributes(cuda.Pointer(array.pointer)) == expected
    assert cuda.pointer_attributes(array.pointer) == expected


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: "x", TypeError, "str"),
        (lambda: True, TypeError, "bool"),
        (lambda: -1, ValueError, "argument 'x' must be an int from 0 to"),
        (lambda: cuda.zeros(0), ValueError, "no elements"),
        (lambda: np.zeros(0), ValueError, "no elements"),
    ],
)
def test_other_things_are_refused(device, make, error, words):
    with pytest.raises(error, match=words):
        cuda.pointer_attributes(make())
