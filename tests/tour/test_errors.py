from __future__ import annotations

import cudart_py as cuda
from library_tour.course import errors
from library_tour.course.errors import Mistake, error_of, judged, told

REPORTS = {
    "null store": "the null pointer",
    "invalid configuration": "block.x",
    "failed allocation": "1,125,899,906,842,624 bytes",
    "double free": "closed",
    "kernel assert": "assertion `x[i] > 0.0f` failed",
    "too many parameters": "max 32764 bytes allowed",
    "pointer never set": "0xcdcdcdcdcdcdcdc0",
    "pointer of the host": "copy it with cudart_py.to_device",
    "memory not cleared": "nothing has been written",
}


def test_the_reports_tell_what_is_wrong(rows):
    reports = {name: rows[name].note.replace("\n", " ") for name in REPORTS}
    assert [name for name, words in REPORTS.items() if words not in reports[name]] == []
    # Without debug mode a later call fails, and all launches are suspects.
    note = rows["null store"].note
    assert note.startswith("IllegalAddressError: cuMemcpyDtoHAsync")
    assert (note.count("fill[grid"), note.count("store[grid")) == (2, 1)
    note = rows["null store, debug()"].note
    assert "It was store[grid" in note
    assert "launched at library_tour/course/errors.py:" in note
    assert "fill[grid" not in note


def test_the_device_still_works(device, result):
    assert errors.filled(3).tolist() == [3, 3, 3]


def no_mistake() -> str:
    return told(error_of(lambda: None), "cuDriverGetVersion", cuda.raw.cuDriverGetVersion())


def test_a_mistake_that_raises_nothing_is_noticed(device):
    row = judged("none", Mistake(no_mistake, "ValueError", "CUDA_SUCCESS", apart=False), no_mistake())
    assert not row.check.holds


def test_no_folder_of_this_machine_is_shown(result):
    assert not [row.name for row in result.all_rows if " /" in row.note.replace("\n", " ")]
