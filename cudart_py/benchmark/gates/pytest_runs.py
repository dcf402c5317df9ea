"""Runs of a project's benchmarks with pytest, each in a new process, whose results are read back as stored runs."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# The descriptor of standard error, which a new process can use as its standard output.
_STANDARD_ERROR = 2
PLUGIN = "cudart_py.benchmark.pytest_plugin"
NOT_INSTALLED = "benchmarks need pytest-benchmark, which is not installed: pip install pytest-benchmark"


class PytestFailedError(Exception):
    """Pytest did not pass, or measured nothing: its exit status, its output if not shown, and where it ran."""

    def __init__(self, status: int, output: str, directory: Path | None = None) -> None:
        super().__init__(f"pytest ended with status {status}")
        self.status = status
        self.output = output
        self.directory = directory


def can_run() -> bool:
    """Return whether pytest-benchmark is installed in the present environment; `NOT_INSTALLED` says if not."""
    return find_spec("pytest_benchmark") is not None


@dataclass(frozen=True)
class PytestRuns:
    """Runs benchmarks with pytest.

    - `arguments`: pytest's arguments, such as files and options.
    - `results`: the folder for the results.
    - `python`: the interpreter of the environment that has pytest and the plugin.
    - `directory`: the working directory, by default the present one.
    - `variables`: environment variables that replace the present ones, by default none.
    - `to_standard_error`: whether pytest's output goes to standard error instead of standard output.
    """

    arguments: Sequence[str]
    results: Path
    python: str = sys.executable
    directory: Path | None = None
    variables: Mapping[str, str] | None = None
    to_standard_error: bool = False
    _numbers: Iterator[int] = field(default_factory=itertools.count, repr=False)

    def take(self, *options: str, names: Sequence[str] = (), silent: bool = False) -> dict[str, Any]:
        """Run the benchmarks, or only those with these full names, and return the run as pytest-benchmark stores it.

        With `silent`, pytest's output is not shown. Raises PytestFailedError if a test fails or nothing is measured.
        """
        file = self.results / f"{next(self._numbers)}.json"
        command = [self.python, "-m", "pytest", *_plugin(self.python), *self.arguments]
        command += ["--benchmark-enable", "--benchmark-only", f"--benchmark-json={file}", *options]
        if names:
            chosen = self.results / "names.txt"
            chosen.write_text("\n".join(names), encoding="utf-8")
            command += [f"--benchmark-select={chosen}"]
        output = subprocess.PIPE if silent else _STANDARD_ERROR if self.to_standard_error else None
        errors = subprocess.PIPE if silent else None
        done = subprocess.run(
            command, stdout=output, stderr=errors, text=True, check=False, cwd=self.directory, env=self.variables
        )
        if done.returncode or not file.exists():
            raise PytestFailedError(done.returncode, (done.stdout or "") + (done.stderr or ""), self.directory)
        return dict(json.loads(file.read_text(encoding="utf-8")))


def _plugin(python: str) -> list[str]:
    """Return pytest's options that load the plugin, or none if an installed distribution loads it."""
    if python != sys.executable:
        return []  # an environment in which the package was installed
    loaded = {point.value for point in entry_points(group="pytest11")}
    return [] if PLUGIN in loaded else ["-p", PLUGIN]
