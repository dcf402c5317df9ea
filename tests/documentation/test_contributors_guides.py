"""The guides to adding a driver call and a library function name files that exist, and run the tests of their lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Tests that notice what a reader has left out, by guide.
NOTICES = {
    "adding-a-driver-call": {"tests/documentation", "tests/test_names.py", "tests/fuzz/test_arguments.py"},
    "adding-a-library-function": {"tests/documentation", "tests/test_enumerators.py", "tests/fuzz/test_arguments.py"},
}


def text_of(guide: str) -> str:
    return (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("guide", NOTICES)
def test_a_guide_names_files_that_exist(guide: str) -> None:
    named = re.findall(r"`((?:cudart_py|scripts|tests|docs)/[\w./-]+)`", text_of(guide))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("guide", NOTICES)
def test_a_guides_commands_run_the_tests_of_its_lists(guide: str) -> None:
    commands = re.findall(r"^    uv run pytest -q (.*)$", text_of(guide), re.MULTILINE)
    named = {path for command in commands for path in command.split()}
    assert named >= NOTICES[guide]
    assert [path for path in named if not (ROOT / path).exists()] == []
