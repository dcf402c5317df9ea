"""Pinned and mapped memory: what crosses the link, and what is refused or read too early."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import counters, plots
from library_tour.course import pinned_and_mapped
from library_tour.course.pinned_and_mapped import OFTEN, Kinds, Reading
from library_tour.runner import run_stop
from library_tour.stop import Result

SIZE = 2**12 + 5


@pytest.fixture(scope="module")
def result():
    return run_stop("pinned_and_mapped", cuda.Device(0), SIZE).result


@pytest.fixture
def kinds(device, rng):
    return Kinds.of(rng.integers(0, 2**32, SIZE, np.uint32))


def by_name(rows):
    return {row.name: row for row in rows}


def test_the_sum_is_taken_modulo_two_to_the_32():
    assert pinned_and_mapped.total(np.array([2**31, 2**31 + 1], np.uint32), 3).tolist() == [3]


def test_mapped_numbers_cross_the_link_at_each_read_and_copied_ones_once(result):
    often = by_name(result.tables[f"Read {OFTEN} times"])
    megabytes = 4e-6 * SIZE
    assert often["mapped, in place"].values["link MB"] == pytest.approx(OFTEN * megabytes)
    assert often["pinned, copied"].values["link MB"] == pytest.approx(megabytes)


@pytest.mark.skipif(not counters.available(), reason="this driver does not count")
def test_the_counted_sectors_are_the_bytes_that_cross_the_link_to_mapped_memory(result):
    for rows in (result.rows, result.tables[f"Read {OFTEN} times"]):
        values = by_name(rows)["mapped, in place"].values
        counted = 32e-6 * values["loads"] * values["sectors/load"]
        assert counted == pytest.approx(values["link MB"], rel=0.01)


@pytest.mark.skipif(not counters.available(), reason="this driver does not count")
def test_wide_loads_are_a_quarter_as_many(result):
    rows = by_name(result.rows)
    wide, narrow = (rows[name].values["loads"] for name in ("mapped, 16 bytes a load", "mapped, in place"))
    assert wide == pytest.approx(narrow / 4, rel=0.1)


def test_the_host_that_does_not_wait_is_found_to_read_too_early(result):
    assert by_name(result.rows)["mapped, read too early"].note == "4,096 of 4,096 numbers are not there yet."


def test_pageable_memory_is_refused_with_the_remedy(result):
    assert "copy it with cudart_py.to_device" in by_name(result.rows)["pageable, in place"].note


def test_a_sum_without_its_tail_is_noticed(device, changed_kernels):
    changed_kernels("pinned_and_mapped", {"if (first() < n % 4)": "if (false)"})
    failed = {check.fact.split(" equals")[0] for check in run_stop("pinned_and_mapped", device, SIZE).failed_checks}
    assert failed == {"mapped, 16 bytes a load"}


def test_the_curve_has_every_number_of_reads_for_each_memory(device, kinds, tmp_path):
    curve = Reading(device, kinds.pageable).curve(kinds)
    assert len(curve.lines) == 3
    assert all([reads for reads, _ in points] == list(pinned_and_mapped.CURVE) for points in curve.lines.values())
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra plot)")
    assert plots.draw("pinned_and_mapped", pinned_and_mapped.TITLE, Result([], pictures=[curve]), tmp_path)
