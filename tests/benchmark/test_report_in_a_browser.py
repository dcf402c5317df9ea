"""The report in a browser: in narrow and wide windows, light and dark. Skipped if Chromium is not installed."""

import numpy as np
import pytest

from cudart_py.benchmark import history
from tests.browser import check_colors, check_ink, check_width

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


@pytest.fixture
def html(store):
    """Return a page with everything: two planted steps, ratios, a roofline, counts, a dirty run, and a long name."""
    rng = np.random.default_rng(19)
    long_name = f"tests/bench_a.py::test_b[{'a long name without any blank'.replace(' ', '-') * 4}]"
    for number in range(20):
        seconds = float((1e-3, 1.1e-3, 0.95e-3)[min(number // 7, 2)] * rng.normal(1, 0.005))
        rates = {"GB/s": 4 / seconds, "TFLOP/s": 1e-3 / seconds, "ceiling": "copy", "of ceiling": 9e-4 / seconds}
        beside = {"beside": {"CuPy": {"median": 1e-3, "ratio": float(rng.normal(1, 0.01)), "spread": 0.01}}}
        launch = {"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1], SECTORS: 100 + (number > 9) * 1_000_000}
        store.add(
            {"tests/bench_a.py::test_a": (seconds, rates | beside), long_name: float(1e-6 * rng.normal(1, 0.01))},
            counted={long_name: [launch]},
            dirty=number == 4,
        )
    return history.page(history.read_store(store.folder))


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_its_window_and_shows_the_planted_steps_in_light_and_dark(html, chromium, dark):
    widths = (320, 400, 1400)
    for width, found in zip(widths, chromium.look([(html, width) for width in widths], dark=dark), strict=True):
        check_width(found, width)
        # The drawings are the time and the ratio of one benchmark, and the time and the changed count of the other.
        assert found["drawings"] == 4
        assert width == 320 or (found["outside"] == [] and found["smallest"] >= 9)
        assert sorted(found["labels"]) == ["00000080", "00000110", "00000150"]
        assert len(found["steps"]) == 3
        assert min(found["steps"]) > 50
        assert found["fetched"] == 0
        check_colors(found, dark=dark)
    check_ink(chromium.ink(html, 500, 2000, dark=dark), 8)
