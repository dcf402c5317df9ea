"""All of CUDA's math functions are within the documented bounds, and exact functions are correct to the bit.

The references are values of higher precision, or integers and fractions where a result is exact.
`python -m tests.math_functions` does the same with millions of arguments.
"""

import platform
from functools import cache
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests import processors, tables
from tests.math_functions import __main__ as script
from tests.math_functions import harness, precise
from tests.math_functions.samples import Arguments, arguments
from tests.math_functions.table import DOUBLE, SINGLE, Function
from tests.simulator.ptx.machine import ptx_of

COUNT, SEED = 512, 33
FUNCTIONS = {np.float32: SINGLE, np.float64: DOUBLE}
# Functions that also run as machine code, for several x86-64 levels, between which LLVM's code for them differs most.
AT_EACH_LEVEL = {
    "asinh", "atan", "atan2", "cbrt", "copysign", "erf", "exp", "fdim", "fma", "fmod", "fmax", "frexp", "hypot",
    "lgamma", "llrint", "log", "pow", "remainder", "remquo", "round", "rsqrt", "sin", "x / y", "__fmaf_rz",
    "__fadd_rd", "__fdividef",
}  # fmt: skip  # a list of names
CHOSEN = {kind: [one for one in functions if one.name in AT_EACH_LEVEL] for kind, functions in FUNCTIONS.items()}
CASES = [
    pytest.param(function, kind, id=f"{function.name}-{kind.__name__}".replace(" ", ""))
    for kind, functions in FUNCTIONS.items()
    for function in functions
]
# The engine's usual machine code.
HOST = processors.Level("host", 2)
# LLVM takes seconds to compile these in double precision; only the script runs their machine code.
SLOW_TO_COMPILE = {"jn(128, x)", "tgamma", "y0", "y1", "yn(3, x)"}

module_of = cache(lambda kind: harness.module_of(FUNCTIONS[kind], kind))
samples = cache(lambda kind: arguments(kind, COUNT, SEED))


@cache
def expected(function: Function, kind: Any) -> tuple[Arguments, Any]:
    """Return a function's arguments and its reference results; arguments with recorded values come from the record."""
    name = function.name.partition("(")[0]
    given = samples(kind)
    if script.is_slow(function, kind):
        given = Arguments(*(column[: COUNT // 4] for column in given))
    if kind is np.float64 and name in precise.NAMES:
        x, _ = precise.recorded()[name]
        given = Arguments(x, x, x, x, np.zeros(len(x), np.int32))
    return given, harness.expected(function, given)


def check(function: Function, kind: Any) -> None:
    given, right = expected(function, kind)
    _, broken = harness.compare(function, given, right, harness.run(module_of(kind), function, given))
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(("function", "kind"), CASES)
def test_a_function_is_within_its_bound(
    function: Function, kind: Any, device: cuda.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "numpy")
    check(function, kind)


@pytest.mark.parametrize("processor_level", [HOST], ids=str, indirect=True)
def test_machine_code_of_functions_is_within_their_bounds(
    processor_level: processors.Level, device: cuda.Device
) -> None:
    for function in CHOSEN[np.float32]:
        check(function, np.float32)


@pytest.mark.exhaustive
@pytest.mark.parametrize("processor_level", [HOST, *processors.LEVELS], ids=str, indirect=True)
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_machine_code_of_each_level_is_within_the_bounds(
    kind: Any, processor_level: processors.Level, device: cuda.Device, rng: np.random.Generator
) -> None:
    """Each run tests a quarter of the functions, chosen at random."""
    every = [one for one in FUNCTIONS[kind] if kind is np.float32 or one.name not in SLOW_TO_COMPILE]
    functions = every if processor_level == HOST else CHOSEN[kind]
    for place in rng.choice(len(functions), len(functions) // 4, replace=False):
        check(functions[place], kind)


@pytest.mark.exhaustive
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86-64")
@pytest.mark.parametrize("kind", CHOSEN)
def test_code_for_avx512_is_not_taken_for_wrong(kind: Any, rng: np.random.Generator) -> None:
    """Code that is taken for wrong would be compiled again without optimisation. The test needs no AVX-512.

    Each run compiles half of the functions, chosen at random.
    """
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    from cudart_py.simulator.ptx.native import defects, machine
    from cudart_py.simulator.ptx.native.instances import lay_out

    functions = [CHOSEN[kind][place] for place in rng.permutation(len(CHOSEN[kind]))[::2]]
    entries = load_module(ptx_of(harness.source_of(functions, kind))).entries
    with processors.compiled_for(processors.Level("x86-64-v4", 2)):
        for name, entry in entries.items():
            if name == "test_round" and kind is np.float64:
                continue  # its addition has a directed rounding, which is left to the NumPy engine
            program = program_of(entry)
            module, _ = machine.build(program, lay_out(program, 1024), 1024)
            assert not defects.may_be_wrong(machine._object(module, 2)), name


def test_the_page_has_every_function_with_its_bounds() -> None:
    """The page's measured errors are not checked: they come from a long run of the page's command."""

    def bounds(text: str) -> list[list[str]]:
        return [[row[0], row[1], row[3]] for row in tables.rows(text) if row[0].startswith("`")]

    unmeasured = {kind: {one.name: (str(one.bound(kind)), 0.0) for one in FUNCTIONS[kind]} for kind in FUNCTIONS}
    expected = script.page(unmeasured[np.float32], unmeasured[np.float64], 0)
    recorded = script.PAGE.read_text(encoding="utf-8").partition(script.MARK)[2]
    assert bounds(recorded) == bounds(expected)
    assert recorded.splitlines()[-1] == expected.splitlines()[-1]  # the list of exact functions
