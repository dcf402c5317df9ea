"""Fills by 8, 16 and 32 bits, padded and strided, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cudart_py as cuda


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.uint8, 255),
        (np.int8, -3),
        (np.int16, -12345),
        (np.float16, 1.5),
        (np.int32, 1 << 30),
        (np.float32, -2.25),
        (np.bool_, True),
        (np.float64, 0.0),
        (np.int64, -1),
        (np.complex64, 0),
    ],
)
def test_every_element_is_the_value(device, dtype, value):
    array = cuda.empty(1013, dtype)
    cuda.memset(array, value)
    np.testing.assert_array_equal(array.to_host(), np.full(1013, value, dtype))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.uint8, 256),
        (np.uint8, -1),
        (np.int16, 40000),
        (np.int32, 1.5),
        (np.float16, 1e6),
        (np.float32, 1e39),
        (np.int32, 2**40),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(device, dtype, value):
    array = cuda.zeros(5, dtype)
    with pytest.raises(ValueError, match="argument 'value' must be a value that fits"):
        cuda.memset(array, value)
    assert not array.to_host().any()


def test_a_64_bit_pattern_points_to_fill(device):
    with pytest.raises(ValueError, match="DeviceArray.fill"):
        cuda.memset(cuda.empty(3, np.float64), 1.0)


def test_wrong_types_are_named(device):
    with pytest.raises(TypeError, match="argument 'dst' must be a DeviceArray, not a NumPy array"):
        cuda.memset(np.zeros(3), 0)
    for value in ("x", None, [1, 2]):
        with pytest.raises((TypeError, ValueError)):
            cuda.memset(cuda.zeros(3, np.int32), value)


def test_a_pitched_array_keeps_its_padding(device):
    array = cuda.empty_pitched((5, 7), np.uint8)
    whole = cuda.DeviceArray.borrow(array.pointer, (5, array.pitch), np.uint8, owner=array)
    cuda.memset(whole, 9)
    cuda.memset(array, 1)
    result = whole.to_host()
    assert (result[:, :7] == 1).all()
    assert (result[:, 7:] == 9).all()


@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 12)),
    st.tuples(*[st.tuples(st.integers(0, 5), st.integers(0, 12), st.integers(1, 3))] * 3),
    st.sampled_from([np.uint8, np.uint16, np.uint32, np.uint64]),
)
def test_any_slice_fills_as_numpys(shape, slices, dtype):
    key = tuple(slice(*s) for s in slices)
    expected = np.full(shape, 7, dtype)
    value = np.array(0x5A5A5A5A5A5A5A5A, np.uint64).astype(dtype)[()]
    expected[key] = value
    with cuda.Device(0):
        array = cuda.full(shape, 7, dtype)
        cuda.memset(array[key], value)
        np.testing.assert_array_equal(array.to_host(), expected)
