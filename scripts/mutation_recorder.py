"""A plugin of pytest for scripts/mutation_test.py: record the lines that each test executes, and its duration.

Each worker of pytest-xdist writes two files into the folder that MUTATION_RECORD names: `lines.sqlite.` and its name
(coverage.py's data, with a context for each test), and its name and `.seconds.json`. A test that fails or is skipped
has no duration. Code that a test runs in another process is not recorded.
"""

import json
import math
import os
import sys
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest
from mutated_modules import MODULES


class Recorder:
    """The lines that one worker's tests execute, and the duration of each test."""

    def __init__(self, folder: Path, worker: str) -> None:
        modules = [str(Path(module).resolve()) for module in MODULES]
        lines = str(folder / "lines.sqlite")
        self._measured = coverage.Coverage(data_file=lines, data_suffix=worker, include=modules, config_file=False)
        self._seconds: dict[str, float] = {}
        self._saved = folder / f"{worker}.seconds.json"
        self._measured.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        """Run a test in its coverage context."""
        if sys.gettrace() is None:  # an exception in the tracer, such as a signal handler's, has ended it
            self._measured.stop()
            self._measured.start()
        self._measured.switch_context(item.nodeid)
        self._seconds[item.nodeid] = 0
        handled = yield
        self._measured.switch_context("")
        return handled

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds of a test's setup, call and teardown; a failed or skipped phase counts as infinite."""
        self._seconds[report.nodeid] += report.duration if report.passed else math.inf

    def pytest_sessionfinish(self) -> None:
        """Save what was recorded."""
        self._measured.stop()
        self._measured.save()
        self._saved.write_text(json.dumps({test: s for test, s in self._seconds.items() if s < math.inf}))


def pytest_configure(config: pytest.Config) -> None:
    """Record in the workers, which run the tests."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        config.pluginmanager.register(Recorder(Path(os.environ["MUTATION_RECORD"]), worker))
