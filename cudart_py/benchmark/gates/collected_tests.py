"""The tests that pytest has collected, to tell a benchmark that is gone from one that was not asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest


class CollectedTests:
    """The tests that pytest found before any was left out, by `-k` for example, and the files that it found them in."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath
        folder = config.invocation_params.dir
        # Of a file that is followed by a test's name only that test is collected.
        self._in_part = {
            (folder / argument.partition("::")[0]).resolve() for argument in config.args if "::" in argument
        }
        self._names: set[str] = set()
        self._files: set[Path] = set()

    def add(self, items: Iterable[pytest.Item]) -> None:
        """Note tests that were found."""
        for item in items:
            self._names.add(item.nodeid)
            self._files.add(self._file(item.nodeid))

    def lacks(self, name: str) -> bool:
        """Return whether a test of this full name is gone: it is not in its file, or the file is not there."""
        file = self._file(name)
        if name in self._names or file in self._in_part:
            return False
        return file in self._files or not file.exists()

    def _file(self, name: str) -> Path:
        return (self._root / name.partition("::")[0]).resolve()
