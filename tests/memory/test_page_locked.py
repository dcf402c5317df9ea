"""Host memory that kernels can access: pinned and managed memory, and NumPy arrays that are page-locked temporarily."""

import functools
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.memory.host_memory import is_pinned, pinned_owner

MAKERS = {
    "pinned": cuda.pinned_empty,
    "mapped": lambda shape, dtype=np.float64: cuda.pinned_empty(shape, dtype, mapped=True),
    "write-combined": lambda shape, dtype=np.float64: cuda.pinned_empty(shape, dtype, write_combined=True),
    "managed": cuda.managed_empty,
}


@pytest.fixture(params=MAKERS.values(), ids=MAKERS)
def make(request):
    return request.param


def test_it_is_a_real_numpy_array_that_is_freed_with_the_last_view(device, make, rng):
    host, array = rng.random((3, 5)).astype(np.float32), make((3, 5), np.float32)
    assert (type(array), array.shape, array.dtype) == (np.ndarray, (3, 5), np.float32)
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert is_pinned(array)
    assert not is_pinned(array.copy())
    view, owner = array.reshape(-1)[::2], pinned_owner(array)
    assert is_pinned(view)
    cuda.memcpy(array, host)
    on_device = cuda.to_device(array)
    array[:] = 0
    np.testing.assert_array_equal(on_device.to_host(array), host)
    del array
    gc.collect()
    view[:] = 1
    assert not owner.closed
    gone = weakref.ref(owner)
    del view, owner
    gc.collect()
    assert gone() is None
    assert make((0, 3)).shape == (0, 3)


@pytest.mark.parametrize("kind", ["mapped", "managed", "registered"])
def test_kernels_take_it_and_it_has_a_device_pointer_in_a_thread_without_a_context_too(device, module, kind):
    x, y = (MAKERS.get(kind, np.empty)(100, np.float32) for _ in range(2))
    if kind == "registered":
        registered = [cuda.register_host(array) for array in (x, y)]
    pointer = cuda.device_pointer(x)
    assert int(cuda.device_pointer(x[4:])) == int(pointer) + 16
    if kind == "managed":  # host and device have one address
        assert int(pointer) == x.ctypes.data
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(cuda.device_pointer, x).result() == pointer
    x[:], y[:] = 2, 1
    module["saxpy"][1, 128](3.0, x, y, 100)
    device.synchronize()
    np.testing.assert_array_equal(y, np.full(100, 7, np.float32))
    with pytest.raises(TypeError, match="float32"):
        module["saxpy"][1, 128](3.0, cuda.managed_empty(100), None, 100)
    if kind == "registered":
        registered[0].close()
        with pytest.raises(ValueError, match="pageable"):
            cuda.device_pointer(x)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: cuda.device_pointer(cuda.pinned_empty(3)), ValueError, "pinned but not mapped"),
        (lambda: cuda.device_pointer(np.empty(3)), ValueError, "pageable"),
        (lambda: cuda.pinned_empty(1 << 50, np.uint8), cuda.OutOfMemoryError, "memory"),
        (lambda: cuda.register_host(np.zeros(0)), ValueError, "register_host: argument 'array' must have at least one"),
        (lambda: cuda.register_host(np.zeros((4, 4))[:, :2]), ValueError, "must be contiguous"),
        (lambda: cuda.register_host(np.broadcast_to(np.zeros(1), 1)), ValueError, "read-only"),
    ],
)
def test_what_cannot_be_is_named(device, make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("dtype", ["f4", "?", "c16", "M8[ns]", [("a", "u1"), ("b", "f8")], "S3"])
def test_pinned_and_registered_arrays_of_any_dtype_go_there_and_back(device, rng, dtype):
    host, back = cuda.pinned_empty(37, dtype), np.empty(37, dtype)
    assert host.dtype == np.dtype(dtype)
    assert is_pinned(host)
    host.view(np.uint8)[:] = rng.integers(0, 2, host.nbytes)
    array, stream = cuda.empty(37, dtype), cuda.Stream()
    cuda.memcpy(array, host, stream=stream)
    with cuda.register_host(back):
        cuda.memcpy(back, array, stream=stream)
        stream.synchronize()
    assert back.tobytes() == host.tobytes()


def test_the_dtype_is_kept_whole(device):
    dtype = np.dtype(np.float64, metadata={"unit": "m"})
    assert cuda.pinned_empty(5, dtype).dtype.metadata == {"unit": "m"}


# -- registered ----------------------------------------------------------------------------------


def test_an_array_is_pinned_inside_the_block_as_far_as_it_lies_wholly_inside(device):
    array = np.zeros(1000)
    part = array[100:200]
    with cuda.register_host(part) as memory:
        assert memory.array is part
        assert np.asarray(memory).view(np.float64).tolist() == [0] * 100  # NumPy sees an array of bytes
        with pytest.raises(cuda.errors.InvalidValueError):
            cuda.register_host(part)
        for inside in (part, array[100:200:7], array[150:100:-1]):
            assert is_pinned(inside)
        for outside in (array, array[199:201], array[:50]):
            assert not is_pinned(outside)
    assert memory.closed
    assert not is_pinned(part)


def test_the_array_stays_alive_while_it_is_locked_and_dropping_the_result_unlocks(device):
    array = np.zeros(1000).view(type("Kept", (np.ndarray,), {}))
    gone = weakref.ref(array)
    memory = cuda.register_host(array)
    del array
    gc.collect()
    assert gone() is not None
    del memory
    gc.collect()
    assert gone() is None
    array = np.zeros(1000)
    cuda.register_host(array)
    gc.collect()
    assert not is_pinned(array)
    with cuda.register_host(array):
        pass


def test_many_come_and_go(device):
    arrays = [np.zeros(10_000) for _ in range(50)]
    for _ in range(4):
        held = [cuda.register_host(array) for array in arrays]
        assert all(is_pinned(array) for array in arrays)
        for memory in held[::-1]:
            memory.close()
        assert not any(is_pinned(array) for array in arrays)


# -- advice and prefetches of managed memory ---------------------------------------------------------


def test_closed_managed_memory_is_refused(device):
    array = cuda.managed_empty(10)
    pinned_owner(array).close()
    advise = functools.partial(cuda.advise, advice="set_read_mostly")
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
        with pytest.raises(ValueError, match="argument 'array' must be managed memory"):
            use(cuda.pinned_empty(3))
    with pytest.raises(ValueError, match="must have at least one element"):
        cuda.prefetch(cuda.managed_empty(3)[:0])
