"""Copies in every direction, their errors, and random copies of windows compared with NumPy's slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cudart_py as cuda

DTYPES = [np.uint8, np.int16, np.float32, np.float64, np.complex128]


def test_strides_that_a_copy_cannot_follow_are_named(device):
    for name, dst, src in (("dst", np.empty(2)[::-1], np.empty(2)), ("src", np.empty(2), np.broadcast_to(1.0, 2))):
        with pytest.raises(ValueError, match=f"argument '{name}' must have positive strides"):
            cuda.memcpy(dst, src)


def test_copy_from_takes_any_host_layout(device, rng):
    host = rng.random((7, 9))
    for source in (host[::-1], host.T, host[:, ::2], np.broadcast_to(host[0], (4, 9)), np.asfortranarray(host)):
        np.testing.assert_array_equal(cuda.empty(source.shape).copy_from(source).to_host(), source)
        np.testing.assert_array_equal(cuda.to_device(source).to_host(), source)


@pytest.mark.parametrize(
    ("copy", "kwargs", "words"),
    [
        (2, {"shape": (4, 4), "dst_start": (3, 0)}, r"'dst' .* 4 x 4 elements at dst_start=\(3, 0\), not \(5, 6"),
        (2, {"shape": (2, 7)}, "argument 'dst' must have a shape that contains"),
        (2, {"shape": (2, 2), "src_start": (-1, 0)}, "'src_start.0.' must be an int of at least 0"),
        (2, {"shape": (2, 2), "src_start": (0, 7)}, "argument 'src' must have a shape that contains"),
        (2, {"shape": (-1, 2)}, "'shape.0.' must be an int of at least 0"),
        (2, {"src_start": (9, 0)}, r"'src_start' must lie inside 'src' of shape \(8, 8\), not \(9, 0\)"),
        (2, {"shape": (1, 2, 3)}, "argument 'shape' must be a tuple of 2 ints"),
        (2, {"shape": (1, 1), "dst_start": (0.5, 0)}, r"'dst_start\[0\]' must be an int, not the float 0.5"),
        (2, {"dst": np.zeros((2, 2, 2))}, "argument 'dst' must have 2 dimensions, not 3"),
        (2, {"src": np.zeros(4)}, "argument 'src' must have 2 dimensions, not 1"),
        (3, {"shape": (2, 2, 2), "dst_start": (3, 0, 0)}, r"'dst' .* 2 x 2 x 2 elements at dst_start=\(3, 0, 0\)"),
        (3, {"shape": (1, 1, 9)}, "argument 'dst' must have a shape that contains"),
        (3, {"shape": (1, 1, 1), "src_start": (0, -1, 0)}, "'src_start.1.' must be an int of at least 0"),
        (3, {"shape": (1, 1)}, "argument 'shape' must be a tuple of 3 ints"),
        (3, {"shape": (1, 1, 1), "dst_start": (0, 0, 0, 1)}, "argument 'dst_start' must be a tuple of 3 ints"),
        (3, {"src": np.zeros((4, 4))}, "argument 'src' must have 3 dimensions, not 2"),
    ],
)
def test_a_window_outside_an_array_is_named(device, copy, kwargs, words):
    arrays = {"dst": cuda.zeros((4, 5, 6)[-copy:]), "src": cuda.zeros((8,) * copy)}
    with pytest.raises((TypeError, ValueError), match=words):
        {2: cuda.memcpy2d, 3: cuda.memcpy3d}[copy](**arrays | kwargs)


def place(host, where, turned=False):
    """Copy an array to pageable (h) or pinned memory, to the device (d), to pitched rows (r) or a CUDA array (a, l)."""
    if where in "al":
        return cuda.textures.CudaArray(host.shape, host.dtype, layered=where == "l").copy_from(host)
    if where == "r" and host.ndim == 2:
        return cuda.empty_pitched(host.shape, host.dtype).copy_from(host)
    if where in "dr":
        return cuda.to_device(host)
    shape = host.shape[::-1] if turned else host.shape
    made = (np.empty if where == "h" else cuda.pinned_empty)(shape, host.dtype)
    made = made.T if turned else made
    made[...] = host
    return made


@st.composite
def windows(draw):
    """Draw two shapes and a slice of each, so that both slices have the same shape, in one to three dimensions."""
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


@given(
    windows(), st.sampled_from(DTYPES), st.sampled_from("hpdr"), st.sampled_from("hpdr"), st.booleans(), st.booleans()
)
def test_any_copy_equals_numpys_assignment(case, dtype, from_where, to_where, turned, streamed):
    ((to_shape, from_shape), (to_key, from_key)) = case
    rng = np.random.default_rng(0)
    source = rng.integers(0, 100, from_shape).astype(dtype)
    target = rng.integers(100, 200, to_shape).astype(dtype)
    expected = target.copy()
    expected[to_key] = source[from_key]

    with cuda.Device(0), cuda.Stream() as stream:
        src, dst = place(source, from_where, turned), place(target, to_where)
        cuda.memcpy(dst[to_key], src[from_key], **({"stream": stream} if streamed else {}))
        stream.synchronize()
        result = dst if to_where in "hp" else dst.to_host()
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("copy", [cuda.memcpy2d, cuda.memcpy3d])
@given(st.data(), st.sampled_from("hpdral"), st.sampled_from("hpdral"))
def test_any_window_equals_numpys_assignment(copy, data, from_where, to_where):
    dtype = data.draw(st.sampled_from(DTYPES[:3] if {"a", "l"} & {from_where, to_where} else DTYPES))
    if {"a", "l"} == {from_where, to_where}:  # a layered and an unlayered array cannot be copied to each other
        to_where = from_where
    largest = (12, 12) if copy is cuda.memcpy2d else (5, 6, 7)
    to_shape, from_shape = (data.draw(st.tuples(*(st.integers(1, most) for most in largest))) for _ in range(2))
    window = [data.draw(st.integers(0, min(sizes))) for sizes in zip(to_shape, from_shape, strict=True)]
    to = [data.draw(st.integers(0, size - n)) for size, n in zip(to_shape, window, strict=True)]
    source = [data.draw(st.integers(0, size - n)) for size, n in zip(from_shape, window, strict=True)]
    a = np.arange(np.prod(from_shape)).reshape(from_shape).astype(dtype)
    b = np.full(to_shape, 99).astype(dtype)
    expected = b.copy()
    inside, taken = (tuple(slice(at, at + n) for at, n in zip(start, window, strict=True)) for start in (to, source))
    expected[inside] = a[taken]

    with cuda.Device(0):
        src, dst = place(a, from_where), place(b, to_where)
        copy(dst, src, window, dst_start=to, src_start=source)
        np.testing.assert_array_equal(dst if to_where in "hp" else dst.to_host(), expected)


def test_boxes_by_memcpy3d_and_slices_by_memcpy_are_one_copy(device, driver_calls):
    host = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
    array = cuda.zeros((6, 7, 8), np.float32)
    out = np.zeros((2, 3, 4), np.float32)
    expected = np.zeros((6, 7, 8), np.float32)
    expected[1:3, 2:5, 3:7] = host[2:4, 1:4, 0:4]
    driver_calls.clear()
    cuda.memcpy3d(array, host, (2, 3, 4), dst_start=(1, 2, 3), src_start=(2, 1, 0))
    np.testing.assert_array_equal(array.to_host(), expected)
    cuda.memcpy(out, array[1:3, 2:5, 3:7])
    np.testing.assert_array_equal(out, expected[1:3, 2:5, 3:7])
    asked = {name: count for name, count in driver_calls.items() if "Memcpy" in name}
    assert asked == {"cuMemcpy3DAsync": 2, "cuMemcpyDtoHAsync": 1}


def test_the_whole_of_the_source_is_the_default_as_far_as_the_destination_goes(device):
    host = np.arange(24.0).reshape(2, 3, 4)
    array = cuda.zeros((3, 4, 5))
    cuda.memcpy3d(array, host, dst_start=(1, 1, 1))
    expected = np.zeros((3, 4, 5))
    expected[1:, 1:, 1:] = host
    np.testing.assert_array_equal(array.to_host(), expected)
    out = np.zeros((1, 2, 2))
    cuda.memcpy3d(out, array, src_start=(2, 2, 3))
    np.testing.assert_array_equal(out, expected[2:, 2:, 3:])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # NumPy warns that strides are assigned
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
