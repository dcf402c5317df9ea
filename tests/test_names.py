"""docs/names.md lists every function of the runtime and the driver, and says correctly what replaces it here."""

import fnmatch
import functools
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from cuda.bindings import driver, runtime

import cudart_py as cuda
import cudart_py.checkpoints
import cudart_py.coredumps
import cudart_py.green_contexts
import cudart_py.multicast
from cudart_py.simulator import driver as simulator
from tests.tables import quoted, rows

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
ROWS = [row for row in rows(PAGE) if row[0] != "runtime"]


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
    known = re.compile("|".join(fnmatch.translate(name) for name in named))
    assert [name for name in functions(module, prefix) if not known.match(name)] == []


# Templates, macros and functions that exist only in C++, which the bindings cannot have.
OF_CPP = re.compile(r"cuda(LaunchKernel|LaunchCooperative|Occupancy|FuncGet|Memcpy(To|From)Symbol|GetSymbol)")


@pytest.mark.skipif(
    tuple(map(int, version("cuda-bindings").split(".")[:2])) < (13, 5),
    reason="the page names functions of CUDA 13.5, which older bindings lack",
)
@pytest.mark.parametrize(("module", "column"), [(runtime, 0), (driver, 1)], ids=["runtime", "driver"])
def test_no_function_is_made_up(module, column):
    names = dir(module)
    for name in (name for row in ROWS for name in quoted(row[column])):
        assert fnmatch.filter(names, name) or OF_CPP.match(name), name


@functools.cache
def called_functions():
    """Return the driver's functions that the toolkit calls through `api` or `raw`."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "cudart_py").rglob("*.py")]
    return {name for source in sources for name in re.findall(r"\b(?:api|raw)\.(cu[A-Z]\w*)", source)}


def rows_of(function):
    """Return the rows that name a driver function, or the rows with a pattern that matches it if no row names it."""
    exact = [row for row in ROWS if function in quoted(row[1])]
    return exact or [row for row in ROWS if any(fnmatch.fnmatchcase(function, name) for name in quoted(row[1]))]


def test_no_function_that_the_toolkit_calls_is_left_out_or_missing_in_the_simulator():
    called = called_functions()
    assert len(called) > 100
    left_out = [name for name in called for row in rows_of(name) if row[2].startswith("left out")]
    assert not left_out, (
        "give each a row of its own, which names what calls it; unless the row begins with 'used by' or 'done', also "
        "add the call to CALLS or UNTIMED of the benchmarks of host calls"
    )
    assert called <= set(vars(simulator))


def exists(name):
    owner, _, last = name.rpartition(".")
    found = functools.reduce(lambda thing, part: getattr(thing, part, None), owner.split(".") if owner else (), cuda)
    return last in getattr(found, "__all__", ()) or (
        found is not cuda and (hasattr(found, last) or last in getattr(found, "__annotations__", {}))
    )


def test_every_name_of_ours_exists():
    ours = {name for row in ROWS for name in quoted(row[2]) if re.fullmatch(r"\w+(\.\w+)*", name)}
    assert [name for name in ours if not exists(name)] == []


def test_a_row_says_what_to_use_or_why_not():
    for row in ROWS:
        assert len(row) == 3, row
        assert row[2], row
        assert row[2].startswith(("left out: ", "done ", "used by ")) or quoted(row[2]), row
