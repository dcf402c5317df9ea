import numpy as np
import pytest

import cudart_py as cuda
from library_tour.checks import compare, poison, refusal
from library_tour.lesson import at_most


@pytest.mark.parametrize(
    ("got", "expected", "tolerance", "detail"),
    [
        ([[0, 1], [4, 5]], [[0, 1], [4, 5]], 0.0, ""),
        ([[0, 1], [4, 5]], [[0, 1], [9, 9]], 0.0, "2 of 4 elements differ; the first, [1, 0], is 4, not 9"),
        ([[0, 1], [4, 5]], [[0, 1], [9, 5]], 0.0, "1 of 4 elements differs: [1, 0] is 4, not 9"),
        ([4], [9], 0.0, "The only element differs: it is 4, not 9"),
        ([np.nan], [1.0], 0.0, "differ"),
        ([np.nan], [1.0], 0.5, "differ"),
        ([1.5], [1.0], 0.5, ""),  # the tolerance is absolute and inclusive
        ([1.625], [1.0], 0.5, "differ"),
        ([0.0] * 4, [0.0] * 3, 0.0, "instead of float64(3,)"),
        ([0, 0, 0], [0.0] * 3, 0.0, "instead of float64(3,)"),
    ],
)
def test_arrays_hold_within_the_tolerance_and_the_first_difference_is_named(got, expected, tolerance, detail):
    check = compare("fact", np.array(got), np.array(expected), tolerance)
    assert check.holds == (not detail)
    assert detail in check.detail


@pytest.mark.parametrize(
    ("actual", "text"),
    [
        (32, "32"),
        (12_345, "12,345"),
        (4.9682, "4.97"),
        (0, "0"),
        (0.37, "0.37"),
        (1.234e-8, "1.23e-08"),
        (5e19, "5e+19"),
    ],
)
def test_a_value_above_its_limit_is_told(actual, text):
    check = at_most("fact", actual, -1)
    assert not check.holds
    assert check.detail == f"The actual value is {text}."


def test_poisoned_floats_are_nan_and_integers_minus_one_on_device_and_host():
    floats, integers, host = cuda.zeros(5, np.float32), cuda.zeros((3, 4), np.int32), np.zeros(4, np.int16)
    for array in (floats, integers, host):
        poison(array)
    assert np.isnan(floats.to_host()).all()
    assert (integers.to_host() == -1).all()
    assert (host == -1).all()


def test_a_refusal_holds_with_its_message():
    check = refusal("no text", ValueError, lambda: int("x"))
    assert check.holds
    assert "invalid literal" in check.detail
    assert not refusal("no number", ValueError, lambda: int("1")).holds
    with pytest.raises(TypeError):
        refusal("no list", ValueError, lambda: int([]))
