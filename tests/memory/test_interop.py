"""Arrays and streams of other GPU libraries, and ours in theirs."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cudart_py as cuda

ATTRIBUTES = ["__cuda_array_interface__", "__dlpack__", "__dlpack_device__"]


@pytest.fixture
def shared(monkeypatch):
    """Let the attributes be there on any driver, to look at what they say."""
    monkeypatch.setattr("cudart_py.driver.sharing._available", lambda: True)


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


# -- what we say of ourselves ------------------------------------------------------------------


def test_where_nobody_could_follow_our_addresses_the_attributes_are_absent(device):
    expected = "interop" in cuda.capabilities()
    array = cuda.zeros(3)
    assert [hasattr(array, name) for name in ATTRIBUTES] == [expected] * 3
    assert hasattr(cuda.Stream(), "__cuda_stream__") is expected
    assert hasattr(cuda.legacy_default, "__cuda_stream__") is expected


def test_the_array_interface_of_a_contiguous_array(device, shared):
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


def test_the_array_interface_of_a_view(device, shared):
    array = cuda.zeros((6, 8), np.int16)
    found = array[1::2, 2:].__cuda_array_interface__
    assert (found["shape"], found["strides"]) == ((3, 6), (32, 2))
    assert found["data"] == (array.pointer + 20, False)
    assert found["stream"] == 1


def test_the_array_interface_of_structures_names_the_fields(device, shared):
    dtype = np.dtype([("a", "<f4"), ("b", "<i8")], align=True)
    found = cuda.zeros(2, dtype).__cuda_array_interface__
    assert np.dtype(found["descr"]).names[0] == "a"


def test_an_empty_array_has_the_address_zero(device, shared):
    assert cuda.zeros((0, 3)).__cuda_array_interface__["data"] == (0, False)


def test_a_closed_array_has_no_interface(device, shared):
    array = cuda.zeros(3)
    array.close()
    with pytest.raises(ValueError, match="closed"):
        array.__cuda_array_interface__  # noqa: B018  # to read it raises


def test_a_closed_stream_is_waited_for_instead_of_named(device, shared):
    stream = cuda.Stream()
    array = cuda.full(1000, 5, np.int32, stream=stream)
    stream.close()
    assert array.__cuda_array_interface__["stream"] is None


def test_a_stream_says_its_handle(device, shared):
    stream = cuda.Stream()
    assert stream.__cuda_stream__() == (0, stream.handle)


def test_the_dlpack_device(device, shared):
    assert cuda.zeros(3).__dlpack_device__() == (2, device.ordinal)


@pytest.mark.parametrize(
    ("make", "named", "words"),
    [
        (lambda: cuda.zeros(3), {"dl_device": (1, 0)}, r"cannot be given as \(1, 0\)"),
        (lambda: cuda.zeros(3), {"stream": "x"}, "stream is the handle"),
        (lambda: cuda.zeros(3), {"stream": -2}, "stream is the handle"),
        (lambda: cuda.zeros(3, np.dtype([("a", "f4")])), {}, "no type"),
        (lambda: cuda.zeros((4, 12), np.uint8)[:, :8].view(np.int64), {}, "no multiples"),
    ],
)
def test_what_dlpack_cannot_say_is_a_buffer_error(device, shared, make, named, words):
    with pytest.raises(BufferError, match=words):
        make().__dlpack__(**named)


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


def test_its_strides_are_followed(device):
    array = cuda.to_device(np.arange(12).reshape(3, 4))
    foreign = Foreign(array, shape=(3, 2), strides=(32, 16))
    np.testing.assert_array_equal(cuda.as_device_array(foreign).to_host(), np.arange(12).reshape(3, 4)[:, ::2])


def test_our_stream_waits_for_the_one_that_it_names(device, module):
    theirs, ours = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    x = cuda.full(1000, np.float32(2), stream=theirs)
    y = cuda.full(1000, np.float32(1), stream=theirs)
    module["saxpy"][4, 256, 0, theirs](3.0, x, y, 1000)
    wrapped = cuda.as_device_array(Foreign(y, stream=theirs.handle), stream=ours)
    assert (wrapped.to_host(stream=ours) == 7).all()


@pytest.mark.parametrize("named", [1, 2, None])
def test_default_streams_may_be_named(device, named):
    array = cuda.full(10, 3, np.int32)
    assert (cuda.as_device_array(Foreign(array, stream=named)).to_host() == 3).all()


def test_an_empty_foreign_array(device):
    wrapped = cuda.as_device_array(Foreign(cuda.zeros((0, 3))))
    assert (wrapped.shape, wrapped.pointer) == ((0, 3), 0)


def test_our_own_array_is_returned_as_it_is(device):
    array = cuda.zeros(3)
    assert cuda.as_device_array(array) is array


def test_an_array_that_must_not_be_written_needs_a_promise(device):
    array = cuda.full(3, 5, np.int32)
    foreign = Foreign(array, data=(array.pointer, True))
    with pytest.raises(ValueError, match="read_only=True"):
        cuda.as_device_array(foreign)
    assert (cuda.as_device_array(foreign, read_only=True).to_host() == 5).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mask": object()}, "masked"),
        ({"strides": (-8,)}, "strides"),
        ({"stream": 0}, r"'stream'\].* must be an int from 1 to .* not the int 0"),
        ({"typestr": ">f8"}, "byte order"),
        ({"data": (4096, False)}, "argument 'x' is at 0x1000, which this driver does not know as device memory"),
    ],
)
def test_what_cannot_be_wrapped_is_named(device, changes, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cuda.as_device_array(Foreign(cuda.zeros(3), **changes))


def test_other_objects_are_refused(device):
    with pytest.raises(TypeError, match="'x', of type ndarray, has no __cuda_array_interface__; use from_dlpack"):
        cuda.as_device_array(np.zeros(3))
    with pytest.raises(TypeError, match="'x', of type list, has no __dlpack__"):
        cuda.from_dlpack([1])
    with pytest.raises(ValueError, match="use to_device"):
        cuda.from_dlpack(np.zeros(3))


# -- other libraries' streams ------------------------------------------------------------------


class Protocol:
    def __init__(self, handle, version=0):
        self.handle_of_it, self.version = handle, version

    def __cuda_stream__(self):
        return self.version, self.handle_of_it


class CupyStream:
    def __init__(self, handle):
        self.ptr = handle


class TorchStream:
    def __init__(self, handle):
        self.cuda_stream = handle


@pytest.mark.parametrize("kind", [Protocol, CupyStream, TorchStream, int])
def test_a_foreign_stream_is_borrowed_and_never_destroyed(device, kind):
    stream = cuda.Stream()
    borrowed = cuda.Stream.borrow(kind(stream.handle))
    assert (borrowed.handle, borrowed.device) == (stream.handle, device)
    array = cuda.full(10, 3, np.int32, stream=borrowed)
    borrowed.synchronize()
    array.close()
    borrowed.close()
    stream.synchronize()
    assert stream.done


def test_raw_handles_of_the_bindings_are_streams(device):
    from cuda.bindings import driver

    stream = cuda.Stream()
    assert cuda.Stream.borrow(driver.CUstream(stream.handle)).handle == stream.handle
    assert cuda.Stream.borrow(stream).handle == stream.handle


@pytest.mark.parametrize("handle", [0, 1])
def test_the_default_stream_of_others_is_the_legacy_one(device, handle):
    assert cuda.Stream.borrow(TorchStream(handle)).handle == cuda.legacy_default.handle


def test_a_borrowed_stream_keeps_its_owner_alive(device):
    stream = cuda.Stream()
    owner = Protocol(stream.handle)
    gone = weakref.ref(owner)
    borrowed = cuda.Stream.borrow(owner)
    del owner
    gc.collect()
    assert gone() is not None
    del borrowed
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("wrong", ["5", 1.5, True, None, Protocol(1, version=1)])
def test_what_is_no_stream_is_refused(device, wrong):
    with pytest.raises(TypeError, match=r"is no stream|version 0 is known"):
        cuda.Stream.borrow(wrong)


# -- on a real GPU -----------------------------------------------------------------------------


@pytest.mark.needs("interop")
@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (0, 3)])
def test_dlpack_there_and_back_is_the_same_memory(device, shape):
    array = cuda.zeros(shape, np.float32)
    back = cuda.from_dlpack(array)
    assert (back.pointer, back.shape, back.dtype, back.device) == (array.pointer, shape, np.float32, device)


@pytest.mark.needs("interop")
def test_dlpack_keeps_the_array_alive(device):
    array = cuda.full(1000, 7, np.int32)
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
def test_dlpack_copies_when_asked(device):
    array = cuda.full(1000, 7, np.int32)
    capsule = array.__dlpack__(copy=True, max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)


@pytest.mark.needs("interop")
def test_arrays_go_to_cupy_and_back_without_a_copy(device, module):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    array = cuda.to_device(np.arange(12, dtype=np.float32).reshape(3, 4))
    for theirs in (cupy.asarray(array), cupy.from_dlpack(array)):
        assert theirs.data.ptr == array.pointer
        theirs += 1
    np.testing.assert_array_equal(array.to_host(), np.arange(12, dtype=np.float32).reshape(3, 4) + 2)
    mine = cupy.arange(10, dtype=cupy.float32)[::2]
    for ours in (cuda.as_device_array(mine), cuda.from_dlpack(mine)):
        assert ours.pointer == mine.data.ptr
        np.testing.assert_array_equal(ours.to_host(), np.arange(0, 10, 2, dtype=np.float32))
    x, y = cupy.ones(100, cupy.float32), cupy.ones(100, cupy.float32)
    module["saxpy"][1, 128](2.0, x, y, 100)
    device.synchronize()
    assert float(y.sum()) == 300


@pytest.mark.needs("interop")
def test_streams_go_to_cupy_and_back(device, module):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    ours = cuda.Stream(non_blocking=True)
    with cupy.cuda.Stream.from_external(ours):
        theirs = cupy.arange(1 << 20, dtype=cupy.float32) * 2
    wrapped = cuda.as_device_array(theirs, stream=ours)
    assert float(wrapped.to_host(stream=ours)[-1]) == 2 * ((1 << 20) - 1)
    stream = cupy.cuda.Stream(non_blocking=True)
    borrowed = cuda.Stream.borrow(stream)
    assert borrowed.handle == stream.ptr
    y = cuda.full(1000, np.float32(3), stream=borrowed)
    stream.synchronize()
    assert (y.to_host(stream=borrowed) == 3).all()


@pytest.mark.needs("interop")
def test_arrays_go_to_pytorch_and_back_without_a_copy(device, module):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    array = cuda.to_device(np.arange(12, dtype=np.float32).reshape(3, 4))
    for theirs in (torch.as_tensor(array, device="cuda"), torch.from_dlpack(array)):
        assert theirs.data_ptr() == array.pointer
        theirs += 1
    torch.cuda.synchronize()
    np.testing.assert_array_equal(array.to_host(), np.arange(12, dtype=np.float32).reshape(3, 4) + 2)
    tensor = torch.arange(10, dtype=torch.float32, device="cuda")
    for ours in (cuda.as_device_array(tensor), cuda.from_dlpack(tensor)):
        assert ours.pointer == tensor.data_ptr()
        np.testing.assert_array_equal(ours.to_host(), np.arange(10, dtype=np.float32))
    assert torch.from_dlpack(cuda.zeros((0, 3), np.float32)).is_cuda


@pytest.mark.needs("interop")
def test_streams_go_to_pytorch_and_back(device):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    ours = cuda.Stream(non_blocking=True)
    with torch.cuda.stream(torch.cuda.ExternalStream(ours.handle)):
        theirs = torch.arange(1 << 20, dtype=torch.float32, device="cuda") * 2
    wrapped = cuda.from_dlpack(theirs, stream=ours)
    assert float(wrapped.to_host(stream=ours)[-1]) == 2 * ((1 << 20) - 1)
    stream = torch.cuda.Stream()
    assert cuda.Stream.borrow(stream).handle == stream.cuda_stream
    assert cuda.Stream.borrow(torch.cuda.default_stream()).handle == cuda.legacy_default.handle


@pytest.mark.parametrize("returned", [None, 5, "capsule", object()], ids=["None", "int", "str", "object"])
def test_a_producer_that_returns_no_capsule_is_named(device, returned):
    class Producer:
        def __dlpack__(self, **options):
            return returned

        def __dlpack_device__(self):
            return 2, 0

    with pytest.raises(TypeError, match=r"type Producer, .* no DLPack capsule"):
        cuda.from_dlpack(Producer())


def test_a_producers_own_assertion_is_left_as_it_is(device):
    class Producer:
        def __dlpack__(self, **options):
            raise AssertionError("the buffer is locked")

        def __dlpack_device__(self):
            return 2, 0

    with pytest.raises(AssertionError, match="the buffer is locked"):
        cuda.from_dlpack(Producer())
