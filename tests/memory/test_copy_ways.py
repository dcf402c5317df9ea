"""Which way a copy takes: the quick ones for whole arrays, wide ones for windows, and what no quick way may take."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.memory import copies, transfers


@pytest.fixture
def stream(device):
    with cuda.Stream(non_blocking=True) as made:
        yield made


@pytest.fixture
def asked(driver_calls):
    """Return the copies and synchronisations that the driver was asked for since the last question."""

    def since():
        found = {
            name: count for name, count in driver_calls.items() if "Memcpy" in name or name.endswith("eamSynchronize")
        }
        driver_calls.clear()
        return found

    return since


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
HOST = pytest.mark.parametrize("make", [np.copy, pinned])
STREAMED = pytest.mark.parametrize("streamed", [True, False])


@pytest.fixture
def options(streamed, stream):
    """Return the options of a copy in a stream, or of one that names none."""
    return {"stream": stream} if streamed else {}


@HOST
@pytest.mark.parametrize("how", ["waits", "stream", "blocking", "legacy"])
def test_whole_arrays_take_one_call_and_wait_for_the_host_without_a_stream(stream, asked, no_general_way, make, how):
    named = {"stream": stream, "blocking": cuda.Stream(), "legacy": cuda.legacy_default}.get(how)
    source, out = make(VALUES), make(np.zeros_like(VALUES))
    x, y = (cuda.empty(VALUES.shape, VALUES.dtype) for _ in range(2))
    cuda.current_device().synchronize()
    for dst, src, call in (
        (x, source, "cuMemcpyHtoDAsync"),
        (y, x, "cuMemcpyDtoDAsync"),
        (out, y, "cuMemcpyDtoHAsync"),
    ):
        asked()
        cuda.memcpy(dst, src, **({} if named is None else {"stream": named}))
        waited = named is None and call != "cuMemcpyDtoDAsync"
        assert asked() == {call: 1, **({"cuStreamSynchronize": 1} if waited else {})}
    (named or stream).synchronize()
    np.testing.assert_array_equal(out, VALUES)


def test_the_highest_pitch_is_the_devices(device):
    assert device.properties.max_pitch == transfers._MAX_PITCH


@pytest.mark.parametrize(("limit", "expected"), [(48, {"cuMemcpy2DAsync": 1}), (47, {"cuMemcpyDtoDAsync": 5})])
@pytest.mark.parametrize("into_rows", [False, True])
def test_rows_are_one_copy_up_to_the_highest_pitch(stream, asked, monkeypatch, into_rows, limit, expected):
    monkeypatch.setattr(transfers, "_MAX_PITCH", limit)
    wide, narrow = cuda.to_device(VALUES), cuda.full((5, 10), -1, VALUES.dtype)
    asked()
    if into_rows:
        cuda.memcpy(wide[:, :10], narrow)
    else:
        cuda.memcpy(narrow, wide[:, :10])
    assert asked() == expected
    np.testing.assert_array_equal(wide.to_host()[:, :10], narrow.to_host())


def test_rows_whose_planes_lie_farther_apart_than_the_highest_pitch_are_copied_as_rows(stream, asked, monkeypatch):
    monkeypatch.setattr(transfers, "_MAX_PITCH", 40)
    values = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    x, y = cuda.to_device(values), cuda.zeros((2, 2, 2), values.dtype)
    asked()
    cuda.memcpy(y, x[:, :2, :2])
    assert asked() == {"cuMemcpy3DAsync": 1}
    np.testing.assert_array_equal(y.to_host(), values[:, :2, :2])


def test_axes_that_follow_each_other_without_a_gap_are_one(stream, asked):
    values = np.arange(3 * 4 * 4 * 8, dtype=np.int32).reshape(3, 4, 4, 8)
    padded, packed = cuda.zeros((3, 5, 4, 10), values.dtype), cuda.to_device(values)
    asked()
    # The planes have a gap behind them, and the two axes below are 16 rows of one pitch.
    cuda.memcpy(padded[:, :4, :, :8], packed)
    assert asked() == {"cuMemcpy3DAsync": 1}
    np.testing.assert_array_equal(padded.to_host()[:, :4, :, :8], values)


# The same bytes, and dtypes of which each can be cast to the other or not.
DTYPES = [
    (np.int32, np.float64),
    (np.float64, np.int32),
    (np.int16, np.uint16),
    (np.float32, np.int32),
    (np.uint32, np.int32),
]


@HOST
@STREAMED
@pytest.mark.parametrize("direction", ["up", "down", "across"])
@pytest.mark.parametrize(("one", "other"), DTYPES, ids=str)
def test_the_same_bytes_of_another_dtype_are_refused(stream, make, options, direction, one, other):
    one, other = np.dtype(one), np.dtype(other)
    x = cuda.zeros(64 // one.itemsize, one)
    host = make(np.ones(64 // other.itemsize, other))
    y = cuda.zeros(64 // other.itemsize, other)
    cuda.current_device().synchronize()
    dst, src = {"up": (x, host), "down": (host, x), "across": (y, x)}[direction]
    with pytest.raises(TypeError, match="a copy converts nothing"):
        cuda.memcpy(dst, src, **options)
    assert not x.to_host().any()
    assert not y.to_host().any()
    assert (host == 1).all()


@HOST
@STREAMED
def test_a_destination_that_is_read_only_stays_as_it_is(stream, make, options):
    out = make(np.zeros(4, np.int32))
    view = out.view()
    view.flags.writeable = False
    with pytest.raises(ValueError, match="argument 'dst' is read-only"):
        cuda.memcpy(view, cuda.full(4, 3, np.int32), **options)
    assert not out.any()


def test_a_read_only_source_is_copied(device):
    source = np.arange(4, dtype=np.int32)
    source.flags.writeable = False
    x = cuda.zeros(4, np.int32)
    cuda.memcpy(x, source)
    assert x.to_host().tolist() == [0, 1, 2, 3]


@STREAMED
def test_the_same_elements_in_another_shape_are_copied(stream, options):
    x, out = cuda.zeros(60, np.int32), pinned(np.zeros((12, 5), np.int32))
    cuda.current_device().synchronize()
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
def test_empty_arrays_are_copied_without_a_call(stream, asked, make):
    x, host = cuda.empty((0, 3), np.int32), make((0, 3), np.int32)
    asked()
    for options in ({}, {"stream": stream}):
        cuda.memcpy(x, host, **options)
        cuda.memcpy(host, x, **options)
        cuda.memcpy(x, cuda.empty((0, 3), np.int32), **options)
        cuda.memcpy2d(x, host, **options)
    assert not [name for name in asked() if "Memcpy" in name]


def test_a_stream_is_a_keyword(stream):
    """Where it could stand third, `memcpy(dst, src, nbytes)` of C would be taken for it."""
    x, host = cuda.zeros(4), np.zeros(4)
    with pytest.raises(TypeError, match="positional argument"):
        cuda.memcpy(x, host, stream)
    with pytest.raises(TypeError, match="positional argument"):
        cuda.memcpy_peer(x, x, stream)


@pytest.mark.parametrize("which", ["both", "dst", "src"])
def test_axes_are_copied_as_one_only_where_they_lie_evenly_in_both_arrays(device, asked, which):
    whole = np.arange(4 * 6 * 6).reshape(4, 6, 6)
    gap, even = whole[:, :5, :4], np.ascontiguousarray(whole[:, :5])[:, :, :4]
    x = cuda.zeros((4, 6, 6) if which == "dst" else (4, 5, 6), np.int64)
    cuda.current_device().synchronize()
    asked()
    cuda.memcpy(x[:, :5, :4], gap if which == "src" else even)
    assert asked() == {"cuMemcpy2DAsync" if which == "both" else "cuMemcpy3DAsync": 1, "cuStreamSynchronize": 1}
    np.testing.assert_array_equal(x.to_host()[:, :5, :4], gap)


OVERLAPPING = np.lib.stride_tricks.as_strided(np.zeros(64, np.int32), (3, 4), (8, 4))
APART = "the elements of a row of {} are 8 bytes apart, not 4; use memcpy"


@pytest.mark.parametrize(
    ("copy", "host", "shape", "words"),
    [
        (cuda.memcpy2d, np.zeros((1, 8), np.int32)[:, ::2], (1, 4), APART),
        (cuda.memcpy2d, np.zeros((3, 8), np.int32)[:, ::2], (3, 4), APART),
        (cuda.memcpy3d, np.zeros((2, 3, 8), np.int32)[:, :, ::2], (2, 3, 4), APART),
        (cuda.memcpy3d, np.zeros((2, 1, 8), np.int32)[:, :, ::2], (2, 1, 4), APART),
        (cuda.memcpy2d, OVERLAPPING, (3, 4), "the rows of {} overlap: they begin 8 bytes apart, and each has 16"),
        (
            cuda.memcpy2d,
            np.lib.stride_tricks.as_strided(np.zeros(64, np.int32), (3, 4), (32, 2)),
            (3, 4),
            "the elements of a row of {} are 2 bytes apart, not 4",
        ),
    ],
)
def test_the_elements_of_a_windows_row_are_contiguous_and_no_two_rows_overlap(device, copy, host, shape, words):
    x = cuda.zeros(shape, np.int32)
    with pytest.raises(ValueError, match=words.format("src")):
        copy(x, host)
    with pytest.raises(ValueError, match=words.format("dst")):
        copy(host, x)


def test_an_axis_of_one_element_may_have_any_stride(device):
    host = np.arange(24, dtype=np.int32).reshape(3, 8)
    x = cuda.zeros((3, 1), np.int32)
    cuda.memcpy2d(x, host[:, 2::8])
    assert x.to_host().tolist() == [[2], [10], [18]]
    for source in (np.broadcast_to(host[0], (1, 8)), host[:1][::-1]):
        x = cuda.zeros((1, 8), np.int32)
        cuda.memcpy(x, source)
        np.testing.assert_array_equal(x.to_host(), host[:1])


@HOST
@STREAMED
@pytest.mark.parametrize("direction", ["up", "down", "across"])
@pytest.mark.parametrize(("to", "source"), [(3, 5), (5, 3), ((2, 2), 5), (5, (2, 2))])
def test_arrays_of_different_sizes_are_refused_and_nothing_copied(stream, make, options, direction, to, source):
    from_device, to_device = direction != "up", direction != "down"
    dst = cuda.zeros(to, np.int32) if to_device else make(np.zeros(to, np.int32))
    src = cuda.full(source, 1, np.int32) if from_device else make(np.ones(source, np.int32))
    cuda.current_device().synchronize()
    with pytest.raises(ValueError, match=r"memcpy: dst has shape .* and src"):
        cuda.memcpy(dst, src, **options)
    stream.synchronize()
    assert not (dst.to_host() if to_device else dst).any()


@pytest.mark.parametrize("shape", [3, 5, (2, 2), (4, 1), (1, 4)])
@HOST
def test_what_an_array_is_brought_to_has_its_shape(stream, make, shape):
    x, out = cuda.full(4, 1, np.int32), make(np.zeros(shape, np.int32))
    cuda.current_device().synchronize()
    for options in ({}, {"stream": stream}):
        with pytest.raises(ValueError, match=r"argument 'out' must be of the array's shape \(4,\)"):
            x.to_host(out, **options)
    assert not out.any()
