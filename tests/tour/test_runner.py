from __future__ import annotations

import pytest

import cudart_py as cuda
from library_tour import runner, stops, timing
from library_tour.stop import Result


@pytest.mark.parametrize(("timed", "size"), [(True, 200), (False, 100)])
def test_the_default_size_is_full_where_times_are_worth_taking_and_small_elsewhere(
    only_stops, monkeypatch, timed, size
):
    only_stops(idea=lambda device, size: Result([]))
    monkeypatch.setattr(timing, "available", lambda: timed)
    assert runner.size_for(stops.load("idea"), None) == size
    monkeypatch.setattr(stops.load("idea"), "SIZE", None)
    assert runner.size_for(stops.load("idea"), 5) is None


def test_the_device_is_current_in_the_stop_and_not_after(only_stops):
    current = []
    only_stops(idea=lambda device, size: current.append(cuda.current_device()) or Result([]))
    runner.run_stop("idea", cuda.Device(0))
    assert current == [cuda.Device(0)]


def test_errors_keep_their_traceback_and_too_little_memory_points_to_the_size(only_stops):
    def hungry(device: cuda.Device, size: int) -> Result:
        raise cuda.OutOfMemoryError("1 of 0 bytes")

    only_stops(idea=hungry)
    outcome = runner.run_stop("idea", cuda.Device(0))
    assert outcome.state == "error"
    assert "OutOfMemoryError: 1 of 0 bytes\nA smaller --size" in outcome.message
    assert "in hungry" in outcome.traceback


def test_a_stop_that_cannot_be_imported_is_an_error(monkeypatch):
    monkeypatch.setattr(stops, "COURSE", ("nowhere",))
    outcome = runner.run_stop("nowhere", cuda.Device(0))
    assert outcome.state == "error"
    assert "ModuleNotFoundError" in outcome.message
