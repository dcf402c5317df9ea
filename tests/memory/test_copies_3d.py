"""Copies of boxes of 3-D arrays."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cudart_py as cuda
from cudart_py.driver.seam import api


@pytest.fixture
def calls(monkeypatch):
    """Count the copies that are asked of the driver."""
    counted = Counter()

    def counting(name, function):
        def call(*arguments):
            counted[name] += 1
            return function(*arguments)

        return call

    for name in ("cuMemcpy3DAsync", "cuMemcpy2DAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync"):
        monkeypatch.setitem(vars(api), name, counting(name, getattr(api, name)))
    return counted


def test_a_box_of_a_box_is_one_copy(device, calls):
    host = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
    array = cuda.zeros((6, 7, 8), np.float32)
    cuda.memcpy3d(array, host, (2, 3, 4), dst_start=(1, 2, 3), src_start=(2, 1, 0))
    assert calls == {"cuMemcpy3DAsync": 1}
    expected = np.zeros((6, 7, 8), np.float32)
    expected[1:3, 2:5, 3:7] = host[2:4, 1:4, 0:4]
    np.testing.assert_array_equal(array.to_host(), expected)


def test_the_whole_of_the_source_is_the_default(device):
    host = np.arange(24.0).reshape(2, 3, 4)
    array = cuda.zeros((3, 4, 5))
    cuda.memcpy3d(array, host, dst_start=(1, 1, 1))
    expected = np.zeros((3, 4, 5))
    expected[1:, 1:, 1:] = host
    np.testing.assert_array_equal(array.to_host(), expected)
    out = np.zeros((1, 2, 2))
    cuda.memcpy3d(out, array, src_start=(2, 2, 3))
    np.testing.assert_array_equal(out, expected[2:, 2:, 3:])


def test_slices_with_memcpy_are_one_copy_too(device, calls):
    host = np.arange(4 * 5 * 6).reshape(4, 5, 6)
    array = cuda.to_device(host)
    calls.clear()
    out = np.zeros((2, 3, 4), host.dtype)
    cuda.memcpy(out, array[1:3, 1:4, 2:6])
    assert calls == {"cuMemcpy3DAsync": 1}
    np.testing.assert_array_equal(out, host[1:3, 1:4, 2:6])


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"shape": (2, 2, 2), "dst_start": (3, 0, 0)}, r"2 x 2 x 2 elements at \(3, 0, 0\) reaches outside dst"),
        ({"shape": (1, 1, 9)}, "outside dst"),
        ({"shape": (1, 1, 1), "src_start": (0, -1, 0)}, "'src_start.1.' must be an int of 0 at least"),
        ({"shape": (1, 1)}, "argument 'shape' must be a tuple of 3 ints"),
        ({"shape": (1, 1, 1), "dst_start": (0, 0, 0, 1)}, "argument 'dst_start' must be a tuple of 3 ints"),
    ],
)
def test_a_box_outside_an_array_is_named(device, kwargs, words):
    with pytest.raises(ValueError, match=words):
        cuda.memcpy3d(cuda.zeros((4, 5, 6)), cuda.zeros((8, 8, 8)), **kwargs)


def test_it_takes_three_dimensions_only(device):
    with pytest.raises(ValueError, match="argument 'src' must have 3 dimensions, not 2"):
        cuda.memcpy3d(cuda.zeros((2, 2, 2)), cuda.zeros((4, 4)))


sizes = st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 7))


@given(
    sizes,
    sizes,
    st.data(),
    st.sampled_from([np.uint8, np.float32, np.complex128]),
    st.sampled_from("hd"),
    st.sampled_from("hd"),
)
def test_any_box_equals_numpys_assignment(to_shape, from_shape, data, dtype, to_where, from_where):
    box = [data.draw(st.integers(0, min(a, b))) for a, b in zip(to_shape, from_shape, strict=True)]
    to = [data.draw(st.integers(0, size - n)) for size, n in zip(to_shape, box, strict=True)]
    source = [data.draw(st.integers(0, size - n)) for size, n in zip(from_shape, box, strict=True)]
    a = np.arange(np.prod(from_shape)).reshape(from_shape).astype(dtype)
    b = np.full(to_shape, 99).astype(dtype)
    expected = b.copy()
    expected[tuple(slice(s, s + n) for s, n in zip(to, box, strict=True))] = a[
        tuple(slice(s, s + n) for s, n in zip(source, box, strict=True))
    ]
    with cuda.Device(0):
        src = a if from_where == "h" else cuda.to_device(a)
        dst = b if to_where == "h" else cuda.to_device(b)
        cuda.memcpy3d(dst, src, box, dst_start=to, src_start=source)
        np.testing.assert_array_equal(dst if to_where == "h" else dst.to_host(), expected)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_any_steps_in_three_dimensions_equal_numpys_assignment(a, b, c, into_device):
    host = np.arange(6 * 7 * 8).reshape(6, 7, 8)
    with cuda.Device(0):
        if into_device:
            array = cuda.zeros((6, 7, 8), host.dtype)
            cuda.memcpy(array[::a, ::b, ::c], host[::a, ::b, ::c])
            expected = np.zeros_like(host)
            expected[::a, ::b, ::c] = host[::a, ::b, ::c]
            np.testing.assert_array_equal(array.to_host(), expected)
        else:
            np.testing.assert_array_equal(cuda.to_device(host)[::a, ::b, ::c].to_host(), host[::a, ::b, ::c])
