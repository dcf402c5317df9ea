"""Collect only the files that have exhaustive tests for `-m exhaustive`, instead of all of them.

A file has such tests only if its source contains the word. The default level, which collects every file, checks that
(`tests/test_levels.py`).
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

WORD = "exhaustive"
# The files of the collected tests that have the mark.
MARKED = pytest.StashKey[set[Path]]()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore a file without the word if only exhaustive tests are to run, unless the command line names the file."""
    if config.getoption("markexpr") != WORD or collection_path.suffix != ".py":
        return None
    named = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    return None if collection_path in named or has_word(collection_path) else True


def has_word(path: Path) -> bool:
    """Return whether a file's source contains the word."""
    return WORD in path.read_text(encoding="utf-8")


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Note which files have exhaustive tests, before pytest deselects them."""
    config.stash[MARKED] = {item.path for item in items if item.get_closest_marker(WORD)}
