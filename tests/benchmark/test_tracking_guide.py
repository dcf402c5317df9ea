"""docs/tracking.md: its benchmark and its commands do what the page says, in a folder of their own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tracking.md").read_text(encoding="utf-8")
GOOD, BAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;", "int i = threadIdx.x * gridDim.x + blockIdx.x;"


def commands():
    """Return the page's pytest commands, in its order."""
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line.partition("pytest ")[2]) for line in shell.splitlines() if "CUDART_PY_DRIVER" in line]


@pytest.fixture
def benchmark_file(tmp_path):
    """The page's benchmark, in a folder of its own."""
    path = tmp_path / "bench_saxpy.py"
    path.write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    assert GOOD in path.read_text()
    return path


def run(folder, arguments, *, xdist=False):
    """Run pytest on the simulator."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *([] if xdist else ["-p", "no:xdist"]), *arguments],
        cwd=folder,
        env={**environment, "CUDART_PY_DRIVER": "simulator"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_guides_gate_passes_the_stored_kernel_and_fails_the_changed_one(tmp_path, benchmark_file):
    store, compare = commands()
    assert run(tmp_path, store).returncode == 0
    assert run(tmp_path, compare).returncode == 0
    benchmark_file.write_text(benchmark_file.read_text().replace(GOOD, BAD))
    failed = run(tmp_path, compare)
    assert failed.returncode == 1, failed.stdout
    (row,) = [line for line in failed.stdout.splitlines() if "sectors " in line and "WORSE" in line]
    shown = next(line for line in PAGE.splitlines() if line.startswith("bench_saxpy.py::test_saxpy"))
    assert row.split() == shown.split()


def test_a_limit_of_times_is_refused_where_nothing_is_timed(tmp_path, benchmark_file):
    store, compare = commands()
    assert run(tmp_path, store).returncode == 0
    limited = [*(word for word in compare if "fail" not in word), "--benchmark-compare-fail=mean:5%"]
    refused = run(tmp_path, limited)
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR, refused.stdout
    assert "--benchmark-compare-fail limits times" in refused.stderr
    assert "--counters-compare-fail=sectors:5%" in refused.stderr


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("--benchmark-compare-fail=mean:5%", "--benchmark-compare-fail limits times"),
        ("--counters-compare-fail=sectors:5%", "cannot be used with pytest-xdist"),
    ],
)
def test_a_limit_is_refused_in_one_line_under_xdist_too(tmp_path, benchmark_file, limit, said):
    benchmark_file.write_text(benchmark_file.read_text() + "\n\ndef test_plain():\n    open('ran', 'w').close()\n")
    refused = run(tmp_path, ["-n", "2", benchmark_file.name, "--benchmark-compare", limit], xdist=True)
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR, refused.stdout
    (line,) = [line for line in refused.stderr.splitlines() if line.startswith("ERROR")]
    assert said in line
    assert "Traceback" not in refused.stdout + refused.stderr
    assert not (tmp_path / "ran").exists()
