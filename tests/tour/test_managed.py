from __future__ import annotations

from dataclasses import replace

import numpy as np

import cudart_py as cuda
from library_tour.course import managed
from library_tour.runner import run_stop
from tests.tour.outcomes import counted


@counted
def test_the_kernel_loads_as_much_wherever_the_pages_are(rows):
    short = {row.values["loads"] for row in rows.values() if row.values.get("steps") == managed.SHORT}
    assert len(short) == 1


def test_one_device_needs_a_second_one_to_share_an_array(monkeypatch, device):
    monkeypatch.setattr(cuda, "devices", lambda: (device,))
    x = managed.managed_copy(np.arange(9, dtype=np.uint32))
    [row] = managed.on_two_devices(device, x, managed.reference(x, managed.SHORT))
    assert "needs a second device" in row.note


def test_without_page_faults_the_stop_says_what_it_needs_and_passes_what_it_can(nothing_apart, monkeypatch, device):
    without = replace(device.properties, concurrent_managed_access=False)
    monkeypatch.setattr(cuda.Device, "properties", without)
    outcome = run_stop("managed", device, 333)
    assert outcome.state == "passed"
    assert "concurrent_managed_access" in outcome.result.notes[0]
    assert [row.name for row in outcome.result.rows if "steps" in row.values] == [
        "copied from pinned memory",
        "managed, moved by the launch",
    ]


def test_advice_is_asked_back_and_what_the_host_reads_or_writes_early_is_found(rows):
    assert rows["advice, asked back"].note == "preferred location: host; accessed by: device 0."
    assert "1,000 of 1,000 numbers are still" in rows["host reads too early"].note
    assert "1,000 of 1,000 results are those of what the host" in rows["host writes too early"].note


def test_the_timeline_shows_each_piece_in_both_streams(device):
    x = managed.managed_copy(np.arange(999, dtype=np.uint32))
    timeline = managed.Pieces(x, cuda.empty_like(x)).timeline(lambda: cuda.prefetch(x, "host"))
    assert list(timeline.lanes) == ["prefetch", "long kernel"]
    assert [len(spans) for spans in timeline.lanes.values()] == [managed.PIECES] * 2
    arrivals = [end for _, end in timeline.lanes["prefetch"]]
    assert all(start >= arrived for (start, _), arrived in zip(timeline.lanes["long kernel"], arrivals, strict=True))
