import numpy as np

from library_tour import timing
from library_tour.course import streams
from library_tour.pipeline import BREADTH, DEPTH, ORDERS, STAGES, Operation, issued, modelled, spans
from library_tour.stop import Timeline


def end(order: str, count: int, engines: int) -> float:
    return modelled(issued(order, count, 12), engines)["copy out"][-1][1]


def test_each_order_queues_every_stage_of_a_piece_once_and_in_its_stream():
    for order in ORDERS:
        operations = list(issued(order, 4, 10))
        assert len(set(operations)) == 30
        for piece in range(10):
            mine = [operation for operation in operations if operation.piece == piece]
            assert mine == [Operation(stage, piece, piece % 4) for stage in STAGES]


def test_the_order_matters_with_one_engine_for_copies_and_two_streams_do_not_keep_three_stages_busy():
    assert end(DEPTH, 4, 1) == end(DEPTH, 1, 1) == 36
    assert end(BREADTH, 4, 1) == 24  # the engine is never idle: two copies per piece
    assert end(DEPTH, 4, 2) == end(BREADTH, 4, 2) == 14  # one piece per unit, after two units for the first
    assert end(DEPTH, 2, 2) > end(DEPTH, 3, 2) == end(DEPTH, 4, 2)


def test_a_stage_begins_no_earlier_than_its_last_one_has_ended():
    marks = [(Operation("kernel", piece, piece), 0.0, 1.0 + piece) for piece in (1, 0)]
    assert spans(marks)["kernel"] == [(0.0, 1.0), (1.0, 2.0)]


def test_the_timeline_of_events_has_every_stage_of_every_piece(device, monkeypatch):
    pieces = streams.Pieces(np.arange(1003, dtype=np.uint32), 1)
    monkeypatch.setattr(timing, "available", lambda: True)
    drawn = streams.pictures(pieces)
    assert [picture.name for picture in drawn] == ["model-one-engine", "2-streams", "4-streams"]
    for picture in drawn:
        assert isinstance(picture, Timeline)
        assert {len(points) for points in picture.lanes.values()} == {streams.MODEL_PIECES}
        assert all(start <= end for points in picture.lanes.values() for start, end in points)
