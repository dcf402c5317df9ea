from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import coalescing
from library_tour.runner import run_stop
from tests.tour.outcomes import counted

SECTORS = {
    "neighbours": 4,
    "neighbours in any order": 4,
    "2 lanes read a number": 2,
    "32 lanes read a number": 1,
    "8 a thread, contiguous": 32,
    "8 a thread, block-strided": 4,
    "8 a thread, 16 bytes a load": 16,
    "a thread for each column": 4,
    "a thread for each row": 32,
}


@counted
def test_a_load_touches_so_many_sectors(rows):
    found = {name: rows[name].values["sectors/load"] for name in SECTORS}
    assert found == pytest.approx(SECTORS, rel=0.03)  # the last warp has fewer lanes
    assert rows["a warp for each row"].values["sectors/load"] <= 4


@counted
def test_the_curve_rises_to_a_sector_for_each_lane(result):
    [curve] = result.pictures
    contiguous = [sectors for _, sectors in curve.lines["contiguous"]]
    assert contiguous == pytest.approx([4, 8, 16, 32, 32, 32], rel=0.1)
    assert max(sectors for _, sectors in curve.lines["block-strided"]) <= 4


def test_any_order_keeps_to_the_segment():
    x = np.arange(96, dtype=np.uint32)
    taken = coalescing.copied(x, 64)["copy_any_order"]
    assert sorted(taken.tolist()) == list(range(64))
    assert (taken // 32 == np.arange(64) // 32).all()
    assert (taken != np.arange(64)).any()


def test_sums_leave_out_what_pads_the_rows():
    x = np.arange(3 * 32, dtype=np.uint32)
    assert coalescing.sums(x, 3, 2, "columns").tolist() == [96, 99]
    assert coalescing.sums(x, 3, 2, "rows").tolist() == [1, 65, 129]


def test_a_kernel_that_copies_too_few_numbers_is_noticed(monkeypatch):
    monkeypatch.setitem(coalescing.KINDS, "contiguous", "copy_contiguous<4>")
    outcome = run_stop("coalescing", cuda.Device(0), 5000)
    assert [check.fact for check in outcome.failed_checks] == ["8 a thread, contiguous equals NumPy's result"]
