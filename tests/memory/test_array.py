"""Device arrays: shapes, views and lifetimes."""

import numpy as np
import pytest

import cudart_py as cuda


@pytest.mark.parametrize("shape", [(), 0, 1, 7, (3, 5), (2, 0, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int32, np.float64, np.complex128])
def test_a_round_trip_keeps_every_byte(device, rng, shape, dtype):
    host, out = rng.integers(0, 100, shape).astype(dtype), np.zeros(shape, dtype)
    array = cuda.to_device(host)
    assert array.to_host(out) is out
    for back in (out, array.to_host()):
        np.testing.assert_array_equal(back, host)


def test_shape_dtype_and_strides_are_numpys(device):
    host = np.empty((3, 5, 7), np.int16)
    array = cuda.empty_like(host)
    assert (array.shape, array.dtype, array.strides) == (host.shape, host.dtype, host.strides)
    assert (array.ndim, array.size, array.itemsize, array.nbytes, len(array)) == (3, 105, 2, 210, 3)
    assert array.is_contiguous
    assert array.device is device
    for empty in (cuda.empty((3, 0)), cuda.empty((3, 0))[1:]):
        assert empty.pointer == 0


KEYS = [
    *(np.s_[2], np.s_[-1], np.s_[1:4], np.s_[::2], np.s_[2:2], np.s_[...], np.s_[5:100]),
    *(np.s_[..., 1], np.s_[1, ..., 2], np.s_[:, 1:5:3], np.s_[1:3, 2, ::2], np.s_[-3:, -2:]),
    *(np.s_[::-1], np.s_[:, ::-1], np.s_[..., ::-2], np.s_[4:0:-3, None, ::-1, 2], np.s_[None], np.s_[1, ..., None]),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_views_are_numpys(device, rng, key):
    host = rng.random((6, 5, 7))
    array = cuda.to_device(host)
    view = array[key]
    assert view.shape == host[key].shape
    np.testing.assert_array_equal(view.to_host(), host[key])
    np.testing.assert_array_equal(view.copy().to_host(), host[key])
    out = np.empty(view.shape)
    cuda.memcpy(out, view)
    np.testing.assert_array_equal(out, host[key])
    view.copy_from(-host[key])
    host[key] *= -1
    np.testing.assert_array_equal(array.to_host(), host)
    view.fill(7.25)
    host[key] = 7.25
    np.testing.assert_array_equal(array.to_host(), host)


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (6, IndexError, r"^DeviceArray: argument 'index\[0\]' is out of range for axis 0 of size 6: it is the int 6$"),
        # Python refuses to format such an int.
        pytest.param(10**5000, IndexError, "is out of range for axis 0 of size 6", id="huge"),
        ((0, 0), IndexError, "2 indices for an array of 1"),
        (np.s_[::0], ValueError, r"'index\[0\]' must have a step that is not 0$"),
        ((None, np.s_[:"a"]), TypeError, r"'index\[1\]' must have bounds"),
        ("x", TypeError, "'index' must be an int, a slice or None, not the str 'x'; float64 has no fields"),
        (("x",), TypeError, r"'index\[0\]' .* not the str 'x'; a field's name must be the only index"),
        ((..., ...), IndexError, "one Ellipsis"),
    ],
)
def test_a_wrong_index_is_named(device, key, error, words):
    with pytest.raises(error, match=words):
        cuda.zeros(6)[key]


def test_an_array_as_index_needs_a_kernel(device):
    with pytest.raises(
        TypeError, match=r"'index\[0\]' must be an int, a slice or None, .*; masks and lists of indices need"
    ):
        cuda.zeros(6)[cuda.zeros(2, np.int32)]


def test_reshape_and_view(device):
    array = cuda.to_device(np.arange(12, dtype=np.int32))
    np.testing.assert_array_equal(array.reshape(3, 4).to_host(), np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(array.view("u1").to_host(), np.arange(12, dtype=np.int32).view("u1"))
    np.testing.assert_array_equal(array.view(np.float32).to_host(), np.arange(12, dtype=np.int32).view(np.float32))
    with pytest.raises(ValueError, match="12 elements"):
        array.reshape(5)
    with pytest.raises(ValueError, match="contiguous"):
        array[::2].reshape(2, 3)
    with pytest.raises(ValueError, match="argument 'dtype' .* size divides the 12 bytes of a row, not elements of 8"):
        array[:3].view(np.float64)


def test_pitched_rows_start_at_the_pitch(device, rng):
    host = rng.random((5, 33)).astype(np.float32)
    array = cuda.empty_pitched(host.shape, np.float32).copy_from(host)
    assert array.pitch >= 132
    assert array.pitch % 32 == 0
    assert array.pointer % 256 == 0
    np.testing.assert_array_equal(array.to_host(), host)
    with pytest.raises(ValueError, match="must have 2 dimensions"):
        cuda.empty_pitched(5)
    with pytest.raises(ValueError, match=r"not \(65, 66, 67\); for planes of rows, use \(planes \* rows, columns\)"):
        cuda.empty_pitched((65, 66, 67))


@pytest.mark.xdist_group("free memory")
def test_allocation_beyond_the_card_leaves_nothing_and_the_next_one_works(device):
    device.synchronize()
    before, total = device.memory_info.free, device.memory_info.total
    with pytest.raises(cuda.OutOfMemoryError) as caught:
        cuda.empty(total + 1, np.uint8)
    assert (caught.value.requested, caught.value.total) == (total + 1, total)
    for _ in range(100):
        with pytest.raises(cuda.OutOfMemoryError):
            cuda.empty_pitched((1 << 21, 1 << 21))
    assert cuda.to_device(np.arange(10)).to_host().sum() == 45
    device.synchronize()
    # The pool may keep a chunk of memory, but none for the failed allocation.
    assert before - device.memory_info.free <= 64 << 20


def test_use_after_close_is_a_value_error_and_views_close_with_the_array(device):
    array = cuda.zeros(10)
    view = array[2:5]
    array.close()
    array.close()
    for a in (array, view):
        assert a.closed
        for use in (a.to_host, lambda a=a: a.pointer, lambda a=a: a[1:], lambda a=a: cuda.memset(a, 0)):
            with pytest.raises(ValueError, match="closed"):
                use()
        a.close()
        assert a.device is device
    assert "closed" in repr(array)


def test_closing_a_view_leaves_the_array(device):
    array = cuda.to_device(np.arange(5))
    view = array[1:3]
    assert view.base is array
    assert view[1:].base is array
    assert array.base is None
    view.close()
    view.close()
    assert view.closed
    assert (view.device, view.stream, view.base) == (device, array.stream, None)
    assert not array.closed
    assert array.to_host().sum() == 10


def test_an_array_outlives_its_stream_and_is_closed_in_that_of_its_last_use(device):
    with cuda.Stream() as stream, cuda.zeros(100) as array:
        outliving = cuda.zeros(100, stream=stream)
        cuda.memset(array, 0, stream=stream)
        array.close(stream=stream)
        stream.synchronize()
    outliving.close()
    device.synchronize()
    with cuda.zeros(3) as array:
        pass
    assert array.closed


def borrow(array):
    return cuda.DeviceArray.borrow(array.pointer, 3, np.float32, owner=array)


@pytest.mark.parametrize("of", [lambda a: a, lambda a: a[1:3], lambda a: cuda.empty_pitched((3, 3)), borrow])
def test_close_refuses_a_bad_stream_and_leaves_every_kind_of_array_open(device, of):
    owner = cuda.zeros(5, np.float32)
    array = of(owner)
    closed = cuda.Stream()
    closed.close()
    for bad, error in [(5, TypeError), (array, TypeError), (closed, ValueError)]:
        with pytest.raises(error, match=r"DeviceArray\.close: argument 'stream' must be"):
            array.close(stream=bad)
        assert not array.closed
    assert type(array) is cuda.DeviceArray
    array.close()
    array.close(stream=closed)  # a second call does nothing
    assert array.closed


def test_borrowed_memory_is_never_freed(device):
    array = cuda.to_device(np.arange(6, dtype=np.int32))
    borrowed = cuda.DeviceArray.borrow(array.pointer, (2, 2), np.int32, strides=(12, 4), owner=array)
    np.testing.assert_array_equal(borrowed.to_host(), [[0, 1], [3, 4]])
    borrowed.close()
    assert array.to_host().sum() == 15
    with pytest.raises(ValueError, match="pitch of 4 bytes, smaller than the row's 8 bytes"):
        cuda.DeviceArray.borrow(array.pointer, (2, 2), np.int32, strides=(4, 4))
    backward = cuda.DeviceArray.borrow(array.pointer + 20, (2, 2), np.int32, strides=(-12, -4), owner=array)
    np.testing.assert_array_equal(backward.to_host(), [[5, 4], [2, 1]])
    with pytest.raises(ValueError, match="pitch of -4 bytes, smaller than the row's 8 bytes"):
        cuda.DeviceArray.borrow(array.pointer + 20, (2, 2), np.int32, strides=(-4, 4))


@pytest.mark.parametrize("make", [cuda.empty, cuda.empty_pitched, cuda.pinned_empty, cuda.managed_empty])
def test_more_bytes_than_the_driver_can_be_asked_for_are_too_much_memory(device, make):
    with pytest.raises(cuda.OutOfMemoryError, match=f"{2**67:,} bytes of .* memory were requested") as caught:
        make((2**62, 4), np.float64)
    assert caught.value.requested == 2**67


@pytest.mark.parametrize("value", [0, 3, -2.5, 1 + 2j, True, 2**63], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_an_array_of_one_element_has_its_value_on_the_host(device, value, shape):
    host = np.full(shape, value)
    array = cuda.to_device(host)
    assert type(array.item()) is type(host.item())
    assert array.item() == complex(array) == host.item()
    assert bool(array) == bool(host)
    if not isinstance(value, complex):
        assert (int(array), float(array)) == (int(host.item()), float(host.item()))


@pytest.mark.parametrize("shape", [(0,), (2,), (3, 1)])
@pytest.mark.parametrize("call", [bool, int, float, complex, cuda.DeviceArray.item])
def test_an_array_of_another_size_has_no_value(device, call, shape):
    with pytest.raises(ValueError, match=rf"only an array with one element .* has {np.prod(shape)}; .*to_host"):
        call(cuda.zeros(shape))


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("shape", (3, 2), r"write x = x\.reshape\(shape\)"),
        ("dtype", np.dtype(np.int64), r"write x = x\.view\(dtype\)"),
        ("nbytes", 1000, "nbytes"),
        ("strides", (4, 8), "strides"),
        ("is_contiguous", False, "is_contiguous"),
        ("device", None, "device"),
        ("stream", None, "stream"),
        ("base", None, "base"),
        ("other", 1, "other"),
    ],
)
def test_no_attribute_can_be_set(device, name, value, remedy):
    x = cuda.to_device(np.arange(6).reshape(2, 3))
    with pytest.raises(AttributeError, match=remedy):
        setattr(x, name, value)
    np.testing.assert_array_equal(x[1].to_host(), [3, 4, 5])
