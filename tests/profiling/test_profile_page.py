"""Advice: each rule finds its own mistake and no other. And the HTML page of a profile, as a browser shows it."""

import re
from html import unescape

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling import LaunchProfile, LineProfile
from cudart_py.profiling.advice import advise_on
from cudart_py.profiling.columns import GROUPS, choose
from cudart_py.profiling.report.page import profile_page
from cudart_py.profiling.report.source_table import heading
from cudart_py.profiling.source_lines import hot_lines, sources_of
from tests.browser import check_colors, check_ink, check_width
from tests.profiling.conftest import KERNELS

pytestmark = pytest.mark.needs("profile")
WIDTHS = (320, 760, 1400)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """Two profiles of two kernels with one mistake each, from a file with a long path, markup and a long line.

    The second profile has recorded a warp of each launch.
    """
    folder = tmp_path_factory.mktemp("a-folder-with-a-name-that-is-as-long-as-names-of-folders-are")
    path = folder / "slow.cu"
    path.write_text(KERNELS + "// " + "x" * 300 + "\n")
    module = cuda.compile(path)
    data, out = cuda.to_device(np.ones((64, 64), np.float32)), cuda.empty((64, 64), np.float32)
    with cuda.profile() as plain, cuda.profile(record_warp=0) as drawn:
        for name in ("transpose", "tiled"):
            module[name][(2, 2), (32, 32)](out, data, 64)
    return plain, drawn


@pytest.fixture(scope="module")
def launches(profiles):
    return profiles[0].launches


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
    assert cells[4]["load efficiency"] == "100.0 %"
    assert cells[4]["store efficiency"] == "12.5 %"
    assert cells[13]["bank conflicts"] == "3,968"
    assert cells[3]["load efficiency"] == ""


def test_hot_lines_are_ranked_and_lead_to_the_source(html):
    table = re.search(r'<table class="hot">(.*?)</table>', html, re.DOTALL)[1]
    links = re.findall(r'href="#([\w-]+)"', table)
    assert links[:2] == ["source-1-4", "source-1-13"]
    assert all(f'id="{link}"' in html for link in links)
    shares = [float(share) for share in re.findall(r"([\d.]+) %</td><td class=\"name\">", table)]
    assert shares == sorted(shares, reverse=True)


def test_advice_has_its_rule_and_the_limits_are_said(html):
    assert re.search(
        r'<ul class="advice">.*Rule: stores of more than 1.*shared memory take 32.0 times', html, re.DOTALL
    )
    assert texts(html, "div", "row advised")
    assert "No cache is modelled" in html


def test_a_heading_that_is_divided_in_text_is_whole_on_the_page():
    assert heading(GROUPS["instructions"][0]) == "warp instructions"
    assert heading(GROUPS["lanes"][0]) == "active lanes"


def test_each_access_is_drawn_below_its_line_where_a_warp_was_recorded(profiles, html):
    pattern = r'id="source-1-(\d+)">(?:(?!id=").)*?</div><div class="row drawn">(.*?</details>)</div></div>'
    rows = dict(re.findall(pattern, profile_page(profiles[1].launches, "drawn"), re.DOTALL))
    captions = {int(number): re.findall(r"<summary>(.*?)</summary>", row) for number, row in rows.items()}
    assert set(captions) == {4, 9, 13}
    assert captions[4] == [
        "4 sectors, 128 of 128 bytes used (100 %).",
        "32 sectors, 128 of 1,024 bytes written (12.5 %).",
    ]
    assert captions[13][0].startswith("32 wavefronts for 32 words")
    assert "row drawn" not in html


def test_a_notebook_has_the_diagrams_of_the_lines_with_advice(profiles):
    plain, drawn = profiles
    assert "32 sectors, 128 of 1,024 bytes written" in drawn._repr_html_()
    assert "<svg" not in plain.launches[0]._repr_html_()


def test_a_source_without_its_text_has_the_figures_by_line():
    metrics = {"smsp__inst_executed.sum": 4, "smsp__thread_inst_executed.sum": 64}
    line = LineProfile("gone.cu", 7, metrics)
    page = profile_page([LaunchProfile("k", (1, 1, 1), (32, 1, 1), {}, (line,))], "gone")
    assert "The text of this source is not available." in page
    assert '<span class="number">7</span>' in page


def test_the_page_does_not_scroll_sideways_fetches_nothing_and_is_seen_in_light_and_dark(
    html, profiles, launches, chromium
):
    """At no width does it scroll, even with open diagrams or all metrics."""
    opened = profile_page(profiles[1].launches, "drawn").replace('class="drawn"', 'class="drawn" open')
    assert opened.count(" open>") > 3
    columns = choose(["*__*"], launches[0].metrics)
    assert len(columns) > 40
    pages = [(page, width) for page in (html, opened, profile_page(launches, "all", columns)) for width in WIDTHS]
    light = chromium.look(pages)
    for (_, width), seen in zip(pages, light, strict=True):
        check_width(seen, width)
    for dark, seen in ((False, light[0]), (True, chromium.look(pages[:1], dark=True)[0])):
        check_colors(seen, dark=dark)
        assert seen["fetched"] == 0
        check_ink(chromium.ink(html, 500, 1000, dark=dark), 4)


# One kernel per line, so that each line gets its own advice.
MISTAKES = """
extern "C" __global__ void strided(float* x) { x[threadIdx.x * 8] = 1; }
extern "C" __global__ void gathered(float* x) { x[threadIdx.x] = x[threadIdx.x * 8]; }
extern "C" __global__ void broadcast(float* x) { x[threadIdx.x] = x[600]; }
extern "C" __global__ void shifted(float* x) { x[threadIdx.x] = x[threadIdx.x + 513]; }
extern "C" __global__ void conflicts(float* x) { __shared__ float s[32][32]; s[threadIdx.x % 32][threadIdx.x / 32] = 1; __syncthreads(); x[threadIdx.x] = s[0][threadIdx.x / 32]; }
extern "C" __global__ void histogram(unsigned* x) { __shared__ unsigned s[64]; s[threadIdx.x % 64] = 0; __syncthreads(); for (int k = 0; k < 9; k++) atomicAdd(&s[x[threadIdx.x] + threadIdx.x % 4], 1u); __syncthreads(); x[threadIdx.x] = s[threadIdx.x % 64]; }
extern "C" __global__ void idle(float* x) { if (threadIdx.x % 32 < 8) for (int k = 0; k < 9; k++) x[threadIdx.x] = sinf(x[threadIdx.x]); }
extern "C" __global__ void contended(float* x) { atomicAdd(&x[threadIdx.x % 2], 1.0f); }
extern "C" __global__ void local(float* x) { float own[8]; for (int k = 0; k < 8; k++) own[k] = x[k * 256 + threadIdx.x]; x[threadIdx.x] = own[(int)x[threadIdx.x + 256] & 7]; }
extern "C" __global__ void fine(float* x) { x[threadIdx.x] = 2 * x[threadIdx.x + 512]; }
extern "C" __global__ void wide(float4* x) { x[threadIdx.x] = x[threadIdx.x + 256]; }
extern "C" __global__ void bytes(unsigned char* x) { x[threadIdx.x] = x[threadIdx.x + 512]; }
extern "C" __global__ void one_thread(float* x) { if (threadIdx.x == 0) x[0] = x[1] + 1; }
extern "C" __global__ void copy(const float* in, float* out, int columns, int stride) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns)
        out[blockIdx.y * stride + column] = in[blockIdx.y * stride + column];
}
"""  # noqa: E501  # one kernel per line, each with its own advice


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(MISTAKES)


def advice(launch, dtype=np.float32):
    """Return the sentences of advice on a launch that works on zeros, by rule."""
    x = cuda.zeros(4096, dtype)
    with cuda.sanitizer("off"), cuda.profile() as p:
        launch(x)
        cuda.current_device().synchronize()
    return {found.rule: found.sentence for found in advise_on(hot_lines(sources_of(p.launches)))}


@pytest.mark.parametrize(
    ("kernel", "rule", "figure"),
    [
        ("strided", "stores of more than 1 sector", "12.5 %"),
        ("gathered", "loads of more than 1 sector", "12.5 %"),
        ("broadcast", "loads of one sector", "12.5 %"),
        ("shifted", "loads with at least 28 active lanes", "80.0 %"),
        ("conflicts", "accesses to shared memory", "pad each row"),
        ("histogram", "atomics in shared memory", "its own histogram"),
        ("idle", "fewer than 20 active lanes", "of 32 lanes"),
        ("contended", "atomics of global memory", "16.0 sectors"),
        ("local", "requests to local memory", "requests go to local memory"),
        ("fine", None, None),
        ("wide", None, None),
        ("bytes", None, None),
        ("one_thread", None, None),
    ],
)
def test_a_rule_finds_its_mistake_and_code_without_one_gets_no_advice_on_its_memory(
    device, kernels, kernel, rule, figure
):
    found = advice(kernels[kernel][1, 256], {"histogram": np.uint32, "bytes": np.uint8}.get(kernel, np.float32))
    if rule is None:
        assert not [rule for rule in found if "active lanes" not in rule]
    else:
        (sentence,) = [sentence for name, sentence in found.items() if rule in name]
        assert figure in sentence
    assert kernel != "histogram" or not any("pad each row" in sentence for sentence in found.values())


@pytest.mark.parametrize("columns", [257, 259, 389, 515])
def test_rows_that_begin_inside_a_sector_get_advice_although_their_last_warps_are_partly_idle(device, kernels, columns):
    rows, aligned = 8, -(-columns // 8) * 8
    x, y = (cuda.zeros(rows * aligned, np.float32) for _ in range(2))
    launch = kernels["copy"][(-(-columns // 128), rows), 128]
    for stride in (columns, aligned):
        with cuda.profile() as p:
            launch(x, y, columns, stride)
        sentences = [found.sentence for found in advise_on(hot_lines(sources_of(p.launches)))]
        advised = [sentence for sentence in sentences if "Begin rows at multiples of 32 bytes" in sentence]
        assert [sentence.split()[1] for sentence in advised] == (["loads", "stores"] if stride == columns else [])


def test_lines_that_hardly_count_get_no_advice(device, kernels):
    def launches(x):
        kernels["strided"][1, 32](x)
        for _ in range(200):
            kernels["fine"][1, 256](x)

    assert advice(launches) == {}


def test_lines_of_cudas_headers_get_no_advice(device, tmp_path, monkeypatch):
    header = tmp_path / "include" / "slow.cuh"
    header.parent.mkdir()
    header.write_text("__device__ void spread(float* x) {\n    x[threadIdx.x * 8] = 1;\n}\n")
    source = '#include <slow.cuh>\nextern "C" __global__ void k(float* x) { spread(x); }\n'
    kernel = cuda.compile(source, include=[header.parent])["k"]
    assert len(advice(kernel[1, 256])) == 1
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert advice(kernel[1, 256]) == {}
