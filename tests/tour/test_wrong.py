from __future__ import annotations

import time

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import wrong
from library_tour.course import heat, histogram
from library_tour.wrong import all_shown_wrong, shown_wrong


def wrong_result() -> str:
    return "two is three."


def nothing_wrong() -> str:
    return ""


def faulty() -> str:
    array = cuda.zeros(4, np.int32)
    kernel = cuda.compile('extern "C" __global__ void beyond(int* x) { x[4] = 1; }')["beyond"]
    kernel[1, 1](array)
    array.to_host()
    return ""


def broken() -> str:
    raise RuntimeError("the wheels came off")


def test_a_wrong_result_is_caught_and_told():
    row = shown_wrong("idea", wrong_result)
    assert (row.check.holds, row.check.word, row.note) == (True, "caught", "two is three.")


def test_a_fault_is_caught_with_the_drivers_report_and_stays_in_its_process():
    row = shown_wrong("idea", faulty)
    assert row.check.holds
    assert "beyond" in row.note
    assert "after the end of the 16-byte allocation" in row.note
    assert cuda.zeros(1, np.int32).to_host()[0] == 0


def test_places_in_the_code_are_named_from_the_packages_folder():
    note = shown_wrong("idea", heat.without_bounds).note
    assert " at kernels/heat.cu:" in note or " at library_tour/kernels/heat.cu:" in note


def test_what_is_not_wrong_fails():
    assert not shown_wrong("idea", nothing_wrong).check.holds


def test_a_program_that_breaks_otherwise_fails_with_its_error():
    row = shown_wrong("idea", broken)
    assert not row.check.holds
    assert "the wheels came off" in row.check.detail


@pytest.mark.parametrize("mode", ["off", "error"])
def test_the_readers_own_choice_of_checks_changes_nothing(monkeypatch, mode):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_CHECKS", mode)
    row = shown_wrong("no atomics", histogram.race)
    assert row.check.holds
    assert "race" in row.note


def devices() -> str:
    return f"{len(cuda.devices())} devices."


@pytest.mark.parametrize("count", [1, 2])
def test_it_runs_on_as_many_devices_as_it_asks_for(monkeypatch, count):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_DEVICES", "3")
    assert shown_wrong("idea", devices, devices=count).note == f"{count} devices."


def sleep() -> str:
    time.sleep(30)
    return ""


def test_what_does_not_end_is_stopped_and_said(monkeypatch):
    monkeypatch.setattr(wrong, "SECONDS", 2)
    row = shown_wrong("a loop", sleep)
    assert not row.check.holds
    assert "stopped after 2 seconds" in row.check.detail


def test_several_programs_give_their_rows_in_the_given_order():
    rows = all_shown_wrong({"first": wrong_result, "second": nothing_wrong})
    assert [(row.name, row.check.holds) for row in rows] == [("first", True), ("second", False)]
