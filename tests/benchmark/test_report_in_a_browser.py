"""The report as a browser shows it: in narrow and wide windows, light and dark. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape

import numpy as np
import pytest

from cudart_py.benchmark import history

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chrome-headless-shell")
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
# What is asked of the page, which stands in a frame of the window's width.
QUESTIONS = """
addEventListener("load", () => {
    const frame = document.getElementById("frame"), page = frame.contentDocument, root = page.documentElement;
    const boxes = [...page.querySelectorAll("svg text")].map(text => [text, text.getBoundingClientRect()]);
    const outside = boxes.filter(([text, box]) => {
        const around = text.closest("svg").getBoundingClientRect();
        return box.left < around.left - 1 || box.right > around.right + 1
            || box.top < around.top - 1 || box.bottom > around.bottom + 1;
    });
    const style = frame.contentWindow.getComputedStyle(page.body);
    document.getElementById("found").textContent = JSON.stringify({
        width: root.clientWidth,
        scrolled: root.scrollWidth,
        height: root.scrollHeight,
        drawings: page.querySelectorAll("figure svg").length,
        steps: [...page.querySelectorAll("path.step")].map(step => step.getBoundingClientRect().height),
        labels: [...page.querySelectorAll("svg text.worse, svg text.better")].map(text => text.textContent),
        smallest: Math.min(...boxes.map(([, box]) => box.height)),
        outside: outside.map(([text]) => text.textContent),
        fetched: frame.contentWindow.performance.getEntriesByType("resource").length,
        ground: style.backgroundColor,
        text: style.color,
    });
});
"""


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Run the browser without a window, with more arguments; return what it printed."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium to show the page (Debian's package: chromium)")
    profile = tmp_path_factory.mktemp("browser")
    # Without its sandbox, which root has no right to.
    usual = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]

    def run(*arguments):
        return subprocess.run(
            [found, *usual, *arguments], capture_output=True, text=True, timeout=120, check=True
        ).stdout

    return run


def scheme(dark):
    return f"--blink-settings=preferredColorScheme={0 if dark else 1}"


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


@pytest.fixture
def look(chromium, tmp_path):
    """Show a page in a frame of a width; return the answers to the questions."""

    def look(html, width, *, dark=False):
        window = tmp_path / "window.html"
        frame = (
            f'<iframe id="frame" style="width: {width}px; height: 900px; border: 0" srcdoc="{escape(html)}"></iframe>'
        )
        answers = f'<pre id="found"></pre><script>{QUESTIONS}</script>'
        window.write_text(f'<!DOCTYPE html><meta charset="utf-8">{frame}{answers}')
        shown = chromium(scheme(dark), "--window-size=1600,1000", "--dump-dom", window.as_uri())
        return json.loads(unescape(re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)[1]))

    return look


@pytest.mark.parametrize("width", [320, 400, 800, 1400])
def test_the_page_does_not_scroll_sideways(html, look, width):
    found = look(html, width)
    assert found["width"] == width
    assert found["scrolled"] <= width


@pytest.mark.parametrize("width", [400, 1400])
def test_every_drawing_can_be_read(html, look, width):
    found = look(html, width)
    # The time and the ratio of one benchmark, the time of the other, the counts that changed.
    assert found["drawings"] == 4
    assert found["outside"] == []
    assert found["smallest"] >= 9


def test_the_planted_steps_are_drawn_with_their_commits_and_no_others(html, look):
    found = look(html, 1000)
    assert sorted(found["labels"]) == ["00000080", "00000110", "00000150"]
    assert len(found["steps"]) == 3
    assert min(found["steps"]) > 50


def test_the_page_fetches_nothing(html, look):
    assert look(html, 1000)["fetched"] == 0


def luminance(color):
    """Return the relative luminance of `rgb(...)` as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_the_ground_in_light_and_dark(html, look, dark):
    found = look(html, 1000, dark=dark)
    ground, text = luminance(found["ground"]), luminance(found["text"])
    assert (ground < 0.1) is dark
    low, high = sorted((ground, text))
    assert (high + 0.05) / (low + 0.05) >= 7


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [500, 1300])
def test_a_picture_of_the_page_is_not_blank(html, chromium, tmp_path, width, dark):
    images = pytest.importorskip(
        "PIL.Image", reason="Pillow, which reads the picture, is not installed (the extra plot)"
    )
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(html)
    chromium(scheme(dark), f"--window-size={width},2000", f"--screenshot={picture}", page.as_uri())
    with images.open(picture) as image:
        pixels = np.asarray(image.convert("L"))
    assert pixels.shape == (2000, width)
    ground = np.bincount(pixels.ravel()).argmax()
    different = np.abs(pixels.astype(int) - int(ground)) > 60
    # Text and drawings reach over the page, and leave most of it free.
    assert 0.005 < different.mean() < 0.5
    assert all(part.any() for part in np.array_split(different, 8))
