"""Learn by coverage which tests execute which lines of a few modules, and how long each test takes.

    python scripts/mutation_coverage.py FOLDER --modules MODULE... --tests TEST...

runs the tests once, in the current folder, and leaves two files in FOLDER, which `Record` reads. A test that fails or
is skipped is left out, and so is what tests do in processes of their own, which coverage does not see.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import functools
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path

import coverage
import pytest

__all__ = ["MOST_SECONDS", "MOST_TESTS", "Record", "statement"]

_LINES = "lines.sqlite"
_SECONDS = "seconds.json"
MOST_TESTS = 400
MOST_SECONDS = 20


class _Recorder:
    """A pytest plugin that makes each test a context of coverage, and keeps the seconds of those that pass."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = {}
        self.left_out: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        self._measured.switch_context(item.nodeid)
        began = time.monotonic()
        handled = yield
        self.seconds[item.nodeid] = time.monotonic() - began
        self._measured.switch_context("")
        return handled

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.left_out.add(report.nodeid)


class Record:
    """What was learnt in a folder about the modules of a clone."""

    def __init__(self, folder: Path, clone: Path) -> None:
        self._clone = clone
        self._data = coverage.CoverageData(str(folder / _LINES))
        self._data.read()
        self.seconds: dict[str, float] = json.loads((folder / _SECONDS).read_text())

    @staticmethod
    def exists(folder: Path) -> bool:
        """Tell whether a folder has a whole record."""
        return (folder / _SECONDS).exists()

    @functools.cache  # noqa: B019  # there is one record in a process
    def _tests_by_line(self, module: str) -> dict[int, set[str]]:
        found = self._data.contexts_by_lineno(str(self._clone / module))
        return {line: self.seconds.keys() & set(tests) for line, tests in found.items()}

    def choose(self, module: str, line: int, own: Sequence[str]) -> list[str]:
        """Return the tests to run for a mutant of a line of a module, whose own test files are given, in their order.

        First come the tests of the module's own files that execute the line's statement, all of them; of a line that
        none executes, since the import does, all tests of the module's own files. Then come other
        tests that execute the statement, those of its own files that execute nothing of the module, since what they do
        may be in a process of its own, and those that execute anything else of the module, while there are no more than
        `MOST_TESTS` that take `MOST_SECONDS`. Of each test function the quickest case comes first, then of each
        the next one. The tests of one file stay together, since they share what the file makes for them once.
        """
        by_line = self._tests_by_line(module)
        near = set[str]().union(*(by_line.get(each, ()) for each in statement(self._clone / module, line)))
        if not near:  # what is executed at import alone, such as a constant
            near = {test for test in self.seconds if _file(test) in own}
        seen = set[str]().union(*by_line.values())
        apart = {test for test in self.seconds if _file(test) in own} - seen
        ordered = sorted(seen | apart, key=lambda test: (test not in near, test not in apart, self.seconds[test]))
        cases: Counter[str] = Counter()
        ranks = {}
        for test in ordered:
            function = test.partition("[")[0]
            ranks[test] = (test not in near, test not in apart, _file(test) not in own, cases[function])
            cases[function] += 1
        ordered.sort(key=ranks.__getitem__)
        total = list(itertools.accumulate(self.seconds[test] for test in ordered))
        own_near = sum(test in near and _file(test) in own for test in ordered)
        chosen = ordered[: max(own_near, min(MOST_TESTS, bisect.bisect(total, MOST_SECONDS)))]
        files = list(dict.fromkeys(map(_file, chosen)))
        return sorted(chosen, key=lambda test: files.index(_file(test)))


def _file(test: str) -> str:
    return test.partition("::")[0]


def statement(path: Path, line: int) -> range:
    """Return the lines of the statement that a line belongs to.

    Of one that has others in it those are the lines of its head, and of a function's head, which the import executes,
    those of its body.
    """
    inside = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    innermost = max(inside, key=lambda node: node.lineno, default=None)
    if innermost is None:
        return range(line, line + 1)
    if isinstance(innermost, ast.FunctionDef) and line < innermost.body[0].lineno:
        return range(innermost.body[0].lineno, (innermost.end_lineno or line) + 1)
    nested = [node.lineno for node in ast.walk(innermost) if isinstance(node, ast.stmt) and node is not innermost]
    lines = range(innermost.lineno, min(nested, default=(innermost.end_lineno or line) + 1))
    # Neither an `except` nor a `case` is a statement.
    return lines if line in lines else range(line, line + 1)


def main() -> int:
    """Run the tests and leave the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--modules", nargs="+", required=True)
    parser.add_argument("--tests", nargs="+", required=True)
    options = parser.parse_args()
    lines = options.folder / _LINES
    measured = coverage.Coverage(
        data_file=str(lines), include=[str(Path(module).resolve()) for module in options.modules], config_file=False
    )
    measured.erase()
    recorder = _Recorder(measured)
    measured.start()
    status = pytest.main(["-q", "-p", "no:cacheprovider", *options.tests], plugins=[recorder])
    measured.stop()
    measured.save()
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return int(status)
    passed = {test: seconds for test, seconds in recorder.seconds.items() if test not in recorder.left_out}
    (options.folder / _SECONDS).write_text(json.dumps(passed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
