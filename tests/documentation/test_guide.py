"""The guide's pages begin with a program, and its table names all of them in the order of the site's menu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documentation.blocks import blocks_of

DOCS = Path(__file__).parents[2] / "docs"
INDEX = DOCS / "guide" / "index.md"
PAGES = sorted(path for path in (DOCS / "guide").glob("*.md") if path != INDEX)


def name_of(path):
    return path.name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_begins_with_a_program_that_runs(page):
    heading = page.read_text(encoding="utf-8").partition("\n## ")[0].count("\n")
    first = [block for block in blocks_of(page) if block.language == "python" and block.line < heading]
    assert first
    assert not any(block.mark.startswith("not run") for block in first)


def test_the_guides_table_names_all_pages_in_the_order_of_the_menu():
    listed = re.findall(r"^\| \[[^]]+\]\(([\w-]+\.md)\)", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    menu = re.findall(r"- guide/([\w-]+\.md)$", (DOCS / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == [page.name for page in PAGES]
    assert ["index.md", *listed] == menu
