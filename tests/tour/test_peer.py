from __future__ import annotations

import json

import pytest

import cudart_py as cuda
from library_tour import counters
from library_tour.course import peer
from library_tour.runner import run_stop
from library_tour.wrong import shown_wrong

RUN = """
import json, sys
import cudart_py as cuda
from library_tour import timing
from library_tour.course import peer
from library_tour.runner import run_stop
{}
peer.all_shown_wrong = lambda programs, devices: []
device, other = cuda.Device(0), cuda.Device(1)
outcome = run_stop("peer", device, {})
found = {{
    "state": outcome.state,
    "rows": {{row.name: {{**row.values, "note": row.note}} for row in outcome.result.rows}},
    "failed": [check.fact for check in outcome.failed_checks],
    "pictures": {{picture.name: list(picture.lines) for picture in outcome.result.pictures}},
    "enabled": device.peer_enabled(other),
}}
json.dump(found, sys.stdout)
"""
A_CLOCK = """
def once(work, stream=None, quick=False):
    work()
    cuda.legacy_default.synchronize()
    return 1.0
timing.available, timing.median_ms = lambda: True, once
"""


@pytest.fixture
def between_two(python):
    """Run the stop between two devices, in a process of its own: the driver has as many as it began with."""
    if len(cuda.devices()) < 2 and "profile" not in cuda.capabilities():
        pytest.skip("this machine has one device")

    def run(before: str = "", size: int = 1003) -> dict:
        return json.loads(python(RUN.format(before, size), CUDART_PY_SIMULATOR_DEVICES="2").stdout)

    return run


@pytest.mark.parametrize("size", [1, 77, peer.CHECKED + 5])
def test_it_passes_between_two_devices(between_two, size):
    found = between_two(size=size)
    assert (found["state"], found["failed"]) == ("passed", [])
    assert "copy within one device" in found["rows"]


def test_every_row_stands_in_the_docstring(between_two):
    assert [name for name in between_two()["rows"] if name not in peer.__doc__] == []


def test_access_is_taken_back(between_two):
    assert not between_two()["enabled"]


def test_the_way_back_stays_closed(between_two):
    note = between_two()["rows"]["permission has one direction"]["note"]
    assert "the array is on device 0, and device 1 has no access" in note


@pytest.mark.skipif(not counters.available(), reason="this driver does not count")
def test_wider_loads_are_fewer(between_two):
    rows = between_two(size=4 * 1024)["rows"]
    assert rows["kernel reads"]["loads"] == 4 * rows["kernel reads 16 bytes"]["loads"] == 128


def test_rates_and_the_latency_are_shown_where_times_are_taken(between_two):
    found = between_two(A_CLOCK)
    assert found["state"] == "passed"
    assert found["pictures"] == {"bandwidth": ["copy, peer access", "kernel reads 16 bytes"]}
    assert found["rows"]["copy, peer access"]["of limit"] == 1
    assert found["rows"]["copy of 64 bytes"]["us"] == 1000
    assert "of limit" not in found["rows"]["copies both ways at once"]


def test_a_kernel_that_leaves_numbers_out_is_noticed(between_two):
    found = between_two("peer.KERNELS = {'copy_words': 2, 'copy_vectors': 16}")
    assert (found["state"], found["failed"]) == ("failed", ["kernel reads equals NumPy's result"])


def test_one_device_says_what_it_needs_and_passes_what_it_can(monkeypatch, device):
    monkeypatch.setattr(cuda, "devices", lambda: (device,))
    monkeypatch.setattr(peer, "all_shown_wrong", lambda programs, devices: [])
    outcome = run_stop("peer", device, 1003)
    assert (outcome.state, outcome.result.notes[-1]) == ("passed", peer.NEEDS)
    assert [row.name for row in outcome.result.rows] == ["copy within one device"]


def test_a_copy_that_does_not_wait_for_the_peers_event_comes_too_early():
    note = shown_wrong("no wait", peer.no_wait, devices=2).note
    assert note.startswith("100,000 of 100,000 numbers were copied before")


def test_a_wait_for_the_other_device_is_none():
    note = shown_wrong("wait", peer.wrong_device, devices=2).note
    assert note == "100,000 of 100,000 numbers have not come from device 1 yet."
