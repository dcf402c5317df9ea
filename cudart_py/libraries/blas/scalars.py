"""Arguments of BLAS calls other than arrays: factors in host memory, operations, and the compute precision."""

from __future__ import annotations

import cmath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import arguments
from ...driver.calls import library
from ..dtypes import Kind

Scalar = float | complex

MOST_FACTORS = 256


class Factor(NamedTuple):
    """A number in host memory, and its address."""

    memory: NDArray[Any]
    address: int


OPERATIONS = ("N", "T", "C")


def operation(call: str, name: str, op: str) -> int:
    """Return the cublasOperation_t for "N", "T" or "C"; raise TypeError or ValueError for other values."""
    return int(library("cublas").Operation[arguments.choice(call, name, op, OPERATIONS)])


_factors: dict[tuple[Any, ...], Factor] = {}


def factor(value: Scalar, kind: Kind) -> Factor:
    """Return a number in host memory, in the dtype that a library reads; raise OverflowError if it is too large.

    The caller must keep the result until the library has read the number.
    """
    key = value, kind.scalar
    found = _factors.get(key)
    if found is None:
        if len(_factors) >= MOST_FACTORS:
            _factors.clear()
        memory = _rounded(value, kind.scalar)
        found = _factors[key] = Factor(memory, memory.ctypes.data)
    return found


def scalar(call: str, name: str, value: Any, kind: Kind) -> Factor:
    """Return the `factor` for an argument; raise TypeError or ValueError if it is not a suitable number."""
    check_number(call, name, value)
    if isinstance(value, complex | np.complexfloating) and not kind.is_complex:
        raise arguments.wrong_type(call, name, f"a real number, since the arrays have dtype {kind.name}", value)
    try:
        return factor(value, kind)
    except OverflowError:
        raise arguments.wrong_value(call, name, f"a number that {kind.scalar} can represent", value) from None


def check_number(call: str, name: str, value: Any) -> None:
    """Raise TypeError for anything that is not a number. A bool does not count as a number."""
    if not isinstance(value, int | float | complex | np.number) or isinstance(value, bool):
        raise arguments.wrong_type(call, name, "a number", value)


def _rounded(value: Scalar, dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        memory = np.array([value], dtype)  # raises OverflowError for an int that is too large for any float
    if np.isinf(memory[0]) and not cmath.isinf(complex(value)):
        raise OverflowError
    return memory


def check_unread(call: str, beta: Any) -> None:
    """Check that `beta` is 0 if no output is given: a new array has no contents to read."""
    check_number(call, "beta", beta)
    if beta != 0:
        raise arguments.wrong_value(call, "beta", "0 without 'out'", beta, "pass out")


def compute_type(call: str, kind: Kind, compute: str | None) -> int:
    """Return the cublasComputeType_t for matrices of a kind; raise TypeError or ValueError for an invalid `compute`."""
    types = library("cublas").ComputeType
    if compute is None:
        return int(types.COMPUTE_64F if kind.real == np.float64 else types.COMPUTE_32F)
    if kind.name not in ("float32", "complex64"):
        wanted = f"None for arrays of dtype {kind.name}"
        wrong = arguments.wrong_value if isinstance(compute, str) else arguments.wrong_type
        raise wrong(call, "compute", wanted, compute)
    arguments.choice(call, "compute", compute, (None, "tf32"))
    return int(types.COMPUTE_32F_FAST_TF32)
