"""Arguments of BLAS calls other than arrays: factors in host memory, operations, and the compute precision."""

from __future__ import annotations

import cmath
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base import arguments
from ...driver.calls import library
from .. import views
from ..dtypes import Kind

Scalar = float | complex

MOST_FACTORS = 256


class Factor(NamedTuple):
    """A number in host memory, and its address."""

    memory: NDArray[Any]
    address: int


OPERATIONS = ("N", "T", "C")


def toggled(call: str, name: str, op: str, kind: Kind) -> str:
    """Return the operation on the stored matrix that has the effect of `op` on its transpose, such as "N" for "T".

    Raises ValueError for the conjugate transpose of a transposed complex matrix: BLAS cannot conjugate a matrix without
    transposing it.
    """
    if op == "C" and kind.is_complex:
        raise arguments.wrong_value(call, name, "'N' or 'T' for a transposed complex matrix", op, "pass a copy")
    return "T" if op == "N" else "N"


def operation(call: str, name: str, op: str) -> int:
    """Return the cublasOperation_t for "N", "T" or "C"; raise TypeError or ValueError for other values."""
    return int(library("cublas").Operation[arguments.choice(call, name, op, OPERATIONS)])


_factors: dict[tuple[Any, ...], Factor] = {}


def factor(value: Scalar, kind: Kind) -> Factor:
    """Return a number in host memory, in the dtype that a library reads; raise OverflowError if it is too large.

    The caller must keep the result until the library has read the number.
    """
    key = value, kind.scalar
    cached = _factors.get(key)
    if cached is None:
        if len(_factors) >= MOST_FACTORS:
            _factors.clear()
        memory = _rounded(value, kind.scalar)
        cached = _factors[key] = Factor(memory, memory.ctypes.data)
    return cached


def scalar(call: str, name: str, value: Any, kind: Kind) -> Factor:
    """Return the `factor` for an argument; raise TypeError or ValueError if it is not a suitable number."""
    check_number(call, name, value)
    if isinstance(value, complex | np.complexfloating) and not kind.is_complex:
        raise arguments.wrong_type(call, name, f"a real number, since the arrays have dtype {kind.name}", value)
    if kind.scalar.kind == "i" and not (math.isfinite(value.real) and value == int(value.real)):
        raise arguments.wrong_value(call, name, f"a whole number, since the arrays have dtype {kind.name}", value)
    try:
        return factor(value, kind)
    except OverflowError:
        raise arguments.wrong_value(call, name, f"a number that {kind.scalar} can represent", value) from None


def check_number(call: str, name: str, value: Any) -> None:
    """Raise TypeError for anything that is not a number. A bool does not count as a number."""
    if not isinstance(value, int | float | complex | np.number) or isinstance(value, bool):
        raise arguments.not_a_number(call, name, value)


def _rounded(value: Scalar, dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        memory = np.array([value], dtype)  # raises OverflowError for an int that is too large for any float
    if np.isinf(memory[0]) and not cmath.isinf(complex(value)):
        raise OverflowError
    return memory


def check_unread(call: str, beta: Any) -> None:
    """Check that `beta` is 0 if no output is given: a new array has no contents to read."""
    check_number(call, "beta", beta)
    if beta != 0:
        raise arguments.wrong_value(call, "beta", "0 without 'out'", beta, "pass out")


# The cublasComputeType_t for each value of `compute`, by the dtypes of the matrices. Emulation computes with the tensor
# cores' smaller types: three bfloat16 numbers per float32, or integer slices of a double.
_SINGLE: dict[str | None, str] = {
    None: "COMPUTE_32F",
    "tf32": "COMPUTE_32F_FAST_TF32",
    "bf16": "COMPUTE_32F_FAST_16BF",
    "fp16": "COMPUTE_32F_FAST_16F",
    "emulated": "COMPUTE_32F_EMULATED_16BFX9",
    "pedantic": "COMPUTE_32F_PEDANTIC",
}
_DOUBLE: dict[str | None, str] = {
    None: "COMPUTE_64F",
    "emulated": "COMPUTE_64F_EMULATED_FIXEDPOINT",
    "pedantic": "COMPUTE_64F_PEDANTIC",
}
_COMPUTES: dict[str, dict[str | None, str]] = {
    "float16": {None: "COMPUTE_32F", "fp16": "COMPUTE_16F", "pedantic": "COMPUTE_32F_PEDANTIC"},
    "bfloat16": {None: "COMPUTE_32F", "pedantic": "COMPUTE_32F_PEDANTIC"},
    "float32": _SINGLE,
    "complex64": _SINGLE,
    "float64": _DOUBLE,
    "complex128": _DOUBLE,
    "int8": {None: "COMPUTE_32I", "pedantic": "COMPUTE_32I_PEDANTIC"},
}


def compute_type(call: str, kind: Kind, compute: str | None) -> tuple[int, Kind]:
    """Return the cublasComputeType_t for matrices of a kind, and the kind with the dtype of alpha and beta.

    Raises TypeError or ValueError for a `compute` that these matrices do not have.
    """
    computes = _COMPUTES[kind.name]
    if not (compute is None or isinstance(compute, str)) or compute not in computes:
        words = views.one_of(map(repr, computes))
        wrong = arguments.wrong_value if isinstance(compute, str) else arguments.wrong_type
        raise wrong(call, "compute", f"{words} for arrays of dtype {kind.name}", compute)
    if computes[compute] == "COMPUTE_16F":
        kind = replace(kind, scalar=np.dtype(np.float16))
    return int(library("cublas").ComputeType[computes[compute]]), kind
