from __future__ import annotations

import cudart_py as cuda
from library_tour.course import errors
from library_tour.course.errors import MISTAKES, Mistake, error_of, judged, told


def test_every_mistake_has_its_exception_and_its_status(rows):
    for name, mistake in MISTAKES.items():
        assert rows[name].check.holds
        assert rows[name].values == {"exception": mistake.exception, "status": mistake.status}


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


def test_without_debug_mode_a_later_call_fails_and_all_launches_are_suspects(rows):
    note = rows["null store"].note
    assert note.startswith("IllegalAddressError: cuMemcpyDtoHAsync")
    assert note.count("fill[grid") == 2
    assert note.count("store[grid") == 1


def test_in_debug_mode_the_launch_itself_fails_and_is_named_with_its_line(rows):
    note = rows["null store, debug()"].note
    assert "It was store[grid" in note
    assert "launched at library_tour/course/errors.py:" in note
    assert "fill[grid" not in note


def test_the_device_still_works(device, result):
    assert errors.filled(3).tolist() == [3, 3, 3]
    assert result.checks[0].holds


def no_mistake() -> str:
    return told(error_of(lambda: None), "cuDriverGetVersion", cuda.raw.cuDriverGetVersion())


def test_a_mistake_that_raises_nothing_is_noticed(device):
    row = judged("none", Mistake(no_mistake, "ValueError", "CUDA_SUCCESS", apart=False), no_mistake())
    assert not row.check.holds


def test_no_folder_of_this_machine_is_shown(result):
    assert not [row.name for row in result.all_rows if " /" in row.note.replace("\n", " ")]
