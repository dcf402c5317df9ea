"""What public calls are given: one sentence says what is wrong with an argument, and nothing has changed then."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import arguments


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text for this")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not None"),
        ("x", "not the str 'x'"),
        (5, "not the int 5"),
        (np.float32(1.5), r"not the float32 np.float32\(1.5\)"),
        (np.zeros((2, 3), np.int8), r"not a NumPy array of int8 and shape \(2, 3\)"),
        (cuda.Stream, "not the class Stream"),
        (Unprintable(), "not an object of type Unprintable"),
        ("y" * 1000, "not the str 'y.{,60}y'$"),
    ],
)
def test_the_sentence_says_what_came(value, words):
    error = arguments.wrong_type("call", "name", "a thing", value)
    assert isinstance(error, TypeError)
    with pytest.raises(TypeError, match=f"^call: argument 'name' must be a thing, {words}"):
        raise error


def test_a_closed_thing_is_called_so(device):
    array = cuda.zeros(3)
    array.close()
    with pytest.raises(ValueError, match="^memset: argument 'dst' must be open, not a closed DeviceArray$"):
        cuda.memset(array, 0)


def test_an_int_of_more_digits_than_are_written_is_huge():
    with pytest.raises(ValueError, match="from 0 to 9, not a huge int"):
        arguments.integer("call", "n", 10**5000, 0, 9)


@pytest.mark.parametrize("value", [True, np.True_, 1.0, "1", None, np.arange(3)])
def test_an_int_is_nothing_else(value):
    with pytest.raises(TypeError, match="call: argument 'n' must be an int, not"):
        arguments.integer("call", "n", value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400], ids=["nan", "inf", "huge"])
def test_a_number_is_finite(value):
    with pytest.raises(ValueError, match="argument 'x'"):
        arguments.number("call", "x", value)


@pytest.mark.parametrize("value", ["", "3", {}, b"ab", set(), range(3), np.arange(2), 1.5, None, True])
def test_a_shape_is_an_int_or_a_tuple(value):
    with pytest.raises(TypeError, match="argument 'shape"):
        cuda.empty(value)


@pytest.mark.parametrize("value", [(-1,), -1, (2**64,), (10**400,), (1,) * 65])
def test_a_shape_has_possible_sizes(value):
    with pytest.raises(ValueError, match="argument 'shape"):
        cuda.empty(value)


@pytest.mark.parametrize("value", [None, "x", object, "O", "S0", ">f4", "(2,)f4", {}, [], 5, ("f4", (10**400,))])
def test_a_dtype_is_one_that_a_device_has(value):
    with pytest.raises(TypeError, match="argument 'dtype'"):
        cuda.empty(3, value)


@pytest.mark.parametrize("value", [None, 1 + 2j, "1", [1], object(), (1, 2), np.datetime64("2020-01-01")])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_a_fill_takes_one_number(device, value, dtype):
    array = cuda.full(3, 1, dtype)
    with pytest.raises((TypeError, ValueError), match="memset: argument 'value'"):
        cuda.memset(array, value)
    np.testing.assert_array_equal(array.to_host(), np.ones(3, dtype))
    with pytest.raises((TypeError, ValueError), match="full: argument 'value'"):
        cuda.full(3, value, dtype)


def test_a_number_fills_no_structure(device):
    with pytest.raises(TypeError, match="argument 'value' must be a value of"):
        cuda.full(3, 5, np.dtype([("a", "i4"), ("b", "f4")]))
