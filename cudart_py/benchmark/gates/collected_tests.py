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
        self._lines: dict[str, int] = {}
        self._files: set[Path] = set()

    def add(self, items: Iterable[pytest.Item]) -> None:
        """Record collected tests."""
        for item in items:
            # pytest counts lines from 0, and knows none for some items of other plugins.
            self._lines[item.nodeid] = (item.location[1] or 0) + 1
            self._files.add(self._file(item.nodeid))

    def lacks(self, name: str) -> bool:
        """Return whether the test with this full name is gone: it is no longer in its file, or the file is gone."""
        file = self._file(name)
        if name in self._lines or file in self._in_part:
            return False
        return file in self._files or not file.exists()

    def place(self, name: str) -> tuple[str, int]:
        """Return the file and the line of the test with this full name, which has been collected."""
        return str(self._file(name)), self._lines[name]

    def _file(self, name: str) -> Path:
        return (self._root / name.partition("::")[0]).resolve()
