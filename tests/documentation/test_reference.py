"""The reference has every public name once, and says something of each."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import cudart_py as cuda
from cudart_py import benchmark, libraries
from cudart_py.benchmark import pytest_plugin
from cudart_py.context.limits import Limits

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in Path(__file__).parents[2].glob("docs/reference/*.md")}
# Those of a module and of a string have headings, since they have no docstring that could be shown.
BY_HAND = Counter(f"cudart_py.{name}" for name in re.findall(r"^## `?(\w+)`?$", PAGES["driver"], re.MULTILINE))
NAMED = Counter(name for text in PAGES.values() for name in re.findall(r"^::: (\S+)", text, re.MULTILINE)) + BY_HAND


@pytest.mark.parametrize("package", [cuda, benchmark, pytest_plugin, libraries], ids=lambda package: package.__name__)
def test_every_public_name_is_there_once(package):
    found = Counter({name: count for name, count in NAMED.items() if name.rpartition(".")[0] == package.__name__})
    del found["cudart_py.errors"]  # of which the page shows the tree
    assert found == Counter(f"{package.__name__}.{name}" for name in package.__all__)


def test_the_pages_are_listed_on_their_first_page():
    assert set(re.findall(r"\]\((\w+)\.md\)", PAGES["index"])) == set(PAGES) - {"index"}


def test_the_limits_of_a_device_are_all_there():
    assert set(re.findall(r"^\| `(\w+)`", PAGES["devices"], re.MULTILINE)) == {
        name for name in vars(Limits) if not name.startswith("_")
    }
