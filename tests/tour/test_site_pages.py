"""The course's pages of the documentation's site, as Markdown; the site's own tests build them."""

import re
from pathlib import Path

import pytest

from library_tour import lesson, path, recorded, stops
from library_tour.pages import pictures, site
from library_tour.stop import Result, Row

pytestmark = pytest.mark.xdist_group("pages of the site")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return a folder with the pages of all stops, without pictures, which take long."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "available", lambda: False)
        assert [page.stem for page in site.write(folder)] == list(stops.names())
    return folder


def test_every_stop_has_a_page_with_its_title_and_what_it_prints(pages):
    for name in stops.names():
        text = (pages / f"{name}.md").read_text()
        assert text.startswith(f"# {name}\n")
        assert f"library-tour run {name}" in text or name in stops.LIBRARIES, name
        assert f"library-tour exercise {name} {lesson.start(name).name}" in text
        assert '??? note "Solution"' in text, name


def test_a_page_says_where_its_stop_is_and_links_to_its_neighbours(pages):
    text = (pages / "transpose.md").read_text()
    assert "[Chapter 4](../index.md#4-access-patterns), Access patterns: intermediate, 35 minutes, after " in text
    assert "after [variables](variables.md), [coalescing](coalescing.md)." in text
    assert text.endswith("Previous: [aliasing](aliasing.md) · Next: [bank\\_conflicts](bank_conflicts.md)\n")


def test_the_page_of_the_course_has_every_stop_and_route():
    page = Path(site.__file__).parents[2] / "docs" / "course" / "index.md"
    text = site.index(page.read_text())
    assert re.findall(r"^\| \[.*?\]\(stops/(\w+)\.md\)", text, re.MULTILINE) == list(stops.names())
    for route in path.ROUTES.values():
        [links] = re.findall(rf"^\*\*{re.escape(route.title)}.*\n\n(.*)$", text, re.MULTILINE)
        assert re.findall(r"stops/(\w+)\.md", links) == route.names
    assert text.count("\n### ") == len(path.CHAPTERS) == 9
    assert "nine chapters" in text


def test_changed_lines_are_numbered_within_their_block_and_the_recorded_figures_are_a_table(pages):
    text = (pages / "transpose.md").read_text()
    [options, block] = re.search(r"```\{ .cuda (linenums=\"52\"[^}]*)\}\n(.*?)```", text, re.DOTALL).groups()
    marked = int(re.search(r'hl_lines="(\d+)"', options)[1])
    assert "out[size_t(column) * rows + row]" in block.splitlines()[marked - 1]
    assert recorded.machine() in text
    [known] = [row for row in recorded.result(recorded.stop("transpose")).rows if row.name == "naive"]
    assert re.search(rf"^\| naive \| .*{known.values['GB/s']:,.0f}", text, re.MULTILINE)


def test_names_are_no_markup_in_a_table():
    [table] = site._tables(Result([Row("a*b_c|d<e>", {"ms": 1.5, "[x]": "`"}), Row("without values")]))
    assert table.splitlines()[-1] == r"| a\*b\_c&#124;d&lt;e> | 1.50 | \` |"
    assert table.splitlines()[0] == r"| | ms | \[x\] |"


def test_pictures_lie_beside_the_page(tmp_path):
    if not pictures.available():
        pytest.skip("matplotlib is not installed (the extra plot)")
    (tmp_path / site.PICTURES).mkdir()
    result = recorded.result(recorded.stop("transpose"))
    link, caption = site._pictures("transpose", result, tmp_path)
    assert link == f"![{caption.strip('*')}](pictures/transpose.svg)"
    assert caption.startswith("*The bars show the rate in GB/s for 8 variants.")
    assert (tmp_path / "pictures" / "transpose.svg").stat().st_size > 1000
