"""Paths of copies: shortcuts for whole arrays, one driver call for many rows, and copies that need the general path."""

import functools

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import copies
from cudart_py.memory import transfers
from cudart_py.memory.host_memory import pinned_owner


@pytest.fixture
def asked(driver_calls):
    """Return a function that counts the driver's copies and stream synchronisations by name since its last call."""

    def since():
        found = {
            name: count for name, count in driver_calls.items() if "Memcpy" in name or name.endswith("eamSynchronize")
        }
        driver_calls.clear()
        return found

    return since


@pytest.fixture
def no_general_way(monkeypatch):
    """Make the general path of copies fail."""

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
    """Return the options of a copy in the stream, or of one without a stream argument."""
    return {"stream": stream} if streamed else {}


@HOST
@pytest.mark.parametrize("how", ["waits", "stream", "blocking", "legacy"])
def test_whole_arrays_take_one_call_and_wait_for_the_host_without_a_stream(stream, asked, no_general_way, make, how):
    named = {"stream": stream, "blocking": cuda.Stream(), "legacy": cuda.legacy_default}.get(how)
    source, out = make(VALUES), make(np.zeros_like(VALUES))
    x, y = (cuda.empty(VALUES.shape, VALUES.dtype) for _ in range(2))
    cuda.current_device().synchronize()
    (named or stream).synchronize()  # the first work of a stream takes the general path
    for dst, src, way in ((x, source, "HtoD"), (y, x, "DtoD"), (out, y, "DtoH")):
        asked()
        cuda.memcpy(dst, src, **({} if named is None else {"stream": named}))
        waited = named is None and way != "DtoD"
        assert asked() == {f"cuMemcpy{way}Async": 1, **({"cuStreamSynchronize": 1} if waited else {})}
    (named or stream).synchronize()
    np.testing.assert_array_equal(out, VALUES)


def test_the_highest_pitch_is_the_devices(device):
    assert device.properties.max_pitch == transfers._MAX_PITCH


@pytest.mark.parametrize(
    ("limit", "to", "source", "expected"),
    [
        # All rows are copied in one call if their pitch is within the limit, which is given in elements.
        (12, ((5, 12), np.s_[:, :10]), ((5, 10), ...), {"cuMemcpy2DAsync": 1}),
        (12, ((5, 10), ...), ((5, 12), np.s_[:, :10]), {"cuMemcpy2DAsync": 1}),
        (11, ((5, 12), np.s_[:, :10]), ((5, 10), ...), {"cuMemcpyDtoDAsync": 5}),
        (11, ((5, 10), ...), ((5, 12), np.s_[:, :10]), {"cuMemcpyDtoDAsync": 5}),
        # The distance between planes may exceed the limit.
        (10, ((2, 2, 2), ...), ((2, 3, 4), np.s_[:, :2, :2]), {"cuMemcpy3DAsync": 1}),
        # Each plane is followed by a gap. Its two axes are 16 rows of one pitch.
        (None, ((3, 5, 4, 10), np.s_[:, :4, :, :8]), ((3, 4, 4, 8), ...), {"cuMemcpy3DAsync": 1}),
        # Axes are merged only if their elements are evenly spaced in both arrays.
        (None, ((4, 5, 6), np.s_[:, :, :4]), ((4, 5, 4), ...), {"cuMemcpy2DAsync": 1}),
        (None, ((4, 6, 6), np.s_[:, :5, :4]), ((4, 5, 6), np.s_[:, :, :4]), {"cuMemcpy3DAsync": 1}),
        (None, ((4, 5, 6), np.s_[:, :, :4]), ((4, 6, 6), np.s_[:, :5, :4]), {"cuMemcpy3DAsync": 1}),
        # A copy goes forward through its rows, so a reversed axis takes a call per element.
        (None, ((5, 4, 6), np.s_[:, ::-1, :4]), ((5, 4, 4), ...), {"cuMemcpy2DAsync": 4}),
        (None, ((5, 4), np.s_[:, ::-1]), ((5, 4), ...), {"cuMemcpy2DAsync": 4}),
        (None, ((3,), np.s_[::-1]), ((3,), ...), {"cuMemcpyDtoDAsync": 3}),
    ],
)
@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_windows_take_as_few_calls_as_their_axes_allow(device, asked, monkeypatch, limit, to, source, expected, dtype):
    if limit is not None:
        monkeypatch.setattr(transfers, "_MAX_PITCH", limit * np.dtype(dtype).itemsize)
    (shape, inside), (from_shape, taken) = to, source
    values = np.arange(np.prod(from_shape)).reshape(from_shape).astype(dtype)
    x, y = cuda.zeros(shape, dtype), cuda.to_device(values)
    asked()
    cuda.memcpy(x[inside], y[taken])
    assert asked() == expected
    np.testing.assert_array_equal(x.to_host()[inside], values[taken])


def test_the_host_waits_for_its_windows_alone_and_only_without_a_stream(device, stream, asked):
    host, x, y = pinned(VALUES), *(cuda.zeros(VALUES.shape, VALUES.dtype) for _ in range(2))
    for dst, src, options, waits in (
        (x, host, {}, 1),
        (host, x, {}, 1),
        (x, host, {"stream": stream}, 0),
        (y, x, {}, 0),
        (y, x, {"stream": stream}, 0),
    ):
        device.synchronize()
        asked()
        cuda.memcpy2d(dst, src, (2, 3), **options)
        assert asked().get("cuStreamSynchronize", 0) == waits
    device.synchronize()


# Pairs of dtypes for arrays of 64 bytes, with and without a safe cast between them.
DTYPES = [("i4", "f8"), ("f8", "i4"), ("i2", "u2"), ("f4", "i4"), ("u4", "i4")]
SIZES = [(3, 5), (5, 3), ((2, 2), 5), (5, (2, 2))]
UNLIKE = [
    *[
        ((64 // int(to[1]), to), (64 // int(source[1]), source), "copies do not convert elements")
        for to, source in DTYPES
    ],
    *[((to, "i4"), (source, "i4"), "memcpy: argument 'dst' must have shape .* like 'src'") for to, source in SIZES],
]


@HOST
@STREAMED
@pytest.mark.parametrize("on_device", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("to", "source", "words"), UNLIKE)
def test_unlike_arrays_are_refused_and_nothing_copied(stream, make, options, on_device, to, source, words):
    dst = cuda.zeros(*to) if on_device[0] else make(np.zeros(*to))
    src = cuda.full(source[0], 1, source[1]) if on_device[1] else make(np.ones(*source))
    cuda.current_device().synchronize()
    with pytest.raises((TypeError, ValueError), match=words):
        cuda.memcpy(dst, src, **options)
    stream.synchronize()
    assert not (dst.to_host() if on_device[0] else dst).any()


@HOST
@STREAMED
def test_a_destination_that_is_read_only_stays_as_it_is(stream, make, options):
    out = make(np.zeros(4, np.int32))
    view = out.view()
    view.flags.writeable = False
    with pytest.raises(ValueError, match="argument 'dst' is read-only"):
        cuda.memcpy(view, cuda.full(4, 3, np.int32), **options)
    assert not out.any()


@STREAMED
def test_the_same_elements_in_another_shape_are_copied(stream, options):
    x, out = cuda.zeros(60, np.int32), pinned(np.zeros((12, 5), np.int32))
    cuda.current_device().synchronize()
    cuda.memcpy(x, pinned(VALUES), **options)
    cuda.memcpy(out, x, **options)
    stream.synchronize()
    np.testing.assert_array_equal(out.reshape(-1), VALUES.reshape(-1))


def test_another_shape_needs_contiguous_elements_on_both_sides(device):
    apart, flat = cuda.zeros((2, 6), np.int32)[:, :3], cuda.zeros(6, np.int32)
    for dst, src in ((apart, flat), (flat, apart), (apart, np.ones(6, np.int32)), (np.ones(6, np.int32), apart)):
        with pytest.raises(ValueError, match="memcpy: argument 'dst' must have shape"):
            cuda.memcpy(dst, src)


def test_an_array_in_closed_host_memory_is_refused_and_nothing_copied(device):
    for make in (cuda.pinned_empty, cuda.managed_empty):
        array, host = cuda.zeros(4, np.int32), make(8, np.int32)
        whole, part = make(4, np.int32), host[4:]
        for memory in (whole, host):
            pinned_owner(memory).close()
        for host in (whole, part):
            for copy in (
                functools.partial(cuda.memcpy, array, host),
                functools.partial(cuda.memcpy, host, array),
                functools.partial(array.copy_from, host),
                functools.partial(array.to_host, out=host),
            ):
                with pytest.raises(ValueError, match="argument '.*open.*closed"):
                    copy()
        assert not array.to_host().any()


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
    """A positional stream would be the third argument, which is the size in C's `memcpy(dst, src, nbytes)`."""
    x, host = cuda.zeros(4), np.zeros(4)
    with pytest.raises(TypeError, match="positional argument"):
        cuda.memcpy(x, host, stream)
    with pytest.raises(TypeError, match="positional argument"):
        cuda.memcpy_peer(x, x, stream)


APART = "argument '{}' must have rows of adjacent elements, 4 bytes each, not 8 bytes apart; use memcpy"
OVERLAP = "the rows of {} overlap: they begin 8 bytes apart, but each has 16"


@pytest.mark.parametrize(
    ("copy", "shape", "strides", "words"),
    [
        (cuda.memcpy2d, (1, 4), (32, 8), APART),
        (cuda.memcpy2d, (3, 4), (32, 8), APART),
        (cuda.memcpy2d, (3, 4), (32, 2), "argument '{}' must have rows of adjacent elements, .* not 2"),
        (cuda.memcpy2d, (3, 4), (8, 4), OVERLAP),
        (cuda.memcpy3d, (2, 3, 4), (96, 32, 8), APART),
        (cuda.memcpy3d, (2, 1, 4), (96, 32, 8), APART),
    ],
)
def test_the_elements_of_a_windows_row_are_contiguous_and_no_two_rows_overlap(device, copy, shape, strides, words):
    x, host = cuda.zeros(shape, np.int32), np.lib.stride_tricks.as_strided(np.zeros(64, np.int32), shape, strides)
    with pytest.raises(ValueError, match=words.format("src")):
        copy(x, host)
    with pytest.raises(ValueError, match=words.format("dst")):
        copy(host, x)


def test_an_axis_of_one_element_may_have_any_stride(device):
    host = np.arange(24, dtype=np.int32).reshape(3, 8)
    x = cuda.zeros((3, 1), np.int32)
    cuda.memcpy2d(x, host[:, 2::8])
    assert x.to_host().tolist() == [[2], [10], [18]]
    for source in (np.broadcast_to(host[0], (1, 8)), host[:1][::-1], host[:1, ::2][::-1]):
        x = cuda.zeros(source.shape, np.int32)
        cuda.memcpy(x, source)
        np.testing.assert_array_equal(x.to_host(), source)


def test_planes_that_begin_among_the_rows_of_the_one_before_are_copied_apart(device, asked):
    values = np.arange(24, dtype=np.int32)
    x, memory, shape, strides = cuda.zeros((2, 3, 2), np.int32), cuda.to_device(values), (2, 3, 2), (32, 16, 4)
    asked()
    cuda.memcpy(x, cuda.DeviceArray.borrow(memory.pointer, shape, np.int32, strides=strides, owner=memory))
    assert asked() == {"cuMemcpy2DAsync": 2}
    np.testing.assert_array_equal(x.to_host(), np.lib.stride_tricks.as_strided(values, shape, strides))


@pytest.mark.parametrize("shape", [3, 5, (2, 2), (4, 1), (1, 4)])
@HOST
def test_what_an_array_is_brought_to_has_its_shape(stream, make, shape):
    x, out = cuda.full(4, 1, np.int32), make(np.zeros(shape, np.int32))
    cuda.current_device().synchronize()
    for options in ({}, {"stream": stream}):
        with pytest.raises(ValueError, match=r"argument 'out' must be of the array's shape \(4,\)"):
            x.to_host(out, **options)
    assert not out.any()
