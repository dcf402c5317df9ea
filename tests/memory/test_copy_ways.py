"""Which way a copy takes: the quick ones for whole arrays, wide ones for windows, and what no quick way may take."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver import seam
from cudart_py.memory import copies, transfers


@pytest.fixture
def stream(device):
    with cuda.Stream(non_blocking=True) as made:
        yield made


@pytest.fixture
def calls(monkeypatch):
    """Count the copies and synchronisations that are asked of the driver, the quick ones too."""
    counted = Counter()

    def counting(name, function):
        def call(*arguments):
            counted[name] += 1
            return function(*arguments)

        return call

    for name in (
        "cuMemcpyHtoDAsync",
        "cuMemcpyDtoHAsync",
        "cuMemcpyDtoDAsync",
        "cuMemcpyAsync",
        "cuMemcpy2DAsync",
        "cuMemcpy3DAsync",
        "cuStreamSynchronize",
    ):
        function = counting(name, getattr(seam.raw, name))
        monkeypatch.setitem(vars(seam.raw), name, function)
        monkeypatch.setitem(vars(seam.api), name, seam._unwrapped(function, name))
    return counted


@pytest.fixture
def no_general_way(monkeypatch):
    """Let the general way fail."""

    def fail(*arguments, **named):
        raise AssertionError("the general way was taken")

    monkeypatch.setattr(copies, "transfer", fail)


def pinned(values):
    array = cuda.pinned_empty(values.shape, values.dtype)
    array[...] = values
    return array


VALUES = np.arange(60, dtype=np.int32).reshape(5, 12)


@pytest.mark.parametrize("make", [np.copy, pinned])
@pytest.mark.parametrize("waits", [True, False])
def test_whole_arrays_take_one_call_and_wait_for_the_host_without_a_stream(stream, calls, no_general_way, make, waits):
    source, out = make(VALUES), make(np.zeros_like(VALUES))
    x, y = cuda.empty(VALUES.shape, VALUES.dtype), cuda.empty(VALUES.shape, VALUES.dtype)
    cuda.current_device().synchronize()
    options = {} if waits else {"stream": stream}
    for dst, src, call, host in (
        (x, source, "cuMemcpyHtoDAsync", 1),
        (y, x, "cuMemcpyDtoDAsync", 0),
        (out, y, "cuMemcpyDtoHAsync", 1),
    ):
        calls.clear()
        cuda.memcpy(dst, src, **options)
        assert calls == {call: 1, **({"cuStreamSynchronize": 1} if host and waits else {})}
    stream.synchronize()
    np.testing.assert_array_equal(out, VALUES)


def test_the_highest_pitch_is_the_devices(device):
    assert device.properties.max_pitch == transfers._MAX_PITCH


@pytest.mark.parametrize(("limit", "expected"), [(48, {"cuMemcpy2DAsync": 1}), (47, {"cuMemcpyDtoDAsync": 5})])
@pytest.mark.parametrize("into_rows", [False, True])
def test_rows_are_one_copy_up_to_the_highest_pitch(stream, calls, monkeypatch, into_rows, limit, expected):
    monkeypatch.setattr(transfers, "_MAX_PITCH", limit)
    wide, narrow = cuda.to_device(VALUES), cuda.full((5, 10), -1, VALUES.dtype)
    calls.clear()
    if into_rows:
        cuda.memcpy(wide[:, :10], narrow)
    else:
        cuda.memcpy(narrow, wide[:, :10])
    assert calls == expected
    np.testing.assert_array_equal(wide.to_host()[:, :10], narrow.to_host())


def test_rows_whose_planes_lie_farther_apart_than_the_highest_pitch_are_copied_as_rows(stream, calls, monkeypatch):
    monkeypatch.setattr(transfers, "_MAX_PITCH", 40)
    values = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    x, y = cuda.to_device(values), cuda.zeros((2, 2, 2), values.dtype)
    calls.clear()
    cuda.memcpy(y, x[:, :2, :2])
    assert calls == {"cuMemcpy3DAsync": 1}
    np.testing.assert_array_equal(y.to_host(), values[:, :2, :2])


def test_axes_that_follow_each_other_without_a_gap_are_one(stream, calls):
    values = np.arange(3 * 4 * 4 * 8, dtype=np.int32).reshape(3, 4, 4, 8)
    padded, packed = cuda.zeros((3, 5, 4, 10), values.dtype), cuda.to_device(values)
    calls.clear()
    # The planes have a gap behind them, and the two axes below are 16 rows of one pitch.
    cuda.memcpy(padded[:, :4, :, :8], packed)
    assert calls == {"cuMemcpy3DAsync": 1}
    np.testing.assert_array_equal(padded.to_host()[:, :4, :, :8], values)


# The same bytes, and dtypes of which each can be cast to the other or not.
DTYPES = [
    (np.int32, np.float64),
    (np.float64, np.int32),
    (np.int16, np.uint16),
    (np.float32, np.int32),
    (np.uint32, np.int32),
]


@pytest.mark.parametrize("make", [np.copy, pinned])
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("direction", ["up", "down", "across"])
@pytest.mark.parametrize(("one", "other"), DTYPES, ids=str)
def test_the_same_bytes_of_another_dtype_are_refused(stream, make, streamed, direction, one, other):
    one, other = np.dtype(one), np.dtype(other)
    x = cuda.zeros(64 // one.itemsize, one)
    host = make(np.ones(64 // other.itemsize, other))
    y = cuda.zeros(64 // other.itemsize, other)
    cuda.current_device().synchronize()
    options = {"stream": stream} if streamed else {}
    dst, src = {"up": (x, host), "down": (host, x), "across": (y, x)}[direction]
    with pytest.raises(TypeError, match="a copy converts nothing"):
        cuda.memcpy(dst, src, **options)
    assert not x.to_host().any()
    assert not y.to_host().any()
    assert (host == 1).all()


@pytest.mark.parametrize("make", [np.copy, pinned])
@pytest.mark.parametrize("streamed", [True, False])
def test_an_array_in_fortrans_order_is_copied_element_by_element(stream, make, streamed):
    values = VALUES[:5, :5]
    ordered, out = make(np.zeros((5, 5), np.int32)), make(np.zeros((5, 5), np.int32))
    ordered.T[...] = values
    x = cuda.zeros((5, 5), np.int32)
    cuda.current_device().synchronize()
    options = {"stream": stream} if streamed else {}
    cuda.memcpy(x, ordered.T, **options)
    cuda.memcpy(out.T, x, **options)
    stream.synchronize()
    np.testing.assert_array_equal(x.to_host(), values)
    np.testing.assert_array_equal(out.T, values)


@pytest.mark.parametrize("make", [np.copy, pinned])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_destination_that_is_read_only_stays_as_it_is(stream, make, streamed):
    out = make(np.zeros(4, np.int32))
    view = out.view()
    view.flags.writeable = False
    options = {"stream": stream} if streamed else {}
    with pytest.raises(ValueError, match="argument 'dst' is read-only"):
        cuda.memcpy(view, cuda.full(4, 3, np.int32), **options)
    assert not out.any()


def test_a_read_only_source_is_copied(device):
    source = np.arange(4, dtype=np.int32)
    source.flags.writeable = False
    x = cuda.zeros(4, np.int32)
    cuda.memcpy(x, source)
    assert x.to_host().tolist() == [0, 1, 2, 3]


def test_a_part_of_pinned_memory_is_copied_from_where_it_lies(stream):
    source = pinned(np.arange(8, dtype=np.int32))
    x, out = cuda.zeros(4, np.int32), pinned(np.zeros(8, np.int32))
    cuda.current_device().synchronize()
    cuda.memcpy(x, source[3:7], stream=stream)
    cuda.memcpy(out[2:6], x, stream=stream)
    stream.synchronize()
    assert out.tolist() == [0, 0, 3, 4, 5, 6, 0, 0]


@pytest.mark.parametrize("streamed", [True, False])
def test_the_same_elements_in_another_shape_are_copied(stream, streamed):
    x, out = cuda.zeros(60, np.int32), pinned(np.zeros((12, 5), np.int32))
    cuda.current_device().synchronize()
    options = {"stream": stream} if streamed else {}
    cuda.memcpy(x, pinned(VALUES), **options)
    cuda.memcpy(out, x, **options)
    stream.synchronize()
    np.testing.assert_array_equal(out.reshape(-1), VALUES.reshape(-1))


def test_a_closed_stream_is_refused_and_nothing_copied(device):
    closed = cuda.Stream()
    closed.close()
    x = cuda.zeros(4, np.int32)
    for dst, src in ((x, pinned(np.ones(4, np.int32))), (x, np.ones(4, np.int32)), (x, cuda.full(4, 1, np.int32))):
        with pytest.raises(ValueError, match="argument 'stream' must be open"):
            cuda.memcpy(dst, src, stream=closed)
    assert not x.to_host().any()


@pytest.mark.parametrize("make", [np.empty, cuda.pinned_empty])
def test_empty_arrays_are_copied_without_a_call(stream, calls, make):
    x, host = cuda.empty((0, 3), np.int32), make((0, 3), np.int32)
    calls.clear()
    for options in ({}, {"stream": stream}):
        cuda.memcpy(x, host, **options)
        cuda.memcpy(host, x, **options)
        cuda.memcpy(x, cuda.empty((0, 3), np.int32), **options)
        cuda.memcpy2d(x, host, **options)
    assert not [name for name in calls if "Memcpy" in name]


def test_a_stream_is_a_keyword(stream):
    """Where it could stand third, `memcpy(dst, src, nbytes)` of C would be taken for it."""
    x, host = cuda.zeros(4), np.zeros(4)
    with pytest.raises(TypeError, match="positional argument"):
        cuda.memcpy(x, host, stream)
    with pytest.raises(TypeError, match="positional argument"):
        cuda.memcpy_peer(x, x, stream)


def test_axes_that_lie_evenly_in_both_arrays_are_copied_as_one(device, calls):
    x, host = cuda.zeros((4, 5, 6), np.int64), np.arange(80).reshape(4, 5, 4)
    calls.clear()
    cuda.memcpy(x[:, :, :4], host)
    assert calls == {"cuMemcpy2DAsync": 1, "cuStreamSynchronize": 1}
    np.testing.assert_array_equal(x.to_host()[:, :, :4], host)


@pytest.mark.parametrize("which", ["dst", "src"])
def test_axes_that_lie_evenly_in_one_array_alone_are_not(device, calls, which):
    whole = np.arange(4 * 6 * 6).reshape(4, 6, 6)
    gap, even = whole[:, :5, :4], np.ascontiguousarray(whole[:, :5])[:, :, :4]
    x = cuda.zeros((4, 6, 6) if which == "dst" else (4, 5, 6), np.int64)
    view = x[:, :5, :4]
    cuda.current_device().synchronize()
    calls.clear()
    cuda.memcpy(view, even if which == "dst" else gap)
    assert calls == {"cuMemcpy3DAsync": 1, "cuStreamSynchronize": 1}
    np.testing.assert_array_equal(x.to_host()[:, :5, :4], gap)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_elements_of_a_windows_row_must_be_contiguous(device, rows):
    host = np.zeros((rows, 8), np.int32)
    with pytest.raises(ValueError, match="the elements of a row of src are 8 bytes apart, not 4; use memcpy"):
        cuda.memcpy2d(cuda.zeros((rows, 4), np.int32), host[:, ::2])
    with pytest.raises(ValueError, match="the elements of a row of dst are 8 bytes apart, not 4; use memcpy"):
        cuda.memcpy2d(host[:, ::2], cuda.zeros((rows, 4), np.int32))


@pytest.mark.parametrize("into_device", [True, False])
def test_the_rows_of_a_window_may_not_overlap(device, into_device):
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(64, np.int32), (3, 4), (8, 4))
    x = cuda.zeros((3, 4), np.int32)
    words = f"the rows of {'src' if into_device else 'dst'} overlap: they begin 8 bytes apart, and each has 16"
    with pytest.raises(cuda.InvalidValueError, match=words):
        cuda.memcpy2d(*((x, overlapping) if into_device else (overlapping, x)))


def test_the_elements_of_a_windows_row_may_not_overlap(device):
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(64, np.int32), (3, 4), (32, 2))
    with pytest.raises(ValueError, match="the elements of a row of src are 2 bytes apart, not 4"):
        cuda.memcpy2d(cuda.zeros((3, 4), np.int32), overlapping)


def test_the_elements_of_a_boxs_row_must_be_contiguous(device):
    host = np.zeros((2, 3, 8), np.int32)
    with pytest.raises(ValueError, match="the elements of a row of src are 8 bytes apart, not 4; use memcpy"):
        cuda.memcpy3d(cuda.zeros((2, 3, 4), np.int32), host[:, :, ::2])
    with pytest.raises(ValueError, match="the elements of a row of src are 8 bytes apart, not 4; use memcpy"):
        cuda.memcpy3d(cuda.zeros((2, 1, 4), np.int32), host[:, :1, ::2])


def test_a_row_of_one_element_is_contiguous_whatever_its_stride(device):
    host = np.arange(24, dtype=np.int32).reshape(3, 8)
    x = cuda.zeros((3, 1), np.int32)
    cuda.memcpy2d(x, host[:, 2::8])
    assert x.to_host().tolist() == [[2], [10], [18]]


def test_an_axis_of_one_element_may_have_any_stride(device):
    host = np.arange(8, dtype=np.int32)
    for source in (np.broadcast_to(host, (1, 8)), host.reshape(1, 8)[::-1]):
        x = cuda.zeros((1, 8), np.int32)
        cuda.memcpy(x, source)
        assert x.to_host().tolist() == [list(range(8))]


@pytest.mark.parametrize("source", [np.broadcast_to(np.int32(1), 4), np.arange(4, dtype=np.int32)[::-1]])
def test_strides_that_a_copy_cannot_follow_are_refused(device, source):
    with pytest.raises(ValueError, match="which a copy cannot follow; use numpy.ascontiguousarray"):
        cuda.memcpy(cuda.zeros(4, np.int32), source)


@pytest.mark.parametrize("make", [np.copy, pinned])
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("direction", ["up", "down", "across"])
@pytest.mark.parametrize(("to", "source"), [(3, 5), (5, 3), ((2, 2), 5), (5, (2, 2))])
def test_arrays_of_different_sizes_are_refused_and_nothing_copied(stream, make, streamed, direction, to, source):
    from_device, to_device = direction != "up", direction != "down"
    dst = cuda.zeros(to, np.int32) if to_device else make(np.zeros(to, np.int32))
    src = cuda.full(source, 1, np.int32) if from_device else make(np.ones(source, np.int32))
    cuda.current_device().synchronize()
    with pytest.raises(ValueError, match=r"memcpy: dst has shape .* and src"):
        cuda.memcpy(dst, src, **({"stream": stream} if streamed else {}))
    stream.synchronize()
    assert not (dst.to_host() if to_device else dst).any()


@pytest.mark.parametrize("shape", [3, 5, (2, 2), (4, 1), (1, 4)])
@pytest.mark.parametrize("make", [np.copy, pinned])
def test_what_an_array_is_brought_to_has_its_shape(stream, make, shape):
    x, out = cuda.full(4, 1, np.int32), make(np.zeros(shape, np.int32))
    cuda.current_device().synchronize()
    for options in ({}, {"stream": stream}):
        with pytest.raises(ValueError, match=r"argument 'out' must be of the array's shape \(4,\)"):
            x.to_host(out, **options)
    assert not out.any()
