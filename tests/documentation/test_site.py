"""The documentation's site builds without a warning, and a browser shows its pages from the folder alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

for package in ("mkdocs", "material", "mkdocstrings"):
    pytest.importorskip(package, reason="what builds the site is not installed (the dependency group docs)")


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


def test_each_page_of_the_documentation_is_in_the_site(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}
