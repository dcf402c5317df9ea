"""Methods of a device array, and the errors for NumPy functions and Python operators on it."""

import ctypes

import numpy as np
import pytest

import cudart_py as cuda


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (np.asarray, r"to_host\(\)"),
        (np.array, r"to_host\(\)"),
        (lambda d: np.stack([d, d]), r"to_host\(\)"),
        (lambda d: d == np.arange(6), r"to_host\(\)"),
        (lambda d: d == 0.0, r"to_host\(\)"),
        (lambda d: d != 0.0, r"to_host\(\)"),
        (lambda d: d == cuda.zeros(6), r"to_host\(\)"),
        (lambda d: 0.0 in d, r"to_host\(\)"),
        (lambda d: np.arange(6) == d, r"np.equal takes .* x.to_host\(\)"),
        (lambda d: np.arange(6) != d, r"np.not_equal takes .* x.to_host\(\)"),
        (lambda d: np.array_equal(d, np.zeros(6)), r"np.array_equal takes .* x.to_host\(\) and use NumPy"),
        (lambda d: np.array_equiv(np.zeros(6), d), r"np.array_equiv takes .* x.to_host\(\) and use NumPy"),
        (np.linalg.det, r"np.linalg.det takes .* x.to_host\(\)$"),
        (np.zeros_like, r"np.zeros_like takes .* or cuda.zeros_like$"),
        (np.fft.fft, r"np.fft.fft takes .* or libraries.fft( \(after .*\))?$"),
        (np.sum, "np.sum takes .*libraries.dot"),
        (np.sin, "np.sin takes .* write a kernel"),
        (np.add.reduce, "np.add.reduce takes .* write a kernel"),
        (lambda d: np.add(np.ones(6), 1, out=d), "np.add takes .* write a kernel"),
        (lambda d: np.arange(6) + d, "np.add takes .* write a kernel"),
        (lambda d: np.eye(6) @ d, "libraries.matmul"),
        (lambda d: np.float32(2) * d, "np.multiply takes .* write a kernel"),
        (lambda d: 1.0 - d, "write a kernel"),
        (lambda d: d * 2, "write a kernel"),
        (lambda d: d @ d, "write libraries.matmul"),
        (lambda d: d[0] + 1, r"float\(x\)"),
        (lambda d: d[0] > 1, r"float\(x\)"),
        (lambda d: divmod(d[0], 2), r"float\(x\)"),
        (lambda d: round(d[0], 2), r"float\(x\)"),
        (lambda d: f"{d[0]:.2f}", r"float\(x\)"),
        (lambda d: -d, "write a kernel"),
        (lambda d: d > 0, "write a kernel"),
        (lambda d: sorted([d, d]), "write a kernel"),
    ],
)
def test_an_array_is_not_compared_and_not_calculated_with_on_the_host(device, ask, words):
    with pytest.raises(TypeError, match=words):
        ask(cuda.zeros(6))


def test_elements_are_not_calculated_in_place_and_the_error_says_what_to_write(device):
    x = cuda.zeros(4)
    with pytest.raises(TypeError, match=r"write float\(x\)"):
        x[0] += 5.0
    with pytest.raises(TypeError, match="write a kernel"):
        x += 5.0
    assert not x.to_host().any()


@pytest.mark.parametrize("ask", [np.shape, np.ndim, np.size, np.result_type, np.iscomplexobj, np.isrealobj])
def test_numpy_may_ask_for_the_shape_and_the_dtype(device, ask):
    host = np.zeros((2, 3), np.complex64)
    assert ask(cuda.to_device(host)) == ask(host)
    assert f"{cuda.zeros(3)}".startswith("<DeviceArray (3,)")


def test_the_operators_that_an_array_refuses_are_not_among_its_attributes(device):
    assert not {"__add__", "__radd__", "__lt__"} & {*dir(cuda.zeros(1))}


def test_an_array_is_itself_and_can_be_a_key(device):
    x, y = cuda.zeros(3), cuda.zeros(3)
    assert (x == x) is True  # the comparison is under test
    assert (x == None) is False  # noqa: E711  # as above
    assert {x: 1, y: 2}[x] == 1


def test_a_copy_has_memory_of_its_own_and_c_order_and_the_axes_of_t_are_reversed(device, rng):
    host = rng.random((3, 4, 5))
    x = cuda.to_device(host)
    copy, turned = x[1:, 2:, 1:4].copy(), x.T
    assert turned.shape == (5, 4, 3)
    np.testing.assert_array_equal(turned.to_host(), host.T)
    np.testing.assert_array_equal(turned.T.to_host(), host)
    np.testing.assert_array_equal(turned.copy().to_host(), host.T)
    x.fill(0)
    assert copy.is_contiguous
    np.testing.assert_array_equal(copy.to_host(), host[1:, 2:, 1:4])


@pytest.mark.parametrize(
    ("given", "expected"),
    [((-1,), (24,)), ((4, -1), (4, 6)), ((-1, 3, 2), (4, 3, 2)), (([2, -1],), (2, 12)), ((24, -1), (24, 1))],
)
def test_one_size_of_a_new_shape_may_be_left_open(device, given, expected):
    assert cuda.zeros((2, 3, 4)).reshape(*given).shape == expected


@pytest.mark.parametrize("given", [(-1, -1), (5, -1), (-2,), (0, -1), (-1, 7, 2)])
def test_a_new_shape_that_cannot_be_is_refused(device, given):
    with pytest.raises(ValueError, match="argument 'shape' must (be|have at most one -1)"):
        cuda.zeros((2, 3, 4)).reshape(*given)


def test_zeros_like_has_the_shape_and_dtype_of_another_and_to_device_converts_first(device):
    for other in (np.ones((2, 3), np.int16), cuda.full((2, 3), 1, np.int16)):
        made = cuda.zeros_like(other)
        assert (made.shape, made.dtype) == ((2, 3), np.int16)
        assert not made.to_host().any()
    made = cuda.to_device([1, 2, 3], np.float32)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made.to_host(), [1, 2, 3])
    with pytest.raises(TypeError, match="argument 'host' has dtype <U1, which NumPy cannot convert to float32"):
        cuda.to_device(["a"], dtype=np.float32)


def test_an_array_like_another_is_in_its_stream_if_that_is_open(device):
    with cuda.Stream() as stream:
        x = cuda.zeros(3, stream=stream)
        assert [made.stream for made in (cuda.empty_like(x), cuda.zeros_like(x), x.copy())] == [stream] * 3
        assert cuda.empty_like(x, stream=cuda.legacy_default).stream is cuda.legacy_default
    assert cuda.empty_like(x).stream is cuda.legacy_default
    assert cuda.empty_like(np.zeros(3)).stream is cuda.legacy_default


def test_every_way_to_make_an_array_takes_a_pool(device):
    zeros = np.zeros(1000, np.uint8)
    for make, *given in ((cuda.zeros, 1000, np.uint8), (cuda.full, 1000, 3, np.uint8), (cuda.to_device, zeros)):
        with cuda.MemoryPool() as pool, make(*given, pool=pool):
            assert pool.used >= 1000


@pytest.mark.parametrize(
    "make", [bytes, bytearray, memoryview, lambda data: (ctypes.c_ubyte * len(data)).from_buffer_copy(data)]
)
def test_bytes_are_copied_as_elements(device, make):
    host = np.arange(12, dtype=np.int32).reshape(3, 4)
    x, y = (cuda.empty((3, 4), np.int32) for _ in range(2))
    np.testing.assert_array_equal(x.copy_from(make(host.tobytes())).to_host(), host)
    cuda.memcpy(y, make(host.tobytes()))
    np.testing.assert_array_equal(y.to_host(), host)
    for size in (44, 52):
        with pytest.raises(ValueError, match=f"memcpy: .*48 bytes, like the array.* {size}"):
            cuda.memcpy(y, make(bytes(size)))


def test_structures_are_copied_as_bytes_into_an_array_of_bytes(device):
    kind = np.dtype([("slope", np.float32), ("offset", np.float64)], align=True)
    lines = np.array([(1, 2), (3, 4)], kind)
    for source in (lines, lines[0], np.array(lines[1]), lines[:1], lines[::-1]):
        bytes_of_it = cuda.zeros(source.nbytes, np.uint8).copy_from(source)
        assert (bytes_of_it.view(kind).to_host() == source).all()
    for array, error, words in (
        (cuda.zeros(31, np.uint8), ValueError, r"of the array's shape \(31,\), .* of dtype uint8 and shape \(32,\)"),
        (cuda.zeros(2, np.int64), TypeError, r"dtype int64, .*view\(dtype\)"),
    ):
        with pytest.raises(error, match=words):
            array.copy_from(lines)


def test_elements_are_copied_into_bytes(device):
    host = np.arange(5, dtype=np.int16)
    for target in (bytearray(10), (ctypes.c_short * 5)()):
        cuda.memcpy(target, cuda.to_device(host))
        assert bytes(target) == host.tobytes()
    with pytest.raises(ValueError, match="memcpy: argument 'dst' is read-only"):
        cuda.memcpy(bytes(10), cuda.to_device(host))


def test_an_array_is_copied_from_another_of_its_shape_and_dtype(device, rng):
    host = rng.random((4, 6))
    x = cuda.empty((4, 3)).copy_from(cuda.to_device(host)[:, ::2])
    for source, error, words in (
        (cuda.zeros(12), ValueError, "must be of the array's shape"),
        (np.ones(12), ValueError, "must be of the array's shape"),
        (3, ValueError, r"must be of the array's shape .4, 3., not the int 3; fill\(value\)"),
        (cuda.zeros((4, 3), np.float32), TypeError, r"must have dtype float64, .*source\.to_host\(\)\.astype"),
        ([[1] * 3] * 4, TypeError, r"must have dtype float64, .*np\.array\(source, np\.float64\)"),
        (b"\1" * 95, ValueError, "must have 96 bytes, .* not 95"),
        (memoryview(bytes(192))[::2], ValueError, "must be contiguous"),
    ):
        with pytest.raises(error, match=f"argument 'source' {words}"):
            x.copy_from(source)
    np.testing.assert_array_equal(x.to_host(), host[:, ::2])
    with pytest.raises(TypeError, match=r"dtype int32, .*write fill\(7\)"):
        cuda.zeros((), np.int32).copy_from(7)
    with pytest.raises(TypeError, match="argument 'out' must have dtype float64, .*dtype=np.float64"):
        x.to_host(np.zeros((4, 3), np.float32))
