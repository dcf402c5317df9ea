from __future__ import annotations

import pytest

import cudart_py as cuda
from library_tour import runner, stops, timing
from library_tour.stop import Result


def test_the_default_size_is_full_where_times_are_worth_taking(only_stops, monkeypatch):
    only_stops(idea=lambda device, size: Result([]))
    monkeypatch.setattr(timing, "available", lambda: True)
    assert runner.size_for(stops.load("idea"), None) == 200


def test_the_default_size_is_small_elsewhere(only_stops, monkeypatch):
    only_stops(idea=lambda device, size: Result([]))
    monkeypatch.setattr(timing, "available", lambda: False)
    assert runner.size_for(stops.load("idea"), None) == 100


def test_a_stop_without_a_size_has_none():
    assert runner.size_for(stops.load("device_query"), 5) is None


def test_the_device_is_current_in_the_stop_and_not_after(only_stops):
    current = []
    only_stops(idea=lambda device, size: current.append(cuda.current_device()) or Result([]))
    runner.run_stop("idea", cuda.Device(0))
    assert current == [cuda.Device(0)]


def test_too_little_memory_points_to_the_size(only_stops):
    def hungry(device: cuda.Device, size: int) -> Result:
        raise cuda.OutOfMemoryError("1 of 0 bytes")

    only_stops(idea=hungry)
    outcome = runner.run_stop("idea", cuda.Device(0))
    assert outcome.state == "error"
    assert outcome.message == "OutOfMemoryError: 1 of 0 bytes\nA smaller --size needs less memory."


def test_the_traceback_of_an_error_is_kept(only_stops):
    def broken(device: cuda.Device, size: int) -> Result:
        raise RuntimeError("the wheels came off")

    only_stops(idea=broken)
    assert "in broken" in runner.run_stop("idea", cuda.Device(0)).traceback


def test_a_stop_that_cannot_be_imported_is_an_error(monkeypatch):
    monkeypatch.setattr(stops, "COURSE", ("nowhere",))
    outcome = runner.run_stop("nowhere", cuda.Device(0))
    assert outcome.state == "error"
    assert "ModuleNotFoundError" in outcome.message


def test_an_interrupt_is_not_swallowed(only_stops):
    def interrupted(device: cuda.Device, size: int) -> Result:
        raise KeyboardInterrupt

    only_stops(idea=interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner.run_stop("idea", cuda.Device(0))
