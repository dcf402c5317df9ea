"""Copies of arrays and of windows: when the calls return, and sources that are changed too early."""

import pytest

from library_tour import timing
from library_tour.course import copies
from library_tour.stop import Row
from tests.tour.outcomes import SIZES, outcome

RETURNED = "When the call returns, the copy is"
NBYTES, WINDOW = SIZES["copies"], 1535 * 1022 * 4


def by_name(rows) -> dict[str, Row]:
    return {row.name: row for row in rows}


@pytest.fixture
def returned(result):
    return by_name(result.tables[RETURNED])


@pytest.mark.skipif(timing.available(), reason="rows with times do not say what their calls do")
@pytest.mark.parametrize(
    ("name", "row", "work"),
    [
        ("copies", "pinned to device", {"over the link": NBYTES, "in host memory": NBYTES, "in device memory": NBYTES}),
        ("copies", "device to device", {"over the link": 0, "in host memory": 0, "in device memory": 2 * NBYTES}),
        ("copies_2d", "host to device", {"calls": 1, "over the link": WINDOW, "per call": WINDOW}),
        ("copies_2d", "host to device, row by row", {"calls": 1535, "over the link": WINDOW, "per call": 1022 * 4}),
        ("memset", "8 bits", {"elements filled": 308, "written": 308}),
        ("memset", "32 bits", {"elements filled": 77, "written": 308}),
    ],
)
def test_a_call_moves_as_many_bytes_as_its_arguments_imply(name, row, work):
    said = by_name(outcome(name).result.rows)[row].work
    assert {fact.removeprefix("bytes "): amount for fact, amount in said.items()}.items() >= work.items()


def test_copies_to_and_from_the_host_wait_and_the_driver_infers_the_kind(returned):
    assert {row.values["memcpy"] for name, row in returned.items() if name != "device to device"} == {"done"}
    assert returned["pinned to device"].values["in a stream"] == "queued"
    assert returned["device to pinned"].values["in a stream"] == "queued"
    kinds = {name: row.values["kind"] for name, row in returned.items()}
    assert kinds["pageable to device"] == kinds["pinned to device"] == "HostToDevice"
    assert kinds["device to pinned"] == "DeviceToHost"
    assert kinds["host to host"] == "HostToHost"
    assert kinds["device to device"] == "DeviceToDevice"


def test_the_courses_figures_stand_beside_the_measured_ones():
    rows = [Row("pinned to device", {"GB/s": 55.4}), Row("device to device")]
    assert copies.beside_course("link, PCIe 5", rows).values == {"course GB/s": 32, "GB/s": 55.4}


@pytest.mark.xdist_group("copies_2d")
def test_a_window_is_copied_by_one_call_which_is_queued_in_a_stream():
    returned = outcome("copies_2d").result.tables[RETURNED]
    assert by_name(returned)["host to device"].values == {"memcpy2d": "done", "in a stream": "queued"}
