"""The tests that pytest has collected, to distinguish benchmarks that are gone from benchmarks not selected."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest


class CollectedTests:
    """The tests that pytest found before deselecting any, for example by `-k`, and the files that it found them in."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath
        folder = config.invocation_params.dir
        # If an argument is FILE::TEST, pytest collects only that test from the file.
        self._in_part = {
            (folder / argument.partition("::")[0]).resolve() for argument in config.args if "::" in argument
        }
        self._items: dict[str, pytest.Item] = {}
        self._files: set[Path] = set()

    def add(self, items: Iterable[pytest.Item]) -> None:
        """Record collected tests. This must be fast, because there may be thousands of tests and few benchmarks."""
        found = {item.nodeid: item for item in items}
        self._items |= found
        self._files |= {self._file(path) for path in {name.partition("::")[0] for name in found}}

    def lacks(self, name: str) -> bool:
        """Return whether the test with this full name is gone: it is no longer in its file, or the file is gone."""
        file = self._file(name)
        if name in self._items or file in self._in_part:
            return False
        return file in self._files or not file.exists()

    def place(self, name: str) -> tuple[str, int]:
        """Return the file and the line of the test with this full name, which has been collected."""
        # pytest counts lines from 0, and knows none for some items of other plugins.
        return str(self._file(name)), (self._items[name].location[1] or 0) + 1

    def _file(self, name: str) -> Path:
        return (self._root / name.partition("::")[0]).resolve()
