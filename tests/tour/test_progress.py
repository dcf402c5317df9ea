import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from library_tour import progress, stops, timing
from library_tour.progress import Pace

EXPECTED = {"a": 10.0, "b": 30.0}


def paced(*seconds: float, names: Sequence[str] = ("a", "b")) -> tuple[float | None, float | None]:
    """Return the fraction done and the seconds left after `seconds` in each stop, the last of which still runs."""
    now = 100.0
    pace = Pace(names, EXPECTED, lambda: now)
    for number, taken in enumerate(seconds):
        if number:
            pace.end()
        if number < len(names):
            pace.begin(names[number])
        now += taken
    return pace.fraction(), pace.seconds_left()


def test_the_bar_moves_inside_a_stop_and_a_machine_that_is_slower_has_more_time_left():
    assert paced(0) == (0, 40)
    assert paced(4) == (0.1, 36)
    # 30 recorded seconds are left. The pace is half the recorded one: it starts with five seconds that count as
    # recorded, and so far 15 recorded seconds have taken 30.
    assert paced(25, 0) == (0.25, 60)


def test_a_stop_that_takes_too_long_does_not_fill_the_bar():
    fraction, left = paced(1000, names=["a"])
    assert fraction == progress.MOST_OF_A_STOP
    assert 0 < left < 10
    assert paced(1000, 0, names=["a"]) == (1, 0)
    # Without recorded seconds for every stop, nothing is known.
    assert paced(0, 0, names=["a", "other"]) == (None, None)


def test_the_seconds_of_most_stops_are_recorded_on_the_simulator_and_on_a_gpu(monkeypatch):
    for available in (False, True):
        monkeypatch.setattr(timing, "available", lambda available=available: available)
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
    assert progress._listeners == []
