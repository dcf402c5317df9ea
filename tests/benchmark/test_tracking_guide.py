"""docs/tracking.md: its benchmark and its commands do what the page says, in a folder of their own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "tracking.md").read_text(encoding="utf-8")
GOOD, BAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;", "int i = threadIdx.x * gridDim.x + blockIdx.x;"


def commands():
    """Return the page's pytest commands, in its order."""
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line.partition("pytest ")[2]) for line in shell.splitlines() if "CUDART_PY_DRIVER" in line]


def test_the_guides_gate_passes_the_stored_kernel_and_fails_the_changed_one(tmp_path):
    benchmark = tmp_path / "bench_saxpy.py"
    benchmark.write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    store, compare = commands()

    def run(arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:xdist", *arguments],
            cwd=tmp_path,
            env={**environment, "CUDART_PY_DRIVER": "simulator"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    assert run(store).returncode == 0
    assert run(compare).returncode == 0
    assert GOOD in benchmark.read_text()
    benchmark.write_text(benchmark.read_text().replace(GOOD, BAD))
    failed = run(compare)
    assert failed.returncode == 1, failed.stdout
    (row,) = [line for line in failed.stdout.splitlines() if "sectors " in line and "WORSE" in line]
    shown = next(line for line in PAGE.splitlines() if line.startswith("bench_saxpy.py::test_saxpy"))
    assert row.split() == shown.split()
