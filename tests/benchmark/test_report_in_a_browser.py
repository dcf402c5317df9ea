"""The report as a browser shows it: in narrow and wide windows, light and dark. Skipped where there is no Chromium."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.benchmark import history
from tests.browser import check_colors, check_ink, check_width

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


@pytest.fixture
def html(store):
    """A page with all that there is: two planted steps, ratios, a roofline, counts, a dirty run, a long name."""
    rng = np.random.default_rng(19)
    long_name = f"tests/bench_a.py::test_b[{'a long name without any blank'.replace(' ', '-') * 4}]"
    for number in range(20):
        seconds = float((1e-3, 1.1e-3, 0.95e-3)[min(number // 7, 2)] * rng.normal(1, 0.005))
        rates = {
            "GB/s": 4 / seconds,
            "TFLOP/s": 1e-3 / seconds,
            "ceiling": "copy",
            "of ceiling": 4e9 / seconds / 4.3e12,
        }
        beside = {"beside": {"CuPy": {"median": 1e-3, "ratio": float(rng.normal(1, 0.01)), "spread": 0.01}}}
        launch = {"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1], SECTORS: 100 + (number > 9) * 1_000_000}
        store.add(
            {"tests/bench_a.py::test_a": (seconds, rates | beside), long_name: float(1e-6 * rng.normal(1, 0.01))},
            counted={long_name: [launch]},
            dirty=number == 4,
        )
    return history.page(history.read_store(store.folder))


@pytest.mark.parametrize("width", [320, 400, 800, 1400])
def test_the_page_does_not_scroll_sideways(html, chromium, width):
    check_width(chromium.look(html, width), width)


@pytest.mark.parametrize("width", [400, 1400])
def test_every_drawing_can_be_read(html, chromium, width):
    found = chromium.look(html, width)
    # The time and the ratio of one benchmark, the time of the other, the counts that changed.
    assert found["drawings"] == 4
    assert found["outside"] == []
    assert found["smallest"] >= 9


def test_the_planted_steps_are_drawn_with_their_commits_and_no_others(html, chromium):
    found = chromium.look(html, 1000)
    assert sorted(found["labels"]) == ["00000080", "00000110", "00000150"]
    assert len(found["steps"]) == 3
    assert min(found["steps"]) > 50


def test_the_page_fetches_nothing(html, chromium):
    assert chromium.look(html, 1000)["fetched"] == 0


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_the_ground_in_light_and_dark(html, chromium, dark):
    check_colors(chromium.look(html, 1000, dark=dark), dark=dark)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [500, 1300])
def test_a_picture_of_the_page_is_not_blank(html, chromium, width, dark):
    check_ink(chromium.ink(html, width, 2000, dark=dark), 8)
