from __future__ import annotations

from library_tour import timing
from library_tour.course import graphs
from library_tour.stop import Curve
from tests.tour.outcomes import counted

PASSES = "temperatures"


def test_a_graph_is_one_call_of_the_host(result):
    calls = {row.name: row.values["calls"] for row in result.rows}
    assert calls["launches, arguments bound"] == graphs.STEPS
    assert calls[graphs.GRAPH] == calls[graphs.LOOP] == 1


@counted
def test_a_graph_saves_no_pass_over_memory_and_the_loop_inside_does(result):
    [rows] = [rows for heading, rows in result.tables.items() if PASSES in heading]
    loads = {row.name: row.values["loads"] for row in rows}
    assert loads[graphs.GRAPH] == loads["launches, arguments bound"] == graphs.STEPS * loads[graphs.LOOP]


def test_what_a_capture_and_an_update_refuse_is_said(device):
    details = {row.name: row.check.detail for row in graphs.facts()}
    assert "200 nodes" in details["update to another shape"]
    assert details["wait in a capture"]
    assert details["pageable copy in a capture"]


def test_times_are_drawn_up_to_the_size(device, monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: True)
    monkeypatch.setattr(graphs, "clocked", lambda work, stream, seconds: (1.0, 200.0))
    [curve] = graphs.curves(5000)
    assert isinstance(curve, Curve)
    assert curve.lines[graphs.GRAPH] == [(2**10, 2.0), (2**12, 2.0)]


def test_the_clock_runs_at_least_once_and_waits(device):
    cooling = graphs.Cooling(50)
    queued, done = graphs.clocked(cooling.as_graph, cooling.stream)
    assert 0 < queued < done
