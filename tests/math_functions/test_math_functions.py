"""All of CUDA's math functions are within the documented bounds, and the exact ones right to the bit.

The references are values of higher precision, and integers and fractions where a result is exact: nothing of the
project's. `python -m tests.math_functions` does the same with millions of arguments.
"""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests import processors
from tests.math_functions import harness, precise
from tests.math_functions.samples import Arguments, arguments
from tests.math_functions.table import DOUBLE, SINGLE, Function
from tests.simulator.ptx.machine import ptx_of

COUNT, SEED = 768, 33
module_of = cache(lambda kind: harness.module_of(SINGLE if kind is np.float32 else DOUBLE, kind))


@cache
def samples(kind: Any) -> Arguments:
    return arguments(kind, COUNT, SEED)


def arguments_of(function: Function, kind: Any) -> Arguments:
    """Return a function's arguments, the recorded ones where its values are recorded."""
    name = function.name.partition("(")[0]
    if kind is np.float64 and name in precise.NAMES:
        x, _ = precise.recorded()[name]
        return Arguments(x, x, x, x, np.zeros(len(x), np.int32))
    return samples(kind)


# Some functions run with machine code for other processors too, for which LLVM writes the most different code.
AT_EACH_LEVEL = {
    np.float32: {
        "asinh", "atan", "atan2", "cbrt", "copysign", "erf", "exp", "fdim", "fmod", "fmax", "frexp", "lgamma", "log",
        "pow", "remainder", "remquo", "round", "sin", "__fmaf_rz", "__fadd_rd", "__fdividef",
    },
    np.float64: {"atan", "copysign", "exp", "fma", "fmod", "hypot", "llrint", "log", "rsqrt"},
}  # fmt: skip  # lists of names
CASES = [
    pytest.param(
        function,
        kind,
        engine,
        id=f"{engine}-{function.name}-{kind.__name__}".replace(" ", ""),
        # Machine code for doubles takes longest to compile, and some runs below.
        marks=pytest.mark.exhaustive if engine == "native" and kind is np.float64 else (),
    )
    for engine in ("numpy", "native")
    for kind, functions in ((np.float32, SINGLE), (np.float64, DOUBLE))
    for function in functions
]
# LLVM takes seconds for the machine code of these in double precision; the script runs it.
SLOW_TO_COMPILE = {"jn(128, x)", "tgamma", "y0", "y1", "yn(3, x)"}


def check(function: Function, kind: Any) -> None:
    given = arguments_of(function, kind)
    found = harness.compare(function, given, harness.run(module_of(kind), function, given))
    assert not found.broken, "\n".join(found.broken)


@pytest.mark.parametrize(("function", "kind", "engine"), CASES)
def test_a_function_is_within_its_bound(
    function: Function, kind: Any, engine: str, device: cuda.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "native":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
        if "in_process" not in cuda.capabilities():
            pytest.skip("a GPU has one engine")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    if engine == "native" and kind is np.float64 and function.name in SLOW_TO_COMPILE:
        pytest.skip("its machine code takes seconds to compile; `python -m tests.math_functions` runs it")
    check(function, kind)


def test_a_result_that_is_off_is_found() -> None:
    """The comparison itself: one bit, the sign of a zero, a NaN, an integer."""
    given = samples(np.float32)
    (root,) = (one for one in SINGLE if one.name == "sqrt")
    with np.errstate(all="ignore"):
        right = np.sqrt(given.x)
    place = int(np.flatnonzero(given.x == 0)[0])
    wholes = np.zeros(len(given), np.int64)
    assert not harness.compare(root, given, (right, wholes)).broken
    for change in (lambda v: np.nextafter(v, np.float32(9)), lambda v: -v, lambda v: v * np.float32(np.nan)):
        wrong = right.copy()
        wrong[place] = change(wrong[place])
        assert len(harness.compare(root, given, (wrong, wholes)).broken) == 1
    assert harness.compare(root, given, (right, wholes + 1)).broken


# --- each level of the processor's features and of LLVM's optimisation


def chosen(kind: Any) -> list[Function]:
    return [one for one in (SINGLE if kind is np.float32 else DOUBLE) if one.name in AT_EACH_LEVEL[kind]]


@pytest.mark.parametrize("processor_level", processors.ONE_BY_DEFAULT, ids=str, indirect=True)
@pytest.mark.parametrize("kind", AT_EACH_LEVEL)
def test_functions_are_within_their_bounds_at_each_level(
    kind: Any, processor_level: processors.Level, device: cuda.Device
) -> None:
    assert len(chosen(kind)) == len(AT_EACH_LEVEL[kind])
    for function in chosen(kind):
        check(function, kind)


@pytest.mark.parametrize("kind", [np.float64, pytest.param(np.float32, marks=pytest.mark.exhaustive)])
def test_code_for_avx512_is_not_taken_for_wrong(kind: Any) -> None:
    """On any x86-64 processor: such code would be compiled again, without optimisation."""
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    if platform.machine() != "x86_64":
        pytest.skip("the instructions are those of x86-64")
    from cudart_py.simulator.ptx.native import defects, machine
    from cudart_py.simulator.ptx.native.instances import lay_out

    entries = load_module(ptx_of(harness.source_of(chosen(kind), kind))).entries
    with processors.compiled_for(processors.Level("x86-64-v4", 2)):
        for name, entry in entries.items():
            program = program_of(entry)
            module, _, _ = machine.build(program, lay_out(program, 1024))
            assert not defects.may_be_wrong(machine._object(module, 2)), name
