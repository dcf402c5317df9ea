"""Fills of elements of any size, in padded and strided arrays, and values that do not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cudart_py as cuda

PAIR = np.dtype([("a", "<i4"), ("b", "u1")])


VALUES = {"u1": 255, "i1": -3, "i2": -12345, "f2": 1.5, "i4": 1 << 30, "f4": -2.25, "?": True, "f8": 0.0, "i8": -1}
TOO_LARGE = [("u1", 256), ("u1", -1), ("i2", 40000), ("i4", 1.5), ("f2", 1e6), ("f4", 1e39), ("f4", 1j), ("i4", 2**40)]


@pytest.mark.parametrize(("dtype", "value"), VALUES.items())
def test_every_element_is_the_value(device, dtype, value):
    array = cuda.empty(1013, dtype)
    cuda.memset(array, value)
    for filled in (array, cuda.full(1013, value, dtype)):
        np.testing.assert_array_equal(filled.to_host(), np.full(1013, value, dtype))


@pytest.mark.parametrize(("dtype", "value"), TOO_LARGE)
def test_a_value_that_does_not_fit_is_an_error_and_changes_nothing(device, dtype, value):
    array = cuda.zeros(5, dtype)
    for fill in (cuda.memset, cuda.DeviceArray.fill):
        with pytest.raises(ValueError, match="argument 'value' must be a value that fits"):
            fill(array, value)
    assert not array.to_host().any()


def test_what_cannot_be_filled_is_named(device):
    closed = cuda.zeros(4)
    closed.close()
    with pytest.raises(ValueError, match="^this DeviceArray is closed"):
        closed.fill(1)
    with pytest.raises(ValueError, match="DeviceArray.fill"):  # which fills 64-bit elements
        cuda.memset(cuda.empty(3, np.float64), 1.0)


@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 12)),
    st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(1, 3))] * 3),
    st.sampled_from(["u1", "u2", "u4", "u8", "f4", "f8", "c16", PAIR]),
    st.booleans(),
)
def test_any_slice_fills_as_numpys(shape, slices, dtype, by_method):
    dtype, key = np.dtype(dtype), tuple(slice(*s) for s in slices)
    # memset repeats a pattern of at most 32 bits.
    content = bytes(range(1, 17)) if by_method or dtype.itemsize <= 4 else b"\x5a" * 16
    value = np.frombuffer(content[: dtype.itemsize], dtype)[0]
    expected = np.zeros(shape, dtype)
    expected[key] = value
    if dtype == PAIR and not by_method:
        return
    with cuda.Device(0):
        array = cuda.zeros(shape, dtype)
        view = array[key]
        if by_method:
            assert view.fill(value) is view
        else:
            cuda.memset(view, value)
        np.testing.assert_array_equal(array.to_host(), expected)
