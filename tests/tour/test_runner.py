import cudart_py as cuda
from library_tour import runner, stops, timing
from library_tour.stop import Result


def test_the_default_size_is_full_where_times_are_worth_taking_and_small_elsewhere(only_stops, monkeypatch):
    only_stops(idea=lambda device, size: Result([]))
    for timed, size in ((True, 200), (False, 100)):
        monkeypatch.setattr(timing, "available", lambda timed=timed: timed)
        assert runner.size_for(stops.load("idea"), None) == size
    monkeypatch.setattr(stops.load("idea"), "SIZE", None)
    assert runner.size_for(stops.load("idea"), 5) is None


def test_the_device_is_current_in_the_stop_and_errors_keep_their_traceback(only_stops, monkeypatch):
    current = []

    def hungry(device: cuda.Device, size: int) -> Result:
        current.append(cuda.current_device())
        raise cuda.OutOfMemoryError("1 of 0 bytes")

    only_stops(idea=hungry)
    outcome = runner.run_stop("idea", cuda.Device(0))
    assert current == [cuda.Device(0)]
    assert outcome.state == "error"
    assert "OutOfMemoryError: 1 of 0 bytes\nA smaller --size" in outcome.message  # a smaller size needs less memory
    assert "in hungry" in outcome.traceback
    monkeypatch.setattr(stops, "COURSE", ("nowhere",))
    outcome = runner.run_stop("nowhere", cuda.Device(0))
    assert outcome.state == "error"
    assert "ModuleNotFoundError" in outcome.message
