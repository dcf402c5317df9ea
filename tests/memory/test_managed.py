"""Managed memory: advice and prefetches."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.memory.host_memory import pinned_owner


def test_a_closed_one_is_refused(device):
    array = cuda.managed_empty(10)
    pinned_owner(array).close()
    advise = lambda array: cuda.advise(array, "set_read_mostly")  # noqa: E731
    for use in (cuda.device_pointer, cuda.prefetch, cuda.managed_attributes, advise):
        with pytest.raises(ValueError, match="ManagedMemory is closed"):
            use(array)


def test_advice_reaches_the_driver(device):
    array = cuda.managed_empty(1 << 16)
    assert cuda.managed_attributes(array) == cuda.ManagedAttributes(False, None, (), None)
    cuda.advise(array, "set_read_mostly")
    assert cuda.managed_attributes(array).read_mostly
    cuda.advise(array, "unset_read_mostly")
    assert not cuda.managed_attributes(array).read_mostly
    for location in ("host", device):
        cuda.advise(array, "set_preferred_location", location)
        assert cuda.managed_attributes(array).preferred_location == location
    cuda.advise(array, "unset_preferred_location")
    assert cuda.managed_attributes(array).preferred_location is None
    cuda.advise(array, "set_accessed_by")
    assert cuda.managed_attributes(array).accessed_by == (device,)
    cuda.advise(array, "unset_accessed_by", device)
    assert cuda.managed_attributes(array).accessed_by == ()
    for location in ("host", *cuda.devices()):
        cuda.advise(array, "set_accessed_by", location)
    assert set(cuda.managed_attributes(array).accessed_by) == {"host", *cuda.devices()}


@pytest.mark.parametrize("with_stream", [False, True])
def test_a_prefetch_is_in_the_order_of_its_stream(device, with_stream):
    array = cuda.managed_empty(1 << 16)
    array[:] = 5
    stream = cuda.Stream() if with_stream else None
    cuda.prefetch(array, stream=stream)
    (stream or device).synchronize()
    assert cuda.managed_attributes(array).last_prefetch_location is device
    cuda.prefetch(array, "host", stream=stream)
    (stream or device).synchronize()
    assert cuda.managed_attributes(array).last_prefetch_location == "host"
    assert (array == 5).all()


def managed(count=3):
    return cuda.managed_empty(count)


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (lambda: cuda.advise(managed(), "read_mostly"), ValueError, "'advice' must be one of .* not the str"),
        (lambda: cuda.advise(np.empty(3), "set_read_mostly"), ValueError, "not managed memory"),
        (lambda: cuda.prefetch(cuda.pinned_empty(3)), ValueError, "not managed memory"),
        (lambda: cuda.managed_attributes(cuda.pinned_empty(3)), ValueError, "not managed memory"),
        (lambda: cuda.managed_attributes(cuda.zeros(3)), TypeError, "DeviceArray"),
        (lambda: cuda.prefetch(cuda.zeros(3)), TypeError, "DeviceArray"),
        (lambda: cuda.prefetch(managed()[:0]), ValueError, "no elements"),
        (lambda: cuda.prefetch(managed(), 0), TypeError, "'location' must be a Device or 'host', not the int"),
        (lambda: cuda.prefetch(managed(), "cpu"), TypeError, "'cpu'"),
        (lambda: cuda.prefetch(managed(), stream=1), TypeError, "stream"),
    ],
)
def test_wrong_arguments_are_named(device, use, error, words):
    with pytest.raises(error, match=words):
        use()


@pytest.mark.xdist_group("free memory")
def test_many_leave_nothing_behind(device):
    before = device.memory_info.free
    for _ in range(200):
        cuda.managed_empty(1 << 16)
    gc.collect()
    device.synchronize()
    assert device.memory_info.free >= before - (4 << 20)
