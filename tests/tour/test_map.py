"""Counters of the stop map, and its whole program in pieces on one device and on two."""

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import timing
from library_tour.course import map as stop
from tests.tour.outcomes import counted


@pytest.fixture
def arrays(device, shorter):
    random = np.random.default_rng(1)
    a, b, out = (cuda.pinned_empty(1000, np.float32) for _ in range(3))
    a[:], b[:], out[:] = random.random(1000), random.random(1000), np.nan
    return a, b, out


@counted
def test_pointers_that_may_be_equal_cost_a_store_and_a_load_per_pass(rows):
    memory, registers = (rows[name].values for name in ("in memory, fast math", "in registers, fast math"))
    warps = registers["stores"]
    assert (memory["loads"], memory["stores"]) == (warps * (stop.CHECKED_PASSES + 1), warps * stop.CHECKED_PASSES)
    assert registers["loads"] == 2 * warps


@pytest.mark.parametrize("size", [1, 16, 1000])
def test_pieces_give_the_result_of_the_whole_and_one_span_each_for_the_picture(arrays, size):
    a, b, out = (array[:size] for array in arrays)
    _, parts = stop.in_pieces(cuda.devices()[:1], a, b, out)
    expected = stop.reference(a.astype(float), b.astype(float), stop.PASSES)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    lanes = stop.lanes(parts)
    assert list(lanes) == ["GPU 0: in", "GPU 0: work", "GPU 0: out"]
    assert [len(spans) for spans in lanes.values()] == [min(size, stop.PIECES)] * 3
    assert all(start <= end for spans in lanes.values() for start, end in spans)


def test_a_wrong_piece_is_noticed(arrays, monkeypatch):
    a, b, out = arrays
    monkeypatch.setattr(stop, "PIECES", 15)
    monkeypatch.setattr(stop.Part, "queue", lambda part, number: None)
    rows, _ = stop.whole_programs(cuda.devices()[:1], a, b, out)
    assert [row.check.holds for row in rows if row.check] == [True, False]


def test_the_courses_phases_stand_beside_ours_where_there_are_times(arrays, monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: True)
    rows, pictures = stop.whole_programs(cuda.devices()[:1], *arrays)
    ours = {row.name: row.values for row in rows}
    assert set(ours["in phases"]) == set(ours["course: V100, loop"])
    assert set(ours["in pieces"]) == {"total"}
    assert [picture.name for picture in pictures] == ["pieces"]
