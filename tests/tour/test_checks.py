from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour.checks import compare, poison, refusal


def test_equal_arrays_hold():
    assert compare("fact", np.arange(5), np.arange(5)).holds


def test_the_first_difference_is_named():
    got = np.arange(6).reshape(2, 3)
    expected = got.copy()
    expected[1, 1:] = 9
    check = compare("fact", got, expected)
    assert not check.holds
    assert check.detail == "2 of 6 elements differ; the first, [1, 1], is 4, not 9"


def test_a_nan_is_wrong_with_and_without_a_tolerance():
    got, expected = np.array([np.nan]), np.array([1.0])
    assert not compare("fact", got, expected).holds
    assert not compare("fact", got, expected, 0.5).holds


def test_the_tolerance_is_absolute_and_inclusive():
    assert compare("fact", np.array([1.5]), np.array([1.0]), 0.5).holds
    assert not compare("fact", np.array([1.625]), np.array([1.0]), 0.5).holds


@pytest.mark.parametrize("got", [np.zeros(3, np.float32), np.zeros(4)])
def test_another_shape_or_dtype_is_wrong(got):
    check = compare("fact", got, np.zeros(3))
    assert not check.holds
    assert "instead of float64(3,)" in check.detail


def test_poisoned_floats_are_nan():
    array = cuda.zeros(5, np.float32)
    poison(array)
    assert np.isnan(array.to_host()).all()


def test_poisoned_integers_are_minus_one_on_device_and_host():
    array, host = cuda.zeros((3, 4), np.int32), np.zeros(4, np.int16)
    poison(array)
    poison(host)
    assert (array.to_host() == -1).all()
    assert (host == -1).all()


def test_a_refusal_holds_with_its_message():
    check = refusal("no text", ValueError, lambda: int("x"))
    assert check.holds
    assert "invalid literal" in check.detail


def test_what_is_not_refused_does_not_hold():
    assert not refusal("no number", ValueError, lambda: int("1")).holds


def test_another_error_is_not_swallowed():
    with pytest.raises(TypeError):
        refusal("no list", ValueError, lambda: int([]))
