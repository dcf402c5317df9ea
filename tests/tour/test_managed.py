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


def test_without_page_faults_the_stop_names_its_need_and_runs_the_other_rows(nothing_apart, monkeypatch, device):
    without = replace(device.properties, concurrent_managed_access=False)
    monkeypatch.setattr(cuda.Device, "properties", without)
    outcome = run_stop("managed", device, 333)
    assert outcome.state == "passed"
    assert "concurrent_managed_access" in outcome.result.notes[0]
    assert [row.name for row in outcome.result.rows if "steps" in row.values] == [
        "copied from pinned memory",
        "managed, moved by the launch",
    ]


def test_the_driver_reports_the_advice(rows):
    assert rows["advice, queried"].note == "preferred location: host; accessed by: device 0."


def test_the_timeline_shows_each_piece_in_both_streams(device):
    x = managed.managed_copy(np.arange(999, dtype=np.uint32))
    timeline = managed.Pieces(x, cuda.empty_like(x)).timeline(lambda: cuda.prefetch(x, "host"))
    assert list(timeline.lanes) == ["prefetch", "long kernel"]
    assert [len(spans) for spans in timeline.lanes.values()] == [managed.PIECES] * 2
    arrivals = [end for _, end in timeline.lanes["prefetch"]]
    assert all(start >= arrived for (start, _), arrived in zip(timeline.lanes["long kernel"], arrivals, strict=True))
