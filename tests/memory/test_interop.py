"""Arrays and streams of other GPU libraries in this package, and this package's in other libraries."""

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from cuda.bindings import driver

import cudart_py as cuda

ATTRIBUTES = ["__cuda_array_interface__", "__dlpack__", "__dlpack_device__"]


@pytest.fixture
def shared(monkeypatch):
    """Enable the interoperability attributes on any driver, to test their values."""
    monkeypatch.setattr("cudart_py.driver.capabilities._has_interop", lambda: True)


class Foreign:
    """An array of another library."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.pointer, False),
            "strides": None,
            **changes,
        }


# -- our arrays and streams --------------------------------------------------------------------


def test_where_nobody_could_follow_our_addresses_the_attributes_are_absent(device):
    expected = "interop" in cuda.capabilities()
    array = cuda.zeros(3)
    assert [hasattr(array, name) for name in ATTRIBUTES] == [expected] * 3
    assert hasattr(cuda.Stream(), "__cuda_stream__") is expected
    assert hasattr(cuda.legacy_default, "__cuda_stream__") is expected


def test_arrays_and_streams_say_what_they_are(device, shared):
    stream = cuda.Stream()
    array = cuda.zeros((3, 4), np.float32, stream=stream)
    assert array.__cuda_array_interface__ == {
        "version": 3,
        "shape": (3, 4),
        "typestr": "<f4",
        "data": (array.pointer, False),
        "strides": None,
        "stream": stream.handle,
    }
    assert array.__dlpack_device__() == (2, device.ordinal)
    assert stream.__cuda_stream__() == (0, stream.handle)
    stream.close()  # the interface waits for the stream's work, so it names no stream
    assert array.__cuda_array_interface__["stream"] is None
    array.close()
    with pytest.raises(ValueError, match="closed"):
        array.__cuda_array_interface__  # noqa: B018  # reading it raises


def test_the_array_interface_of_views_structures_and_empty_arrays(device, shared):
    array = cuda.zeros((6, 8), np.int16)
    found = array[1::2, 2:].__cuda_array_interface__
    assert (found["shape"], found["strides"]) == ((3, 6), (32, 2))
    assert (found["data"], found["stream"]) == ((array.pointer + 20, False), 1)
    dtype = np.dtype([("a", "<f4"), ("b", "<i8")], align=True)
    assert np.dtype(cuda.zeros(2, dtype).__cuda_array_interface__["descr"]).names[0] == "a"
    assert cuda.zeros((0, 3)).__cuda_array_interface__["data"] == (0, False)


@pytest.mark.parametrize(
    ("make", "named", "words"),
    [
        (lambda: cuda.zeros(3), {"dl_device": (1, 0)}, r"cannot be exported to the DLPack device \(1, 0\)"),
        (lambda: cuda.zeros(3), {"stream": "x"}, "stream must be the handle"),
        (lambda: cuda.zeros(3), {"stream": -2}, "stream must be the handle"),
        (lambda: cuda.zeros(3, np.dtype([("a", "f4")])), {}, "no type"),
        (lambda: cuda.zeros((4, 12), np.uint8)[:, :8].view(np.int64), {}, "not multiples"),
    ],
)
def test_what_dlpack_cannot_say_is_a_buffer_error(device, shared, make, named, words):
    with pytest.raises(BufferError, match=words):
        make().__dlpack__(**named)


@pytest.mark.parametrize("name", ["dl_device", "max_version"])
@pytest.mark.parametrize(
    ("value", "error"), [(2, TypeError), ("ab", TypeError), ((1,), ValueError), ((1, "x"), TypeError)]
)
def test_what_is_not_a_pair_of_ints_is_named_for_dlpack(device, shared, name, value, error):
    with pytest.raises(error, match=rf"^DeviceArray.__dlpack__: argument '{name}"):
        cuda.zeros(3).__dlpack__(**{name: value})


# -- other libraries' arrays -------------------------------------------------------------------


def test_a_foreign_array_is_wrapped_and_kept_alive(device):
    array = cuda.to_device(np.arange(12.0).reshape(3, 4))
    foreign = Foreign(array)
    gone = weakref.ref(foreign)
    wrapped = cuda.as_device_array(foreign)
    del foreign
    gc.collect()
    assert gone() is not None
    assert (wrapped.pointer, wrapped.shape, wrapped.dtype) == (array.pointer, (3, 4), np.float64)
    np.testing.assert_array_equal(wrapped.to_host(), array.to_host())
    del wrapped
    gc.collect()
    assert gone() is None


def test_our_stream_waits_for_the_one_that_it_names(device, module):
    theirs, ours = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    x = cuda.full(1000, np.float32(2), stream=theirs)
    y = cuda.full(1000, np.float32(1), stream=theirs)
    module["saxpy"][4, 256, 0, theirs](3.0, x, y, 1000)
    wrapped = cuda.as_device_array(Foreign(y, stream=theirs.handle), stream=ours)
    assert (wrapped.to_host(stream=ours) == 7).all()


def test_its_strides_are_followed_and_its_default_streams_and_read_only_flags_known(device):
    array = cuda.to_device(np.arange(12).reshape(3, 4))
    assert cuda.as_device_array(array) is array
    foreign = Foreign(array, shape=(3, 2), strides=(32, 16))
    np.testing.assert_array_equal(cuda.as_device_array(foreign).to_host(), np.arange(12).reshape(3, 4)[:, ::2])
    for named in (1, 2, None):
        assert cuda.as_device_array(Foreign(array, stream=named)).to_host().sum() == 66
    foreign = Foreign(array, data=(array.pointer, True))
    with pytest.raises(ValueError, match="read_only=True"):
        cuda.as_device_array(foreign)
    assert cuda.as_device_array(foreign, read_only=True).to_host().sum() == 66
    wrapped = cuda.as_device_array(Foreign(cuda.zeros((0, 3))))
    assert (wrapped.shape, wrapped.pointer) == ((0, 3), 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mask": object()}, "masked"),
        ({"strides": ("a",)}, "strides"),
        ({"stream": 0}, r"'stream'\].* must be an int from 1 to .* not the int 0"),
        ({"typestr": ">f8"}, "byte order"),
        ({"data": (4096, False)}, "argument 'x' is at 0x1000, which this driver does not recognise as device memory"),
    ],
)
def test_what_cannot_be_wrapped_is_named(device, changes, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cuda.as_device_array(Foreign(cuda.zeros(3), **changes))


def test_other_objects_are_refused(device):
    with pytest.raises(
        TypeError, match="'x', of type ndarray, has no __cuda_array_interface__; copy it with to_device"
    ):
        cuda.as_device_array(np.zeros(3))
    with pytest.raises(TypeError, match="'x', of type list, has no __dlpack__"):
        cuda.from_dlpack([1])
    with pytest.raises(ValueError, match="copy it with to_device"):
        cuda.from_dlpack(np.zeros(3))
    for wrap in (cuda.as_device_array, cuda.from_dlpack):
        with pytest.raises((TypeError, ValueError), match="kernels accept it as it is"):
            wrap(cuda.managed_empty(3))


# -- other libraries' streams ------------------------------------------------------------------


class Protocol:
    def __init__(self, handle):
        self.told = 0, handle

    def __cuda_stream__(self):
        return self.told


class ForeignStream(SimpleNamespace):
    """A stream of another library, which holds its handle in an attribute."""


def of_cupy(handle):
    return ForeignStream(ptr=handle)


def of_torch(handle):
    return ForeignStream(cuda_stream=handle)


@pytest.mark.parametrize("kind", [Protocol, of_cupy, of_torch, int, driver.CUstream])
def test_a_foreign_stream_is_borrowed_kept_alive_and_never_destroyed(device, kind):
    stream = cuda.Stream()
    owner = kind(stream.handle)
    borrowed = cuda.Stream.borrow(owner)
    assert cuda.Stream.borrow(stream).handle == stream.handle
    assert (borrowed.handle, borrowed.device) == (stream.handle, device)
    cuda.full(10, 3, np.int32, stream=borrowed).close()
    borrowed.synchronize()
    gone = weakref.ref(owner) if kind in (Protocol, of_cupy, of_torch) else lambda: None
    kept = gone() is not None
    del owner
    gc.collect()
    assert (gone() is not None) == kept
    borrowed.close()
    del borrowed
    gc.collect()
    assert gone() is None
    stream.synchronize()
    assert stream.done


@pytest.mark.parametrize("handle", [0, 1])
def test_the_default_stream_of_others_is_the_legacy_one(device, handle):
    assert cuda.Stream.borrow(of_torch(handle)).handle == cuda.legacy_default.handle


# -- on a real GPU -----------------------------------------------------------------------------


@pytest.mark.needs("interop")
@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (0, 3)])
def test_dlpack_there_and_back_is_the_same_memory(device, shape):
    array = cuda.zeros(shape, np.float32)
    back = cuda.from_dlpack(array)
    assert (back.pointer, back.shape, back.dtype, back.device) == (array.pointer, shape, np.float32, device)


@pytest.mark.needs("interop")
def test_dlpack_keeps_the_array_alive_and_copies_when_asked(device):
    array = cuda.full(1000, 7, np.int32)
    assert "dltensor_versioned" in repr(array.__dlpack__(copy=True, max_version=(1, 0)))
    gone = weakref.ref(array)
    back = cuda.from_dlpack(array)
    del array
    gc.collect()
    assert gone() is not None
    assert (back.to_host() == 7).all()
    del back
    gc.collect()
    assert gone() is None


@pytest.mark.needs("interop")
@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_arrays_go_to_other_libraries_and_back_without_a_copy(device, module, name):
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    take, options = (library.asarray, {}) if name == "cupy" else (library.as_tensor, {"device": "cuda"})
    options["dtype"] = library.float32

    def pointer(theirs):
        return theirs.data.ptr if name == "cupy" else theirs.data_ptr()

    array = cuda.to_device(np.arange(12, dtype=np.float32).reshape(3, 4))
    for theirs in (take(array, **options), library.from_dlpack(array)):
        assert pointer(theirs) == array.pointer
        theirs += 1
    device.synchronize()
    np.testing.assert_array_equal(array.to_host(), np.arange(12, dtype=np.float32).reshape(3, 4) + 2)
    mine = library.arange(10, **options)[::2]
    for ours in (cuda.as_device_array(mine), cuda.from_dlpack(mine)):
        assert ours.pointer == pointer(mine)
        np.testing.assert_array_equal(ours.to_host(), np.arange(0, 10, 2, dtype=np.float32))
    x, y = library.ones(100, **options), library.ones(100, **options)
    module["saxpy"][1, 128](2.0, x, y, 100)
    device.synchronize()
    assert float(y.sum()) == 300
    if name == "torch":
        assert library.from_dlpack(cuda.zeros((0, 3), np.float32)).is_cuda


@pytest.mark.needs("interop")
@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_streams_go_to_other_libraries_and_back(device, name):
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    ours = cuda.Stream(non_blocking=True)
    if name == "cupy":
        entered, options, take_back = library.cuda.Stream.from_external(ours), {}, cuda.as_device_array
        stream = library.cuda.Stream(non_blocking=True)
        handle = stream.ptr
    else:
        entered = library.cuda.stream(library.cuda.ExternalStream(ours.handle))
        options, take_back, stream = {"device": "cuda"}, cuda.from_dlpack, library.cuda.Stream()
        handle = stream.cuda_stream
        assert cuda.Stream.borrow(library.cuda.default_stream()).handle == cuda.legacy_default.handle
    with entered:
        theirs = library.arange(1 << 20, dtype=library.float32, **options) * 2
    wrapped = take_back(theirs, stream=ours)
    assert float(wrapped.to_host(stream=ours)[-1]) == 2 * ((1 << 20) - 1)
    borrowed = cuda.Stream.borrow(stream)
    assert borrowed.handle == handle
    y = cuda.full(1000, np.float32(3), stream=borrowed)
    stream.synchronize()
    assert (y.to_host(stream=borrowed) == 3).all()


class Producer:
    """An object whose `__dlpack__` returns or raises an arbitrary object."""

    def __init__(self, returned, place=(2, 0)):
        self.returned, self.place = returned, place

    def __dlpack__(self, **options):
        if isinstance(self.returned, Exception):
            raise self.returned
        return self.returned

    def __dlpack_device__(self):
        return self.place


@pytest.mark.parametrize(
    ("place", "error", "words"),
    [
        ((14, 0), ValueError, "kernels cannot access the memory of argument 'x', which has DLPack device type 14"),
        (("gpu", 0), TypeError, r"__dlpack_device__\(\)\[0\]' must be an int, not the str 'gpu'"),
        ((2, None), TypeError, r"__dlpack_device__\(\)\[1\]' must be an int, not None"),
        ((2, 64), ValueError, r"__dlpack_device__\(\)\[1\]' must be an int from 0 to"),
    ],
)
def test_a_producers_device_that_kernels_cannot_use_is_named(device, place, error, words):
    with pytest.raises(error, match=f"^from_dlpack: .*{words}"):
        cuda.from_dlpack(Producer(None, place))


def test_a_producer_that_returns_no_capsule_is_named_and_its_own_assertion_left_as_it_is(device):
    for returned in (None, 5, "capsule", object()):
        with pytest.raises(TypeError, match=r"type Producer, .* not return a DLPack capsule"):
            cuda.from_dlpack(Producer(returned))
    with pytest.raises(AssertionError, match="the buffer is locked"):
        cuda.from_dlpack(Producer(AssertionError("the buffer is locked")))
