"""Run CUDA's math functions on a device and compare their results with references."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .bounds import EXACT, distance
from .samples import Arguments
from .table import Function

Array = NDArray[Any]
KERNEL = """
extern "C" __global__ void {kernel}(const {T} *xs, const {T} *ys, const {T} *zs, const {T} *ws, const int *ns,
                                    int count, {T} *results, long long *wholes) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    [[maybe_unused]] {T} x = xs[i], y = ys[i], z = zs[i], w = ws[i], p[4] = {{x, y, z, w}};
    [[maybe_unused]] int n = ns[i];
    {T} result = 0;
    long long whole = 0;
    {body}
    results[i] = result;
    wholes[i] = whole;
}}
"""


def kernel_of(function: Function) -> str:
    return "test_" + "".join(letter if letter.isalnum() else f"_{ord(letter)}_" for letter in function.name)


def source_of(functions: Sequence[Function], kind: Any) -> str:
    """Return the source of kernels that call functions in one precision, one kernel per function."""
    letters = {"T": "float", "f": "f"} if np.dtype(kind) == np.float32 else {"T": "double", "f": ""}
    bodies = ((one, one.body.format(**letters)) for one in functions)
    return "".join(KERNEL.format(kernel=kernel_of(one), body=body, **letters) for one, body in bodies)


def module_of(functions: Sequence[Function], kind: Any) -> cuda.Module:
    """Compile the kernels of `source_of` as one module."""
    return cuda.compile(source_of(functions, kind), name=f"math_{np.dtype(kind).name}.cu")


def run(module: cuda.Module, function: Function, arguments: Arguments) -> tuple[Array, NDArray[np.int64]]:
    """Run a function on a device; return a floating-point and an integer result per argument."""
    count = len(arguments.x)
    inputs = [cuda.to_device(np.ascontiguousarray(column)) for column in arguments]
    results, wholes = cuda.zeros(count, arguments.x.dtype), cuda.zeros(count, np.int64)
    module[kernel_of(function)][-(-count // 256), 256](*inputs, count, results, wholes)
    return results.to_host(), wholes.to_host()


@np.errstate(all="ignore")
def expected(function: Function, arguments: Arguments) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return the reference's results: in higher precision, correctly rounded, and the integer results."""
    answer = function.reference(arguments if function.bound(arguments.x.dtype) == EXACT else arguments.widened())
    values, wholes = answer if isinstance(answer, tuple) else (answer, np.zeros(len(arguments.x), np.int64))
    return np.asarray(values), np.asarray(values).astype(arguments.x.dtype), wholes


def compare(
    function: Function, arguments: Arguments, right: tuple[Array, Array, NDArray[np.int64]], got: tuple[Array, Array]
) -> tuple[float, list[str]]:
    """Return the largest error in ulps where ulps are bounded, and a description of up to eight wrong results."""
    bound, (values, rounded, wholes) = function.bound(arguments.x.dtype), right
    wrong = bound.breaks(arguments, values, got[0], rounded) | (got[1] != wholes)
    steps = distance(got[0], rounded)[bound.counts(arguments)]
    lines = [
        f"{function.name}({', '.join(repr(column[i]) for column in arguments)}):"
        f" {got[0][i]!r} {got[1][i]}, expected {rounded[i]!r} {wholes[i]}"
        for i in np.flatnonzero(wrong)[:8]
    ]
    return float(steps.max(initial=0)), lines
