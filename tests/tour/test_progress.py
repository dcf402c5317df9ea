from __future__ import annotations

import io

import pytest
from rich.console import Console

from library_tour import progress, stops, timing
from library_tour.progress import Pace

EXPECTED = {"a": 10.0, "b": 30.0}


@pytest.fixture
def clock():
    class Clock:
        now = 100.0

        def __call__(self) -> float:
            return self.now

    return Clock()


def test_the_bar_moves_inside_a_stop(clock):
    pace = Pace(["a", "b"], EXPECTED, clock)
    pace.begin("a")
    assert (pace.fraction(), pace.seconds_left()) == (0, 40)
    clock.now += 4
    assert (pace.fraction(), pace.seconds_left()) == (0.1, 36)


def test_a_machine_that_is_slower_has_more_time_left(clock):
    pace = Pace(["a", "b"], EXPECTED, clock)
    pace.begin("a")
    clock.now += 25
    pace.end()
    # 30 recorded seconds are left, and with the first five that count as recorded, 15 took 30.
    assert pace.fraction() == 0.25
    assert pace.seconds_left() == 60


def test_a_stop_that_takes_too_long_does_not_fill_the_bar(clock):
    pace = Pace(["a"], EXPECTED, clock)
    pace.begin("a")
    clock.now += 1000
    assert pace.fraction() == progress.MOST_OF_A_STOP
    assert 0 < pace.seconds_left() < 10
    pace.end()
    assert pace.fraction() == 1
    assert pace.seconds_left() == 0


def test_nothing_is_known_where_a_stops_seconds_are_not(clock):
    pace = Pace(["a", "other"], EXPECTED, clock)
    pace.begin("a")
    pace.end()
    assert pace.fraction() is None
    assert pace.seconds_left() is None


@pytest.mark.parametrize("available", [False, True], ids=["the simulator", "a GPU"])
def test_the_seconds_of_most_stops_are_recorded(monkeypatch, available):
    monkeypatch.setattr(timing, "available", lambda: available)
    known = progress.recorded_seconds(stops.names())
    assert len(known) > 35
    assert all(0 <= seconds < 60 for seconds in known.values())


def shown(width: int, expected: dict[str, float]) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True)
    with progress.bar(console, ["nested_monte_carlo"], expected) as steps:
        steps.begin("nested_monte_carlo")
        progress.tell("a variant")
        steps._progress.refresh()
        steps.end()
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_terminal_of_any_width_has_the_whole_name_and_the_time_left(width):
    text = shown(width, {"nested_monte_carlo": 65.0})
    assert "nested_monte_carlo" in text
    assert "1:05 left" in text
    assert "…" not in text
    assert ("nested_monte_carlo: a variant" in text) == (width == 100)


def test_without_recorded_seconds_the_time_that_has_gone_by_is_shown_and_nothing_listens_after_it():
    text = shown(100, {})
    assert "0:00" in text
    assert "left" not in text
    progress.tell("a variant")
    assert progress._listeners == []
