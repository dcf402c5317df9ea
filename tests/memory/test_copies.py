"""Copies in every direction, their errors, and a fuzz against NumPy's slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cudart_py as cuda

DTYPES = [np.uint8, np.int16, np.float32, np.float64, np.complex128]


@pytest.mark.parametrize("stream", [None, "new", "legacy"])
def test_every_direction(device, rng, stream):
    stream = {None: None, "new": cuda.Stream(), "legacy": cuda.legacy_default}[stream]
    host, back = rng.random(1001), np.empty(1001)
    a, b = cuda.empty(1001, stream=stream), cuda.empty(1001, stream=stream)
    pinned = cuda.pinned_empty(1001)
    cuda.memcpy(a, host, stream=stream)
    cuda.memcpy(b, a, stream=stream)
    cuda.memcpy(pinned, b, stream=stream)
    (stream or cuda.legacy_default).synchronize()
    cuda.memcpy(back, pinned, stream=stream)
    (stream or cuda.legacy_default).synchronize()
    np.testing.assert_array_equal(back, host)


def test_a_pageable_source_may_change_as_soon_as_the_copy_returns(device):
    stream = cuda.Stream(non_blocking=True)
    host = np.arange(100_000)
    array = cuda.empty(host.shape, host.dtype, stream=stream)
    cuda.memcpy(array, host, stream=stream)
    host[:] = -1
    np.testing.assert_array_equal(array.to_host(), np.arange(100_000))


def test_contiguous_arrays_of_different_shapes_copy(device):
    array = cuda.empty((3, 4), np.int32)
    cuda.memcpy(array, np.arange(12, dtype=np.int32))
    np.testing.assert_array_equal(array.to_host(), np.arange(12).reshape(3, 4))


@pytest.mark.parametrize(
    ("dst", "src", "error", "words"),
    [
        (np.empty(3), np.empty(4), ValueError, r"dst has shape \(3,\) and src \(4,\)"),
        (np.empty(4, np.float32), np.empty(4), TypeError, "dst is float32 and src float64"),
        (np.empty(3)[::-1], np.empty(3), ValueError, "argument 'dst' has the strides"),
        (np.empty(3), np.broadcast_to(1.0, 3), ValueError, "argument 'src' has the strides"),
        (np.broadcast_to(1.0, 3), np.empty(3), ValueError, "argument 'dst' is read-only"),
        ([1, 2], np.empty(2), TypeError, "memcpy: argument 'dst' must be a DeviceArray or a NumPy array, not the list"),
        (np.empty(2), 5, TypeError, "memcpy: argument 'src' must be a DeviceArray or a NumPy array, not the int 5"),
        (np.empty(2, object), np.empty(2, object), TypeError, "Python objects"),
    ],
)
def test_wrong_arguments_are_named(device, dst, src, error, words):
    with pytest.raises(error, match=words):
        cuda.memcpy(dst, src)


def test_device_arrays_of_different_sizes_are_refused(device):
    a = cuda.zeros(3)
    with pytest.raises(ValueError, match="shape"):
        cuda.memcpy(a, np.ones(4))
    with pytest.raises(ValueError, match="shape"):
        cuda.memcpy(np.ones(2), a)
    with pytest.raises(ValueError, match="shape"):
        a.copy_from(np.ones(2))
    np.testing.assert_array_equal(a.to_host(), np.zeros(3))


def test_copy_from_takes_any_host_layout(device, rng):
    host = rng.random((7, 9))
    for source in (host[::-1], host.T, host[:, ::2], np.broadcast_to(host[0], (4, 9)), np.asfortranarray(host)):
        np.testing.assert_array_equal(cuda.empty(source.shape).copy_from(source).to_host(), source)
        np.testing.assert_array_equal(cuda.to_device(source).to_host(), source)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"shape": (4, 4), "dst_start": (3, 0)}, r"4 x 4 elements at \(3, 0\) reaches outside dst of shape \(5, 6\)"),
        ({"shape": (2, 7)}, "outside dst"),
        ({"shape": (2, 2), "src_start": (-1, 0)}, "'src_start.0.' must be an int of 0 at least"),
        ({"shape": (2, 2), "src_start": (0, 7)}, "outside src"),
        ({"shape": (-1, 2)}, "'shape.0.' must be an int of 0 at least"),
        ({"src_start": (9, 0)}, r"argument 'src_start', \(9, 0\), is outside src of shape \(8, 8\)"),
        ({"shape": (1, 2, 3)}, "argument 'shape' must be a tuple of 2 ints"),
    ],
)
def test_a_window_outside_an_array_is_named(device, kwargs, words):
    with pytest.raises(ValueError, match=words):
        cuda.memcpy2d(cuda.zeros((5, 6)), cuda.zeros((8, 8)), **kwargs)


def test_a_window_begins_at_whole_elements(device):
    with pytest.raises(TypeError, match=r"argument 'dst_start\[0\]' must be an int, not the float 0.5"):
        cuda.memcpy2d(np.empty((4, 6)), cuda.zeros((4, 6)), (1, 1), dst_start=(0.5, 0))


def test_memcpy2d_takes_two_dimensions_only(device):
    with pytest.raises(ValueError, match="argument 'dst' must have 2 dimensions, not 3"):
        cuda.memcpy2d(cuda.zeros((1, 2, 2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="argument 'src' must have 2 dimensions, not 1"):
        cuda.memcpy2d(cuda.zeros((2, 2)), cuda.zeros(4))


def test_an_async_pinned_copy_reads_the_source_when_it_runs(device):
    pinned = cuda.pinned_empty(1000, np.int32)
    pinned[:] = 5
    with cuda.Stream() as stream:
        array = cuda.empty(1000, np.int32, stream=stream)
        array.copy_from(pinned, stream=stream)
        out = cuda.pinned_empty(1000, np.int32)
        out[:] = 0
        array.to_host(out, stream=stream)
        stream.synchronize()
        assert (out == 5).all()
        array.close()


@st.composite
def windows(draw):
    """Two shapes and a slice of each of the same result, in one to three dimensions."""
    ndim = draw(st.integers(1, 3))
    shapes, keys = ([], []), ([], [])
    for _ in range(ndim):
        length = draw(st.integers(0, 9))
        for side in (0, 1):
            step = draw(st.sampled_from([1, 1, 1, 2, 3]))
            start = draw(st.integers(0, 3))
            end = start + max(0, (length - 1) * step + 1) if length else start
            shapes[side].append(end + draw(st.integers(0, 3)))
            keys[side].append(slice(start, end, step))
    return tuple(map(tuple, shapes)), tuple(map(tuple, keys))


@given(windows(), st.sampled_from(DTYPES), st.sampled_from(["hd", "dh", "dd", "hh"]), st.booleans())
def test_any_copy_equals_numpys_assignment(case, dtype, direction, pitched):
    ((to_shape, from_shape), (to_key, from_key)) = case
    rng = np.random.default_rng(0)
    source = rng.integers(0, 100, from_shape).astype(dtype)
    target = rng.integers(100, 200, to_shape).astype(dtype)
    expected = target.copy()
    expected[to_key] = source[from_key]

    def place(host, where):
        if where == "h":
            return host.copy()
        if pitched and host.ndim == 2:
            return cuda.empty_pitched(host.shape, host.dtype).copy_from(host)
        return cuda.to_device(host)

    with cuda.Device(0):
        src, dst = place(source, direction[0]), place(target, direction[1])
        cuda.memcpy(dst[to_key], src[from_key])
        result = dst if direction[1] == "h" else dst.to_host()
    np.testing.assert_array_equal(result, expected)


@given(
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.data(),
    st.sampled_from(DTYPES),
    st.sampled_from(["hd", "dh", "dd"]),
)
def test_any_memcpy2d_window_equals_numpys_assignment(to_shape, from_shape, data, dtype, direction):
    rows = data.draw(st.integers(0, min(to_shape[0], from_shape[0])))
    columns = data.draw(st.integers(0, min(to_shape[1], from_shape[1])))
    to = [data.draw(st.integers(0, size - n)) for size, n in zip(to_shape, (rows, columns), strict=True)]
    source = [data.draw(st.integers(0, size - n)) for size, n in zip(from_shape, (rows, columns), strict=True)]
    a = np.arange(np.prod(from_shape)).reshape(from_shape).astype(dtype)
    b = np.full(to_shape, 99).astype(dtype)
    expected = b.copy()
    expected[to[0] : to[0] + rows, to[1] : to[1] + columns] = a[
        source[0] : source[0] + rows, source[1] : source[1] + columns
    ]
    with cuda.Device(0):
        src = a if direction[0] == "h" else cuda.empty_pitched(a.shape, dtype).copy_from(a)
        dst = b if direction[1] == "h" else cuda.empty_pitched(b.shape, dtype).copy_from(b)
        cuda.memcpy2d(dst, src, (rows, columns), dst_start=to, src_start=source)
        np.testing.assert_array_equal(dst if direction[1] == "h" else dst.to_host(), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of NumPy's, for what the test does
def test_pinned_memory_whose_strides_were_changed_is_copied_as_it_is(device):
    host = cuda.pinned_empty((4, 4), np.float32)
    host[:] = np.arange(16).reshape(4, 4)
    host.strides = host.strides[::-1]
    array, stream = cuda.zeros((4, 4), np.float32), cuda.Stream()
    try:
        cuda.memcpy(array, host, stream=stream)
    except ValueError:
        return  # refused
    np.testing.assert_array_equal(array.to_host(stream=stream), host)


@pytest.mark.parametrize("dtype", ["f4", "?", "c16", "M8[ns]", [("a", "u1"), ("b", "f8")], "S3"])
def test_pinned_arrays_of_any_dtype_go_there_and_back(device, rng, dtype):
    host, back = cuda.pinned_empty(37, dtype), cuda.pinned_empty(37, dtype)
    assert host.dtype == np.dtype(dtype)
    host.view(np.uint8)[:] = rng.integers(0, 2, host.nbytes)
    array, stream = cuda.empty(37, dtype), cuda.Stream()
    cuda.memcpy(array, host, stream=stream)
    cuda.memcpy(back, array, stream=stream)
    stream.synchronize()
    assert back.tobytes() == host.tobytes()
