"""Assignment to parts of device arrays, fields of structures, and orders of axes, compared with NumPy's."""

import itertools

import numpy as np
import pytest

import cudart_py as cuda

ASSIGNMENTS = [
    (np.s_[2:5], ()),
    (np.s_[2:5], (3, 5, 4)),
    (np.s_[1], (4,)),
    (np.s_[::2], (5, 1)),
    (np.s_[:, 1:4], (7, 1, 1)),
    (np.s_[::-2, ::-1], (1, 1, 5, 4)),
    (np.s_[..., 2], (7, 5)),
    (np.s_[..., None, 1], (5, 1)),
    (np.s_[3, 2, 1], ()),
    (np.s_[:, :, ::-1], (5, 4)),
    (np.s_[2:2], (5, 4)),
    (np.s_[...], (1, 5, 1)),
]


@pytest.mark.parametrize(("key", "shape"), ASSIGNMENTS, ids=str)
@pytest.mark.parametrize("dtype", [np.int16, np.float64])
def test_an_assignment_sets_the_elements_that_numpy_sets(device, rng, key, shape, dtype):
    host = rng.integers(-99, 99, (7, 5, 4)).astype(dtype)
    values = rng.integers(-99, 99, shape).astype(dtype)
    from_host, from_device = cuda.to_device(host), cuda.to_device(host)
    host[key] = values
    from_host[key] = values
    np.testing.assert_array_equal(from_host.to_host(), host)
    from_device[key] = cuda.to_device(values)
    np.testing.assert_array_equal(from_device.to_host(), host)


@pytest.mark.parametrize(
    ("to", "source"),
    [(np.s_[1:], np.s_[:-1]), (np.s_[:-2], np.s_[2:]), (np.s_[::-1], np.s_[:]), (np.s_[:], np.s_[3:4]), (0, 0)],
    ids=str,
)
def test_an_array_is_assigned_to_an_overlapping_part_of_itself_as_if_it_was_copied_first(device, rng, to, source):
    host = rng.random((6, 7))
    array = cuda.to_device(host)
    array[to] = array[source]
    host[to] = host[source].copy()
    np.testing.assert_array_equal(array.to_host(), host)


def test_host_values_are_converted_and_those_that_do_not_fit_change_nothing(device):
    array = cuda.zeros((2, 3), np.uint8)
    array[0] = [1, 2.0, True]
    array[1, 1:] = np.array([3, 255], np.int64)
    assert array.to_host().tolist() == [[1, 2, 1], [0, 3, 255]]
    for value in ([1, 2, 256], [1, 2, 0.5], -1, [1j, 1, 1]):
        with pytest.raises(ValueError, match=r"^DeviceArray.__setitem__: argument 'value' must be .* fits? uint8"):
            array[0] = value
    with pytest.raises(ValueError, match=r"shape that NumPy can broadcast to \(3,\), not the shape \(2,\)"):
        array[0] = [1, 2]
    with pytest.raises(ValueError, match=r"broadcast to \(3,\), not the shape \(2, 3\)"):
        array[0] = array
    with pytest.raises(TypeError, match="have dtype uint8, .* copies do not convert"):
        array[0] = cuda.zeros(3)
    for value in ("a", None, object(), [[1], [2, 3]]):
        with pytest.raises(TypeError, match=r"^DeviceArray.__setitem__: argument 'value'"):
            array[0] = value
    assert array.to_host().tolist() == [[1, 2, 1], [0, 3, 255]]
    closed = cuda.zeros(3, np.uint8)
    closed.close()
    with pytest.raises(ValueError, match="argument 'value' must be open"):
        array[0] = closed
    with pytest.raises(ValueError, match="this DeviceArray is closed"):
        closed[0] = 1


RECORD = np.dtype([("a", "i4"), ("v", "f4", (2, 3)), ("inner", [("x", "u1"), ("y", "f8")])], align=True)


@pytest.fixture
def records(rng):
    return random_records(rng, RECORD, 5)


def random_records(rng, dtype, shape):
    result = np.empty(shape, dtype)
    for name in dtype.names or ():
        kind, inner = dtype[name].base, (*np.shape(result), *dtype[name].shape)
        result[name] = random_records(rng, kind, inner)
    return result if dtype.names else rng.integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("path", [("a",), ("v",), ("inner",), ("inner", "y")], ids="/".join)
def test_a_field_is_a_view_of_the_structures(device, records, path):
    array = cuda.to_device(records)
    view, expected = array[::2], records[::2]
    for name in path:
        view, expected = view[name], expected[name]
    assert (view.shape, view.strides, view.dtype) == (expected.shape, expected.strides, expected.dtype)
    np.testing.assert_array_equal(view.to_host(), expected)
    expected[...] = expected[::-1].copy()
    view[...] = expected
    np.testing.assert_array_equal(array.to_host(), records)


def test_structures_are_assigned_from_tuples_and_unknown_fields_are_named(device):
    points = cuda.zeros(3, [("x", "f4"), ("n", "i8")])
    points[0] = (1.5, 2)
    points[1:] = [(0.25, 3), (4, 5)]
    points["n"][::2] = -7
    assert points.to_host().tolist() == [(1.5, -7), (0.25, 3), (4, -7)]
    with pytest.raises(ValueError, match="'index' must be the name of a field: 'x', 'n', not the str 'y'"):
        points["y"]
    with pytest.raises(ValueError, match="'value' must be a tuple of 2 values"):
        points[0] = (1, 2, 3)
    with pytest.raises(TypeError, match="'value' must be a value of dtype"):
        points[0] = 1.5


def test_axes_are_ordered_as_numpy_orders_them(device, rng):
    host = rng.random((2, 3, 4))
    array = cuda.to_device(host)
    for order in itertools.permutations(range(3)):
        np.testing.assert_array_equal(array.transpose(order).to_host(), host.transpose(order))
    for axes in ((), (None,), (1, 0, 2), ([-1, 0, 1],), (-1, -3, -2)):
        view, expected = array.transpose(*axes), host.transpose(*axes)
        assert (view.shape, view.strides) == (expected.shape, expected.strides)
        assert view.base is array
    for axes in ((0,), (0, 0, 1), (0, 1, 3), ((0, 1),)):
        with pytest.raises(ValueError, match=r"transpose: argument 'axes' must be a permutation of the 3 axes"):
            array.transpose(*axes)
    with pytest.raises(TypeError, match=r"argument 'axes\[0\]' must be an int, not the str"):
        array.transpose("a", 1, 2)


def test_libraries_get_new_axes_as_rows_and_no_negative_strides(device):
    row = cuda.to_device(np.arange(6.0))
    assert row[None].strides == (48, 8)
    assert row[:, None].strides == (8, 8)
    assert row[None].is_contiguous
    turned = row.reshape(2, 3)[::-1]
    assert turned.strides == (-24, 8)
    assert not turned.is_contiguous
    with pytest.raises(ValueError, match="takes an array in C order, not a view"):
        cuda.compile('extern "C" __global__ void touch(double* x) {}')["touch"][1, 1](turned)


def test_an_assignment_during_a_capture_becomes_part_of_the_graph(device):
    stream = cuda.Stream()
    array, value = cuda.zeros((3, 4), np.int32, stream=stream), cuda.full(4, 6, np.int32)
    device.synchronize()
    with stream.capture() as graph:
        array[1:] = value
        array[0, ::2] = 5
    executable = graph.instantiate()
    assert not array.to_host().any()
    executable.launch(stream)
    assert array.to_host().tolist() == [[5, 0, 5, 0], [6] * 4, [6] * 4]
