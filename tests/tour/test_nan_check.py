from __future__ import annotations

import shutil

import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import nan_check
from library_tour.course.nan_check import NANS, WAYS, load_all, ordinary_numbers, reference
from library_tour.runner import run_stop
from tests.tour.outcomes import counted


def test_the_first_nan_is_the_one_of_the_lowest_place_and_without_one_the_place_is_the_length():
    assert reference(np.array([1.0, np.inf, np.nan, np.nan])) == 2
    assert reference(np.array([1.0, np.inf])) == 2


@pytest.mark.parametrize("dtype", NANS)
def test_ordinary_numbers_have_infinities_and_no_nan_and_each_pattern_is_one(dtype, rng):
    numbers = ordinary_numbers(rng, 1000, dtype)
    assert numbers.dtype == dtype
    assert not np.isnan(numbers).any()
    assert np.isinf(numbers).any()
    assert np.isnan(NANS[dtype].view(dtype)).all()


def test_every_way_is_right(rows):
    assert {name for name, row in rows.items() if row.check.holds and row.check.word == "right"} == set(WAYS)


def test_a_mask_of_twelve_digits_misses_the_usual_nan(rows):
    assert rows["doubles: mask of 12 f"].check.word == "caught"
    assert "0x7ff8000000000000" in rows["doubles: mask of 12 f"].note


def test_a_mask_of_twelve_digits_finds_a_nan_with_low_bits(device):
    first = cuda.full(1, 1, np.uint32)
    load_all()[nan_check.TOO_SHORT][1, 32](cuda.to_device(NANS[np.float64][1:2].view(np.float64)), first, 1)
    assert first.to_host()[0] == 0


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no host compiler")
def test_the_hosts_fast_math_removes_isnan_and_not_the_bit_test(rows):
    assert rows["host: isnan, -ffast-math"].check.word == "caught"


def test_without_a_host_compiler_the_stop_says_what_it_needs(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    row = nan_check.host_fast_math()
    assert row.check is None
    assert "no host compiler named c++" in row.note


def test_a_way_that_finds_no_nan_is_noticed(device, nothing_apart, monkeypatch):
    monkeypatch.setitem(WAYS, "doubles: mask of 13 f", nan_check.Way(nan_check.TOO_SHORT, np.float64))
    outcome = run_stop("nan_check", device, 1000)
    assert [check.fact for check in outcome.failed_checks] == ["doubles: mask of 13 f equals NumPy's result"]


@counted
def test_loads_of_sixteen_bytes_are_a_quarter_as_many(rows):
    assert rows["fixed grid, by four"].values["loads"] < 0.3 * rows["bits"].values["loads"]
