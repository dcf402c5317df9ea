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


def test_each_page_of_the_documentation_is_in_the_site(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}
