"""Run functions of CUDA's on a device and compare their results with references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .bounds import EXACT, distance
from .samples import Arguments
from .table import Function

__all__ = ["Errors", "compare", "module_of", "run", "source_of"]

Array = NDArray[Any]
KERNEL = """
extern "C" __global__ void {kernel}(const {T} *xs, const {T} *ys, const {T} *zs, const {T} *ws, const int *ns,
                                    int count, {T} *results, long long *wholes) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    [[maybe_unused]] {T} x = xs[i], y = ys[i], z = zs[i], w = ws[i];
    [[maybe_unused]] int n = ns[i];
    {T} result = 0;
    long long whole = 0;
    {body}
    results[i] = result;
    wholes[i] = whole;
}}
"""


def kernel_of(function: Function) -> str:
    """Return the name of a function's kernel."""
    return "test_" + "".join(letter if letter.isalnum() else f"_{ord(letter)}_" for letter in function.name)


def source_of(functions: Sequence[Function], kind: Any) -> str:
    """Return kernels that call functions in one precision."""
    single = np.dtype(kind) == np.float32
    letters = {"T": "float" if single else "double", "f": "f" if single else ""}
    return "".join(
        KERNEL.format(kernel=kernel_of(one), body=one.body.format(**letters), **letters) for one in functions
    )


def module_of(functions: Sequence[Function], kind: Any) -> cuda.Module:
    """Compile the kernels of `source_of`, all at once."""
    return cuda.compile(source_of(functions, kind), name=f"math_{np.dtype(kind).name}.cu")


def run(module: cuda.Module, function: Function, arguments: Arguments) -> tuple[Array, NDArray[np.int64]]:
    """Return what a device makes of arguments: a floating-point number and an integer of each."""
    count = len(arguments)
    columns = (arguments.x, arguments.y, arguments.z, arguments.w, arguments.n)
    inputs = [cuda.to_device(np.ascontiguousarray(one)) for one in columns]
    results, wholes = cuda.zeros(count, arguments.x.dtype), cuda.zeros(count, np.int64)
    module[kernel_of(function)][-(-count // 256), 256](*inputs, count, results, wholes)
    return results.to_host(), wholes.to_host()


@dataclass(frozen=True)
class Errors:
    """The greatest error in ulps where ulps are bounded, and what broke the bound, in words."""

    greatest: float
    broken: list[str]


def compare(function: Function, arguments: Arguments, got: tuple[Array, NDArray[np.int64]]) -> Errors:
    """Compare a device's results with the function's reference."""
    kind = arguments.x.dtype
    bound = function.bound(kind)
    with np.errstate(all="ignore"):
        answer = function.reference(arguments if bound == EXACT else arguments.widened())
        expected, wholes = answer if isinstance(answer, tuple) else (answer, np.zeros(len(arguments), np.int64))
        correct = np.asarray(expected).astype(kind)
    wrong = bound.breaks(arguments, np.asarray(expected), got[0], correct) | (got[1] != wholes)
    steps = distance(got[0], correct)[bound.counts(arguments)]
    lines = [
        f"{function.name}({', '.join(repr(getattr(arguments, name)[i]) for name in 'xyzwn')}):"
        f" {got[0][i]!r} {got[1][i]}, expected {correct[i]!r} {wholes[i]}"
        for i in np.flatnonzero(wrong)[:8]
    ]
    return Errors(float(steps.max(initial=0)), lines)
