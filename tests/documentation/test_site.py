"""The documentation site builds without a warning, and a browser shows its pages from the folder without a server."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from library_tour.pages import gallery
from tests.browser import Browser, check_colors, check_figures, check_width

ROOT = Path(__file__).parents[2]

for package in ("mkdocs", "material", "mkdocstrings"):
    pytest.importorskip(package, reason="what builds the site is not installed (the dependency group docs)")
pytestmark = pytest.mark.exhaustive  # the build takes longer than a test of the default level may


@pytest.fixture(scope="session")
def builder():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import build_site
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return build_site


@pytest.fixture(scope="session")
def site(builder, tmp_path_factory):
    """Return the folder of the site, built once."""
    folder = tmp_path_factory.mktemp("site")
    assert builder.main([str(folder)]) == 0
    return folder


def test_a_link_without_a_target_ends_the_build_and_is_named(builder, tmp_path, capfd):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("[elsewhere](nowhere.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: test\ndocs_dir: pages\n")
    assert builder.build(tmp_path / "mkdocs.yml", tmp_path / "site") == 1
    assert "nowhere.md" in capfd.readouterr().err


def test_each_page_of_the_documentation_and_each_notebook_is_in_the_site(site):
    sources = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in sources}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_links_to_a_notebook_lead_to_its_page_which_has_the_results(site):
    assert 'href="../notebooks/profile_race_fix.html"' in (site / "guide" / "profiling.html").read_text()
    page = (site / "notebooks" / "profile_race_fix.html").read_text()
    assert "The loads use 12.5 % of the bytes that they move" in page
    assert 'href="profile_race_fix.ipynb"' in page


def test_the_gallery_has_each_kernel_of_the_tour_with_its_source(site):
    folder = site / "course" / "kernels"
    index = (folder / "index.html").read_text()
    for source in sorted((ROOT / "kernels").glob("*.cu")):
        page = (folder / f"{source.stem}.html").read_text()
        kernels = gallery.kernel_lines(source.read_text().splitlines())
        assert kernels, source
        for kernel in kernels:
            assert f'href="{source.stem}.html#{kernel}' in index, kernel
            [section] = re.findall(rf'<h2 id="{kernel}">.*?(?=<h2 id=|</article>)', page, re.DOTALL)
            assert "__global__" in re.sub(r"<[^>]*>", "", section), kernel


def test_a_kernel_has_counters_beside_its_lines_and_its_diagram(site):
    page = (site / "course" / "kernels" / "transpose.html").read_text()
    [section] = re.findall(r'<h2 id="transpose_naive">.*?(?=<h2 id=)', page, re.DOTALL)
    lines = re.findall(r'<div class="row" id="transpose_naive-1-1-\d+">(.*?)</div>', section)
    [line] = [line for line in lines if "out[size_t(column)" in re.sub(r"<[^>]*>", "", line)]
    assert dict(re.findall(r'data-head="([^"]*)">([^<]*)<', line))["store efficiency"] == "12.5 %"
    assert re.search(r'<img alt="Store to global memory[^"]*32 sectors', section)


class Links(HTMLParser):
    """The anchors of an HTML page, the targets of its links, and the files that it loads."""

    def __init__(self, page):
        super().__init__()
        self.places, self.leads, self.loads, self.undescribed = set(), set(), set(), []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.places |= {values[name] for name in ("id", "name") if values.get(name)}
        if (tag == "img" and not values.get("alt")) or (values.get("role") == "img" and not values.get("aria-label")):
            self.undescribed.append(values)
        if tag == "a" and values.get("href"):
            self.leads.add(values["href"])
        elif tag in ("script", "img", "iframe", "source") and values.get("src"):
            self.loads.add(values["src"])
        elif tag == "link" and values.get("href"):
            self.loads.add(values["href"])


@pytest.fixture(scope="module")
def links(site):
    """Return the links of each page except 404.html, whose relative links depend on the address that is missing."""
    return {page: Links(page) for page in site.rglob("*.html") if page.name != "404.html"}


def test_each_link_leads_to_a_place_that_exists(links):
    """This includes links within the reference, which MkDocs does not check completely."""
    for page, found in links.items():
        for link in found.leads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), f"{page.name}: {link}"
            if parts.fragment and target in links and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in links[target].places, f"{page.name}: {link}"


def test_each_picture_has_a_description(links):
    assert {page.name: found.undescribed for page, found in links.items() if found.undescribed} == {}


def test_a_name_in_the_text_leads_to_the_reference(links, site):
    arrays, streams = "../reference/arrays.html#cudart_py", "../reference/streams.html#cudart_py"
    assert f"{arrays}.to_device" in links[site / "guide" / "arguments.html"].leads
    assert {f"{arrays}.memcpy", f"{streams}.Stream"} <= links[site / "coming-from" / "cpp.html"].leads
    assert "reference/streams.html#cudart_py.Stream.synchronize" in links[site / "names.html"].leads


def test_a_name_of_another_package_leads_nowhere(site):
    row = re.search(
        r"<td>([^\n]*Device.get_all_devices[^\n]*)</td>", (site / "coming-from" / "cuda-core.html").read_text()
    )
    assert "<a" not in row[1]


def test_a_page_loads_nothing_from_other_places(links):
    for page, found in links.items():
        for link in found.loads:
            parts = urlsplit(link)
            if parts.scheme == "data":  # a picture inside the page
                continue
            assert not parts.scheme, f"{page.name}: {link}"
            assert not parts.netloc, f"{page.name}: {link}"
            assert (page.parent / unquote(parts.path)).is_file(), f"{page.name}: {link}"


SHOWN = [
    "index",
    "course/index",
    "course/kernels/index",
    "course/kernels/transpose",
    "course/kernels/histogram",
    "course/stops/transpose",
    "course/stops/errors",
    "course/stops/matmul",
    "course/stops/streams",
    "course/stops/gemm",
    "notebooks/profile_race_fix",
    "guide/streams",
    "guide/arguments",
    "coming-from/cupy",
    "reference/arrays",
    "architecture",
    "names",
]


def test_pages_fit_the_window_and_fetch_nothing_from_elsewhere(chromium, site):
    pages = [(site / f"{name}.html", width) for name in SHOWN for width in (1400, 390)]
    for (page, width), answers in zip(pages, chromium.visit(pages), strict=True):
        check_width(answers, width)
        assert answers["title"].endswith("cudart-py"), page
        assert all(source.startswith("file:") for source in answers["sources"]), answers["sources"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(tmp_path, site, dark):
    # A new browser, since the pages remember the color scheme that was used last.
    pages = ["index", "course/kernels/index", "course/kernels/transpose", "course/stops/errors"]
    home, *others = Browser(tmp_path).visit([(site / f"{page}.html", 1000) for page in pages], dark=dark)
    check_colors(home, dark=dark)
    for answers in others:
        check_colors(answers, dark=dark)
        check_figures(answers)


def test_the_search_finds_pages_from_the_folder(chromium, site):
    address = f"{(site / 'index.html').as_uri()}?q=cluster"
    shown = chromium.run("--virtual-time-budget=20000", "--dump-dom", address)
    assert re.search(r'href="[^"]*/guide/launches\.html\?h=cluster', shown)
