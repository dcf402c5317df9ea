"""Copies in one piece and of windows: when their calls return, and what is refused or changed too early."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import checks, timing
from library_tour.course import copies, copies_2d
from library_tour.runner import run_stop
from library_tour.stop import Row

RETURNED = "When the call returns, the copy is"


@pytest.fixture(scope="module")
def tables():
    # So large that a GPU does not finish before the host asks.
    return run_stop("copies", cuda.Device(0), 2**26 - 3).result.tables


def without_times(name: str, size: int, monkeypatch) -> dict[str, Row]:
    """Return the rows of a stop that only checks."""
    monkeypatch.setattr(timing, "available", lambda: False)
    return by_name(run_stop(name, cuda.Device(0), size).result.rows)


def test_a_copy_between_memories_reads_one_writes_the_other_and_takes_the_link(monkeypatch):
    rows = without_times("copies", 1001, monkeypatch)
    assert rows["pinned to device"].work == {
        "bytes over the link": 1001,
        "bytes in host memory": 1001,
        "bytes in device memory": 1001,
    }
    within = {"bytes over the link": 0, "bytes in host memory": 0, "bytes in device memory": 2002}
    assert rows["device to device"].work == within


def test_one_call_for_a_window_moves_what_a_call_a_row_does(monkeypatch):
    rows = without_times("copies_2d", 64, monkeypatch)
    one, many = rows["host to device"].work, rows["host to device, row by row"].work
    assert (one["calls"], many["calls"]) == (1, 47)
    assert one["bytes over the link"] == many["bytes over the link"] == 47 * many["bytes of a call"]


def test_a_fill_of_bytes_has_four_times_the_elements_of_a_fill_of_words(monkeypatch):
    rows = without_times("memset", 101, monkeypatch)
    assert rows["8 bits"].work["elements filled"] == 4 * rows["32 bits"].work["elements filled"] == 404
    assert rows["8 bits"].work["bytes written"] == rows["32 bits"].work["bytes written"]


def by_name(rows) -> dict[str, Row]:
    return {row.name: row for row in rows}


def test_copies_with_the_host_wait_and_those_on_the_device_only_queue(tables):
    rows = by_name(tables[RETURNED])
    assert rows["device to device"].check.holds
    assert {row.values["memcpy"] for name, row in rows.items() if name != "device to device"} == {"done"}


def test_a_copy_of_pinned_memory_in_a_stream_is_queued(tables):
    rows = by_name(tables[RETURNED])
    assert rows["pinned to device"].values["in a stream"] == "queued"
    assert rows["device to pinned"].values["in a stream"] == "queued"


def test_kinds_are_those_that_the_driver_knows_from_the_addresses(tables):
    kinds = {row.name: row.values["kind"] for row in tables[RETURNED]}
    assert kinds["pageable to device"] == kinds["pinned to device"] == "HostToDevice"
    assert kinds["device to pinned"] == "DeviceToHost"
    assert kinds["host to host"] == "HostToHost"
    assert kinds["device to device"] == "DeviceToDevice"


def test_a_pinned_source_that_changes_too_early_is_found(tables):
    note = by_name(tables["Sources and directions"])["pinned, changed at once"].note
    assert note == "4,096 of 4,096 bytes are those written after the call."


def test_a_wrong_direction_is_the_drivers_invalid_value(tables):
    assert "CUDA_ERROR_INVALID_VALUE" in by_name(tables["Sources and directions"])["the wrong direction"].note


def test_the_courses_figures_stand_beside_what_is_measured_here():
    rows = [Row("pinned to device", {"GB/s": 55.4}), Row("device to device")]
    assert copies.beside_course("link, PCIe 5", rows).values == {"course GB/s": 32, "GB/s": 55.4}
    assert copies.beside_course("device, RTX 5090", rows).values == {"course GB/s": 1790}


def test_a_copy_without_a_stream_that_returns_too_early_is_noticed(device, monkeypatch):
    monkeypatch.setattr(copies, "on_return", lambda call: "queued")
    row = copies.returned("to device", cuda.empty(5, np.uint8), np.zeros(5, np.uint8))
    assert not row.check.holds


def test_work_is_queued_or_done_on_return(device):
    source, target = cuda.pinned_empty(2**26, np.uint8), cuda.empty(2**26, np.uint8)
    assert checks.on_return(lambda: cuda.memcpy(target, source, stream=cuda.legacy_default)) == "queued"
    assert cuda.legacy_default.done
    assert checks.on_return(lambda: cuda.memcpy(target, source)) == "done"


def test_a_window_is_copied_both_ways_by_two_calls():
    result = run_stop("copies_2d", cuda.Device(0), 50).result
    assert by_name(result.rows)["both ways at once"].values["calls"] == 2
    assert all(check.holds for check in result.all_checks)


def test_a_window_in_a_stream_is_queued(device):
    rows = by_name(run_stop("copies_2d", device, 4096).result.tables[RETURNED])
    assert rows["host to device"].values == {"memcpy2d": "done", "in a stream": "queued"}
    assert copies_2d.returned("device to host", lambda stream=None: None).values["memcpy2d"] == "done"
