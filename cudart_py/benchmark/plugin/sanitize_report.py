"""The report of a pytest run on the mistakes in kernels that the simulator has found: `--sanitize-report=FILE`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from ...findings.records import Finding, collected
from ...findings.reports import printed_text, write_file

# The key of a worker's findings in its output to the process that started it.
_KEY = "cudart_py_findings"


class SanitizeReport:
    """A plugin that collects the findings of a session, including those of pytest-xdist's workers, and writes them."""

    def __init__(self, path: str, format: str) -> None:
        self._path = path
        self._format = format
        self._found: list[Finding] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Iterator[None]:
        """Collect while the tests run, and write or pass on what was found, even if the session was interrupted."""
        try:
            with collected() as found:
                return (yield)
        finally:
            self._found += found
            output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
            if output is not None:
                output[_KEY] = [asdict(finding) for finding in found]
            else:
                self._write()

    def _write(self) -> None:
        try:
            write_file(self._found, self._path, self._format)
        except OSError as error:
            raise pytest.UsageError(f"--sanitize-report: {self._path} cannot be written: {error.strerror}") from None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the findings of a worker that has ended."""
        for data in getattr(node, "workeroutput", {}).get(_KEY, ()):
            pairs = {name: tuple(data[name]) for name in ("origin", "site")}
            self._found.append(Finding(**{**data, **pairs}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what belongs on standard output. GitHub recognises an annotation only at the beginning of a line."""
        text = printed_text(self._found, self._path, self._format)
        if text:
            terminalreporter.ensure_newline()
            terminalreporter.write(text, flush=True)
