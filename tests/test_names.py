"""docs/names.md: every function of the runtime and the driver is there, and says truly what becomes of it here."""

from __future__ import annotations

import ast
import fnmatch
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from cuda.bindings import driver, runtime

import cudart_py as cuda
from cudart_py.simulator import driver as simulator

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| runtime"))
]


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


def functions(module, prefix):
    return sorted(
        name
        for name in dir(module)
        if re.match(rf"{prefix}[A-Z]", name)
        and callable(getattr(module, name))
        and not isinstance(getattr(module, name), type)
    )


@pytest.mark.parametrize(
    ("module", "prefix", "column"), [(runtime, "cuda", 0), (driver, "cu", 1)], ids=["runtime", "driver"]
)
def test_no_function_is_missing(module, prefix, column):
    named = [name for row in ROWS for name in quoted(row[column])]
    exact = {name for name in named if "*" not in name}
    patterns = [name for name in named if "*" in name]
    missing = [
        name
        for name in functions(module, prefix)
        if name not in exact and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]
    assert not missing


# Templates, macros and functions of C++ alone, which the bindings cannot have.
OF_CPP = re.compile(r"cuda(LaunchKernel|LaunchCooperative|Occupancy|FuncGet|Memcpy(To|From)Symbol|GetSymbol)")


@pytest.mark.skipif(
    tuple(map(int, version("cuda-bindings").split(".")[:2])) < (13, 4),
    reason="the page names functions of CUDA 13.4, which older bindings lack",
)
@pytest.mark.parametrize(("module", "column"), [(runtime, 0), (driver, 1)], ids=["runtime", "driver"])
def test_no_function_is_made_up(module, column):
    names = dir(module)
    for name in (name for row in ROWS for name in quoted(row[column])):
        assert fnmatch.filter(names, name) or OF_CPP.match(name), name


def called_functions():
    """Return the driver's functions that the toolkit calls through `api` or `raw`."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "cudart_py").rglob("*.py"))]
    return {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("api", "raw")
        and re.match("cu[A-Z]", node.attr)
    }


def rows_of(function):
    """Return the rows that name a function of the driver, or those with a pattern for it where none does."""
    exact = [row for row in ROWS if function in quoted(row[1])]
    return exact or [row for row in ROWS if any(fnmatch.fnmatchcase(function, name) for name in quoted(row[1]))]


@pytest.mark.parametrize("function", sorted(called_functions()))
def test_no_function_that_the_toolkit_calls_is_left_out(function):
    for row in rows_of(function):
        assert not row[2].startswith("left out"), (
            f"give {function} a row of its own, which names what calls it; unless the row begins with 'used by' or "
            "'done', also add the call to CALLS or UNTIMED of tests/benchmarks/peers/host_calls.py"
        )


def test_the_simulator_has_every_function_that_the_toolkit_calls():
    assert called_functions() <= set(vars(simulator))


OURS = sorted({name for row in ROWS for name in quoted(row[2]) if re.fullmatch(r"\w+(\.\w+)?", name)})


@pytest.mark.parametrize("name", OURS)
def test_every_name_of_ours_exists(name):
    first, _, second = name.partition(".")
    assert first in cuda.__all__
    found = getattr(cuda, first)
    assert not second or hasattr(found, second) or second in getattr(found, "__annotations__", {})


def test_a_row_says_what_to_use_or_why_not():
    for row in ROWS:
        assert len(row) == 3, row
        assert row[2], row
        assert row[2].startswith(("left out: ", "done ", "used by ")) or quoted(row[2]), row


def test_the_pages_raw_call_runs(device):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {"cuda": cuda}
    exec(example, names)  # the page's own lines
    assert names["flags"] == driver.CUstream_flags.CU_STREAM_NON_BLOCKING


def test_the_page_counts_with_several_devices_and_with_handles_of_the_simulator():
    assert "one context there is" not in PAGE
    assert "since there is one context" not in PAGE
    assert "its handles are numbers of its own" in PAGE
