"""The recorded run that is part of the package."""

import json
from dataclasses import replace

import cudart_py as cuda
from library_tour import record, recorded, stops
from library_tour.runner import Outcome
from library_tour.stop import Bars, Check, Curve, Limit, Panels, Result, Row, Timeline

PICTURES = [
    Curve("c", "x", "y", {"l": [[1, 2]]}, "xy", Limit("link", rate=55.0)),
    Bars("b", "GB/s", {"a": {"few": 1.0}}, Limit("link", rate=55.0)),
    Timeline("t", {"copy": [[0.0, 1.5]]}, "operations"),
    Panels("p", "What it holds", {"threads": {"a": 1024, "b": 2048}}),
]


def test_the_package_has_most_stops_with_rates_of_a_card():
    run = recorded.run()
    assert set(stops.names()) >= {stop["name"] for stop in run["stops"]}
    assert len(run["stops"]) > 35
    assert "H200" in recorded.machine()
    assert recorded.stop("nothing") is None
    rows = recorded.result(recorded.stop("transpose")).rows
    assert {"ms", "GB/s", "of limit"} <= rows[0].values.keys()


def test_every_recorded_picture_and_table_is_understood():
    for stop in recorded.run()["stops"]:
        result = recorded.result(stop)
        films = sum(picture["kind"] == "film" for picture in stop["pictures"])
        assert len(result.pictures) + films == len(stop["pictures"])
        assert len(result.tables) == len(stop["tables"])


def test_a_result_comes_back_from_its_record_unless_it_failed():
    rows = [Row("a", {"ms": 1.23456789, "says": "words"}, Check("fact", True), "a note")]
    result = Result(rows, Limit("link", rate=55.0), pictures=PICTURES, notes=["That is all."], tables={"More": rows})
    outcome = Outcome("idea", "What it shows", None, "", 1.0, "passed", result)
    environment = record.environment(cuda.Device(0))
    run = json.loads(json.dumps(recorded.shortened(record.record(environment, [outcome]))))
    rows = [Row("a", {"ms": 1.2346, "says": "words"}, None, "a note")]
    assert recorded.result(run["stops"][0]) == replace(result, rows=rows, tables={"More": rows})
    assert not recorded.shortened(record.record(environment, [replace(outcome, state="failed")]))["stops"]
