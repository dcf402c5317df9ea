from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour.checks import compare, on_return, poison, refusal


def test_equal_arrays_hold():
    assert compare("fact", np.arange(5), np.arange(5)).holds


def test_the_first_difference_is_named():
    got = np.arange(6).reshape(2, 3)
    expected = got.copy()
    expected[1, 1:] = 9
    check = compare("fact", got, expected)
    assert not check.holds
    assert check.detail == "2 of 6 elements differ; the first, [1, 1], is 4, not 9"


@pytest.mark.parametrize(
    ("got", "tolerance", "holds"),
    [(np.nan, 0.0, False), (np.nan, 0.5, False), (1.5, 0.5, True), (1.625, 0.5, False)],
)
def test_the_tolerance_is_absolute_and_inclusive_and_a_nan_is_wrong(got, tolerance, holds):
    assert compare("fact", np.array([got]), np.array([1.0]), tolerance).holds == holds


@pytest.mark.parametrize("got", [np.zeros(3, np.float32), np.zeros(4)])
def test_another_shape_or_dtype_is_wrong(got):
    check = compare("fact", got, np.zeros(3))
    assert not check.holds
    assert "instead of float64(3,)" in check.detail


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


def test_work_is_queued_or_done_on_return(device):
    source, target = cuda.pinned_empty(2**24, np.uint8), cuda.empty(2**24, np.uint8)
    assert on_return(lambda: cuda.memcpy(target, source, stream=cuda.legacy_default)) == "queued"
    assert cuda.legacy_default.done
    assert on_return(lambda: cuda.memcpy(target, source)) == "done"
