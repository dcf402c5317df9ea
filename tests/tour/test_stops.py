from __future__ import annotations

import pytest

import cudart_py as cuda
from library_tour import plots, stops, timing
from library_tour.report import headline
from library_tour.runner import Outcome, run_stop
from library_tour.stop import Size


def explained(outcome: Outcome) -> str:
    checks = "; ".join(f"{check.fact}: {check.detail}" for check in outcome.failed_checks)
    return f"{checks} {outcome.message} {outcome.traceback}"


@pytest.mark.parametrize("name", stops.COURSE)
def test_the_stop_passes_at_a_small_odd_size(name):
    outcome = run_stop(name, cuda.Device(0), 77)
    assert outcome.state == "passed", explained(outcome)
    assert outcome.result.rows


@pytest.mark.parametrize("name", [name for name in stops.COURSE if stops.load(name).SIZE])
def test_the_stop_passes_at_its_least_size(name):
    outcome = run_stop(name, cuda.Device(0), stops.load(name).SIZE.least)
    assert outcome.state == "passed", explained(outcome)


@pytest.mark.parametrize("name", stops.COURSE)
def test_the_stop_checks_something(name):
    assert run_stop(name, cuda.Device(0), 50).result.all_checks


@pytest.mark.parametrize("name", stops.COURSE)
def test_the_stop_tells_its_title_and_size(name):
    stop = stops.load(name)
    assert len(headline(name, stop.TITLE)) <= 80
    assert stop.SIZE is None or (isinstance(stop.SIZE, Size) and stop.SIZE.least <= stop.SIZE.small <= stop.SIZE.full)
    assert f"$ library-tour run {name}" in stop.__doc__


def test_names_are_unique():
    assert len(set(stops.COURSE)) == len(stops.COURSE)


@pytest.mark.parametrize("name", stops.COURSE)
def test_the_stop_reports_and_draws_times_where_the_driver_has_them(name, monkeypatch, tmp_path):
    """With any clock, so that what is done for a GPU alone runs everywhere; the times themselves mean nothing."""
    monkeypatch.setattr(timing, "available", lambda: True)
    monkeypatch.setattr(timing, "REPEATS", 1)
    monkeypatch.setattr(timing, "LEAST_REPEATS", 1)
    outcome = run_stop(name, cuda.Device(0), 5000 if name not in ("transpose", "copies_2d") else 50)
    assert outcome.state == "passed", explained(outcome)
    timed = [row for row in outcome.result.rows if "ms" in row.values]
    assert timed or name == "device_query"
    if timed:
        assert outcome.result.limit.rate
        assert any("of limit" in row.values for row in timed)
        pytest.importorskip("matplotlib")
        assert plots.draw(name, outcome.title, outcome.result, tmp_path)


@pytest.mark.parametrize("name", stops.COURSE)
def test_the_docstring_shows_every_checked_row(name):
    rows = run_stop(name, cuda.Device(0), 50).result.rows
    assert [row.name for row in rows if row.check and row.name not in stops.load(name).__doc__] == []
