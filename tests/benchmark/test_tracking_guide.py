"""docs/tracking.md: its benchmark and its commands do what the page says, run in a temporary folder."""

import re
import shlex
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs" / "tracking.md").read_text(encoding="utf-8")
GOOD, BAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;", "int i = threadIdx.x * gridDim.x + blockIdx.x;"
BENCHMARK = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
PLAIN = "\n\ndef test_plain():\n    open('ran', 'w').close()\n"


def commands():
    """Return the page's pytest commands, in the order of the page."""
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line.partition("pytest ")[2]) for line in shell.splitlines() if "CUDART_PY_DRIVER" in line]


@pytest.mark.needs("profile")
def test_the_guides_gate_passes_the_stored_kernel_and_fails_the_changed_one(run, pytester):
    store, compare = commands()

    def gate(source, arguments):
        (pytester.path / "bench_saxpy.py").write_text(source)
        return run("", *arguments)

    assert GOOD in BENCHMARK
    assert gate(BENCHMARK, store).ret == 0
    assert gate(BENCHMARK, compare).ret == 0
    failed = gate(BENCHMARK.replace(GOOD, BAD), compare)
    assert failed.ret == 1
    (row,) = [line for line in failed.outlines if "sectors " in line and "WORSE" in line]
    shown = next(line for line in PAGE.splitlines() if line.startswith("bench_saxpy.py::test_saxpy"))
    assert row.split() == shown.split()


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("--benchmark-compare-fail=mean:5%", "--benchmark-compare-fail limits times"),
        ("--counters-compare-fail=sectors:5%", "cannot be used with pytest-xdist"),
    ],
)
def test_a_limit_is_refused_in_one_line_under_xdist_too(run, pytester, monkeypatch, limit, said):
    monkeypatch.setenv("CUDART_PY_DRIVER", "simulator")
    source = "def test_work(gpu_benchmark):\n    gpu_benchmark(list)\n" + PLAIN
    refused = run(source, "-p", "xdist.plugin", "-n", "1", "--benchmark-compare", limit, "-W", "ignore")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in refused.errlines if line.startswith("ERROR")]
    assert said in line
    assert "Traceback" not in refused.stdout.str() + refused.stderr.str()
    assert not (pytester.path / "ran").exists()
