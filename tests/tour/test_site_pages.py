"""The course's pages of the documentation site, as Markdown; the site's own tests build them."""

import re
from pathlib import Path

import pytest

from library_tour import lesson, path, recorded, stops
from library_tour.diagrams.drawn import StepDiagram
from library_tour.pages import pictures, rendering, site
from library_tour.stop import Result, Row
from tests.tour import outcomes

pytestmark = pytest.mark.xdist_group("pages of the site")


def test_every_stop_has_a_page_with_its_title_and_exercise(site_pages):
    for name, text in site_pages.items():
        assert text.splitlines().count("# " + name.replace("_", r"\_")) == 1, name
        assert f"library-tour exercise {name} {lesson.start(name).name}" in text
        assert '??? note "Solution"' in text, name


def test_a_page_says_where_its_stop_is_and_links_to_its_neighbours_and_kernels(site_pages):
    text = site_pages["transpose"]
    assert "[Chapter 4 of 9](../index.md#4-access-patterns), Access patterns: intermediate, 35 minutes, after " in text
    assert "after [variables](variables.md), [coalescing](coalescing.md)." in text
    assert "(../kernels/transpose.md)" in text
    assert text.strip().endswith("Previous: [aliasing](aliasing.md) · Next: [bank\\_conflicts](bank_conflicts.md)")
    assert "../kernels/" not in site_pages["copies"]


def test_the_page_of_the_course_has_every_stop_and_route():
    page = Path(site.__file__).parents[2] / "docs" / "course" / "index.md"
    text = site.with_chapters(page.read_text())
    assert re.findall(r"^\| \[.*?\]\(stops/(\w+)\.md\)", text, re.MULTILINE) == list(stops.names())
    for route in path.ROUTES.values():
        [links] = re.findall(rf"^\*\*{re.escape(route.title)}.*\n\n(.*)$", text, re.MULTILINE)
        assert re.findall(r"stops/(\w+)\.md", links) == route.names
    assert text.count("\n### ") == len(path.CHAPTERS) == 9
    assert "nine chapters" in text


def test_changed_lines_are_numbered_within_their_block(site_pages):
    [options, block] = re.search(
        r"```\{ .cuda (linenums=\"52\"[^}]*)\}\n(.*?)```", site_pages["transpose"], re.DOTALL
    ).groups()
    marked = int(re.search(r'hl_lines="(\d+)"', options)[1])
    assert "out[size_t(column) * rows + row]" in block.splitlines()[marked - 1]


def test_the_recorded_figures_stand_beside_those_of_the_run(site_pages):
    [table] = re.findall(r'<table class="rows">.*?</table>', site_pages["transpose"], re.DOTALL)
    assert re.findall(r'class="group"[^>]*>([^<]*)<', table) == [outcomes.MACHINE, recorded.machine()]
    [known] = [row for row in recorded.result(recorded.stop("transpose")).rows if row.name == "naive"]
    [row] = [row for row in re.findall(r"<tr>(.*?)</tr>", table) if ">naive<" in row]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", row)
    assert cells[:3] == ["naive", "12.5 %", "right"]
    assert f"{known.values['GB/s']:,.0f}" in cells


def test_notes_are_text_in_which_only_lines_of_a_program_are_code(tmp_path):
    note = "IllegalAddressError: out of bounds <x>\n    27 | *where = value;\nThe context is lost."
    text = site.page_of(outcomes.site_run("errors", Result([Row("a*b", note=note)], notes=["One *note*."])), tmp_path)
    notes = re.findall(r'<div class="note">\n(.*?)\n</div>', text, re.DOTALL)
    assert notes[0].splitlines() == [
        "<p><strong>a*b</strong>: IllegalAddressError: out of bounds &lt;x&gt;</p>",
        "<p><code>27 | *where = value;</code></p>",
        "<p>The context is lost.</p>",
    ]
    assert notes[1] == "<p>One *note*.</p>"


def test_a_diagram_is_a_file_with_its_description(tmp_path):
    [step] = [step.name for step in lesson.load("transpose").steps][:1]
    diagram = StepDiagram(step, "See *this*.", "It shows [a] thing.", "text", "<svg/>", "copy_plain")
    text = site.page_of(outcomes.site_run("transpose", diagrams=[diagram]), tmp_path)
    assert r"![It shows \[a\] thing.](pictures/transpose-diagram-1.svg)" in text
    assert r"See \*this\*." in text
    assert (tmp_path / "pictures" / "transpose-diagram-1.svg").read_text() == "<svg/>"


def test_names_are_no_markup_in_markdown():
    assert rendering.markup.plain("a*b_c|d<e> [x] `") == r"a\*b\_c&#124;d&lt;e> \[x\] \`"


def test_charts_lie_beside_the_page(tmp_path):
    if not pictures.available():
        pytest.skip("matplotlib is not installed (the extra plot)")
    result = recorded.result(recorded.stop("transpose"))
    [chart] = pictures.Beside(tmp_path, "pictures").charts("transpose", {outcomes.MACHINE: result})
    assert (chart.address, chart.machine) == ("pictures/transpose-1.svg", outcomes.MACHINE)
    assert chart.described.startswith("The bars show the rate in GB/s for 8 variants.")
    assert (tmp_path / "transpose-1.svg").stat().st_size > 1000
