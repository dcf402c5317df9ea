"""The HTML pages of a run: their text, and their display in narrow and wide windows, light and dark."""

import re
from html import unescape
from pathlib import Path

import pytest

import cudart_py as cuda
from library_tour import glossary, lesson, path, plots, record, recorded, stops
from library_tour.pages import folder, tables
from library_tour.runner import Outcome
from library_tour.stop import Check, Curve, Result, Row
from tests.browser import check_colors, check_figures, check_ink, check_width
from tests.tour.outcomes import outcome

pytestmark = pytest.mark.xdist_group("transpose")


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Path:
    """Return a folder with the pages of two stops, and of one that has no lesson and texts with markup."""
    place = tmp_path_factory.mktemp("pages")
    environment = record.environment(cuda.Device(0))
    strange = Result(
        [Row("a <b> name", {"ms": 1.5, "says": "x & y"}, Check("<i>", False, "it is <u>"), "a <note>")],
        notes=["That <is> all."],
        pictures=[Curve(name, "x", "y", {"l": [(1, 1), (2, 4)]}) for name in ("growth", "loss")],
    )
    idea = Outcome("idea", "What <it> shows", 1000, "grains", 0.1, "failed", strange)
    outcomes = [outcome("transpose"), outcome("memset"), idea]
    with pytest.MonkeyPatch.context() as patch:
        on_the_path(patch, "transpose", "idea", "memset")
        for count in range(1, len(outcomes) + 1):
            folder.write_stop(place, outcomes[:count], environment)
        folder.write_index(place, outcomes, environment)
    return place


def on_the_path(patch, *names: str) -> None:
    places = [path.Place(name, "advanced", 25, ["occupancy"]) for name in names]
    patch.setattr(path, "CHAPTERS", [path.Chapter("Rest", "rest.", []), path.Chapter("All <i>", "do all.", places)])


@pytest.fixture
def transpose(pages):
    return (pages / "transpose.html").read_text()


def plain(html: str) -> str:
    without_links = re.sub(r"</?a\b[^>]*>", "", html)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", without_links)).split())


def test_a_page_has_every_part_of_the_lesson_and_marks_the_lines_that_a_step_changes(transpose):
    text = plain(transpose)
    of = lesson.load("transpose")
    parts = [*of.learn, *(step.text for step in of.steps), *of.look_at, of.exercise.task, of.exercise.answer, of.course]
    for part in parts:
        assert " ".join(part.replace("`", " ").split()) in text or part.replace("`", "") in text, part
    steps = re.findall(r'<h3 id="step-.*?(?=<h3 id="step-|</section>)', transpose, re.DOTALL)
    assert len(steps) == len(of.steps)
    naive = re.findall(r'<span class="line changed">(.*?)\n</span>', steps[1], re.DOTALL)
    assert len(naive) == 1
    assert "out [ size_t ( column ) * rows + row ]" in plain(naive[0])
    assert "library-tour exercise transpose transpose.cu" in transpose
    assert "<summary>Solution</summary>" in transpose


def test_the_figures_of_this_machine_stand_beside_the_recorded_ones(transpose):
    table = re.search(r'<table class="rows">(.*?)</table>', transpose, re.DOTALL)[1]
    groups = re.findall(r'<th class="group"[^>]*>(.*?)</th>', table)
    assert groups == [f"This machine: {cuda.Device(0).name}", recorded.machine()]
    [row] = [plain(row) for row in re.findall(r"<tr>(.*?)</tr>", table) if ">naive<" in row]
    [known] = [row for row in recorded.result(recorded.stop("transpose")).rows if row.name == "naive"]
    assert f"{known.values['GB/s']:,.0f}" in row
    assert "right" in row


def test_rows_of_one_machine_alone_leave_the_others_cells_empty():
    table = tables.beside({"one": [Row("a", {"ms": 1})], "two": [Row("b", {"ms": 2}), Row("a", {"ms": 3})]})
    rows = [[line.name, *(cell.text for cell in line.cells)] for line in table.rows]
    assert rows == [["a", "1", "3"], ["b", "", "2"]]
    # Figures of the recorded course run appear only once.
    rows = [Row("a", {"ms": 1, "course GB/s": 165})]
    [line] = tables.beside({"one": rows, "two": rows}).rows
    assert [cell.text for cell in line.cells].count("165") == 1


def test_text_is_shown_as_it_is_and_pictures_are_in_the_page(pages):
    html = (pages / "idea.html").read_text()
    for markup in ("<b>", "<i>", "<u>", "<it>", "<note>", "<is>"):
        assert markup not in html
    assert "it is &lt;u&gt;" in html
    assert "x &amp; y" in html
    if plots.importlib.util.find_spec("matplotlib"):
        assert html.count('<img src="data:image/svg+xml;base64,') == 2


def test_without_matplotlib_a_page_says_what_brings_pictures(monkeypatch, pages, tmp_path):
    monkeypatch.setattr(plots.importlib.util, "find_spec", lambda name: None)
    on_the_path(monkeypatch, "idea")
    done = Outcome("idea", "What it shows", None, "", 0.1, "passed", Result([Row("a")]))
    html = folder.write_stop(tmp_path, [done], record.environment(cuda.Device(0))).read_text()
    assert "pip install 'cudart-py[plot]'" in unescape(html)


def test_a_page_says_where_its_stop_is_and_links_to_its_neighbours(pages):
    """The links include the stop that ran next, whose page did not exist when this page was first written."""
    for name, neighbours in (("transpose", ["idea"]), ("idea", ["transpose", "memset"]), ("memset", ["idea"])):
        html = (pages / f"{name}.html").read_text()
        chapter = (
            '<a href="index.html#2-all-i">Chapter 2 of 2</a>, All &lt;i&gt;: advanced, 25 minutes, after occupancy.'
        )
        assert chapter in html
        [links] = re.findall(r'<nav class="neighbours">(.*?)</nav>', html)
        assert re.findall(r'href="(\w+)\.html"', links) == neighbours
    index = (pages / "index.html").read_text()
    assert re.findall(r'<section id="2-all-i"><h2>(.*?)</h2>', index) == ["2. All &lt;i&gt;"]
    assert re.findall(r'href="(\w+)\.html"', index) == ["glossary", "transpose", "idea", "memset"]


def test_the_index_keeps_the_pages_of_earlier_runs(tmp_path):
    environment = record.environment(cuda.Device(0))
    for name in ("reduction", "heat"):
        done = Outcome(name, f"<{name}>", None, "", 0.1, "passed", Result([Row("a")]))
        folder.write_stop(tmp_path, [done], environment)
        folder.write_index(tmp_path, [done], environment)
    index = (tmp_path / "index.html").read_text()
    rows = {name: plain(row) for name, row in re.findall(r'<tr><td><a href="(\w+)\.html">(.*?)</tr>', index)}
    assert rows["reduction"].startswith(f"reduction {stops.load('reduction').TITLE}")
    assert rows["reduction"].endswith("min from an earlier run")
    assert rows["heat"].startswith("heat <heat>")
    assert rows["heat"].endswith("min passed")


def test_the_glossary_is_beside_the_pages(pages):
    terms = re.findall(r'<dt id="([\w-]+)">', (pages / "glossary.html").read_text())
    assert set(terms) == {term.anchor for term in glossary.terms().values()}


def test_links_among_the_pages_lead_somewhere(pages):
    for page in pages.glob("*.html"):
        for link, place in re.findall(r'href="([^"#]+)(?:#([^"]+))?"', page.read_text()):
            assert (pages / link).exists(), link
            assert not place or f'id="{place}"' in (pages / link).read_text(), f"{link}#{place}"


def test_pages_do_not_scroll_sideways_and_fetch_nothing_and_light_text_is_readable(pages, transpose, chromium):
    html = [(pages / f"{page}.html").read_text() for page in ("index", "transpose", "memset", "idea", "glossary")]
    shown = [(text, width) for text in html for width in (320, 760, 1400)]
    *all_looked, light = chromium.look([*shown, (transpose, 1000)])
    for (_, width), looked in zip(shown, all_looked, strict=True):
        check_width(looked, width)
        assert looked["fetched"] == 0
    check_readable(light, dark=False)


def test_dark_text_is_readable(transpose, chromium):
    [dark] = chromium.look([(transpose, 1000)], dark=True)
    check_readable(dark, dark=True)


def check_readable(looked, *, dark: bool) -> None:
    check_colors(looked, dark=dark)
    check_figures(looked)


@pytest.mark.parametrize(("width", "dark"), [(500, False), (1300, True)])
def test_no_page_is_blank(transpose, chromium, width, dark):
    check_ink(chromium.ink(transpose, width, 4000, dark=dark), 8)
