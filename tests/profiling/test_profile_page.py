"""The page of a profile: what it says, and how a browser shows it in narrow and wide windows, light and dark."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling.columns import choose
from cudart_py.profiling.report.page import profile_page
from tests.browser import check_colors, check_ink, check_width
from tests.profiling.conftest import KERNELS

pytestmark = pytest.mark.needs("profile")


@pytest.fixture(scope="module")
def launches(tmp_path_factory):
    """Two kernels with a mistake each, in a file with a long name, markup and a long line."""
    folder = tmp_path_factory.mktemp("a-folder-with-a-name-that-is-as-long-as-names-of-folders-are")
    path = folder / "slow.cu"
    path.write_text(KERNELS + "// " + "x" * 300 + "\n")
    module = cuda.compile(path)
    data, out = cuda.to_device(np.ones((64, 64), np.float32)), cuda.empty((64, 64), np.float32)
    with cuda.profile() as p:
        for name in ("transpose", "tiled"):
            module[name][(2, 2), (32, 32)](out, data, 64)
    return p.launches


@pytest.fixture(scope="module")
def html(launches):
    return profile_page(launches, "Profile of <slow>")


def texts(html, tag, kind):
    found = re.findall(rf'<{tag} class="{kind}"[^>]*>(.*?)</{tag}>', html, re.DOTALL)
    return [unescape(re.sub(r"<.*?>", "", text)) for text in found]


def test_the_source_is_shown_as_it_is(html):
    code = texts(html, "span", "code")
    assert code[0] == '// A transpose, and <b>markup</b> & a "quotation" that pages must show as they are.'
    assert code[3] == "    out[x * n + y] = in[y * n + x];"
    assert "<b>" not in html
    assert "<slow>" not in html


def test_each_access_has_its_efficiency(html):
    rows = re.findall(r'<div class="row[^"]*" id="source-1-(\d+)">(.*?)</div>', html)
    cells = {int(number): dict(re.findall(r'data-head="([^"]*)">([^<]*)<', row)) for number, row in rows}
    assert cells[4]["used by loads"] == "100.0 %"
    assert cells[4]["used by stores"] == "12.5 %"
    assert cells[13]["bank conflicts"] == "3,968"
    assert cells[3]["used by loads"] == ""


def test_hot_lines_are_ranked_and_lead_to_the_source(html):
    table = re.search(r'<table class="hot">(.*?)</table>', html, re.DOTALL)[1]
    links = re.findall(r'href="#([\w-]+)"', table)
    assert links[:2] == ["source-1-13", "source-1-4"]
    assert all(f'id="{link}"' in html for link in links)
    shares = [float(share) for share in re.findall(r"([\d.]+) %</td><td class=\"name\">", table)]
    assert shares == sorted(shares, reverse=True)


def test_advice_has_its_rule_and_the_limits_are_said(html):
    assert re.search(
        r'<ul class="advice">.*Shared memory makes 32.0 passes.*Rule: stores of more than 1', html, re.DOTALL
    )
    assert texts(html, "div", "row advised")
    assert "No cache is modelled" in html


def test_a_source_without_its_text_has_the_figures_by_line():
    line = cuda.LineProfile("gone.cu", 7, {"smsp__inst_executed.sum": 4, "smsp__thread_inst_executed.sum": 64})
    page = profile_page([cuda.LaunchProfile("k", (1, 1, 1), (32, 1, 1), {}, (line,))], "gone")
    assert "The text of this source is not at hand." in page
    assert '<span class="number">7</span>' in page


@pytest.mark.parametrize("width", [320, 760, 1400])
def test_the_page_does_not_scroll_sideways_also_with_all_metrics_by_their_long_names(html, launches, chromium, width):
    check_width(chromium.look(html, width), width)
    columns = choose(["*__*"], launches[0].metrics)
    assert len(columns) > 40
    assert chromium.look(profile_page(launches, "all", columns), width)["scrolled"] <= width


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_seen_in_light_and_dark_and_fetches_nothing(html, chromium, dark):
    seen = chromium.look(html, 1000, dark=dark)
    check_colors(seen, dark=dark)
    assert seen["fetched"] == 0
    check_ink(chromium.ink(html, 500, 1000, dark=dark), 4)
