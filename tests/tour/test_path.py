"""The path visits every stop once, and none before the stops that it requires."""

import pytest

from library_tour import path


def test_each_stop_is_on_the_path_once_and_after_the_stops_that_it_needs():
    known = []
    for name in path.names():
        assert name not in known
        assert set(path.position(name).place.after) <= set(known), name
        known.append(name)


@pytest.mark.parametrize("route", path.ROUTES.values(), ids=path.ROUTES)
def test_a_route_keeps_the_order_of_the_path_and_leaves_out_nothing_that_it_needs(route):
    order = [path.names().index(name) for name in route.names]
    assert order == sorted(set(order))
    for name in route.names:
        assert set(path.position(name).place.after) <= set(route.names), name


def test_the_route_for_cpp_programmers_covers_streams_and_graphs_which_the_course_promises():
    assert {"events", "streams", "graphs"} <= set(path.route("cpp").names)


def test_a_stop_knows_its_neighbours_across_chapters():
    assert path.position("device_query").previous == ""
    assert path.position("nan_check").next == "copies"
    assert path.position("copies").previous == "nan_check"
    assert path.position("copies").number == 2
    assert path.position(path.names()[-1]).next == ""


@pytest.mark.parametrize(
    ("name", "route", "expected"),
    [
        ("synchronization", "cpp", ("divergence", "occupancy")),
        ("map", "cpp", ("daxpy", "launch_shapes")),  # not on the route
        ("device_query", "cpp", ("", "vector_add")),
        ("matmul", "cpp", ("cooling", "")),
        ("matmul", "", ("precision", "monte_carlo")),
    ],
    ids=str,
)
def test_the_neighbours_on_a_route_are_its_own_stops(name, route, expected):
    assert path.neighbours(name, route) == expected


def test_a_stop_is_on_a_route_or_not_and_every_stop_is_on_the_whole_path():
    assert path.is_on("divergence", "first-day")
    assert not path.is_on("streams", "first-day")
    assert path.is_on("streams", "")


@pytest.mark.parametrize(
    ("minutes", "text"), [(45, "45 minutes"), (60, "1 hour"), (100, "1.5 hours"), (235, "4 hours")], ids=str
)
def test_a_time_is_told_in_minutes_or_half_hours(minutes, text):
    assert path.hours(minutes) == text
