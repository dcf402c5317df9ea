"""The gallery of kernels, made from runs of stops on a driver with counters; and notebooks as pages."""

import re

import pytest

from library_tour.pages import gallery, simulated
from library_tour.pages.notebooks import notebook_page
from library_tour.runner import Outcome
from library_tour.stop import Result, Size


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the pages of two stops at a small size, and their index."""
    folder = tmp_path_factory.mktemp("kernels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated.stops.load("transpose"), "SIZE", Size("rows", 128, 128))
        runs = [simulated.run(name) for name in ("transpose", "device_query")]
    assert gallery.write(folder, runs) == ["transpose"]
    return {page.stem: page.read_text() for page in folder.glob("*.md")}


@pytest.mark.needs("profile")
def test_the_index_compares_kernels_and_names_the_extremes(pages):
    rows = dict(
        re.findall(r'<tr><td class="name"><a href="transpose.html#[\w-]+">(.*?)</a></td>(.*)</tr>', pages["index"])
    )
    cells = {name: re.findall(r"<td[^>]*>([^<]*)</td>", row) for name, row in rows.items()}
    assert cells["transpose_naive"][5:7] == ["100.0 %", "12.5 %"]
    assert int(cells["transpose_tile&lt;0&gt;"][7].replace(",", "")) > 0 == int(cells["transpose_tile&lt;1&gt;"][7])
    [worst] = re.findall(r"\*\*Stores that use the smallest share.*?\[(.*?)\]", pages["index"])
    assert worst == r"transpose\_naive"


@pytest.mark.needs("profile")
def test_instances_of_a_template_have_a_section_each_and_share_their_diagrams(pages):
    [section] = re.findall(r"## transpose\\_tile \{.*?(?=\n## )", pages["transpose"], re.DOTALL)
    assert re.findall(r"<summary>(.*?)</summary>", section) == ["transpose_tile&lt;0&gt;", "transpose_tile&lt;1&gt;"]
    assert len(re.findall(r"!\[.*?\]\(pictures/transpose-diagram-\d\.svg\)", section)) == 4


def test_instances_are_in_the_order_of_their_numbers(tmp_path):
    outcome = Outcome("copies", "Copies", None, "", 0.1, "passed", Result([]))
    kernels = [simulated.KernelRun(f"fill<{count}>", 1, {}, ()) for count in (8, 16, 2)]
    gallery.write(tmp_path, [simulated.StopRun("a machine", outcome, kernels, ())])
    page = (tmp_path / "copies.md").read_text()
    assert re.findall(r"<summary>fill&lt;(\d+)&gt;", page) == ["2", "8", "16"]


def test_a_kernel_that_was_not_launched_is_shown_wherever_its_name_is(tmp_path, monkeypatch):
    code = ["template <int n>", "__global__ void __launch_bounds__(256)", "    sum(int* x)", "{", "    x[0] = n;", "}"]
    monkeypatch.setattr(gallery, "_code", lambda stop: code)
    outcome = Outcome("sums", "Sums", None, "", 0.1, "passed", Result([]))
    gallery.write(tmp_path, [simulated.StopRun("a machine", outcome, [simulated.KernelRun("add", 1, {}, ())], ())])
    assert "__launch_bounds__(256)\n    sum(int* x)\n{" in (tmp_path / "sums.md").read_text()


def test_a_definition_has_its_comment_and_template_and_ends_with_its_brace():
    texts = """struct A { int a; };

#if 1
// Adds.
template <int n>
__global__ void add(int* x)
{
    int y = x[0];

#pragma unroll
    for (int i = 0; i < n; i++)
        x[0] += y;
}
#endif
int other;""".splitlines()
    assert [gallery.definition(texts, number) for number in (4, 6, 7, 12, 13)] == [range(4, 14)] * 5


def test_a_notebook_has_the_text_code_and_results_of_its_cells():
    outputs = [
        {"output_type": "stream", "text": ["one\n", "two"]},
        {"output_type": "display_data", "data": {"text/plain": "x", "text/html": "<b>x</b>"}},
        {"output_type": "error", "traceback": ["\x1b[31mZeroDivisionError\x1b[0m"]},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "1 / 0", "outputs": outputs},
    ]
    text = notebook_page({"cells": cells}, "n.ipynb")
    assert "# Title\ntext" in text
    assert "[the notebook](n.ipynb)" in text
    assert "```{ .python }\n1 / 0\n```" in text
    assert "```{ .text }\none\ntwo\n```" in text
    assert '<div class="cell-result"><b>x</b></div>' in text
    assert "```{ .text }\nZeroDivisionError\n```" in text
