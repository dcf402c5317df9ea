"""Copies in one piece and of windows: when their calls return, and what is refused or changed too early."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import timing
from library_tour.course import copies, copies_2d
from library_tour.runner import run_stop
from library_tour.stop import Row
from tests.tour.outcomes import outcome

RETURNED = "When the call returns, the copy is"


@pytest.fixture
def tables(result):
    return result.tables


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


def test_copies_with_the_host_wait_and_those_on_the_device_or_of_pinned_memory_in_a_stream_only_queue(tables):
    rows = by_name(tables[RETURNED])
    assert rows["device to device"].check.holds
    assert {row.values["memcpy"] for name, row in rows.items() if name != "device to device"} == {"done"}
    assert rows["pinned to device"].values["in a stream"] == "queued"
    assert rows["device to pinned"].values["in a stream"] == "queued"


def test_kinds_are_those_that_the_driver_knows_from_the_addresses(tables):
    kinds = {row.name: row.values["kind"] for row in tables[RETURNED]}
    assert kinds["pageable to device"] == kinds["pinned to device"] == "HostToDevice"
    assert kinds["device to pinned"] == "DeviceToHost"
    assert kinds["host to host"] == "HostToHost"
    assert kinds["device to device"] == "DeviceToDevice"


def test_a_source_that_changes_too_early_and_a_wrong_direction_are_found(tables):
    found = by_name(tables["Sources and directions"])
    assert found["pinned, changed at once"].note == "4,096 of 4,096 bytes are those written after the call."
    assert "CUDA_ERROR_INVALID_VALUE" in found["the wrong direction"].note


def test_the_courses_figures_stand_beside_what_is_measured_here():
    rows = [Row("pinned to device", {"GB/s": 55.4}), Row("device to device")]
    assert copies.beside_course("link, PCIe 5", rows).values == {"course GB/s": 32, "GB/s": 55.4}
    assert copies.beside_course("device, RTX 5090", rows).values == {"course GB/s": 1790}


def test_a_copy_without_a_stream_that_returns_too_early_is_noticed(device, monkeypatch):
    monkeypatch.setattr(copies, "on_return", lambda call: "queued")
    row = copies.returned("to device", cuda.empty(5, np.uint8), np.zeros(5, np.uint8))
    assert not row.check.holds


def test_a_window_is_copied_both_ways_by_two_calls_and_queued_in_a_stream():
    copied = outcome("copies_2d").result
    assert by_name(copied.rows)["both ways at once"].values["calls"] == 2
    assert by_name(copied.tables[RETURNED])["host to device"].values == {"memcpy2d": "done", "in a stream": "queued"}
    assert copies_2d.returned("device to host", lambda stream=None: None).values["memcpy2d"] == "done"
