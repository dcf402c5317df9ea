"""Managed memory: arrays of the host and of kernels at once, advice and prefetches."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.memory.host_memory import is_pinned, pinned_owner


def test_it_is_a_real_numpy_array(device):
    array = cuda.managed_empty((3, 4), np.int32)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == ((3, 4), np.int32)
    array[:] = np.arange(12).reshape(3, 4)
    assert array.sum() == 66


def test_host_and_device_have_one_address(device):
    array = cuda.managed_empty(10)
    assert int(cuda.device_pointer(array[3:])) == array.ctypes.data + 24


def test_a_kernel_reads_and_writes_it(device, module):
    x, y = cuda.managed_empty(100, np.float32), cuda.managed_empty(100, np.float32)
    x[:], y[:] = 2, 1
    module["saxpy"][1, 128](3.0, x, y, 100)
    device.synchronize()
    np.testing.assert_array_equal(y, np.full(100, 7, np.float32))


def test_a_kernel_checks_its_dtype(device, module):
    with pytest.raises(TypeError, match="float32"):
        module["saxpy"][1, 128](3.0, cuda.managed_empty(100), None, 100)


def test_copies_go_both_ways(device, rng):
    host, array = rng.random(1000), cuda.managed_empty(1000)
    cuda.memcpy(array, host)
    np.testing.assert_array_equal(array, host)
    on_device = cuda.to_device(array)
    array[:] = 0
    on_device.to_host(array)
    np.testing.assert_array_equal(array, host)


def test_it_is_freed_with_the_last_array_over_it(device):
    array = cuda.managed_empty(10)
    view, owner = array[3:], pinned_owner(array)
    del array
    gc.collect()
    view[:] = 1
    assert not owner.closed
    assert is_pinned(view)


def test_a_closed_one_is_refused(device):
    array = cuda.managed_empty(10)
    pinned_owner(array).close()
    for use in (
        cuda.device_pointer,
        cuda.prefetch,
        cuda.managed_attributes,
        lambda a: cuda.advise(a, "set_read_mostly"),
    ):
        with pytest.raises(ValueError, match="ManagedMemory is closed"):
            use(array)


def test_no_elements_need_no_memory(device):
    assert cuda.managed_empty((0, 3)).shape == (0, 3)


def test_advice_reaches_the_driver(device):
    array = cuda.managed_empty(1 << 16)
    cuda.advise(array, "set_read_mostly")
    assert cuda.managed_attributes(array).read_mostly
    cuda.advise(array, "unset_read_mostly")
    assert not cuda.managed_attributes(array).read_mostly
    cuda.advise(array, "set_preferred_location", "host")
    assert cuda.managed_attributes(array).preferred_location == "host"
    cuda.advise(array, "set_preferred_location", device)
    assert cuda.managed_attributes(array).preferred_location is device
    cuda.advise(array, "unset_preferred_location")
    assert cuda.managed_attributes(array).preferred_location is None
    cuda.advise(array, "set_accessed_by")
    assert device in cuda.managed_attributes(array).accessed_by
    cuda.advise(array, "unset_accessed_by", device)
    assert device not in cuda.managed_attributes(array).accessed_by


def test_new_memory_has_no_advice(device):
    assert cuda.managed_attributes(cuda.managed_empty(1 << 16)) == cuda.ManagedAttributes(False, None, (), None)


def test_the_host_can_be_named_beside_every_device(device):
    array = cuda.managed_empty(1 << 16)
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


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (
            lambda: cuda.advise(cuda.managed_empty(3), "read_mostly"),
            ValueError,
            "'advice' must be one of .* not the str",
        ),
        (lambda: cuda.advise(np.empty(3), "set_read_mostly"), ValueError, "not managed memory"),
        (lambda: cuda.prefetch(cuda.pinned_empty(3)), ValueError, "not managed memory"),
        (lambda: cuda.managed_attributes(cuda.pinned_empty(3)), ValueError, "not managed memory"),
        (lambda: cuda.managed_attributes(cuda.zeros(3)), TypeError, "DeviceArray"),
        (lambda: cuda.prefetch(cuda.zeros(3)), TypeError, "DeviceArray"),
        (lambda: cuda.prefetch(cuda.managed_empty(3)[:0]), ValueError, "no elements"),
        (
            lambda: cuda.prefetch(cuda.managed_empty(3), 0),
            TypeError,
            "'location' must be a Device or 'host', not the int",
        ),
        (lambda: cuda.prefetch(cuda.managed_empty(3), "cpu"), TypeError, "'cpu'"),
        (lambda: cuda.prefetch(cuda.managed_empty(3), stream=1), TypeError, "stream"),
        (lambda: cuda.managed_empty(-1), ValueError, "negative"),
        (lambda: cuda.managed_empty(1, object), TypeError, "Python objects"),
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
