"""A headless browser that renders pages and answers questions about them."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from html import escape, unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chrome-headless-shell")
# The function that answers the questions about a page, which is shown in a frame of its own.
QUESTIONS = """
function answers(frame) {
    const page = frame.contentDocument, root = page.documentElement;
    const boxes = [...page.querySelectorAll("svg text")].map(text => [text, text.getBoundingClientRect()]);
    const outside = boxes.filter(([text, box]) => {
        const around = text.closest("svg").getBoundingClientRect();
        return box.left < around.left - 1 || box.right > around.right + 1
            || box.top < around.top - 1 || box.bottom > around.bottom + 1;
    });
    const styleOf = element => frame.contentWindow.getComputedStyle(element);
    const style = styleOf(page.body);
    const groundOf = element => {
        const ground = styleOf(element).backgroundColor;
        return ground != "rgba(0, 0, 0, 0)" || !element.parentElement ? ground : groundOf(element.parentElement);
    };
    const figures = [...page.querySelectorAll(".rows :is(th, td, a), .source span, .note p, figcaption")];
    const seen = figures.filter(element => element.textContent.trim() && element.getClientRects().length);
    const colors = seen.map(element => styleOf(element).color + " on " + groundOf(element));
    return {
        width: root.clientWidth,
        scrolled: root.scrollWidth,
        drawings: page.querySelectorAll("figure svg").length,
        steps: [...page.querySelectorAll("path.step")].map(step => step.getBoundingClientRect().height),
        labels: [...page.querySelectorAll("svg text.worse, svg text.better")].map(text => text.textContent),
        smallest: Math.min(...boxes.map(([, box]) => box.height)),
        outside: outside.map(([text]) => text.textContent),
        fetched: frame.contentWindow.performance.getEntriesByType("resource").length,
        sources: frame.contentWindow.performance.getEntriesByType("resource").map(entry => entry.name),
        title: page.title,
        ground: style.backgroundColor,
        text: style.color,
        colors: [...new Set(colors)],
    };
}
addEventListener("load", () => {
    const found = [...document.querySelectorAll("iframe")].map(answers);
    document.getElementById("found").textContent = JSON.stringify(found);
});
"""


class Browser:
    """Chromium, with `profile` as its profile folder; a test that uses it is skipped if it is not installed."""

    def __init__(self, profile: Path) -> None:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        if found is None:
            pytest.skip("there is no Chromium to show the page (Debian's package: chromium)")
        # The sandbox does not start when Chromium runs as root.
        usual = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        self._command = [found, *usual]
        self._window = profile / "window.html"

    def run(self, *arguments: str) -> str:
        """Run the browser with additional arguments, and return its output."""
        command = [*self._command, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    def look(self, pages: Sequence[tuple[str, int]], *, dark: bool = False) -> list[Any]:
        """Show each page in a frame of the given width, and return one set of answers per page."""
        return self._ask([(f'srcdoc="{escape(html)}"', width) for html, width in pages], dark=dark)

    def visit(self, pages: Sequence[tuple[Path, int]], *, dark: bool = False) -> list[Any]:
        """Show each file in a frame of the given width, and return one set of answers per page.

        A page may load the files beside it.
        """
        sources = [(f'src="{page.as_uri()}"', width) for page, width in pages]
        return self._ask(sources, "--allow-file-access-from-files", dark=dark)

    def _ask(self, sources: Sequence[tuple[str, int]], *options: str, dark: bool) -> list[Any]:
        style = "height: 900px; border: 0"
        frames = "".join(f'<iframe style="width: {width}px; {style}" {source}></iframe>' for source, width in sources)
        answers = f'<pre id="found"></pre><script>{QUESTIONS}</script>'
        self._window.write_text(f'<!DOCTYPE html><meta charset="utf-8">{frames}{answers}')
        shown = self.run(*options, scheme(dark), "--window-size=1600,1000", "--dump-dom", self._window.as_uri())
        found: list[Any] = json.loads(unescape(re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)[1]))
        return found

    def ink(self, html: str, width: int, height: int, *, dark: bool) -> Any:
        """Return a boolean array of shape (height, width): where a screenshot of a page differs from its background."""
        images = pytest.importorskip(
            "PIL.Image", reason="Pillow, which reads the picture, is not installed (the extra plot)"
        )
        picture = self._window.with_suffix(".png")
        self._window.write_text(html)
        self.run(scheme(dark), f"--window-size={width},{height}", f"--screenshot={picture}", self._window.as_uri())
        with images.open(picture) as image:
            pixels = np.asarray(image.convert("L"))
        assert pixels.shape == (height, width)
        ground = np.bincount(pixels.ravel()).argmax()
        return np.abs(pixels.astype(int) - int(ground)) > 60


def scheme(dark: bool) -> str:
    return f"--blink-settings=preferredColorScheme={0 if dark else 1}"


def check_width(answers: Any, width: int) -> None:
    """Fail if a page is wider than its frame."""
    assert answers["width"] == width
    assert answers["scrolled"] <= width, f"it is {answers['scrolled']} pixels wide"


def check_colors(answers: Any, *, dark: bool) -> None:
    """Fail if a page does not have the requested color scheme, or its text has too little contrast.

    The contrast ratio is WCAG's, from 1 to 21, and must be at least 7.
    """
    low, high = sorted(map(luminance, (answers["ground"], answers["text"])))
    assert (luminance(answers["ground"]) < 0.1) is dark, answers["ground"]
    assert (high + 0.05) / (low + 0.05) >= 7, f"{answers['text']} on {answers['ground']}"


def check_figures(answers: Any) -> None:
    """Fail if a page has no figures, or if the text of a table, of the annotated source or of a caption is faint.

    The contrast ratio must be at least 4.5, as WCAG requires for text of this size.
    """
    assert answers["colors"]
    for colors in answers["colors"]:
        text, ground = colors.split(" on ")
        low, high = sorted((luminance(ground), luminance(blended(text, ground))))
        assert (high + 0.05) / (low + 0.05) >= 4.5, colors


def blended(color: str, ground: str) -> str:
    """Return the opaque color that an `rgba(...)` color has on a background."""
    *parts, opacity = [float(part) for part in [*re.findall(r"[\d.]+", color), "1"][:4]]
    below = [float(part) for part in re.findall(r"[\d.]+", ground)[:3]]
    mixed = [round(opacity * part + (1 - opacity) * under) for part, under in zip(parts, below, strict=True)]
    return f"rgb({mixed[0]}, {mixed[1]}, {mixed[2]})"


def check_ink(different: Any, parts: int) -> None:
    """Fail if a screenshot is mostly covered, or if one of `parts` horizontal bands of it is blank."""
    # Text and drawings extend over the whole page, and leave most of it blank.
    assert 0.005 < different.mean() < 0.5, different.mean()
    assert all(part.any() for part in np.array_split(different, parts))


def luminance(color: str) -> float:
    """Return the relative luminance of `rgb(...)` as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))
