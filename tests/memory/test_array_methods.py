"""What a device array does by its methods, and what it refuses to NumPy and to Python's operators."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import cudart_py as cuda


@pytest.mark.parametrize(
    "ask",
    [
        np.asarray,
        np.array,
        lambda d: np.stack([d, d]),
        lambda d: np.arange(6) == d,
        lambda d: d == np.arange(6),
        lambda d: d == 0.0,
        lambda d: d != 0.0,
        lambda d: d == cuda.zeros(6),
        lambda d: 0.0 in d,
    ],
)
def test_the_host_does_not_take_an_array_for_a_sequence_of_objects(device, ask):
    with pytest.raises(TypeError, match=r"to_host\(\)"):
        ask(cuda.zeros(6))


@pytest.mark.parametrize("ask", [np.sum, np.sin, lambda d: np.arange(6) + d, lambda d: d * 2])
def test_arithmetic_is_refused(device, ask):
    with pytest.raises(TypeError):
        ask(cuda.zeros(6))


def test_an_array_is_itself_and_can_be_a_key(device):
    x, y = cuda.zeros(3), cuda.zeros(3)
    assert (x == x) is True  # that is the question
    assert (x == None) is False  # noqa: E711  # as above
    assert {x: 1, y: 2}[x] == 1


def test_a_copy_has_memory_of_its_own_and_c_order(device, rng):
    host = rng.random((5, 7)).astype(np.float32)
    x = cuda.to_device(host)
    copy = x[1:, 2:6].copy()
    x.fill(0)
    assert copy.is_contiguous
    np.testing.assert_array_equal(copy.to_host(), host[1:, 2:6])


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int16, np.float32, np.float64, np.complex128, [("a", "<i4"), ("b", "u1")]]
)
def test_fill_sets_every_element_of_whole_arrays_and_of_windows(device, dtype):
    dtype = np.dtype(dtype)
    value = np.array((7, 5), dtype) if dtype.names else dtype.type(7)
    x = cuda.zeros((6, 9), dtype)
    expected = np.zeros((6, 9), dtype)
    assert x[1:4, 2:7].fill(value) is not x
    expected[1:4, 2:7] = value
    np.testing.assert_array_equal(x.to_host(), expected)
    assert x.fill(value) is x
    np.testing.assert_array_equal(x.to_host(), np.full((6, 9), value, dtype))


def test_fill_of_a_value_that_does_not_fit_changes_nothing(device):
    x = cuda.zeros(4, np.uint8)
    with pytest.raises(ValueError, match="DeviceArray.fill: argument 'value' must be a value that fits uint8"):
        x.fill(256)
    assert not x.to_host().any()


def test_fill_of_a_closed_array_is_refused(device):
    x = cuda.zeros(4)
    x.close()
    with pytest.raises(ValueError, match="^this DeviceArray is closed$"):
        x.fill(1)


def test_the_axes_of_t_are_reversed(device, rng):
    host = rng.random((3, 4, 5))
    turned = cuda.to_device(host).T
    assert turned.shape == (5, 4, 3)
    np.testing.assert_array_equal(turned.to_host(), host.T)
    np.testing.assert_array_equal(turned.T.to_host(), host)
    np.testing.assert_array_equal(turned.copy().to_host(), host.T)


@pytest.mark.parametrize(
    ("given", "expected"),
    [((-1,), (24,)), ((4, -1), (4, 6)), ((-1, 3, 2), (4, 3, 2)), (([2, -1],), (2, 12)), ((24, -1), (24, 1))],
)
def test_one_size_of_a_new_shape_may_be_left_open(device, given, expected):
    assert cuda.zeros((2, 3, 4)).reshape(*given).shape == expected


@pytest.mark.parametrize("given", [(-1, -1), (5, -1), (-2,), (0, -1)])
def test_a_new_shape_that_cannot_be_is_refused(device, given):
    with pytest.raises(ValueError, match="argument 'shape' must be"):
        cuda.zeros((2, 3, 4)).reshape(*given)


def test_zeros_like_has_the_shape_and_dtype_of_another(device):
    for other in (np.ones((2, 3), np.int16), cuda.full((2, 3), 1, np.int16)):
        made = cuda.zeros_like(other)
        assert (made.shape, made.dtype) == ((2, 3), np.int16)
        assert not made.to_host().any()


def test_to_device_converts_first(device):
    made = cuda.to_device([1, 2, 3], np.float32)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made.to_host(), [1, 2, 3])
    with pytest.raises(TypeError, match="argument 'host' has <U1, which NumPy cannot make float32"):
        cuda.to_device(["a"], dtype=np.float32)


@pytest.mark.parametrize(
    "make",
    [
        lambda pool: cuda.zeros(1000, np.uint8, pool=pool),
        lambda pool: cuda.full(1000, 3, np.uint8, pool=pool),
        lambda pool: cuda.to_device(np.zeros(1000, np.uint8), pool=pool),
    ],
)
def test_every_way_to_make_an_array_takes_a_pool(device, make):
    with cuda.MemoryPool() as pool, make(pool):
        assert pool.used >= 1000


SOURCES = {
    "bytes": lambda data: data,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "ctypes": lambda data: (ctypes.c_ubyte * len(data)).from_buffer_copy(data),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_bytes_are_copied_as_elements(device, make):
    host = np.arange(12, dtype=np.int32).reshape(3, 4)
    x = cuda.empty((3, 4), np.int32).copy_from(make(host.tobytes()))
    np.testing.assert_array_equal(x.to_host(), host)
    y = cuda.empty((3, 4), np.int32)
    cuda.memcpy(y, make(host.tobytes()))
    np.testing.assert_array_equal(y.to_host(), host)


def test_elements_are_copied_into_bytes(device):
    host = np.arange(5, dtype=np.int16)
    for target in (bytearray(10), (ctypes.c_short * 5)()):
        cuda.memcpy(target, cuda.to_device(host))
        assert bytes(target) == host.tobytes()
    with pytest.raises(ValueError, match="memcpy: argument 'dst' is read-only"):
        cuda.memcpy(bytes(10), cuda.to_device(host))


def test_too_few_bytes_are_refused(device):
    x = cuda.zeros(4, np.int32)
    with pytest.raises(ValueError, match="argument 'source' has 15 bytes, and the array has 16"):
        x.copy_from(b"\1" * 15)
    with pytest.raises(ValueError, match="argument 'source' must be in one piece"):
        x.copy_from(memoryview(bytes(32))[::2])
    assert not x.to_host().any()


def test_an_array_is_copied_from_another(device, rng):
    host = rng.random((4, 6))
    x = cuda.empty((4, 3)).copy_from(cuda.to_device(host)[:, ::2])
    np.testing.assert_array_equal(x.to_host(), host[:, ::2])
    with pytest.raises(ValueError, match="argument 'source' must be of the array's shape"):
        x.copy_from(cuda.zeros(12))
    with pytest.raises(TypeError, match="argument 'source' must be of the array's dtype float64"):
        x.copy_from(cuda.zeros((4, 3), np.float32))
