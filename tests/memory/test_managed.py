"""Managed memory: advice and prefetches."""

from __future__ import annotations

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


def test_what_is_not_managed_or_has_no_elements_is_named(device):
    for use in (cuda.prefetch, cuda.managed_attributes):
        with pytest.raises(ValueError, match="not managed memory"):
            use(cuda.pinned_empty(3))
    with pytest.raises(ValueError, match="no elements"):
        cuda.prefetch(cuda.managed_empty(3)[:0])
